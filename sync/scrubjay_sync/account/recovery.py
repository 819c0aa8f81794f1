"""Checking and replacing the recovery code of an account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    CredentialsError,
)
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.rotation import rotation_draft
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import Entropy
from scrubjay_sync.keys.keyring import Keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode


def is_recovery(state: AccountState, rsk: bytes) -> bool:
    """Say whether a recovery code, by its public half, is the account's, now or once its wait is over."""
    waiting = () if state.waiting_recovery is None else (state.waiting_recovery[0],)
    return rsk in {state.rsk, *waiting}


async def replace_recovery(
    member: Member,
    cloud: Cloud,
    new: RecoveryCode,
    *,
    old: RecoveryCode | None,
    now: Callable[[], Millis],
    entropy: Entropy,
) -> None:
    """Put a new recovery code in the place of the old one, and replace every key that the old one opened.

    With the old code at once. Without it the new one waits for `account.RECOVERY_DELAY_MS`, in which the old one can
    still void it: until then no key is given to it, and `confirm_recovery` ends the wait.
    """

    def draft(state: AccountState, ring: Keyring) -> Draft:
        if old is not None and old.rsk != state.rsk:
            raise CredentialsError(
                "that is not the recovery code of this account",
                hint="without it: scrubjay recovery rotate --lost, and the new code is valid after seven days",
            )
        body = account_log.recovery_body(
            state.account, state.head, rsk=new.rsk, recovery_pub=new.wrap_pub, at=now(), sign=new.sign
        )
        replaced = (EntryType.RECOVERY_ROTATE, body)
        if old is None:
            return Draft(entries=[replaced])
        rotation = rotation_draft(state, ring, entropy)
        return replace(
            rotation,
            entries=[replaced, *rotation.entries],
            recovery=old,
            by_recovery=frozenset({EntryType.RECOVERY_ROTATE}),
        )

    await member.append(cloud, draft)


async def confirm_recovery(member: Member, cloud: Cloud, *, now: Callable[[], Millis], entropy: Entropy) -> bool:
    """Put a recovery code in force whose wait is over, and replace every key that the old one opened.

    Returns whether there was one. Any full device does it with its next round after the seven days.
    """
    waiting = member.state.waiting_recovery
    if member.limited or waiting is None or now() < waiting[2] or not account_log.is_wrap_pub(waiting[1]):
        return False  # a code that nothing can be encrypted for would leave the account without one

    def draft(state: AccountState, ring: Keyring) -> Draft:
        if state.waiting_recovery != waiting:
            return Draft()
        rotation = rotation_draft(state, ring, entropy)
        return replace(rotation, entries=[(EntryType.RECOVERY_CONFIRM, {1: waiting[0], 2: now()}), *rotation.entries])

    await member.append(cloud, draft)
    return True
