"""The table of contents: the walk from all that was said down to the words, in stores small and large.

The way that an agent goes: the root, a year, a month, a week, a day, a segment, the passage behind one of its bullets,
and the events of the segment; at each step a child is drawn. All of it through the daemon, request by request. Besides,
how long the table takes to build, and what adding an event costs while it is being built.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

from scrubjay.settings import NO_MODEL
from scrubjay.transports.client import Client
from scrubjay_bench import corpus, daemons, locomo
from scrubjay_bench.conversations import DAY_MS, Conversation
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan

WALKS = 50  # a round; with five rounds, 250 of each step
ITEMS = 100_000
BATCH = 500
TALKS = 20  # made-up conversations, without LoCoMo
SINGLE = 200  # events added one by one a round
WARM_UP = 3
LOOK_SECONDS = 0.05
MONTH_MS = 30 * DAY_MS
NOW_MS = 1_893_456_000_000  # 2030-01-01 UTC: after all that is copied
AGENTS = ("crow", "jay", "magpie")
SEED = 17
GOAL_MS = 10.0
STEPS = ("root", "year", "month", "week", "day", "segment", "grip", "events")
WALKED = {
    "root": "all that was said, with its years",
    "year": "a year, with its months",
    "month": "a month, with its weeks",
    "week": "a week, with its days",
    "day": "a day, with its segments",
    "segment": "a segment",
    "grip": "the passage behind a bullet, with two events before and after",
    "events": "the events of the segment",
}
STORES = {"small": "one conversation", "large": f"{ITEMS:,} events"}


def measure(plan: Plan) -> list[Figure]:
    """Measure both stores, a new one each round; about a minute and a half a round."""
    talks = corpus.conversations(TALKS) if plan.locomo is None else locomo.load(plan.locomo).conversations
    rounds = Rounds()
    counts: dict[str, int] = {}
    with daemons.scratch(plan.scratch) as folder:
        for number in range(plan.rounds):
            for name, events in (("small", _events(talks[:1], 1)), ("large", islice(_events(talks, None), ITEMS))):
                home = folder / f"{name}-{number}"
                home.mkdir()
                with (
                    daemons.serving(home, models_dir=plan.models_dir, model=NO_MODEL) as daemon,
                    daemon.client() as client,
                ):
                    client.call("POST", "/v1/jobs/toc/pause", {})
                    counts[name] = _sent(client, events)
                    if name == "large":
                        rounds.add_latencies("toc.append.before", _added(client), 50, 99)
                    rounds.add(f"toc.build.{name}", counts[name] / _built(rounds, client, name))
                    _walked(rounds, client, name, random.Random(SEED + number))
    return _figures(rounds, counts)


def _built(rounds: Rounds, client: Client, name: str) -> float:
    """Build the table in the background and return how many seconds that took; events are added meanwhile."""
    began = time.perf_counter()
    client.call("POST", "/v1/jobs/toc/resume", {})
    took: list[float] = []
    while client.call("GET", "/v1/toc", query={"limit": 1})["building"]:
        if name == "large":
            took += _added(client, 20)
        time.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    if took:
        rounds.add_latencies("toc.append.meanwhile", took, 50, 99)
    return seconds


def _walked(rounds: Rounds, client: Client, name: str, draw: random.Random) -> None:
    """Note one round of walks, each from the root to the events of a segment."""
    took: dict[str, list[float]] = {step: [] for step in STEPS}

    def ask(step: str, path: str, **query: object) -> dict[str, Any]:
        began = time.perf_counter()
        found: dict[str, Any] = client.call("GET", path, query=query)
        took[step].append(time.perf_counter() - began)
        return found

    for _ in range(WALKS + WARM_UP):
        found = ask("root", "/v1/toc")
        for step in STEPS[1:6]:
            found = ask(step, "/v1/toc", id=draw.choice(found["node"]["children"]))
        grips = found["node"]["grip_ids"]
        if not grips:
            continue  # greetings only: nothing is quoted of them
        grip = ask("grip", f"/v1/grips/{draw.choice(grips)}")
        if grip["excerpt"] not in "".join(event["text"] for event in grip["events"]):
            raise AssertionError("a passage is not what was said")
        period = {"since": found["node"]["start"], "until": found["node"]["end"] + 1}
        events = ask("events", "/v1/events", session_id=found["session_id"], **period)
        if len(events["events"]) != found["events"]:
            raise AssertionError("a segment has other events than it says")
    for step, seconds in took.items():
        rounds.add_latencies(f"toc.{name}.{step}", seconds[WARM_UP:], 50, 99)


def _events(talks: Sequence[Conversation], copies: int | None) -> Iterator[dict[str, Any]]:
    """Yield the turns of some conversations, each its own project, over and over, a copy a month after the other."""
    for number in range(copies) if copies is not None else count():
        for talk in talks:
            for turn in talk.turns:
                yield {
                    "agent": AGENTS[number % len(AGENTS)],
                    "session_id": f"{talk.name}/{number}/{turn.session}",
                    "project": talk.name,
                    "type": "user_message",
                    "text": turn.text or "…",
                    "ts": turn.ts + number * MONTH_MS,
                    "dedupe_key": f"{talk.name}/{number}/{turn.id}",
                }


def _sent(client: Client, events: Iterator[dict[str, Any]]) -> int:
    """Add events in batches and return how many were new."""
    sent = 0
    while batch := list(islice(events, BATCH)):
        sent += client.call("POST", "/v1/events", {"events": batch, "learn": False})["accepted"]
    return sent


def _added(client: Client, number: int = SINGLE) -> list[float]:
    """Add events one by one to a session that is still going on, and return how many seconds each took."""
    took = []
    for _ in range(number):
        place = next(_numbers)
        event = {
            "agent": "bench",
            "session_id": "now",
            "type": "user_message",
            "text": f"The ferry of berth {place} was cancelled because of fog.",
            "ts": NOW_MS + place,
        }
        began = time.perf_counter()
        client.call("POST", "/v1/events", {"events": [event], "learn": False})
        took.append(time.perf_counter() - began)
    return took


_numbers = count()


def _figures(rounds: Rounds, counts: dict[str, int]) -> list[Figure]:
    found = []
    for name, title in STORES.items():
        found += [
            rounds.figure(f"toc.{name}.{step}.p{percent}", f"{title}: {WALKED[step]}" if percent == 50 else
                          "the same, 99th percentile", "ms", samples=WALKS, goal=GOAL_MS)
            for step in STEPS
            for percent in (50, 99)
        ]  # fmt: skip
        found.append(
            rounds.figure(f"toc.build.{name}", f"{title}: the table built in the background", "events/s",
                          samples=counts[name])
        )  # fmt: skip
    for when, meaning in (("before", "before the table is built"), ("meanwhile", "while it is built")):
        found += [
            rounds.figure(f"toc.append.{when}.p{percent}", f"one event added, {meaning}" if percent == 50 else
                          "the same, 99th percentile", "ms", samples=SINGLE)
            for percent in (50, 99)
        ]  # fmt: skip
    return found
