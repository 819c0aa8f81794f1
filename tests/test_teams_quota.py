"""What a team may hold: no more than whoever made it may, in all of their teams together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from scrubjay_cloud.accounts.quotas import set_quota
from scrubjay_sync.teams import membership
from sync_devices import Device, world_at
from team_world import PROJECT, People, alarms, founded, joined, shown, team_note, teams_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with AsyncExitStack() as stack:
        yield People(await stack.enter_async_context(world_at(tmp_path)))


async def allow(people: People, name: str, most: int | None) -> None:
    """Let an account hold so many bytes."""
    await people.world.database.write(lambda tx: set_quota(tx, name, most, people.world.now()))


async def fill(device: Device, text: str) -> None:
    await team_note(device, text)
    await device.sync()


async def test_the_teams_of_one_account_hold_together_what_it_may_and_nobody_elses(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    core = await founded(ann)
    await joined(ann, core, bob, "bob")
    await membership.create(teams_of(ann), "more", ("proj_more",))
    await fill(ann, "the till opens at eight")
    await allow(people, "ann", 3_000)

    large = people.world.random.randbytes(4_000).hex()  # which no compression makes small
    await ann.note(large, scope="project", resource_id="proj_more")
    await ann.sync()
    assert await alarms(ann) == ["quota"]  # another team of hers, and its storage is the same
    await team_note(bob, large)
    await bob.sync()
    assert await alarms(bob) == ["quota"]  # he may hold more: it counts where the team was made

    await allow(people, "ann", 20_000)
    await people.world.settle(ann, bob)
    assert large in await shown(ann)


async def test_a_team_that_is_full_holds_up_nothing_of_ones_own(people: People) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    core = await founded(ann)
    await joined(ann, core, bob, "bob")
    await allow(people, "ann", 1)

    await team_note(bob, "for the team")
    await bob.note("for myself")
    done = await bob.sync()

    assert [type(one).__name__ for one in done.errors] == ["QuotaError"]
    state = await bob.store.read(lambda q: q.replication.state())
    assert state is not None
    assert state.error is None
    assert await bob.machine.cloud.heads()
    assert PROJECT in str(bob.member.scopes.projects)
