"""Keys in the store that no row names: of bodies under way, and of those whose rows are gone. Inside transactions."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_cloud.database.port import Params, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError


def announce(tx: Transaction, account: bytes, keys: Sequence[str], due: Millis) -> None:
    """Note keys before their bodies are sent: what no row has taken by `due` is deleted again."""
    tx.many(
        "insert into loose_body (account, body_key, due, marked) values (?, ?, ?, 0)",
        [(account, key, due) for key in keys],
    )


def take(tx: Transaction, account: bytes, keys: Sequence[str]) -> None:
    """Give keys to the rows that this transaction writes. Raises UnavailableError where one was collected already."""
    if not keys:
        return
    marks = ", ".join("?" * len(keys))
    taken = tx.execute(
        f"delete from loose_body where account = ? and marked = 0 and body_key in ({marks})", (account, *keys)
    )
    if taken != len(keys):
        raise UnavailableError("the request took so long that what it sent was cleared away", hint="send it again")


def release(tx: Transaction, table: str, where: str, params: Params) -> None:
    """Note the keys of rows that this transaction deletes: their bodies may go from the store at once."""
    tx.execute(
        "insert into loose_body (account, body_key, due, marked)"
        f" select account, body_key, 0, 0 from {table} where {where} and body_key is not null",
        params,
    )


def drop_blobs(tx: Transaction, account: bytes, gone: Sequence[tuple[bytes, int]]) -> None:
    """Delete some blobs of an account, and take them out of its counts: (hash, size)."""
    for digest, size in gone:
        release(tx, "blob", "account = ? and hash = ?", (account, digest))
        tx.execute("update account set bytes = bytes - ?, objects = objects - 1 where id = ?", (size, account))
        tx.execute("delete from blob where account = ? and hash = ?", (account, digest))


def mark(tx: Transaction, now: Millis, count: int) -> list[tuple[bytes, str]]:
    """Mark keys that are due, and those that a collection left behind marked; return them with their accounts."""
    lock = " for update skip locked" if tx.dialect == "postgres" else ""
    due = tx.rows(f"select account, body_key from loose_body where due <= ? order by due limit ?{lock}", (now, count))
    tx.many("update loose_body set marked = 1 where account = ? and body_key = ?", due)
    return [(account, key) for account, key in due]


def forget(tx: Transaction, marked: Sequence[tuple[bytes, str]]) -> None:
    """Forget keys whose bodies are gone."""
    tx.many("delete from loose_body where account = ? and body_key = ?", marked)


def waiting(tx: Transaction, now: Millis) -> int:
    """Return how many keys are due; the greatest number that is counted is 100,000."""
    row = tx.row("select count(*) from (select 1 from loose_body where due <= ? limit 100000) as due", (now,))
    return int(row[0]) if row else 0
