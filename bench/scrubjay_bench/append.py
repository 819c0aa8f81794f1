"""Appending: how fast events go in through the daemon, durable when answered, beside bare SQLite inserts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scrubjay.transports.client import Client
from scrubjay_bench import daemons
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.floors import BareTable
from scrubjay_bench.plan import Plan
from scrubjay_bench.recalling import timed

SEED = 11
SINGLE = 200  # serial requests a round: two beyond the 99th percentile
CLIENTS = 16
EACH = 25  # events a client sends one by one in a round
BATCH = 100
BATCHES = 20  # requests a round
WARM_UP = 50


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; about a minute."""
    rounds = Rounds()
    events = _events()
    with daemons.scratch(plan.scratch) as folder:
        with daemons.serving(folder / "plain", models_dir=plan.models_dir, model="none") as daemon:
            bare = BareTable(folder / "bare.db")
            _warm(daemon, events)
            for _ in range(plan.rounds):
                _single(rounds, daemon, bare, events)
                _together(rounds, daemon, events)
                batched(rounds, daemon, bare, events)
            bare.close()
        with daemons.serving(folder / "whole", models_dir=plan.models_dir, model=plan.model) as daemon:
            _warm(daemon, events)
            for _ in range(plan.rounds):
                _batches(rounds, "append.batched_learning", daemon, events, learn=True)
    return [
        rounds.figure("append.single.p50", "one event a request, one after another", "ms", samples=SINGLE,
                      floor="floor.insert.p50"),
        rounds.figure("append.single.p99", "the same, 99th percentile", "ms", samples=SINGLE, goal=20,
                      floor="floor.insert.p99"),
        rounds.figure("append.together", f"one event a request, {CLIENTS} clients at once", "events/s",
                      samples=CLIENTS * EACH, floor="floor.insert"),
        rounds.figure("append.batched", f"{BATCH} events a request, one after another", "events/s",
                      samples=BATCH * BATCHES, floor="floor.insert_batched", goal=2_000),
        rounds.figure("append.batched_cpu", "the same, per second of the daemon's processor time", "events/s",
                      samples=BATCH * BATCHES, floor="floor.insert_batched_cpu"),
        rounds.figure("append.batched_learning", "the same while learning and embedding go on behind it", "events/s",
                      samples=BATCH * BATCHES),
        rounds.figure("floor.insert.p50", "bare SQLite, one insert a durable transaction", "ms", samples=SINGLE),
        rounds.figure("floor.insert.p99", "the same, 99th percentile", "ms", samples=SINGLE),
        rounds.figure("floor.insert", "the same as a rate", "events/s", samples=SINGLE),
        rounds.figure("floor.insert_batched", f"bare SQLite, {BATCH} inserts a durable transaction", "events/s",
                      samples=BATCH * BATCHES),
        rounds.figure("floor.insert_batched_cpu", "the same, per second of processor time", "events/s",
                      samples=BATCH * BATCHES),
    ]  # fmt: skip


def gate(plan: Plan, folder: Path) -> Rounds:
    """Measure only what the gate looks at, in few rounds."""
    rounds = Rounds()
    events = _events()
    bare = BareTable(folder / "bare.db")
    with daemons.serving(folder / "gate", models_dir=plan.models_dir, model="none") as daemon:
        _warm(daemon, events)
        for _ in range(plan.rounds):
            batched(rounds, daemon, bare, events)
    bare.close()
    return rounds


def batched(rounds: Rounds, daemon: Daemon, bare: BareTable, events: Iterator[dict[str, Any]]) -> None:
    """Note one round of batches through the daemon, and of the same into a bare table."""
    before = daemon.cpu_seconds()
    sent = _batches(rounds, "append.batched", daemon, events, learn=False)
    rounds.add("append.batched_cpu", len(sent) / (daemon.cpu_seconds() - before))
    began, began_cpu = time.perf_counter(), time.process_time()
    for batch in _cut(sent):
        bare.insert(batch)
    rounds.add("floor.insert_batched", len(sent) / (time.perf_counter() - began))
    rounds.add("floor.insert_batched_cpu", len(sent) / (time.process_time() - began_cpu))


def _warm(daemon: Daemon, events: Iterator[dict[str, Any]]) -> None:
    """Open the ways: the first write, and the model where there is one."""
    with daemon.client() as client:
        _send(client, list(itertools.islice(events, WARM_UP)))
        client.call("POST", "/v1/recall", {"query": "which model is loaded"})


def _single(rounds: Rounds, daemon: Daemon, bare: BareTable, events: Iterator[dict[str, Any]]) -> None:
    sent = list(itertools.islice(events, SINGLE))
    with daemon.client() as client:
        rounds.add_latencies("append.single", [timed(_send, client, [event]) for event in sent], 50, 99)
    took = [timed(bare.insert, [event]) for event in sent]
    rounds.add_latencies("floor.insert", took, 50, 99)
    rounds.add("floor.insert", len(took) / sum(took))


def _together(rounds: Rounds, daemon: Daemon, events: Iterator[dict[str, Any]]) -> None:
    shares = [list(itertools.islice(events, EACH)) for _ in range(CLIENTS)]
    clients = [daemon.client() for _ in shares]
    for client in clients:
        client.call("GET", "/healthz")

    def send_all(client: Client, share: Sequence[dict[str, Any]]) -> None:
        for event in share:
            _send(client, [event])

    with ThreadPoolExecutor(CLIENTS) as pool:
        began = time.perf_counter()
        list(pool.map(send_all, clients, shares))
        rounds.add("append.together", CLIENTS * EACH / (time.perf_counter() - began))
    for client in clients:
        client.close()


def _batches(
    rounds: Rounds, name: str, daemon: Daemon, events: Iterator[dict[str, Any]], *, learn: bool
) -> list[dict[str, Any]]:
    sent = list(itertools.islice(events, BATCH * BATCHES))
    with daemon.client() as client:
        began = time.perf_counter()
        for batch in _cut(sent):
            _send(client, batch, learn=learn)
        rounds.add(name, len(sent) / (time.perf_counter() - began))
    return sent


def _cut(events: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    return (events[start : start + BATCH] for start in range(0, len(events), BATCH))


def _send(client: Client, events: Sequence[dict[str, Any]], *, learn: bool = False) -> None:
    answer = client.call("POST", "/v1/events", {"events": events, "learn": learn})
    if answer["accepted"] != len(events):
        raise AssertionError(f"{answer['accepted']} of {len(events)} events were taken")


def _events() -> Iterator[dict[str, Any]]:
    texts = Corpus(SEED)
    return (texts.event(number) for number in itertools.count())
