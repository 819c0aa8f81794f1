"""A team's objects: pushed by the device whose lane it is, read by every member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.lanes.validate import DUP, FORK, MAX_N, OK
from scrubjay_cloud.paging import fitting
from scrubjay_cloud.service import Service
from scrubjay_cloud.team_rows import head_for, no_team, whole_log
from scrubjay_shared import teams
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Envelope, ObjectKind, Suite, lane_root, signed_by, split
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    DeniedError,
    GapError,
    InvalidError,
    MalformedError,
    QuotaError,
    RevokedError,
    StaleEpochError,
    UnavailableError,
)
from scrubjay_shared.teams import TeamState
from scrubjay_shared.wire import Heads, LaneHead, PushAnswer, Pushed

ATTEMPTS = 5  # the log moves on between check and transaction: once is rare, five times is a fault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Push:
    """What a request pushes: objects, each with why it may not be stored by the log whose end is `head`, "" if it may.

    `quota` is what an account may hold that has none of its own, in bytes.
    """

    team: bytes
    device: bytes
    objects: tuple[Envelope, ...]
    refusals: tuple[str, ...]
    head: bytes
    quota: int
    now: Millis


async def push(service: Service, call: Call) -> Answer:
    """Append objects to the calling device's lane of a team: one result each, as in the account's own lanes."""
    caller, team, device = call.caller, call.path["team"], call.caller.device or b""
    objects = tuple(split(call.body))
    if not objects:
        raise InvalidError("the request holds no object", hint="send at least one")
    for _ in range(ATTEMPTS):
        head = await service.database.read(partial(head_for, team=team, account=caller.account))
        state = service.team(team, head) or await _replayed(service, team)
        refusals = await service.offload(
            partial(_refusals, objects, state=state, account=caller.account, device=device)
        )
        request = _Push(
            team=team,
            device=device,
            objects=objects,
            refusals=refusals,
            head=state.head,
            quota=service.settings.quota_bytes,
            now=service.now(),
        )
        answer = await service.database.write(partial(_stored, request=request))
        if answer is not None:
            if any(one.status == OK for one in answer.results):
                for member in state.active():
                    service.notifier.wake(member.account)
            return Answer(record=answer, headers=caller.warnings)
    raise UnavailableError("the team is being changed", hint="try again in a moment")


async def _replayed(service: Service, team: bytes) -> TeamState:
    """Return a team's state, of all of its log."""
    entries = await service.database.read(partial(whole_log, team=team))
    state: TeamState = await service.offload(partial(teams.replay, entries))
    service.keep_team(state)
    return state


def _refusals(objects: Sequence[Envelope], *, state: TeamState, account: bytes, device: bytes) -> tuple[str, ...]:
    return tuple(_refusal(one, state, account, device) for one in objects)


def _refusal(envelope: Envelope, state: TeamState, account: bytes, device: bytes) -> str:
    """Return why an object may not be stored, "" when it may, as far as the team's log says. Pure."""
    header = envelope.header
    if (header.account, header.scope, header.device) != (state.team, state.team, device):
        return DeniedError.code
    known, member = state.devices.get(device), state.member(account)
    if member is None or known is None or known.account != account or not known.in_force:
        return RevokedError.code
    if not member.writes or known.end is not None:
        return DeniedError.code
    if header.kind != ObjectKind.SEGMENT or header.suite != Suite.SEALED or header.n_to > MAX_N:
        return MalformedError.code
    if header.epoch != state.epoch or state.key_due:
        return MalformedError.code if header.epoch > state.epoch else StaleEpochError.code
    return "" if signed_by(envelope, (known.sign_pub,)) else BadSignatureError.code


def _stored(tx: Transaction, *, request: _Push) -> PushAnswer | None:
    """Store what may be stored, in order; None when the log has moved on. Raises QuotaError."""
    team, device = request.team, request.device
    # The row is held from here on: the log cannot move on, and nobody else writes in the team meanwhile.
    row = tx.row(f"select head, founder from team where id = ?{tx.for_update}", (team,))
    if row is None:
        raise no_team()
    if row[0] != request.head:
        return None
    left = _left(tx, row[1], request.quota)
    lane = tx.row("select n, tip from team_lane where team = ? and device = ?", (team, device))
    n, tip = lane or (0, lane_root(team, team, device))
    statuses: list[str] = []
    added = 0
    for envelope, refusal in zip(request.objects, request.refusals, strict=True):
        stopped = statuses[-1] if statuses and statuses[-1] not in {OK, DUP} else ""
        status = stopped or refusal or _place(tx, team, envelope, n, tip)
        if status == OK:
            size = len(envelope.data)
            if added + size > left:
                raise QuotaError(
                    "the storage for teams of whoever made this one is used up",
                    hint="nothing is lost: changes wait here. They ask the server's operator for more, or end a team",
                )
            n, tip, added = envelope.header.n_to, envelope.link, added + size
            tx.execute(
                "insert into team_object (team, device, n, link, size, received, body) values (?, ?, ?, ?, ?, ?, ?)",
                (team, device, n, tip, size, request.now, envelope.data),
            )
        statuses.append(status)
    if added:
        tx.execute(
            "insert into team_lane (team, device, n, tip) values (?, ?, ?, ?)"
            " on conflict (team, device) do update set n = excluded.n, tip = excluded.tip",
            (team, device, n, tip),
        )
        tx.execute("update team set bytes = bytes + ?, moved = moved + 1 where id = ?", (added, team))
    results = [
        Pushed(scope=team, device=device, n_from=one.header.n_from, n_to=one.header.n_to, status=status, n=n, tip=tip)
        for one, status in zip(request.objects, statuses, strict=True)
    ]
    return PushAnswer(results=tuple(results))


def _left(tx: Transaction, founder: bytes, quota: int) -> int:
    """Return how many bytes an account's teams may still take: in all what it may hold itself, or `quota` of the gone.

    Each team alone would let an account hold as much again for every team that it makes.
    """
    own = tx.row("select quota from account where id = ?", (founder,))
    held = tx.row("select coalesce(sum(bytes), 0) from team where founder = ?", (founder,))
    allowed = quota if own is None or own[0] is None else own[0]
    return int(allowed - (held[0] if held else 0))


def _place(tx: Transaction, team: bytes, envelope: Envelope, n: int, tip: bytes) -> str:
    """Say how an object stands to a lane that ends at place `n` with the link `tip`."""
    header = envelope.header
    if header.n_to <= n:
        row = tx.row(
            "select link from team_object where team = ? and device = ? and n = ?", (team, header.device, header.n_to)
        )
        return DUP if row is not None and row[0] == envelope.link else FORK
    if header.n_from != n + 1:
        return GapError.code
    return OK if header.prev == tip else BrokenChainError.code


async def heads(service: Service, call: Call) -> Answer:
    """Return where every lane of a team ends."""
    team, account = call.path["team"], call.caller.account

    def work(tx: Transaction) -> Heads:
        _require_member(tx, team, account)
        rows = tx.rows("select device, n, tip from team_lane where team = ? order by device", (team,))
        return Heads(heads=tuple(LaneHead(scope=team, device=a, n=b, tip=c) for a, b, c in rows), cursor="")

    return Answer(record=await service.database.read(work))


async def read_lane(service: Service, call: Call) -> Answer:
    """Return a lane of a team from a place on, as much as fits a page."""
    policy, team, device, account = service.policy, call.path["team"], call.path["device"], call.caller.account

    def work(tx: Transaction) -> tuple[bytes, ...]:
        _require_member(tx, team, account)
        here = "from team_object where team = ? and device = ? and n >= ? order by n limit ?"
        key = (team, device, call.query["from"])
        count = fitting(
            (size for (size,) in tx.rows(f"select size {here}", (*key, policy.page_objects))), policy.max_body_bytes
        )
        return tuple(body for (body,) in tx.rows(f"select body {here}", (*key, count))) if count else ()

    objects = await service.database.read(work)
    await service.limits.spend("traffic", account, policy.limits.traffic, sum(map(len, objects)))
    return Answer(objects=objects)


def _require_member(tx: Transaction, team: bytes, account: bytes) -> None:
    row = tx.row("select until_seq from team_member where team = ? and account = ?", (team, account))
    if row is None:
        raise no_team()
    if row[0] is not None:
        raise DeniedError("you are not in that team any more", hint="an admin of the team can let you in again")
