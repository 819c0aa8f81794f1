"""L0: random histories of devices that write, hear of each other through a faulty server, and must agree in the end.

The merge core, the clock and the wire form are the product's (`ops`, `clock`). A `Device` follows the rules by which
the store writes and sync carries, at the level of single ops. One `random.Random(seed)` makes every choice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeVar

from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, Millis, millis_of, ulid, uuid7
from scrubjay_shared.ops import Counter as Counted
from scrubjay_shared.ops import Field, ForgottenWords, OpType, Stamp, State
from scrubjay_shared.ops import state as folding
from scrubjay_shared.records import Event, EventType, Grip, Op, Role
from simulation import laws
from simulation.laws import Faults, require, ulid_text

T = TypeVar("T")

START = Millis(1_800_000_000_000)
DAY_MS = 86_400_000
Place = tuple[str, int]
"""Where an op stands: (lane, seq)."""

NAMES = ("a", "b", "a~2", "a~3", "b~2")
TEXT = "we moved the café to Oslo 🦜 in May"
EDITED = (Field.CONTENT, Field.TOPIC, Field.SALIENCE)
EMPTYING = 0.15
"""How often a step is followed by a device's emptying what was superseded."""
FAR = 0.05
"""How often a write of one field stands where no clock stands."""
SETTLING = 2
"""Rounds within which everything must be everywhere once the faults are off (I14)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a seed chose for its history; printed with every failure."""

    seed: int
    devices: int
    steps: int
    memories: int
    skews_ms: tuple[int, ...]
    faults: Faults
    step_ms: int


FAULTS = (
    "drop", "duplicate", "reorder", "delay", "partition", "skew", "clock step", "rollback", "unnoticed rollback",
    "crash", "restore", "dead owner", "late joiner", "withheld", "twins",
)  # fmt: skip


def options_of(seed: int, rng: random.Random) -> Options:
    """Draw what a history is like. Half of the histories have few faults, so that each is also seen alone."""
    devices = rng.randint(2, 6)
    faults = frozenset(rng.sample(FAULTS, rng.choice((1, 3, 6, len(FAULTS)))))
    skews = (0, 0, 1, -1, 700, -90_000, 400_000, 10 * DAY_MS, -10 * DAY_MS)
    return Options(
        seed=seed,
        devices=devices,
        steps=rng.choice((20, 30, 40, 60, 80, 120, 160)),
        memories=rng.randint(1, 4),
        skews_ms=tuple(rng.choice(skews) if "skew" in faults else 0 for _ in range(devices)),
        faults=Faults(faults),
        step_ms=rng.choice((0, 1, 5_000, 3_600_000)),
    )


_NEW = Hlc(0)


@dataclass(slots=True)
class Server:
    """An ordered list of ops, a lane for each device; whatever it lost it lost from the end."""

    order: list[Place] = field(default_factory=list)
    bodies: dict[Place, Op | None] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    pushed: dict[Place, Op | None] = field(default_factory=dict)
    """What was packed anew, as it first came: an older copy of the server has that."""

    def push(self, place: Place, op: Op | None) -> bool:
        """Take the next op of a lane; one that is there already is taken again, one beyond the next is not."""
        lane, seq = place
        if place in self.bodies:
            held = self.bodies[place]
            same = held == op or (held is not None and op is not None and held.op_id == op.op_id)  # one was emptied
            require("I8 no lane has two different ops of one number", f"{lane[:8]} {seq}", holds=same)
            return True
        if seq != self.heads.get(lane, 0) + 1:
            return False
        self.order.append(place)
        self.bodies[place] = op
        self.heads[lane] = seq
        return True

    def roll_back(self, kept: int, *, noticed: bool) -> None:
        """Lose everything after the first `kept` ops."""
        for lane, seq in self.order[kept:]:
            del self.bodies[lane, seq]
            self.heads[lane] = min(self.heads[lane], seq - 1)
        del self.order[kept:]
        self.bodies |= {place: op for place, op in self.pushed.items() if place in self.bodies}
        self.pushed.clear()
        self.generation += int(noticed)


@dataclass(slots=True)
class Device:
    """A device as the store and sync behave. `log` holds every op it has, None for one whose contents it erased."""

    lane: str
    skew_ms: int
    clock: Hlc = _NEW
    seq: int = 0
    sealed_seq: int = 0
    acked: int = 0
    cursor: int = 0
    generation: int = 0
    log: dict[Place, Op | None] = field(default_factory=dict)
    sealed: dict[Place, Op | None] = field(default_factory=dict)
    state: State = field(default_factory=State)
    heads: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, dict[int, Op | None]] = field(default_factory=dict)
    """Ops beyond a hole in their lane: not applied until it is filled."""
    alive: bool = True
    latest_wall: int = 0
    """The latest time that its own clock ever said."""

    def copied(self) -> dict[str, Any]:
        """Return what stands on its disk."""
        return {
            "lane": self.lane, "clock": self.clock, "seq": self.seq, "acked": self.acked, "sealed_seq": self.sealed_seq, "cursor": self.cursor,
            "generation": self.generation, "log": dict(self.log), "sealed": dict(self.sealed),
            "state": ops.merge(self.state, State()), "heads": dict(self.heads), "waiting": {},
        }  # fmt: skip

    def wall(self, now: int) -> Millis:
        """Return the time by its own clock."""
        told = Millis(max(0, now + self.skew_ms))
        self.latest_wall = max(self.latest_wall, told)
        return told

    def write(
        self, now: int, op_type: int, body: dict[int, Any], replaced: Iterable[Stamp], entropy: bytes, *, at: int = 0
    ) -> Op:
        """Append the next op of this device, as `OpLog.make` does; `at` is the stamp that it gives itself, if it lies."""
        self.clock = clock.tick(self.clock, self.wall(now))
        stamp = Hlc(at) or clock.field_stamp(self.clock, *(Hlc(hlc) for hlc, _ in replaced))
        self.seq += 1
        made = Op(
            device=self.lane,
            seq=self.seq,
            op_id=uuid7(millis_of(stamp), entropy),
            hlc=stamp,
            type=int(op_type),
            body=body,
        )
        op = ops.decode(ops.encode(made), device=self.lane, seq=self.seq)
        self.heads[self.lane] = self.seq
        self.keep([((self.lane, self.seq), op)])
        return op

    def take(self, found: list[tuple[Place, Op | None]], now: int) -> None:
        """Take in ops as they were sealed, in the order they came, each lane up to its first hole.

        Ops that are there already are folded again: that must not matter.
        """
        ready: list[tuple[Place, Op | None]] = []
        for (lane, seq), op in found:
            waiting, head = self.waiting.setdefault(lane, {}), self.heads.get(lane, 0)
            waiting[seq] = op
            following = min(seq, head + 1)
            while following in waiting:
                ready.append(((lane, following), waiting.pop(following)))
                following += 1
            self.heads[lane] = max(following - 1, head)
        wall = self.wall(now)
        for place, op in ready:
            self.sealed.setdefault(place, op)
            if op is not None and place[0] != self.lane:
                self.clock = clock.receive(self.clock, op.hlc, wall)
        self.keep(ready)

    def keep(self, found: list[tuple[Place, Op | None]]) -> None:
        """Put ops into the log and fold them."""
        forgotten = []
        for place, came in found:
            op = self.log.setdefault(place, came) or came  # of one that is there, what is there counts
            if op is not None and not ops.problem(op):
                folding._apply(self.state, op)  # as `fold` does, but without a copy of the state for each op
                if op.type == OpType.FORGET:
                    forgotten.append(ulid_text(op.body[1]))
        for entity in forgotten:
            self.erase(entity)

    def erase(self, entity: str) -> None:
        """Drop the contents of the ops about something forgotten. What is sealed stays as it is; the rest is never sent."""
        for place, op in self.log.items():
            if op is not None and op.type != OpType.FORGET and _about(op, entity):
                self.log[place] = None

    def empty(self, keep: int) -> list[Place]:
        """Take the values out of writes that were superseded, as `Superseded` does. Returns where words went."""
        places, gone = ops.to_empty(self.state, keep), []
        for place, op in self.log.items() if places else ():
            if op is None or op.type != OpType.MEMORY:
                continue
            keys = places.get((ulid_text(op.body[1]), (int(op.hlc), op.device)))
            if keys is not None and (new := ops.emptied(op, keys)) is not op:
                self.log[place] = ops.decode(ops.encode(new), device=op.device, seq=op.seq)
                folding._apply(self.state, new)
                gone.append(place)
        return gone

    def pack(self, server: Server) -> None:
        """Put what was emptied of the own lane in the place of what the server has, once it has confirmed it.

        As in a round, everything was sent before: what replaced these words is there too.
        """
        for seq in range(1, self.acked + 1) if self.acked == self.seq else ():
            place = (self.lane, seq)
            op = self.log.get(place)
            if op is not None and op.type == OpType.MEMORY and server.bodies.get(place) is not None:
                server.pushed.setdefault(place, server.bodies[place])
                server.bodies[place] = self.sealed[place] = op

    def push(self, server: Server | None, limit: int, *, answered: bool) -> int:
        """Send the next own ops; None is a server that never hears of it. Only an answer moves `acked`.

        Returns how many ops the server took.
        """
        while self.sealed_seq < min(self.seq, self.acked + limit):
            self.sealed_seq += 1
            self.sealed[self.lane, self.sealed_seq] = self.log[self.lane, self.sealed_seq]
        taken = self.acked
        while server is not None and taken < min(self.sealed_seq, self.acked + limit):
            place = (self.lane, taken + 1)
            if not server.push(place, self.sealed[place]):
                break
            taken += 1
        sent = taken - self.acked
        if answered:
            self.acked = taken
        return sent

    def pull(self, server: Server, limit: int, withheld: frozenset[str]) -> list[Place]:
        """Return the next page: places after the cursor, and move the cursor."""
        if server.generation != self.generation or self.cursor > len(server.order):
            self.generation, self.cursor = server.generation, 0
        page = server.order[self.cursor : self.cursor + limit]
        self.cursor += len(page)
        return [place for place in page if place[0] not in withheld]

    def heal(self, server: Server) -> int:
        """Put back what the server lost and this device holds, of every lane. Returns how many ops."""
        put = 0
        lanes = sorted({lane for lane, _ in self.log})
        for lane in lanes:
            while (place := (lane, server.heads.get(lane, 0) + 1)) in self.sealed:
                if lane == self.lane and place[1] > self.acked:
                    break
                server.push(place, self.sealed[place])
                put += 1
        return put

    def holes(self, server: Server) -> list[Place]:
        """Return what the server holds and this device lacks."""
        return [place for place in server.order if place not in self.log]

    def rebuild(self, rng: random.Random) -> None:
        """Come back from a crash: nothing but the file is left, and its ops are read in any order."""
        held = [op for op in self.log.values() if op is not None]
        rng.shuffle(held)
        self.state = ops.fold(held)


def _about(op: Op, entity: str) -> bool:
    return ulid_text(op.body[1]) == entity or (op.type == OpType.GRIP and ulid_text(op.body[2]) == entity)


class History:
    """One run. `run` raises `laws.BrokenLawError` at the first broken law."""

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.rng = random.Random(seed)
        self.options = options_of(seed, self.rng)
        self.now = int(START)
        self.server = Server()
        self.trace: list[str] | None = [repr(self.options)] if tracing else None
        self.devices = [Device(lane=self.device_id(), skew_ms=skew) for skew in self.options.skews_ms]
        self.memories = [ulid(START, self.entropy()) for _ in range(self.options.memories)]
        self.events: list[str] = []
        self.grips: list[Grip] = []
        self.every: dict[Place, Op] = {}
        self.lost: set[Place] = set()
        self.counted = 0
        self.backups: list[tuple[Device, dict[str, Any]]] = []
        self.in_flight: list[tuple[int, Device, list[tuple[Place, Op | None]]]] = []
        self.partitioned: dict[int, str] = {}
        self.told: set[Place] = set()
        self.glimpse: tuple[set[Place], State] = (set(), State())
        self.apart = random.Random(f"apart {seed}")
        """Draws what was added later, so that a seed plays what it played before, and that beside it."""

    def entropy(self) -> bytes:
        return self.rng.getrandbits(80).to_bytes(10, "big")

    def device_id(self) -> str:
        return self.rng.getrandbits(128).to_bytes(16, "big").hex()

    def note(self, *words: object) -> None:
        if self.trace is not None:
            self.trace.append(" ".join(map(str, words)))

    def tally(self) -> Counter[str]:
        """Return what this history adds to the figures."""
        return Counter(
            {f"fault: {name}": 1 for name in self.options.faults}
            | {"steps": self.options.steps, "ops": len(self.every), "devices": len(self.devices)}
        )

    # --- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Play the steps, then turn the faults off and check the laws."""
        rng, choices = self.rng, self.options
        moves, weights = zip(*self.moves(), strict=True)
        summed = list(accumulate(weights))
        half = choices.steps // 2
        for step in range(choices.steps):
            self.now += rng.randint(0, choices.step_ms)
            (move,) = rng.choices(moves, cum_weights=summed)
            device = rng.choice([one for one in self.devices if one.alive])
            self.note(step, device.lane[:6], move.__name__)
            move(device)
            if self.apart.random() < EMPTYING:
                self.empty(self.apart.choice([one for one in self.devices if one.alive]))
            self.deliver(step)
            if step == half:
                held = {place for place, op in device.log.items() if op is not None}
                self.glimpse = (held, ops.merge(device.state, State()))
                self.check_now(device)
        self.settle()
        self.check_end()

    def moves(self) -> list[tuple[Callable[[Device], None], float]]:
        """Return what may happen in a step, and how often."""
        found: list[tuple[Callable[[Device], None], float]] = [
            (self.edit, 5), (self.rename, 1.5), (self.claim, 1.5), (self.unclaim, 1), (self.count, 2),
            (self.event, 1.5), (self.grip, 1.5), (self.blank, 1), (self.decide, 1), (self.newer, 0.2), (self.forget, 0.5), (self.push, 4), (self.pull, 4),
        ]  # fmt: skip
        extra = {
            "crash": (self.crash, 1), "restore": (self.restore, 1), "rollback": (self.roll_back, 0.5),
            "unnoticed rollback": (self.roll_back_unnoticed, 0.4), "dead owner": (self.die, 0.3),
            "late joiner": (self.join, 0.2), "clock step": (self.step_clock, 0.5), "partition": (self.partition, 0.5),
            "twins": (self.twin, 0.7),
        }  # fmt: skip
        return found + [extra[name] for name in sorted(choices for choices in extra if choices in self.options.faults)]

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, device: Device, op_type: int, body: dict[int, Any], replaced: Iterable[Stamp] = (), *, at: int = 0
    ) -> Op:
        before = device.clock
        op = device.write(self.now, op_type, body, replaced, self.entropy(), at=at)
        self.every[device.lane, op.seq] = op
        self.note("wrote", op.seq, op_type, op.hlc, op.body)
        require("I9 a clock only rises", device.lane, holds=device.clock > before)
        bound = device.latest_wall + clock.MAX_LEAD_MS + 1
        require("I9 no clock runs away", device.lane, holds=millis_of(device.clock) <= bound)
        return op

    def known(self, device: Device, wanted: Iterable[str]) -> list[str]:
        return [one for one in wanted if one not in device.state.forgotten]

    def edit(self, device: Device) -> None:
        if not (live := self.known(device, self.memories)):
            self.memories.append(ulid(START, self.entropy()))
            live = self.memories[-1:]
        memory_id = self.rng.choice(live)
        keys = self.rng.sample(EDITED, self.rng.randint(1, 2))
        self.registers(device, memory_id, {key: self.value(key) for key in keys})

    def value(self, key: Field) -> Any:
        number = self.rng.randrange(1_000)
        return number / 1_000 if key == Field.SALIENCE else f"text {number}"

    def registers(self, device: Device, memory_id: str, fields: dict[Field, Any]) -> None:
        if (memory_id, int(Field.CREATED_AT)) not in device.state.registers:
            fields = {Field.CONTENT: self.value(Field.CONTENT), Field.CREATED_AT: int(START)} | fields
        bases: dict[Field, Stamp] = {}
        also: dict[Field, tuple[Stamp, ...]] = {}
        above: list[Stamp] = []
        for key in fields:
            if versions := device.state.registers.get((memory_id, int(key))):
                bases[key] = ops.winner(versions)
                if out := ops.out_of_reach(versions, clock.tick(device.clock, device.wall(self.now))):
                    also[key] = out
                above += (bases[key], *ops.unseen(versions))
        far = at if (at := self.far()) and len(fields) == 1 and not bases else 0
        op = self.write(device, OpType.MEMORY, ops.memory_body(memory_id, fields, bases, also), above, at=far)
        for key, value in fields.items():
            versions = device.state.registers[memory_id, int(key)]
            top = ops.winner(versions)
            mine = top == (int(op.hlc), device.lane) and versions[top][0] == value
            require("I4 an informed edit wins at once", f"{memory_id} {key.name}", holds=mine)
            seen = bases.get(key) not in ops.unseen(versions)
            require("I4 what an edit saw is no conflict", f"{memory_id} {key.name}", holds=seen)

    def far(self) -> int:
        """Return the stamp of a write whose device lies or has lost its mind; 0 for nearly all."""
        if self.apart.random() >= FAR:
            return 0
        return self.apart.choice((ops.MAX_HLC, ops.MAX_HLC - 1, ops.MAX_HLC >> 1, 1))

    def empty(self, device: Device) -> None:
        """Empty what was superseded, keeping as much for undo as chance will have it. It shows what it showed."""
        before = ops.view(device.state)
        gone = device.empty(self.apart.choice((0, 0, 1, 3)))
        require("I1 emptying changes nothing", device.lane, holds=ops.view(device.state) == before)
        if gone and self.apart.random() < 0.5:
            device.pack(self.server)
        self.note("emptied", len(gone))

    def decide(self, device: Device) -> None:
        """Settle what is in conflict: a write that has seen every version there is."""
        conflicts = {
            at: found
            for at, versions in device.state.registers.items()
            if at[0] not in device.state.forgotten and (found := ops.unseen(versions))
        }
        if conflicts:
            memory_id, key = self.rng.choice(sorted(conflicts))
            versions = device.state.registers[memory_id, key]
            base, also = ops.winner(versions), conflicts[memory_id, key]
            fields = {Field(key): versions[self.rng.choice(sorted(versions))][0]}
            body = ops.memory_body(memory_id, fields, {Field(key): base}, {Field(key): also})
            self.write(device, OpType.MEMORY, body, (base, *also))
            still_open = ops.unseen(device.state.registers[memory_id, key])
            require("I4 what is settled is no conflict", memory_id, holds=not still_open)

    def newer(self, device: Device) -> None:
        """Write what only a later version understands: it is kept, carried, and shows nothing."""
        body = ops.forget_body(self.rng.choice(self.memories))
        self.write(device, self.rng.choice((99, 100)), body)

    def rename(self, device: Device) -> None:
        if live := self.known(device, self.memories):
            memory_id, name = self.rng.choice(live), self.rng.choice(NAMES)
            self.registers(device, memory_id, {Field.NAME: name})
            self.write(device, OpType.CLAIM, ops.claim_body(memory_id, name))

    def claim(self, device: Device) -> None:
        if live := self.known(device, self.memories):
            self.write(device, OpType.CLAIM, ops.claim_body(self.rng.choice(live), self.rng.choice(NAMES)))

    def unclaim(self, device: Device) -> None:
        held = sorted({(name, entity) for (name, _), entity in device.state.claims.items()})
        if held:
            name, entity = self.rng.choice(held)
            seen = [at for (claimed, at), holder in device.state.claims.items() if (claimed, holder) == (name, entity)]
            self.write(device, OpType.UNCLAIM, ops.unclaim_body(entity, name, seen))

    def count(self, device: Device) -> None:
        if live := self.known(device, self.memories):
            memory_id, rise = self.rng.choice(live), self.rng.randint(1, 3)
            before = device.state.counters.get((memory_id, int(Counted.ACCESS), device.lane), (0, 0))
            last = Millis(max(before[1], self.now))
            self.write(device, OpType.COUNT, ops.count_body(memory_id, Counted.ACCESS, before[0] + rise, last))
            self.counted += rise

    def event(self, device: Device) -> None:
        event_id = ulid(START, self.entropy())
        self.events.append(event_id)
        self.write(device, OpType.EVENT, ops.event_body(self.said(event_id, device)))

    def said(self, event_id: str, device: Device) -> Event:
        return Event(
            id=event_id,
            device=device.lane,
            agent="test",
            session_id="s",
            type=EventType.USER_MESSAGE,
            role=Role.USER,
            text=TEXT,
            ts=START,
            dedupe_key=event_id,
        )

    def grip(self, device: Device) -> None:
        live = self.known(device, self.memories)
        if live and self.events:
            made = Grip(
                id=ulid(START, self.entropy()),
                memory_id=self.rng.choice(live),
                event_id_start=self.rng.choice(self.events),
                event_id_end=self.rng.choice(self.events),
                span_start=3,
                span_end=8,
                excerpt="moved",
                source="test/1",
                created_at=Millis(self.now),
            )
            self.grips.append(made)
            self.write(device, OpType.GRIP, ops.grip_body(made))

    def twin(self, device: Device) -> None:
        """Write what another device wrote too, under the same id: both imported one file before they met."""
        kind = self.rng.choice(("event", "memory", "grip"))
        if kind == "event" and (events := self.known(device, self.events)):
            self.write(device, OpType.EVENT, ops.event_body(self.said(self.rng.choice(events), device)))
        elif kind == "memory" and (live := self.known(device, self.memories)):
            fields = {Field.CONTENT: "imported", Field.CREATED_AT: int(START)}
            unknown = [one for one in live if (one, int(Field.CREATED_AT)) not in device.state.registers]
            if unknown:
                self.registers(device, self.rng.choice(unknown), fields)
        elif self.grips:
            made = self.rng.choice(self.grips)
            if not {made.id, made.memory_id} & device.state.forgotten:
                self.write(device, OpType.GRIP, ops.grip_body(made) | {9: self.now})

    def blank(self, device: Device) -> None:
        if events := self.known(device, self.events):
            start = self.rng.randrange(len(TEXT))
            spans = [(start, start + self.rng.randint(1, 6))]
            self.write(device, OpType.BLANK, ops.blank_body(self.rng.choice(events), spans))

    def forget(self, device: Device) -> None:
        pools = (self.memories, self.events, [made.id for made in self.grips])
        if live := self.known(device, self.rng.choice(pools)):
            entity = self.rng.choice(live)
            owner = next((made.memory_id for made in self.grips if made.id == entity), None)
            # Every other one carries what is left of words: nothing that shows follows from it.
            words = ForgottenWords(key=self.memories[0], digests=(bytes(16),)) if ord(entity[-1]) % 2 else None
            self.write(device, OpType.FORGET, ops.forget_body(entity, owner, words))
            require("I3 forgotten is never seen again", entity, holds=entity in device.state.forgotten)

    # --- carrying -----------------------------------------------------------------------------------------------------

    def cut(self, device: Device, way: str) -> bool:
        return self.partitioned.get(id(device)) in {way, "both"} or (
            "drop" in self.options.faults and self.rng.random() < 0.25
        )

    def push(self, device: Device) -> None:
        acked, heard = device.acked, not self.cut(device, "out")
        answered = heard and not self.cut(device, "in")
        if heard and self.server.heads.get(device.lane, 0) < acked:
            device.heal(self.server)
        sent = device.push(self.server if heard else None, self.rng.randint(1, 8), answered=answered)
        there = device.acked in range(acked, max(acked, self.server.heads.get(device.lane, 0)) + 1)
        require("I7 what is called synced is on the server", device.lane, holds=there)
        if answered and "duplicate" in self.options.faults and sent:
            self.server.push((device.lane, device.acked), device.sealed[device.lane, device.acked])
        self.note("pushed", sent, answered)

    def pull(self, device: Device) -> None:
        if self.cut(device, "out") or self.cut(device, "in"):
            return
        withheld: frozenset[str] = frozenset()
        if "withheld" in self.options.faults and self.server.heads:
            withheld = frozenset({self.rng.choice(sorted(self.server.heads))})
        places = device.pull(self.server, self.rng.randint(1, 12), withheld)
        page = [(place, self.server.bodies[place]) for place in places]
        if "reorder" in self.options.faults:
            self.rng.shuffle(page)
        if "duplicate" in self.options.faults and page:
            page += [self.rng.choice(page)]
        if "delay" in self.options.faults and self.rng.random() < 0.4:
            self.in_flight.append((self.rng.randint(1, 12), device, page))
            page = []
        device.take(page, self.now)
        self.note("pulled", [place[1] for place, _ in page])

    def deliver(self, step: int) -> None:
        """Hand over the pages whose delay is over, to whoever is still there to take them."""
        if self.in_flight:
            due = [one for one in self.in_flight if one[0] <= 0]
            self.in_flight = [(left - 1, device, page) for left, device, page in self.in_flight if left > 0]
            for _, device, page in due:
                if device.alive:
                    device.take(page, self.now)
                    self.note(step, device.lane[:6], "late page", len(page))

    # --- faults -------------------------------------------------------------------------------------------------------

    def crash(self, device: Device) -> None:
        before = ops.view(device.state)
        device.rebuild(self.rng)
        self.in_flight = [one for one in self.in_flight if one[1] is not device]
        require("I6 a rebuild shows what was shown", device.lane, holds=ops.view(device.state) == before)

    def restore(self, device: Device) -> None:
        """Keep a copy of a device, or put an older copy in its place: then it goes on under a new id."""
        mine = [copy for owner, copy in self.backups if owner is device]
        if not mine or self.rng.random() < 0.5:
            self.backups.append((device, device.copied()))
            return
        copy = self.rng.choice(mine)
        self.backups = [one for one in self.backups if one[0] is not device]
        self.in_flight = [one for one in self.in_flight if one[1] is not device]
        for name, value in copy.items():
            setattr(device, name, value)
        self.reincarnate(device)

    def reincarnate(self, device: Device) -> None:
        """Take a new id. What the old lane on the server does not hold is written again, once, with the same op id.

        Stamps keep their time and change their device, so what names them as seen must be changed with them. A counter
        starts again from zero: only what the old lane does not count yet is counted.
        """
        old = device.lane
        found = [(at, self.server.bodies[at]) for at in self.server.order if at[0] == old]
        device.take(found, self.now)
        device.log.update(found)  # what was forgotten before it was sealed is gone for everybody else
        before = ops.fold([op for op in device.log.values() if op is not None])
        kept = max(self.server.heads.get(old, 0), device.acked)
        again = [device.log.pop((old, seq)) for seq in range(kept + 1, device.seq + 1)]
        device.sealed = {place: op for place, op in device.sealed.items() if place[0] != old or place[1] <= kept}
        device.heads[old] = kept
        device.lane, device.seq, device.acked, device.sealed_seq = self.device_id(), 0, 0, 0
        device.rebuild(self.rng)
        moved = {stamp for op in again if op is not None for stamp in ops.stamps_of(op)}
        self.note("reincarnated", old[:6], device.lane[:6], len(again))
        for op in again:
            if op is not None and (left := self.uncounted(device, op)) is not None:
                device.seq += 1
                made = ops.readdressed(left, device.lane, device.seq, moved)
                device.heads[device.lane] = made.seq
                self.every[device.lane, made.seq] = made
                device.keep([((device.lane, made.seq), made)])
        laws.check_moved(before, device.state)

    def uncounted(self, device: Device, op: Op) -> Op | None:
        """Return an op without what its old lane counts already; None when nothing is left."""
        if op.type != OpType.COUNT:
            return op
        counter, total, _ = ops.total_of(op)
        below = device.state.counters.get((ulid_text(op.body[1]), counter, op.device), (0, 0))[0]
        return ops.counted(op, total - below) if total > below else None

    def roll_back(self, _device: Device) -> None:
        kept = self.rng.randint(0, len(self.server.order))
        self.note("server keeps", kept, "of", len(self.server.order))
        self.server.roll_back(kept, noticed=True)

    def roll_back_unnoticed(self, _device: Device) -> None:
        self.server.roll_back(self.rng.randint(0, len(self.server.order)), noticed=False)

    def die(self, device: Device) -> None:
        if sum(one.alive for one in self.devices) > 1:
            device.alive = False

    def join(self, _device: Device) -> None:
        if len(self.devices) < 8:
            skew = 10 * DAY_MS if "skew" in self.options.faults and self.rng.random() < 0.2 else 0
            self.devices.append(Device(lane=self.device_id(), skew_ms=skew))

    def step_clock(self, device: Device) -> None:
        device.skew_ms += self.rng.choice((-1, 1)) * self.rng.choice((1, 5_000, 700_000, 10 * DAY_MS))

    def partition(self, device: Device) -> None:
        if self.partitioned.pop(id(device), None) is None:
            self.partitioned[id(device)] = self.rng.choice(("in", "out", "both"))

    # --- the end ------------------------------------------------------------------------------------------------------

    def check_now(self, device: Device) -> None:
        """What must hold at any moment, checked at one of them."""
        view = ops.view(device.state)
        laws.check_forgotten(device.state.forgotten, view)
        laws.check_view([op for op in device.log.values() if op is not None], device.state, view)

    def settle(self) -> None:
        """Turn the faults off and let every living device sync; within two rounds all hold the same (I14)."""
        living = [device for device in self.devices if device.alive]
        self.told = set().union(set(self.server.bodies), *(device.log for device in living))
        for round_ in range(SETTLING):
            for device in living:
                device.heal(self.server)
                device.push(self.server, device.seq, answered=True)
                while page := device.pull(self.server, 50, frozenset()):
                    device.take([(place, self.server.bodies[place]) for place in page], self.now)
            for device in living:
                device.take([(place, self.server.bodies[place]) for place in device.holes(self.server)], self.now)
            self.note("settled", round_, len(self.server.order), [len(device.log) for device in living])

    def check_end(self) -> None:
        living = [device for device in self.devices if device.alive]
        if "crash" in self.options.faults:
            self.crash(living[0])
        first, view = living[0], ops.view(living[0].state)
        for device in living:
            missing = sorted(self.told - set(device.log))
            require(
                "I2 nothing that anybody still had is lost", f"{device.lane[:8]} lacks {missing}", holds=not missing
            )
            require("I14 everything is sent", device.lane, holds=device.acked == device.seq)
            if device is not first:
                require(
                    "I1 equal views", f"{first.lane[:8]} and {device.lane[:8]}", holds=ops.view(device.state) == view
                )
            laws.check_forgotten(device.state.forgotten, view)
        every = [self.every[place] for place in sorted(first.log)]
        gone = {ulid_text(op.body[1]) for op in every if op.type == OpType.FORGET}
        erased = {place for device in living for place, op in device.log.items() if op is None}
        kept = [
            op
            for op in every
            if op.type == OpType.FORGET
            or ((op.device, op.seq) not in erased and not any(_about(op, entity) for entity in gone))
        ]
        kept = laws.as_told(kept, first.log)
        laws.check_view(kept, first.state, view)
        held, glimpse = self.glimpse
        if held <= {(op.device, op.seq) for op in kept}:
            both = (ops.merge(glimpse, first.state), ops.merge(first.state, glimpse))
            require("I1 merging what is known changes nothing", "", holds=all(ops.view(one) == view for one in both))
        apart = ops.fold([op for op in kept if op.device == first.lane])
        rest = ops.fold([op for op in reversed(kept) if op.device != first.lane])
        require("I1 merge is fold", "", holds=ops.view(ops.merge(apart, rest)) == view)
        self.note("view", sorted(view.memories), len(view.events), len(view.conflicts))


def _remembered(original: Callable[[Op], T]) -> Callable[[Op], T]:
    """Return a pure function of an op that works out once what it says of each."""
    known: dict[int, tuple[Op, T]] = {}

    def remembered(op: Op) -> T:
        found = known.get(id(op))
        if found is None:
            found = known[id(op)] = (op, original(op))  # with the op, so that its id stays its own
        return found[1]

    return remembered


@contextmanager
def _remembering() -> Iterator[None]:
    """Have the core read an op once, however many devices fold it, and fold it again."""
    names = ("problem", "event_of", "grip_made_by")  # as the fold looks them up
    before = [getattr(folding, name) for name in names]
    for name, original in zip(names, before, strict=True):
        setattr(folding, name, _remembered(original))
    try:
        yield
    finally:
        for name, original in zip(names, before, strict=True):
            setattr(folding, name, original)


def run(seed: int, *, tracing: bool = False) -> History:
    """Play the history of a seed. A broken law comes with the options and the last steps that led there."""
    history = History(seed, tracing=tracing)
    try:
        with _remembering():
            history.run()
    except laws.BrokenLawError as error:
        error.add_note(f"{history.options!r}")
        if history.trace is not None:
            error.add_note("\n".join(history.trace[-30:]))
        raise
    return history
