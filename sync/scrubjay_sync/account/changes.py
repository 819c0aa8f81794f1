"""What a person must be told of on every device: who is in, and who comes to read what is written. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrubjay_shared.account import CODE_AUTHOR, AccountState, Entry, EntryType, Signer, read
from scrubjay_shared.envelope import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of who is in or reads: its place, its hash in hex, in words, and what to do if it was not you."""

    seq: int
    subject: str
    words: str
    hint: str


def changes_in(states: Sequence[AccountState], entries: Iterable[bytes]) -> list[Change]:
    """Return the changes of who is in or reads among some entries.

    `states` are those after entries in a row, these included.
    What the first of the states was before is not known, so the entry that made it is not told of.
    """
    found, first = [], states[0].seq
    for entry in map(read, entries):
        if not first < entry.seq < first + len(states):
            continue
        words = _words(entry, states[entry.seq - 1 - first])
        if words:
            found.append(
                Change(
                    seq=entry.seq,
                    subject=entry.hash.hex(),
                    words=f"{words}, by {_author(entry)} (entry {entry.seq} of the account log)",
                    hint=_hint(entry),
                )
            )
    return found


_WORDS: dict[int, str] = {
    EntryType.DEVICE_ADD: "a device was added to the account: {about}",
    EntryType.DEVICE_REVOKE: "a device was taken out of the account: {about}",
    EntryType.SCOPE_DELETE: "a scope was deleted, at the server and with its keys: {about}",
    EntryType.RECOVERY_ROTATE: "the recovery code was replaced",
    EntryType.RECOVERY_CONFIRM: "the recovery code that waited counts now, and the one before no longer",
    EntryType.ORIGIN_ADD: "another address of the server was added to the account",
    EntryType.VOID: "every change of the account from entry {about} on was undone",
}


def _words(entry: Entry, before: AccountState) -> str:
    about = entry.body.get(1)
    words = _WORDS.get(entry.type, "").format(about=about.hex()[:8] if isinstance(about, bytes) else about)
    if entry.type == EntryType.SCOPE_CREATE and entry.body.get(2) == Suite.OPEN:
        return f"a scope was made that the server can read: {about.hex()[:8] if isinstance(about, bytes) else about}"
    if entry.type == EntryType.DEVICE_ADD and entry.body.get(4) is not None:
        return words.replace("a device", "a limited device")
    if entry.type == EntryType.RECOVERY_ROTATE and entry.signer == Signer.ASK:
        return "another recovery code was asked for without the old one, and counts after seven days"
    if entry.type == EntryType.DEVICE_REVOKE and before.waiting_recovery is not None:
        return words + ", and with it the recovery code that waited"
    return words


def _author(entry: Entry) -> str:
    return "the recovery code" if entry.author == CODE_AUTHOR else f"device {entry.author.hex()[:8]}"


def _hint(entry: Entry) -> str:
    if entry.author == CODE_AUTHOR:
        return (
            "if this was you: scrubjay sync acknowledge; if not, somebody has your recovery code: scrubjay devices list"
            " shows who is in, scrubjay devices revoke shuts one out, scrubjay recovery rotate makes another code"
        )
    return (
        f"if this was you: scrubjay sync acknowledge; if not: scrubjay devices revoke {entry.author.hex()[:8]}; or"
        f" scrubjay recovery void --from {entry.seq}, with the recovery code"
    )


def readers_of(scope: bytes, state: AccountState, names: Mapping[bytes, str]) -> str:
    """Return who reads what is written in a scope, besides the account's full devices; "" for nobody.

    A scope that the account log does not know is a team. `names` are those of devices.
    """
    known = state.scopes.get(scope)
    if known is None:
        return "everybody in the team"
    if known.suite == Suite.OPEN:
        return "the server"
    limited = [one.id for one in state.active() if not one.full and scope in (one.scopes or ())]
    return ", ".join(names.get(one, "") or one.hex()[:8] for one in limited)


def bound_hint(scope: bytes, state: AccountState, name: str) -> str:
    """Return what to do about a project whose new things go to a scope or team of that name, if it was not you."""
    end = f"scrubjay sync scopes delete {name}" if scope in state.scopes else f"scrubjay teams leave {name}"
    return (
        "if this was you: scrubjay sync acknowledge; if not: scrubjay sync log shows which device changed the account,"
        f" scrubjay devices revoke shuts it out, and {end} ends this"
    )
