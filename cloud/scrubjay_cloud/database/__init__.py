"""The database: one small port (`port`), SQLite or PostgreSQL behind it, the same numbered migrations on both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scrubjay_cloud.database import postgres, sqlite
from scrubjay_cloud.database.migrations import SEED, latest, seed
from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis

__all__ = ["SEED", "Database", "Row", "Transaction", "latest", "open", "raise_generation"]

GENERATION_STRIDE = 1 << 32
"""By how much every account's `gseq` jumps when a generation begins: beyond whatever the lost tail had reached."""


async def open(  # noqa: A001 - database.open() is what it is
    where: Settings | str | Path,
    *,
    now: Callable[[], Millis],
    entropy: Callable[[int], bytes],
    inline: bool = False,
) -> Database:
    """Open the database, made and migrated as needed.

    `where` is the settings, a `postgres://` address, or the path of an SQLite file. `inline` runs units of work in the
    caller's thread, one after another, without any thread of its own: what a simulation needs (SQLite only).

    Raises UnavailableError when SQLite is too old to be safe, the file lies on a network file system or the server
    cannot be reached; ConflictError when another process has it open or a newer version wrote it; CorruptError when the
    file is damaged or not ours.
    """
    listen = where.listen_url if isinstance(where, Settings) else ""
    if isinstance(where, Settings):
        where = where.database_url or where.database_path
    text = str(where)
    if text.startswith(("postgres://", "postgresql://")):
        return await postgres.open_postgres(text, seeded=lambda: seed(now, entropy), now=now, listen=listen)
    return await sqlite.open_sqlite(Path(where), seeded=lambda: seed(now, entropy), now=now, inline=inline)


def raise_generation(tx: Transaction) -> int:
    """Begin a new generation, after a restore or a failover that may have lost a tail; return its number.

    Every account's `gseq` jumps, so that no reader's cursor from before points beyond what is written from now on:
    nobody misses an object, and nobody reads everything again.
    """
    row = tx.row("select v from meta where k = 'generation'")
    generation = int(row[0]) + 1 if row else 1
    tx.execute("update meta set v = ? where k = 'generation'", (str(generation),))
    tx.execute("update account set gseq = gseq + ?", (GENERATION_STRIDE,))
    return generation
