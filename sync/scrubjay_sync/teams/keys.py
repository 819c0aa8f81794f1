"""What a person signs and opens with in teams: an identity of their own, which all their full devices share.

It stands in the account's keyring under an id that is no scope's, one secret for each version. A new version is made
when a device of the person was shut out; teams then take the new keys on the old ones' word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scrubjay_shared import teams
from scrubjay_shared.errors import WrongKeyError
from scrubjay_shared.teams import TeamMember, TeamState
from scrubjay_shared.teams.records import TeamWrap
from scrubjay_sync.keys.keypairs import KEY_BYTES, MLKEM_SEED_BYTES, Entropy, WrapKeys, derived, public_of, signer
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys
from scrubjay_sync.keys.wraps import seal_to, wrap_info

IDENTITY_ID = hashlib.sha256(b"sjs/1/team/identity").digest()[:16]
"""Where a keyring has the person's identity: no scope has this id."""
TEAM_WRAP = 3
"""The kind of a wrap that holds the key of an epoch of a team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One version of a person's keys in teams, made from one secret."""

    version: int
    secret: bytes = field(repr=False)

    @property
    def sign_seed(self) -> bytes:
        """The seed of the Ed25519 key that signs entries."""
        return derived(self.secret, b"sjs/1/team/sign")

    @property
    def sign_pub(self) -> bytes:
        """Its public half."""
        return public_of(self.sign_seed)

    @property
    def wrap(self) -> WrapKeys:
        """The key that epochs' keys are sealed to."""
        made = derived(self.secret, b"sjs/1/team/enc", MLKEM_SEED_BYTES + KEY_BYTES)
        return WrapKeys(mlkem_seed=made[:MLKEM_SEED_BYTES], x25519_seed=made[MLKEM_SEED_BYTES:])

    def sign(self, message: bytes) -> bytes:
        """Sign as this person."""
        return signer(self.sign_seed)(message)


def identities(ring: Keyring) -> tuple[Identity, ...]:
    """Return a person's identities, newest first; none before they had to do with teams."""
    kept = ring.scopes.get(IDENTITY_ID)
    versions = {} if kept is None else kept.keys
    return tuple(Identity(version=version, secret=versions[version]) for version in sorted(versions, reverse=True))


def with_new_identity(ring: Keyring, entropy: Entropy) -> Keyring:
    """Return a keyring with one version of the identity more."""
    known = ring.scopes.get(IDENTITY_ID, ScopeKeys(name=""))
    version = max(known.keys, default=0) + 1
    return ring.with_scope(IDENTITY_ID, replace(known, keys={**known.keys, version: entropy(KEY_BYTES)}))


def identity_of(found: tuple[Identity, ...], member: TeamMember) -> Identity | None:
    """Return the identity by which a team knows its member, None when this device does not have it."""
    return next((one for one in found if one.sign_pub == member.sign_pub), None)


def wrapped(team: bytes, member: TeamMember, epoch: int, key: bytes) -> TeamWrap:
    """Return an epoch's key sealed to a member."""
    sealed = seal_to(key, member.wrap_pub, wrap_info(team, member.account, TEAM_WRAP, epoch))
    return TeamWrap(account=member.account, epoch=epoch, sealed=sealed)


def opened(
    state: TeamState, account: bytes, found: tuple[Identity, ...], wraps: tuple[TeamWrap, ...]
) -> tuple[Mapping[int, bytes], frozenset[int]]:
    """Return the keys in some wraps, by epoch, and the epochs whose wrap holds another key than the log commits to.

    Whoever knows a public key can seal to it; only the commitment says that it is the epoch's key. A wrap that none of
    our identities opens is left out, like one of an epoch that the log does not know.
    """
    keys: dict[int, bytes] = {}
    wrong: set[int] = set()
    for wrap in wraps:
        commit = state.commits.get(wrap.epoch)
        if commit is None or wrap.account != account:
            continue
        info = wrap_info(state.team, account, TEAM_WRAP, wrap.epoch)
        for identity in found:
            try:
                key = identity.wrap.opened(wrap.sealed, info)
            except WrongKeyError:
                continue
            if teams.epoch_commit(wrap.epoch, key) == commit:
                keys[wrap.epoch] = key
            else:
                wrong.add(wrap.epoch)
            break
    return keys, frozenset(wrong)
