"""Scopes end: everything of them is deleted."""

from __future__ import annotations

from scrubjay_cloud import materialise
from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.bodies.collection import collect_now
from scrubjay_cloud.bodies.loose import release
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ConflictError,
    NotFoundError,
)
from scrubjay_shared.wire import Deleted


async def delete_scope(service: Service, call: Call) -> Answer:
    """Delete everything of a scope whose end the log has declared: a token alone destroys nothing."""
    caller, scope, now = call.caller, call.path["scope"], service.now()
    state = await service.state(caller.account, caller.head)
    declared = state.scopes.get(scope)
    if declared is None:
        raise NotFoundError("the account has no such scope", hint="scrubjay sync scopes list shows them")
    if not declared.deleted:
        raise ConflictError("the account log still has that scope", hint="append a scope_delete entry first")
    deleted = await service.database.write(lambda tx: erase_scope(tx, caller.account, scope, now))
    await collect_now(service.database, service.body_store, now, rows=service.policy.bodies.collect_rows)
    return Answer(record=deleted)


def erase_scope(tx: Transaction, account: bytes, scope: bytes, now: Millis) -> Deleted:
    """Delete every row of a scope, and take it out of the account's counts."""
    tx.execute("update account set gseq = gseq where id = ?", (account,))
    counts = "select coalesce(sum(size), 0), count(*) from"
    here = "where account = ? and scope = ?"
    live = tx.row(f"{counts} object {here} and superseded_at is null", (account, scope))
    old = tx.row(f"{counts} object {here} and superseded_at is not null", (account, scope))
    blobs = tx.row(f"{counts} blob {here}", (account, scope))
    (size, count), (old_size, old_count), (blob_size, blob_count) = (row or (0, 0) for row in (live, old, blobs))
    for table in ("object", "blob"):
        release(tx, table, "account = ? and scope = ?", (account, scope))
    tables = ("object", "blob", "lane", *materialise.TABLES)
    for table in tables:
        tx.execute(f"delete from {table} {here}", (account, scope))
    tx.execute(
        "update account set bytes = bytes - ?, objects = objects - ?, superseded = superseded - ? where id = ?",
        (int(size + blob_size), count + blob_count, int(old_size), account),
    )
    audit(tx, account, "scope deleted", now)
    left = [tx.row(f"select count(*) from {table} {here}", (account, scope)) for table in tables]
    return Deleted(objects=count + old_count + blob_count, left=sum(row[0] for row in left if row))
