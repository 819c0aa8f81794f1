"""What an account holds, and its end."""

from __future__ import annotations

from scrubjay_cloud import materialise
from scrubjay_cloud.accounts.authentication import confirmed
from scrubjay_cloud.bodies.collection import collect_now
from scrubjay_cloud.bodies.loose import release
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.refusals import account_deleted
from scrubjay_cloud.service import Service
from scrubjay_cloud.team_rows import erase_left
from scrubjay_shared.wire import (
    DeleteAccount,
    Deleted,
    Usage,
)

ACCOUNT_TABLES = (
    *("object", "blob", "wrap", "lane", "token", "enroll", "audit", "device", "account_log", "account_state"),
    *("former_name", "refusal", "known_network"),
    *materialise.TABLES,
)
"""Every table with rows of an account, besides `account` itself; `loose_body` names what goes from the store after."""


async def usage(service: Service, call: Call) -> Answer:
    """Say what the account holds and may hold."""
    caller = call.caller
    state = await service.state(caller.account, caller.head)
    row = await service.database.read(
        lambda tx: tx.row("select bytes, objects, quota from account where id = ?", (caller.account,))
    )
    if row is None:
        raise account_deleted()
    return Answer(
        record=Usage(
            bytes=row[0],
            objects=row[1],
            devices=len(state.active()),
            scopes=sum(not scope.deleted for scope in state.scopes.values()),
            quota_bytes=service.settings.quota_bytes if row[2] is None else row[2],
            quota_objects=service.policy.quota_objects,
        )
    )


async def leave(service: Service, call: Call) -> Answer:
    """Delete the account and everything of it, in one transaction."""
    given: DeleteAccount = call.body
    stored = await confirmed(service, call, given.auth_key)
    deleted = await service.database.write(lambda tx: delete_account(tx, stored.account))
    await collect_now(service.database, service.body_store, service.now(), rows=service.policy.bodies.collect_rows)
    return Answer(record=deleted)


def delete_account(tx: Transaction, account: bytes) -> Deleted:
    """Delete every row of an account and count what is left, which must be nothing."""
    tx.execute("update account set gseq = gseq where id = ?", (account,))  # the lock that pushes take first
    for table in ("object", "blob"):
        release(tx, table, "account = ?", (account,))
    objects = sum(tx.execute(f"delete from {table} where account = ?", (account,)) for table in ("object", "blob"))
    for table in ACCOUNT_TABLES:
        tx.execute(f"delete from {table} where account = ?", (account,))
    erase_left(tx, account)
    tx.execute("delete from account where id = ?", (account,))
    return Deleted(objects=objects, left=rows_of(tx, account))


def rows_of(tx: Transaction, account: bytes) -> int:
    """Return how many rows any table has of an account."""
    left = tx.row("select count(*) from account where id = ?", (account,))
    counts = [
        left,
        *(tx.row(f"select count(*) from {table} where account = ?", (account,)) for table in ACCOUNT_TABLES),
    ]
    return sum(row[0] for row in counts if row)
