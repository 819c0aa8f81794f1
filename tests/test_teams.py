"""Teams: several people, each with an account, share a scope through a server that reads none of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scrubjay_cloud import database
from scrubjay_cloud.accounts.contents import delete_account
from scrubjay_cloud.app import create_app
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.migrate import migrate
from scrubjay_shared.envelope import parse
from scrubjay_shared.errors import DeniedError, UnavailableError
from scrubjay_shared.teams import TeamRole
from scrubjay_sync.account import account_devices
from scrubjay_sync.teams import membership
from scrubjay_sync.teams.words import card_words
from sync_devices import GENEROUS, World
from team_world import People, alarms, founded, joined, shown, team_note, teams_of, told

pytestmark = pytest.mark.anyio


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    """A server where nobody is yet."""
    async with AsyncExitStack() as stack:
        world = World(path=tmp_path, stack=stack)
        await world.serve()
        stack.push_async_callback(world.database.close)
        yield People(world)


async def test_two_people_share_a_scope_both_write_and_both_show_the_same(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")

    first = await team_note(ann, "the build takes four minutes")
    await ann.sync()
    await bob.sync()
    await team_note(bob, "deploy on Tuesdays")
    await bob.edit(first, "the build takes five minutes")
    await bob.sync()
    await ann.sync()

    expected = {"the build takes five minutes", "deploy on Tuesdays"}
    assert set(await shown(ann)) == set(await shown(bob)) == expected
    assert await alarms(ann) == await alarms(bob) == []


@pytest.mark.slow
async def test_what_others_write_counts_as_an_agents_under_the_teams_names(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")

    written = await team_note(ann, "I always review before lunch", trust="user", layer="identity")
    await ann.rename(written, "reviews")
    await ann.sync()
    await bob.sync()

    layers = await bob.store.read(lambda q: q.fetch("select layer from memory where id = ?", (written,)))
    names = await bob.store.read(lambda q: q.fetch("select name from name where memory_id = ?", (written,)))
    assert await shown(bob) == {"I always review before lunch": "agent"}
    assert layers == [("archive",)]
    assert names == [("core/reviews",)]
    assert await shown(ann) == {"I always review before lunch": "user"}


@pytest.mark.slow
async def test_the_conversation_stays_with_its_person(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    ann_second = await people.another("ann")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")

    await ann.say("what do you think of bob", project="proj_team")
    await team_note(ann, "bob owns the build")
    await ann.sync()
    await bob.sync()
    await ann_second.sync()

    count = "select count(*) from event"
    assert await bob.store.read(lambda q: q.fetch(count)) == [(0,)]
    assert await ann_second.store.read(lambda q: q.fetch(count)) == [(1,)]
    assert set(await shown(bob)) == set(await shown(ann_second)) == {"bob owns the build"}


@pytest.mark.slow
async def test_all_devices_of_a_person_are_in_and_what_they_wrote_is_theirs(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await team_note(ann, "one")
    await ann.sync()

    second = await people.another("ann")
    await second.sync()
    await team_note(second, "two")
    await second.sync()
    await ann.sync()
    await bob.sync()

    assert await shown(second) == {"one": "user", "two": "user"}
    assert await shown(ann) == {"one": "user", "two": "user"}
    assert await shown(bob) == {"one": "agent", "two": "agent"}
    assert await ann.digest() == await second.digest()


@pytest.mark.slow
async def test_a_readers_changes_stay_on_the_machine_until_they_may_write(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob", TeamRole.READER)
    written = await team_note(ann, "the build takes four minutes")
    await ann.sync()
    await bob.sync()

    await bob.edit(written, "the build takes an hour")
    await bob.sync()
    await ann.sync()

    assert set(await shown(ann)) == {"the build takes four minutes"}
    assert await alarms(bob) == ["denied"]

    await membership.set_role(teams_of(ann), team, bob.member.account, TeamRole.WRITER)
    await bob.sync()
    await ann.sync()

    assert set(await shown(ann)) == {"the build takes an hour"}


async def test_who_is_taken_out_reads_and_writes_nothing_after(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await joined(ann, team, eve, "eve")
    before = await team_note(eve, "eve was here")
    await eve.sync()
    await ann.sync()
    keys = dict((await teams_of(eve).follow(team)).keys)

    await membership.remove(teams_of(ann), team, eve.member.account)
    await team_note(ann, "eve must not know")
    await ann.sync()
    await eve.edit(before, "eve again")
    await eve.sync()
    await bob.sync()

    found = await teams_of(ann).follow(team)
    assert set(await shown(bob)) == set(await shown(ann)) == {"eve was here", "eve must not know"}
    assert set(await shown(eve)) == {"eve again"}
    assert found.state.epoch == 1
    assert found.keys[1] not in keys.values()
    assert any("you were taken out" in one for one in await told(eve))
    assert any("was taken out" in one for one in await told(bob))
    assert eve.member.scopes.teams == {}


@pytest.mark.slow
async def test_leaving_is_seen_by_all_and_ends_with_a_key_that_the_one_who_left_lacks(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await joined(ann, team, eve, "eve")

    await membership.leave(teams_of(eve), team)
    await team_note(bob, "after she left")
    await bob.sync()
    await ann.sync()

    found = await teams_of(ann).follow(team)
    assert [one.account for one in found.state.active()] == [ann.member.account, bob.member.account]
    assert (found.state.epoch, found.state.key_due) == (1, False)
    assert set(await shown(ann)) == {"after she left"}
    for device in (ann, bob):
        assert any(" left, by " in one for one in await told(device))
    with pytest.raises(DeniedError):
        await eve.machine.cloud.teams.heads(team)


@pytest.mark.slow
async def test_a_device_that_is_shut_out_of_its_account_is_shut_out_of_the_team(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    stolen = await people.another("bob")
    await stolen.sync()
    await team_note(stolen, "before")
    await stolen.sync()
    await bob.sync()
    old = teams_of(stolen).identities

    ends = await account_devices.ends_of(bob.store, bob.member.state, stolen.member.device)
    await account_devices.revoke(
        bob.member, bob.machine.cloud, stolen.member.device, ends=ends, entropy=bob.machine.entropy
    )
    await bob.sync()
    await team_note(ann, "after")
    await ann.sync()
    await bob.sync()

    found = await teams_of(ann).follow(team)
    assert not found.state.devices[stolen.member.device].in_force
    assert found.state.members[bob.member.account].sign_pub not in {one.sign_pub for one in old}
    assert found.state.epoch == 1
    assert set(await shown(bob)) == set(await shown(ann)) == {"before", "after"}


@pytest.mark.slow
async def test_words_of_another_card_let_nobody_in(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await bob.sync()
    await eve.sync()
    await membership.own_card(teams_of(bob))
    words = card_words(await membership.own_card(teams_of(eve)))

    with pytest.raises(DeniedError):
        await membership.invite(teams_of(ann), team, "bob", TeamRole.WRITER, words)

    assert len((await teams_of(ann).follow(team)).state.members) == 1


@pytest.mark.slow
async def test_nobody_comes_into_a_team_without_the_words_of_who_let_them_in(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await bob.sync()
    words = card_words(await membership.own_card(teams_of(bob)))
    await membership.invite(teams_of(ann), team, "bob", TeamRole.WRITER, words)

    with pytest.raises(DeniedError):
        await membership.join(teams_of(bob), "core", words, ())

    assert bob.member.scopes.teams == {}


@pytest.mark.slow
async def test_what_was_sealed_before_a_new_key_is_sealed_again_and_comes_once(people: People) -> None:
    ann, bob, eve = await people.person("ann"), await people.person("bob"), await people.person("eve")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await joined(ann, team, eve, "eve")
    await bob.sync()

    async def no_push(request: Any, answer: Any) -> Any:
        if request.url.path.endswith(f"{team.hex()}/push"):
            raise httpx2.ConnectError("away")
        return await answer()

    await team_note(bob, "written before")
    bob.network.fault = no_push
    with pytest.raises(UnavailableError):
        await bob.sync()
    await bob.reopen()  # a crash: what is sealed is in the file
    bob.network.fault = None
    await membership.remove(teams_of(ann), team, eve.member.account)
    await bob.sync()
    await bob.sync()
    await ann.sync()

    rows = await people.world.database.read(
        lambda tx: tx.rows("select body from team_object where team = ? order by n", (team,))
    )
    assert [parse(body).header.epoch for (body,) in rows] == [1]
    assert set(await shown(ann)) == {"written before"}
    assert await alarms(bob) == []


@pytest.mark.slow
async def test_an_account_that_is_deleted_leaves_nothing_behind_and_ends_the_teams_of_nobody(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    alone = (await membership.create(teams_of(bob), "alone", ())).team

    await people.world.database.write(lambda tx: delete_account(tx, bob.member.account))

    def left(tx: Transaction) -> list[tuple[str, int]]:
        counts = []
        for table in ("team_card", "team_wrap", "team_member"):
            (count,) = tx.row(f"select count(*) from {table} where account = ?", (bob.member.account,)) or (0,)
            counts.append((table, count))
        return [*counts, *(("team", len(row[0])) for row in tx.rows("select id from team where id = ?", (alone,)))]

    assert await people.world.database.read(left) == [("team_card", 0), ("team_wrap", 0), ("team_member", 0)]
    assert (await teams_of(ann).follow(team)).state.member(bob.member.account) is not None
    await membership.remove(teams_of(ann), team, bob.member.account)
    assert [one.account for one in (await teams_of(ann).follow(team)).state.active()] == [ann.member.account]


@pytest.mark.slow
async def test_teams_on_postgresql_and_moved_there(people: People, postgres: str) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await team_note(ann, "written before the move")
    await ann.sync()

    world = people.world
    moved = await database.open(postgres, now=world.now, entropy=world.random.randbytes)
    world.stack.push_async_callback(moved.close)
    await migrate(world.database, moved)
    world.transport = httpx2.ASGITransport(
        app=create_app(moved, world.settings, now=world.now, entropy=world.random.randbytes, policy=GENEROUS)
    )
    await team_note(bob, "written after it")
    await bob.sync()
    await ann.sync()
    await membership.set_role(teams_of(ann), team, bob.member.account, TeamRole.READER)
    await bob.sync()
    await membership.remove(teams_of(ann), team, bob.member.account)
    await bob.sync()

    assert set(await shown(ann)) == set(await shown(bob)) == {"written before the move", "written after it"}
    assert bob.member.scopes.teams == {}
    assert await alarms(ann) == await alarms(bob) == []
