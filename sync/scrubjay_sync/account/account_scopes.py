"""Making and deleting the scopes of an account."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
)
from scrubjay_shared.wire import (
    Deleted,
)
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import KEY_BYTES
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys, rotations_left
from scrubjay_sync.policy import IDENTITY


async def create_scope(
    member: Member,
    machine: Machine,
    *,
    name: str,
    suite: Suite,
    projects: Sequence[str] = (),
    space: str = "",
) -> bytes:
    """Make a scope and bind projects to it; returns its id. Its mode is for ever.

    What is first written about those projects from now on goes to it; what exists stays where it is. Raises
    ConflictError when the name or a project is taken.
    """
    scope = machine.entropy(16)
    held = {} if suite == Suite.OPEN else {0: machine.entropy(KEY_BYTES)}

    def draft(_: AccountState, ring: Keyring) -> Draft:
        if any(known.name == name for known in ring.scopes.values()):
            raise ConflictError(
                f"the account has a scope {name!r} already", hint="scrubjay sync scopes list shows them"
            )
        taken = sorted(set(projects) & member.scopes.projects.keys())
        if taken:
            raise ConflictError(
                f"project {taken[0]} belongs to another scope already", hint="scrubjay sync scopes list shows them"
            )
        wider = ring.with_scope(scope, ScopeKeys(name=name, keys=held, projects=tuple(projects)))
        if rotations_left(wider) < IDENTITY.keyring_reserve:
            raise InvalidError(
                f"with one more scope the account's keyring would have room for fewer than {IDENTITY.keyring_reserve}"
                " new keys of each scope, and without room no device can be revoked",
                hint="scrubjay sync scopes delete makes room: choose scopes that nobody needs",
            )
        return Draft(
            entries=[(EntryType.SCOPE_CREATE, account_log.scope_body(scope, suite=suite, space=space))], keyring=wider
        )

    await member.append(machine.cloud, draft)
    return scope


async def delete_scope(member: Member, cloud: Cloud, scope: bytes) -> Deleted:
    """Delete a scope's objects at the server, and its keys on every device. Memories stay in the stores that have them.

    Raises NotFoundError, ConflictError for the home scope.
    """

    def draft(state: AccountState, ring: Keyring) -> Draft:
        found = state.scopes.get(scope)
        if found is None or found.deleted:
            raise NotFoundError(
                f"the account has no scope {scope.hex()[:8]}", hint="scrubjay sync scopes list shows them"
            )
        if found.home:
            raise ConflictError(
                "the home scope cannot be deleted while the account exists",
                hint="scrubjay account delete deletes the account",
            )
        return Draft(entries=[(EntryType.SCOPE_DELETE, {1: scope})], keyring=ring.without_scope(scope))

    await member.append(cloud, draft)
    return await cloud.account.delete_scope(scope)
