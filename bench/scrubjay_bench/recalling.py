"""Recalling: how long a question takes through the daemon, beside what embedding it and a bare search would take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scrubjay import models
from scrubjay.client import Client
from scrubjay_bench import daemons, floors, stores
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.stores import Filling

SEED = 13
QUESTIONS = 50  # a round; with five rounds, 250 of each kind
WARM_UP = 20
PERCENTS = (50, 95)

SIZES = {
    "10k": Filling(memories=10_000),
    "100k": Filling(memories=100_000),
    "linked": Filling(memories=50_000, linked=50_000),
}
"""What is asked: memories alone, and a store whose memories were each read from an event that is searched too."""

GOALS = {"unix.p50": 15, "tcp.p50": 15, "unix.p95": 30, "tcp.p95": 30, "over.p50": 8, "over.p95": 8}
"""Milliseconds at 100,000 memories (architecture.md §7)."""

MEANINGS = {
    "recall": {
        "unix": "one question through the Unix socket, its embedding included",
        "tcp": "the same over TCP",
        "inside": "the same, as the daemon counts it, without HTTP",
        "over": "through the Unix socket, less the bare embedding",
    },
    "floor": {
        "least": "bare embedding + bare int8 search + bare route, their sum",
        "embedding": "bare embedding of one question",
        "float32": "bare search: numpy float32 product, ten best",
        "int8": "bare search: numkong int8 product, ten best",
        "echo_unix": "bare Starlette route through a Unix socket",
        "echo_tcp": "bare Starlette route over TCP",
    },
}


def measure(plan: Plan) -> list[Figure]:
    """Measure every size: a minute each, and some more the first time, when the stores are made."""
    return [figure for size in SIZES for figure in measure_size(plan, size)]


def measure_size(plan: Plan, size: str) -> list[Figure]:
    """Measure one size."""
    rounds = asked(plan, SIZES[size], size)
    found = []
    for group, meanings in MEANINGS.items():
        for kind, meaning in meanings.items():
            for percent in PERCENTS:
                short = f"{kind}.p{percent}"
                found.append(
                    rounds.figure(
                        f"{group}.{size}.{short}",
                        meaning if percent == PERCENTS[0] else "…",
                        "ms",
                        samples=QUESTIONS,
                        floor=f"floor.{size}.least.p{percent}" if kind in {"unix", "tcp"} else "",
                        goal=GOALS.get(short) if size == "100k" and group == "recall" else None,
                    )
                )
    meaning = "the daemon's processor time for one question, all its threads"
    return [*found, rounds.figure(f"recall.{size}.cpu", meaning, "ms", samples=2 * QUESTIONS)]


def asked(plan: Plan, filling: Filling, size: str) -> Rounds:
    """Ask a store of this filling, and note beside it what the floors take."""
    rounds = Rounds()
    texts = Corpus(SEED)
    store = stores.filled(filling, keep=plan.keep, models_dir=plan.models_dir, model=plan.model)
    vectors = stores.vectors_of(filling, keep=plan.keep, models_dir=plan.models_dir, model=plan.model)
    bare = floors.BareVectors(vectors)
    embedder = models.load(plan.models_dir, plan.model)
    with daemons.scratch(plan.scratch) as folder:
        stores.copied(store, folder / "home")
        with (
            floors.echoing(folder) as echo,
            daemons.serving(folder / "home", models_dir=plan.models_dir, model=plan.model) as daemon,
            daemon.client() as unix,
            daemon.client(tcp=True) as tcp,
            echo(False) as echo_unix,
            echo(True) as echo_tcp,
        ):
            for _ in range(WARM_UP):
                recall(unix, texts.question())
            for _ in range(plan.rounds):
                _ask(rounds, size, daemon, {"unix": unix, "tcp": tcp}, texts)
                sent = [texts.question() for _ in range(QUESTIONS)]
                floor = f"floor.{size}"
                rounds.add_latencies(f"{floor}.embedding", [timed(embedder.embed, [text]) for text in sent], *PERCENTS)
                queries = embedder.embed(sent)
                for name, search in (("float32", bare.product), ("int8", bare.quantised_product)):
                    took = [timed(search, query) for query in queries]
                    rounds.add_latencies(f"{floor}.{name}", took, *PERCENTS)
                for name, client in (("echo_unix", echo_unix), ("echo_tcp", echo_tcp)):
                    took = [timed(client.call, "POST", "/echo", {"query": text}) for text in sent]
                    rounds.add_latencies(f"{floor}.{name}", took, *PERCENTS)
                _compare(rounds, size)
    embedder.close()
    return rounds


def recall(client: Client, text: str) -> dict[str, Any]:
    """Ask one question. Raises AssertionError unless it was answered from words and vectors both."""
    answer = client.call("POST", "/v1/recall", {"query": text})
    if answer["mode"] != "hybrid" or answer["notes"] or not answer["hits"]:
        raise AssertionError(f"not a whole recall: {answer['mode']}, {answer['notes']}")
    return answer


def timed(act: Callable[..., object], *arguments: Any) -> float:
    """Return how many seconds an act takes."""
    began = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - began


def _ask(rounds: Rounds, size: str, daemon: Daemon, clients: dict[str, Client], texts: Corpus) -> None:
    before = daemon.cpu_seconds()
    inside: list[float] = []
    for name, client in clients.items():
        took = []
        for text in [texts.question() for _ in range(QUESTIONS)]:
            began = time.perf_counter()
            answer = recall(client, text)
            took.append(time.perf_counter() - began)
            inside.append(answer["elapsed_ms"] / 1000)
        rounds.add_latencies(f"recall.{size}.{name}", took, *PERCENTS)
    rounds.add_latencies(f"recall.{size}.inside", inside, *PERCENTS)
    rounds.add(f"recall.{size}.cpu", (daemon.cpu_seconds() - before) / (2 * QUESTIONS) * 1000)


def _compare(rounds: Rounds, size: str) -> None:
    for percent in PERCENTS:
        of = {
            name: rounds.values(f"{name}.p{percent}")[-1]
            for name in (
                f"recall.{size}.unix",
                *(f"floor.{size}.{part}" for part in MEANINGS["floor"] if part != "least"),
            )
        }
        embedding = of[f"floor.{size}.embedding"]
        rounds.add(f"recall.{size}.over.p{percent}", of[f"recall.{size}.unix"] - embedding)
        rounds.add(
            f"floor.{size}.least.p{percent}", embedding + of[f"floor.{size}.int8"] + of[f"floor.{size}.echo_unix"]
        )
