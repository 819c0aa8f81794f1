"""Playing many histories on all cores and writing docs/reliability.md: every figure in it comes from one such run."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import kill_rounds
from simulation import engine, merge, snapshots
from simulation.access_mutants import ACCESS_MUTANTS
from simulation.engine_mutants import ENGINE_MUTANTS
from simulation.merge_mutants import MERGE_MUTANTS
from simulation.mutants import Mutant
from simulation.play import Caught, Play, Played, catch, play_all, quiet
from simulation.snapshot_mutants import SNAPSHOT_MUTANTS

MUTANT_HISTORIES = 300
"""Histories that a planted bug is given to show itself."""

HEAD = """# Reliability

How the end-to-end encrypted sync of scrubjay (beta) is tested for the faults it must survive. The figures below were
written by one run of

    {command}

on {machine}, Python {python}, SQLite {sqlite}, {processes} processes. The same command plays the same histories: a seed
decides everything that happens in one, and a seed that fails prints all that was chosen for it. `tests/simulation/` is
the code, `tests/simulation/laws.py` a second, independent reading of the merge rules.

## Three levels

**Merge histories** (`tests/simulation/merge.py`) drive the real merge core and clock: two to eight devices write, hear of
each other through a server that loses, repeats, delays and reorders, and must show the same in the end.

**Engine histories** (`tests/simulation/engine.py`) drive everything: real stores on disk, the real sync engine, real
encryption, and the real cloud application over its own database, in one thread. Clock, randomness, sleep and network
are the simulation's, which runs one step of one device at a time; others act between its requests and its reads. One
history of a hundred is played twice, and takes the same course byte for byte.

**Kill rounds** (`tests/kill_rounds.py`) run real daemons, a real service and its litestream as processes, and kill them;
what dies when is the seed's choice, what happens then is the system's.
"""

LAWS = """## What must hold

| Law | Meaning |
|---|---|
| I1 | once all have synced, every device shows the same |
| I2 | nothing is lost that a living device or the server still had; losing edits are listed, never dropped |
| I3 | what was forgotten is never seen again |
| I4 | an edit wins at once over what its writer had seen |
| I5 | counters are exact |
| I6 | after a crash, a device shows what it showed before |
| I7 | "synced" is never said of what the server does not have |
| I8 | no lane ever holds two different objects at one place, nor an op twice |
| I9 | clocks only rise and do not run away; no second root key for an account |
| I11 | no plaintext in anything the server holds or the network carries |
| I12 | a server that rolls back, forks or withholds is reported |
| I14 | with the faults off, everything is everywhere within a few rounds |
| A1 | nobody reads without having been let in by a person: with all that an attacker has, and all that the server has |
| A2 | nobody writes outside of its scope or above its trust |
| A3 | whoever changed who is in is named to every device |
| S1 | what a snapshot says and no lane does is thrown away |
| S2 | whoever made a snapshot that lies is named |
| S3 | a snapshot that no full device in force has signed is not believed |

In half of the engine histories somebody attacks (`tests/simulation/adversaries.py`): a thief with an unlocked device for
an hour, somebody with the password, a server that mints an account or serves another log, a limited device that
oversteps. Seeds from 10,000 on are of histories in which machines make snapshots and new ones begin with them
(`tests/simulation/snapshots.py`), beside a server or a device that lies about them. In merge histories devices empty what was
superseded, and some writes bear stamps that no clock has.

Known and left (docs/decisions.md, on emptying): where an edit is lost with its only machines after another one had erased what it
replaced, and the server is set back to before that, an open conflict is listed on some devices only. What shows is the same. One
merge history in 100,000 comes to that, seed 82,105.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One kind of history: how it is played, how many were, and the bugs planted in it."""

    title: str
    play: Play
    seeds: Sequence[int]
    mutants: tuple[Mutant, ...]


def main(arguments: Sequence[str]) -> int:
    """Play histories and planted bugs; return 1 when a law was broken or a bug survived."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--merge", type=int, default=100_000, help="merge histories to play")
    parser.add_argument("--engine", type=int, default=2_000, help="engine histories to play")
    parser.add_argument("--snapshots", type=int, default=200, help="engine histories with snapshots to play")
    parser.add_argument("--kills", type=int, default=100, help="rounds of kill -9 over real processes to play")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", type=Path, help="write the figures to this file")
    chosen = parser.parse_args(arguments)
    quiet()
    levels = (
        Level(
            title="Merge histories",
            play=merge.run,
            seeds=range(chosen.first, chosen.first + chosen.merge),
            mutants=MERGE_MUTANTS,
        ),
        Level(
            title="Engine histories",
            play=engine.run,
            seeds=range(chosen.first, chosen.first + chosen.engine),
            mutants=(*ENGINE_MUTANTS, *ACCESS_MUTANTS),
        ),
        Level(
            title="Engine histories with snapshots",
            play=engine.run,
            seeds=range(snapshots.FIRST + chosen.first, snapshots.FIRST + chosen.first + chosen.snapshots),
            mutants=SNAPSHOT_MUTANTS,
        ),
    )
    text = [
        HEAD.format(
            command=(
                f"make simulate ARGS='--merge {chosen.merge} --engine {chosen.engine} --snapshots {chosen.snapshots}"
                f" --kills {chosen.kills}'"
            ),
            machine=f"{os.cpu_count()} cores ({platform.machine()})",
            python=platform.python_version(),
            sqlite=_sqlite(),
            processes=chosen.processes,
        ),
        LAWS,
    ]
    failed = 0
    for level in (one for one in levels if one.seeds):
        lines, wrong = _played(level, chosen.processes)
        text += lines
        failed += wrong
    if chosen.kills:
        try:
            found = kill_rounds.play(chosen.kills, chosen.first, say=lambda text: _say(text + "\n"))
        except kill_rounds.BrokenPromiseError as error:
            _say(f"{error}\n")
            failed += 1
        else:
            text += kill_rounds.section(found)
    if chosen.write:
        chosen.write.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    return 1 if failed else 0


def _played(level: Level, processes: int) -> tuple[list[str], int]:
    """Play a level and its planted bugs. Returns what to write, and how much went wrong."""
    begun = time.monotonic()
    played = play_all(
        level.play, level.seeds, processes=processes, on_progress=lambda done: _say(f"{level.title}: {done:,}")
    )
    took = time.monotonic() - begun
    _say(f"{level.title}: {played.histories:,} in {took:.0f} s, {len(played.failures)} broke a law\n")
    if played.failures:
        print(played.report(), file=sys.stderr)
    caught = [catch(planted, _with(level.play, planted), histories=MUTANT_HISTORIES) for planted in level.mutants]
    survivors = [planted.name for planted, how in zip(level.mutants, caught, strict=True) if how is None]
    _say(f"{level.title}: {len(caught) - len(survivors)} of {len(caught)} planted bugs caught\n")
    for name in survivors:
        print(f"survived: {name}", file=sys.stderr)
    return _section(level, played, took, caught), len(played.failures) + len(survivors)


def _with(play: Play, planted: Mutant) -> Play:
    """Return how the histories are played in which a planted bug is looked for."""
    return partial(play, faults=planted.faults) if planted.faults else play


def _section(level: Level, played: Played, took: float, caught: list[Caught | None]) -> list[str]:
    tally = played.tally
    faults = sorted(name.removeprefix("fault: ") for name in tally if name.startswith("fault: "))
    figures = sorted(name for name in tally if not name.startswith("fault: "))
    found = [one for one in caught if one is not None]
    seeds = f": seed {', '.join(f'{one.seed:,}' for one in played.failures)}" if played.failures else ""
    return [
        f"## {level.title}",
        "",
        (
            f"{played.histories:,} histories (seeds {level.seeds[0]:,} to {level.seeds[-1]:,}) in {took:,.0f} s of wall time;"
            f" {len(played.failures)} broke a law{seeds}."
        ),
        "",
        "| In all | |",
        "|---|--:|",
        *(f"| {name} | {tally[name]:,} |" for name in figures),
        "",
        "| Fault | Histories that had it |",
        "|---|--:|",
        *(f"| {name} | {tally[f'fault: {name}']:,} |" for name in faults),
        "",
        f"### Planted bugs: {len(found)} of {len(caught)} caught",
        "",
        "Each is put into the real code for the length of one check. `Histories` says how many were played until a law",
        "was broken.",
        "",
        "| Planted bug | Caught by | Histories |",
        "|---|---|--:|",
        *(f"| {one.name} | {one.law} | {one.histories} |" for one in found),
        "",
    ]


def _sqlite() -> str:
    try:
        driver: Any = import_module("pysqlite3.dbapi2")
    except ImportError:
        driver = sqlite3
    return str(driver.sqlite_version)


def _say(text: str) -> None:
    if not sys.stderr.isatty():
        return  # in a file every step of it would stay
    print(f"\r{text}", end="", file=sys.stderr, flush=True)
