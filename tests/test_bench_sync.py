"""The benchmarks of sync and cloud at tiny sizes: every figure they name comes, and comes from real parts.

How fast anything was is not looked at.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scrubjay.store import Store
from scrubjay_bench import bootstrap, bootstrap_floor, cli, cloud_rates, clouds, longpolls, sealing, visible
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_shared import account, ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.records import EventType

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counts open files and ports as Linux does")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """One round, and nothing outside the test's folder."""
    return Plan(models_dir=tmp_path / "models", model="none", keep=tmp_path / "keep", rounds=1)


def check_table(figures: list[Figure]) -> dict[str, Figure]:
    """Return the figures by name; each once, and each floor beside what names it."""
    found = {figure.name: figure for figure in figures}
    assert len(found) == len(figures)
    assert {figure.floor for figure in figures if figure.floor} <= found.keys()
    assert all(figure.value >= 0 for figure in figures)
    return found


# Sealing


def test_sealing_gives_every_figure_and_packs_take_the_fewest_bytes() -> None:
    found = check_table(sealing.measured(1, 400))

    assert found["size.alone"].value > found["size.live"].value > found["size.packed"].value
    assert found["size.packed"].goal == sealing.BYTES_GOAL


def test_the_gate_s_ratio_is_of_the_same_payloads() -> None:
    rounds = sealing.gate(1)

    assert rounds.ratio("seal.upload", ["floor.seal"], rate=True) > 0


def test_ops_are_events_that_another_device_would_take_in() -> None:
    made = [ops.decode(data, device="00" * 16, seq=at + 1) for at, data in enumerate(sealing.event_ops(5, 1))]

    assert [ops.problem(op) for op in made] == [""] * 5
    assert {ops.event_of(op).type for op in made} == {EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE}
    assert len({op.op_id for op in made}) == 5


@pytest.mark.parametrize("searchable", [False, True])
def test_a_log_that_benchmarks_sign_up_with_adds_up(searchable: bool) -> None:  # noqa: FBT001
    [author], entries = clouds.authors(1, searchable=searchable)

    state = account.replay(entries)

    assert state.scopes[author.scope].suite == author.suite
    assert [one.suite for one in state.scopes.values()].count(Suite.SEALED) == 1
    assert len(state.scopes) == 1 + searchable


def test_packing_live_segments_keeps_every_op_in_its_place() -> None:
    author = clouds.authors(1)[0][0]
    data = list(sealing.event_ops(300, 2))
    objects = [author.made([one])[0].envelope for one in data]

    packs = sealing.packed(author, objects)

    assert len(packs) < len(objects)
    assert (packs[0].header.n_from, packs[-1].header.n_to) == (1, 300)
    entries = list(itertools.chain.from_iterable(sealing.packing.opened(one, author.secret).entries for one in packs))
    assert entries == [(at + 1, one) for at, one in enumerate(data)]


# The first store


@pytest.mark.anyio
async def test_a_kept_store_is_written_by_the_store_itself_and_made_once(plan: Plan) -> None:
    path = plan.keep / "first" / "memory.db"
    await bootstrap._fill(path, 30)

    store = await Store.open(path, now=lambda: Millis(1), entropy=bytes)
    try:
        assert (await store.read(lambda q: q.fetch("select count(*) from event")))[0][0] == 30
        assert (await store.read(lambda q: q.fetch("select count(*) from op where seq between 1 and 30")))[0][0] == 30
    finally:
        await store.close()


@pytest.mark.anyio
async def test_the_floor_inserts_all_rows_of_the_first_store(plan: Plan, tmp_path: Path) -> None:
    path = plan.keep / "first" / "memory.db"
    await bootstrap._fill(path, 30)
    rounds = Rounds()

    bootstrap_floor.measure(rounds, path, tmp_path / "bare.db", 30)

    bare = bootstrap_floor.driver.connect(str(tmp_path / "bare.db"))
    counts = [bare.execute(f"select count(*) from {table}").fetchone()[0] for table in ("event", "op")]
    bare.close()
    assert counts == [30, 30]
    assert rounds.values("floor.cpu")[0] > 0


# The command


def test_every_section_of_sync_is_a_command_of_the_program() -> None:
    sections = [name for name, (title, _) in cli.SECTIONS.items() if title.startswith("Sync: ")]

    assert sections == [
        "sealing", "cloud", "longpolls", "visible", "bootstrap-10k", "bootstrap-100k", "bootstrap-1m"
    ]  # fmt: skip
    assert set(cli.LONGEST) <= cli.SECTIONS.keys()


def test_a_section_whose_library_is_missing_says_what_to_install(plan: Plan) -> None:
    measure = cli._synced("no_such_module")

    with pytest.raises(NotFoundError, match="not installed") as caught:
        measure(plan)

    assert "scrubjay[sync,cloud]" in caught.value.hint


# Real processes


@pytest.mark.slow
@LINUX
def test_the_service_is_measured_on_both_databases(plan: Plan) -> None:
    load = cloud_rates.Load(
        accounts=4, devices=2, each=2, pace=20, fast=20, seconds=0.2, batches=4, batch=3, pages=1, stock=1, large=1
    )

    found = check_table(cloud_rates.measured(plan, load))

    for kind in ("sqlite", "postgres"):
        assert found[f"push.{kind}.many"].floor == f"floor.push.{kind}"
        assert found[f"pull.{kind}.objects"].value > 0
    assert found["push.replicated.p50"].floor == "push.unreplicated.p50"


@pytest.mark.slow
@LINUX
def test_long_polls_wait_while_the_service_is_weighed(plan: Plan) -> None:
    found = check_table(longpolls.measured(plan, accounts=2, tokens=3, window_s=0.2))

    assert found["longpolls.memory"].goal == longpolls.GOAL_MB
    assert found["longpolls.memory"].value > 20


@pytest.mark.slow
@LINUX
def test_an_edit_is_waited_for_on_the_other_machine(plan: Plan) -> None:
    found = check_table(visible.measured(plan, visible.Load(edits=2, writes=5)))

    assert found["visible.p50"].samples == 2
    assert {f"write.{state}.times.p99" for state in visible.STATES} <= found.keys()


@pytest.mark.slow
@LINUX
def test_a_new_machine_gets_all_of_an_account(plan: Plan) -> None:
    twice = replace(plan, rounds=2)

    found = check_table(bootstrap.measured(twice, 300, "tiny"))

    assert found["bootstrap.tiny.wall"].rounds == 2
    assert found["bootstrap.tiny.wall"].floor == "floor.bootstrap.tiny.wall"
    assert found["bootstrap.tiny.memory.peak"].value >= found["bootstrap.tiny.memory.before"].value
    assert len(list(plan.keep.glob("sync-300-*"))) == 1
