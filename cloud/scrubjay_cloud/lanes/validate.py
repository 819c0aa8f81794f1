"""What a request's objects must be before a transaction begins: format, rights, chain and signatures. Pure.

All of it is checked against the account log as it was when the request came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scrubjay_shared.account import AccountState, Device
from scrubjay_shared.envelope import (
    HEADER_BYTES,
    LANE_KINDS,
    SIGNATURE_BYTES,
    Envelope,
    Header,
    ObjectKind,
    check_signatures,
    split,
)
from scrubjay_shared.errors import (
    BadSignatureError,
    DeniedError,
    GapError,
    MalformedError,
    NotFoundError,
    RevokedError,
    StaleEpochError,
)

OK, DUP, FORK, BROKEN = "ok", "dup", "fork", "broken_chain"
MAX_N = 2**62  # numbers in a lane fit the database's integers with room
PACK = int(ObjectKind.PACK)
Lane = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Item:
    """An object as a request has it, with what is hashed of it, once.

    `body_key` names its body in the store of bodies, where it was sent there; "" where the row is to hold it.
    """

    envelope: Envelope
    header: Header
    lane: Lane
    data: bytes
    link: bytes
    end: bytes
    body_key: str = ""


def items_of(body: bytes) -> list[Item]:
    """Return the objects of a request's body. Raises MalformedError."""
    items = []
    at = 0
    for envelope in split(body):
        header, link = envelope.header, envelope.link
        start, at = at, at + HEADER_BYTES + header.body_len + SIGNATURE_BYTES
        end = header.tip if header.kind == PACK else link
        items.append(Item(envelope, header, (header.scope, header.device), body[start:at], link, end))
    return items


@dataclass(slots=True)
class Run:
    """Objects of one lane as a request has them, by their index in it.

    `accepted` continue each other; `duplicates` are byte for byte among them; `rejected` may not be stored, and
    `reason` is the status that says why.
    """

    lane: Lane
    accepted: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    reason: str = ""

    def copy(self) -> Run:
        """Return one that may be changed."""
        return Run(self.lane, list(self.accepted), list(self.duplicates), list(self.rejected), self.reason)


def runs_of(
    items: Sequence[Item], refusal: Callable[[Item], str], keys: Callable[[Envelope], Sequence[bytes]]
) -> list[Run]:
    """Return a request's objects by lane, each lane cut where the first object cannot be accepted."""
    runs: dict[Lane, Run] = {}
    for index, item in enumerate(items):
        run = runs.setdefault(item.lane, Run(item.lane))
        if not run.reason:
            run.reason = refusal(item) or _continues(items, run, item)
        if run.reason == DUP:  # the very same object twice in a request
            run.reason = ""
            run.duplicates.append(index)
        elif run.reason:
            run.rejected.append(index)
        else:
            run.accepted.append(index)
    for run in runs.values():
        _verify(items, run, keys)
    return list(runs.values())


def _continues(items: Sequence[Item], run: Run, item: Item) -> str:
    if not run.accepted:
        return ""
    last, header = items[run.accepted[-1]], item.header
    if header.n_from <= last.header.n_to:
        return DUP if any(items[index].data == item.data for index in run.accepted) else MalformedError.code
    if header.n_from > last.header.n_to + 1:
        return GapError.code
    return "" if header.prev == last.end else BROKEN


def _verify(items: Sequence[Item], run: Run, keys: Callable[[Envelope], Sequence[bytes]]) -> None:
    """Cut a run before what is not signed by its device.

    One damaged object either breaks the chain after it, so that the run ends with it, or is the last anyway: without
    it, the rest is checked once more. More than that only its device can have done.
    """
    for _ in range(2):
        if not run.accepted:
            return
        try:
            check_signatures([items[index].envelope for index in run.accepted], keys)
        except BadSignatureError:
            run.reason = BadSignatureError.code
            run.rejected.insert(0, run.accepted.pop())
        else:
            return
    run.rejected[:0] = run.accepted
    run.accepted.clear()


def _common_refusal(item: Item, state: AccountState, reader: Device) -> str:
    """Return why an object of a lane may not be stored for this reader of the account, "" when it may."""
    header = item.header
    scope, author = state.scopes.get(header.scope), state.device_of(header.device)
    if header.account != state.account or author is None:
        return DeniedError.code
    if scope is None or scope.deleted:
        return NotFoundError.code
    if not reader.full and header.scope not in (reader.scopes or ()):
        return DeniedError.code
    if header.kind not in LANE_KINDS or header.suite != scope.suite or header.n_to > MAX_N:
        return MalformedError.code
    return MalformedError.code if header.epoch > scope.epoch else ""


def push_refusal(item: Item, state: AccountState, device: Device) -> str:
    """Return why a device may not append an object to its lane, "" when it may."""
    header = item.header
    if refusal := _common_refusal(item, state, device):
        return refusal
    writer = state.device_of(header.device)
    if writer is None or writer.id != device.id or device.read_only:
        return DeniedError.code
    if device.revoked:
        return RevokedError.code
    if header.kind == PACK:
        return MalformedError.code
    return StaleEpochError.code if header.epoch < state.scopes[header.scope].epoch else ""


def pack_refusal(item: Item, state: AccountState, device: Device) -> str:
    """Return why a device may not put a pack in the place of what it covers, "" when it may."""
    header = item.header
    if refusal := _common_refusal(item, state, device):
        return refusal
    if header.kind != PACK:
        return MalformedError.code
    writer = state.device_of(header.device)
    owners = () if writer is None else (writer.id, *state.adopters_of(*item.lane))
    if device.id not in owners or device.read_only:
        return DeniedError.code
    return StaleEpochError.code if header.epoch < state.scopes[header.scope].epoch else ""


def repair_refusal(item: Item, state: AccountState, device: Device) -> str:
    """Return why a device may not give back an object that the server has lost, "" when it may."""
    if refusal := _common_refusal(item, state, device):
        return refusal
    author = state.device_of(item.header.device)
    if author is None or author.read_only:
        return DeniedError.code
    end = author.end_of(*item.lane)
    if end is not None and item.header.n_to > end[0]:
        return RevokedError.code
    return ""
