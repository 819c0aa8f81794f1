"""Undoing what a thief with an unlocked device signed, from a device that is still in, with the recovery code."""

from __future__ import annotations

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import CredentialsError, InvalidError, RevokedError, WithheldError
from scrubjay_shared.wire import RECOVERY_TARGET, ROOT_WRAP
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.pinned_log import fetch_states
from scrubjay_sync.account.rotation import new_epochs
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import Entropy, RootKey
from scrubjay_sync.keys.keyring import Keyring, open_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root


async def void(member: Member, cloud: Cloud, code: RecoveryCode, start: int, *, entropy: Entropy) -> None:
    """Undo every change of the account from entry `start` of its log on. The account and all scopes get new keys.

    Devices that were shut out since are in again, those that were let in are out; this one stays. Raises
    CredentialsError for another code, InvalidError for an entry that there is not, WithheldError when the code does not
    open the keys of then, RevokedError when this device was shut out itself: then a login with the code does it.
    """
    try:
        await member.refresh(cloud)
    except RevokedError as error:
        raise RevokedError(
            "this device was shut out of the account, and cannot change it",
            hint=f"scrubjay logout --force, then scrubjay login --void-from {start} here, or on another machine",
        ) from error
    if code.rsk != member.state.rsk:
        raise CredentialsError(
            "that is not the recovery code of this account",
            hint="a newer code replaces those before it, and one made with --lost counts after seven days",
        )
    if not 1 <= start <= member.state.seq:
        raise InvalidError(
            f"the account log has entries 1 to {member.state.seq} to begin at, got {start}",
            hint="scrubjay sync log lists them",
        )
    before = (await fetch_states(cloud, {start - 1}, member.state))[start - 1]
    if not before.devices or not any(scope.home for scope in before.scopes.values()):
        raise InvalidError(
            f"before entry {start} the account was not made yet",
            hint="name a later entry: scrubjay sync log lists them",
        )
    kept = await _keyring(cloud, code, before)

    def draft(state: AccountState, _: Keyring) -> Draft:
        root = RootKey.new(entropy, state.version + 1)
        epochs, keyring = new_epochs(before, kept, entropy, above=state)
        own, there = state.devices[member.device], before.devices.get(member.device)
        if there is not None and there.revoked:
            raise InvalidError(
                f"before entry {start} this device was not in the account",
                hint="do it on another device, or name a later",
            )
        body = account_log.device_body(own.id, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
        return Draft(
            entries=[
                (EntryType.VOID, {1: start, 2: root.version, 3: root.ask}),
                *([] if there is not None else [(EntryType.DEVICE_ADD, body)]),
                *epochs,
            ],
            keyring=keyring.with_device(own.id, member.device_name(own.id)),
            root=root,
            recovery=code,
            by_recovery=frozenset({EntryType.VOID, EntryType.DEVICE_ADD}),
            earlier={before.seq: before},
        )

    await member.append(cloud, draft)


async def _keyring(cloud: Cloud, code: RecoveryCode, before: AccountState) -> Keyring:
    """Return the keyring that was in force then, which the code opens."""
    for wrap in (await cloud.log.wraps(RECOVERY_TARGET)).wraps:
        if wrap.kind == ROOT_WRAP and wrap.version == before.version and before.keyring is not None:
            version, digest = before.keyring
            root = unwrap_root(wrap, account=before.account, target=RECOVERY_TARGET, holder=code, ask=before.ask)
            sealed = await cloud.log.blob(digest)
            return open_keyring(sealed, account=before.account, version=version, digest=digest, root=root)
    raise WithheldError(
        f"the recovery code cannot open the keys of entry {before.seq}", hint="name a later entry to begin at"
    )
