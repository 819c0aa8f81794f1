"""L1: random histories of whole machines: real stores, the real sync engine, the real cloud application, one scheduler.

A step is one thing that one machine does, carried to its end before the next begins, so that threads inside a store
cannot change the order of anything. Clock, randomness, sleep and network are the simulation's own. Every history begins
with copies of the same account, because signing up costs a second and says nothing about faults.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from quick_disk import quick_folder
from scrubjay.policy import DEFAULT
from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, millis_of, ulid_text
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import ScrubjayError, WrongKeyError
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op
from scrubjay_shared.wire import Kdf
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, admission, leaving, registration, rotation
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.machine import Machine as Joiner
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine.results import Round
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import SYNC
from simulation import inline, laws, snapshots
from simulation.adversaries import KINDS, Adversaries, kinds_of
from simulation.laws import BrokenLawError, Faults, require
from simulation.machine import CrashError, Failing, Machine
from simulation.network import REFUSALS, Answer, Ask, Network, flipped, thinned, with_object, without_lane
from simulation.server import ORIGIN, Server

START_MS = 1_800_000_000_000
DAY_MS = 86_400_000
MACHINES = 4
ROUNDS = 8
"""Rounds of every machine within which all must be settled once the faults are off."""
HEALING = 2
"""Rounds in which other machines may still put right what the server tells one."""
LAPSE_MS = 3_600_000
"""After so long the server lets a machine in again that somebody began to shut out and did not."""
KDF = Kdf(salt=bytes(range(16)), memory_kib=19 * 1024, iterations=2, lanes=1)
SMALL: dict[str, int] = {
    "live_segments": 4, "pull_bytes": 3_000, "push_bytes": 4_000, "seal_ops": 7, "repack_after_ms": 60_000,
    "checkpoint_ms": 300_000, "checkpoint_places": 20,
}  # fmt: skip
"""The engine's limits, so small that a short history meets every one of them."""
SOON: dict[str, int] = {"after_request_ms": 30_000, "kept_versions": 1}
"""How soon what an edit replaced is erased."""

NETWORK = {
    "drop": ("drop",),
    "lost answers": ("lose answer",),
    "duplicates": ("duplicate",),
    "late requests": ("late",),
    "truncation": ("truncate",),
    "refusals": tuple(REFUSALS),
    "crashes": ("crash before", "crash after"),
}
FAULTS = (
    *NETWORK, "one-way", "write crashes", "disk full", "server full", "clock", "rollback", "quiet rollback", "fork",
    "withheld", "skipping", "corrupt", "forged", "clone", "restore", "owner lost", "revoke", "rotate", "late joiner",
)  # fmt: skip


LATER = ("meanwhile", "busy", "false fsync", "away")
"""Faults that are drawn apart, so that a seed that has none of them plays what it played before there were any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a seed chose for its history; printed with every failure."""

    seed: int
    machines: int
    steps: int
    skews_ms: tuple[int, ...]
    faults: Faults
    rate: float
    step_ms: int


def options_of(seed: int, rng: random.Random) -> Options:
    """Draw what a history is like."""
    machines = rng.randint(2, MACHINES)
    faults = frozenset(rng.sample(FAULTS, rng.choice((0, 1, 2, 4, 8))))
    apart = random.Random(f"later {seed}")
    faults |= frozenset(apart.sample(LATER, apart.choice((0, 0, 0, 0, 1, 1, 2))))
    skews = (0, 1, -700, 400_000, 10 * DAY_MS, -10 * DAY_MS)
    return Options(
        seed=seed,
        machines=machines,
        steps=rng.choice((20, 30, 40, 60)),
        skews_ms=tuple(rng.choice(skews) if "clock" in faults else 0 for _ in range(machines)),
        faults=Faults(faults),
        rate=rng.choice((0.05, 0.15, 0.3)),
        step_ms=rng.choice((100, 5_000, 120_000)),
    )


@dataclass(slots=True)
class Safe:
    """Where a machine keeps its keys: a `secrets.Vault` in memory. `due` tells what goes wrong at a write."""

    secrets: Secrets | None = None
    sealed: bytes | None = None
    due: Callable[[], str] = str

    async def load(self) -> Secrets | None:
        return self.secrets

    async def save(self, secrets: Secrets) -> None:
        how = self.due()
        if how == "crash before":
            raise CrashError
        self.secrets = secrets
        if how == "crash after":
            raise CrashError

    async def keyring(self) -> bytes | None:
        return self.sealed

    async def keep_keyring(self, data: bytes) -> None:
        self.sealed = data

    async def erase(self) -> None:
        self.secrets = self.sealed = None


@dataclass(slots=True)
class Station:
    """A machine, its keys, its way to the server, and the engine that runs on it while it is up."""

    machine: Machine
    safe: Safe
    network: Network
    way: str = ""
    """"one-way out" or "one-way in" while requests or answers do not pass."""
    server: Server | None = None
    """Another server than everybody's, while this machine is shown a fork."""
    offer: Callable[[str, Answer], Answer] | None = None
    """What a lying server does to what it answers about snapshots."""
    lie: Callable[[str, Answer], Answer] | None = None
    engine: Engine | None = None
    cloud: Cloud | None = None
    member: Member | None = None
    revoked: bool = False
    adopted: bool = False
    """It logged in again: what it held goes to the account as its own, the counts of others as one count of its own."""
    written: list[str] = field(default_factory=list)
    """What its person did while rounds were under way."""
    latest: int = 0
    """The latest time that its own clock ever said."""
    refused: list[str] = field(default_factory=list)
    """Codes of what it was told and what its rounds ended with."""

    def changed(self, path: str, answer: Answer) -> Answer:
        """Return an answer as the server's lies leave it."""
        for lie in (self.lie, self.offer):
            answer = answer if lie is None else lie(path, answer)
        return answer


class World:
    """One run."""

    def __init__(self, seed: int, folder: Path, *, tracing: bool = False, faults: frozenset[str] | None = None) -> None:
        self.rng = random.Random(f"engine {seed}")
        self.options = options_of(seed, self.rng)
        self.bent = 1.0
        if faults is not None:  # looking for one bug: its faults often, and clocks that are off if that is one of them
            skews = tuple(
                self.rng.choice((0, 400_000, 10 * DAY_MS)) if "clock" in faults else 0 for _ in range(MACHINES)
            )
            self.options = replace(
                self.options, faults=Faults(faults), skews_ms=skews[: self.options.machines], rate=0.2
            )
            self.bent = 3.0
        self.folder = folder
        self.clock = START_MS
        self.server: Server
        self.stations: list[Station] = []
        self.trace: list[str] | None = [repr(self.options)] if tracing else None
        self.copies: list[Path] = []
        self.backups: list[tuple[Station, Path, Secrets | None, bytes | None]] = []
        self.lying: list[tuple[int, Station]] = []
        self.settling = False
        self.under_way: Station | None = None
        """The machine whose round waits while another does something."""
        self.ended: dict[tuple[bytes, bytes], int] = {}
        """Where the lanes of revoked devices stood when they were shut out."""
        self.rotated: list[tuple[bytes, int, int]] = []
        """(home scope, epoch, objects there were) at each rotation."""
        self.owed: set[str] = set()
        self.told: set[str] = set()
        """Codes of the alarms of machines that logged in again, which lets go of them."""
        """Names of machines of which one must have told of a server that lost what it had confirmed."""
        self.tallies: Counter[str] = Counter()
        kinds = kinds_of(seed) if faults is None else frozenset(faults & set(KINDS))
        self.adversaries = Adversaries(self, seed, kinds)
        chosen = snapshots.kinds_of(seed) if faults is None else faults & {snapshots.SNAPSHOTS, *snapshots.KINDS}
        self.snapshots = snapshots.Snapshots(self, seed, frozenset(chosen))
        self.origin, self.auth_key = ORIGIN, _AUTH_KEY

    @property
    def code(self) -> RecoveryCode:
        """The account's recovery code, on paper."""
        return _template().code

    def note(self, *words: object) -> None:
        if self.trace is not None:
            self.trace.append(" ".join(map(str, words)))

    def now(self) -> int:
        return self.clock

    async def sleep(self, seconds: float) -> None:
        self.clock += int(seconds * 1000)

    # --- coming up and going down -------------------------------------------------------------------------------------

    def station(self, name: str, skew_ms: int = 0, folder: Path | None = None) -> Station:
        """Return a machine that is not up yet."""
        machine = Machine(name, folder or self.folder / name, str(self.options.seed), self.now, skew_ms)
        made: list[Station] = []
        network = Network(
            fault=lambda: self.fault(made[0]),
            ask=lambda: self.asked(made[0]),
            change=lambda path, answer: made[0].changed(path, answer),  # noqa: PLW0108  # it is not there yet
            meanwhile=lambda: self.before(made[0]),
        )
        made.append(Station(machine=machine, safe=Safe(due=machine.due), network=network))
        return made[0]

    def asked(self, station: Station) -> Ask:
        """Return the way into the server that a machine is connected to."""
        self.tallies["requests"] += 1
        self.clock += 1
        return (station.server or self.server).answer

    def fault(self, station: Station) -> str:
        """Choose what happens to a machine's next request."""
        if self.settling:
            return ""
        if station.way:
            return station.way
        if self.rng.random() >= self.options.rate:
            return ""
        kinds = [how for name in NETWORK if name in self.options.faults for how in NETWORK[name]]
        how = self.rng.choice(kinds) if kinds else ""
        if how:
            self.note("fault", station.machine.name, how)
            self.tallies[f"request: {how}"] += 1
        return how

    async def before(self, station: Station) -> None:
        """Do what comes before a machine's request reaches the server."""
        await self.snapshots.look(station)
        await self.meanwhile(station)

    async def meanwhile(self, station: Station) -> None:
        """Let another machine do something whole while a machine's request is under way: packs, keys, revocations."""
        if (
            "meanwhile" not in self.options.faults
            or self.settling
            or self.under_way
            or self.rng.random() >= 0.06 * self.bent
        ):
            return
        others = [one for one in self.stations if one is not station and one.engine is not None]
        if others:
            other, (move,) = (
                self.rng.choice(others),
                self.rng.choices((self.sync, self.rotate, self.revoke), (6, 3, 0.5)),
            )
            self.note("meanwhile", other.machine.name, move.__name__)
            self.tallies["meanwhile"] += 1
            self.under_way = station
            try:
                await self.guarded(other, move)
            finally:
                self.under_way = None

    async def up(self, station: Station) -> None:
        """Open the store and start the engine over it."""
        machine = station.machine
        await machine.open()
        station.cloud = Cloud(ORIGIN, now=machine.now, transport=station.network, sleep=self.sleep)
        station.member = await Member.load(
            machine.store, station.safe, ORIGIN, now=machine.now, entropy=machine.entropy
        )
        station.engine = Engine(
            machine.store,
            station.member,
            station.cloud,
            now=machine.now,
            entropy=machine.entropy,
            sleep=self.sleep,
            free_bytes=lambda: 1 << 40,
        )

    async def down(self, station: Station) -> None:
        """Stop a machine in good order."""
        if station.cloud is not None:
            await station.cloud.aclose()
        station.engine = station.cloud = station.member = None
        await station.machine.close()

    async def crashed(self, station: Station, *, kept: float = 1.0) -> None:
        """Bring a machine back that lost power."""
        self.note("crashed", station.machine.name)
        self.tallies["crashes"] += 1
        station.machine.failing = None
        if station.cloud is not None:
            await station.cloud.aclose()
        await station.machine.crash(kept=kept)
        await self.up(station)
        await self.tables(station)

    # --- the run ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Play the steps, then turn the faults off and check the laws."""
        try:
            await self.begin(_template())
            moves, weights = zip(*self.moves(), strict=True)
            for step in range(self.options.steps):
                self.clock += self.rng.randint(0, self.options.step_ms)
                living = [one for one in self.stations if one.machine.alive]
                station = self.rng.choice(living)
                (move,) = self.rng.choices(moves, weights)
                self.note(step, station.machine.name, move.__name__)
                self.tallies["steps"] += 1
                await self.guarded(station, move)
                await self.adversaries.step()
                await self.snapshots.step()
                await self.truth()
            await self.settle()
            await self.check()
        finally:
            await self.end()

    async def begin(self, template: Template) -> None:
        """Take the account as it was set up, and bring every machine up."""
        shutil.copytree(template.folder / "server", self.folder / "server")
        self.server = Server(self.folder / "server", str(self.options.seed), self.now)
        await self.server.open()
        for number, skew_ms in enumerate(self.options.skews_ms):
            shutil.copytree(template.folder / f"m{number}", self.folder / f"m{number}")
            station = self.station(f"m{number}", skew_ms)
            station.safe.secrets, station.safe.sealed = template.keys[number]
            self.stations.append(station)
            await self.up(station)

    async def end(self) -> None:
        """Close everything."""
        if self.adversaries.runner is not None:
            await self.adversaries.runner.close()
        for station in self.stations:
            if station.engine is not None:
                await self.down(station)
            if station.server is not None:
                await station.server.close()
        await self.server.close()

    async def guarded(self, station: Station, move: Callable[[Station], Any]) -> None:
        """Make a move. The machine may lose power in it; what its disk refuses it has not done."""
        machine = station.machine
        kinds = [
            how
            for name, found in (("write crashes", ("crash before", "crash after")), ("disk full", ("disk full",)))
            if name in self.options.faults
            for how in found
        ]
        if kinds and self.rng.random() < self.options.rate:
            machine.failing = Failing(left=self.rng.randint(0, 6), how=self.rng.choice(kinds))
        try:
            await move(station)
        except CrashError:
            await self.crashed(station)
        except ScrubjayError as error:
            self.refused(station, error)
        machine.failing = None

    def refused(self, station: Station, error: ScrubjayError) -> None:
        self.note("refused", station.machine.name, error.code, error.message)
        self.tallies[f"refused: {error.code}"] += 1
        station.refused.append(error.code)

    def moves(self) -> list[tuple[Callable[[Station], Any], float]]:
        """Return what may happen in a step, and how often."""
        found: list[tuple[Callable[[Station], Any], float]] = [(self.act, 8), (self.sync, 6)]
        extra: dict[str, tuple[Callable[[Station], Any], float]] = {
            "late requests": (self.deliver, 1), "crashes": (self.crash, 0.5), "one-way": (self.cut, 0.6),
            "server full": (self.fill, 0.4), "clock": (self.step_clock, 0.5), "rollback": (self.roll_back, 0.4),
            "quiet rollback": (self.roll_back_quietly, 0.4), "fork": (self.fork, 0.5), "withheld": (self.withhold, 0.5),
            "skipping": (self.skip, 0.5), "forged": (self.forge, 0.7),
            "corrupt": (self.corrupt, 0.5), "clone": (self.clone, 0.3), "restore": (self.restore, 0.6),
            "owner lost": (self.lose, 0.15), "revoke": (self.revoke, 0.2), "rotate": (self.rotate, 0.4),
            "late joiner": (self.join, 0.4), "false fsync": (self.lose_power, 0.4), "away": (self.stay_away, 0.3),
        }  # fmt: skip
        return found + [
            (move, weight * self.bent) for name, (move, weight) in sorted(extra.items()) if name in self.options.faults
        ]

    # --- moves --------------------------------------------------------------------------------------------------------

    async def act(self, station: Station) -> None:
        """Let a person do one to four things."""
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            self.note(await station.machine.act(self.rng))
            self.tallies["actions"] += 1
            told = station.latest = max(station.latest, station.machine.now())
            away = millis_of(station.machine.store.last_hlc) - told
            require("I9 no clock runs away", f"{away} ms", holds=away <= clock.MAX_LEAD_MS + 1)

    async def sync(self, station: Station) -> Round | None:
        """Run one round of a machine's engine; what it calls synced must be on the server."""
        assert station.engine is not None
        self.tallies["rounds"] += 1
        shown = await (station.server or self.server).heads()
        written = len(station.written)
        if "busy" in self.options.faults and not self.settling:
            station.machine.meanwhile = lambda: self.busy(station)
        try:
            done = await station.engine.sync()
        finally:
            station.machine.meanwhile = None
        station.refused += [error.code for error in done.errors]
        self.note(
            "synced" if done.synced else "not synced", done.ops_sent, done.ops_received, done.repaired, done.packed,
            done.new_incarnation, [error.code for error in done.errors],
        )  # fmt: skip
        for name in ("repaired", "packed", "pages", "ops_sent", "ops_received"):
            self.tallies[name] += getattr(done, name)
        self.tallies["reincarnations"] += done.new_incarnation
        if done.synced:
            await self.said_synced(station, shown, all_sent=len(station.written) == written)
        return done

    async def busy(self, station: Station) -> None:
        """Let the person at a machine do something while a round is under way there, between two of its reads."""
        if self.rng.random() >= 0.03 * self.bent:
            return
        station.machine.meanwhile, held = None, station.machine.meanwhile
        try:
            what = await station.machine.act(self.rng)
        except ScrubjayError as error:
            self.refused(station, error)
        else:
            self.note("busy", station.machine.name, what)
            station.written.append(what)
            self.tallies["actions in a round"] += 1
        finally:
            station.machine.meanwhile = held

    async def said_synced(
        self, station: Station, shown: dict[tuple[bytes, bytes], tuple[int, bytes]], *, all_sent: bool
    ) -> None:
        """I7: what a machine calls synced, the server has, and the machine has what the server had before.

        Not `all_sent` when its person wrote while the round was under way: that may be for the next one.
        """
        store = station.machine.store
        state = await store.read(lambda q: q.replication.state())
        sent = state is not None and (state.sealed_seq >= store.last_seq or not all_sent)
        require("I7 synced means sent", "", holds=sent)
        there = await (station.server or self.server).heads()
        held = {lane_id: lane.n for lane_id, lane in (await store.read(lambda q: q.replication.lanes())).items()}
        for lane_id, (n, _) in shown.items():
            if lane_id not in self.ended and n > held.get(lane_id, 0):
                raise BrokenLawError("I7 synced means that nothing is missing", f"{n} of {lane_id[1].hex()[:8]}")
        for (scope, device), lane in (await store.read(lambda q: q.replication.lanes())).items():
            if device.hex() == store.device:
                same = there.get((scope, device)) == (lane.n, lane.tip)
                require("I7 what is called synced is on the server", f"{lane.n} {device.hex()[:8]}", holds=same)

    async def deliver(self, station: Station) -> None:
        self.note("late", await station.network.deliver())

    async def crash(self, station: Station) -> None:
        """Lose power between two steps: everything shows as before."""
        before = await station.machine.digest()
        await self.crashed(station)
        require("I6 a crash changes nothing", station.machine.name, holds=await station.machine.digest() == before)

    async def lose_power(self, station: Station) -> None:
        """Lose power on a disk that only said that it wrote: some of the last writes are gone, sent or not."""
        self.note("lost writes", station.machine.name)
        await self.crashed(station, kept=self.rng.random())

    async def stay_away(self, _station: Station) -> None:
        """Nobody does anything for half a year: every token has run out when a machine returns."""
        self.clock += 200 * DAY_MS

    async def cut(self, station: Station) -> None:
        station.way = "" if station.way else self.rng.choice(("one-way out", "one-way in"))

    async def fill(self, _station: Station) -> None:
        await self.server.fill(full=self.rng.random() < 0.5)

    async def step_clock(self, station: Station) -> None:
        station.latest = max(station.latest, station.machine.now())  # what it has synced by, even if nobody acted there
        station.machine.skew_ms += self.rng.choice((-1, 1)) * self.rng.choice((1, 5_000, 700_000, 10 * DAY_MS))

    async def roll_back(self, _station: Station, *, noticed: bool = True) -> None:
        """Copy the server, or go on from an older copy of it."""
        if not self.copies or self.rng.random() < 0.4:
            self.tallies["server copies"] += 1
            target = self.folder / f"copy{self.tallies['server copies']}"
            self.server.copy_to(target)
            self.copies.append(target)
            return
        before = await self.server.heads()
        place = self.rng.randrange(len(self.copies))
        await self.server.roll_back(self.copies[place], noticed=noticed)
        del self.copies[place + 1 :]
        after = await self.server.heads()
        lost = {
            lane
            for lane, (n, _) in before.items()
            if after.get(lane, (0, b""))[0] < n and lane[1].hex() not in self.adversaries.unheard  # it sends all again
        }
        self.note("server lost", len(lost))
        self.tallies["rollbacks"] += bool(lost)
        for one in self.stations:
            if one.machine.alive and not one.revoked and one.server is None:
                lanes = await one.machine.store.read(lambda q: q.replication.lanes())
                own = bytes.fromhex(one.machine.store.device)
                knew = {
                    lane for lane in lost if lane in lanes
                    and (lanes[lane].acked_n if lane[1] == own else lanes[lane].n) > after.get(lane, (0, b""))[0]
                }  # fmt: skip
                if knew:
                    self.owed.add(one.machine.name)

    async def roll_back_quietly(self, station: Station) -> None:
        await self.roll_back(station, noticed=False)

    async def fork(self, station: Station) -> None:
        """Show a machine a copy of the server that goes its own way, or end that."""
        if station.server is not None:
            await station.server.close()
            station.server = None
            return
        name = f"fork{self.tallies['forks']}"
        self.tallies["forks"] += 1
        self.server.copy_to(self.folder / name)
        station.server = Server(self.folder / name, f"{self.options.seed} {name}", self.now)
        await station.server.open()

    async def withhold(self, station: Station) -> None:
        """Leave one lane out of everything that a machine is given, or end that."""
        heads = sorted(lane for lane in await self.server.heads() if lane[1].hex() != station.machine.store.device)
        if station.lie is not None or not heads:
            station.lie = None
            return
        lane = self.rng.choice(heads)
        station.lie = lambda _path, answer: without_lane(answer, lane)

    async def skip(self, station: Station) -> None:
        """Leave objects out of the pages that a machine is given, now one and now another, or end that."""
        rng = random.Random(self.rng.random())
        station.lie = None if station.lie else lambda path, answer: thinned(path, answer, rng)

    async def forge(self, station: Station) -> None:
        """Give a machine an object that another one, who has the key, wrote in a third one's name; or end that."""
        others = [one for one in self.stations if one is not station and one.member is not None and not one.revoked]
        if station.lie is not None or not others or station.server is not None:
            station.lie = None
            return
        thief = self.rng.choice(others)
        assert thief.member is not None
        member, scope = thief.member, thief.member.home
        heads = {lane: end for lane, end in (await self.server.heads()).items() if lane[1] != member.device}
        if not heads:
            return
        (_, device), (n, tip) = self.rng.choice(sorted(heads.items()))
        op = ops.encode(
            Op(
                device=device.hex(),
                seq=1_000_000,
                op_id=bytes(16),
                hlc=Hlc(START_MS << 16),
                type=int(OpType.FORGET),
                body=ops.forget_body("0" * 26),
            )
        )
        place = packing.SealContext(
            account=member.account,
            scope=scope,
            device=device,
            n=n + 1,
            prev=tip,
            suite=int(member.scopes.suite(scope)),
            epoch=member.scopes.epoch(scope),
            key=member.scopes.key(scope, member.scopes.epoch(scope)),
        )
        hand = packing.Signer(sign=member.sign, entropy=thief.machine.entropy)
        made = b"".join(one.data for one in _envelopes(packing.segments(place, [(1_000_000, op)], hand)))
        station.lie = lambda path, answer: with_object(path, answer, made)

    async def corrupt(self, station: Station) -> None:
        """Flip a bit in every page of objects that a machine is given, or end that."""
        rng = random.Random(self.rng.random())
        station.lie = None if station.lie else lambda _path, answer: flipped(answer, rng.random())

    async def clone(self, station: Station) -> None:
        """Start a second machine from a copy of a machine's disk, keys and all."""
        if len(self.stations) >= MACHINES + 2:
            return
        twin = self.station(f"{station.machine.name}-{len(self.stations)}", station.machine.skew_ms)
        station.machine.copy_to(twin.machine.folder)
        twin.safe.secrets, twin.safe.sealed = station.safe.secrets, station.safe.sealed
        # The disk remembers by what time it was written, also where the clock was set back since.
        twin.latest = max(station.latest, station.machine.now())
        self.stations.append(twin)
        await self.up(twin)

    async def restore(self, station: Station) -> None:
        """Keep a backup of a machine, or put an older one in its place."""
        mine = [one for one in self.backups if one[0] is station]
        if not mine or self.rng.random() < 0.5:
            target = self.folder / f"backup{len(self.backups)}"
            station.machine.copy_to(target)
            self.backups.append((station, target, station.safe.secrets, station.safe.sealed))
            return
        _, source, secrets, sealed = self.rng.choice(mine)
        await self.down(station)
        station.machine.take(source)
        station.safe.secrets, station.safe.sealed = secrets, sealed
        await self.up(station)

    async def lose(self, station: Station) -> None:
        """A machine is gone for ever."""
        if sum(one.machine.alive for one in self.stations) > 1:
            station.machine.alive = False
            await self.down(station)

    async def revoke(self, station: Station) -> None:
        """Shut another machine out."""
        others = [one for one in self.stations if one is not station and not one.revoked and one.engine is not None]
        if not others or station.member is None or station.cloud is None or station.server is not None:
            return
        await self.shut_out(station, self.rng.choice(others))

    async def shut_out(self, station: Station, gone: Station) -> None:
        """Shut a machine out, at another one."""
        assert station.member is not None
        assert station.cloud is not None
        device = bytes.fromhex(gone.machine.store.device)
        await station.cloud.account.delete_device(device)
        done = await self.sync(station)  # what it has pushed is then held here: nothing of it is cut off
        if gone is not self.under_way and self.rng.random() < 0.5:
            await self.pushing(gone)
        if done is None or not done.synced:
            return
        ends = await account_devices.ends_of(station.machine.store, station.member.state, device)
        await account_devices.revoke(station.member, station.cloud, device, ends=ends, entropy=station.machine.entropy)
        gone.revoked = True
        heads = await self.server.heads()
        self.ended |= {lane: n for lane, (n, _) in heads.items() if lane[1] == device} | {
            (station.member.home, device): heads.get((station.member.home, device), (0, b""))[0]
        }

    async def pushing(self, station: Station) -> None:
        """Let a machine sync in the middle of what another one does to the account."""
        try:
            await self.sync(station)
        except CrashError:
            await self.crashed(station)
        except ScrubjayError as error:
            self.refused(station, error)

    async def rotate(self, station: Station) -> None:
        """Replace every key for what is written from now on."""
        if station.member is not None and station.cloud is not None and station.server is None:
            await rotation.rotate(station.member, station.cloud, entropy=station.machine.entropy)
            epoch = station.member.scopes.epoch(station.member.home)
            self.rotated.append((station.member.home, epoch, await self.server.newest()))

    async def log_in_again(self, station: Station) -> None:
        """Do what a machine's person is told to do when its keys are those of the past: leave, and log in again."""
        self.told.update(await self.alarms(station))
        self.note("logs in again", station.machine.name)
        station.adopted = True
        await self.down(station)
        await station.machine.open()
        await leaving.leave(station.machine.store, station.safe, station.machine.entropy)
        await _join(station, self)
        await station.machine.close()
        await self.up(station)

    async def join(self, _station: Station, *, more: int = 0) -> None:
        """A new machine logs in, with the recovery code. `more` may be than there are otherwise."""
        if len(self.stations) >= MACHINES + 2 + more:
            return
        new = self.station(f"new{len(self.stations)}")
        await new.machine.open()
        settling, self.settling = self.settling, True
        try:
            await _join(new, self)
        except WrongKeyError as error:
            raise BrokenLawError("I9 who logs in is given the account's key", error.message) from error
        finally:
            self.settling = settling
            await new.machine.close()
        self.stations.append(new)
        await self.up(new)

    # --- laws ---------------------------------------------------------------------------------------------------------

    async def tables(self, station: Station) -> dict[tuple[str, int], Op | None]:
        """I1, I2, I3, I5: what a machine shows follows from the ops that it holds. Returns those."""
        log = await station.machine.log()
        laws.check_tables([op for op in log.values() if op is not None], await station.machine.shown())
        return log

    async def once(self, station: Station) -> None:
        """I8: in every lane ops stand once, and in their order."""
        ends: dict[tuple[bytes, bytes], int] = {}
        for scope, device, low, high in await station.machine.store.read(
            lambda q: q.fetch(
                "select scope, device, seq_low, seq_high from sealed where seq_high > 0 order by scope, device, n_from"
            )
        ):
            before = ends.get((scope, device), 0)
            require("I8 an op stands once in its lane", f"{low} of {device.hex()[:8]}", holds=low > before)
            ends[scope, device] = high

    async def truth(self) -> None:
        """Check what must hold after every step of the server."""
        if self.rng.random() < 0.05:
            await self.server.check()
        if self.ended and not {"rollback", "quiet rollback", "fork"} & self.options.faults:
            heads = await self.server.heads()
            for lane, n in self.ended.items():
                grown = heads.get(lane, (0, b""))[0] > n
                require("I12 who is revoked writes no more", lane[1].hex()[:8], holds=not grown)

    async def alarms(self, station: Station) -> set[str]:
        """Return the codes of what a machine must tell its person."""
        return {alarm.code for alarm in await station.machine.store.read(lambda q: q.replication.alarms())}

    def must_leave(self, code: str, round_: int) -> bool:
        """Say whether the person at a machine that was told this has to leave and log in again.

        A server that lost the end of the account log, and took another end before it was healed, has split the account.
        A disk that went back to before a machine's newest id has an id without keys. A lane in which both its owner and
        the server went back, and the owner wrote on, stands elsewhere as it was: nobody can tell which of the two counts.
        """
        server = {"rollback", "quiet rollback", "fork"} & self.options.faults
        disk = {"restore", "clone", "false fsync"} & self.options.faults
        if code in {"split", "unauthenticated"}:
            return bool(round_ >= HEALING and (server or "false fsync" in disk))
        return code == "wrong_key" or bool(code == "broken_chain" and round_ >= HEALING and server and disk)

    async def turn_off(self) -> None:
        """End every fault."""
        self.note("settling")
        self.settling = True
        await self.server.fill(full=False)
        for station in self.stations:
            await station.network.deliver()
            station.way, station.lie = "", None
            if station.server is not None:
                await station.server.close()
                station.server = None

    async def settle(self) -> None:
        """Let every machine sync without faults until nothing moves."""
        await self.turn_off()
        self.clock += LAPSE_MS
        await self.snapshots.last()
        self.living = [one for one in self.stations if one.machine.alive]
        self.held = [(one, await self.snapshots.proven(one, await one.machine.log())) for one in self.living]
        for round_ in range(ROUNDS):
            calm = await self.adversaries.settle()
            for station in self.living:
                self.clock += 60_000
                try:
                    done = await self.sync(station)
                except ScrubjayError as error:
                    self.refused(station, error)
                    if error.code == "revoked":
                        continue
                    if "clock" in error.hint:  # days off, beside a code that waits: the person does as they are told
                        station.machine.skew_ms = 0
                    if self.must_leave(error.code, round_):
                        await self.log_in_again(station)
                    calm = False
                else:
                    assert done is not None
                    if "broken_chain" in {one.code for one in done.errors} and self.must_leave("broken_chain", round_):
                        await self.log_in_again(station)
                    calm = calm and done.synced and not (done.ops_sent or done.ops_received or done.repaired)
            self.note("round", round_, calm)
            if calm and round_:
                break
        else:
            raise BrokenLawError("I14 it comes to rest", f"not within {ROUNDS} rounds")

    async def check(self) -> None:
        """Check the laws of the end."""
        await self.server.check()
        if not {"rollback", "quiet rollback", "fork"} & self.options.faults:
            for scope, epoch, newest in self.rotated:
                stale = await self.server.stale(scope, epoch, newest)
                require("I12 nothing new under an old key", f"{stale} objects", holds=not stale)
        members = [one for one in self.living if not one.refused or one.refused[-1] != "revoked"]
        digests, after = {}, {}
        for station in members:
            after[station.machine.name] = await self.tables(station)
            await self.once(station)
            digests[station.machine.name] = await station.machine.digest()
            self.note("shows", station.machine.name, digests[station.machine.name])
        require("I1 equal views", repr(digests), holds=len(set(digests.values())) <= 1)
        quiet = {"restore", "clone", "owner lost", "revoke", "false fsync"} & self.options.faults
        if self.owed and not quiet:
            told = "rolled_back" in self.told | {code for one in members for code in await self.alarms(one)}
            require("I12 a rollback is told", repr(sorted(self.owed)), holds=told)
        roots = {one.safe.secrets.root for one in members if one.safe.secrets is not None}
        require("I9 one root key", str(len(roots)), holds=len(roots) <= 1)
        await self.adversaries.check(members)
        await self.snapshots.check(members)
        for station, held in self.held:
            if station not in members:
                continue
            before = {
                place: op
                for place, op in held.items()
                if not (station.adopted and op is not None and op.type == OpType.COUNT)
                and place[0] not in self.adversaries.unheard
            }
            for other in members:
                _kept(before, after[other.machine.name], f"{station.machine.name} in {other.machine.name}")

    def tally(self) -> Counter[str]:
        """Return what this history adds to the figures."""
        kinds = {*self.adversaries.kinds, *self.snapshots.kinds}
        attackers = Counter({f"attacker: {name}": 1 for name in kinds - {snapshots.SNAPSHOTS}})
        attackers["histories with snapshots"] = int(snapshots.SNAPSHOTS in kinds)
        return self.tallies + attackers + Counter({f"fault: {name}": 1 for name in self.options.faults})


def _kept(before: dict[tuple[str, int], Op | None], after: dict[tuple[str, int], Op | None], where: str) -> None:
    """I2: every op that a living machine had is there, or what it is about was forgotten."""
    known = {op.op_id for op in after.values() if op is not None}
    gone = {ulid_text(op.body[1]) for op in after.values() if op is not None and op.type == OpType.FORGET}
    for place, op in before.items():
        if op is not None and op.op_id not in known:
            about = {ulid_text(op.body[1])} | ({ulid_text(op.body[2])} if op.type == OpType.GRIP else set())
            require("I2 nothing that anybody still had is lost", f"{place} of {where}", holds=bool(about & gone))


def _envelopes(found: Any) -> list[Envelope]:
    return [getattr(one, "envelope", one) for one in found]


# --- the account that every history begins with -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Copies of a server and of machines that are members of one account on it."""

    folder: Path
    keys: tuple[tuple[Secrets | None, bytes | None], ...]
    code: RecoveryCode


_AUTH_KEY = bytes(range(32))
_held: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _template() -> Template:
    """Make the account, once in a process."""
    held = tempfile.TemporaryDirectory(prefix="scrubjay-simulation-", dir=quick_folder())
    _held.append(held)
    return inline.run(_made(Path(held.name)))


async def _made(folder: Path) -> Template:
    world = World(0, folder)
    world.settling = True
    world.server = Server(folder / "server", "template", world.now)
    await world.server.open()
    code = RecoveryCode.new(random.Random("code").randbytes)
    for number in range(MACHINES):
        station = world.station(f"m{number}")
        await station.machine.open()
        world.stations.append(station)
        if number:
            await _join(station, world, code)
        else:
            joiner = _joiner(station)
            await registration.sign_up(joiner, username="maya", auth_key=_AUTH_KEY, kdf=KDF, recovery=code, name="m0")
            await joiner.cloud.aclose()
    for station in world.stations:
        await station.machine.close()
    await world.server.close()
    keys = tuple((station.safe.secrets, station.safe.sealed) for station in world.stations)
    return Template(folder=folder, keys=keys, code=code)


def _joiner(station: Station) -> Joiner:
    machine = station.machine
    return Joiner(
        store=machine.store,
        vault=station.safe,
        cloud=Cloud(ORIGIN, now=machine.now, transport=station.network),
        now=machine.now,
        entropy=machine.entropy,
    )


async def _join(station: Station, world: World, code: RecoveryCode | None = None) -> None:
    """Log a machine in with password and recovery code."""
    joiner = _joiner(station)
    try:
        joining = await admission.log_in(joiner, username="maya", auth_key=_AUTH_KEY, name=station.machine.name)
        await joining.recover(code or _template().code)
    finally:
        await joiner.cloud.aclose()


@contextmanager
def _small() -> Any:
    """Have the engine's limits small."""
    policies: tuple[tuple[Any, dict[str, int]], ...] = ((SYNC, SMALL), (DEFAULT.undo, SOON))
    before = [(policy, name, getattr(policy, name)) for policy, values in policies for name in values]
    for policy, values in policies:
        for name, value in values.items():
            object.__setattr__(policy, name, value)
    try:
        yield
    finally:
        for policy, name, held in before:
            object.__setattr__(policy, name, held)


def run(seed: int, *, tracing: bool = False, faults: frozenset[str] | None = None) -> World:
    """Play the history of a seed, with other faults than its own when told. A broken law comes with the options and the last steps that led there."""
    with (
        _small(),
        inline.inline(),
        tempfile.TemporaryDirectory(prefix="scrubjay-simulation-", dir=quick_folder()) as folder,
    ):
        _template()
        world = World(seed, Path(folder), tracing=tracing, faults=faults)
        try:
            inline.run(world.run())
        except Exception as error:
            error.add_note(f"{world.options!r}")
            if world.trace is not None:
                error.add_note("\n".join(world.trace[-40:]))
            raise
        return world
