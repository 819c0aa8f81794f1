"""What the daemon weighs: memory and processor time at rest and under questions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from scrubjay_bench import daemons
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan

WINDOW_SECONDS = 5  # one round of watching; five make the 25 seconds that an idle figure is taken over
SETTLE_SECONDS = 3  # after a start, until its first jobs have looked around
LOOK_SECONDS = 0.1
RESTS_SECONDS = 0.02  # of processor time in as many seconds: two ticks
LONGEST_SECONDS = 1_800  # a million items on a busy machine
WAITED_FOR = frozenset({"compact", "learn", "embed", "toc"})
EMPTY_MB = 80

STATES = {
    "rest": "at rest, no model loaded yet",
    "loaded": "at rest, models loaded",
    "asked": "one question after another",
}
"""What a daemon on a full store is watched in (`scrubjay_bench.scale`)."""


def measure(plan: Plan) -> list[Figure]:
    """Measure a daemon on an empty store; half a minute."""
    rounds = Rounds()
    with (
        daemons.scratch(plan.scratch) as folder,
        daemons.serving(folder, models_dir=plan.models_dir, model=plan.model) as daemon,
    ):
        watch(rounds, "empty", daemon, plan.rounds)
    state = "at rest, empty store, no model loaded yet"
    return [
        rounds.figure("memory.empty", f"resident memory {state}", "MB", samples=1, goal=EMPTY_MB),
        rounds.figure("cpu.empty", f"processor time {state}", "% of a core", samples=WINDOW_SECONDS),
    ]


def settle(daemon: Daemon) -> None:
    """Wait until a daemon has done what waited when it started: a store that was just filled has no contents."""
    time.sleep(SETTLE_SECONDS)
    until = time.monotonic() + LONGEST_SECONDS
    with daemon.client() as client:
        while time.monotonic() < until:
            before = daemon.cpu_seconds()
            time.sleep(SETTLE_SECONDS)
            spent = daemon.cpu_seconds() - before
            if spent <= RESTS_SECONDS and not any(
                job["name"] in WAITED_FOR and (job["running"] or job["pending"])
                for job in client.call("GET", "/v1/jobs")["jobs"]
            ):
                return
    raise AssertionError(f"the daemon still works after {LONGEST_SECONDS} seconds")


def watch(rounds: Rounds, state: str, daemon: Daemon, count: int) -> None:
    """Note memory and processor time of some windows at rest."""
    settle(daemon)
    for _ in range(count):
        window(rounds, state, daemon, lambda: time.sleep(WINDOW_SECONDS))


def window(rounds: Rounds, state: str, daemon: Daemon, act: Callable[[], object]) -> None:
    """Note memory and processor time while acting again and again for a while."""
    before, began = daemon.cpu_seconds(), time.perf_counter()
    seen = []
    while time.perf_counter() - began < WINDOW_SECONDS:
        act()
        seen.append(daemon.rss_mb())
    rounds.add(f"memory.{state}", statistics.median(seen))
    rounds.add(f"cpu.{state}", 100 * (daemon.cpu_seconds() - before) / (time.perf_counter() - began))
