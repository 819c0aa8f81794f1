"""The teams' part of a round: each team's log followed, what others wrote read, what this device wrote sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scrubjay.store.replication_state import TeamOutbox
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    QuotaError,
    ScrubjayError,
    StaleEpochError,
    UpdateNeededError,
    WithheldError,
)
from scrubjay_shared.teams.records import TeamLine
from scrubjay_shared.wire import LaneHead
from scrubjay_sync.teams import lanes
from scrubjay_sync.teams.log import VERIFY, PinnedTeam, TeamContext
from scrubjay_sync.teams.membership import follow_up, writes

REFUSED = (CorruptError, InvalidError, UpdateNeededError, DeniedError, NotFoundError, ConflictError, QuotaError)
"""What holds up one team; everything else ends the round."""
TRIES = 3
"""Times that what waits is sealed anew in one round: another member may make an epoch at the same time."""


@dataclass(slots=True)
class TeamsDone:
    """What a round did with teams. `errors` each held up one team or one lane of it; they are alarms too."""

    sent: int = 0
    received: int = 0
    conflicts: int = 0
    quarantined: int = 0
    errors: list[ScrubjayError] = field(default_factory=list)


async def sync_teams(context: TeamContext) -> TeamsDone:
    """Do what there is to do for every team that this person is in. Without teams, nothing is asked."""
    done = TeamsDone()
    if context.member.limited or not context.joined:
        return done
    lines = {line.team: line for line in (await context.cloud.teams.list()).teams}
    for team in tuple(context.joined):
        try:
            await _sync_team(context, team, lines, done)
        except REFUSED as error:
            done.errors.append(error)
            await context.alarm(error, team.hex())
    return done


async def _sync_team(context: TeamContext, team: bytes, lines: Mapping[bytes, TeamLine], done: TeamsDone) -> None:
    line, known = lines.get(team), await context.pinned(team)
    if line is not None and known is not None and known.is_at(line.head):
        found = known  # nothing to follow: a server that says so keeps as much from us as one that shows no more
    else:
        found = await context.follow(team)
    if found.state.member(context.account) is None:
        await context.forget(team)  # the log says that we were taken out, or left on another device: told already
        return
    if line is None:
        raise WithheldError(
            f"the server does not show you in team {found.name} any more, and its log does not say so", hint=VERIFY
        )
    await follow_up(context, found)
    box = await context.store.read(lambda q: q.teams.outbox(team))
    if box is None or box.moved != line.moved:
        await _read(context, found, done)
        await context.store.write(
            lambda tx: tx.teams.put_outbox(
                team, replace(tx.queries.teams.outbox(team) or TeamOutbox(device=context.device), moved=line.moved)
            )
        )
    if writes(context, found.state):
        await _send(context, found, done)
    else:
        await _tell_reader(context, found)


async def _read(context: TeamContext, found: PinnedTeam, done: TeamsDone) -> None:
    heads = {head.device: head for head in await context.cloud.teams.heads(found.team)}
    held = await context.store.read(lambda q: q.teams.lanes(found.team))
    waiting = len(await context.store.read(lambda q: q.teams.sealed(found.team)))
    for device, (n, tip) in held.items():
        if device not in heads and n - (waiting if device == context.device else 0) > 0:
            heads[device] = LaneHead(scope=found.team, device=device, n=0, tip=tip)
    failed: ScrubjayError | None = None
    for head in heads.values():
        if head.device == context.device:
            continue
        try:
            for taken in await lanes.read_lane(context, found, head):
                done.received += taken.received.applied
                done.conflicts += taken.received.conflicts
                done.quarantined += taken.received.quarantined
        except REFUSED as error:
            await context.alarm(error, f"{found.team.hex()}/{head.device.hex()}")
            failed = error
    if failed is not None:
        raise failed


async def _send(context: TeamContext, found: PinnedTeam, done: TeamsDone) -> None:
    for _ in range(TRIES):
        if await lanes.is_stale(context, found):
            await lanes.seal_again(context, found)
        done.sent += await lanes.seal(context, found)
        try:
            return await lanes.send(context, found)
        except StaleEpochError:
            await context.follow(found.team)
            await follow_up(context, found)
    raise StaleEpochError(
        f"team {found.name} got new keys again and again while this device was writing",
        hint="scrubjay sync tries again",
    )


async def _tell_reader(context: TeamContext, found: PinnedTeam) -> None:
    """Tell a reader who changed what the team has that it stays on this machine. It holds nothing up."""
    if await lanes.has_unsent(context, found):
        error = DeniedError(
            f"you are a reader in team {found.name}: what you changed of it stays on this machine",
            hint="an admin of the team can make you a writer: then it is sent",
        )
        await context.alarm(error, found.team.hex())
