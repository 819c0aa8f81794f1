"""The replay of a team's log: which entry may follow which state, and what it changes. Pure.

An entry is signed by the key that its author has in this team, so the server, which has none, adds nothing to it. Only
an admin lets in, takes out or changes a role; anybody may leave, name devices of their own, replace their own keys, and
make a new epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared.account.fields import LIMIT, bytes_of, check_length, int_of, list_of
from scrubjay_shared.errors import BadSignatureError, BrokenChainError, InvalidError
from scrubjay_shared.teams.entries import (
    ID_BYTES,
    NEWER,
    TeamEntry,
    TeamEntryType,
    TeamRole,
    device_proof,
    read,
    signed_message,
    team_id,
)
from scrubjay_shared.teams.state import TeamDevice, TeamMember, TeamState

KEY_BYTES = 32
WRAP_PUB_BYTES = 1216
_VERIFY = "scrubjay teams list says how this device has the team; do not trust the server until you know why"
_AGAIN = "the team may have changed meanwhile: run the command again"
_NOTHING: tuple[int, bytes] = (0, bytes(32))
_BY_ADMIN = frozenset({TeamEntryType.MEMBER_ADD, TeamEntryType.MEMBER_REMOVE, TeamEntryType.ROLE})


def replay(entries: Sequence[bytes]) -> TeamState:
    """Return what a whole log adds up to. Raises as `extended`; InvalidError when there is no entry."""
    found = extended(None, entries)
    if found is None:
        raise InvalidError("the team's log has no entries", hint="the server has lost it: ask its operator")
    return found


def extended(state: TeamState | None, entries: Sequence[bytes]) -> TeamState | None:
    """Return the state after some more entries; None is the state before the genesis.

    Raises BrokenChainError when an entry does not follow, BadSignatureError when its author may not say it,
    InvalidError when it says what cannot be. An entry of a type that this version does not know changes nothing.
    """
    for data in entries:
        new = read(data)
        state = _genesis(new) if state is None else _after(state, new)
    return state


def _genesis(new: TeamEntry) -> TeamState:
    if new.seq != 0 or new.prev != bytes(32) or new.type != TeamEntryType.GENESIS:
        raise BrokenChainError("the team's log does not begin with the entry that makes a team", hint=_VERIFY)
    nonce, account, sign_pub, wrap_pub, commit = (bytes_of(new.body, key) for key in range(1, 6))
    check_length(nonce, ID_BYTES)
    check_length(account, ID_BYTES)
    check_length(commit, 32)
    founder = _member(account, sign_pub, wrap_pub, TeamRole.ADMIN, 0)
    if new.author != account:
        raise BadSignatureError("the team was not made by its first member", hint=_VERIFY)
    team = team_id(new.text)
    _verify(sign_pub, new.signature, signed_message(team, new.text), new)
    return TeamState(
        team=team, seq=0, head=new.hash, epoch=0, commits={0: commit}, members={account: founder}, key_author=account
    )


def _after(last: TeamState, new: TeamEntry) -> TeamState:
    if new.seq != last.seq + 1 or new.prev != last.head:
        raise BrokenChainError(f"entry {new.seq} of the team's log does not follow entry {last.seq}", hint=_VERIFY)
    author = last.member(new.author)
    if author is None:
        raise BadSignatureError(
            f"entry {new.seq} of the team's log was made by nobody who is in the team", hint=_VERIFY
        )
    _verify(author.sign_pub, new.signature, signed_message(last.team, new.text), new)
    if new.type in _BY_ADMIN and not author.rules:
        raise BadSignatureError(
            f"entry {new.seq} of the team's log says what only an admin may say, and its author is none", hint=_VERIFY
        )
    apply = _APPLIED.get(new.type)
    after = last if apply is None else apply(last, new, author)
    return replace(after, seq=new.seq, head=new.hash)


def _member_add(last: TeamState, new: TeamEntry, _: TeamMember) -> TeamState:
    account = _id(new.body, 1)
    if last.member(account) is not None:
        raise InvalidError("that person is in the team already", hint=_AGAIN)
    added = _member(account, bytes_of(new.body, 2), bytes_of(new.body, 3), _role(new.body, 4), new.seq)
    return replace(last, members={**last.members, account: added})


def _member_remove(last: TeamState, new: TeamEntry, author: TeamMember) -> TeamState:
    account = _id(new.body, 1)
    gone = last.member(account)
    if gone is None or account == author.account:
        raise InvalidError("an admin takes out somebody else who is in the team", hint=_AGAIN)
    return _epoch(_without(last, gone, _ends(new.body, 2)), new.body, 3, author)


def _role_set(last: TeamState, new: TeamEntry, _: TeamMember) -> TeamState:
    account, role, ends = _id(new.body, 1), _role(new.body, 2), _ends(new.body, 3)
    member = last.member(account)
    if member is None:
        raise InvalidError("nobody of that account is in the team", hint=_AGAIN)
    changed = replace(member, role=role)
    members = {**last.members, account: changed}
    if not any(one.rules for one in members.values()):
        raise InvalidError("a team has an admin", hint="make somebody else an admin first")
    devices = dict(last.devices)
    for one in last.devices_of(account):
        if changed.writes:
            devices[one.id] = replace(one, end=None)
        elif one.end is None:
            devices[one.id] = replace(one, end=ends.get(one.id, _NOTHING))
    return replace(last, members=members, devices=devices)


def _leave(last: TeamState, new: TeamEntry, author: TeamMember) -> TeamState:
    left = _without(last, author, _ends(new.body, 1))
    if left.active() and not any(one.rules for one in left.members.values()):
        raise InvalidError("the last admin cannot leave others behind", hint="make somebody else an admin first")
    return replace(left, key_due=True)


def _rekey(last: TeamState, new: TeamEntry, author: TeamMember) -> TeamState:
    sign_pub, wrap_pub = bytes_of(new.body, 1), bytes_of(new.body, 2)
    changed = _member(author.account, sign_pub, wrap_pub, author.role, author.added)
    devices = dict(last.devices)
    for device, end in _ends(new.body, 3).items():
        known = devices.get(device)
        if known is None or known.account != author.account:
            raise InvalidError("a member shuts out a device that is not theirs", hint=NEWER)
        devices[device] = replace(known, end=known.end or end, in_force=False)
    after = replace(last, members={**last.members, author.account: changed}, devices=devices)
    return _epoch(after, new.body, 4, author)


def _epoch_add(last: TeamState, new: TeamEntry, author: TeamMember) -> TeamState:
    return _epoch(last, new.body, 1, author)


def _device_add(last: TeamState, new: TeamEntry, author: TeamMember) -> TeamState:
    device, sign_pub, proof = _id(new.body, 1), bytes_of(new.body, 2), bytes_of(new.body, 3)
    check_length(sign_pub, KEY_BYTES)
    known = last.devices.get(device)
    if known is not None and (known.in_force or (known.account, known.sign_pub) != (author.account, sign_pub)):
        raise InvalidError("that device is in the team already", hint=_AGAIN)
    _verify(sign_pub, proof, device_proof(last.team, author.account, device), new)
    end = None if author.writes else _NOTHING if known is None else known.end
    added = TeamDevice(id=device, account=author.account, sign_pub=sign_pub, end=end)
    return replace(last, devices={**last.devices, device: added})


_APPLIED: dict[int, Callable[[TeamState, TeamEntry, TeamMember], TeamState]] = {
    TeamEntryType.MEMBER_ADD: _member_add,
    TeamEntryType.MEMBER_REMOVE: _member_remove,
    TeamEntryType.ROLE: _role_set,
    TeamEntryType.LEAVE: _leave,
    TeamEntryType.REKEY: _rekey,
    TeamEntryType.EPOCH: _epoch_add,
    TeamEntryType.DEVICE_ADD: _device_add,
}


def _without(last: TeamState, gone: TeamMember, ends: dict[bytes, tuple[int, bytes]]) -> TeamState:
    """Return the team without a member: their lanes count up to `ends`, one that is not named to its beginning."""
    devices = dict(last.devices)
    for one in last.devices_of(gone.account):
        devices[one.id] = replace(one, end=one.end or ends.get(one.id, _NOTHING), in_force=False)
    return replace(last, members={**last.members, gone.account: replace(gone, in_force=False)}, devices=devices)


def _epoch(last: TeamState, body: dict[int, Any], key: int, author: TeamMember) -> TeamState:
    """Return the team with a new key; `body` has its number and, under the next field, its commitment."""
    epoch, commit = int_of(body, key), bytes_of(body, key + 1)
    check_length(commit, 32)
    if epoch != last.epoch + 1:
        raise InvalidError(f"the team's next epoch is {last.epoch + 1}, and the entry says {epoch}", hint=_AGAIN)
    commits = {**last.commits, epoch: commit}
    return replace(last, epoch=epoch, commits=commits, key_due=False, key_author=author.account)


def _member(account: bytes, sign_pub: bytes, wrap_pub: bytes, role: TeamRole, added: int) -> TeamMember:
    check_length(sign_pub, KEY_BYTES)
    check_length(wrap_pub, WRAP_PUB_BYTES)
    return TeamMember(account=account, sign_pub=sign_pub, wrap_pub=wrap_pub, role=role, added=added)


def _id(body: dict[int, Any], key: int) -> bytes:
    found = bytes_of(body, key)
    check_length(found, ID_BYTES)
    return found


def _role(body: dict[int, Any], key: int) -> TeamRole:
    found = int_of(body, key)
    if found not in TeamRole._value2member_map_:
        raise InvalidError(f"a member of a team has role {found}, which this version does not know", hint=NEWER)
    return TeamRole(found)


def _ends(body: dict[int, Any], key: int) -> dict[bytes, tuple[int, bytes]]:
    return dict(_end(item) for item in list_of(body, key))


def _end(item: Any) -> tuple[bytes, tuple[int, bytes]]:
    """Return where a device's lane ends: (device, (n, link))."""
    match item:
        case [bytes(device), int(n), bytes(link)] if not isinstance(n, bool) and 0 <= n < LIMIT and len(link) == 32:
            check_length(device, ID_BYTES)
            return device, (n, link)
    raise InvalidError("an entry of a team's log names the ends of lanes in another format", hint=NEWER)


def _verify(key: bytes, signature: bytes, message: bytes, new: TeamEntry) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError) as error:
        raise BadSignatureError(
            f"entry {new.seq} of the team's log is not signed by its author", hint=_VERIFY
        ) from error
