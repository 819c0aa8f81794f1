"""Objects that stand in no lane, by their hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scrubjay_cloud.accounts.blobs import check_blob, read_blob, store_blob
from scrubjay_cloud.bodies.transfer import BodyRow, sent, with_bodies
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.lanes.read import readable_scopes
from scrubjay_cloud.lanes.snapshots import check_maker
from scrubjay_cloud.refusals import account_deleted, scope_not_given
from scrubjay_cloud.service import Service
from scrubjay_shared.envelope import (
    SNAPSHOT_KINDS,
    ObjectKind,
    Suite,
)
from scrubjay_shared.errors import (
    InvalidError,
    NotFoundError,
    QuotaError,
)


async def get_object(service: Service, call: Call) -> Answer:
    """Return an object that stands in no lane."""
    caller = call.caller

    async def read() -> tuple[Row, Sequence[BodyRow]]:
        row = await service.database.read(
            lambda tx: tx.row(
                "select scope, kind, body, body_key from blob where account = ? and hash = ?",
                (caller.account, call.path["hash"]),
            )
        )
        if row is None:
            raise NotFoundError("the server has no such object", hint="read the account log again: it names the newest")
        return row, [row[2:]]

    (scope, kind, *_), objects = await with_bodies(service.body_store, read)
    if not caller.full and kind != ObjectKind.KEYRING and scope not in (await readable_scopes(service, call) or ()):
        raise scope_not_given()
    await service.limits.spend("traffic", caller.spends_as, service.policy.limits.traffic, sum(map(len, objects)))
    return Answer(objects=objects)


async def put_object(service: Service, call: Call) -> Answer:
    """Keep an object under its hash. A keyring comes with the log entry that names it instead."""
    caller, now = call.caller, service.now()
    blob = read_blob(call.body)
    if blob.hash != call.path["hash"]:
        raise InvalidError(
            "the SHA-256 of the object is not the one in the path", hint="send the object that the path names"
        )
    if blob.kind == ObjectKind.KEYRING:
        raise InvalidError("a keyring is sent with the log entry that names it", hint="send it with POST /v1/log")
    if blob.kind == ObjectKind.SNAPSHOT_MANIFEST:
        raise InvalidError("a manifest is sent with the chunks that it names", hint="send it with PUT /v1/snapshots")
    state = await service.state(caller.account, caller.head)
    check_blob(blob, state)
    if blob.kind in SNAPSHOT_KINDS:
        check_maker(blob, state, caller.device)
    bodies, policy = service.body_store, service.policy.bodies
    if bodies is not None and blob.suite == Suite.SEALED and len(blob.data) >= policy.least_bytes:
        [key] = await sent(
            service.database, bodies, caller.account, [blob.data], now=now, entropy=service.entropy, policy=policy
        )
        blob = replace(blob, body_key=key)

    def store(tx: Transaction) -> None:
        row = tx.row("update account set gseq = gseq where id = ? returning bytes, objects, quota", (caller.account,))
        if row is None:
            raise account_deleted()
        quota = service.settings.quota_bytes if row[2] is None else row[2]
        added = store_blob(tx, blob, caller.account, now)
        if added and blob.kind in SNAPSHOT_KINDS:  # not in force until a manifest comes that names it
            tx.execute(
                "update blob set replaced_at = ? where account = ? and hash = ?", (now, caller.account, blob.hash)
            )
        if added and (row[0] + added > quota or row[1] >= service.policy.quota_objects):
            raise QuotaError("the account's storage is used up", hint="ask the server's operator for more")

    await service.database.write(store)
    return Answer()
