"""Seeded histories of whole machines, engine and cloud under faults; and bugs planted in the real code, all caught."""

from __future__ import annotations

from functools import partial

import pytest

from simulation import engine, play, snapshots
from simulation.access_mutants import ACCESS_MUTANTS
from simulation.engine_mutants import ENGINE_MUTANTS
from simulation.mutants import Mutant
from simulation.snapshot_mutants import SNAPSHOT_MUTANTS

HISTORIES = 6
MANY = 1_000
"""Five to six minutes of two quiet cores; `make simulate` plays 2,000."""
WITH_SNAPSHOTS = 8
FEW = 30
"""Histories within which a planted bug must be caught."""
QUICK = frozenset(
    {
        "a fork is taken for the same",
        "a new incarnation drops what was not sent",
        "the server takes an object beyond a gap",
        "a new root key is wrapped for the revoked too",
    }
)
"""Planted bugs that are looked for in every run of the tests; all others take longer."""


def test_no_history_breaks_a_law() -> None:
    played = play.play_some(engine.run, range(HISTORIES))

    assert not played.failures, played.report()


@pytest.mark.slow
def test_no_history_of_many_breaks_a_law() -> None:
    played = play.play_all(engine.run, range(HISTORIES, MANY), processes=2)

    assert not played.failures, played.report()


@pytest.mark.slow
def test_no_history_with_snapshots_breaks_a_law() -> None:
    played = play.play_all(engine.run, range(snapshots.FIRST, snapshots.FIRST + WITH_SNAPSHOTS), processes=2)

    assert not played.failures, played.report()


def test_a_seed_plays_the_same_history_byte_for_byte() -> None:
    first, second = (engine.run(3, tracing=True).trace for _ in range(2))

    assert first == second
    assert first


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(planted, id=planted.name, marks=() if planted.name in QUICK else pytest.mark.slow)
        for planted in (*ENGINE_MUTANTS, *ACCESS_MUTANTS, *SNAPSHOT_MUTANTS)
    ],
)
def test_a_planted_bug_is_caught(planted: Mutant) -> None:
    assert play.catch(planted, partial(engine.run, faults=planted.faults or None), histories=FEW) is not None
