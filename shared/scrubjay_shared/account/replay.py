"""The replay of an account log: which entry may follow which state, and what it changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared.account.entries import NEWER, Entry, EntryType, Signer, read
from scrubjay_shared.account.fields import bytes_of, check_length, flag_of, id_of, int_of, lane_end_of, list_of, text_of
from scrubjay_shared.account.state import AccountState, Device, ScopeState
from scrubjay_shared.clock import MAX_LEAD_MS, Millis
from scrubjay_shared.envelope import SIGNATURE_BYTES, Suite
from scrubjay_shared.errors import BadSignatureError, BrokenChainError, InvalidError, RevokedError

RECOVERY_DELAY_MS = 7 * 24 * 3600 * 1000
"""How long a change of the recovery key that the old one did not sign waits, so that the old one can void it."""
_AGAIN = "the account may have changed meanwhile: run the command again"
_REPEAT = "another device changed the account meanwhile: run the command again"


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
    the server asks for it on an append, because only then can it be known that a recovery key has run out, or that the
    time from which another counts was not set back. What stands in a log already is read without it.

    Raises BrokenChainError when an entry does not follow, BadSignatureError when who signed it may not, InvalidError
    when it says what cannot be. An entry of a type that this version does not know is read and changes nothing.
    """
    after = list(states)
    for data in entries:
        new = read(data)
        if fresh and new.type == EntryType.RECOVERY_ROTATE and abs(int_of(new.body, 3) - now) > MAX_LEAD_MS:
            raise InvalidError(
                "the change of the recovery code is dated more than ten minutes from now",
                hint="set this machine's clock",
            )
        after.append(_after(after, new, now, fresh=fresh))
    return after


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
            f"account log entry {new.seq} is signed by neither the account nor the recovery code", hint=NEWER
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
    start = int_of(new.body, 1)
    if not 1 <= start <= last.seq:
        raise InvalidError(
            f"account log entry {new.seq} cancels entries from {start} on, and there are {last.seq} before it",
            hint=NEWER,
        )
    return _void(states[start - 1], last, new, signer)


def _genesis(new: Entry) -> AccountState:
    if new.seq != 0 or new.prev != bytes(32) or new.type != EntryType.GENESIS:
        raise BrokenChainError(
            "the account log does not begin with the entry that makes an account", hint="scrubjay sync verify"
        )
    body = new.body
    account, ask, rsk, recovery_pub = (bytes_of(body, key) for key in (1, 2, 3, 4))
    check_length(account, 16)
    check_length(rsk, 32)
    origin = text_of(body, 6)  # before the signature: what a body must be comes first for every reader
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
    """Return the index of the key that signed an entry. Raises BadSignatureError when no key did."""
    text, signature = new.data[:-SIGNATURE_BYTES], new.data[-SIGNATURE_BYTES:]
    for index, key in enumerate(keys):
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, b"sjs/1/log" + account + text)
        except (InvalidSignature, ValueError):
            continue
        return index
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
    device, sign_pub, wrap_pub = (bytes_of(new.body, key) for key in (1, 2, 3))
    check_length(device, 16)
    check_length(sign_pub, 32)
    if device in state.devices:
        raise InvalidError(
            f"device {device.hex()[:8]} was added to the account already", hint="scrubjay devices list shows it"
        )
    scopes = None if new.body.get(4) is None else tuple(id_of(scope) for scope in list_of(new.body, 4))
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
                read_only=flag_of(new.body, 5),
            ),
        },
    )


def _device_revoke(state: AccountState, new: Entry) -> AccountState:
    device = _known(state, new)
    ends = dict(lane_end_of(item) for item in list_of(new.body, 2))
    return replace(state, devices={**state.devices, device.id: replace(device, ends=ends)})


def _device_rekey(state: AccountState, new: Entry) -> AccountState:
    device = _known(state, new)
    return replace(state, devices={**state.devices, device.id: replace(device, wrap_pub=bytes_of(new.body, 2))})


def _rotate(state: AccountState, new: Entry) -> AccountState:
    version, ask = int_of(new.body, 1), bytes_of(new.body, 2)
    if version != state.version + 1:
        raise InvalidError(f"the root key's new version must be {state.version + 1}, got {version}", hint=_REPEAT)
    check_length(ask, 32)
    return replace(state, version=version, ask=ask)


def _keyring_set(state: AccountState, new: Entry) -> AccountState:
    version, digest = int_of(new.body, 1), bytes_of(new.body, 2)
    check_length(digest, 32)
    if version != (state.keyring[0] if state.keyring else 0) + 1:
        raise InvalidError(f"the keyring's new version must be one above the last, got {version}", hint=_REPEAT)
    return replace(state, keyring=(version, digest))


def _scope_create(state: AccountState, new: Entry) -> AccountState:
    scope = bytes_of(new.body, 1)
    check_length(scope, 16)
    home = flag_of(new.body, 3)
    if scope in state.scopes or (home and any(one.home for one in state.scopes.values())):
        raise InvalidError(f"scope {scope.hex()[:8]} was made already", hint="scrubjay sync scopes list shows it")
    suite = int_of(new.body, 2)
    if suite not in {int(known) for known in Suite} or (home and suite != Suite.SEALED):
        raise InvalidError(f"scope {scope.hex()[:8]} has mode {suite}, which this version does not know", hint=NEWER)
    made = ScopeState(id=scope, suite=suite, home=home, space=text_of(new.body, 4))
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
    scope, epoch = _scope(state, new), int_of(new.body, 2)
    if epoch != scope.epoch + 1:
        raise InvalidError(f"the scope's new epoch must be {scope.epoch + 1}, got {epoch}", hint=_REPEAT)
    return replace(state, scopes={**state.scopes, scope.id: replace(scope, epoch=epoch)})


def _lane_adopt(state: AccountState, new: Entry) -> AccountState:
    scope, device, adopter = (bytes_of(new.body, key) for key in (1, 2, 3))
    if scope not in state.scopes or device not in state.devices or adopter not in state.devices:
        raise InvalidError(f"account log entry {new.seq} hands a lane over that the account does not have", hint=_AGAIN)
    if state.devices[adopter].revoked:
        raise RevokedError(f"device {adopter.hex()[:8]} was revoked", hint="scrubjay devices list")
    lane = (scope, device)
    return replace(state, adopters={**state.adopters, lane: (*state.adopters.get(lane, ()), adopter)})


def _recovery_rotate(state: AccountState, new: Entry) -> AccountState:
    rsk, recovery_pub, at = bytes_of(new.body, 1), bytes_of(new.body, 2), int_of(new.body, 3)
    check_length(rsk, 32)
    if new.signer == Signer.RSK:
        return replace(state, rsk=rsk, recovery_pub=recovery_pub, waiting_recovery=None)
    held = state.recovery(Millis(at))  # a key that has waited long enough holds, and is not lost to the next change
    waiting = (rsk, recovery_pub, at + RECOVERY_DELAY_MS)
    return replace(state, rsk=held[0], recovery_pub=held[1], waiting_recovery=waiting)


def _origin_add(state: AccountState, new: Entry) -> AccountState:
    return replace(state, origins=(*state.origins, text_of(new.body, 1)))


def _void(before: AccountState, last: AccountState, new: Entry, signer: tuple[bytes, bytes]) -> AccountState:
    """Return the state `before` the first voided entry, under a new account key.

    Everything since is gone, but for the recovery key that signs: a code that was replaced does not come back. Versions
    and epochs count on from `last`, so that no wrap or object of a voided one passes for the new one.
    """
    version, ask = int_of(new.body, 2), bytes_of(new.body, 3)
    check_length(ask, 32)
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
    device = state.devices.get(bytes_of(new.body, 1))
    if device is None:
        raise InvalidError(f"account log entry {new.seq} names a device that the account does not have", hint=_AGAIN)
    if device.revoked:
        raise RevokedError(f"device {device.id.hex()[:8]} was revoked", hint="scrubjay devices list")
    return device


def _scope(state: AccountState, new: Entry) -> ScopeState:
    scope = state.scopes.get(bytes_of(new.body, 1))
    if scope is None or scope.deleted:
        raise InvalidError(f"account log entry {new.seq} names a scope that the account does not have", hint=_AGAIN)
    return scope
