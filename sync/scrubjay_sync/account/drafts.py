"""Changes of an account before they are sent: drafted, signed, replayed, and wrapped for all whom they concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, Device, EntryType, Signer
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.wire import RECOVERY_TARGET, LogAppend, Wrap
from scrubjay_sync.keys.keypairs import Entropy, RootKey
from scrubjay_sync.keys.keyring import (
    Keyring,
    digest_of,
    limited_keyring_of,
    rotations_left,
    seal_keyring,
    wrap_limited_keyring,
)
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import wrap_root
from scrubjay_sync.policy import IDENTITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change of the account, as it follows from one state of it.

    `entries` are (type, body); those in `by_recovery` are signed by the recovery code, the others by the account. The
    genesis needs `recovery` too, which vouches for it. A ROTATE or VOID entry needs `root`, the new root key, which
    signs what follows it; a VOID also the state that it goes back to, in `earlier`. A new `keyring` is sealed, stored
    and named by a last entry. Every wrap that follows from the change is made by `Member.append` itself.
    """

    entries: Sequence[tuple[EntryType, dict[int, Any]]] = ()
    keyring: Keyring | None = None
    root: RootKey | None = None
    recovery: RecoveryCode | None = field(default=None, repr=False)
    by_recovery: frozenset[EntryType] = frozenset()
    earlier: Mapping[int, AccountState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A draft as it is sent, and what the account is once it is accepted. `sealed` is the keyring's object."""

    append: LogAppend
    states: list[AccountState]
    root: RootKey
    keyring: Keyring
    sealed: bytes | None


def assemble(
    draft: Draft,
    *,
    account: bytes,
    states: Sequence[AccountState],
    root: RootKey,
    keyring: Keyring,
    device: bytes,
    sign: Callable[[bytes], bytes],
    now: Millis,
    entropy: Entropy,
    earlier: Mapping[int, AccountState] | None = None,
) -> Assembled:
    """Return a draft signed, replayed and wrapped for all whom it concerns; `device` and `sign` author its entries.

    `states` end with the one that the draft was made of; a VOID entry needs the one that it goes back to, among them or
    in `earlier`. What the recovery code signs for a machine that is no device of the account yet has the code for its
    author.

    Raises what replaying raises, so that nothing is sent that another device would refuse.
    """
    after, entries = list(states), list[bytes]()

    def add(kind: EntryType, body: dict[int, Any]) -> None:
        nonlocal after
        recovery = draft.recovery if kind in draft.by_recovery else None
        code = draft.recovery if recovery is None and kind == EntryType.GENESIS else recovery
        by_code = code is not None and (not after or device not in after[-1].devices)
        made = account_log.entry(
            account,
            seq=after[-1].seq + 1 if after else 0,
            prev=after[-1].head if after else bytes(32),
            type=kind,
            body=body,
            sign=root.sign if recovery is None else recovery.sign,
            signer=Signer.ASK if recovery is None else Signer.RSK,
            author=account_log.CODE_AUTHOR if by_code else device,
            cosign=code.sign if code is not None and by_code else sign,
        )
        account_log.check_wrap_keys([made])
        after = account_log.extended(after, [made], now, earlier=earlier)
        entries.append(made)

    for kind, body in draft.entries:
        add(kind, body)
        if kind in {EntryType.ROTATE, EntryType.VOID} and draft.root is not None:
            root = draft.root
    sealed = None
    if draft.keyring is not None:
        keyring = draft.keyring
        if rotations_left(keyring) < 0:
            raise InvalidError(
                "the account's keyring is full: it has no room for the new keys, and nothing was changed",
                hint="scrubjay sync scopes delete makes room: choose scopes that nobody needs, then try again",
            )
        version = (after[-1].keyring[0] if after[-1].keyring else 0) + 1
        sealed = seal_keyring(
            keyring, account=account, device=device, version=version, root=root, entropy=entropy, sign=sign
        ).data
        add(EntryType.KEYRING_SET, {1: version, 2: digest_of(sealed)})
    before = states[-1] if states else None
    return Assembled(
        append=LogAppend(
            head=before.head if before else bytes(32),
            entries=tuple(entries),
            wraps=wraps_after(before, after[-1], root=root, keyring=keyring),
            blobs=() if sealed is None else (sealed,),
        ),
        states=after,
        root=root,
        keyring=keyring,
        sealed=sealed,
    )


def checkpoint_draft(state: AccountState) -> Draft:
    """Return the draft that states the account in its log; an empty one while that is not due."""
    if state.seq - state.checkpoint < IDENTITY.checkpoint_entries:
        return Draft()
    return Draft(entries=[(EntryType.CHECKPOINT, account_log.checkpoint_body(state))])


def wraps_after(
    before: AccountState | None, after: AccountState, *, root: RootKey, keyring: Keyring
) -> tuple[Wrap, ...]:
    """Return the wraps that a change of the account makes necessary; with `before` None, all that there are."""
    rotated = before is None or before.version != after.version
    changed = rotated or before is None or before.keyring != after.keyring
    wraps = []
    for device in after.active():
        if not account_log.is_wrap_pub(device.wrap_pub):
            continue  # it cannot open anything; the others need their keys all the same
        known = None if before is None else before.devices.get(device.id)
        stale = known is None or known.revoked or known.wrap_pub != device.wrap_pub
        if device.full and (stale or rotated):
            wraps.append(wrap_root(root, account=after.account, target=device.id, wrap_pub=device.wrap_pub))
        if not device.full and (stale or changed):
            wraps.append(_limited_wrap(after, device, root, keyring))
    # For the code in force, and for no other: one that waits would open this key at once.
    if rotated or before is None or before.recovery_pub != after.recovery_pub:
        wraps.append(wrap_root(root, account=after.account, target=RECOVERY_TARGET, wrap_pub=after.recovery_pub))
    return tuple(wraps)


def _limited_wrap(state: AccountState, device: Device, root: RootKey, keyring: Keyring) -> Wrap:
    return wrap_limited_keyring(
        limited_keyring_of(keyring, device.id, device.scopes or ()),
        account=state.account,
        target=device.id,
        version=state.keyring[0] if state.keyring else 0,
        wrap_pub=device.wrap_pub,
        root=root,
    )
