"""A team's objects: what others wrote, checked and taken in; what this device wrote, sealed and sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from scrubjay.store import Received
from scrubjay.store.replication_state import TeamOutbox, TeamSealed
from scrubjay.store.transaction import Transaction
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared import ops
from scrubjay_shared.envelope import Envelope, ObjectKind, Suite, lane_root
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    DeniedError,
    MalformedError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    UpdateNeededError,
    WithheldError,
    WrongKeyError,
    from_code,
)
from scrubjay_shared.ops import OpType
from scrubjay_shared.parts import joined
from scrubjay_shared.segment import Entry
from scrubjay_shared.teams import TeamDevice
from scrubjay_shared.wire import LaneHead
from scrubjay_sync import packing, planning
from scrubjay_sync.cloud.problems import said
from scrubjay_sync.confinement import Outsider, about, confined, named_by
from scrubjay_sync.packing import Opened, SealContext, Signer
from scrubjay_sync.policy import SYNC
from scrubjay_sync.teams.log import VERIFY, PinnedTeam, TeamContext

SHARED = frozenset({OpType.MEMORY, OpType.FORGET, OpType.CLAIM, OpType.UNCLAIM, OpType.COUNT, OpType.GRIP})
"""What teams share. Events are not: nobody puts words into another's conversations."""


class Taken(NamedTuple):
    """What was taken in of a lane, and how many ops were `beyond` what their author may write."""

    received: Received
    beyond: int


# --- reading ----------------------------------------------------------------------------------------------------------


async def read_lane(context: TeamContext, found: PinnedTeam, head: LaneHead) -> list[Taken]:
    """Read what is new in one lane, up to the end that the server names. Raises what an object can be refused for."""
    team, device = found.team, _device(context, found, head.device)
    root = lane_root(team, team, device.id)
    n, tip = (await context.store.read(lambda q: q.teams.lanes(team))).get(device.id, (0, root))
    if head.n < n:
        raise RolledBackError(
            f"the server shows the lane of device {device.id.hex()[:8]} in team {found.name} up to place {head.n}, and"
            f" has shown place {n}",
            hint="if its operator restored a backup, whoever wrote it has it still; else do not trust the server",
        )
    if head.n == n and head.tip != tip:
        raise SplitError(f"the server shows another place {n} in team {found.name} than before", hint=VERIFY)
    last, taken = min(head.n, device.counts_to), list[Taken]()
    while n < last:
        page = await context.cloud.teams.lane(team, device.id, n + 1)
        if not page:
            raise WithheldError(f"the server does not hand out place {n + 1} in team {found.name}", hint=VERIFY)
        opened: list[Opened] = []
        refusal: ScrubjayError | None = None
        for one in page:
            if n >= last:
                break
            try:
                check_object(found, device, one, n=n, prev=tip)
                opened.append(packing.opened(one, _key(found, one)))
            except (CorruptError, MalformedError, RevokedError, UpdateNeededError) as error:
                refusal = error
                break
            n, tip = one.header.n_to, one.end
        if opened:
            taken.append(await _take(context, found, device, opened))
        if refusal is not None:
            raise refusal
    return taken


def _device(context: TeamContext, found: PinnedTeam, device: bytes) -> TeamDevice:
    """Return the device of a lane. Ops bear its id, so that it must not be one that this person knows as another's."""
    known, mine = found.state.devices.get(device), context.member.state.device_of(device)
    if known is None:
        raise BadSignatureError(f"the server has a lane in team {found.name} of a device unknown to it", hint=VERIFY)
    if (mine is not None) != (known.account == context.account) or (mine and mine.sign_pub != known.sign_pub):
        raise BadSignatureError(
            f"a member of team {found.name} writes under the id of a device that is not theirs",
            hint="scrubjay teams list shows who is in; an admin should take them out",
        )
    return known


def check_object(found: PinnedTeam, device: TeamDevice, one: Envelope, *, n: int, prev: bytes) -> None:
    """Check that an object stands where it stands: this team's, sealed, in its lane's order, by a device that may.

    Raises BrokenChainError, BadSignatureError, MalformedError, RevokedError, SplitError.
    """
    header, where = one.header, f"place {one.header.n_from} of lane {device.id.hex()[:8]} in team {found.name}"
    if (header.account, header.scope, header.device) != (found.team, found.team, device.id):
        raise BrokenChainError(f"{where} is of another team or lane", hint=VERIFY)
    if header.kind != ObjectKind.SEGMENT or header.suite != Suite.SEALED:
        raise MalformedError(f"{where} is of a kind that does not belong there", hint="update scrubjay")
    if header.n_to > device.counts_to:
        raise RevokedError(f"{where} was written by somebody who may not write", hint=VERIFY)
    wire_envelope.check_run([one], n=n, prev=prev, keys=lambda _: (device.sign_pub,))
    if device.end is not None and header.n_to == device.end[0] and one.end != device.end[1]:
        raise SplitError(f"{where} is another than the one that the team's log ends its lane with", hint=VERIFY)


def _key(found: PinnedTeam, one: Envelope) -> bytes:
    key = found.keys.get(one.header.epoch)
    if key is None:
        raise WrongKeyError(
            f"an object in team {found.name} is sealed under epoch {one.header.epoch}, of which this device has no key",
            hint="the server may keep the end of the team's log from you: " + VERIFY,
        )
    return key


async def _take(context: TeamContext, found: PinnedTeam, device: TeamDevice, opened: Sequence[Opened]) -> Taken:
    """Write opened objects of a lane, and where it ends after them, in one transaction."""
    last = opened[-1].envelope

    def work(tx: Transaction) -> Taken:
        entries = list(_entries(tx, device.id.hex(), opened))
        allowed = _allowed(context, tx, found, device, entries)
        own = device.account == context.account
        tx.teams.put_lane(found.team, device.id, last.header.n_to, last.end)
        tx.replication.place({entity: found.team for _, _, entity in allowed if entity})
        received = tx.ingest.receive(device.id.hex(), [(seq, data) for seq, data, _ in allowed], is_of_person=own)
        return Taken(received, len(entries) - len(allowed))

    taken = await context.store.write(work)
    if taken.beyond:
        error = DeniedError(
            f"a member of team {found.name} (device {device.id.hex()[:8]}) wrote about what is not the team's:"
            f" {taken.beyond} of its changes were not taken",
            hint="scrubjay teams list shows who is in",
        )
        await context.alarm(error, f"{found.team.hex()}/{device.id.hex()}")
    return taken


def _entries(tx: Transaction, device: str, opened: Sequence[Opened]) -> list[Entry]:
    found: list[Entry] = []
    for one in opened:
        found += one.entries
        if one.part is not None:
            seq, place, parts, data = one.part
            whole = tx.replication.keep_part(device, seq, place=place, parts=parts, data=data)
            if whole is not None:
                try:
                    found.append((seq, joined([whole])))
                except MalformedError:
                    found.append((seq, whole))  # the store keeps it aside, as what it cannot read
    return found


def _allowed(
    context: TeamContext, tx: Transaction, found: PinnedTeam, device: TeamDevice, entries: Sequence[Entry]
) -> list[tuple[int, bytes | None, str]]:
    """Return the ops that their author may write, as they may be taken in, and what each is about.

    Of this person's own devices as they are; of others' no more than an agent's, under names of the team's.
    """
    own, author = device.account == context.account, device.id.hex()
    by = outsider(context, found, device)
    kept: list[tuple[int, bytes | None, str]] = []
    for seq, data in entries:
        if data is None:
            kept.append((seq, None, ""))
            continue
        taken = data if own else confined(data, device=author, seq=seq, by=by)
        try:
            if taken is not None and ops.decode(taken, device=author, seq=seq).type in SHARED:
                kept.append((seq, taken, about(taken, device=author, seq=seq)))
        except CorruptError:
            continue
    named = {seq: {one, *(() if data is None else named_by(data, device=author, seq=seq))} for seq, data, one in kept}
    where = tx.queries.replication.lives({entity for both in named.values() for entity in both}, context.member.home)
    return [one for one in kept if all(where.get(entity, found.team) == found.team for entity in named[one[0]])]


def outsider(context: TeamContext, found: PinnedTeam, device: TeamDevice) -> Outsider:
    """Return another member's device as somebody who writes in a team, with the projects that are bound to that."""
    projects = context.member.scopes.projects_of(found.team)
    return Outsider(name=found.name, id=device.account.hex()[:8], projects=projects)


# --- writing ----------------------------------------------------------------------------------------------------------


async def seal(context: TeamContext, found: PinnedTeam) -> int:
    """Seal what this device wrote about the team's things since the last time. Returns how many ops."""
    signer = Signer(sign=context.member.sign, entropy=context.entropy)
    count = 0
    while True:
        more, ops_sealed = await context.store.write(lambda tx: _seal_some(context, tx, found, signer))
        count += ops_sealed
        if not more:
            return count


def _seal_some(context: TeamContext, tx: Transaction, found: PinnedTeam, signer: Signer) -> tuple[bool, int]:
    """Seal the next ops. Returns whether there may be more, and how many there were."""
    team, state = found.team, tx.queries.replication.state()
    box = tx.queries.teams.outbox(team)
    if state is None:
        return False, 0
    if box is None or box.device != context.device:  # the first time, or a copy of the store goes on as another device
        box = TeamOutbox(device=context.device)
        tx.teams.drop_sealed(team)
    if not tx.queries.teams.in_scope(team):
        tx.teams.put_outbox(team, TeamOutbox(device=box.device, sealed_seq=state.sealed_seq, moved=box.moved))
        return False, 0
    outgoing = [
        one
        for one in tx.queries.ops.unsent(context.store.device, box.sealed_seq, SYNC.seal_ops)
        if one.seq <= state.sealed_seq
    ]
    if not outgoing:
        tx.teams.put_outbox(team, box)
        return False, 0
    placed = tx.queries.replication.placed({one.entity for one in outgoing})
    away = tx.queries.replication.sent_home(context.device)
    entries = [(one.seq, one.data) for one in outgoing if placed.get(one.entity) == team and one.seq not in away]
    root = lane_root(team, team, context.device)
    n, tip = tx.queries.teams.lanes(team).get(context.device, (0, root))
    after = box.sealed_seq
    for run in planning.cut(entries):
        place = SealContext(
            account=team,
            scope=team,
            device=context.device,
            n=n + 1,
            prev=tip,
            suite=int(Suite.SEALED),
            epoch=found.state.epoch,
            key=found.keys[found.state.epoch],
        )
        for made in packing.segments(place, run, signer):
            sealed = TeamSealed(n=n + 1, after_seq=after, tip=tip, obj=made.envelope.data)
            tx.teams.keep_sealed(team, sealed)
            n, tip = made.envelope.header.n_to, made.envelope.end
    tx.teams.put_lane(team, context.device, n, tip)
    tx.teams.put_outbox(team, TeamOutbox(device=box.device, sealed_seq=outgoing[-1].seq, moved=box.moved))
    return True, len(entries)


async def send(context: TeamContext, found: PinnedTeam) -> None:
    """Send what is sealed. Raises StaleEpochError when it must be sealed anew, and what the server refuses it with."""
    team = found.team
    while waiting := await context.store.read(lambda q: q.teams.sealed(team)):
        objects, size = list[Envelope](), 0
        for one in waiting:
            if objects and size + len(one.obj) > SYNC.push_bytes:
                break
            objects.append(wire_envelope.parse(one.obj))
            size += len(one.obj)
        for result in await context.cloud.teams.push(team, objects):
            if result.status not in {"ok", "dup"}:
                raise from_code(
                    result.status,
                    f"the server does not take place {result.n_from} of this device's lane in team {found.name}"
                    f" ({said(result.status)})",
                    "nothing is lost: changes wait here. scrubjay teams list shows what you may do there",
                )
            await context.store.write(partial(_confirm, team=team, n=result.n_to))


def _confirm(tx: Transaction, *, team: bytes, n: int) -> None:
    tx.teams.confirm(team, n)


async def seal_again(context: TeamContext, found: PinnedTeam) -> None:
    """Let go of what was sealed and not confirmed: the next `seal` seals it under the epoch of then."""

    def work(tx: Transaction) -> None:
        waiting, box = tx.queries.teams.sealed(found.team), tx.queries.teams.outbox(found.team)
        if waiting and box is not None:
            first = waiting[0]
            tx.teams.drop_sealed(found.team)
            tx.teams.put_lane(found.team, context.device, first.n - 1, first.tip)
            tx.teams.put_outbox(found.team, TeamOutbox(device=box.device, sealed_seq=first.after_seq, moved=box.moved))

    await context.store.write(work)


async def is_stale(context: TeamContext, found: PinnedTeam) -> bool:
    """Say whether something waits that was sealed under an epoch before the newest."""
    waiting = await context.store.read(lambda q: q.teams.sealed(found.team))
    return any(wire_envelope.parse(one.obj).header.epoch < found.state.epoch for one in waiting)


async def has_unsent(context: TeamContext, found: PinnedTeam) -> bool:
    """Say whether this device wrote about the team's things since anything was sealed for it last."""
    box = await context.store.read(lambda q: q.teams.outbox(found.team))
    after = 0 if box is None else box.sealed_seq
    return await context.store.read(lambda q: q.teams.touched(found.team, context.store.device, after))
