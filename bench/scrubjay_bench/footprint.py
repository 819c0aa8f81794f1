"""What the daemon weighs: memory and processor time at rest and under questions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from scrubjay_bench import daemons, stores
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.recalling import SEED, SIZES, WARM_UP, recall

WINDOW_SECONDS = 5  # one round of watching; five make the 25 seconds that an idle figure is taken over
SETTLE_SECONDS = 3  # after a start, until its first jobs have looked around
EMPTY_MB = 80
LOADED_MB = 400

STATES = {
    "empty": "at rest, empty store, no model loaded yet",
    "100k": "at rest, 100,000 memories, no model loaded yet",
    "model": "at rest, 100,000 memories, model loaded",
    "asked": "100,000 memories, one question after another",
}


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; about two minutes."""
    rounds = Rounds()
    filling = SIZES["100k"]
    store = stores.filled(filling, keep=plan.keep, models_dir=plan.models_dir, model=plan.model)
    with daemons.scratch(plan.scratch) as folder:
        with daemons.serving(folder / "empty", models_dir=plan.models_dir, model=plan.model) as daemon:
            _watch(rounds, "empty", daemon, plan.rounds)
        stores.copied(store, folder / "full")
        with (
            daemons.serving(folder / "full", models_dir=plan.models_dir, model=plan.model) as daemon,
            daemon.client() as client,
        ):
            _watch(rounds, "100k", daemon, plan.rounds)
            texts = Corpus(SEED)
            for _ in range(WARM_UP):
                recall(client, texts.question())
            _watch(rounds, "model", daemon, plan.rounds)
            for _ in range(plan.rounds):
                _window(rounds, "asked", daemon, lambda: recall(client, texts.question()))
    goals = {"empty": EMPTY_MB, "model": LOADED_MB, "asked": LOADED_MB}
    return [
        figure
        for state, meaning in STATES.items()
        for figure in (
            rounds.figure(f"memory.{state}", f"resident memory {meaning}", "MB", samples=1, goal=goals.get(state)),
            rounds.figure(f"cpu.{state}", f"processor time {meaning}", "% of a core", samples=WINDOW_SECONDS),
        )
    ]


def _watch(rounds: Rounds, state: str, daemon: Daemon, count: int) -> None:
    time.sleep(SETTLE_SECONDS)
    for _ in range(count):
        _window(rounds, state, daemon, lambda: time.sleep(WINDOW_SECONDS))


def _window(rounds: Rounds, state: str, daemon: Daemon, act: Callable[[], object]) -> None:
    """Note memory and processor time while acting again and again for a while."""
    before, began = daemon.cpu_seconds(), time.perf_counter()
    seen = []
    while time.perf_counter() - began < WINDOW_SECONDS:
        act()
        seen.append(daemon.rss_mb())
    rounds.add(f"memory.{state}", statistics.median(seen))
    rounds.add(f"cpu.{state}", 100 * (daemon.cpu_seconds() - before) / (time.perf_counter() - began))
