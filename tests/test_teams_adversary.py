"""What a server that lies, a member who was taken out and a reader cannot do to a team."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared import teams
from scrubjay_shared.envelope import Envelope, Suite, lane_root
from scrubjay_shared.errors import BadSignatureError, InvalidError, RolledBackError, SplitError
from scrubjay_shared.teams import TeamEntryType, TeamRole
from scrubjay_sync import packing
from scrubjay_sync.keys.keypairs import DeviceKeys, signer
from scrubjay_sync.packing import SealContext, Signer
from scrubjay_sync.teams import membership
from scrubjay_sync.teams.keys import wrapped
from sync_devices import Device, World
from team_world import People, alarms, founded, joined, shown, team_note, teams_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    """A server where nobody is yet."""
    async with AsyncExitStack() as stack:
        world = World(path=tmp_path, stack=stack)
        await world.serve()
        stack.push_async_callback(world.database.close)
        yield People(world)


async def put_entry(people: People, team: bytes, data: bytes) -> None:
    """Have the server take an entry into a team's log without looking at it."""
    entry = teams.read(data)

    def work(tx: Transaction) -> None:
        tx.execute(
            "insert into team_log (team, seq, hash, entry) values (?, ?, ?, ?)", (team, entry.seq, entry.hash, data)
        )
        tx.execute("update team set seq = ?, head = ? where id = ?", (entry.seq, entry.hash, team))

    await people.world.database.write(work)


async def cut_log(people: People, team: bytes, seq: int) -> None:
    """Have the server show an older log."""

    def work(tx: Transaction) -> None:
        tx.execute("delete from team_log where team = ? and seq > ?", (team, seq))
        (head,) = tx.row("select hash from team_log where team = ? and seq = ?", (team, seq)) or (b"",)
        tx.execute("update team set seq = ?, head = ? where id = ?", (seq, head, team))
        tx.execute("update team_member set until_seq = null where team = ?", (team,))

    await people.world.database.write(work)


async def put_object(people: People, one: Envelope) -> None:
    """Have the server take an object into a lane without looking at it."""
    team, device, n = one.header.scope, one.header.device, one.header.n_to

    def work(tx: Transaction) -> None:
        tx.execute(
            "insert into team_object (team, device, n, link, size, received, body) values (?, ?, ?, ?, ?, 0, ?)",
            (team, device, n, one.link, len(one.data), one.data),
        )
        tx.execute(
            "insert into team_lane (team, device, n, tip) values (?, ?, ?, ?)"
            " on conflict (team, device) do update set n = excluded.n, tip = excluded.tip",
            (team, device, n, one.link),
        )
        tx.execute("update team set moved = moved + 1 where id = ?", (team,))

    await people.world.database.write(work)


async def crafted(device: Device, team: bytes, *, epoch: int | None = None) -> Envelope:
    """The next object of a device's lane, sealed by hand, whatever it may do: it says something of its own."""
    found = await teams_of(device).follow(team)
    root = lane_root(team, team, device.member.device)
    n, tip = (await device.store.read(lambda q: q.teams.lanes(team))).get(device.member.device, (0, root))
    (last,) = await device.store.read(lambda q: q.ops.unsent(device.store.device, device.store.last_seq - 1, 1))
    at = found.state.epoch if epoch is None else epoch
    place = SealContext(
        account=team,
        scope=team,
        device=device.member.device,
        n=n + 1,
        prev=tip,
        suite=int(Suite.SEALED),
        epoch=at,
        key=found.keys[at],
    )
    made = packing.segments(
        place, [(last.seq, last.data)], Signer(sign=device.member.sign, entropy=device.machine.entropy)
    )
    return made[0].envelope


async def name_device(device: Device, team: bytes) -> None:
    """Have a reader name their device in the team, which the program does for writers only."""

    def draft(found: Any, _: Any) -> membership.Draft:
        own = device.member.state.devices[device.member.device]
        proof = device.member.sign(teams.device_proof(found.team, device.member.account, device.member.device))
        return membership.Draft(
            entries=[(TeamEntryType.DEVICE_ADD, {1: device.member.device, 2: own.sign_pub, 3: proof})]
        )

    await teams_of(device).append(team, draft)


async def refuses_member(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    state = (await teams_of(bob).follow(team)).state
    evil = DeviceKeys.new(people.world.random.randbytes)
    body = {1: b"e" * 16, 2: evil.sign_pub, 3: evil.wrap_pub, 4: int(TeamRole.ADMIN)}
    await put_entry(
        people,
        team,
        teams.entry(
            team,
            seq=state.seq + 1,
            prev=state.head,
            type=TeamEntryType.MEMBER_ADD,
            body=body,
            author=ann.member.account,
            sign=signer(evil.sign_seed),
        ),
    )

    with pytest.raises(BadSignatureError):
        await teams_of(bob).follow(team)
    await team_note(bob, "for ann only")
    await bob.sync()

    assert (await teams_of(bob).pinned(team)).state.members.keys() == {ann.member.account, bob.member.account}  # type: ignore[union-attr]
    assert "bad_signature" in await alarms(bob)
    assert (
        await people.world.database.read(lambda tx: tx.rows("select n from team_object where team = ?", (team,))) == []
    )


async def test_a_server_adds_no_member(people: People) -> None:
    await refuses_member(people)


async def refuses_old_list(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await joined(ann, team, eve, "eve")
    await membership.remove(teams_of(ann), team, eve.member.account)
    await bob.sync()
    seq = (await teams_of(bob).follow(team)).state.seq

    await cut_log(people, team, seq - 1)
    with pytest.raises(RolledBackError):
        await teams_of(bob).follow(team)
    await team_note(bob, "eve must not know")
    await bob.sync()

    assert "rolled_back" in await alarms(bob)
    assert (
        await people.world.database.read(lambda tx: tx.rows("select n from team_object where team = ?", (team,))) == []
    )


async def test_a_server_that_shows_an_old_list_of_members_gets_nothing(people: People) -> None:
    await refuses_old_list(people)


@pytest.mark.slow
async def test_a_server_that_shows_another_log_is_found_out(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await bob.sync()
    await cut_log(people, team, 0)
    # What ann signs on the shorter log is valid by itself.
    await ann.store.write(lambda tx: tx.teams.forget(team))
    teams_of(ann)._pinned.clear()
    words = membership.card_words(await membership.own_card(teams_of(bob)))
    await membership.invite(teams_of(ann), team, "bob", TeamRole.READER, words)
    for _ in range(3):
        await membership.set_role(teams_of(ann), team, bob.member.account, TeamRole.WRITER)
        await membership.set_role(teams_of(ann), team, bob.member.account, TeamRole.READER)

    with pytest.raises(SplitError):
        await teams_of(bob).follow(team)


async def refuses_key(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    found = await teams_of(bob).follow(team)
    evil = wrapped(team, found.state.members[bob.member.account], 0, b"k" * 32)
    await people.world.database.write(
        lambda tx: tx.execute("update team_wrap set ct = ? where account = ?", (evil.sealed, bob.member.account))
    )
    teams_of(bob)._pinned.clear()

    with pytest.raises(BadSignatureError):
        await teams_of(bob).follow(team)


@pytest.mark.slow
async def test_a_server_gives_nobody_a_key_of_its_own(people: People) -> None:
    await refuses_key(people)


async def refuses_reader(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob", TeamRole.READER)
    await name_device(bob, team)
    await team_note(bob, "a reader was here")
    await bob.sync()
    made = await crafted(bob, team)

    (result,) = await bob.machine.cloud.teams.push(team, [made])
    assert result.status == "denied"

    await put_object(people, made)  # a server that lets it through
    await ann.sync()
    assert await shown(ann) == {}
    assert await alarms(ann) == []  # its lane ends before anything: what stands there is nobody's


async def test_what_a_reader_writes_is_refused_by_the_server_and_by_every_client(people: People) -> None:
    await refuses_reader(people)


async def refuses_removed(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await team_note(bob, "before")
    await bob.sync()
    await ann.sync()
    await team_note(bob, "after")
    made = await crafted(bob, team)

    await membership.remove(teams_of(ann), team, bob.member.account)
    (result,) = await bob.machine.cloud.teams.push(team, [made])
    assert result.status == "revoked"

    await put_object(people, made)
    await ann.sync()
    assert set(await shown(ann)) == {"before"}


@pytest.mark.slow
async def test_what_somebody_writes_who_was_taken_out_is_refused_by_the_server_and_by_every_client(
    people: People,
) -> None:
    await refuses_removed(people)


async def refuses_home(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    private = await ann.note("my own")
    await ann.sync()

    def work(tx: Any) -> None:
        from scrubjay.store import MemoryWrite  # noqa: PLC0415

        tx.memories.write(
            [MemoryWrite(memory_id=private, fields={1: "not yours", 4: "project", 5: "proj_team", 14: 1})]
        )
        tx.replication.place({private: team})

    await bob.store.write(work)
    await bob.sync()
    await ann.sync()

    assert await ann.contents() == ["my own"]
    assert await alarms(ann) == ["denied"]


@pytest.mark.slow
async def test_a_member_changes_nothing_that_is_not_the_teams(people: People) -> None:
    await refuses_home(people)


@pytest.mark.slow
async def test_the_server_sees_no_word_of_a_team(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann, "corvids")
    await joined(ann, team, bob, "bob")
    await team_note(ann, "jays cache acorns in October")
    await ann.sync()
    await people.world.database.close()

    held = b"".join(path.read_bytes() for path in (people.world.path / "cloud").rglob("*") if path.is_file())

    for word in (b"acorns", b"corvids", b"proj_team", b"October"):
        assert word not in held


async def survives_wrong_key(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await joined(ann, team, eve, "eve", TeamRole.READER)

    def garbage(found: Any, _: Any) -> membership.Draft:
        epoch, key = found.state.epoch + 1, b"g" * 32
        body = {1: epoch, 2: teams.epoch_commit(epoch, key)}
        own = found.state.members[eve.member.account]
        wraps = [wrapped(team, one, epoch, key if one == own else b"x" * 32) for one in found.state.active()]
        return membership.Draft(entries=[(TeamEntryType.EPOCH, body)], wraps=wraps)

    await teams_of(eve).append(team, garbage)
    await team_note(ann, "held up")
    await ann.sync()
    assert await alarms(ann) == ["bad_signature"]
    assert (
        await people.world.database.read(lambda tx: tx.rows("select n from team_object where team = ?", (team,))) == []
    )

    await membership.remove(teams_of(ann), team, eve.member.account)
    await ann.sync()
    await bob.sync()

    assert set(await shown(bob)) == {"held up"}


@pytest.mark.slow
async def test_who_gives_others_a_wrong_key_is_named_and_can_be_taken_out(people: People) -> None:
    await survives_wrong_key(people)


async def refuses_spoilt_keys(people: People) -> None:
    """A reader appends what a reader may, and with it wraps in the place of everybody's."""
    ann, eve = await people.person("ann"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, eve, "eve", TeamRole.READER)
    before = await ann.machine.cloud.teams.wraps(team)

    def spoil(found: Any, _: Any) -> membership.Draft:
        own = eve.member.state.devices[eve.member.device]
        proof = eve.member.sign(teams.device_proof(team, eve.member.account, eve.member.device))
        body = {1: eve.member.device, 2: own.sign_pub, 3: proof}
        wraps = [wrapped(team, one, 0, b"x" * 32) for one in found.state.active()]
        return membership.Draft(entries=[(TeamEntryType.DEVICE_ADD, body)], wraps=wraps)

    with pytest.raises(InvalidError, match="does not give"):
        await teams_of(eve).append(team, spoil)
    assert await ann.machine.cloud.teams.wraps(team) == before
    await team_note(ann, "goes on")
    await ann.reopen()
    await ann.sync()
    assert await alarms(ann) == []


async def test_a_reader_spoils_nobodys_keys(people: People) -> None:
    await refuses_spoilt_keys(people)


async def refuses_claimed_device(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    second = await people.another("ann")
    evil = DeviceKeys.new(people.world.random.randbytes)

    def claim(_: Any, __: Any) -> membership.Draft:
        proof = signer(evil.sign_seed)(teams.device_proof(team, bob.member.account, second.member.device))
        body = {1: second.member.device, 2: evil.sign_pub, 3: proof}
        return membership.Draft(entries=[(TeamEntryType.DEVICE_ADD, body)])

    await teams_of(bob).append(team, claim)
    await team_note(bob, "as if ann had said so")
    found = await teams_of(bob).follow(team)
    (last,) = await bob.store.read(lambda q: q.ops.unsent(bob.store.device, bob.store.last_seq - 1, 1))
    place = SealContext(
        account=team,
        scope=team,
        device=second.member.device,
        n=1,
        prev=lane_root(team, team, second.member.device),
        suite=int(Suite.SEALED),
        epoch=0,
        key=found.keys[0],
    )
    made = packing.segments(place, [(1, last.data)], Signer(sign=signer(evil.sign_seed), entropy=bob.machine.entropy))
    await put_object(people, made[0].envelope)
    await ann.sync()
    await second.sync()

    assert await shown(ann) == await shown(second) == {}
    assert "bad_signature" in await alarms(ann)
    assert "invalid" in await alarms(second)


@pytest.mark.slow
async def test_nobody_writes_under_the_id_of_another_persons_device(people: People) -> None:
    await refuses_claimed_device(people)
