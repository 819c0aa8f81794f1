"""`make demo-sync`: two machines, one account. Real daemons, the real cloud service on loopback, the real command line.

Two homes on this machine stand for two machines. They log in and pair by words; then the service is stopped and each
writes, changes, renames and forgets a thousand times on its own; then they meet again in an order that a seed decides.
It ends with an error unless both hold the same and nothing forgotten is back.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from rich.console import Console

from scrubjay import settings
from scrubjay.store import Store
from scrubjay.transports.client import Client, discover, path_of
from scrubjay_bench.daemons import scratch
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, CorruptError, NotFoundError, ScrubjayError, UnavailableError

EDITS = 1_000
SHARED = 60
"""Memories that both machines have before they part: what they will change against each other."""
PASSWORD = "four jays hide one acorn"  # noqa: S105 - of an account that lives for a minute on loopback
CANARY = "ultramarine-walnut-4711"
"""Stands in every memory of the demo, and must stand in no byte of the server's files."""
WAIT_S = 60.0
ROUNDS = 20
"""Sync commands after which both machines must have settled: each needs two or three."""


@dataclass(slots=True)
class Machine:
    """One home, and what it has forgotten."""

    name: str
    home: Path
    forgotten: set[str] = field(default_factory=set)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this machine's processes: nothing of the user's own settings."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
        return kept | {
            "SCRUBJAY_HOME": str(self.home),
            "SCRUBJAY_MODEL": "none",
            "SCRUBJAY_PORT": "0",
            "SCRUBJAY_KEYCHAIN": "file",
        }

    def run(self, *words: str, typed: str = "") -> dict[str, Any]:
        """Run one command and return its JSON answer. Raises what it failed with."""
        done = subprocess.run(
            [sys.executable, "-m", "scrubjay.cli", *words, "--json"],
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S * 5,
        )
        if done.returncode and not done.stdout.strip():
            raise UnavailableError(f"{self.name}: scrubjay {words[0]} failed", hint=done.stderr.strip()[-400:])
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return answer

    def client(self) -> Client:
        """Return a connection to this machine's daemon."""
        found = discover(self.data_dir)
        if found is None:
            raise UnavailableError(f"{self.name}: the daemon does not answer", hint="see its log under the home")
        return found

    @property
    def data_dir(self) -> Path:
        """The folder of the store."""
        return settings.load({}, {"SCRUBJAY_HOME": str(self.home)}).data_dir


@dataclass(slots=True)
class Cloud:
    """The cloud service as a process, which can be taken away and brought back."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def origin(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRUBJAY_", "DATABASE_"))}
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("scrubjay-cloud")), "serve"],
            env=kept
            | {
                "SCRUBJAY_CLOUD_DATA": str(self.folder),
                "SCRUBJAY_CLOUD_PORT": str(self.port),
                "SCRUBJAY_CLOUD_METRICS_PORT": "0",
                "SCRUBJAY_CLOUD_REGISTRATION": "open",
            },
            stdout=subprocess.DEVNULL,
            stderr=(self.folder.parent / "cloud.log").open("ab"),
        )
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(f"{self.origin}/readyz", timeout=2):  # noqa: S310 - loopback
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise UnavailableError("the cloud service did not start", hint=str(self.folder.parent / "cloud.log"))

    def stop(self) -> None:
        """Stop it; what it has acknowledged is on disk."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(WAIT_S)
            self.process = None


def main() -> int:
    """Run the story. Returns 0, or 1 with what went wrong."""
    console = Console(highlight=False)
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(10_000)
    began = time.monotonic()
    try:
        with scratch(None) as folder, ExitStack() as undo:
            _story(console, folder, undo, random.Random(seed))
    except ScrubjayError as error:
        console.print(f"failed (seed {seed}): {error.message}\n      {error.hint}", markup=False, style="red")
        return 1
    console.print(f"\n[bold]both machines hold the same[/] (seed {seed}, {time.monotonic() - began:.0f} s)")
    return 0


def _story(console: Console, folder: Path, undo: ExitStack, roll: random.Random) -> None:
    def say(text: str) -> None:
        console.print(f"[cyan]•[/] {text}")

    cloud = Cloud(folder / "cloud", free_port())
    cloud.folder.mkdir()
    cloud.start()
    undo.callback(cloud.stop)
    say(f"a cloud service at {cloud.origin}, a laptop and a desktop, each with its daemon")
    laptop, desktop = (Machine(name, folder / name) for name in ("laptop", "desktop"))
    for machine in (laptop, desktop):
        machine.run("daemon", "start")
        undo.callback(machine.run, "daemon", "stop")
    _talk(laptop)
    shared = _write_shared(laptop)
    say(f"the laptop remembers a conversation and {SHARED} memories, and signs up:")
    made = laptop.run(
        "login", "--sign-up", "--server", cloud.origin, "--username", "jay", "--password-stdin", typed=f"{PASSWORD}\n"
    )
    console.print(f"    recovery code {made['recovery_code'][:6]}-… (shown once)")

    words = _pair(console, cloud, laptop, desktop)
    say(f"the desktop logs in; it shows [bold]{' '.join(words)}[/], and the laptop lets it in")
    _settle([laptop, desktop], roll)
    say(f"in sync: {_state(laptop)} and {_state(desktop)}")

    cloud.stop()
    say(f"the service is gone. {EDITS:,} edits on each machine, the same memories among them…")
    order = [machine for machine in (laptop, desktop) for _ in range(EDITS)]
    roll.shuffle(order)
    done: Counter[str] = Counter()
    with laptop.client() as one, desktop.client() as two:
        hands = {laptop.name: one, desktop.name: two}
        held = {machine.name: list(shared) for machine in (laptop, desktop)}
        began = time.monotonic()
        for number, machine in enumerate(order):
            done[_edit(hands[machine.name], machine, held[machine.name], number, roll)] += 1
    took = time.monotonic() - began
    console.print(f"    {', '.join(f'{count:,} {what}' for what, count in sorted(done.items()))} in {took:.1f} s")

    cloud.start()
    meetings = _settle([laptop, desktop], roll)
    say(f"the service is back: settled after {meetings} sync commands in random order")
    conflicts = len(laptop.run("conflicts")["conflicts"])
    console.print(f"    {conflicts} edits that lost to a concurrent one are kept: scrubjay conflicts")

    _inspect(say, laptop)
    _no_resurrection(laptop, desktop)
    for machine in (laptop, desktop):
        machine.run("daemon", "stop")
    _same_state(say, laptop, desktop)
    cloud.stop()
    _blind(say, cloud.folder)
    for machine in (laptop, desktop):
        machine.run("daemon", "start")


def _talk(machine: Machine) -> None:
    sample = resources.files("scrubjay").joinpath("samples", "conversation.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in sample.splitlines()]
    with machine.client() as speaker:
        speaker.call("POST", "/v1/events", {"events": events})


def _write_shared(machine: Machine) -> list[str]:
    with machine.client() as speaker:
        return [
            str(
                speaker.call(
                    "POST",
                    "/v1/memories",
                    {"content": f"shared fact {number} about {CANARY}", "name": f"fact-{number}"},
                )["memory"]["id"]
            )
            for number in range(SHARED)
        ]


@contextmanager
def _logging_in(machine: Machine, cloud: Cloud) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "scrubjay.cli", "login", "--server", cloud.origin, "--username", "jay"]
    process = subprocess.Popen(
        [*command, "--password-stdin", "--json"],
        env=machine.environment | {"COLUMNS": "200"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _pair(console: Console, cloud: Cloud, laptop: Machine, desktop: Machine) -> list[str]:
    """Log the desktop in: its six words are typed on the laptop, and the laptop's three on the desktop."""
    with _logging_in(desktop, cloud) as login:
        assert login.stdin is not None  # noqa: S101 - it was asked for
        assert login.stderr is not None  # noqa: S101
        login.stdin.write(f"{PASSWORD}\n")
        login.stdin.flush()
        until = time.monotonic() + WAIT_S
        while not laptop.run("devices", "list")["asking"]:
            if time.monotonic() > until:
                raise UnavailableError("the desktop does not ask to be let in", hint="see its output")
            time.sleep(0.2)
        laptop.run("devices", "approve")  # answers it: now it shows its words
        words: list[str] = []
        for line in login.stderr:
            if found := re.search(r"this machine's words:\s+((?:[a-z]+ ?){6})", line):
                words = found.group(1).split()
                break
        let_in = laptop.run("devices", "approve", "--words", *words, "--password-stdin", typed=f"{PASSWORD}\n")
        _, errors = login.communicate(f"{' '.join(let_in['proof'])}\n", timeout=WAIT_S)
        if login.returncode:
            console.print(errors, markup=False)
            raise UnavailableError("the desktop was not let in", hint="see above")
    return words


def _edit(hand: Client, machine: Machine, held: list[str], number: int, roll: random.Random) -> str:
    """Make one edit on one machine. Returns what it was."""
    what = roll.choices(("added", "changed", "renamed", "forgotten"), (30, 45, 15, 10))[0]
    live = [memory for memory in held if memory not in machine.forgotten]
    if what == "added" or not live:
        made = hand.call("POST", "/v1/memories", {"content": f"{machine.name} noted {number} about {CANARY}"})
        held.append(str(made["memory"]["id"]))
        return "added"
    memory = roll.choice(live)
    path = path_of("/v1/memories/{ref}", ref=memory)
    if what == "changed":
        hand.call(
            "PATCH", path, {"content": f"{machine.name} changed it at {number}, {CANARY}", "salience": roll.random()}
        )
    elif what == "renamed":
        try:
            hand.call("POST", f"{path}/rename", {"name": f"name-{roll.randrange(80)}"})
        except ConflictError:
            return "refused names"
    else:
        hand.call("DELETE", path)
        machine.forgotten.add(memory)
    return what


def _settle(machines: list[Machine], roll: random.Random) -> int:
    """Run sync commands in random order until each has seen everything. Returns how many it took."""
    quiet = {machine.name: False for machine in machines}
    for count in range(1, ROUNDS + 1):
        machine = roll.choice(machines)
        done = machine.run("sync")
        moved = bool(done.get("ops_sent") or done.get("ops_received"))
        if moved or not done.get("synced"):
            quiet = dict.fromkeys(quiet, False)
        quiet[machine.name] = not moved and bool(done.get("synced"))
        if all(quiet.values()):
            return count
    raise UnavailableError(f"not settled after {ROUNDS} sync commands", hint="scrubjay sync status")


def _state(machine: Machine) -> str:
    stats = machine.run("stats")
    return f"{stats['memories']:,} memories, {stats['events']:,} events on the {machine.name}"


def _inspect(say: Any, machine: Machine) -> None:
    found = machine.run("sync", "inspect")
    if not found["blind"]:
        raise CorruptError("the server can read something", hint="; ".join(found["findings"]))
    say(
        f"scrubjay sync inspect: {found['objects']:,} objects, {found['bytes']:,} bytes; {found['grams']:,} pieces of"
        f" {found['texts']:,} texts looked for, none found"
    )


def _no_resurrection(*machines: Machine) -> None:
    forgotten = set().union(*(machine.forgotten for machine in machines))
    for machine in machines:
        with machine.client() as speaker:
            for memory in forgotten:
                try:
                    speaker.call("GET", path_of("/v1/memories/{ref}", ref=memory))
                except NotFoundError:
                    continue
                raise CorruptError(f"{memory} was forgotten and is back on the {machine.name}", hint="a bug: report it")


def _same_state(say: Any, *machines: Machine) -> None:
    async def digest(machine: Machine) -> str:
        now = Millis(time.time_ns() // 1_000_000)
        store = await Store.open(machine.data_dir / "memory.db", now=lambda: now, entropy=os.urandom)
        try:
            return await store.read(lambda q: q.digests.state())
        finally:
            await store.close()

    digests = {machine.name: asyncio.run(digest(machine)) for machine in machines}
    if len(set(digests.values())) != 1:
        raise CorruptError("the two machines do not hold the same", hint=str(digests))
    say(f"state hash on both: {next(iter(digests.values()))[:16]}…; nothing that was forgotten is back")


def _blind(say: Any, folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        if CANARY.encode() in path.read_bytes():
            raise CorruptError(f"{path.name} holds a memory's words", hint="a bug: report it")
    size = sum(path.stat().st_size for path in files)
    say(f"the server's {len(files)} files ({size:,} bytes) hold {CANARY!r} nowhere")


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
