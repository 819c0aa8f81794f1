"""Checks on the server: reading everything again, comparing two devices, listing the account log."""

from __future__ import annotations

from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.errors import (
    InvalidError,
    SplitError,
)
from scrubjay_sync.account.member import Member
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.verification import (
    CompareRequest,
    CompareResponse,
    Head,
    HeadsResponse,
    InspectResponse,
    LaneVerified,
    LogLine,
    LogResponse,
    VerifyResponse,
)
from scrubjay_sync.keys.digests import heads_digest
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.words import words_of


async def verify(client: SyncClient, _: Nothing) -> VerifyResponse:
    """Read every lane again from the server and check it."""
    session = await client.require_session()
    found = await session.engine.verify()
    member = session.member
    return VerifyResponse(
        who=client.who(session),
        whole=found.whole,
        words=found.words,
        lanes=tuple(
            LaneVerified(
                scope=member.scopes.name(lane.scope),
                device=member.device_name(lane.device),
                places=lane.n,
                objects=lane.objects,
                bytes=lane.bytes,
                error="" if lane.error is None else lane.error.message,
            )
            for lane in found.lanes
        ),
    )


async def inspect(client: SyncClient, _: Nothing) -> InspectResponse:
    """Fetch what the server holds, and look in it for anything that it should not have."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    found = await session.engine.inspect()
    return InspectResponse(
        who=client.who(session),
        blind=found.blind,
        objects=found.objects,
        bytes=found.bytes,
        readable=found.readable,
        texts=found.texts,
        grams=found.grams,
        sizes=found.sizes,
        findings=found.findings,
    )


async def export_heads(client: SyncClient, _: Nothing) -> HeadsResponse:
    """Say where everything ends as this device knows it."""
    member = (await client.require_session()).member
    lanes = {
        lane_id: (lane.n, lane.tip)
        for lane_id, lane in (await client.store.read(lambda q: q.replication.lanes())).items()
        if lane.n
    }
    return HeadsResponse(
        account=member.account.hex(),
        device=member.device.hex(),
        log_seq=member.state.seq,
        log_head=member.state.head.hex(),
        heads=tuple(
            Head(scope=scope.hex(), device=device.hex(), n=n, tip=tip.hex())
            for (scope, device), (n, tip) in sorted(lanes.items())
        ),
        words=words_of(heads_digest(member.account, member.state.head, lanes)),
    )


async def compare(client: SyncClient, request: CompareRequest) -> CompareResponse:
    """Compare with what another device exported. Raises SplitError when the server told it something else."""
    session = await client.require_session()
    theirs = request.heads
    if theirs.account != session.member.account.hex():
        raise InvalidError(
            "that file is of another account", hint="run scrubjay sync export-heads on a device of this account"
        )
    same = unknown = 0
    entry = await client.store.read(lambda q: q.replication.account_entry(theirs.log_seq))
    if entry is not None:
        if account_log.read(entry).hash.hex() != theirs.log_head:
            raise _split(f"entry {theirs.log_seq} of the account log")
        same += 1
    else:
        unknown += 1
    for head in theirs.heads:
        scope, device = _unhex(head.scope), _unhex(head.device)
        known = await client.store.read(lambda q: q.replication.link(scope, device, head.n))
        if known is None:
            unknown += 1
        elif known.hex() != head.tip:
            raise _split(f"place {head.n} of lane {head.device[:8]}")
        else:
            same += 1
    return CompareResponse(who=client.who(session), same=same, unknown=unknown)


async def list_log(client: SyncClient, _: Nothing) -> LogResponse:
    """List the account log as this device holds it."""
    session = await client.require_session()
    entries = await client.store.read(lambda q: q.replication.account_log())
    return LogResponse(who=client.who(session), entries=tuple(_line(session.member, data) for data in entries))


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InvalidError(
            f"the file of the other device holds an id that is not hex: {text[:40]!r}",
            hint="write it again with scrubjay sync export-heads on that device",
        ) from error


def _split(what: str) -> SplitError:
    return SplitError(
        f"the server has shown your devices two different histories: they differ from {what} on",
        hint="do not trust this server: keep the stores of both devices, and find out which history is true",
    )


_WORDS_OF_ENTRY: dict[int, str] = {
    EntryType.GENESIS: "account made",
    EntryType.DEVICE_ADD: "device added",
    EntryType.DEVICE_REVOKE: "device revoked",
    EntryType.DEVICE_REKEY: "device renewed its keys",
    EntryType.ROTATE: "root key replaced",
    EntryType.KEYRING_SET: "keyring written",
    EntryType.SCOPE_CREATE: "scope made",
    EntryType.SCOPE_DELETE: "scope deleted",
    EntryType.EPOCH_ADD: "scope key replaced",
    EntryType.LANE_ADOPT: "lane adopted",
    EntryType.RECOVERY_ROTATE: "recovery code replaced",
    EntryType.ORIGIN_ADD: "address added",
    EntryType.VOID: "entries cancelled",
    EntryType.RECOVERY_CONFIRM: "recovery code confirmed",
    EntryType.CHECKPOINT: "checkpoint",
}


_OF_DEVICES = frozenset({EntryType.DEVICE_ADD, EntryType.DEVICE_REVOKE, EntryType.DEVICE_REKEY})


_OF_SCOPES = frozenset({EntryType.SCOPE_CREATE, EntryType.SCOPE_DELETE, EntryType.EPOCH_ADD, EntryType.LANE_ADOPT})


def _line(member: Member, data: bytes) -> LogLine:
    entry = account_log.read(data)
    about = entry.body.get(1)
    subject = ""
    if entry.type in _OF_DEVICES and isinstance(about, bytes):
        subject = member.device_name(about)
    elif entry.type in _OF_SCOPES and isinstance(about, bytes):
        subject = member.scopes.name(about)
    elif entry.type == EntryType.VOID:
        subject = f"from entry {about} on"
    return LogLine(seq=entry.seq, what=_WORDS_OF_ENTRY.get(entry.type, f"entry of type {entry.type}"), subject=subject)
