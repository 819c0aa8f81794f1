"""The account log: who may write what, as a chain of signed entries that everyone replays alike. Pure.

Entry = MessagePack `[seq, prev, type, body, signer]` and 64 bytes of Ed25519 signature over "sjs/1/log", the account's
id and the MessagePack. Its hash is SHA-256("sjs/1/entry", entry); `prev` is the hash of the one before, 32 zeros for
entry 0. Keys: ASK signs for the account, RSK (made from the recovery code) outranks it.

The log holds no secret and no name. `AccountState` is what it adds up to; `extended` is the only way to get one. Client
and cloud both replay with it, so that a server cannot accept what a device would refuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared.clock import MAX_LEAD_MS, Millis
from scrubjay_shared.envelope import SIGNATURE_BYTES, Suite
from scrubjay_shared.errors import BadSignatureError, BrokenChainError, InvalidError, MalformedError, RevokedError

MAX_ENTRY_BYTES = 64 * 1024
LIMIT = 1 << 63
"""Numbers are below this: databases count in 64 bits with a sign."""
RECOVERY_DELAY_MS = 7 * 24 * 3600 * 1000
"""How long a change of the recovery key that the old one did not sign waits, so that the old one can void it."""


class EntryType(IntEnum):
    """What an entry says. Numbers are wire format: never reused."""

    GENESIS = 1
    DEVICE_ADD = 2
    DEVICE_REVOKE = 3
    DEVICE_REKEY = 4
    ROTATE = 5
    KEYRING_SET = 6
    SCOPE_CREATE = 7
    SCOPE_DELETE = 8
    EPOCH_ADD = 9
    LANE_ADOPT = 11
    RECOVERY_ROTATE = 12
    ORIGIN_ADD = 13
    VOID = 14


class Signer(IntEnum):
    """Whose signature an entry bears."""

    ASK = 1
    RSK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, read: not yet verified."""

    seq: int
    prev: bytes
    type: int
    body: dict[int, Any]
    signer: int
    data: bytes

    @property
    def hash(self) -> bytes:
        """What the next entry names as `prev`."""
        return hashlib.sha256(b"sjs/1/entry" + self.data).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as the log certifies it.

    `scopes` None means all, with the account's root key; else a limited device, given the keys of these scopes only.
    `ends` is how far its lanes counted when it was revoked, by scope: (n, link); None while it is in force.
    """

    id: bytes
    sign_pub: bytes
    wrap_pub: bytes
    added: int
    scopes: tuple[bytes, ...] | None = None
    read_only: bool = False
    ends: Mapping[bytes, tuple[int, bytes]] | None = None

    @property
    def revoked(self) -> bool:
        """Whether it may write no more."""
        return self.ends is not None

    @property
    def full(self) -> bool:
        """Whether it holds the account's root key."""
        return self.scopes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeState:
    """A scope as the log declares it. Its mode never changes; `space` is the embedding space of a searchable one."""

    id: bytes
    suite: int
    home: bool
    epoch: int = 0
    deleted: bool = False
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """What a log adds up to after entry `seq`, whose hash is `head`."""

    account: bytes
    genesis: bytes
    seq: int
    head: bytes
    ask: bytes
    version: int
    rsk: bytes
    recovery_pub: bytes
    origins: tuple[str, ...]
    devices: Mapping[bytes, Device] = field(default_factory=dict)
    scopes: Mapping[bytes, ScopeState] = field(default_factory=dict)
    keyring: tuple[int, bytes] | None = None
    adopters: Mapping[tuple[bytes, bytes], tuple[bytes, ...]] = field(default_factory=dict)
    waiting_recovery: tuple[bytes, bytes, int] | None = None
    """A change of the recovery key that takes effect later: (RSK public, wrap public, from when)."""

    @property
    def home(self) -> bytes:
        """The id of the home scope. Raises InvalidError before there is one."""
        for scope in self.scopes.values():
            if scope.home:
                return scope.id
        raise InvalidError("the account log makes no home scope, which every account has", hint="sign up again")

    def recovery(self, now: Millis) -> tuple[bytes, bytes]:
        """Return the recovery keys in force at a time: (RSK public, wrap public)."""
        if self.waiting_recovery is not None and now >= self.waiting_recovery[2]:
            return self.waiting_recovery[0], self.waiting_recovery[1]
        return self.rsk, self.recovery_pub

    def active(self) -> tuple[Device, ...]:
        """Return the devices in force, in the order they were added."""
        return tuple(
            sorted((device for device in self.devices.values() if not device.revoked), key=lambda one: one.added)
        )

    def keys_of(self, scope: bytes, device: bytes, *, pack: bool = False) -> tuple[bytes, ...]:
        """Return the public keys that may have signed an object of a lane; a pack may be an adopter's."""
        owners = (device, *(self.adopters.get((scope, device), ()) if pack else ()))
        return tuple(self.devices[one].sign_pub for one in owners if one in self.devices)


# --- entries ----------------------------------------------------------------------------------------------------------

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, bytes, int, dict[int, Any], int])
_NEWER = "it may come from a newer version: update scrubjay"
_AGAIN = "the account may have changed meanwhile: run the command again"
_REPEAT = "another device changed the account meanwhile: run the command again"


def entry(
    account: bytes,
    *,
    seq: int,
    prev: bytes,
    type: EntryType,  # noqa: A002 - the field's name everywhere
    body: dict[int, Any],
    sign: Callable[[bytes], bytes],
    signer: Signer = Signer.ASK,
) -> bytes:
    """Return the bytes of a new entry; `sign` makes the Ed25519 signature with the signer's key."""
    text = _encoder.encode((seq, prev, int(type), body, int(signer)))
    return text + sign(b"sjs/1/log" + account + text)


def read(data: bytes) -> Entry:
    """Return the entry of some bytes, unverified. Raises MalformedError."""
    if not SIGNATURE_BYTES < len(data) <= MAX_ENTRY_BYTES:
        raise MalformedError(
            f"an account log entry has {len(data)} bytes, which no entry has", hint="fetch the log again"
        )
    try:
        seq, prev, kind, body, signer = _decoder.decode(data[:-SIGNATURE_BYTES])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("an account log entry is not in the format of this version", hint=_NEWER) from error
    if seq < 0 or len(prev) != 32:
        raise MalformedError(f"an account log entry has place {seq} and a link of {len(prev)} bytes", hint=_NEWER)
    return Entry(seq=seq, prev=prev, type=kind, body=body, signer=signer, data=data)


def genesis_body(account: bytes, *, ask: bytes, rsk: bytes, recovery_pub: bytes, origin: str) -> dict[int, Any]:
    """Return the body of entry 0: the account's id, its first keys, and the server it was made for."""
    return {1: account, 2: ask, 3: rsk, 4: recovery_pub, 5: [int(suite) for suite in Suite], 6: origin}


def device_body(
    device: bytes, *, sign_pub: bytes, wrap_pub: bytes, scopes: Sequence[bytes] | None = None, read_only: bool = False
) -> dict[int, Any]:
    """Return the body that certifies a device; `scopes` not None makes a limited one."""
    body: dict[int, Any] = {1: device, 2: sign_pub, 3: wrap_pub}
    if scopes is not None:
        body |= {4: list(scopes), 5: read_only}
    return body


def revoke_body(device: bytes, ends: Mapping[bytes, tuple[int, bytes]]) -> dict[int, Any]:
    """Return the body that ends a device: its history counts up to `ends`, by scope (n, link)."""
    return {1: device, 2: [[scope, n, tip] for scope, (n, tip) in sorted(ends.items())]}


def scope_body(scope: bytes, *, suite: Suite, home: bool = False, space: str = "") -> dict[int, Any]:
    """Return the body that makes a scope; its suite is for ever."""
    return {1: scope, 2: int(suite), 3: home, 4: space}


# --- replay -----------------------------------------------------------------------------------------------------------


def replay(entries: Sequence[bytes], now: Millis) -> AccountState:
    """Return what a whole log adds up to. Raises as `extended`; InvalidError when there is no entry."""
    if not entries:
        raise InvalidError("the account log has no entries", hint="the server has lost it: ask its operator")
    return extended((), entries, now)[-1]


def extended(
    states: Sequence[AccountState], entries: Sequence[bytes], now: Millis, *, fresh: bool = False
) -> list[AccountState]:
    """Return `states` (those after entries 0, 1, 2…) with those after some more entries.

    `now` decides whether a recovery key that waits may sign already. `fresh` says that the entries are being made now:
    the server asks for it on an append, because only then can it be told that a recovery key has run out, or that the
    time from which another counts was not set back. What stands in a log already is read without it.

    Raises BrokenChainError when an entry does not follow, BadSignatureError when who signed it may not, InvalidError
    when it says what cannot be. An entry of a type that this version does not know counts as said and changes nothing.
    """
    found = list(states)
    for data in entries:
        new = read(data)
        if fresh and new.type == EntryType.RECOVERY_ROTATE and abs(_int(new.body, 3) - now) > MAX_LEAD_MS:
            raise InvalidError(
                "the change of the recovery code is dated more than ten minutes from now",
                hint="set this machine's clock",
            )
        found.append(_after(found, new, now, fresh=fresh))
    return found


def _after(states: Sequence[AccountState], new: Entry, now: Millis, *, fresh: bool) -> AccountState:
    if not states:
        return _genesis(new)
    last = states[-1]
    if new.seq != last.seq + 1 or new.prev != last.head:
        raise BrokenChainError(
            f"account log entry {new.seq} does not follow entry {last.seq}", hint="scrubjay sync verify"
        )
    if new.signer == Signer.ASK:
        _verify(last.account, new, [last.ask])
        if new.type == EntryType.VOID:
            raise BadSignatureError("only the recovery code can void entries", hint="scrubjay sync verify")
        return replace(_applied(last, new), seq=new.seq, head=new.hash)
    if new.signer != Signer.RSK:
        raise InvalidError(
            f"account log entry {new.seq} is signed by neither the account nor the recovery code", hint=_NEWER
        )
    in_force = last.recovery(now)
    holders = (in_force,) if fresh else ((last.rsk, last.recovery_pub), in_force)
    signer = holders[_verify(last.account, new, [rsk for rsk, _ in holders])]
    if new.type == EntryType.RECOVERY_ROTATE:
        return replace(_applied(last, new), seq=new.seq, head=new.hash)
    if new.type != EntryType.VOID:
        raise BadSignatureError(
            f"account log entry {new.seq} is signed with the recovery code, which may not sign such entries",
            hint="scrubjay sync verify",
        )
    start = _int(new.body, 1)
    if not 1 <= start <= last.seq:
        raise InvalidError(
            f"account log entry {new.seq} cancels entries from {start} on, and there are {last.seq} before it",
            hint=_NEWER,
        )
    return _void(states[start - 1], last, new, signer)


def _genesis(new: Entry) -> AccountState:
    if new.seq != 0 or new.prev != bytes(32) or new.type != EntryType.GENESIS:
        raise BrokenChainError(
            "the account log does not begin with the entry that makes an account", hint="scrubjay sync verify"
        )
    body = new.body
    account, ask, rsk, recovery_pub = (_bytes(body, key) for key in (1, 2, 3, 4))
    _length(account, 16)
    _length(rsk, 32)
    origin = _text(body, 6)  # before the signature: what a body must be comes first for every reader
    if new.signer != Signer.ASK:
        raise InvalidError(
            "the first entry of the account log is not signed with the account's key", hint="scrubjay sync verify"
        )
    _verify(account, new, [ask])
    return AccountState(
        account=account,
        genesis=new.hash,
        seq=0,
        head=new.hash,
        ask=ask,
        version=1,
        rsk=rsk,
        recovery_pub=recovery_pub,
        origins=(origin,),
    )


def _verify(account: bytes, new: Entry, keys: Sequence[bytes]) -> int:
    """Return which of some keys signed an entry. Raises BadSignatureError when none did."""
    text, signature = new.data[:-SIGNATURE_BYTES], new.data[-SIGNATURE_BYTES:]
    for place, key in enumerate(keys):
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, b"sjs/1/log" + account + text)
        except (InvalidSignature, ValueError):
            continue
        return place
    raise BadSignatureError(
        f"account log entry {new.seq} is not signed by the account's key", hint="scrubjay sync verify"
    )


def _applied(state: AccountState, new: Entry) -> AccountState:
    rule = _RULES.get(new.type)
    if rule is None:
        if new.type == EntryType.GENESIS:
            raise InvalidError(
                f"account log entry {new.seq} makes an account a second time", hint="scrubjay sync verify"
            )
        return state
    return rule(state, new)


def _device_add(state: AccountState, new: Entry) -> AccountState:
    device, sign_pub, wrap_pub = (_bytes(new.body, key) for key in (1, 2, 3))
    _length(device, 16)
    _length(sign_pub, 32)
    if device in state.devices:
        raise InvalidError(
            f"device {device.hex()[:8]} was added to the account already", hint="scrubjay devices list shows it"
        )
    scopes = None if new.body.get(4) is None else tuple(_id(scope) for scope in _list(new.body, 4))
    return replace(
        state,
        devices={
            **state.devices,
            device: Device(
                id=device,
                sign_pub=sign_pub,
                wrap_pub=wrap_pub,
                added=new.seq,
                scopes=scopes,
                read_only=_flag(new.body, 5),
            ),
        },
    )


def _device_revoke(state: AccountState, new: Entry) -> AccountState:
    device = _known(state, new)
    ends = dict(_end(item) for item in _list(new.body, 2))
    return replace(state, devices={**state.devices, device.id: replace(device, ends=ends)})


def _device_rekey(state: AccountState, new: Entry) -> AccountState:
    device = _known(state, new)
    return replace(state, devices={**state.devices, device.id: replace(device, wrap_pub=_bytes(new.body, 2))})


def _rotate(state: AccountState, new: Entry) -> AccountState:
    version, ask = _int(new.body, 1), _bytes(new.body, 2)
    if version != state.version + 1:
        raise InvalidError(f"the root key's new version must be {state.version + 1}, got {version}", hint=_REPEAT)
    _length(ask, 32)
    return replace(state, version=version, ask=ask)


def _keyring_set(state: AccountState, new: Entry) -> AccountState:
    version, digest = _int(new.body, 1), _bytes(new.body, 2)
    _length(digest, 32)
    if version != (state.keyring[0] if state.keyring else 0) + 1:
        raise InvalidError(f"the keyring's new version must be one above the last, got {version}", hint=_REPEAT)
    return replace(state, keyring=(version, digest))


def _scope_create(state: AccountState, new: Entry) -> AccountState:
    scope = _bytes(new.body, 1)
    _length(scope, 16)
    home = _flag(new.body, 3)
    if scope in state.scopes or (home and any(one.home for one in state.scopes.values())):
        raise InvalidError(f"scope {scope.hex()[:8]} was made already", hint="scrubjay sync scopes list shows it")
    suite = _int(new.body, 2)
    if suite not in {int(known) for known in Suite} or (home and suite != Suite.SEALED):
        raise InvalidError(f"scope {scope.hex()[:8]} has mode {suite}, which this version does not know", hint=_NEWER)
    made = ScopeState(id=scope, suite=suite, home=home, space=_text(new.body, 4))
    return replace(state, scopes={**state.scopes, scope: made})


def _scope_delete(state: AccountState, new: Entry) -> AccountState:
    scope = _scope(state, new)
    if scope.home:
        raise InvalidError(
            "the home scope cannot be deleted while the account exists",
            hint="scrubjay account delete deletes the account",
        )
    return replace(state, scopes={**state.scopes, scope.id: replace(scope, deleted=True)})


def _epoch_add(state: AccountState, new: Entry) -> AccountState:
    scope, epoch = _scope(state, new), _int(new.body, 2)
    if epoch != scope.epoch + 1:
        raise InvalidError(f"the scope's new epoch must be {scope.epoch + 1}, got {epoch}", hint=_REPEAT)
    return replace(state, scopes={**state.scopes, scope.id: replace(scope, epoch=epoch)})


def _lane_adopt(state: AccountState, new: Entry) -> AccountState:
    scope, device, adopter = (_bytes(new.body, key) for key in (1, 2, 3))
    if scope not in state.scopes or device not in state.devices or adopter not in state.devices:
        raise InvalidError(f"account log entry {new.seq} hands a lane over that the account does not have", hint=_AGAIN)
    if state.devices[adopter].revoked:
        raise RevokedError(f"device {adopter.hex()[:8]} was revoked", hint="scrubjay devices list")
    lane = (scope, device)
    return replace(state, adopters={**state.adopters, lane: (*state.adopters.get(lane, ()), adopter)})


def _recovery_rotate(state: AccountState, new: Entry) -> AccountState:
    rsk, recovery_pub, at = _bytes(new.body, 1), _bytes(new.body, 2), _int(new.body, 3)
    _length(rsk, 32)
    if new.signer == Signer.RSK:
        return replace(state, rsk=rsk, recovery_pub=recovery_pub, waiting_recovery=None)
    held = state.recovery(Millis(at))  # a key that has waited long enough holds, and is not lost to the next change
    waiting = (rsk, recovery_pub, at + RECOVERY_DELAY_MS)
    return replace(state, rsk=held[0], recovery_pub=held[1], waiting_recovery=waiting)


def _origin_add(state: AccountState, new: Entry) -> AccountState:
    return replace(state, origins=(*state.origins, _text(new.body, 1)))


def _void(before: AccountState, last: AccountState, new: Entry, signer: tuple[bytes, bytes]) -> AccountState:
    """Return the state `before` the first voided entry, under a new account key.

    Everything since is gone, but for the recovery key that signs: a code that was replaced does not come back. Versions
    and epochs count on from `last`, so that no wrap or object of a voided one passes for the new one.
    """
    version, ask = _int(new.body, 2), _bytes(new.body, 3)
    _length(ask, 32)
    if version != last.version + 1:
        raise InvalidError(f"the root key's new version must be {last.version + 1}, got {version}", hint=_REPEAT)
    scopes = {
        scope.id: replace(scope, epoch=max(scope.epoch, last.scopes.get(scope.id, scope).epoch))
        for scope in before.scopes.values()
    }
    return replace(
        before,
        seq=new.seq,
        head=new.hash,
        ask=ask,
        version=version,
        scopes=scopes,
        rsk=signer[0],
        recovery_pub=signer[1],
        waiting_recovery=None,
    )


_RULES: dict[int, Callable[[AccountState, Entry], AccountState]] = {
    EntryType.DEVICE_ADD: _device_add,
    EntryType.DEVICE_REVOKE: _device_revoke,
    EntryType.DEVICE_REKEY: _device_rekey,
    EntryType.ROTATE: _rotate,
    EntryType.KEYRING_SET: _keyring_set,
    EntryType.SCOPE_CREATE: _scope_create,
    EntryType.SCOPE_DELETE: _scope_delete,
    EntryType.EPOCH_ADD: _epoch_add,
    EntryType.LANE_ADOPT: _lane_adopt,
    EntryType.RECOVERY_ROTATE: _recovery_rotate,
    EntryType.ORIGIN_ADD: _origin_add,
}


def _known(state: AccountState, new: Entry) -> Device:
    device = state.devices.get(_bytes(new.body, 1))
    if device is None:
        raise InvalidError(f"account log entry {new.seq} names a device that the account does not have", hint=_AGAIN)
    if device.revoked:
        raise RevokedError(f"device {device.id.hex()[:8]} was revoked", hint="scrubjay devices list")
    return device


def _scope(state: AccountState, new: Entry) -> ScopeState:
    scope = state.scopes.get(_bytes(new.body, 1))
    if scope is None or scope.deleted:
        raise InvalidError(f"account log entry {new.seq} names a scope that the account does not have", hint=_AGAIN)
    return scope


def _bytes(body: Mapping[int, Any], key: int) -> bytes:
    value = body.get(key)
    if not isinstance(value, bytes):
        raise InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
    return value


def _text(body: Mapping[int, Any], key: int) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
    return value


def _int(body: Mapping[int, Any], key: int) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
    return value


def _flag(body: Mapping[int, Any], key: int) -> bool:
    value = body.get(key, False)
    if not isinstance(value, bool):
        raise InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
    return value


def _list(body: Mapping[int, Any], key: int) -> list[Any]:
    value = body.get(key)
    if not isinstance(value, list):
        raise InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
    return value


def _id(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidError("an account log entry holds an id that is not 16 bytes", hint=_NEWER)
    _length(value, 16)
    return value


def _end(item: Any) -> tuple[bytes, tuple[int, bytes]]:
    match item:
        case [bytes(scope), int(n), bytes(tip)] if not isinstance(n, bool) and 0 <= n < LIMIT and len(tip) == 32:
            return _id(scope), (n, tip)
    raise InvalidError(
        "an account log entry revokes a device and names the ends of its lanes in another format", hint=_NEWER
    )


def _length(value: bytes, length: int) -> None:
    if len(value) != length:
        raise InvalidError(
            f"a key or id in an account log entry must have {length} bytes, got {len(value)}", hint=_NEWER
        )
