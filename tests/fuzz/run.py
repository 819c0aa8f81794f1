"""Feeds every decoder damaged input for a time, and says how often, and what broke.

    python tests/fuzz/run.py [--seconds 300] [--processes 2] [--seed 1] [DECODER …]

A crash is an exception that is no ScrubjayError, two decoders that disagree, an input that takes more than 2 seconds of
CPU, or one that takes more than 200 MB of memory. Seed and number of the execution make its input again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
from decoders import DECODERS

SECONDS_MOST = 2.0
MEMORY_MOST_KIB = 200 * 1024
KEPT = 20
"""Crashes shown of one kind of run: more say the same."""


@dataclass
class Tally:
    """What a run came to: how often, with what outcome, and what broke."""

    executions: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)


def fuzz(name: str, seconds: float, seed: int) -> Tally:
    """Feed one decoder for some time."""
    decoder, tally = DECODERS[name], Tally()
    start = now = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while now - start < seconds and len(tally.crashes) < KEPT:
        data = decoder.draw(Random(f"{seed} {tally.executions}"))
        began = time.process_time()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak = max(peak, grown)  # what drawing took is not the decoder's
        broke = ""
        try:
            tally.outcomes[decoder.take(data)] += 1
        except Exception:  # noqa: BLE001 - every kind is what is looked for
            broke = traceback.format_exc(limit=-4)
        took, now = time.process_time() - began, time.perf_counter()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if took > SECONDS_MOST:
            broke += f"it took {took:.1f} s of CPU\n"
        if grown - peak > MEMORY_MOST_KIB:
            broke += f"it took {(grown - peak) // 1024} MB\n"
        if broke:
            where = f"{name}, seed {seed}, execution {tally.executions}, {len(data)} bytes"
            tally.crashes.append(f"{where}\n{broke}input {data[:200].hex()}")
        peak = max(peak, grown)
        tally.executions += 1
    tally.seconds = now - start
    return tally


def main() -> int:
    """Run what was asked for. 1 when something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("decoders", nargs="*", default=list(DECODERS), metavar="DECODER")
    parser.add_argument("--seconds", type=float, default=300.0, help="per decoder")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    broken = 0
    for name in asked.decoders:
        # A fresh process each: how much memory an input took is seen only while nothing else has taken more.
        with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
            found = pool.starmap(fuzz, [(name, asked.seconds, asked.seed + one) for one in range(asked.processes)])
        executions, crashes = sum(one.executions for one in found), [crash for one in found for crash in one.crashes]
        broken += len(crashes)
        outcomes: Counter[str] = sum((one.outcomes for one in found), Counter())
        told = ", ".join(f"{count:,} {code}" for code, count in outcomes.most_common(8))
        print(
            f"{name}: {executions:,} executions in {max(one.seconds for one in found):.0f} s on {asked.processes} processes, {len(crashes)} crashes ({told})",
            flush=True,
        )
        for crash in crashes:
            print(crash, flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
