"""The pepper: a secret outside the database, without which a stolen one cannot be searched for passwords.

What it was is noted in the database as a keyed hash, so that a service with another one does not start, instead of
telling everybody that their password is wrong.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.settings import Settings
from scrubjay_io import private_files
from scrubjay_shared.errors import CorruptError, InvalidError, UnavailableError

PEPPER_BYTES = 32
LEAST_CHARACTERS = 32
"""Of a pepper: 128 bits in hex. Nobody guesses it to try passwords."""
FILE_NAME = "pepper"
HOW = (
    "make one with `openssl rand -hex 32` and set SCRUBJAY_CLOUD_PEPPER to it. Keep it apart from the database and its"
    " backups, and never lose it: without it no password is right any more"
)
_NOTE = "pepper"


def with_pepper(settings: Settings, entropy: Callable[[int], bytes]) -> Settings:
    """Return settings with a pepper. Raises InvalidError where none is set and the service is not for trying it out.

    On SQLite, on a loopback address and without TLS, one is made and kept beside the database, readable by its owner
    alone: enough for a machine of one's own, and no protection where the whole folder is stolen.
    """
    if settings.pepper:
        if len(settings.pepper) < LEAST_CHARACTERS:
            raise InvalidError(
                f"the pepper has {len(settings.pepper)} characters, and must have {LEAST_CHARACTERS} or more",
                hint=f"a database without accounts yet: {HOW}",
            )
        return settings
    if settings.database_url or settings.secure:
        raise InvalidError("no pepper is set: whoever steals the database could try passwords on it", hint=HOW)
    return replace(settings, pepper=_kept(path_in(settings.data), entropy))


def path_in(data: Path) -> Path:
    """Return where the pepper of a service is that was given none."""
    return data / FILE_NAME


def _kept(path: Path, entropy: Callable[[int], bytes]) -> str:
    try:
        if not path.exists():
            private_files.write(path, entropy(PEPPER_BYTES).hex().encode() + b"\n")
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnavailableError(
            f"{path} cannot be read, which holds the service's pepper", hint="check who owns it, and its permissions"
        ) from error


async def check_pepper(database: Database, pepper: bytes) -> None:
    """Note which pepper the database's passwords are hashed under, or compare it with the one noted.

    Raises CorruptError for another one.
    """
    mark = hmac.digest(pepper, b"note", "sha256").hex()

    def note(tx: Transaction) -> str:
        tx.execute("insert into meta (k, v) values (?, ?) on conflict (k) do nothing", (_NOTE, mark))
        row = tx.row("select v from meta where k = ?", (_NOTE,))
        return "" if row is None else str(row[0])

    if not hmac.compare_digest(await database.write(note), mark):
        raise CorruptError(
            "the pepper is not the one that the database's passwords were hashed under",
            hint="set SCRUBJAY_CLOUD_PEPPER to what it was; of a service that was given none, the file `pepper` in its"
            " data folder has it",
        )
