"""Playing many seeds at once, and trying a planted bug until a law catches it."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Protocol

from simulation.laws import BrokenLawError, require
from simulation.mutants import Mutant


class Told(Protocol):
    """A history that was played to its end."""

    trace: list[str] | None

    def tally(self) -> Counter[str]:
        """Return what it adds to the figures."""


Play = Callable[..., Told]
"""Plays the history of a seed, and traces it when told (`tracing=True`); raises when a law is broken."""

TWICE = 100
"""One seed of so many is played twice, and must take the same course byte for byte."""
CHUNK = 50
"""Seeds that a process plays between two reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A seed whose history broke a law or the code, with all that is needed to see it again."""

    seed: int
    report: str


@dataclass(slots=True, kw_only=True)
class Played:
    """What came of some seeds: how many, what they added up to, and those that failed."""

    histories: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def report(self) -> str:
        """Return the first failures as text."""
        return "\n\n".join(f"seed {failure.seed}:\n{failure.report}" for failure in self.failures[:3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """How a planted bug was found: by which seed, after how many histories, by what."""

    name: str
    histories: int
    law: str


def quiet() -> None:
    """Have this process log nothing: of thousands of planned faults every one would be told."""
    logging.disable(logging.CRITICAL)


def play_some(play: Play, seeds: Iterable[int]) -> Played:
    """Play some seeds one after another."""
    played = Played()
    for seed in seeds:
        played.histories += 1
        try:
            if seed % TWICE:
                played.tally += play(seed).tally()
            else:
                first, second = (play(seed, tracing=True) for _ in range(2))
                require("a seed plays one history", f"seed {seed}", holds=first.trace == second.trace)
                played.tally += first.tally()
        except Exception as error:  # noqa: BLE001 - a history may fail in any way; all of it is reported
            played.failures.append(Failure(seed=seed, report="".join(traceback.format_exception(error))))
    return played


def play_all(
    play: Play, seeds: Sequence[int], *, processes: int, on_progress: Callable[[int], None] = lambda _: None
) -> Played:
    """Play seeds in several processes. `on_progress` hears how many are done."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    every = Played()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=quiet) as pool:
        for part in pool.map(partial(play_some, play), chunks):
            every.histories += part.histories
            every.tally += part.tally
            every.failures += part.failures
            on_progress(every.histories)
    return every


def catch(planted: Mutant, play: Play, *, histories: int) -> Caught | None:
    """Play with a planted bug until something catches it; None when it survives that many histories.

    A history that fails without the bug too says nothing about it.
    """
    for played in range(histories):
        seed = planted.first + played
        with planted.planted():
            law = _broken(play, seed)
        if law and not _broken(play, seed):
            return Caught(name=planted.name, histories=played + 1, law=law)
    return None


def _broken(play: Play, seed: int) -> str:
    """Return what a history broke: a law, or the code; "" when nothing."""
    try:
        play(seed)
    except BrokenLawError as error:
        return str(error.law)
    except Exception as error:  # noqa: BLE001 - a bug may also make the code fail
        return type(error).__name__
    return ""
