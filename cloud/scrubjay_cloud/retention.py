"""What is deleted by age, so that every table stays bounded. Jobs call it; it only decides what is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from scrubjay_cloud.bodies.loose import announce, drop_blobs
from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import SNAPSHOT_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How many rows went, by what they were."""

    tokens: int = 0
    enrolments: int = 0
    challenges: int = 0
    former_names: int = 0
    known_networks: int = 0
    invites: int = 0
    buckets: int = 0
    audits: int = 0
    keyrings: int = 0
    snapshots: int = 0
    objects: int = 0

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(getattr(self, field.name) for field in fields(self))


async def sweep(database: Database, now: Millis, policy: CloudPolicy) -> Swept:
    """Delete what is over: at most `policy.sweep_rows` of a kind in one transaction, again until nothing is left."""
    counts = {name: await _until_done(database, work, policy.sweep_rows) for name, work in _steps(now, policy).items()}
    return Swept(**counts)


Step = Callable[[Transaction], int]


async def _until_done(database: Database, work: Step, rows: int) -> int:
    total = 0
    while True:
        gone = await database.write(work)
        total += gone
        if gone < rows:
            return total


def _steps(now: Millis, policy: CloudPolicy) -> dict[str, Step]:
    rows = policy.sweep_rows

    def by_age(table: str, key: str, column: str, before: int) -> Step:
        return lambda tx: tx.execute(
            f"delete from {table} where {key} in (select {key} from {table} where {column} <= ? limit ?)",
            (before, rows),
        )

    return {
        "tokens": by_age("token", "hash", "expires", now),
        "enrolments": by_age("enroll", "id", "expires", now),
        "challenges": by_age("challenge", "hash", "expires", now),
        "known_networks": lambda tx: tx.execute(
            "delete from known_network where (account, network) in"
            " (select account, network from known_network where seen <= ? limit ?)",
            (now - policy.known_network_ms, rows),
        ),
        "former_names": by_age("former_name", "name", "expires", now),
        "invites": by_age("invite", "hash", "expires", now),
        "buckets": by_age("bucket", "k", "at", now - policy.bucket_ms),
        "audits": lambda tx: _audits(tx, now, policy),
        "keyrings": lambda tx: _replaced(tx, now - policy.keyring_ms, rows, "not in"),
        "snapshots": lambda tx: _replaced(tx, now - policy.snapshot_ms, rows, "in"),
        "objects": lambda tx: _superseded(tx, now - policy.superseded_ms, rows),
    }


def _audits(tx: Transaction, now: Millis, policy: CloudPolicy) -> int:
    """Delete what is old, and of accounts that something happened to lately what is over their number of rows."""
    gone = tx.execute(
        "delete from audit where (account, id) in (select account, id from audit where at <= ? limit ?)",
        (now - policy.audit_ms, policy.sweep_rows),
    )
    most = policy.audit_rows
    for (account,) in tx.rows(
        "select account from (select distinct account from audit where at > ?) as lately"
        " where (select count(*) from audit where account = lately.account) > ?",
        (now - policy.audit_recent_ms, most),
    ):
        gone += tx.execute(
            "delete from audit where account = ? and id <= (select id from audit where account = ? order by id desc"
            " limit 1 offset ?)",
            (account, account, most),
        )
    return gone


def _replaced(tx: Transaction, before: int, rows: int, among: str) -> int:
    """Delete blobs that are not in force, of the kinds of snapshots or of all others."""
    kinds = ", ".join(str(int(kind)) for kind in sorted(SNAPSHOT_KINDS))
    expired = tx.rows(
        f"select account, hash, size from blob where replaced_at <= ? and kind {among} ({kinds}) limit ?",
        (before, rows),
    )
    for account, digest, size in expired:
        drop_blobs(tx, account, [(digest, size)])
    return len(expired)


def _superseded(tx: Transaction, before: int, rows: int) -> int:
    """Delete what packs have replaced, account by account, each under its lock."""
    left, gone = rows, 0
    for (account,) in tx.rows(
        "select distinct account from (select account from object where superseded_at <= ? limit ?) as old"
        " order by account",
        (before, rows),
    ):
        tx.execute("update account set gseq = gseq where id = ?", (account,))
        expired = tx.rows(
            "select scope, device, n_from, hash, size, body_key from object"
            " where account = ? and superseded_at <= ? limit ?",
            (account, before, left),
        )
        announce(tx, account, [row[5] for row in expired if row[5] is not None], Millis(0))
        tx.many(
            "delete from object where account = ? and scope = ? and device = ? and n_from = ? and hash = ?"
            " and superseded_at is not null",
            [(account, scope, device, n_from, digest) for scope, device, n_from, digest, *_ in expired],
        )
        tx.execute(
            "update account set superseded = superseded - ? where id = ?", (sum(row[4] for row in expired), account)
        )
        left, gone = left - len(expired), gone + len(expired)
        if left <= 0:
            break
    return gone
