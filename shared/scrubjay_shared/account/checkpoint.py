"""A state of the account in bytes, and the checkpoint entry that states one by its hash. Pure.

The encoding is canonical: a state has one text, so that whoever has replayed the log to some place knows the only hash
that a checkpoint there may state. Left out is what nobody asks for any more: the wrap key of a revoked device.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from scrubjay_shared.account.entries import NEWER
from scrubjay_shared.account.fields import LIMIT, bytes_of, check_length, id_of, int_of, lane_end_of, text_of
from scrubjay_shared.account.state import AccountState, Device, ScopeState
from scrubjay_shared.errors import InvalidError, MalformedError

STATE_FORMAT = 1
"""How a state is written. A reader takes a checkpoint of a higher format for an entry that it does not know."""
MAX_STATE_BYTES = 8 * 1024 * 1024
"""Of a state that is handed out: 100 devices in force take 130 KB, one that was revoked .2 KB, an instance .1 KB."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[int, Any])


def checkpoint_body(state: AccountState) -> dict[int, Any]:
    """Return the body of the checkpoint entry that may follow a state."""
    return {1: STATE_FORMAT, 2: state_digest(state)}


def state_digest(state: AccountState) -> bytes:
    """Return the hash by which a checkpoint states the account."""
    return digest_of_state(state_bytes(state))


def digest_of_state(data: bytes) -> bytes:
    """Return the hash of a state's bytes."""
    return hashlib.sha256(b"sjs/1/state" + data).digest()


def state_bytes(state: AccountState) -> bytes:
    """Return a state in its one form: MessagePack, maps and lists in ascending order, nothing that is a default."""
    return _encoder.encode(
        {
            1: state.account,
            2: state.genesis,
            3: state.seq,
            4: state.head,
            5: state.ask,
            6: state.version,
            7: state.rsk,
            8: state.recovery_pub,
            9: list(state.origins),
            10: [_device_fields(one) for _, one in sorted(state.devices.items())],
            11: [_scope_fields(one) for _, one in sorted(state.scopes.items())],
            12: [[*lane, list(adopters)] for lane, adopters in sorted(state.adopters.items())],
        }
        | ({} if state.keyring is None else {13: list(state.keyring)})
        | ({} if state.waiting_recovery is None else {14: list(state.waiting_recovery)})
        | ({15: state.checkpoint} if state.checkpoint else {})
    )


def _device_fields(one: Device) -> dict[int, Any]:
    """Return what is written of a device. The keys of a map stand in ascending order."""
    fields: dict[int, Any] = {1: one.id, 2: one.sign_pub, 3: one.wrap_pub, 4: one.added, 5: one.added_by}
    if one.scopes is not None:
        fields[6] = list(one.scopes)
    if one.read_only:
        fields[7] = True
    if one.ends is not None:
        del fields[3]
        fields[8] = [[scope, n, tip] for scope, (n, tip) in sorted(one.ends.items())]
    if one.instance_ends:
        fields[9] = [[scope, n, tip, writer] for (writer, scope), (n, tip) in sorted(one.instance_ends.items())]
    return fields


def _scope_fields(one: ScopeState) -> dict[int, Any]:
    fields: dict[int, Any] = {1: one.id, 2: one.suite}
    if one.home:
        fields[3] = True
    fields[4] = one.epoch
    if one.deleted:
        fields[5] = True
    if one.space:
        fields[6] = one.space
    return fields


def state_of(data: bytes) -> AccountState:
    """Return the state of some bytes. Raises MalformedError for what is not the one form of a state."""
    try:
        state = _state_of(_decoder.decode(data))
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError, InvalidError) as error:
        raise _malformed() from error
    if state_bytes(state) != data:
        raise _malformed()
    return state


def _malformed() -> MalformedError:
    return MalformedError("a state of the account is not in the format of this version", hint=NEWER)


def _state_of(body: dict[int, Any]) -> AccountState:
    account, genesis, head, ask, rsk, recovery_pub = (bytes_of(body, key) for key in (1, 2, 4, 5, 7, 8))
    check_length(account, 16)
    for key in (genesis, head, ask, rsk):
        check_length(key, 32)
    devices = [_device_of(one) for one in body[10]] if isinstance(body.get(10), list) else []
    scopes = [_scope_of(one) for one in body[11]] if isinstance(body.get(11), list) else []
    return AccountState(
        account=account,
        genesis=genesis,
        seq=int_of(body, 3),
        head=head,
        ask=ask,
        version=int_of(body, 6),
        rsk=rsk,
        recovery_pub=recovery_pub,
        origins=tuple(text_of({1: one}, 1) for one in body.get(9, ())),
        devices={one.id: one for one in devices},
        scopes={one.id: one for one in scopes},
        adopters={
            (id_of(scope), id_of(device)): tuple(map(id_of, adopters)) for scope, device, adopters in body.get(12, ())
        },
        keyring=_keyring_of(body.get(13)),
        waiting_recovery=_waiting_of(body.get(14)),
        checkpoint=int_of(body, 15) if 15 in body else 0,
    )


def _device_of(body: Any) -> Device:
    if not isinstance(body, dict):
        raise TypeError("a device is a map")
    sign_pub, added_by = bytes_of(body, 2), bytes_of(body, 5)
    check_length(sign_pub, 32)
    check_length(added_by, 16)
    return Device(
        id=id_of(body.get(1)),
        sign_pub=sign_pub,
        wrap_pub=b"" if 8 in body else bytes_of(body, 3),
        added=int_of(body, 4),
        added_by=added_by,
        scopes=tuple(map(id_of, body[6])) if 6 in body else None,
        read_only=body.get(7) is True,
        ends={scope: end for scope, end, _ in map(lane_end_of, body[8])} if 8 in body else None,
        instance_ends={(id_of(writer), scope): end for scope, end, writer in map(lane_end_of, body.get(9, ()))},
    )


def _scope_of(body: Any) -> ScopeState:
    if not isinstance(body, dict):
        raise TypeError("a scope is a map")
    return ScopeState(
        id=id_of(body.get(1)),
        suite=int_of(body, 2),
        home=body.get(3) is True,
        epoch=int_of(body, 4),
        deleted=body.get(5) is True,
        space=text_of(body, 6) if 6 in body else "",
    )


def _keyring_of(value: Any) -> tuple[int, bytes] | None:
    match value:
        case None:
            return None
        case [int(version), bytes(digest)] if len(digest) == 32 and 0 < version < LIMIT:
            return version, digest
    raise TypeError("a keyring is a version and a hash")


def _waiting_of(value: Any) -> tuple[bytes, bytes, int] | None:
    match value:
        case None:
            return None
        case [bytes(rsk), bytes(recovery_pub), int(at)] if len(rsk) == 32 and 0 <= at < LIMIT:
            return rsk, recovery_pub, at
    raise TypeError("a code that waits is two keys and a time")
