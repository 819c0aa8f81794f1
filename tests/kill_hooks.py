"""kill -9 of a real daemon during a stream of real hook processes: is anything lost, or stored twice?

`make kill-hooks` prints figures; `play` returns them. Some processes at a time deliver prompts, every fifth twice, as
hosts do that are set up twice. Meanwhile the daemon is killed and started again at moments of chance. In the end each
prompt must be stored once, and the spool be empty.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from hook_process import Home, prompt
from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.transports.client import Running, discover
from scrubjay_shared.errors import ScrubjayError

AT_ONCE = 4
TWICE = 5  # every so manieth prompt is delivered twice
PATIENT = DaemonPolicy(start_seconds=150.0)
SETTLE_SECONDS = 120.0  # without progress at the end, until what is missing is lost
SESSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a stream. `spooled` is how many events were seen waiting at once, at most."""

    events: int
    deliveries: int
    kills: int
    stored: int
    lost: int
    doubled: int
    failed: int
    spooled: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, nothing doubled, and every hook ended well and silently."""
        return not (self.lost or self.doubled or self.failed) and self.stored == self.events


def play(folder: Path, *, events: int, kills: int, seed: int) -> Outcome:
    """Deliver so many events while the daemon is killed so many times."""
    began = time.monotonic()
    draw = random.Random(seed)
    home = Home(folder)
    options.ensure_dirs(home.settings)
    control.start(home.settings, policy=PATIENT)
    numbers = [number for number in range(events) for _ in range(1 if number % TWICE else 2)]
    delivered, failed, most = 0, 0, 0
    lock = threading.Lock()
    over = threading.Event()

    def deliver(number: int) -> None:
        nonlocal delivered, failed
        session = f"session-{number % SESSIONS}"
        done = home.hook(
            "claude-code", "UserPromptSubmit", prompt(session, f"prompt number {number}", prompt_id=f"p{number}")
        )
        with lock:
            delivered += 1
            failed += (done.returncode, done.stdout, done.stderr) != (0, b"", b"")

    def killing() -> int:
        nonlocal most
        done = 0
        for at in sorted(draw.randrange(len(numbers)) for _ in range(kills)):
            while delivered < at and not over.is_set():
                time.sleep(0.01)
            running = Running.of(home.data)
            if running is not None:
                os.kill(running.pid, signal.SIGKILL)
                done += 1
            time.sleep(draw.uniform(0.0, 0.5))
            most = max(most, len(home.spooled()))
            control.start(home.settings, policy=PATIENT)
        return done

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool, ThreadPoolExecutor(1) as killer:
            killed = killer.submit(killing)
            list(pool.map(deliver, numbers))
            over.set()
            done = killed.result()
        stored = _stored_in_the_end(home, events)
    finally:
        over.set()
        control.stop(home.settings)
    return Outcome(
        events=events,
        deliveries=len(numbers),
        kills=done,
        stored=len(stored),
        lost=events - len(set(stored)),
        doubled=len(stored) - len(set(stored)),
        failed=failed,
        spooled=most,
        seconds=round(time.monotonic() - began, 1),
    )


def _stored_in_the_end(home: Home, events: int) -> list[str]:
    """Return the texts of all events, once all are there, or none has come for long."""
    stored: list[str] = []
    since = time.monotonic()
    while time.monotonic() - since < SETTLE_SECONDS:
        try:
            drained = home.drained()
            found = _texts(home)
        except ScrubjayError:
            found, drained = stored, False
            if discover(home.data) is None:
                control.start(home.settings, policy=PATIENT)
        if len(found) > len(stored):
            stored, since = found, time.monotonic()
        if drained and len(set(stored)) >= events:
            return found
        time.sleep(0.2)
    return stored


def _texts(home: Home) -> list[str]:
    texts: list[str] = []
    cursor = None
    with home.client() as client:
        while True:
            query = {"limit": 500} | ({"cursor": cursor} if cursor else {})
            page = client.call("GET", "/v1/events", query=query)
            texts += [event["text"] for event in page["events"] if event["type"] == "user_message"]
            cursor = page["next"]
            if not cursor:
                return texts


def main() -> int:
    """Play one stream and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    line = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sjk-") as folder:
        outcome = play(Path(folder), events=line.events, kills=line.kills, seed=line.seed)
    sys.stdout.write(" · ".join(f"{name} {value}" for name, value in asdict(outcome).items()) + "\n")
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
