"""Snapshots of scopes: one set of objects in force for each, put in the place of the one before, or deleted.

The server opens none of them. It looks only at who made the objects, and that the set is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_cloud.accounts.blobs import Blob, check_blob, read_blob, store_blob
from scrubjay_cloud.bodies.loose import drop_blobs
from scrubjay_cloud.bodies.transfer import BodyRow, with_bodies
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.refusals import account_deleted, scope_not_given
from scrubjay_cloud.service import Service
from scrubjay_shared.account import AccountState
from scrubjay_shared.envelope import SNAPSHOT_KINDS, ObjectKind, parse, signed_by
from scrubjay_shared.errors import BadSignatureError, DeniedError, InvalidError, NotFoundError, QuotaError
from scrubjay_shared.snapshot import MAX_CHUNKS
from scrubjay_shared.wire import Chunks

_MANIFEST = int(ObjectKind.SNAPSHOT_MANIFEST)
_KINDS = ", ".join(str(int(kind)) for kind in sorted(SNAPSHOT_KINDS))


async def get_snapshot(service: Service, call: Call) -> Answer:
    """Return the manifest of a scope's snapshot."""
    caller, scope = call.caller, call.path["scope"]
    await _check_reads(service, call)

    async def read() -> tuple[Row, Sequence[BodyRow]]:
        row = await service.database.read(
            lambda tx: tx.row(
                "select body, body_key from blob where account = ? and scope = ? and kind = ? and replaced_at is null",
                (caller.account, scope, _MANIFEST),
            )
        )
        if row is None:
            raise NotFoundError("that scope has no snapshot", hint="read its lanes")
        return row, [row]

    _, objects = await with_bodies(service.body_store, read)
    await service.limits.spend("traffic", caller.account, service.policy.limits.traffic, sum(map(len, objects)))
    return Answer(objects=objects)


async def put_snapshot(service: Service, call: Call) -> Answer:
    """Put a snapshot in force, whose chunks are all there, and delete the objects of the one before."""
    caller, scope, now = call.caller, call.path["scope"], service.now()
    manifest, chunks = read_blob(call.body.manifest), set(call.body.chunks)
    if manifest.kind != _MANIFEST or manifest.scope != scope:
        raise InvalidError("the object is not the manifest of that scope's snapshot", hint="send its manifest")
    if len(chunks) > MAX_CHUNKS or any(len(one) != len(manifest.hash) for one in chunks):
        raise InvalidError(f"a snapshot has at most {MAX_CHUNKS} chunks, named by SHA-256", hint="make none of it")
    state = await service.state(caller.account, caller.head)
    check_blob(manifest, state)
    check_maker(manifest, state, caller.device)

    def store(tx: Transaction) -> None:
        row = tx.row("update account set gseq = gseq where id = ? returning bytes, objects, quota", (caller.account,))
        if row is None:
            raise account_deleted()
        there = _objects(tx, caller.account, scope)
        if missing := len(chunks - {digest for digest, kind, _ in there if kind != _MANIFEST}):
            raise NotFoundError(
                f"{missing} chunks of the snapshot are not there",
                hint="send them first: POST /v1/snapshots/{scope}/missing says which",
            )
        added = store_blob(tx, manifest, caller.account, now)
        quota = service.settings.quota_bytes if row[2] is None else row[2]
        if added and row[0] + added > quota:
            raise QuotaError("the account's storage is used up", hint="ask the server's operator for more")
        kept = chunks | {manifest.hash}
        drop_blobs(tx, caller.account, [(digest, size) for digest, _, size in there if digest not in kept])
        tx.many(
            "update blob set replaced_at = null where account = ? and hash = ?",
            [(caller.account, digest) for digest in sorted(kept)],
        )

    await service.database.write(store)
    return Answer()


async def delete_snapshot(service: Service, call: Call) -> Answer:
    """Delete every object of a scope's snapshot, whoever made it: it only costs new machines some time."""
    caller, scope = call.caller, call.path["scope"]
    await _check_reads(service, call, to_delete=True)

    def drop(tx: Transaction) -> None:
        tx.execute("update account set gseq = gseq where id = ?", (caller.account,))
        drop_blobs(tx, caller.account, [(digest, size) for digest, _, size in _objects(tx, caller.account, scope)])

    await service.database.write(drop)
    return Answer()


async def missing_chunks(service: Service, call: Call) -> Answer:
    """Return which of some chunks of a scope's snapshot are not there yet."""
    caller, scope = call.caller, call.path["scope"]
    asked = call.body.chunks[:MAX_CHUNKS]
    there = {digest for digest, _, _ in await service.database.read(lambda tx: _objects(tx, caller.account, scope))}
    return Answer(record=Chunks(chunks=tuple(one for one in asked if one not in there)))


def check_maker(blob: Blob, state: AccountState, caller: bytes | None) -> None:
    """Raise DeniedError or BadSignatureError when an object of a snapshot is not of the full device that sends it."""
    envelope = parse(blob.data)
    device = state.devices.get(envelope.header.device)
    if device is None or device.id != caller or device.revoked or not device.full:
        raise DeniedError(
            "a snapshot is made by a full device of the account, which sends it itself", hint="make it on such a device"
        )
    if not signed_by(envelope, (device.sign_pub,)):
        raise BadSignatureError("the object is not signed by its device", hint="update scrubjay there")


async def _check_reads(service: Service, call: Call, *, to_delete: bool = False) -> None:
    state = await service.state(call.caller.account, call.caller.head)
    device = state.devices.get(call.caller.device or b"")
    if device is None or (device.scopes is not None and call.path["scope"] not in device.scopes):
        raise scope_not_given()
    if to_delete and device.read_only:
        raise DeniedError("this device may only read", hint="another one deletes it when that is due")


def _objects(tx: Transaction, account: bytes, scope: bytes) -> list[tuple[bytes, int, int]]:
    """Return the objects of a scope's snapshots: (hash, kind, size), those of an upload under way too."""
    found = tx.rows(
        f"select hash, kind, size from blob where account = ? and scope = ? and kind in ({_KINDS})", (account, scope)
    )
    return [(bytes(digest), int(kind), int(size)) for digest, kind, size in found]
