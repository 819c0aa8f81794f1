"""Making a team, and its log: read, appended to, and mirrored by the table that is asked who is in."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.wraps import MAX_WRAP_BYTES
from scrubjay_cloud.credentials import folded
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.paging import fitting
from scrubjay_cloud.service import Service
from scrubjay_cloud.team_rows import erase_team, log_of, no_team
from scrubjay_shared import teams
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, LogConflictError, NotFoundError
from scrubjay_shared.teams import TeamEntryType, TeamState
from scrubjay_shared.teams.records import PutTeamCard, TeamAppend, TeamCard, TeamLine, Teams, TeamWrap, TeamWraps
from scrubjay_shared.teams.replay import KEY_BYTES, WRAP_PUB_BYTES
from scrubjay_shared.wire import LogPage

LOG_PAGE_BYTES = 512 * 1024  # of entries; base64 makes 700 KB of it
_EPOCH_FIELD: dict[int, int] = {TeamEntryType.MEMBER_REMOVE: 3, TeamEntryType.REKEY: 4, TeamEntryType.EPOCH: 1}
"""The field of an entry's body that numbers the epoch that it makes."""


async def put_card(service: Service, call: Call) -> Answer:
    """Keep the caller's card, in the place of the one before."""
    given: PutTeamCard = call.body
    if len(given.sign_pub) != KEY_BYTES or len(given.wrap_pub) != WRAP_PUB_BYTES:
        raise InvalidError(
            f"a card has keys of {KEY_BYTES} and {WRAP_PUB_BYTES} bytes", hint="update scrubjay on this device"
        )
    await service.database.write(
        lambda tx: tx.execute(
            "insert into team_card (account, sign_pub, wrap_pub) values (?, ?, ?) on conflict (account) do update"
            " set sign_pub = excluded.sign_pub, wrap_pub = excluded.wrap_pub",
            (call.caller.account, given.sign_pub, given.wrap_pub),
        )
    )
    return Answer()


async def get_card(service: Service, call: Call) -> Answer:
    """Return the card of a user name: only of people who made one, who want to be found by those that they tell it."""
    name = folded(call.query["username"], service.policy)
    row = await service.database.read(
        lambda tx: tx.row(
            "select c.account, c.sign_pub, c.wrap_pub from team_card c join account a on a.id = c.account"
            " where a.name = ?",
            (name,),
        )
    )
    if row is None:
        raise NotFoundError(
            "nobody of that name has a card at this server",
            hint="they run scrubjay teams card, and tell you its words",
        )
    return Answer(record=TeamCard(account=row[0], sign_pub=row[1], wrap_pub=row[2]))


async def list_teams(service: Service, call: Call) -> Answer:
    """Return the teams that the caller's account is in."""
    rows = await service.database.read(
        lambda tx: tx.rows(
            "select t.id, t.seq, t.head, t.moved from team t join team_member m on m.team = t.id"
            " where m.account = ? and m.until_seq is null order by t.id",
            (call.caller.account,),
        )
    )
    return Answer(record=Teams(teams=tuple(TeamLine(team=a, seq=b, head=c, moved=d) for a, b, c, d in rows)))


async def create_team(service: Service, call: Call) -> Answer:
    """Make a team of a log that begins at its genesis, which the caller's account made."""
    given: TeamAppend = call.body
    account, now = call.caller.account, service.now()
    if given.head != bytes(32) or not given.entries:
        raise InvalidError("the log of a new team must begin at its first entry", hint="head must be 32 zero bytes")
    state = await _checked(service, [], given)
    if set(state.members) != {account}:
        raise DeniedError("a team begins with the account that makes it, and with nobody else", hint="update scrubjay")

    def make(tx: Transaction) -> None:
        mine = tx.row("select count(*) from team where founder = ?", (account,))
        if mine is not None and mine[0] >= service.policy.max_teams:
            raise InvalidError(
                f"an account may make {service.policy.max_teams} teams", hint="scrubjay teams leave ends one"
            )
        made = tx.execute(
            "insert into team (id, founder, seq, head, created) values (?, ?, ?, ?, ?) on conflict do nothing",
            (state.team, account, state.seq, state.head, now),
        )
        if not made:
            raise ConflictError("that team is there already", hint="scrubjay teams list")
        _store(tx, state, given, now, account)

    await service.database.write(make)
    return Answer(record=LogPage(entries=(), seq=state.seq, head=state.head))


async def read_log(service: Service, call: Call) -> Answer:
    """Return the entries from a number on, as many as a page holds; to a former member, those until they were not."""
    entries, seq, head = await service.database.read(
        lambda tx: log_of(tx, call.path["team"], call.caller.account, call.query["from"])
    )
    count = fitting(map(len, entries), LOG_PAGE_BYTES)
    return Answer(record=LogPage(entries=tuple(entries[:count]), seq=seq, head=head))


async def append_log(service: Service, call: Call) -> Answer:
    """Append entries that follow `head`, with the wraps that they make necessary: all or nothing."""
    given: TeamAppend = call.body
    team, account, now = call.path["team"], call.caller.account, service.now()
    entries, _, head = await service.database.read(lambda tx: log_of(tx, team, account))
    if head != given.head:
        raise _moved_on()
    state = await _checked(service, entries, given)
    if any(teams.read(data).author != account for data in given.entries):
        raise DeniedError("an entry of a team's log is sent by its author", hint="update scrubjay")
    concerned = {one.account for one in state.members.values()}

    def append(tx: Transaction) -> None:
        if not tx.execute(
            "update team set seq = ?, head = ? where id = ? and head = ?", (state.seq, state.head, team, given.head)
        ):
            raise _moved_on()
        _store(tx, state, given, now, account)
        if not state.active():
            erase_team(tx, team)

    await service.database.write(append)
    for one in concerned:
        service.notifier.wake(one)
    return Answer(record=LogPage(entries=(), seq=state.seq, head=state.head))


async def own_wraps(service: Service, call: Call) -> Answer:
    """Return the team's keys that are sealed to the caller's account."""
    team, account = call.path["team"], call.caller.account

    def work(tx: Transaction) -> TeamWraps:
        if tx.row("select 1 from team_member where team = ? and account = ?", (team, account)) is None:
            raise no_team()
        rows = tx.rows("select epoch, ct from team_wrap where team = ? and account = ? order by epoch", (team, account))
        return TeamWraps(wraps=tuple(TeamWrap(account=account, epoch=epoch, sealed=ct) for epoch, ct in rows))

    return Answer(record=await service.database.read(work))


async def _checked(service: Service, before: Sequence[bytes], given: TeamAppend) -> TeamState:
    """Return the state after the new entries, which follow, are signed by whoever may, and keep to the limits."""
    policy = service.policy
    if not given.entries or len(before) + len(given.entries) > policy.max_team_entries:
        raise InvalidError(
            f"a team's log may have {policy.max_team_entries} entries, and an append has one at least",
            hint="make a new team",
        )
    state: TeamState = await service.offload(lambda: teams.replay([*before, *given.entries]))
    if len(state.active()) > policy.max_team_members:
        raise InvalidError(f"a team may have {policy.max_team_members} members", hint="make another team")
    people, epochs = _given_keys(given.entries)
    for wrap in given.wraps:
        if not 1 <= len(wrap.sealed) <= MAX_WRAP_BYTES or wrap.account not in state.members or wrap.epoch < 0:
            raise InvalidError("a wrapped key of the team is not valid", hint="update scrubjay")
        if wrap.account not in people and wrap.epoch not in epochs:
            raise InvalidError("a wrapped key is of what the append does not give anybody", hint="update scrubjay")
    return state


def _given_keys(entries: Sequence[bytes]) -> tuple[set[bytes], set[int]]:
    """Return whom new entries let in, who gets every key, and the epochs that they make, whose key everybody gets.

    No other wrap may come with them: any member could else put another in the place of everybody's.
    """
    people: set[bytes] = set()
    epochs: set[int] = set()
    for one in map(teams.read, entries):
        if one.type == TeamEntryType.MEMBER_ADD:
            people.add(one.body[1])
        elif one.type == TeamEntryType.GENESIS:
            epochs.add(0)
        elif one.type in _EPOCH_FIELD:
            epochs.add(one.body[_EPOCH_FIELD[one.type]])
    return people, epochs


def _store(tx: Transaction, state: TeamState, given: TeamAppend, now: Millis, account: bytes) -> None:
    read = [teams.read(data) for data in given.entries]
    tx.many(
        "insert into team_log (team, seq, hash, entry) values (?, ?, ?, ?)",
        [(state.team, one.seq, one.hash, one.data) for one in read],
    )
    held: dict[bytes, int | None] = dict(
        tx.rows("select account, until_seq from team_member where team = ?", (state.team,))
    )
    for member in state.members.values():
        until = None if member.in_force else (held.get(member.account) or state.seq)
        if member.account not in held or held[member.account] != until:
            tx.execute(
                "insert into team_member (team, account, until_seq) values (?, ?, ?)"
                " on conflict (team, account) do update set until_seq = excluded.until_seq",
                (state.team, member.account, until),
            )
    tx.many(
        "insert into team_wrap (team, account, epoch, ct) values (?, ?, ?, ?)"
        " on conflict (team, account, epoch) do update set ct = excluded.ct",
        [(state.team, one.account, one.epoch, one.sealed) for one in given.wraps],
    )
    for one in read:
        audit(tx, account, f"team log {one.type}", now)


def _moved_on() -> LogConflictError:
    return LogConflictError(
        "another member has changed the team meanwhile", hint="read the new entries of its log and try again"
    )
