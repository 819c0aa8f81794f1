"""The replay of an account log: which entry may follow which state, and what it changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared.account.checkpoint import MAX_STATE_BYTES, STATE_FORMAT, digest_of_state, state_digest, state_of
from scrubjay_shared.account.entries import (
    CODE_AUTHOR,
    NEWER,
    Entry,
    EntryType,
    Signer,
    code_message,
    cosigned_message,
    read,
    signed_message,
)
from scrubjay_shared.account.fields import bytes_of, check_length, flag_of, id_of, int_of, lane_end_of, list_of, text_of
from scrubjay_shared.account.state import AccountState, Device, ScopeState, are_related
from scrubjay_shared.account.wrap_keys import WRAP_PUB_BYTES
from scrubjay_shared.clock import MAX_LEAD_MS, Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import BadSignatureError, BrokenChainError, InvalidError, MalformedError, RevokedError

RECOVERY_DELAY_MS = 7 * 24 * 3600 * 1000
"""How long a change of the recovery code that the old one did not sign waits, so that the old one can void it."""
_AGAIN = "the account may have changed meanwhile: run the command again"
_REPEAT = "another device changed the account meanwhile: run the command again"
_DATED = frozenset({EntryType.RECOVERY_ROTATE, EntryType.RECOVERY_CONFIRM})
_TIME_KEY = {EntryType.RECOVERY_ROTATE: 3, EntryType.RECOVERY_CONFIRM: 2}
_BY_CODE = frozenset({EntryType.RECOVERY_ROTATE, EntryType.VOID, EntryType.DEVICE_ADD})
"""What the recovery code may sign."""


def replay(entries: Sequence[bytes]) -> AccountState:
    """Return what a whole log adds up to. Raises as `extended`; InvalidError when there is no entry."""
    return replayed(entries)[0]


def replayed(
    entries: Sequence[bytes], keep: Collection[int] = (), now: Millis | None = None
) -> tuple[AccountState, dict[int, AccountState]]:
    """Return what a whole log adds up to, and the states after the entries in `keep`, by their numbers.

    It holds no other states than those and the ones that void entries go back to, however long the log is. Raises as
    `extended`; InvalidError when there is no entry.
    """
    if not entries:
        raise InvalidError("the account log has no entries", hint="the server has lost it: ask its operator")
    kept: dict[int, AccountState] = {}
    for state in each_state(entries, now):
        if state.seq in keep:
            kept[state.seq] = state
    return state, kept


def each_state(entries: Sequence[bytes], now: Millis | None = None) -> Iterator[AccountState]:
    """Yield the state after each entry of a whole log, holding few of them. Raises as `extended`."""
    wanted = undone_from(entries)
    kept: dict[int, AccountState] = {}
    last: list[AccountState] = []
    for data in entries:
        last = extended(last, [data], now, earlier=kept)[-1:]
        if last[0].seq in wanted:
            kept[last[0].seq] = last[0]
        yield last[0]


def undone_from(entries: Iterable[bytes]) -> set[int]:
    """Return the numbers of the entries whose states the void entries among some entries go back to."""
    starts = (one.body.get(1) for one in map(read, entries) if one.type == EntryType.VOID)
    return {start - 1 for start in starts if isinstance(start, int) and start >= 1}


def extended(
    states: Sequence[AccountState],
    entries: Sequence[bytes],
    now: Millis | None = None,
    *,
    fresh: bool = False,
    earlier: Mapping[int, AccountState] | None = None,
) -> list[AccountState]:
    """Return `states`, those after some entries in a row up to the last one, with those after some more entries.

    They need not go back to entry 0: `earlier` has those that void entries go back to (`undone_from`), by number. With
    `now`, entries that say they were made later than that are refused; a log that was read before needs no clock.
    `fresh` says that they are being made now: the server asks for it on an append, so that none is set back either.

    Raises BrokenChainError when an entry does not follow, BadSignatureError when who signed it may not, InvalidError
    when it says what cannot be. An entry of a type that this version does not know is read and changes nothing.
    """
    after = list(states)
    for data in entries:
        new = read(data)
        if now is not None and new.type in _DATED:
            _check_date(new, now, fresh=fresh)
        after.append(_after(after, new, earlier or {}))
    return after


def after_checkpoint(data: bytes, stated: bytes) -> AccountState:
    """Return the state after a checkpoint entry from the bytes of the state that it states, without the log before.

    What it proves is that the entry states this account, and that one who is in it by that statement signed it: anybody
    can make such an entry who makes up an account. Whether it is the account's own is the caller's to know, by a hash
    from which the chain leads back to it. Raises MalformedError, InvalidError, BrokenChainError, BadSignatureError.
    """
    if len(stated) > MAX_STATE_BYTES:
        raise MalformedError(
            f"a state of the account has {len(stated)} bytes: at most {MAX_STATE_BYTES} are taken", hint=NEWER
        )
    new, state = read(data), state_of(stated)
    if new.type != EntryType.CHECKPOINT or int_of(new.body, 1) != STATE_FORMAT:
        raise InvalidError(f"account log entry {new.seq} is no checkpoint that this version can begin at", hint=NEWER)
    if digest_of_state(stated) != bytes_of(new.body, 2):
        raise InvalidError(
            f"the state that was handed out is not the one that checkpoint {new.seq} states",
            hint="scrubjay sync verify",
        )
    return _after([state], new, {})


def _check_date(new: Entry, now: Millis, *, fresh: bool) -> None:
    ahead = int_of(new.body, _TIME_KEY[EntryType(new.type)]) - now
    if ahead > MAX_LEAD_MS or (fresh and ahead < -MAX_LEAD_MS):
        raise InvalidError(
            "the change of the recovery code is dated more than ten minutes from now", hint="set this machine's clock"
        )


def _after(states: Sequence[AccountState], new: Entry, earlier: Mapping[int, AccountState]) -> AccountState:
    if not states:
        return _genesis(new)
    last = states[-1]
    if new.seq != last.seq + 1 or new.prev != last.head:
        raise BrokenChainError(
            f"account log entry {new.seq} does not follow entry {last.seq}", hint="scrubjay sync verify"
        )
    if new.signer not in {Signer.ASK, Signer.RSK}:
        raise InvalidError(
            f"account log entry {new.seq} is signed by neither the account nor the recovery code", hint=NEWER
        )
    _verify(
        last.ask if new.signer == Signer.ASK else last.rsk, new.signature, signed_message(last.account, new.text), new
    )
    _check_author(last, new)
    if new.signer == Signer.ASK and new.type == EntryType.VOID:
        raise BadSignatureError("only the recovery code can void entries", hint="scrubjay sync verify")
    if new.signer == Signer.RSK and new.type not in _BY_CODE:
        raise BadSignatureError(
            f"account log entry {new.seq} is signed with the recovery code, which may not sign such entries",
            hint="scrubjay sync verify",
        )
    if new.type != EntryType.VOID:
        return replace(_applied(last, new), seq=new.seq, head=new.hash)
    start = int_of(new.body, 1)
    if not 1 <= start <= last.seq:
        raise InvalidError(
            f"account log entry {new.seq} cancels entries from {start} on, and there are {last.seq} before it",
            hint=NEWER,
        )
    first = states[0].seq
    before = states[start - 1 - first] if start > first else earlier.get(start - 1)
    if before is None:
        raise InvalidError(
            f"account log entry {new.seq} cancels entries from {start} on, and the state before them is not known here",
            hint="read the log from its first entry",
        )
    return _void(before, last, new)


def _genesis(new: Entry) -> AccountState:
    if new.seq != 0 or new.prev != bytes(32) or new.type != EntryType.GENESIS:
        raise BrokenChainError(
            "the account log does not begin with the entry that makes an account", hint="scrubjay sync verify"
        )
    body = new.body
    account, ask, rsk, recovery_pub = (bytes_of(body, key) for key in (1, 2, 3, 4))
    check_length(account, 16)
    check_length(rsk, 32)
    check_length(recovery_pub, WRAP_PUB_BYTES)
    origin = text_of(body, 6)  # before the signature: what a body must be comes first for every reader
    if new.signer != Signer.ASK or new.author != CODE_AUTHOR:
        raise InvalidError(
            "the first entry of the account log is not made by the account's key and its recovery code",
            hint="scrubjay sync verify",
        )
    _verify(ask, new.signature, signed_message(account, new.text), new)
    _verify(rsk, new.cosignature, cosigned_message(account, new.text), new)
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


def _check_author(state: AccountState, new: Entry) -> None:
    """Check that who made an entry says so: a full device in force, or the recovery code for what it signs itself.

    The first device of an account has nobody who could have added it: it does so itself.
    """
    device = state.devices.get(new.author)
    if new.author == CODE_AUTHOR and new.signer == Signer.RSK:
        key = state.rsk
    elif device is not None and device.full and not device.revoked:
        key = device.sign_pub
    elif not state.devices and new.type == EntryType.DEVICE_ADD and new.body.get(1) == new.author:
        key = bytes_of(new.body, 2)
    else:
        raise BadSignatureError(
            f"account log entry {new.seq} was made by a device that may not change the account",
            hint="scrubjay sync verify",
        )
    _verify(key, new.cosignature, cosigned_message(state.account, new.text), new)


def _verify(key: bytes, signature: bytes, message: bytes, new: Entry) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError) as error:
        raise BadSignatureError(
            f"account log entry {new.seq} is not signed by who it says made it", hint="scrubjay sync verify"
        ) from error


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
    check_length(wrap_pub, WRAP_PUB_BYTES)
    if device in state.devices:
        raise InvalidError(
            f"device {device.hex()[:8]} was added to the account already", hint="scrubjay devices list shows it"
        )
    scopes = None if new.body.get(4) is None else tuple(id_of(scope) for scope in list_of(new.body, 4))
    if any(are_related(device, one.id) and not (one.full and scopes is None) for one in state.devices.values()):
        raise InvalidError(
            f"device {device.hex()[:8]} has an id that another device's instances may have", hint="make it again"
        )
    return replace(
        state,
        devices={
            **state.devices,
            device: Device(
                id=device,
                sign_pub=sign_pub,
                wrap_pub=wrap_pub,
                added=new.seq,
                added_by=new.author,
                scopes=scopes,
                read_only=flag_of(new.body, 5),
            ),
        },
    )


def _device_revoke(state: AccountState, new: Entry) -> AccountState:
    device = state.devices.get(bytes_of(new.body, 1))
    if device is None or device.full:
        device = _known(state, new)
    ends, instance_ends = dict(device.ends or {}), dict(device.instance_ends)
    for item in list_of(new.body, 2):
        scope, end, instance = lane_end_of(item)
        if instance is None:
            ends.setdefault(scope, end)
        elif device.full or instance in state.devices or not are_related(device.id, instance):
            raise InvalidError(
                f"account log entry {new.seq} names {instance.hex()[:8]}, which is no instance of that device",
                hint=_AGAIN,
            )
        else:
            # The first word counts: a second entry is for the lanes that one entry has no room for.
            instance_ends.setdefault((instance, scope), end)
    # Who is shut out must not come back by a recovery code that it has asked for.
    waiting = None if device.full else state.waiting_recovery
    revoked = {**state.devices, device.id: replace(device, ends=ends, instance_ends=instance_ends)}
    return replace(state, devices=revoked, waiting_recovery=waiting)


def _device_rekey(state: AccountState, new: Entry) -> AccountState:
    device, wrap_pub = _known(state, new), bytes_of(new.body, 2)
    check_length(wrap_pub, WRAP_PUB_BYTES)
    if new.author != device.id:  # else one device could have what is wrapped for another
        raise BadSignatureError(
            f"account log entry {new.seq} gives a device another key, and that device did not make it",
            hint="scrubjay sync verify",
        )
    return replace(state, devices={**state.devices, device.id: replace(device, wrap_pub=wrap_pub)})


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
    if new.author != adopter:
        raise BadSignatureError(
            f"account log entry {new.seq} hands a lane to a device that did not make it", hint="scrubjay sync verify"
        )
    if state.devices[device].full and not state.devices[device].revoked:
        # A pack says what it likes of the ops that it stands for: of a device that is there, only its own word counts.
        raise InvalidError(
            f"account log entry {new.seq} hands the lane of device {device.hex()[:8]} over, which is in force",
            hint="scrubjay sync verify",
        )
    lane = (scope, device)
    return replace(state, adopters={**state.adopters, lane: (*state.adopters.get(lane, ()), adopter)})


def _recovery_rotate(state: AccountState, new: Entry) -> AccountState:
    rsk, recovery_pub, at, bound = (
        bytes_of(new.body, 1),
        bytes_of(new.body, 2),
        int_of(new.body, 3),
        bytes_of(new.body, 4),
    )
    check_length(rsk, 32)
    check_length(recovery_pub, WRAP_PUB_BYTES)
    _verify(rsk, bound, code_message(state.account, new.prev, rsk, recovery_pub, at), new)
    if new.signer == Signer.RSK:
        return replace(state, rsk=rsk, recovery_pub=recovery_pub, waiting_recovery=None)
    return replace(state, waiting_recovery=(rsk, recovery_pub, at + RECOVERY_DELAY_MS))


def _recovery_confirm(state: AccountState, new: Entry) -> AccountState:
    rsk, at, waiting = bytes_of(new.body, 1), int_of(new.body, 2), state.waiting_recovery
    if waiting is None or waiting[0] != rsk or at < waiting[2]:
        raise InvalidError(
            f"account log entry {new.seq} confirms a recovery code that does not wait, or before its time", hint=_AGAIN
        )
    return replace(state, rsk=waiting[0], recovery_pub=waiting[1], waiting_recovery=None)


def _origin_add(state: AccountState, new: Entry) -> AccountState:
    return replace(state, origins=(*state.origins, text_of(new.body, 1)))


def _checkpoint(state: AccountState, new: Entry) -> AccountState:
    """Hold what an entry states against what the log adds up to: it adds nothing of its own."""
    if int_of(new.body, 1) > STATE_FORMAT:
        return state
    stated = bytes_of(new.body, 2)
    check_length(stated, 32)
    if stated != state_digest(state):
        raise InvalidError(
            f"account log entry {new.seq} states another account than the log before it adds up to",
            hint="scrubjay sync verify",
        )
    return replace(state, checkpoint=new.seq)


def _void(before: AccountState, last: AccountState, new: Entry) -> AccountState:
    """Return the state `before` the first voided entry, under a new account key.

    Everything since is gone, but for the recovery code, which signs: one that was replaced does not come back; and the
    wrap keys, each of which its device alone could renew. Versions and epochs count on from `last`, so that no wrap or
    object of a voided one passes for the new one.
    """
    version, ask = int_of(new.body, 2), bytes_of(new.body, 3)
    check_length(ask, 32)
    if version != last.version + 1:
        raise InvalidError(f"the root key's new version must be {last.version + 1}, got {version}", hint=_REPEAT)
    scopes = {
        scope.id: replace(scope, epoch=max(scope.epoch, last.scopes.get(scope.id, scope).epoch))
        for scope in before.scopes.values()
    }
    # A device renews its own wrap key and lets the old one go: with the old one it could open nothing any more.
    devices = {one.id: _with_newest_wrap(one, last.devices.get(one.id)) for one in before.devices.values()}
    return replace(
        before,
        seq=new.seq,
        head=new.hash,
        ask=ask,
        version=version,
        scopes=scopes,
        devices=devices,
        rsk=last.rsk,
        recovery_pub=last.recovery_pub,
        waiting_recovery=None,
    )


def _with_newest_wrap(device: Device, now: Device | None) -> Device:
    return device if now is None or now.sign_pub != device.sign_pub else replace(device, wrap_pub=now.wrap_pub)


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
    EntryType.RECOVERY_CONFIRM: _recovery_confirm,
    EntryType.ORIGIN_ADD: _origin_add,
    EntryType.CHECKPOINT: _checkpoint,
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
