"""Who comes to read what is written from now on: scopes, teams and lanes that somebody with a device hands to others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from adversary import Thief
from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import BadSignatureError, InvalidError, ScrubjayError
from scrubjay_shared.teams import TeamDevice, TeamRole
from scrubjay_sync.account import account_scopes, limited_devices
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.engine import checkpoints
from scrubjay_sync.engine.results import Tally
from scrubjay_sync.packing import Checkpoint
from scrubjay_sync.teams import lanes, membership
from scrubjay_sync.teams.words import card_words
from sync_devices import Device, World, world_at
from team_world import PROJECT, People, founded, joined, team_note, teams_of, told

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(world_at(tmp_path))


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with AsyncExitStack() as stack:
        yield People(await stack.enter_async_context(world_at(tmp_path)))


async def with_nothing_to_tell(world: World, *devices: Device) -> None:
    """Have devices sync until they know each other, and their person say that they have read all of it."""
    await world.settle(*devices)
    for one in devices:
        await one.engine.acknowledge()


async def bind(device: Device, scope: bytes, project: str) -> None:
    """Send what is first written about a project to a scope that is there: a change of the keyring alone."""
    member: Member = device.member
    await member.append(
        device.machine.cloud,
        lambda _, ring: Draft(
            keyring=ring.with_scope(
                scope, replace(ring.scopes[scope], projects=(*ring.scopes[scope].projects, project))
            )
        ),
    )


# --- scopes -----------------------------------------------------------------------------------------------------------


async def test_a_scope_that_the_server_reads_is_told_on_every_device_with_its_author_and_its_projects(
    world: World,
) -> None:
    owner, stolen = await world.device(), await world.device()
    await with_nothing_to_tell(world, owner, stolen)

    await account_scopes.create_scope(
        stolen.member, stolen.machine, name="team", suite=Suite.OPEN, projects=[PROJECT], space="m"
    )
    await owner.sync()

    made, bound = await owner.changes()
    assert "the server can read" in made
    assert f"by device {stolen.member.device.hex()[:8]}" in made
    assert PROJECT in bound
    assert "the server" in bound
    assert len(await stolen.changes()) == 2


async def test_a_project_that_goes_to_what_the_server_or_a_limited_device_reads_is_told(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    create, random = account_scopes.create_scope, world.random.randbytes
    searchable = await create(owner.member, owner.machine, name="open", suite=Suite.OPEN, space="m")
    given = await create(owner.member, owner.machine, name="ci", suite=Suite.SEALED)
    own = await create(owner.member, owner.machine, name="own", suite=Suite.SEALED)
    await limited_devices.create_limited(
        owner.member, owner.machine.cloud, name="runner", scopes=[given], read_only=True, entropy=random
    )
    await with_nothing_to_tell(world, owner, stolen)

    await bind(stolen, own, "proj_kept")
    await owner.sync()
    assert await owner.changes() == []  # nobody reads that who did not read it before
    await bind(stolen, searchable, "proj_open")
    await bind(stolen, given, "proj_ci")
    await owner.sync()

    first, second = sorted(await owner.changes(), key=lambda words: "proj_ci" in words)
    assert "proj_open" in first
    assert "the server" in first
    assert "proj_ci" in second
    assert "runner" in second
    await owner.reopen()
    await owner.engine.acknowledge()
    await owner.sync()
    assert await owner.changes() == []


async def test_a_scope_that_somebody_deletes_is_told(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    scope = await account_scopes.create_scope(owner.member, owner.machine, name="own", suite=Suite.SEALED)
    await with_nothing_to_tell(world, owner, stolen)
    await account_scopes.delete_scope(stolen.member, stolen.machine.cloud, scope)
    await owner.sync()
    (words,) = await owner.changes()
    assert "a scope was deleted" in words


async def test_a_machine_that_comes_in_is_told_of_nothing_that_was_bound_before(world: World) -> None:
    owner = await world.device()
    await account_scopes.create_scope(
        owner.member, owner.machine, name="team", suite=Suite.OPEN, projects=[PROJECT], space="m"
    )
    await owner.sync()
    later = await world.device()
    await world.settle(later)
    assert await later.changes() == []


# --- teams ------------------------------------------------------------------------------------------------------------


async def test_a_team_that_a_thief_made_with_somebody_of_his_own_in_it_is_told_on_the_other_devices(
    people: People,
) -> None:
    ann, mallory = await people.person("ann"), await people.person("mallory")
    stolen = await people.another("ann")
    await with_nothing_to_tell(people.world, ann, stolen)
    await mallory.sync()

    team = await founded(stolen, "core")
    words = card_words(await membership.own_card(teams_of(mallory)))
    proof = await membership.invite(teams_of(stolen), team, "mallory", TeamRole.READER, words)
    await membership.join(teams_of(mallory), "hers", proof, ())
    await ann.sync()

    said = await told(ann)
    assert any("mallory" in one and "you are in team core" in one for one in said)
    assert any(PROJECT in one and "core" in one for one in said)


async def test_a_team_that_one_has_joined_before_is_no_news_on_a_machine_that_comes_in_later(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    team = await founded(ann)
    await joined(ann, team, bob, "bob")
    await team_note(ann, "the till opens at eight")
    later = await people.another("bob")
    await people.world.settle(ann, bob, later)
    assert await told(later) == []


async def test_nobody_in_a_team_writes_under_the_id_of_an_instance_of_ones_limited_device(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    world = people.world
    ci = await account_scopes.create_scope(ann.member, ann.machine, name="ci", suite=Suite.SEALED)
    made = await limited_devices.create_limited(
        ann.member, ann.machine.cloud, name="runner", scopes=[ci], read_only=False, entropy=world.random.randbytes
    )
    team = await founded(ann)
    found = await joined(ann, team, bob, "bob")
    claimed = account_log.instance_of(made.device, bytes(8))  # which the server knows, and may tell
    known = TeamDevice(id=claimed, account=bob.member.account, sign_pub=bytes(32))
    told_of = replace(found, state=replace(found.state, devices={**found.state.devices, claimed: known}))

    with pytest.raises(BadSignatureError, match="not theirs"):
        lanes._device(teams_of(ann), told_of, claimed)


# --- lanes ------------------------------------------------------------------------------------------------------------


async def test_nobody_takes_over_the_lane_of_a_device_that_is_in_force(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    await world.settle()
    thief = await Thief.at(stolen.machine, stolen.member)
    home, victim = owner.member.home, owner.member.device

    entry = thief.entry(EntryType.LANE_ADOPT, {1: home, 2: victim, 3: thief.device})
    with pytest.raises(InvalidError, match="in force"):
        account_log.extended(thief.states, [entry])
    with pytest.raises(InvalidError):
        await thief.send(entry)


async def test_no_limited_device_and_nobody_else_than_the_author_takes_a_lane_over(world: World) -> None:
    owner, other = await world.device(), await world.device()
    random = world.random.randbytes
    ci = await account_scopes.create_scope(owner.member, owner.machine, name="ci", suite=Suite.SEALED)
    made = await limited_devices.create_limited(
        owner.member, owner.machine.cloud, name="runner", scopes=[ci], read_only=False, entropy=random
    )
    await world.settle()
    thief = await Thief.at(other.machine, other.member)

    for adopter, why in ((made.device, "did not make"), (owner.member.device, "did not make")):
        entry = thief.entry(EntryType.LANE_ADOPT, {1: ci, 2: made.device, 3: adopter})
        with pytest.raises(ScrubjayError, match=why):
            account_log.extended(thief.states, [entry])
    own = thief.entry(EntryType.LANE_ADOPT, {1: ci, 2: made.device, 3: thief.device})
    assert account_log.extended(thief.states, [own])[-1].adopters == {(ci, made.device): (thief.device,)}


# --- what a limited device says of the server -------------------------------------------------------------------------


async def test_a_limited_device_accuses_no_server_of_what_nobody_can_hold_against_it(world: World) -> None:
    owner = await world.device()
    ci = await account_scopes.create_scope(owner.member, owner.machine, name="ci", suite=Suite.SEALED)
    made = await limited_devices.create_limited(
        owner.member,
        owner.machine.cloud,
        name="runner",
        scopes=[ci],
        read_only=False,
        entropy=world.random.randbytes,
    )
    await world.settle()
    claim = Checkpoint(at=world.now(), heads={}, log_seq=1 << 40, log_head=bytes(32))

    await checkpoints.compare(owner.engine.context, made.device, claim, Tally())
    assert await owner.alarms() == []

    held = replace(claim, log_seq=owner.member.state.seq)
    await checkpoints.compare(owner.engine.context, made.device, held, Tally())
    (told,) = [one for one in await owner.store.read(lambda q: q.replication.alarms()) if one.code == "split"]
    assert "limited device, lies" in told.hint
