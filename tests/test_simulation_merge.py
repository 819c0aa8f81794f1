"""Seeded histories of the merge core under faults: they agree in the end, and every planted bug is caught."""

from __future__ import annotations

import random

import pytest

from simulation import merge, play
from simulation.merge_mutants import MERGE_MUTANTS
from simulation.mutants import Mutant

HISTORIES = 400
MANY = 20_000
"""Two minutes of two quiet cores; `make simulate` plays 100,000."""
PLAYED_TWICE = range(0, HISTORIES, 100)
FEW = 300
"""Histories within which a planted bug must be caught."""


def test_no_history_breaks_a_law() -> None:
    played = play.play_some(merge.run, range(HISTORIES))

    assert not played.failures, played.report()


@pytest.mark.slow
def test_no_history_of_many_breaks_a_law() -> None:
    played = play.play_all(merge.run, range(HISTORIES, MANY), processes=2)

    assert not played.failures, played.report()
    assert played.histories == MANY - HISTORIES


@pytest.mark.parametrize("seed", PLAYED_TWICE)
def test_a_seed_plays_the_same_history_byte_for_byte(seed: int) -> None:
    first, second = (merge.run(seed, tracing=True).trace for _ in range(2))

    assert first == second
    assert first


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(planted, id=planted.name, marks=pytest.mark.slow if place % 6 else ())
        for place, planted in enumerate(MERGE_MUTANTS)
    ],
)
def test_a_planted_bug_is_caught(planted: Mutant) -> None:
    assert play.catch(planted, merge.run, histories=FEW) is not None


def test_a_failing_seed_says_all_that_was_chosen_for_it_and_fails_again() -> None:
    conflicts = next(planted for planted in MERGE_MUTANTS if planted.name == "conflicts are not told")

    with conflicts.planted():
        seed = next(seed for seed in range(FEW) if play.play_some(merge.run, [seed]).failures)
        first, second = (play.play_some(merge.run, [seed]).failures[0].report for _ in range(2))

    assert f"seed={seed}" in first
    assert repr(merge.options_of(seed, random.Random(seed))) in first
    assert first == second


@pytest.mark.parametrize("planted", MERGE_MUTANTS, ids=lambda planted: planted.name)
def test_a_planted_bug_is_taken_out_again(planted: Mutant) -> None:
    def now() -> list[object]:
        return [owner.__dict__[name] for owner, name, _ in planted.sites]

    before = now()

    with planted.planted():
        during = now()

    assert all(one is not other for one, other in zip(before, during, strict=True))
    assert now() == before
