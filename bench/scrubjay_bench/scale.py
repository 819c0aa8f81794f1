"""Stores of 10,000, 100,000 and 1,000,000 items: what recalling, adding and opening cost as they grow.

All of it through the daemon, except for the agreement with exact search, for which the same service runs in here with
another policy.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from scrubjay import api, policy
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay.transports.client import Client
from scrubjay_bench import daemons, footprint, recalling, stores
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.recalling import PERCENTS, QUESTIONS, SEED, timed
from scrubjay_bench.stores import Filling, Source

FIRST = 10  # hits compared with those of an exact search
ALL = 1 << 40  # rows: more than there will ever be, so that every one is scored
SINGLE = 200  # events added one by one a round: two beyond the 99th percentile
BATCH = 100
BATCHES = 20  # requests a round
IN_USE = frozenset({"idle", "loaded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A store and what is wanted of it. Milliseconds and megabytes."""

    filling: Filling
    goals: dict[str, float]
    rerank: bool = False


SIZES = {
    "10k": Size(filling=Filling(items=10_000), goals={}),
    "100k": Size(
        filling=Filling(items=100_000),
        goals={
            "recall.p50": 15, "recall.p95": 30, "reranked.p50": 250, "reranked.p95": 250, "memory.loaded": 400,
            "memory.asked": 400, "memory.reranked": 400,
        },
        rerank=True,
    ),
    "1m": Size(filling=Filling(items=1_000_000), goals={"recall.p95": 100}),
}  # fmt: skip
GOALS = {"agreement": 0.98, "beside.slower": 1.1, "ingest.slower": 2.0}
"""What is wanted of every size."""

MEANINGS = {
    "": "one question through the Unix socket, its embedding included, without a reranker",
    ".inside": "the same, as the daemon counts it, without HTTP",
    ".embed": "of which the question's vector",
    ".rank": "of which ranking",
    ".read": "of which the texts of the hits",
}
FLOORS = {
    "least": "bare embedding + int8 search + postings + route, their sum: an exact recall",
    "embedding": "bare embedding of one question",
    "float32": "bare search: numpy float32 product, ten best",
    "int8": "bare search: numkong int8 product, ten best",
    "signs": "bare search: numkong Hamming distance of signs, the nearest 1,000 again by int8 product; not exact",
    "fts5": "bare search: SQLite's FTS5, OR of the question's words, ten best of the events",
    "postings": "bare search: BM25 over postings in numpy, ten best of the events",
    "echo": "bare Starlette route through a Unix socket",
}


def measure(plan: Plan, name: str) -> list[Figure]:
    """Measure one size: two minutes at 10,000 items, half an hour at a million when the store has to be made first."""
    return measured(plan, SIZES[name], name)


def measured(plan: Plan, size: Size, name: str) -> list[Figure]:
    """Measure a store that grows old in one run: opened, asked, compared, and at last added to."""
    rounds = Rounds()
    source = Source(plan, size.filling.talks)
    store = stores.filled(size.filling, plan, source)
    texts = source.copies.questions(size.filling.items, SEED)
    with daemons.scratch(plan.scratch) as folder:
        home = folder / "home"
        stores.copied(store, home)
        _ask_beside(rounds, plan, home, texts)
        _open(rounds, plan, home, texts)
        _watch(rounds, plan, home, texts)
        reranked = _ask(rounds, plan, store, folder, texts, rerank=size.rerank)
        asyncio.run(_compare(rounds, plan, home / "data" / "memory.db", texts))
        _add(rounds, plan, home, folder / "empty")
    rounds.add("disk", store.stat().st_size / size.filling.items)
    return _figures(rounds, size, name, reranked=reranked)


def _ask_beside(rounds: Rounds, plan: Plan, home: Path, texts: Iterator[str]) -> None:
    """Note questions while the daemon makes the table of contents of all that was filled in, then have it finish.

    A small store's is made before all of them were asked.
    """
    with daemons.serving(home, models_dir=plan.models_dir, model=plan.model) as daemon, daemon.client() as client:
        recalling.warm_up(client, texts)
        waits = True
        while waits:
            time.sleep(footprint.LOOK_SECONDS)
            [toc] = [job for job in client.call("GET", "/v1/jobs")["jobs"] if job["name"] == "toc"]
            waits = toc["pending"] and not toc["running"]
        for _ in range(plan.rounds):
            recalling.ask(rounds, "beside", daemon, client, list(islice(texts, QUESTIONS)))
        footprint.settle(daemon)


def _open(rounds: Rounds, plan: Plan, home: Path, texts: Iterator[str]) -> None:
    """Note how long it takes from nothing until the daemon is ready, and until it has answered a question in full."""
    for _ in range(plan.rounds):
        began = time.perf_counter()
        with daemons.serving(home, models_dir=plan.models_dir, model=plan.model) as daemon, daemon.client() as client:
            rounds.add("open.ready", time.perf_counter() - began)
            recalling.recall(client, next(texts))
            rounds.add("open.answer", time.perf_counter() - began)


def _watch(rounds: Rounds, plan: Plan, home: Path, texts: Iterator[str]) -> None:
    with daemons.serving(home, models_dir=plan.models_dir, model=plan.model) as daemon, daemon.client() as client:
        footprint.watch(rounds, "rest", daemon, plan.rounds)
        recalling.warm_up(client, texts)
        footprint.watch(rounds, "loaded", daemon, plan.rounds)
        for _ in range(plan.rounds):
            footprint.window(rounds, "asked", daemon, lambda: recalling.recall(client, next(texts)))


def _ask(rounds: Rounds, plan: Plan, store: Path, folder: Path, texts: Iterator[str], *, rerank: bool) -> bool:
    """Note the questions and their floors. Returns whether questions were reranked too: the model may not be there."""
    with (
        recalling.bare(plan, store, folder) as bare,
        daemons.serving(folder / "home", models_dir=plan.models_dir, model=plan.model) as daemon,
        daemon.client() as client,
    ):
        rerank = rerank and client.call("GET", "/v1/status")["reranker_state"] in IN_USE
        footprint.settle(daemon)
        recalling.warm_up(client, texts)
        if rerank:
            recalling.recall(client, next(texts), rerank=True)
        for _ in range(plan.rounds):
            recalling.ask(rounds, "recall", daemon, client, list(islice(texts, QUESTIONS)))
            if rerank:
                recalling.ask(rounds, "reranked", daemon, client, list(islice(texts, QUESTIONS)), rerank=True)
                rounds.add("memory.reranked", daemon.rss_mb())
            bare.measure(rounds, "floor", list(islice(texts, QUESTIONS)))
    for beside, alone in zip(rounds.values("beside.p50"), rounds.values("recall.p50"), strict=True):
        rounds.add("beside.slower", beside / alone)
    return rerank


async def _compare(rounds: Rounds, plan: Plan, path: Path, texts: Iterator[str]) -> None:
    """Note how many of the first ten hits are those that come when every row is scored."""
    usual = policy.DEFAULT
    exact = replace(usual, recall=replace(usual.recall, exhaustive=ALL))
    service = await Application.open(path, models_dir=plan.models_dir, model=plan.model)
    try:
        for _ in range(plan.rounds):
            shared = []
            for text in islice(texts, QUESTIONS):
                found = []
                for service.policy in (usual, exact):
                    request = api.RecallRequest(query=text, limit=FIRST, max_tokens=ALL, rerank=False)
                    found.append({hit.id for hit in (await service.call(PERSON, "recall", request)).hits})
                shared.append(len(found[0] & found[1]) / len(found[1]))
            rounds.add("agreement", statistics.mean(shared))
            rounds.add("agreement.whole", statistics.mean(share == 1 for share in shared))
    finally:
        await service.close()


def _add(rounds: Rounds, plan: Plan, full: Path, empty: Path) -> None:
    """Note what adding events costs in the full store and, in the same rounds, in a new one. Neither has a model."""
    made = Corpus(SEED)
    events = (made.event(number) for number in itertools.count())
    with (
        daemons.serving(full, models_dir=plan.models_dir, model="none") as large,
        daemons.serving(empty, models_dir=plan.models_dir, model="none") as small,
        large.client() as to_large,
        small.client() as to_small,
    ):
        both = (("", large, to_large), (".empty", small, to_small))
        footprint.settle(large)  # without its model it cuts its table of contents anew, for a minute
        for _, _, client in both:
            _send(client, list(islice(events, BATCH)))
        for _ in range(plan.rounds):
            for suffix, daemon, client in both:
                _add_to(rounds, suffix, daemon, client, events)
            rounds.add("ingest.slower", rounds.values("ingest.empty")[-1] / rounds.values("ingest")[-1])


def _add_to(rounds: Rounds, suffix: str, daemon: Daemon, client: Client, events: Iterator[dict[str, Any]]) -> None:
    before = daemon.cpu_seconds()
    rounds.add_latencies(f"add{suffix}", [timed(_send, client, [event]) for event in islice(events, SINGLE)], 50, 99)
    rounds.add(f"add{suffix}.cpu", (daemon.cpu_seconds() - before) / SINGLE * 1000)
    batches = [list(islice(events, BATCH)) for _ in range(BATCHES)]
    before, began = daemon.cpu_seconds(), time.perf_counter()
    for batch in batches:
        _send(client, batch)
    rounds.add(f"ingest{suffix}", BATCH * BATCHES / (time.perf_counter() - began))
    rounds.add(f"ingest{suffix}.cpu", (daemon.cpu_seconds() - before) / (BATCH * BATCHES) * 1000)


def _send(client: Client, events: Sequence[dict[str, Any]]) -> None:
    answer = client.call("POST", "/v1/events", {"events": events, "learn": False})
    if answer["accepted"] != len(events):
        raise AssertionError(f"{answer['accepted']} of {len(events)} events were taken")


def _figures(rounds: Rounds, size: Size, name: str, *, reranked: bool) -> list[Figure]:
    goals = GOALS | size.goals
    found: list[Figure] = []

    def row(kind: str, meaning: str, unit: str, samples: int, floor: str = "") -> None:
        figure = rounds.figure(kind, meaning, unit, samples=samples, floor=floor, goal=goals.get(kind))
        found.append(replace(figure, name=_named(kind, name), floor=_named(floor, name) if floor else ""))

    def latencies(kind: str, meaning: str, floor: str = "") -> None:
        for percent in PERCENTS:
            beside = f"{floor}.p{percent}" if floor else ""
            row(f"{kind}.p{percent}", meaning if percent == PERCENTS[0] else "…", "ms", QUESTIONS, beside)

    for part, meaning in MEANINGS.items():
        latencies(f"recall{part}", meaning, "" if part else "floor.least")
    latencies("beside", "one question while the table of contents is made")
    row("beside.slower", "how many times as long as while nothing else is done", "×", QUESTIONS)
    row("recall.cpu", "the daemon's processor time for one question, all its threads", "ms", QUESTIONS)
    if reranked:
        latencies("reranked", "one question through the Unix socket, with the reranker", "floor.least")
        latencies("reranked.rerank", "of which reranking")
        row("memory.reranked", "resident memory after such questions, both models loaded", "MB", 1)
    for part, meaning in FLOORS.items():
        latencies(f"floor.{part}", meaning)
    row("agreement", f"share of the first {FIRST} hits that come too when every row is scored", "of 1", QUESTIONS)
    row("agreement.whole", f"share of questions whose first {FIRST} are all the same", "of 1", QUESTIONS)
    for state, meaning in footprint.STATES.items():
        row(f"memory.{state}", f"resident memory {meaning}", "MB", 1)
        row(f"cpu.{state}", f"processor time {meaning}", "% of a core", footprint.WINDOW_SECONDS)
    row("open.ready", "daemon from its start until ready", "s", 1)
    row("open.answer", "daemon from its start until a question is answered from words and vectors", "s", 1)
    for percent in (50, 99):
        meaning = "one event added, durable, one after another" if percent == 50 else "…"
        row(f"add.p{percent}", meaning, "ms", SINGLE, f"add.empty.p{percent}")
    row("add.cpu", "the daemon's processor time for one", "ms", SINGLE, "add.empty.cpu")
    row("ingest", f"{BATCH} events a request, one after another", "events/s", BATCH * BATCHES, "ingest.empty")
    row("ingest.slower", "how many times slower than into an empty store", "×", BATCH * BATCHES)
    row("ingest.cpu", "the daemon's processor time for one of them", "ms", BATCH * BATCHES, "ingest.empty.cpu")
    for percent in (50, 99):
        row(f"add.empty.p{percent}", "one event added to an empty store" if percent == 50 else "…", "ms", SINGLE)
    row("add.empty.cpu", "the daemon's processor time for one", "ms", SINGLE)
    row("ingest.empty", f"{BATCH} events a request into an empty store", "events/s", BATCH * BATCHES)
    row("ingest.empty.cpu", "the daemon's processor time for one of them", "ms", BATCH * BATCHES)
    row("disk", "of the file, an item", "bytes", 1)
    return found


def _named(kind: str, size: str) -> str:
    first, _, rest = kind.partition(".")
    return ".".join(part for part in (first, size, rest) if part)
