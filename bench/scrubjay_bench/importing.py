"""Importing: from a file to durable events, to memories, to vectors; beside parsing it and inserting it bare."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from scrubjay_bench import daemons, locomo
from scrubjay_bench.daemons import Daemon
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.floors import BareTable
from scrubjay_bench.plan import Plan

LOOK_SECONDS = 0.05
SEED = 5
GROWTH = (1_000, 13_000)
"""Memories of one file, and of one that has thirteen times as many."""
GROWTH_GOAL = 15
SAID = (
    "The user prefers {} to {} for {}",
    "The user works on {} with {} and {}",
    "The user told {} about {} in {}",
    "The {} of the user is {} near {}",
)
SYLLABLES = tuple(f"{consonant}{vowel}{last}" for consonant in "bdfgklmnprst" for vowel in "aeiou" for last in "nr")
CONVERSATION = "conv-26"
"""The one that is also embedded each round: embedding all ten would take minutes."""


def measure(plan: Plan) -> list[Figure]:
    """Measure the shipped sample and, when its path was given, LoCoMo; one to three minutes."""
    rounds = Rounds()
    counts: dict[str, int] = {}
    with daemons.scratch(plan.scratch) as folder:
        for number in range(plan.rounds):
            lines = _sample()
            counts["sample"] = len(lines)
            with _fresh(plan, folder / f"sample-{number}", plan.model) as daemon:
                _whole_way(rounds, "sample", daemon, partial(_ingest, events=lines))
            if plan.locomo is None:
                continue
            data = plan.locomo.read_bytes()
            with _fresh(plan, folder / f"one-{number}", plan.model) as daemon:
                counts["one"] = _whole_way(rounds, "one", daemon, partial(_import, data=data, only=CONVERSATION))
            with _fresh(plan, folder / f"all-{number}", "none") as daemon:
                began = time.perf_counter()
                counts["all"] = _import(daemon, data, None)
                rounds.add("import.all.durable", counts["all"] / (time.perf_counter() - began))
                _wait(daemon, "to_learn")
                rounds.add("import.all.learned", counts["all"] / (time.perf_counter() - began))
            _floor(rounds, plan.locomo, folder / f"bare-{number}.db")
    return _figures(rounds, counts)


def measure_growth(plan: Plan) -> list[Figure]:
    """Measure how processor time grows with the memories of one file; a minute or two."""
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        for number in range(plan.rounds):
            for count in GROWTH:
                with _fresh(plan, folder / f"{count}-{number}", "none") as daemon, daemon.client() as client:
                    before = daemon.cpu_seconds()
                    query = {"name": "graph.jsonl", "format": "mcp-memory"}
                    client.call("POST", "/v1/import", _graph(count), query)
                    rounds.add(f"import.{count}", daemon.cpu_seconds() - before)
            few, many = (rounds.values(f"import.{count}")[-1] for count in GROWTH)
            rounds.add("import.growth", many / few)
    few, many = GROWTH
    return [
        *(
            rounds.figure(f"import.{count}", f"the daemon's processor time for {count:,} memories", "s", samples=1)
            for count in GROWTH
        ),
        rounds.figure("import.growth", f"{many:,} memories, × those of {few:,}", "×", samples=1, goal=GROWTH_GOAL),
    ]


def _graph(memories: int) -> bytes:
    """Return a graph of other programs' memory: all that is said begins alike, as facts about one person do."""
    draw = random.Random(SEED)
    names = [f"{first}{second}{n}" for n, (first, second) in enumerate(itertools.product(SYLLABLES, SYLLABLES))]
    lines = []
    for n in range(memories // (len(SAID) + 1)):  # what each is about is a memory as well
        said = [one.format(*draw.sample(names, 3)) for one in SAID]
        lines.append({"type": "entity", "name": f"topic {n}", "entityType": "topic", "observations": said})
    return "\n".join(map(json.dumps, lines)).encode()


def _figures(rounds: Rounds, counts: dict[str, int]) -> list[Figure]:
    titles = {"sample": "the shipped sample", "one": f"LoCoMo {CONVERSATION}", "all": "LoCoMo, all ten conversations"}
    steps = {
        "durable": "from the request to durable",
        "learned": "from the request until all is distilled",
        "embedded": "from the request until all is embedded (the model is loaded on the way)",
    }
    found = []
    for name, count in counts.items():
        for step, meaning in steps.items():
            if name == "all" and step == "embedded":
                continue
            floor = "floor.import" if name == "all" and step == "durable" else ""
            found.append(
                rounds.figure(f"import.{name}.{step}", f"{titles[name]}, {meaning}", "events/s", samples=count,
                              floor=floor)
            )  # fmt: skip
    if "all" in counts:
        meaning = "LoCoMo, json.loads and bare SQLite inserts of 500 a transaction"
        found.append(rounds.figure("floor.import", meaning, "events/s", samples=counts["all"]))
    return found


def _fresh(plan: Plan, home: Path, model: str) -> Any:
    return daemons.serving(home, models_dir=plan.models_dir, model=model)


def _whole_way(rounds: Rounds, name: str, daemon: Daemon, send: Callable[[Daemon], int]) -> int:
    began = time.perf_counter()
    count = send(daemon)
    rounds.add(f"import.{name}.durable", count / (time.perf_counter() - began))
    _wait(daemon, "to_learn")
    rounds.add(f"import.{name}.learned", count / (time.perf_counter() - began))
    _wait(daemon, "to_learn", "to_embed")
    rounds.add(f"import.{name}.embedded", count / (time.perf_counter() - began))
    return count


def _ingest(daemon: Daemon, events: Sequence[dict[str, Any]]) -> int:
    with daemon.client() as client:
        return int(client.call("POST", "/v1/events", {"events": events})["accepted"])


def _import(daemon: Daemon, data: bytes, only: str | None) -> int:
    with daemon.client() as client:
        query = {"name": "locomo10.json", "format": "locomo", "only": only}
        return int(client.call("POST", "/v1/import", data, query)["events"])


def _wait(daemon: Daemon, *counters: str) -> None:
    """Wait until nothing is left of some kinds of work."""
    with daemon.client() as client:
        while any(client.call("GET", "/v1/stats")[counter] for counter in counters):
            time.sleep(LOOK_SECONDS)


def _floor(rounds: Rounds, path: Path, store: Path) -> None:
    bare = BareTable(store)
    began = time.perf_counter()
    rows = [
        {
            "dedupe_key": f"{conversation.name}/{turn.id}",
            "session_id": f"{conversation.name}/{turn.session}",
            "ts": turn.ts,
            "type": "user_message",
            "text": turn.text,
        }
        for conversation in locomo.load(path).conversations
        for turn in conversation.turns
    ]
    for start in range(0, len(rows), 500):
        bare.insert(rows[start : start + 500])
    rounds.add("floor.import", len(rows) / (time.perf_counter() - began))
    bare.close()


def _sample() -> list[dict[str, Any]]:
    text = (resources.files("scrubjay") / "samples" / "conversation.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
