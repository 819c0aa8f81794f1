"""A first upload and a new machine: accounts of 10,000, 100,000 and 1,000,000 events, from first device to second.

The first store is written through the store's own append path and kept. Each role (who uploads, who joins) is a process
of its own with the product's engine in it, so that its memory and processor time are its own: one reads the lanes, one
begins with the snapshot that the first device made. Then a real daemon joins by snapshot, and is asked. The service is
a real process with its rate limits lifted: a person's third machine within ten minutes would have to wait.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay.transports.client import Client, path_of
from scrubjay_bench import bootstrap_floor, clouds, daemons, progress, sealing
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError, UnavailableError
from scrubjay_shared.records import Event
from scrubjay_shared.wire import Kdf
from scrubjay_sync import packing
from scrubjay_sync.account import admission, registration
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine.results import Progress
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keys.recovery_code import RecoveryCode

SIZES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
GOALS = {
    "1m": {"wall": 40.0, "snapshot.wall": 20.0, "first.query": 3.0, "memory.peak": 250.0, "upload.wall": 30.0},
}
SEED = 31
FORMAT = 3
"""Of kept stores; another number makes them anew."""
AT_ONCE = 2_000  # events a transaction while the first store is made
USEFUL = 20_000  # newest events that make a first query useful
USERNAME = "jay"
AUTH_KEY = b"a" * 32
KDF = Kdf(salt=b"k" * 16, memory_kib=64 * 1024, iterations=3, lanes=4)
CODE = RecoveryCode(secret=b"scrubjay-bench-code!")
LONG_SECONDS = 1_800.0


def measure(plan: Plan, name: str) -> list[Figure]:
    """Measure one size: half a minute at 10,000 events; at a million ten, and some more when the store is made."""
    return measured(plan, SIZES[name], name)


def measured(plan: Plan, events: int, name: str) -> list[Figure]:
    """Measure an account of so many events."""
    rounds = Rounds()
    store = stored(plan.keep, events)
    with daemons.scratch(plan.scratch) as folder:
        for place in range(plan.rounds):
            at = folder / str(place)
            at.mkdir()
            with clouds.running(at / "cloud", unlimited=True) as service:
                _upload(rounds, store, at / "first", service, events)
                _join(rounds, at / "second", service, events)
                _join_by_snapshot(rounds, at / "snapshot", service, events)
                _join_daemon(rounds, plan, at / "third", service, events)
                rounds.add("size", _on_disk(at / "cloud") / events)
            bootstrap_floor.measure(rounds, store, at / "floor.db", events)
            shutil.rmtree(at, ignore_errors=True)
    return _figures(rounds, events, name)


# --- the first store --------------------------------------------------------------------------------------------------


def stored(keep: Path, events: int) -> Path:
    """Return the file of a closed store with the corpus's first events, made in `keep` unless it is there."""
    path = keep / f"sync-{events}-{FORMAT}-{SEED}-{_schema()}" / "memory.db"
    if not path.exists():
        partial = path.parent.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        asyncio.run(_fill(partial / path.name, events))
        partial.rename(path.parent)
    return path


def _schema() -> str:
    """Return what changes with the tables: a kept store of others would be migrated when it is opened."""
    from scrubjay import store  # noqa: PLC0415 - for its folder only

    migrations = sorted((Path(str(store.__file__)).parent / "migrations").glob("*.sql"))
    return clouds.digest(b"".join(path.read_bytes() for path in migrations))


async def _fill(path: Path, events: int) -> None:
    texts, draw = Corpus(SEED), random.Random(SEED)
    numbers = iter(range(events))
    made = await Store.open(path, now=_now, entropy=os.urandom)
    try:
        with progress.steps(events) as steps:
            steps.say(f"filling a store with {events:,} events")
            while batch := [sealing.event_of(texts, number, draw) for number in itertools.islice(numbers, AT_ONCE)]:
                await made.write(partial(_append, batch))
                steps.step(len(batch))
        await made.checkpoint(truncate=True)
    finally:
        await made.close()


def _append(events: Sequence[Event], tx: Transaction) -> None:
    tx.events.append(events, learn=False)


# --- who takes part ---------------------------------------------------------------------------------------------------


def _upload(rounds: Rounds, store: Path, home: Path, service: clouds.Service, events: int) -> None:
    home.mkdir()
    shutil.copyfile(store, home / "memory.db")
    before = service.cpu_seconds()
    told = _role("upload", home, service)
    rounds.add("upload.wall", told["wall"])
    rounds.add("upload", events / told["wall"])
    rounds.add("upload.cpu", told["cpu"])
    rounds.add("upload.service.cpu", service.cpu_seconds() - before)
    rounds.add("upload.memory.peak", told["peak_mb"])
    for name in ("make.wall", "make.cpu", "make.memory.peak"):
        rounds.add(f"snapshot.{name}", told[name])


def _join(rounds: Rounds, home: Path, service: clouds.Service, events: int) -> None:
    home.mkdir()
    before = service.cpu_seconds()
    told = _role("join", home, service)
    if told["events"] != events:
        raise UnavailableError(f"{told['events']} of {events} events came", hint="scrubjay sync status")
    rounds.add("rate", events / told["wall"])
    for name in (
        "wall",
        "cpu",
        "first",
        "download.wall",
        "download.cpu",
        "open.cpu",
        "apply.cpu",
        "prepare.cpu",
        "rest.cpu",
    ):
        rounds.add(name, told[name])
    rounds.add("service.cpu", service.cpu_seconds() - before)
    rounds.add("memory.peak", told["peak_mb"])
    rounds.add("memory.before", told["before_mb"])


def _join_by_snapshot(rounds: Rounds, home: Path, service: clouds.Service, events: int) -> None:
    home.mkdir()
    before = service.cpu_seconds()
    told = _role("snapshot", home, service)
    if told["events"] != events or told["snapshot.events"] != events:
        raise UnavailableError(f"{told['snapshot.events']:.0f} of {events} events came", hint="scrubjay sync status")
    rounds.add("snapshot.rate", events / told["snapshot.wall"])
    for name in ("snapshot.wall", "snapshot.first", "snapshot.cpu"):
        rounds.add(name, told[name])
    rounds.add("snapshot.verified", told["wall"])
    rounds.add("snapshot.verified.cpu", told["cpu"])
    rounds.add("snapshot.service.cpu", service.cpu_seconds() - before)
    rounds.add("snapshot.memory.peak", told["peak_mb"])


def _join_daemon(rounds: Rounds, plan: Plan, home: Path, service: clouds.Service, events: int) -> None:
    """Let a real daemon in, and ask it for the newest event until it knows it."""
    with (
        clouds.keys_in_files(),
        daemons.serving(home, models_dir=plan.models_dir, model="none") as daemon,
        daemon.client() as client,
    ):
        newest = _newest_words(events)
        log_in(client, service.origin, "third")
        began = time.perf_counter()
        sync(client, "recover", {"code": CODE.text})
        peak, beside = daemon.rss_mb(), 0.0
        found = useful = 0.0
        there = 0
        while there < events:
            if not found and client.call("POST", "/v1/recall", {"query": newest, "mode": "keyword"})["hits"]:
                found = time.perf_counter() - began
            there = int(client.call("GET", "/v1/stats")["events"])
            if not useful and there >= min(USEFUL, events) and found:
                useful = time.perf_counter() - began
            peak, beside = max(peak, daemon.rss_mb()), max(beside, daemon.children_rss_mb())
            if time.perf_counter() - began > LONG_SECONDS:
                raise UnavailableError(f"{there} of {events} events came", hint="scrubjay sync status")
            time.sleep(0.05)
        rounds.add("daemon.wall", time.perf_counter() - began)
        rounds.add("first.query", useful or time.perf_counter() - began)
        rounds.add("daemon.memory.peak", peak)
        rounds.add("daemon.memory.beside", beside)
        rounds.add("daemon.memory.rest", daemon.rss_mb())


def _newest_words(events: int) -> str:
    texts, draw = Corpus(SEED), random.Random(SEED)
    if events > SIZES["100k"]:  # making a million events again takes a minute: any of the kept ones will do
        return "meeting budget release"
    return [sealing.event_of(texts, number, draw).text for number in range(events)][-1]


def _role(name: str, home: Path, service: clouds.Service) -> dict[str, float]:
    """Run one device as a process, and return what it tells of itself."""
    command = [sys.executable, "-P", "-m", "scrubjay_bench.bootstrap", name, str(home), service.origin]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)
    if done.returncode:
        raise UnavailableError(f"the device that should {name} failed", hint=done.stderr.strip()[-600:])
    told: dict[str, float] = json.loads(done.stdout)
    return told


def sync(client: Client, operation: str, body: Any) -> Any:
    """Call an operation of sync in a daemon."""
    return client.call("POST", path_of("/v1/operations/{name}", name=f"sync.{operation}"), msgspec.to_builtins(body))


def log_in(client: Client, origin: str, name: str) -> Any:
    """Have a daemon ask to be let into the benchmark's account."""
    request = {"origin": origin, "username": USERNAME, "auth_key": AUTH_KEY, "kdf": KDF, "device_name": name}
    return sync(client, "log_in", request)


def sign_up(client: Client, origin: str, name: str) -> Any:
    """Have a daemon make the benchmark's account."""
    request = {"origin": origin, "username": USERNAME, "auth_key": AUTH_KEY, "kdf": KDF, "device_name": name}
    return sync(client, "sign_up", request | {"recovery": CODE.text})


# --- one device, in a process of its own ------------------------------------------------------------------------------


class _Vault:
    """A `secrets.Vault` in memory."""

    def __init__(self) -> None:
        self._secrets: Secrets | None = None
        self._sealed: bytes | None = None

    async def load(self) -> Secrets | None:
        return self._secrets

    async def save(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def keyring(self) -> bytes | None:
        return self._sealed

    async def keep_keyring(self, data: bytes) -> None:
        self._sealed = data

    async def erase(self) -> None:
        self._secrets = self._sealed = None


@dataclass(slots=True)
class _Clocks:
    """Where this process's time goes. `main` is processor time of the event loop's thread; sums in seconds."""

    main: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)

    def around(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return `act`, measured."""

        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return act(*given, **named)
            finally:
                self.main[name] = self.main.get(name, 0.0) + time.thread_time() - began

        return timed

    def awaited(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return `act`, a coroutine function, measured: nothing else runs on the loop while a round waits for it."""

        async def timed(*given: Any, **named: Any) -> Any:
            began, began_wall = time.thread_time(), time.perf_counter()
            try:
                return await act(*given, **named)
            finally:
                self.main[name] = self.main.get(name, 0.0) + time.thread_time() - began
                self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - began_wall

        return timed


async def _device(role: str, home: Path, origin: str) -> dict[str, float]:
    clocks = _Clocks()
    store = await Store.open(home / "memory.db", now=_now, entropy=os.urandom)
    cloud = Cloud(origin, now=_now)
    try:
        machine = Machine(store=store, vault=_Vault(), cloud=cloud, now=_now, entropy=os.urandom)
        if role == "upload":
            member = await registration.sign_up(
                machine, username=USERNAME, auth_key=AUTH_KEY, kdf=KDF, recovery=CODE, name="first"
            )
        else:
            joining = await admission.log_in(machine, username=USERNAME, auth_key=AUTH_KEY, name="second")
            member = await joining.recover(CODE)
        first: list[float] = []
        by_snapshot: dict[str, float] = {}

        def note(progress: Progress) -> None:
            if progress.step == "snapshot" and role == "snapshot":
                by_snapshot.setdefault("snapshot.first", time.perf_counter() - began)
                if progress.done == progress.total:
                    by_snapshot["snapshot.wall"] = time.perf_counter() - began
                    by_snapshot["snapshot.cpu"] = time.process_time() - began_cpu
                    by_snapshot["snapshot.events"] = progress.done
            if progress.step == "bootstrap" and not first:
                clocks.wall["enough"] = progress.done / max(progress.total, 1)
                first.append(time.perf_counter())

        if role == "join":
            setattr(cloud.snapshots, "manifest", _none_there)  # noqa: B010 - by its lanes
        # Where time goes inside a round: these are the only ways out of the event loop's own work.
        for method in ("lane", "pull", "heads"):
            setattr(cloud, method, clocks.awaited("download", getattr(cloud, method)))
        setattr(packing, "opened", clocks.around("open", packing.opened))  # noqa: B010 - a function cannot be assigned to
        made = Engine(
            store,
            member,
            cloud,
            now=_now,
            entropy=os.urandom,
            sleep=asyncio.sleep,
            free_bytes=lambda: shutil.disk_usage(home).free,
            on_progress=note,
        )
        before = _peak_mb()
        began, began_cpu, began_main = time.perf_counter(), time.process_time(), time.thread_time()
        synced = False
        while not synced:
            synced = (await made.sync()).synced
        wall, own, main = (
            time.perf_counter() - began, time.process_time() - began_cpu, time.thread_time() - began_main
        )  # fmt: skip
        children = os.times()
        prepare = children.children_user + children.children_system
        cpu = own + prepare
        if role == "upload":
            by_snapshot |= await _snapshot_made(made)
        count = (await store.read(lambda q: q.fetch("select count(*) from event")))[0][0]
    finally:
        await cloud.aclose()
        await store.close()
    opened, download = clocks.main.get("open", 0.0), clocks.main.get("download", 0.0)
    return by_snapshot | {
        "wall": wall,
        "cpu": cpu,
        "first": first[0] - began if first else wall,
        "download.wall": clocks.wall.get("download", 0.0),
        "download.cpu": download,
        "open.cpu": opened,
        "apply.cpu": own - main,
        "prepare.cpu": prepare,
        "rest.cpu": main - opened - download,
        "events": count,
        "before_mb": before,
        "peak_mb": _peak_mb(),
    }


async def _none_there(_: bytes) -> bytes:
    raise NotFoundError("this device reads the lanes", hint="it is a benchmark of that")


async def _snapshot_made(engine: Engine) -> dict[str, float]:
    began, began_cpu = time.perf_counter(), time.process_time()
    await engine.snapshot()
    return {
        "make.wall": time.perf_counter() - began,
        "make.cpu": time.process_time() - began_cpu,
        "make.memory.peak": _peak_mb(),
    }


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


def _peak_mb() -> float:
    """Return the most memory that this process ever had, in megabytes of 10^6 bytes."""
    try:  # what getrusage says begins with the size of whoever started this process
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.db*"))


def _figures(rounds: Rounds, events: int, size: str) -> list[Figure]:
    goals = GOALS.get(size, {})

    def row(name: str, meaning: str, unit: str, floor: str = "") -> Figure:
        made = rounds.figure(name, meaning, unit, samples=events, floor=floor, goal=goals.get(name))
        return replace(made, name=_named(name, size), floor=_named(floor, size) if floor else "")

    return [
        row("wall", "a new device: from its first request until it holds everything", "s", "floor.wall"),
        row("rate", "the same as a rate", "events/s", "floor.rate"),
        row("cpu", "its processor time", "s", "floor.cpu"),
        row("download.cpu", "of which requests and their answers (event loop)", "s"),
        row("open.cpu", "of which decryption, decompression and decoding (event loop)", "s"),
        row("apply.cpu", "of which the store: rows and indexes (its thread)", "s", "floor.cpu"),
        row("prepare.cpu", "of which the other process: ops read and screened, rows and tokens made", "s"),
        row("rest.cpu", "of which signatures, chains and all else (event loop)", "s"),
        row("download.wall", "of the time by the clock, waiting for the service", "s"),
        row("service.cpu", "the service's processor time for it", "s"),
        row("first", "until the first page is applied, which is the newest one, however small", "s"),
        row("memory.peak", "most resident memory of the device, without recall's index and the other process", "MB"),
        row("memory.before", "of which before its first round", "MB"),
        row("snapshot.wall", "a new device that begins with a snapshot: until it holds everything", "s", "floor.wall"),
        row("snapshot.rate", "the same as a rate", "events/s", "floor.rate"),
        row("snapshot.first", "until the newest events of the snapshot are stored", "s"),
        row("snapshot.cpu", "its processor time until it holds everything, without the other process", "s",
            "floor.cpu"),
        row("snapshot.verified", "until every lane was read, checked and compared with what the snapshot said", "s"),
        row("snapshot.verified.cpu", "its processor time till then, the other process included", "s"),
        row("snapshot.service.cpu", "the service's processor time for both", "s"),
        row("snapshot.memory.peak", "most resident memory of the device, without recall's index and the other process",
            "MB"),
        row("snapshot.make.wall", "making the snapshot and sending it, on loopback", "s"),
        row("snapshot.make.cpu", "its processor time", "s"),
        row("snapshot.make.memory.peak", "most resident memory of the device that makes it", "MB"),
        row("daemon.wall", "a real daemon lets itself in with the recovery code: until it holds everything, asked all"
            " the while", "s", "floor.wall"),
        row("first.query", f"the same until the newest {min(USEFUL, events):,} events are there"
            " and a keyword question has hits", "s"),
        row("daemon.memory.peak", "most resident memory of that daemon, recall's index included", "MB"),
        row("daemon.memory.beside", "most resident memory of the process that makes ops ready beside it", "MB"),
        row("daemon.memory.rest", "its resident memory when it is done", "MB"),
        row("upload.wall", "the first upload, on loopback", "s"),
        row("upload", "the same as a rate", "events/s"),
        row("upload.cpu", "its processor time", "s"),
        row("upload.service.cpu", "the service's processor time for it", "s"),
        row("upload.memory.peak", "most resident memory of the device that uploads", "MB"),
        row("size", "of the service's files for an event", "bytes"),
        row("floor.wall", "bare SQLite, one connection: the same rows, indexes and tokens", "s"),
        row("floor.rate", "the same as a rate", "events/s"),
        row("floor.cpu", "its processor time", "s"),
    ]  # fmt: skip


def _named(name: str, size: str) -> str:
    return (
        f"floor.bootstrap.{size}{name.removeprefix('floor')}"
        if name.startswith("floor")
        else (f"bootstrap.{size}.{name}")
    )


def main(words: Sequence[str]) -> None:
    """Be one device: `upload` or `join`, its folder, the service's address. Prints what it cost."""
    role, home, origin = words
    print(json.dumps(asyncio.run(_device(role, Path(home), origin))))


if __name__ == "__main__":
    main(sys.argv[1:])
