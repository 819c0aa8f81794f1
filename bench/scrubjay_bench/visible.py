"""Two machines on one account: when an edit on one shows on the other, and what sync costs whoever writes.

Real daemons and a real service on loopback, all of it as it is shipped: the debounce, the long-polls, the limits.
"""

from __future__ import annotations

import itertools
import random
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from scrubjay.transports.client import Client, path_of
from scrubjay_bench import bootstrap, clouds, daemons
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.figures import Figure, Rounds, percentile, rounded
from scrubjay_bench.plan import Plan
from scrubjay_bench.recalling import timed
from scrubjay_shared.errors import NotFoundError, UnavailableError

SEED = 37
LOOK_SECONDS = 0.02  # between two looks at the other machine
PAUSE_SECONDS = (0.5, 3.5)
"""Between two edits: people do not write in step with the rounds of sync."""
LOST_SECONDS = 180.0
GOALS = {"visible.p50": 1.0, "visible.p99": 1.5}
SLOWER = 1.1  # what a write may take with sync on, as a multiple of off, in the 99th percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much is done in a round: `edits` that are waited for, `writes` to each of two daemons in each state."""

    edits: int = 12
    writes: int = 200


STATES = {
    "on": "with sync on",
    "gone": "with sync on and the service stopped",
    "mute": "with sync on and a service that takes connections and never answers",
}


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; six minutes, most of which is waiting."""
    return measured(plan, Load())


def measured(plan: Plan, load: Load) -> list[Figure]:
    """Measure with so many edits and writes."""
    rounds = Rounds()
    took: list[float] = []
    with daemons.scratch(plan.scratch) as folder, ExitStack() as stack:
        port = clouds.free_port()
        up = stack.enter_context(ExitStack())
        origin = up.enter_context(clouds.running(folder / "cloud", port=port)).origin
        stack.enter_context(clouds.keys_in_files())
        one, two, off = (_client(plan, folder / name, stack) for name in ("one", "two", "off"))
        bootstrap.sign_up(one, origin, "one")
        bootstrap.log_in(two, origin, "two")
        bootstrap.sync(two, "recover", {"code": bootstrap.CODE.text})
        texts, pauses = Corpus(SEED), random.Random(SEED)
        for place in range(plan.rounds * load.edits):
            here, there = (one, two) if place % 2 else (two, one)
            time.sleep(pauses.uniform(*PAUSE_SECONDS))
            took.append(_seen(here, there, texts, place))
        events = (texts.event(number) for number in itertools.count())
        for state in STATES:
            if state == "gone":
                up.close()
            with _mute(port) if state == "mute" else nullcontext():
                for _ in range(plan.rounds):
                    _write(rounds, state, (one, off), events, load.writes)
    return [*_of_all(took), *_written(rounds, load)]


def _client(plan: Plan, home: Path, stack: ExitStack) -> Client:
    daemon = stack.enter_context(daemons.serving(home, models_dir=plan.models_dir, model="none"))
    return stack.enter_context(daemon.client())


# --- the other machine ------------------------------------------------------------------------------------------------


def _seen(here: Client, there: Client, texts: Corpus, number: int) -> float:
    """Make a memory on one machine, or change one that came from the other, and wait until the other shows it."""
    words = f"{number}: {texts.statement()}"
    path = path_of("/v1/memories/{ref}", ref="shared")
    began = time.perf_counter()
    if number % 3:
        made = here.call("POST", "/v1/memories", {"content": words})
        path = path_of("/v1/memories/{ref}", ref=str(made["memory"]["id"]))
    else:
        try:
            here.call("PATCH", path, {"content": words})
        except NotFoundError:
            here.call("POST", "/v1/memories", {"content": words, "name": "shared"})
    while True:
        with suppress(NotFoundError):
            if there.call("GET", path)["memory"]["content"] == words:
                return time.perf_counter() - began
        if time.perf_counter() - began > LOST_SECONDS:
            raise UnavailableError("an edit did not come to the other machine", hint="scrubjay sync status")
        time.sleep(LOOK_SECONDS)


def _of_all(took: Sequence[float]) -> Iterator[Figure]:
    """Return the percentiles over all edits: of those of one round, too few would make a 99th."""
    for percent, meaning in ((50, "from an edit's request on one machine until the other answers with it"), (99, "…")):
        yield Figure(
            name=f"visible.p{percent}",
            meaning=meaning,
            unit="s",
            value=rounded(percentile(took, percent)),
            low=rounded(min(took)),
            high=rounded(max(took)),
            rounds=1,
            samples=len(took),
            goal=GOALS[f"visible.p{percent}"],
        )


# --- whoever writes ---------------------------------------------------------------------------------------------------


def _write(
    rounds: Rounds, state: str, clients: tuple[Client, Client], events: Iterator[dict[str, Any]], count: int
) -> None:
    """Note how long writes take with sync and without, in turns, so that whatever else happens falls on both."""
    took: dict[str, list[float]] = {"": [], ".off": []}
    for number in range(count):
        pairs = list(zip(took, clients, strict=True))
        event = next(events)
        for suffix, client in pairs if number % 2 else reversed(pairs):
            took[suffix].append(timed(_send, client, event))
    for suffix, seconds in took.items():
        rounds.add_latencies(f"write.{state}{suffix}", seconds, 50, 99)
    for percent in (50, 99):
        own, other = (rounds.values(f"write.{state}{suffix}.p{percent}")[-1] for suffix in took)
        rounds.add(f"write.{state}.times.p{percent}", own / other)


def _send(client: Client, event: dict[str, Any]) -> None:
    client.call("POST", "/v1/events", {"events": [event], "learn": False})


@contextmanager
def _mute(port: int) -> Iterator[None]:
    """Stand where the service was: take every connection and never say a word."""
    ending = Event()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        listener.settimeout(LOOK_SECONDS)

        def hold() -> None:
            held: list[socket.socket] = []
            while not ending.is_set():
                with suppress(TimeoutError):
                    held.append(listener.accept()[0])
            for one in held:
                one.close()

        thread = Thread(target=hold)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()


def _written(rounds: Rounds, load: Load) -> Iterator[Figure]:
    for state, meaning in STATES.items():
        for percent in (50, 99):
            said = f"one event added through its daemon, {meaning}" if percent == 50 else "…"
            name = f"write.{state}.p{percent}"
            yield rounds.figure(name, said, "ms", samples=load.writes, floor=f"write.{state}.off.p{percent}")
            yield rounds.figure(
                f"write.{state}.times.p{percent}",
                "the same as a multiple of sync off" if percent == 50 else "…",
                "×",
                samples=load.writes,
                goal=SLOWER if percent == 99 else None,
            )
            said = "through a daemon with sync off, in turns with those" if percent == 50 else "…"
            yield rounds.figure(f"write.{state}.off.p{percent}", said, "ms", samples=load.writes)
