"""kill -9 over real processes: devices with their daemons, the service with its litestream, a bad line between them.

`make kill-rounds` prints figures; `play` returns them. A round lets every device write and sync while something is
killed at a chosen moment. Then what died is started again, the line is good, and within a few syncs all devices must
show the same, and everything that was acknowledged to a writer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx2 as httpx
import msgspec
import psutil

from cloud_drill import SERVICE, Deployment, litestream_of
from fault_proxy import ALL_FAULTS, FaultProxy, Passing, Stage
from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.store import Store, check
from scrubjay.transports.client import Client, Running, discover, path_of
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ConflictError,
    NotFoundError,
    ScrubjayError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
)
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Op
from scrubjay_shared.wire import Kdf
from scrubjay_sync.api.devices import AnswerRequest, ApproveRequest
from scrubjay_sync.api.login import JoinRequest, LogInRequest, LogOutRequest, SignUpRequest
from scrubjay_sync.keys.password import auth_key
from scrubjay_sync.keys.recovery_code import RecoveryCode
from simulation import laws

NAMES = ("laptop", "desktop", "server")
PASSWORD = "four jays hide one acorn"  # of an account that lives for minutes on loopback
CANARY = "ultramarine-walnut-4711"
"""Stands in everything that is written, and must stand in no byte of the service's files or of the network."""
USERNAME = "jay"
KDF = Kdf(salt=b"k" * 16, memory_kib=19 * 1024, iterations=2, lanes=1)
START_S = 60.0  # for a process to serve: it takes 2, on a busy machine 10
PATIENT = DaemonPolicy(start_seconds=START_S)
MOMENT_S = 2.5  # a round waits so long for its moment, and then kills anyway
PASSES = 12
"""Times that every device may sync before a round has failed to settle."""
QUIET_PASSES = 2
"""Passes in a row in which nobody may have anything to say before a round has settled."""
TRIES = 40
"""Attempts of one sync: the service may just be starting, or limit how often it is asked."""
MOST_ASKED_S = 120.0
"""As long as an account that played a round a second for minutes waits to be let through again."""
COPIES = 4
"""Older copies that are kept of each device."""


class BrokenPromiseError(AssertionError):
    """Something that was promised does not hold; it says what, and of which seed and round."""


class Kind(StrEnum):
    """What is killed, and when."""

    PUSHING = "device while it pushes"
    APPLYING = "device while it applies"
    WRITTEN = "device after a write"
    COMMITTING = "service while it commits"
    LITESTREAM = "litestream"
    DISK = "service, its disk lost"
    POWER = "everything at once"
    RESTORED = "device, then an older copy of it"
    CLONED = "device, then two copies of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What some rounds showed. Seconds; `gone_with_disk` were on one device only when its disk was replaced.

    `resurrected`, `lost` and `leaks` are 0, or there would be no figures: the first one ends the run.
    """

    seed: int
    rounds: int
    seconds: float
    kills: dict[str, int]
    missed_moments: int
    faults: dict[str, int]
    requests: int
    acknowledged: int
    forgotten: int
    lost: int
    resurrected: int
    leaks: int
    gone_with_disk: int
    heals: int
    generations: int
    reincarnations: int
    conflicts: int
    settle_median_s: float
    settle_worst_s: float
    passes_median: float
    passes_worst: int
    limited: int
    objects_verified: int

    def text(self) -> str:
        """Return the figures as lines for people."""
        kills = "\n".join(f"  {count:>5}  {kind}" for kind, count in sorted(self.kills.items()))
        faults = "\n".join(f"  {count:>5}  {kind}" for kind, count in sorted(self.faults.items()))
        return (
            f"{self.rounds} rounds of kill -9 in {self.seconds:.0f} s (seed {self.seed})\n{kills}\n"
            f"faults on the line, of {self.requests:,} requests\n{faults}\n"
            f"{self.acknowledged:,} writes acknowledged, {self.forgotten:,} of them forgets: {self.lost} lost,"
            f" {self.resurrected} back; {self.conflicts:,} conflicts kept\n"
            f"{self.gone_with_disk} writes were on one device only when its disk was replaced by an older copy\n"
            f"{self.generations} restores of the service, {self.heals} heals; {self.reincarnations} devices went on"
            " under a new id\n"
            f"settled in {self.settle_median_s:.1f} s (median), {self.settle_worst_s:.1f} s (worst);"
            f" {self.passes_median:.0f} syncs of each (median), {self.passes_worst} (worst)\n"
        )


# --- what was acknowledged --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One acknowledged write: an event by its key, a memory's content by its text, or a memory's end."""

    what: str
    ref: str
    text: str = ""


@dataclass(slots=True)
class Ledger:
    """Everything that a device has acknowledged to a writer, and that must be there from then on."""

    written: list[Write] = field(default_factory=list)
    forgetting: set[str] = field(default_factory=set)
    """Memories whose end was asked for, whether or not it was acknowledged."""
    forgotten: set[str] = field(default_factory=set)
    live: list[str] = field(default_factory=list)
    count: int = 0
    acknowledged: int = 0
    forgets: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        """Return a number that no other write has."""
        with self.lock:
            self.count += 1
            return self.count

    def note(self, write: Write) -> Write:
        """Keep a write that was acknowledged."""
        with self.lock:
            self.acknowledged += 1
            self.written.append(write)
            if write.what == "memory":
                self.live.append(write.ref)
            if write.what == "forget":
                self.forgets += 1
                self.forgotten.add(write.ref)
        return write

    def chosen(self, roll: random.Random, *, forget: bool = False) -> str:
        """Return a memory that nobody has forgotten, "" when there is none."""
        with self.lock:
            open_ = [ref for ref in self.live[-60:] if ref not in self.forgetting]
            ref = roll.choice(open_) if open_ else ""
            if ref and forget:
                self.forgetting.add(ref)
            return ref

    def drop(self, gone: list[Write]) -> None:
        """Let go of writes that were on one disk only, which is no more."""
        self.written = [one for one in self.written if one not in gone]
        for one in gone:
            if one.what == "forget":
                self.forgotten.discard(one.ref)


# --- one device -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Copy:
    """A copy of a device's folder, made while it was dead."""

    folder: Path
    device: str


@dataclass(slots=True)
class Machine:
    """One home with its daemon, and what it has acknowledged since all were last in step."""

    name: str
    home: Path
    device: str = ""
    fresh: list[Write] = field(default_factory=list)
    safe: int = 0
    """How many of `fresh` the service has, by the device's own word."""
    at_risk: list[Write] = field(default_factory=list)
    """What was on its disk only when an older copy took its place."""
    copies: list[Copy] = field(default_factory=list)
    running: Running | None = None

    @property
    def settings(self) -> Settings:
        """The settings of its daemon: nothing of the user's own."""
        return options.load(environ={"SCRUBJAY_HOME": str(self.home), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"})

    def start(self) -> None:
        """Start its daemon, and wait until it serves."""
        self.running = control.start(self.settings, policy=PATIENT).daemon

    def kill(self) -> None:
        """Kill its daemon, and return when the system has taken it away."""
        running, self.running = self.running, None
        if running is not None:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process = psutil.Process(running.pid)
                os.kill(running.pid, signal.SIGKILL)
                process.wait(10)

    def client(self) -> Client:
        """Return a connection of one's own to its daemon."""
        found = discover(self.settings.data_dir)
        if found is None:
            raise UnavailableError(f"{self.name}: the daemon does not answer", hint="its log is in its home")
        return found

    def ask(self, client: Client, operation: str, request: Any = None) -> dict[str, Any]:
        """Run an operation of sync in the daemon; again where the service says to try again in a second."""
        body = b"{}" if request is None else msgspec.json.encode(request)
        until = time.monotonic() + MOST_ASKED_S
        while True:
            try:
                return client.call("POST", f"/v1/operations/sync.{operation}", body, timeout=120)
            except TooManyError:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    def keep_copy(self, folder: Path) -> None:
        """Copy its folder, to be restored from in a later round."""
        self.copies.append(self.copy(folder))
        for old in self.copies[:-COPIES]:
            shutil.rmtree(old.folder)
        self.copies = self.copies[-COPIES:]

    def owns(self, port: int) -> bool:
        """Say whether a connection with this port is its daemon's."""
        running = self.running
        try:
            return running is not None and any(
                one.laddr.port == port for one in psutil.Process(running.pid).net_connections("tcp4")
            )
        except psutil.Error:
            return False

    def copy(self, folder: Path) -> Copy:
        """Copy its folder as it is on the disk now; its daemon must not run."""
        shutil.copytree(self.home, folder, ignore=shutil.ignore_patterns("*.sock"))
        with contextlib.closing(driver.connect(str(self.settings.store_path))) as base:
            device = base.execute("select value from meta where key = 'device'").fetchone()[0]
        return Copy(folder=folder, device=device)


# --- what a device's file says ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a store holds: its tables as readers see them, its ops, and the keys of its events."""

    tables: dict[str, Any]
    ops: list[Op]
    op_ids: frozenset[bytes]
    """Of what was not erased; an event counts by its key."""
    texts: dict[str, set[str]]
    """Every text that was ever a memory's content, by memory: shown, seen and replaced, or in conflict."""
    events: frozenset[str]
    quarantined: int

    @property
    def shown(self) -> dict[str, Any]:
        """What all devices must show alike."""
        return self.tables | {"op_ids": self.op_ids, "events": self.events}


def seen(path: Path) -> Seen:
    """Read a store that its daemon may have open."""
    with contextlib.closing(driver.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as base:
        base.execute("begin")
        read: Callable[[str], list[Any]] = lambda sql: base.execute(sql).fetchall()  # noqa: E731
        memories = {row[0]: (row[1], row[2]) for row in read("select id, content, topic from memory")}
        rows = read("select device, seq, op_id, type, body from op")
        decoded = [
            ops.decode(row[4], device=row[0], seq=row[1])
            for row in rows
            if row[4] is not None and row[3] != OpType.EVENT
        ]
        return Seen(
            tables={
                "memories": memories,
                "names": dict(read("select name, memory_id from name")),
                "conflicts": {
                    (row[0], row[1], (row[2], row[3]))
                    for row in read("select memory_id, field, hlc, device from conflict")
                    if row[0] in memories
                },
            },
            ops=decoded,
            texts=contents(decoded),
            op_ids=frozenset(row[2] for row in rows if row[4] is not None),
            events=frozenset(row[0] for row in read("select dedupe_key from event where not forgotten")),
            quarantined=read("select count(*) from parked")[0][0],
        )


def contents(found: Iterable[Op]) -> dict[str, set[str]]:
    """Return what some ops write as the content of memories, by memory."""
    texts: dict[str, set[str]] = {}
    for op in found:
        if op.type == OpType.MEMORY and int(Field.CONTENT) in op.body[2]:
            texts.setdefault(laws.ulid_text(op.body[1]), set()).add(op.body[2][int(Field.CONTENT)])
    return texts


# --- the story --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Trap:
    """Kills at the first request that fits."""

    fits: Callable[[Passing], bool]
    act: Callable[[], None]
    delay_s: float
    sprung: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def __call__(self, passing: Passing) -> None:
        """Look at a request; spring once."""
        if not self.sprung.is_set() and self.fits(passing):
            self.spring(self.delay_s)

    def spring(self, delay_s: float = 0) -> None:
        """Kill after a delay, once."""
        if not self.sprung.is_set():
            self.sprung.set()
            time.sleep(delay_s)
            self.act()
            self.done.set()


class Story:
    """Three devices and a service, round after round. Use `opened`."""

    def __init__(
        self,
        root: Path,
        seed: int,
        *,
        names: Sequence[str],
        proxy: FaultProxy,
        place: Deployment,
        say: Callable[[str], None],
    ) -> None:
        self.root = root
        self.seed = seed
        self.roll = random.Random(seed)
        self.proxy = proxy
        self.place = place
        self.say = say
        self.machines = [Machine(name, root / name) for name in names]
        self.ledger = Ledger()
        self.service: subprocess.Popen[bytes] | None = None
        self.round = 0
        self.kills: Counter[Kind] = Counter()
        self.missed = 0
        self.gone = 0
        self.heals = 0
        self.generations = 0
        self.reincarnations = 0
        self.limited = 0
        self.settled: list[tuple[float, int]] = []
        self.objects = 0
        self.looked: dict[Path, tuple[int, int]] = {}
        self.conflicts = 0

    # --- processes ----------------------------------------------------------------------------------------------------

    def start_service(self) -> None:
        """Start the service, and wait until it is ready."""
        with (self.place.root / "log").open("ab") as log:
            self.service = subprocess.Popen([SERVICE, "serve"], env=self.place.environ, stdout=log, stderr=log)
        running = self.service
        self.place.wait(lambda: running.poll() is not None or self._answers(), "the service is ready", START_S)
        assert running.poll() is None, f"the service ended: {self.place.log()[-2000:]}"

    def _answers(self) -> bool:
        try:
            return bool(self.place.ready())
        except httpx.TransportError:
            return False

    def kill_service(self, *, litestream: bool = False) -> None:
        """Kill the service, with its litestream or not."""
        service, self.service = self.service, None
        if service is None:
            return
        process = psutil.Process(service.pid)
        beside = litestream_of(process) if litestream else None
        service.kill()
        if beside is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                beside.kill()
                beside.wait(10)
        service.wait(10)

    def kill_litestream(self) -> None:
        """Kill litestream; the service starts it again."""
        beside = None if self.service is None else litestream_of(psutil.Process(self.service.pid))
        if beside is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                beside.kill()

    def lose_disk(self) -> None:
        """Kill service and litestream, and wipe the data folder."""
        self.kill_service(litestream=True)
        shutil.rmtree(self.place.data)

    def kill_all(self) -> None:
        """Kill everything at once."""
        self.kill_service(litestream=True)
        for machine in self.machines:
            machine.kill()

    # --- the beginning ------------------------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Make the account on the first device, let the others in, and copy each as it is then."""
        self.start_service()
        self.start(self.machines)
        self.sign_up(self.machines[0])
        for machine in self.machines[1:]:
            self.let_in(machine)
        self.place.wait(lambda: self.place.ready()["replica"]["state"] == "replicating", "litestream replicates")
        self.settle(self.machines)

    @property
    def origin(self) -> str:
        """The address that devices know."""
        return f"http://127.0.0.1:{self.proxy.port}"

    @property
    def proof(self) -> bytes:
        """What the account's password proves itself with."""
        return auth_key(PASSWORD, KDF, self.origin)

    def sign_up(self, machine: Machine) -> None:
        """Make the account."""
        with machine.client() as client:
            machine.ask(
                client,
                "sign_up",
                SignUpRequest(
                    origin=self.origin,
                    username=USERNAME,
                    auth_key=self.proof,
                    kdf=KDF,
                    recovery=RecoveryCode.new(os.urandom).text,
                    device_name=machine.name,
                ),
            )

    def let_in(self, machine: Machine) -> None:
        """Log another device in; the first one lets it in by its words."""
        first = self.machines[0]
        with machine.client() as joining, first.client() as client:
            machine.ask(
                joining,
                "log_in",
                LogInRequest(
                    origin=self.origin, username=USERNAME, auth_key=self.proof, kdf=KDF, device_name=machine.name
                ),
            )
            first.ask(client, "answer", AnswerRequest())
            shown = machine.ask(joining, "poll")["words"]
            proof = first.ask(client, "approve", ApproveRequest(words=tuple(shown)))["proof"]
            while not machine.ask(joining, "poll")["added"]:
                time.sleep(0.1)
            machine.ask(joining, "join", JoinRequest(proof=tuple(proof)))

    def copy_all(self) -> None:
        """Copy every device as it is now, to be restored from later."""
        for machine in self.machines:
            machine.kill()
            machine.keep_copy(self.root / f"copy-of-{machine.name}")
        self.start(self.machines)

    # --- one round ----------------------------------------------------------------------------------------------------

    def play_round(self, kind: Kind) -> None:
        """Play one round. Raises BrokenPromiseError, with everything that repeats it."""
        self.round += 1
        victim = self.roll.choice(self.machines)
        began = time.monotonic()
        healed_before = self.proxy.asked["/v1/heal"]
        try:
            missed = self._killed(kind, victim)
            extra = self._raised(kind, victim)
            self.proxy.odds, self.proxy.on_stage = {}, None
            machines = [*self.machines, *extra]
            took, passes = self.settle(machines, restored=kind is Kind.DISK)
            self._leave_out_the_lost(victim, machines)
            self.check(machines)
            for machine in extra:
                self._let_go(machine, victim)
        except (AssertionError, ScrubjayError, TimeoutError) as error:
            hint = getattr(error, "hint", "")
            raise BrokenPromiseError(
                f"seed {self.seed}, round {self.round}, {kind} ({victim.name}): {error} {hint}"
            ) from error
        self.kills[kind] += 1
        self.missed += missed
        self.heals += self.proxy.asked["/v1/heal"] > healed_before
        self.settled.append((took, passes))
        self.say(
            f"{self.round}: {kind} ({victim.name}{', no moment' if missed else ''}): settled in {took:.1f} s, {passes}"
            f" passes; {self.ledger.acknowledged} writes, {time.monotonic() - began:.1f} s"
        )

    def _killed(self, kind: Kind, victim: Machine) -> bool:
        """Let all write and sync until the kill, and a little after. Returns whether its moment did not come."""
        trap = self._trap(kind, victim)
        if self.roll.random() < 0.5:
            self.proxy.odds = ALL_FAULTS
        self.proxy.on_stage = trap
        stop = threading.Event()
        threads = []
        for machine in self.machines:
            name = f"{self.seed}/{self.round}/{machine.name}"
            after = self.roll.randint(1, 12) if kind is Kind.WRITTEN and machine is victim else 0
            act = trap if after else None
            writing = partial(self._writes, machine, random.Random(name), act, after)
            syncing = partial(self._syncs, machine, random.Random(name + "/sync"), stop)
            threads += [threading.Thread(target=one, name=name) for one in (writing, syncing)]
        for thread in threads:
            thread.start()
        try:
            missed = not trap.sprung.wait(MOMENT_S)
            if missed:
                trap.spring()
            trap.done.wait(20)
            time.sleep(self.roll.random() * 0.3)  # those that live go on for a while
        finally:
            stop.set()
            self.proxy.on_stage = None
            for thread in threads:
                thread.join(90)
        assert not any(thread.is_alive() for thread in threads), "a request to a daemon hangs"
        return missed

    def _trap(self, kind: Kind, victim: Machine) -> Trap:
        roll = self.roll
        stage = roll.choice(tuple(Stage))
        pushes, pulls = ("/v1/push", "/v1/heal", "/v1/pack"), ("/v1/pull", "/v1/lanes")

        def pushing(one: Passing) -> bool:
            return one.stage is stage and one.path.startswith(pushes)

        def committing(one: Passing) -> bool:
            return one.stage is Stage.SENT and one.path.startswith(pushes)

        def pushing_itself(one: Passing) -> bool:
            return pushing(one) and victim.owns(one.port)

        def applying_itself(one: Passing) -> bool:
            pulled = one.stage is Stage.DELIVERED and one.path.startswith(pulls) and one.answer_bytes > 0
            return pulled and victim.owns(one.port)

        fits, act, within_s = {
            Kind.PUSHING: (pushing_itself, victim.kill, 0.01),
            Kind.APPLYING: (applying_itself, victim.kill, 0.03),
            Kind.WRITTEN: (lambda _: False, victim.kill, 0.0),
            Kind.COMMITTING: (committing, self.kill_service, 0.015),
            Kind.LITESTREAM: (pushing, self.kill_litestream, 0.0),
            Kind.DISK: (pushing, self.lose_disk, 0.4),
            Kind.POWER: (pushing, self.kill_all, 0.02),
            Kind.RESTORED: (applying_itself, victim.kill, 0.03),
            Kind.CLONED: (pushing_itself, victim.kill, 0.01),
        }[kind]
        return Trap(fits, act, roll.random() * within_s)

    def _raised(self, kind: Kind, victim: Machine) -> list[Machine]:
        """Start again what died. Returns the machines that there are now besides."""
        if kind is Kind.DISK:
            self.place.json("admin", "restore")
            self.generations += 1
        if self.service is None or self.service.poll() is not None:
            self.start_service()
        for machine in self.machines:
            wrong = [] if machine.running is not None else check(machine.settings.store_path)
            assert not wrong, f"{machine.name}: {wrong}"
        if kind in {Kind.PUSHING, Kind.APPLYING, Kind.WRITTEN} and self.roll.random() < 0.5:
            victim.keep_copy(self.root / f"copy-{self.round}")
        extra: list[Machine] = []
        if kind is Kind.CLONED:
            extra.append(Machine(f"copy of {victim.name}", self.root / f"clone-{self.round}"))
            extra[0].device = victim.copy(extra[0].home).device
        if kind is Kind.RESTORED:
            self._replaced(victim)
        self.start([machine for machine in [*self.machines, *extra] if machine.running is None])
        if kind in {Kind.CLONED, Kind.RESTORED}:
            # They write before they have met: the same places of one lane, with other words.
            for machine in [victim, *extra]:
                self._writes(machine, random.Random(f"{self.seed}/{self.round}/{machine.name}/again"), None, 0)
        return extra

    def start(self, machines: Sequence[Machine]) -> None:
        """Start the daemons of some machines, and wait until they serve."""
        with ThreadPoolExecutor(len(NAMES) + 1) as together:
            list(together.map(Machine.start, machines))

    def _replaced(self, victim: Machine) -> None:
        """Put an older copy of a device in its place; what only it had and the service has not is gone."""
        victim.at_risk, victim.fresh, victim.safe = victim.fresh[victim.safe :], [], 0
        if not victim.copies:  # those of the id that it had went with a clone
            victim.keep_copy(self.root / f"copy-{self.round}")
        chosen = self.roll.choice(victim.copies)
        shutil.rmtree(victim.home)
        shutil.copytree(chosen.folder, victim.home)

    def _leave_out_the_lost(self, victim: Machine, machines: list[Machine]) -> None:
        """Let go of what was only on a disk that was replaced, unless it is there all the same."""
        if victim.at_risk:
            found = seen(machines[0].settings.store_path)
            gone = [one for one in victim.at_risk if not _holds(found, one)]
            self.ledger.drop(gone)
            self.gone += len(gone)
        for machine in machines:
            machine.fresh, machine.safe, machine.at_risk = [], 0, []

    def _let_go(self, machine: Machine, of: Machine) -> None:
        """Log a clone out, and throw it away; copies of the id that it had cannot come back."""
        with machine.client() as client:
            machine.ask(client, "log_out", LogOutRequest())
        machine.kill()
        shutil.rmtree(machine.home)
        for old in [one for one in of.copies if one.device == machine.device]:
            shutil.rmtree(old.folder)
            of.copies.remove(old)

    # --- writing and syncing ------------------------------------------------------------------------------------------

    def _writes(self, machine: Machine, roll: random.Random, trap: Trap | None, after: int) -> None:
        """Write a dozen times, or until the daemon is dead."""
        try:
            with machine.client() as client:
                for number in range(1, 13):
                    self._one(client, machine, roll)
                    if trap is not None and number == after:
                        trap.spring()
                    time.sleep(roll.random() * 0.06)
        except UnavailableError:
            return

    def _one(self, client: Client, machine: Machine, roll: random.Random) -> None:
        ledger, number = self.ledger, self.ledger.number()
        text = f"{machine.name} wrote {number} about {CANARY}"
        what = roll.choices(("memory", "change", "event", "rename", "forget"), (35, 35, 15, 7, 8))[0]
        ref = "" if what in {"memory", "event"} else ledger.chosen(roll, forget=what == "forget")
        try:
            if what == "event":
                event = {"agent": "t", "session_id": f"s{number % 7}", "type": "user_message", "text": text}
                event |= {"dedupe_key": f"key-{number}"}
                client.call("POST", "/v1/events", {"events": [event], "learn": False})
                done = Write(what="event", ref=f"key-{number}")
            elif not ref:
                made = client.call("POST", "/v1/memories", {"content": text})
                done = Write(what="memory", ref=str(made["memory"]["id"]), text=text)
            elif what == "change":
                client.call("PATCH", path_of("/v1/memories/{ref}", ref=ref), {"content": text})
                done = Write(what="change", ref=ref, text=text)
            elif what == "rename":
                client.call("POST", path_of("/v1/memories/{ref}/rename", ref=ref), {"name": f"name-{number % 40}"})
                return
            else:
                client.call("DELETE", path_of("/v1/memories/{ref}", ref=ref))
                done = Write(what="forget", ref=ref)
        except (NotFoundError, ConflictError):
            return  # it has not heard of that memory yet, somebody has forgotten it, or the name is taken
        machine.fresh.append(ledger.note(done))

    def _syncs(self, machine: Machine, roll: random.Random, stop: threading.Event) -> None:
        """Sync now and then, until told to stop or the daemon is dead."""
        while not stop.wait(roll.random() * 0.5):
            before = len(machine.fresh)
            try:
                with machine.client() as client:
                    done = machine.ask(client, "sync")
            except ScrubjayError:
                if machine.running is None:
                    return
                continue
            self._met(machine, done)
            if done["synced"]:
                machine.safe = before

    def _met(self, machine: Machine, done: dict[str, Any]) -> None:
        device = done["who"]["device"]
        if machine.device and device != machine.device:
            self.reincarnations += 1
        machine.device = device

    def settle(self, machines: list[Machine], *, restored: bool = False) -> tuple[float, int]:
        """Sync all until none has anything to say, twice. Returns seconds and how often each synced.

        A `restored` service may have gone back to before a device was added: it refuses that device until another one
        has given the account's log back.

        Daemons run rounds of their own meanwhile: what one of these sends after another machine was asked is told by no
        answer of this pass. In the pass after that, whoever is asked reads it.
        """
        began = time.monotonic()
        last: dict[str, Any] = {}
        quiet_passes = 0
        with ExitStack() as open_:
            hands = [(machine, open_.enter_context(machine.client())) for machine in machines]
            for passes in range(1, PASSES + 1):
                self.roll.shuffle(hands)
                quiet = True
                for machine, client in hands:
                    try:
                        done = self._synced(machine, client)
                    except UnauthenticatedError as error:
                        if not restored:
                            raise
                        quiet, last[machine.name] = False, {"refused": error.message}
                        continue
                    self._met(machine, done)
                    moved = done["ops_sent"] or done["ops_received"] or done["healed"] or done["packed"]
                    quiet = quiet and bool(done["synced"]) and not moved and not done["faults"]
                    last[machine.name] = done
                quiet_passes = quiet_passes + 1 if quiet else 0
                if quiet_passes == QUIET_PASSES:
                    return time.monotonic() - began, passes
        raise BrokenPromiseError(f"not settled after {PASSES} syncs of each: {json.dumps(last)}")

    def _synced(self, machine: Machine, client: Client) -> dict[str, Any]:
        for left in range(TRIES, 0, -1):
            try:
                return machine.ask(client, "sync")
            except UnavailableError as error:
                self.limited += "often" in error.message
                if left == 1:
                    raise
                time.sleep(0.25)
        raise AssertionError

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self, machines: list[Machine]) -> None:
        """Check that all show the same, everything acknowledged, nothing forgotten, and what the ops say."""
        found = {machine.name: seen(machine.settings.store_path) for machine in machines}
        first = found[machines[0].name]
        for name, one in found.items():
            assert not one.quarantined, f"{name} has set {one.quarantined} ops aside"
            for part, value in one.shown.items():
                assert value == first.shown[part], (
                    f"{name}: {part} differ from {machines[0].name}: {_apart(value, first.shown[part])}"
                )
        lost = [one for one in self.ledger.written if not self._kept(first, one)]
        assert not lost, f"{len(lost)} acknowledged writes are lost: {lost[:3]}"
        back = self.ledger.forgotten & first.tables["memories"].keys()
        assert not back, f"{len(back)} forgotten memories are back: {sorted(back)[:3]}"
        said = laws.tables(first.ops)
        for part, value in first.tables.items():
            assert value == said[part], f"{part} are not what the ops say: {_apart(value, said[part])}"
        self.conflicts = max(self.conflicts, len(first.tables["conflicts"]))
        self._blind()
        if self.round % 10 == 0:
            self.check_whole(machines)

    def _kept(self, found: Seen, one: Write) -> bool:
        if one.what == "forget" or one.ref in self.ledger.forgetting:
            return True
        return _holds(found, one)

    def check_whole(self, machines: list[Machine]) -> None:
        """Check every file, and read all that the service holds again."""
        for machine in machines:
            assert not check(machine.settings.store_path), machine.name
        with contextlib.closing(driver.connect(f"file:{self.place.database}?mode=ro", uri=True)) as base:
            assert base.execute("pragma integrity_check").fetchall() == [("ok",)], "the service's database"
        machine = self.roll.choice(machines)
        with machine.client() as client:
            told = machine.ask(client, "verify")
        wrong = [lane["error"] for lane in told["lanes"] if lane["error"]]
        assert told["whole"], f"{machine.name}: {wrong}"
        self.objects += sum(lane["objects"] for lane in told["lanes"])

    def _blind(self) -> None:
        """Check that no plaintext is in anything the service has written, or on the line."""
        assert not self.proxy.leaked, "plaintext on the line"
        for path in self.place.root.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and not path.is_fifo():
                    is_now = path.stat()
                    mark = (is_now.st_mtime_ns, is_now.st_size)
                    if self.looked.get(path) != mark:
                        assert CANARY.encode() not in path.read_bytes(), f"plaintext in {path.name}"
                        self.looked[path] = mark

    def end(self) -> None:
        """Stop the daemons as their users do, and compare what the stores themselves say."""
        self.check_whole(self.machines)
        for machine in self.machines:
            control.stop(machine.settings)
            machine.running = None
        digests = {machine.name: asyncio.run(_digest(machine.settings.store_path)) for machine in self.machines}
        assert len(set(digests.values())) == 1, f"seed {self.seed}: {digests}"


def _holds(found: Seen, one: Write) -> bool:
    """Say whether a store has a write in it: shown, or as something that others replaced or disputed."""
    if one.what == "event":
        return one.ref in found.events
    if one.what == "forget":
        return one.ref not in found.tables["memories"]
    return one.text in found.texts.get(one.ref, ())


def _apart(one: Any, other: Any) -> str:
    """Say where two collections differ, in a few words."""
    if isinstance(one, dict):
        return str(
            [
                (key, one.get(key), other.get(key))
                for key in one.keys() | other.keys()
                if one.get(key) != other.get(key)
            ][:3]
        )
    return f"only here {sorted(one - other)[:3]}, only there {sorted(other - one)[:3]} ({len(one)}, {len(other)})"


async def _digest(path: Path) -> str:
    store = await Store.open(path, now=lambda: Millis(time.time_ns() // 1_000_000), entropy=os.urandom)
    try:
        return await store.read(lambda q: q.digests.state())
    finally:
        await store.close()


# --- running it -------------------------------------------------------------------------------------------------------


@contextmanager
def story(
    seed: int,
    *,
    names: Sequence[str] = NAMES,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Story]:
    """Yield devices in step with a service, in a new folder; everything is ended and removed afterwards."""
    with ExitStack() as undo:
        # A short path: a Unix socket's may have 103 bytes.
        root = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="sjk-", dir=folder)))
        kept = os.environ.get("SCRUBJAY_KEYCHAIN")
        undo.callback(_set, "SCRUBJAY_KEYCHAIN", kept)
        os.environ["SCRUBJAY_KEYCHAIN"] = "file"
        (root / "cloud").mkdir()
        place = Deployment(root=root / "cloud")
        proxy = undo.enter_context(
            FaultProxy(target=place.port, roll=random.Random(f"{seed}/line"), canary=CANARY.encode())
        )
        place.more |= {
            "SCRUBJAY_CLOUD_ORIGIN": f"http://127.0.0.1:{proxy.port}",
            "SCRUBJAY_CLOUD_REPLICA": str(root / "cloud" / "replica"),
        }
        told = Story(root, seed, names=names, proxy=proxy, place=place, say=say)
        undo.callback(told.kill_all)
        told.set_up()
        yield told


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def play(
    rounds: int,
    seed: int,
    *,
    kinds: Sequence[Kind] = tuple(Kind),
    names: Sequence[str] = NAMES,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Figures:
    """Play some rounds, with each of `kinds` as often as any other. Raises BrokenPromiseError."""
    began = time.monotonic()
    with story(seed, names=names, folder=folder, say=say) as told:
        if Kind.RESTORED in kinds:
            told.copy_all()
        bag: list[Kind] = []
        for _ in range(rounds):
            if not bag:
                bag = list(kinds)
                told.roll.shuffle(bag)
            told.play_round(bag.pop())
        told.end()
        ledger, times = told.ledger, [took for took, _ in told.settled]
        passes = [count for _, count in told.settled]
        return Figures(
            seed=seed,
            rounds=rounds,
            seconds=round(time.monotonic() - began, 1),
            kills={str(kind): count for kind, count in told.kills.items()},
            missed_moments=told.missed,
            faults={str(fault): count for fault, count in told.proxy.met.items()},
            requests=told.proxy.requests,
            acknowledged=ledger.acknowledged,
            forgotten=ledger.forgets,
            lost=0,
            resurrected=0,
            leaks=0,
            gone_with_disk=told.gone,
            heals=told.heals,
            generations=told.generations,
            reincarnations=told.reincarnations,
            conflicts=told.conflicts,
            settle_median_s=round(median(times), 2),
            settle_worst_s=round(max(times), 2),
            passes_median=median(passes),
            passes_worst=max(passes),
            limited=told.limited,
            objects_verified=told.objects,
        )


def section(found: Figures) -> list[str]:
    """Return the figures as lines of docs/reliability.md."""
    return [
        "## Kill rounds",
        "",
        (
            f"{found.rounds} rounds (seed {found.seed}) in {found.seconds:,.0f} s: three daemons, one service with its"
            " litestream, a bad line between them in every second round. What was killed, always with `kill -9`:"
        ),
        "",
        "| Killed | Rounds |",
        "|---|--:|",
        *(f"| {kind} | {count} |" for kind, count in sorted(found.kills.items())),
        "",
        "| After every round, once all had synced | |",
        "|---|--:|",
        f"| writes acknowledged so far | {found.acknowledged:,} |",
        f"| of them lost | {found.lost} |",
        f"| forgotten memories that came back, of {found.forgotten:,} | {found.resurrected} |",
        f"| messages and files of the service with plaintext | {found.leaks} |",
        f"| writes that were on one disk only when an older copy took its place | {found.gone_with_disk} |",
        f"| restores of the service from its replica | {found.generations} |",
        f"| rounds in which devices gave the service back what it had lost | {found.heals} |",
        f"| devices that went on under a new id | {found.reincarnations} |",
        f"| seconds until all showed the same, median and worst | {found.settle_median_s:.1f}, {found.settle_worst_s:.1f} |",
        f"| syncs of each device until then, median and worst | {found.passes_median:.0f}, {found.passes_worst} |",
        f"| requests, and faults among them | {found.requests:,}, {sum(found.faults.values()):,} |",
        "",
    ]


def main() -> int:
    """Play rounds and print the figures, as JSON and for people. Returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="make kill-rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="on which disk; a temporary folder unless given")
    line = parser.parse_args()

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing that was started may stay behind
    try:
        found = play(line.rounds, line.seed, folder=line.folder, say=say)
    except BrokenPromiseError as error:
        say(str(error))
        return 1
    sys.stdout.write(json.dumps(asdict(found)) + "\n" + found.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
