"""A month of an agent's work leaves no junk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Opener
from scrubjay.policy import DEFAULT
from scrubjay_bench import junk, plots
from scrubjay_bench.junk_cli import table

pytestmark = pytest.mark.anyio

OWN = Path(__file__).parents[1] / "bench" / "devmem"


@pytest.mark.slow
async def test_a_month_with_recall_in_every_turn_leaves_no_junk(opened: Opener) -> None:
    clock = junk.Clock()
    async with opened(now=clock) as service:
        found = await junk.lived(service, junk.month([junk.of_devmem(OWN, 200)]), clock)

    assert found.handed >= 5, "recall handed something over"
    assert found.memories >= 4
    assert (found.exact, found.echoes, found.echoed_sources, found.junk) == (0, 0, 0, 0)
    assert found.near <= 0.01 * found.memories
    control = junk.Control(with_subtraction=0, without=1)
    assert "| exact duplicates in a scope | 0 |" in table(found, control)
    assert junk.failures(found, control) == []
    assert plots.growth("A month", found.sizes).startswith("<svg")


def test_every_third_turn_says_nothing_and_each_session_stays_together() -> None:
    turns = [junk.Turn("shop", f"s{number // 4}", "user", f"turn {number}") for number in range(12)]

    found = junk.month([turns[:8], turns[8:]])

    assert sum(turn.text in junk.EMPTY for turn in found) == len(found) // junk.EMPTY_EVERY
    assert [turn.text for turn in found if turn.text not in junk.EMPTY] == [
        turn.text for turn in (*turns[:4], *turns[8:], *turns[4:8])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("subtracts", [True, False])
async def test_planted_echoes_are_learned_only_without_the_subtraction(opened: Opener, *, subtracts: bool) -> None:
    clock = junk.Clock()
    async with opened(now=clock, policy=junk.comparing(DEFAULT, subtracts=subtracts)) as service:
        assert bool(await junk.echoes_of(service, clock)) is not subtracts


def test_a_check_names_what_is_not_as_it_should_be() -> None:
    good = junk.Junk(
        turns=9,
        handed=3,
        memories=200,
        exact=0,
        near=5,
        near_by_meaning=2,
        echoes=0,
        echoed_sources=0,
        junk=0,
        sizes=(),
    )
    seen = junk.Control(with_subtraction=0, without=2)

    assert junk.failures(good, seen) == []
    for bad, control in (
        (replace(good, exact=1), seen),
        (replace(good, near_by_meaning=3), seen),
        (replace(good, near_by_meaning=None), seen),
        (replace(good, echoes=1), seen),
        (replace(good, junk=1), seen),
        (replace(good, handed=0), seen),
        (good, junk.Control(with_subtraction=1, without=2)),
        (good, junk.Control(with_subtraction=0, without=0)),
    ):
        assert len(junk.failures(bad, control)) == 1
