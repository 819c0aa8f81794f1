"""Checking and replacing the recovery code of an account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    CredentialsError,
)
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.rotation import rotation_draft
from scrubjay_sync.api.account import RecoveryPublic
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import Entropy
from scrubjay_sync.keys.keyring import Keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode


def is_recovery(state: AccountState, rsk: bytes, now: Millis) -> bool:
    """Say whether a recovery code, by its public half, is the account's, now or once its wait is over."""
    waiting = () if state.waiting_recovery is None else (state.waiting_recovery[0],)
    return rsk in {state.recovery(now)[0], *waiting}


async def replace_recovery(
    member: Member,
    cloud: Cloud,
    new: RecoveryPublic,
    *,
    old: RecoveryCode | None,
    now: Callable[[], Millis],
    entropy: Entropy,
) -> None:
    """Put a new recovery code in the place of the old one, and replace every key that the old one opened.

    With the old code at once; without it after `account.RECOVERY_DELAY_MS`, in which the old one can still void it.
    """

    def draft(state: AccountState, ring: Keyring) -> Draft:
        if old is not None and old.rsk not in {state.rsk, state.recovery(now())[0]}:
            raise CredentialsError(
                "that is not the recovery code of this account",
                hint="without it: scrubjay recovery rotate --lost, and the new code is valid after seven days",
            )
        body = {1: new.rsk, 2: new.wrap_pub, 3: now()}
        rotation = rotation_draft(state, ring, entropy)
        return replace(
            rotation,
            entries=[(EntryType.RECOVERY_ROTATE, body), *rotation.entries],
            recovery=old,
            by_recovery=frozenset({EntryType.RECOVERY_ROTATE}),
        )

    await member.append(cloud, draft)
