"""Snapshots in histories: machines make them, new machines begin with them, and a server or a device lies about them.

All of it is drawn from a stream of its own, in histories of seeds of their own, so that those without play what they did.
Whatever a new machine began with, it must end as all others do. Beyond that, what a snapshot says and no lane does must
be gone at the end, with the name of the device that made it; and one that is not of a full device in force, or that this
device has not signed, must never be believed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from scrubjay.store.queries.snapshots import SnapshotQueries
from scrubjay_shared import ops, wire
from scrubjay_shared.clock import ulid_text
from scrubjay_shared.envelope import ObjectKind, parse
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Layer, Op
from scrubjay_shared.snapshot import Chunk, ImagedEvent
from scrubjay_sync import packing
from simulation.laws import require
from simulation.network import Answer

if TYPE_CHECKING:
    from simulation.engine import Station, World

KINDS = (
    "old snapshot",
    "mixed snapshot",
    "foreign snapshot",
    "snapshot of a revoked",
    "withheld snapshot",
    "lying maker",
)
"""Who is false about snapshots: a server in five ways, or the device that makes one."""
SNAPSHOTS = "snapshots"
"""The name of histories in which some are made; in those of the kinds above they are too."""
THROWN_AWAY = "S1 what a snapshot says and no lane does is thrown away"
NAMED = "S2 whoever made a snapshot that lies is named"
NOT_BELIEVED = "S3 a snapshot that no full device in force has signed is not believed"
POISON = "canary poison"
"""What a lie says, where it says words."""
FIRST = 10_000
"""The first seed of the histories with snapshots: those below play what they played before there were any."""
JOINERS = 2
"""New machines in one history that begin with a snapshot."""
RATE = 0.2
QUIET = frozenset({"restore", "clone", "false fsync"})
"""Faults after which a machine may not remember what it was told."""
LOSING = frozenset({"rollback", "quiet rollback", "fork"})
"""Faults after which a server that kept a snapshot knows of places which it has lost itself."""


def kinds_of(seed: int) -> frozenset[str]:
    """Return what is done with snapshots in the history of a seed: nothing below `FIRST`."""
    rng = random.Random(f"snapshots {seed}")
    return frozenset() if seed < FIRST else frozenset({SNAPSHOTS, *rng.sample(KINDS, rng.choice((0, 1, 2)))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A snapshot that the server keeps for later. `words` stand in it and in no lane; "" when it is true."""

    maker: Station
    device: bytes
    manifest: bytes
    chunks: dict[bytes, bytes]
    words: str = ""


@dataclass(slots=True)
class Joiner:
    """A machine that began with whatever the server had. `named` is who must be, when it believed a lie."""

    station: Station
    named: str = ""
    forbidden: bytes = b""
    """A maker of whom nothing may be used."""


@dataclass(slots=True)
class Snapshots:
    """All that is done with snapshots in one history."""

    world: World
    seed: int
    kinds: frozenset[str]
    rng: random.Random = field(init=False)
    kept: list[Kept] = field(default_factory=list)
    joiners: list[Joiner] = field(default_factory=list)
    lies: dict[str, Kept] = field(default_factory=dict)
    """By their words."""
    steps: int = 0
    said: dict[tuple[bytes, int], ImagedEvent] = field(default_factory=dict)
    """Every event that stood in a true chunk once, by device and place."""

    def __post_init__(self) -> None:
        self.rng = random.Random(f"snapshots played {self.seed}")

    # --- what happens -------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Make a snapshot, forget something of it, or let a machine begin with one, sometimes."""
        world, self.steps = self.world, self.steps + 1
        if not self.kinds or self.rng.random() >= min(0.6, RATE * world.bent):
            return
        able = [
            one
            for one in world.stations
            if one.engine is not None and not one.revoked and one.server is None and one.member is not None
        ]
        if not able or world.under_way:
            return
        station = self.rng.choice(able)
        is_late = 2 * self.steps > world.options.steps and bool(self.kept)
        moves = (self.make, self.forget, self.join, self.shut_maker_out)
        (move,) = self.rng.choices(moves, (4, 3 * bool(self.said), 2 * is_late, is_late))
        world.note("snapshot", move.__name__, station.machine.name)
        world.tallies[f"snapshot: {move.__name__}"] += 1
        await world.guarded(station, move)

    async def last(self) -> None:
        """When the faults are off, make one more, and let a machine begin with what there is."""
        able = [one for one in self.world.stations if one.engine is not None and not one.revoked]
        if self.kinds and able:
            station = self.rng.choice(able)
            await self.world.guarded(station, self.world.sync)
            await self.world.guarded(station, self.make)
            await self.world.guarded(station, self.let_in)

    async def forget(self, station: Station) -> None:
        """Forget an event that stood in a snapshot, or a passage of it."""
        (device, seq), event = self.rng.choice(sorted(self.said.items()))
        event_id = ulid_text(event.entity)
        store = station.machine.store
        if await store.read(lambda q: q.fetch("select 1 from event where id = ? and not forgotten", (event_id,))):
            is_whole = self.rng.random() < 0.5
            self.world.note("forgets", seq, "of", device.hex()[:8], is_whole)
            await store.write(
                lambda tx: tx.forget.event(event_id) if is_whole else tx.forget.passages(event_id, [(8, 12)])
            )

    async def make(self, station: Station) -> None:
        """Make one: a true one, or one that lies."""
        world = self.world
        assert station.engine is not None
        assert station.member is not None
        lie = self.rng.choice(LIES) if "lying maker" in self.kinds and self.rng.random() < 0.6 else None
        words = f"{POISON} {len(self.lies)} of {self.rng.randrange(10_000)}" if lie is not None else ""
        lying = Lying(of=self, words=words, change=lie)
        with lying.planted():
            made = await station.engine.snapshot()
        if not made.chunks:
            return
        world.tallies["snapshots made"] += 1
        world.note("made", made.ops, made.chunks, lie and lie.__name__, lying.done)
        rows = await world.server.database.read(
            lambda tx: tx.rows("select kind, hash, body from blob where kind in (3, 4) and replaced_at is null")
        )
        manifests = [bytes(body) for kind, _, body in rows if kind == ObjectKind.SNAPSHOT_MANIFEST]
        if len(manifests) != 1 or parse(manifests[0]).header.device != station.member.device:
            return  # somebody else's stands there by now
        kept = Kept(
            maker=station,
            device=station.member.device,
            manifest=manifests[0],
            chunks={bytes(digest): bytes(body) for kind, digest, body in rows if kind == ObjectKind.SNAPSHOT_CHUNK},
            words=words if lying.done else "",
        )
        self.kept.append(kept)
        if lying.done:
            world.tallies[f"lie: {lie.__name__}" if lie else ""] += 1
            self.lies[words] = kept

    async def join(self, station: Station) -> None:
        """Let a new machine in, unless there are enough of them."""
        if len(self.joiners) < JOINERS:
            await self.let_in(station)

    async def let_in(self, station: Station) -> None:
        """Let a new machine in, which begins with whatever the server has for it."""
        world = self.world
        before = len(world.stations)
        await world.join(station, more=JOINERS + 1)
        if len(world.stations) == before:
            return
        new = world.stations[-1]
        joiner = Joiner(station=new)
        self.joiners.append(joiner)
        self._offer(joiner)
        await world.guarded(new, world.sync)

    async def shut_maker_out(self, station: Station) -> None:
        """Revoke a device that made one, which the server keeps."""
        makers = [
            one.maker
            for one in self.kept
            if one.maker is not station and not one.maker.revoked and one.maker.engine is not None
        ]
        if "snapshot of a revoked" in self.kinds and makers and not LOSING & self.world.options.faults:
            await self.world.shut_out(station, self.rng.choice(makers))

    # --- what a server that lies has -----------------------------------------------------------------------------------

    def _offer(self, joiner: Joiner) -> None:
        """Choose what a machine is shown as the snapshot."""
        kinds = sorted(self.kinds - {SNAPSHOTS, "lying maker"})
        held = [] if LOSING & self.world.options.faults else self.kept
        if not kinds or not held or self.rng.random() < 0.2:
            return  # what there is
        kind, one, other = self.rng.choice(kinds), self.rng.choice(held), self.rng.choice(held)
        made: tuple[bytes | None, dict[bytes, bytes]] | None = None
        match kind:
            case "old snapshot":
                made = one.manifest, one.chunks
            case "mixed snapshot":
                bodies = [*one.chunks.values(), *other.chunks.values()]
                made = one.manifest, {digest: self.rng.choice(bodies) for digest in one.chunks}
            case "foreign snapshot":
                joiner.forbidden = one.device
                made = self._foreign(one), one.chunks
            case "snapshot of a revoked":
                shut_out = [each for each in held if each.maker.revoked]
                if shut_out:
                    one = self.rng.choice(shut_out)
                    joiner.forbidden = one.device
                    made = one.manifest, one.chunks
            case _:
                made = (None, {}) if self.rng.random() < 0.5 else (one.manifest, {})
        if made is not None:
            self.world.note("offers", kind, one.maker.machine.name)
            self.world.tallies[f"offered: {kind}"] += 1
            manifest, chunks = made
            known = set().union(*(each.chunks for each in self.kept))
            joiner.station.offer = lambda path, answer: _offered(path, answer, manifest, chunks, known)

    def _foreign(self, one: Kept) -> bytes | None:
        """Return a manifest in a device's name that it has not signed: of another account, or by who else has the key."""
        header = parse(one.manifest).header
        member = one.maker.member
        if member is None:
            return None
        opened = packing.opened_manifest(parse(one.manifest), member.scopes.key(header.scope, header.epoch))
        account = self.rng.randbytes(16) if self.rng.random() < 0.3 else header.account
        key = member.scopes.key(header.scope, header.epoch)
        seal = packing.SealContext(
            account=account, scope=header.scope, device=header.device, n=0, prev=header.prev, suite=int(header.suite),
            epoch=header.epoch, key=key,
        )  # fmt: skip
        others = [each for each in self.world.stations if each.member is not None and each is not one.maker]
        thief = self.rng.choice(others or [one.maker]).member
        assert thief is not None
        sign = thief.sign if others else lambda _: self.rng.randbytes(64)
        signer = packing.Signer(sign=sign, entropy=self.rng.randbytes)
        return packing.manifest(seal, opened.seen, opened.chunks, signer).data

    # --- what must hold -----------------------------------------------------------------------------------------------

    async def look(self, station: Station) -> None:
        """Note what a machine believes at a moment, and that it believes nobody who must not be."""
        for joiner in self.joiners:
            if joiner.station is station and station.engine is not None and (joiner.forbidden or self.lies):
                await self._look(joiner)

    async def _look(self, joiner: Joiner) -> None:
        store = joiner.station.machine.store
        state = await store.read(lambda q: q.replication.state())
        if state is None or not state.snapshot:
            return
        used = bool(joiner.forbidden) and state.snapshot_maker == joiner.forbidden
        require(NOT_BELIEVED, f"{joiner.station.machine.name} uses it", holds=not used)
        for words in await self._poisoned(joiner.station):
            lie = self.lies[words]
            if state.snapshot in {"loading", "loaded"} and state.snapshot_maker == lie.device:
                joiner.named = lie.maker.machine.name

    async def _poisoned(self, station: Station) -> list[str]:
        """Return the words of lies that a machine shows."""
        shown = await station.machine.store.read(
            lambda q: q.fetch(
                "select text from event where instr(text, ?1) union all select content from memory"
                " where instr(content, ?1)",
                (POISON,),
            )
        )
        return [words for words in self.lies if any(words in text for (text,) in shown)]

    async def proven(self, station: Station, log: dict[tuple[str, int], Op | None]) -> dict[tuple[str, int], Op | None]:
        """Return the ops of a machine that it may be held to: its own, while what came from a snapshot is not compared."""
        if not self.kinds or not await station.machine.store.read(lambda q: q.snapshots.unconfirmed()):
            return log
        return {place: op for place, op in log.items() if place[0] == station.machine.store.device}

    async def check(self, members: Sequence[Station]) -> None:
        """Check the laws of snapshots when all is settled."""
        if not self.kinds:
            return
        for station in members:
            left = await self._poisoned(station)
            require(THROWN_AWAY, f"{left} at {station.machine.name}", holds=not left)
            open_ = await station.machine.store.read(lambda q: q.snapshots.unconfirmed())
            require(THROWN_AWAY, f"not compared at {station.machine.name}", holds=not open_)
        for joiner in self.joiners:
            station = joiner.station
            if station not in members:
                continue
            state = await station.machine.store.read(lambda q: q.replication.state())
            used = "" if state is None else state.snapshot
            self.world.tallies[f"began with a snapshot: {used or 'none'}"] += 1
            if joiner.named and not station.adopted and not QUIET & self.world.options.faults:
                alarms = await station.machine.store.read(lambda q: q.replication.alarms())
                told = [one.message for one in alarms if one.code == "corrupt" and one.subject == "snapshot"]
                named = any(f"device {joiner.named} made" in message for message in told)
                require(NAMED, f"{joiner.named} at {station.machine.name}: {told}", holds=named)
                self.world.tallies["lies found"] += 1


def _offered(
    path: str, answer: Answer, manifest: bytes | None, chunks: dict[bytes, bytes], known: set[bytes]
) -> Answer:
    """Return what a server answers that has its own snapshot, or none."""
    if answer.status not in {200, 404} or path.endswith("/missing"):
        return answer
    if path.startswith("/v1/snapshots/"):
        return _with(answer, manifest)
    name = path.removeprefix("/v1/objects/")
    if name != path and bytes.fromhex(name) in known:
        return _with(answer, chunks.get(bytes.fromhex(name)))
    return answer


def _with(answer: Answer, body: bytes | None) -> Answer:
    """Return an answer with an object; not found without."""
    own = {"content-length", "content-type"}
    headers = tuple((key, value) for key, value in answer.headers if key.lower() not in own)
    kind = ("content-type", "text/html" if body is None else wire.MEDIA)
    return Answer(
        status=404 if body is None else 200,
        headers=(*headers, kind, ("content-length", str(len(body or b"")))),
        body=body or b"",
    )


# --- lies -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Lying:
    """What a device says of what others wrote, while it makes a snapshot. `done`: it has told a lie."""

    of: Snapshots
    words: str
    change: Callable[[Lying, Chunk], Chunk] | None
    done: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the chunks that a machine makes changed until the block ends."""
        honest = SnapshotQueries.chunk

        def chunk(queries: SnapshotQueries, device: str, low: int, high: int) -> Chunk:
            found = honest(queries, device, low, high)
            changed = found if self.change is None or self.done else self.change(self, found)
            self.done = self.done or changed != found
            self.of.said |= {(found.device, one.seq): one for one in found.events}
            return changed

        SnapshotQueries.chunk = chunk  # type: ignore[method-assign] # the maker lies, and nobody else makes one now
        try:
            yield
        finally:
            SnapshotQueries.chunk = honest  # type: ignore[method-assign]

    @property
    def rng(self) -> random.Random:
        return self.of.rng

    def free(self, chunk: Chunk) -> list[int]:
        """Return places that a chunk leaves out: those of what was forgotten, and what comes after the last."""
        there = {one.seq for one in chunk.events} | {seq for seq, _ in chunk.others}
        return [seq for seq in range(1, max(there, default=0) + 3) if seq not in there]


def _with_event(chunk: Chunk, event: ImagedEvent) -> Chunk:
    events = [one for one in chunk.events if one.seq != event.seq]
    return chunk._replace(events=sorted([*events, event], key=lambda one: one.seq))


def other_words(lying: Lying, chunk: Chunk) -> Chunk:
    """Say that somebody said something else."""
    if not chunk.events:
        return chunk
    return _with_event(chunk, msgspec.structs.replace(lying.rng.choice(chunk.events), text=lying.words))


def invented(lying: Lying, chunk: Chunk) -> Chunk:
    """Say that somebody said something, at a place where nothing stands: behind the end, or where it was forgotten."""
    known = [one for (device, _), one in sorted(lying.of.said.items()) if device == chunk.device] or chunk.events
    if not known:
        return chunk
    made = msgspec.structs.replace(
        lying.rng.choice(known), seq=lying.rng.choice(lying.free(chunk)), op_id=lying.rng.randbytes(16),
        entity=lying.rng.randbytes(16), text=lying.words, dedupe_key=lying.words,
    )  # fmt: skip
    return _with_event(chunk, made)


def put_back(lying: Lying, chunk: Chunk) -> Chunk:
    """Say what was forgotten, or had a passage erased; or something else in its place."""
    there = {one.seq for one in chunk.events}
    gone = [one for (device, seq), one in sorted(lying.of.said.items()) if device == chunk.device and seq not in there]
    if not gone:
        return chunk
    chosen = lying.rng.choice(gone)
    return _with_event(chunk, msgspec.structs.replace(chosen, text=lying.rng.choice((chosen.text, lying.words))))


def left_out(lying: Lying, chunk: Chunk) -> Chunk:
    """Leave out something that was said or written."""
    if chunk.events and (lying.rng.random() < 0.5 or not chunk.others):
        gone = lying.rng.choice(chunk.events)
        return chunk._replace(events=[one for one in chunk.events if one is not gone])
    if not chunk.others:
        return chunk
    missing = lying.rng.choice(chunk.others)
    return chunk._replace(others=[one for one in chunk.others if one is not missing])


def _written(lying: Lying, chunk: Chunk, fields: dict[int, object]) -> Chunk:
    """Return a chunk in which one write to a memory has other fields."""
    device = chunk.device.hex()
    writes = [
        op
        for op in (ops.decode(data, device=device, seq=seq) for seq, data in chunk.others)
        if op.type == OpType.MEMORY and op.body[2]
    ]
    if not writes:
        return chunk
    chosen = lying.rng.choice(writes)
    lie = ops.encode(replace(chosen, body={**chosen.body, 2: {**chosen.body[2], **fields}}))
    return chunk._replace(others=[(seq, lie if seq == chosen.seq else data) for seq, data in chunk.others])


def other_write(lying: Lying, chunk: Chunk) -> Chunk:
    """Say that somebody wrote something else into a memory."""
    return _written(lying, chunk, {int(Field.CONTENT): lying.words})


def field_more(lying: Lying, chunk: Chunk) -> Chunk:
    """Say that somebody made a memory one that is always told."""
    return _written(lying, chunk, {int(Field.LAYER): Layer.IDENTITY.value})


LIES = (other_words, invented, put_back, left_out, other_write, field_more)
