"""Asking a daemon, and beside it what embedding a question and bare searches of the same store would take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from scrubjay.models import loading, ports
from scrubjay.transports.client import Client
from scrubjay_bench import daemons, floors, stores
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.stores import Filling, Source
from scrubjay_shared.text import query_tokens

SEED = 13
QUESTIONS = 50  # a round; with five rounds, 250
WARM_UP = 20
PERCENTS = (50, 95)
STAGES = ("embed", "rank", "rerank", "read")
LEAST = ("embedding", "int8", "postings", "echo")
"""What an exact recall cannot do without: the question's vector, one search by it and one by words, and the way."""


def asked(plan: Plan, filling: Filling, size: str) -> Rounds:
    """Ask a daemon with a store of this filling, and note beside it what the floors take."""
    rounds = Rounds()
    source = Source(plan, filling.talks)
    store = stores.filled(filling, plan, source)
    texts = source.copies.questions(filling.items, SEED)
    with daemons.scratch(plan.scratch) as folder:
        stores.copied(store, folder / "home")
        with (
            bare(plan, store, folder) as beside,
            daemons.serving(folder / "home", models_dir=plan.models_dir, model=plan.model) as daemon,
            daemon.client() as client,
        ):
            warm_up(client, texts)
            for _ in range(plan.rounds):
                ask(rounds, f"recall.{size}", daemon, client, list(islice(texts, QUESTIONS)))
                beside.measure(rounds, f"floor.{size}", list(islice(texts, QUESTIONS)))
    return rounds


def warm_up(client: Client, texts: Iterator[str]) -> None:
    """Ask until the ways are open: the model loaded, the pages that every question reads in memory."""
    for text in islice(texts, WARM_UP):
        recall(client, text)


def recall(client: Client, text: str, *, rerank: bool = False) -> dict[str, Any]:
    """Ask one question. Raises AssertionError unless words and vectors took part, and no reranker unasked."""
    answer = client.call("POST", "/v1/recall", {"query": text, "rerank": rerank})
    if answer["mode"] != "hybrid" or answer["notes"] or not answer["hits"]:
        raise AssertionError(f"not a whole recall: {answer['mode']}, {answer['notes']}")
    if not rerank and answer["stages_ms"].get("rerank", 0.0) > 0:  # asked to, recall decides whether it is worth it
        raise AssertionError(f"reranked without being asked to: {answer['stages_ms']}")
    return answer


def ask(
    rounds: Rounds, name: str, daemon: Daemon, client: Client, texts: Sequence[str], *, rerank: bool = False
) -> None:
    """Note one round of questions: in whole, as the daemon counts it, by stage, and its processor time for each."""
    before = daemon.cpu_seconds()
    took: list[float] = []
    answers = []
    for text in texts:
        began = time.perf_counter()
        answers.append(recall(client, text, rerank=rerank))
        took.append(time.perf_counter() - began)
    rounds.add_latencies(name, took, *PERCENTS)
    rounds.add(f"{name}.cpu", (daemon.cpu_seconds() - before) / len(texts) * 1000)
    rounds.add_latencies(f"{name}.inside", [answer["elapsed_ms"] / 1000 for answer in answers], *PERCENTS)
    for stage in STAGES:
        spent = [answer["stages_ms"].get(stage, 0.0) / 1000 for answer in answers]
        rounds.add_latencies(f"{name}.{stage}", spent, *PERCENTS)


def timed(act: Callable[..., object], *arguments: Any) -> float:
    """Return how many seconds an act takes."""
    began = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """What a recall is made of, each part with nothing around it."""

    embedder: ports.Embedder
    vectors: floors.BareVectors
    words: floors.BareWords
    echo: Client

    def measure(self, rounds: Rounds, name: str, texts: Sequence[str]) -> None:
        """Note one round of each part, and the sum of the `LEAST`."""
        took = {"embedding": [timed(self.embedder.embed, [text]) for text in texts]}
        vectors = self.embedder.embed(texts)
        tokens = [query_tokens(text) for text in texts]
        took["float32"] = [timed(self.vectors.product, vector) for vector in vectors]
        took["int8"] = [timed(self.vectors.quantised_product, vector) for vector in vectors]
        took["signs"] = [timed(self.vectors.signs, vector) for vector in vectors]
        took["fts5"] = [timed(self.words.full_text, each) for each in tokens]
        took["postings"] = [timed(self.words.postings, each) for each in tokens]
        took["echo"] = [timed(self.echo.call, "POST", "/echo", {"query": text}) for text in texts]
        for part, seconds in took.items():
            rounds.add_latencies(f"{name}.{part}", seconds, *PERCENTS)
        for percent in PERCENTS:
            parts = [rounds.values(f"{name}.{part}.p{percent}")[-1] for part in LEAST]
            rounds.add(f"{name}.least.p{percent}", sum(parts))


@contextmanager
def bare(plan: Plan, filled_store: Path, folder: Path) -> Iterator[Bare]:
    """Yield the parts, over the texts and vectors of a closed store."""
    embedder = loading.load(plan.models_dir, plan.model)
    try:
        with (
            stores.reading(filled_store) as connection,
            floors.echoing(folder) as echo,
            echo(False) as client,
        ):
            yield Bare(
                embedder=embedder,
                vectors=floors.BareVectors(*stores.vectors_of(connection)),
                words=floors.BareWords(floors.tokens_of(connection)),
                echo=client,
            )
    finally:
        embedder.close()
