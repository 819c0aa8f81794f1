"""One simulated machine: a real store in a folder of its own, a person who uses it, and what may happen to its disk."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from scrubjay.store import MemoryWrite, Queries, Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventType, Grip, Op, Role
from simulation.laws import require

T = TypeVar("T")

NAME = "memory.db"
NAMES = ("alpha", "beta", "gamma", "alpha~2")
CANARY = "canary"
"""Every text that a simulated person writes begins with this word: it may stand nowhere outside their machines."""
SESSIONS = ("s1", "s2")


class CrashError(BaseException):
    """The machine loses power here: nothing after this point of the step happens."""


@dataclass(slots=True)
class Failing:
    """What goes wrong at the writes of a machine: after how many, and how."""

    left: int
    how: str


class Machine:
    """A machine with an open store. `skew_ms` is how far its clock is off; `rng` is its source of randomness."""

    def __init__(self, name: str, folder: Path, seed: str, now: Callable[[], int], skew_ms: int) -> None:
        self.name = name
        self.folder = folder
        self.rng = random.Random(f"{seed} {name}")
        self.skew_ms = skew_ms
        self.alive = True
        self.failing: Failing | None = None
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """What happens on this machine after a read of its store, before who asked gets the answer."""
        self.store: Store
        self._now = now

    def now(self) -> Millis:
        """Return the time by this machine's clock."""
        return Millis(max(1, self._now() + self.skew_ms))

    def entropy(self, count: int) -> bytes:
        """Return seeded random bytes."""
        return self.rng.randbytes(count)

    @property
    def path(self) -> Path:
        """The store's file."""
        return self.folder / NAME

    async def open(self) -> None:
        """Open the store, making it when there is none."""
        self.store = await Store.open(self.path, now=self.now, entropy=self.entropy)
        plain = self.store.write

        async def write(work: Callable[[Transaction], T], *, regained: bool = False) -> T:
            how = self.due()
            if how == "crash before":
                raise CrashError
            if how == "disk full":
                return await plain(lambda tx: _on_a_full_disk(tx, work))
            done = await plain(work, regained=regained)
            if how == "crash after":
                raise CrashError
            return done

        self.store.write = write  # type: ignore[method-assign] # the one place where a disk can fail
        plainly = self.store.read

        async def read(work: Callable[[Queries], T]) -> T:
            found = await plainly(work)
            if self.meanwhile is not None:
                await self.meanwhile()
            return found

        self.store.read = read  # type: ignore[method-assign] # where a person's write falls between two reads

    def due(self) -> str:
        """Say what goes wrong at the write that comes now: "", or how."""
        if self.failing is None:
            return ""
        self.failing.left -= 1
        if self.failing.left >= 0:
            return ""
        how, self.failing = self.failing.how, None
        return how

    async def close(self) -> None:
        """Close the store properly."""
        self.failing = None
        await self.store.close()

    async def crash(self, *, kept: float = 1.0) -> None:
        """Lose power and come back: what was not committed is gone, and the log of the file is read again.

        Of a log less than all is `kept` when the disk had only said that it wrote it.
        """
        self.failing = None
        image = self.folder / "image"
        shutil.rmtree(image, ignore_errors=True)
        self.copy_to(image)
        log = image / (NAME + "-wal")
        if kept < 1 and log.exists():
            os.truncate(log, int(log.stat().st_size * kept))
        await self.store.close()
        self.take(image)
        shutil.rmtree(image)

    def copy_to(self, target: Path) -> None:
        """Copy the files as they are on the disk at this moment."""
        target.mkdir(parents=True)
        for suffix in ("", "-wal"):
            found = self.path.with_name(NAME + suffix)
            if found.exists():
                shutil.copyfile(found, target / found.name)

    def take(self, source: Path) -> None:
        """Put copied files in the place of this machine's. The store is closed."""
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(NAME + suffix).unlink(missing_ok=True)
            if (source / (NAME + suffix)).exists():
                shutil.copyfile(source / (NAME + suffix), self.path.with_name(NAME + suffix))

    # --- what a person does -------------------------------------------------------------------------------------------

    async def act(self, rng: random.Random) -> str:
        """Do one thing that a person or an agent does; return what, for the trace. A refusal is no failure."""
        action = rng.choices(
            (
                self.note, self.edit, self.rename, self.alias, self.unalias, self.say, self.anchor,
                self.recall, self.blank, self.forget, self.settle,
            ),
            (4, 5, 1.5, 1, 0.7, 4, 1.5, 2, 0.7, 0.8, 1),
        )[0]  # fmt: skip
        try:
            what = await action(rng)
        except (ConflictError, NotFoundError) as error:
            return f"{action.__name__} refused: {error.code}"
        return f"{action.__name__} {what}"

    async def column(self, sql: str) -> list[Any]:
        """Return the first column of a query."""
        return [row[0] for row in await self.store.read(lambda q: q.fetch(sql))]

    async def note(self, rng: random.Random) -> str:
        """Write a new memory, sometimes with a name."""
        fields = {Field.CONTENT: self.text(rng), Field.CREATED_AT: int(self.now())}
        names = (rng.choice(NAMES),) if rng.random() < 0.4 else ()
        if names:
            fields[Field.NAME] = names[0]
        return await self.store.write(lambda tx: _written(tx, tx.new_id(), fields, names=names))

    async def edit(self, rng: random.Random) -> str:
        """Change a memory; it must show the new words at once."""
        ids = await self.column("select id from memory order by id")
        if not ids:
            return await self.note(rng)
        memory_id, content = rng.choice(ids), self.text(rng)
        fields = {Field.CONTENT: content}
        if rng.random() < 0.4:
            fields[Field.TOPIC] = self.text(rng)
        await self.store.write(lambda tx: _written(tx, memory_id, fields))
        shown = await self.store.read(lambda q: q.fetch("select content from memory where id = ?", (memory_id,)))
        require("I4 an informed edit wins at once", memory_id, holds=shown == [(content,)])
        return memory_id

    async def settle(self, rng: random.Random) -> str:
        """Decide what is in conflict: then nothing of it is open any more, here."""
        open_ = await self.store.read(lambda q: q.conflicts.open())
        if not open_:
            return ""
        one = rng.choice(open_)
        fields = {Field(one.field): rng.choice([one.shown, *(value for _, value in one.versions)])}
        await self.store.write(
            lambda tx: tx.memories.write([MemoryWrite(memory_id=one.memory_id, fields=fields, settles=True)])
        )
        left = [
            (other.memory_id, other.field) for other in await self.store.read(lambda q: q.conflicts.open(one.memory_id))
        ]
        require("I4 what is settled is no conflict", one.memory_id, holds=(one.memory_id, one.field) not in left)
        return one.memory_id

    async def rename(self, rng: random.Random) -> str:
        """Give a memory a name."""
        ids = await self.column("select id from memory order by id")
        if not ids:
            return ""
        memory_id, name = rng.choice(ids), rng.choice(NAMES)
        return await self.store.write(lambda tx: _written(tx, memory_id, {Field.NAME: name}, names=(name,)))

    async def alias(self, rng: random.Random) -> str:
        """Give a memory one more name."""
        ids = await self.column("select id from memory order by id")
        if not ids:
            return ""
        memory_id, name = rng.choice(ids), rng.choice(NAMES)
        return await self.store.write(lambda tx: _written(tx, memory_id, {}, names=(name,)))

    async def unalias(self, rng: random.Random) -> str:
        """Take an alias away."""
        held = await self.store.read(
            lambda q: q.fetch("select memory_id, name from name where not canonical order by name")
        )
        if not held:
            return ""
        memory_id, name = rng.choice(held)
        await self.store.write(lambda tx: tx.memories.unclaim(memory_id, name))
        return str(name)

    async def say(self, rng: random.Random) -> str:
        """Say something in a session."""
        text, session = self.text(rng), rng.choice(SESSIONS)
        drafts = [(text, session)] * rng.choice((1, 1, 1, 5))
        return await self.store.write(lambda tx: self._said(tx, drafts))

    def _said(self, tx: Transaction, drafts: list[tuple[str, str]]) -> str:
        events = [
            Event(
                id=(new := tx.new_id()),
                device=self.store.device,
                agent="simulation",
                session_id=session,
                type=EventType.USER_MESSAGE,
                role=Role.USER,
                text=text,
                ts=tx.now,
                dedupe_key=new,
                metadata={"speaker": "Maya"},
            )
            for text, session in drafts
        ]
        tx.events.append(events, learn=True)
        return events[0].id

    async def anchor(self, rng: random.Random) -> str:
        """Anchor a memory in an event."""
        ids = await self.column("select id from memory order by id")
        events = await self.store.read(lambda q: q.fetch("select id, text from event where not forgotten order by id"))
        if not ids or not events:
            return ""
        memory_id, (event_id, text) = rng.choice(ids), rng.choice(events)

        def work(tx: Transaction) -> str:
            grip = Grip(
                id=tx.new_id(),
                memory_id=memory_id,
                event_id_start=event_id,
                event_id_end=event_id,
                span_start=0,
                span_end=min(len(text), 6),
                excerpt=text[:6],
                source="simulation/1",
                created_at=tx.now,
            )
            tx.memories.write([MemoryWrite(memory_id=memory_id, fields={}, grips=(grip,))])
            return grip.id

        return await self.store.write(work)

    async def recall(self, rng: random.Random) -> str:
        """Recall some memories."""
        ids = await self.column("select id from memory order by id")
        if not ids:
            return ""
        found = {rng.choice(ids): (rng.randint(1, 3), self.now())}
        await self.store.write(lambda tx: tx.accesses.count(found, log_after_ms=0))
        return next(iter(found))

    async def blank(self, rng: random.Random) -> str:
        """Erase a passage of an event."""
        ids = await self.column("select id from event where not forgotten order by id")
        if not ids:
            return ""
        event_id, start = rng.choice(ids), rng.randrange(10)
        await self.store.write(lambda tx: tx.forget.passages(event_id, [(start, start + rng.randint(1, 5))]))
        return str(event_id)

    async def forget(self, rng: random.Random) -> str:
        """Forget a memory, an event or a grip."""
        kind = rng.choice(("memory", "event", "grip"))
        if kind == "grip":
            grips = await self.column("select memory_id from grip order by id")
            if not grips:
                return ""
            chosen = rng.choice(await self.store.write(lambda tx: tx.queries.grips.of_memory(rng.choice(grips))))
            await self.store.write(lambda tx: tx.forget.grip(chosen))
            return chosen.id
        ids = await self.column(
            "select id from memory order by id"
            if kind == "memory"
            else "select id from event where not forgotten order by id"
        )
        if not ids:
            return ""
        gone = str(rng.choice(ids))
        await self.store.write(lambda tx: tx.forget.memory(gone) if kind == "memory" else tx.forget.event(gone))
        return gone

    def text(self, rng: random.Random) -> str:
        """Return some words to write."""
        return f"{CANARY} {rng.randrange(10_000)} " + " ".join(rng.choices(("oslo", "tea", "café", "🦜"), k=3))

    # --- what it shows ------------------------------------------------------------------------------------------------

    async def digest(self) -> str:
        """Return the digest of what this machine shows."""
        return await self.store.write(lambda tx: tx.queries.digests.state())

    async def log(self) -> dict[tuple[str, int], Op | None]:
        """Return every op this machine holds, by (device, seq); None for one whose content is erased."""

        def work(tx: Transaction) -> dict[tuple[str, int], Op | None]:
            return {
                (device, one.seq): None if one.data is None else ops.decode(one.data, device=device, seq=one.seq)
                for (device,) in tx.queries.fetch("select distinct device from op")
                for one in tx.queries.ops.between(device, 1, 1 << 40)
            }

        return await self.store.write(work)

    async def shown(self) -> dict[str, Any]:
        """Return what the tables show, in the form of `laws.tables`."""
        memories = await self.store.read(lambda q: q.fetch("select id, content, topic, name from memory order by id"))
        counts = await self.store.read(
            lambda q: q.fetch("select memory_id, total, last from counted order by memory_id, device")
        )
        totals: dict[str, tuple[int, int]] = {}
        ids = {row[0] for row in memories}
        for memory_id, total, last in counts:
            if memory_id in ids:
                before = totals.get(memory_id, (0, 0))
                totals[memory_id] = (before[0] + total, max(before[1], last))
        return {
            "memories": {row[0]: (row[1], row[2]) for row in memories},
            "counts": totals,
            "names": dict(await self.store.read(lambda q: q.fetch("select name, memory_id from name"))),
            "texts": dict(await self.store.read(lambda q: q.fetch("select id, text from event where not forgotten"))),
            "grips": {
                row[0]
                for row in await self.store.read(
                    lambda q: q.fetch("select id from grip where memory_id in (select id from memory)")
                )
            },
            "conflicts": {
                (row[0], row[1], (row[2], row[3]))
                for row in await self.store.read(
                    lambda q: q.fetch("select memory_id, field, hlc, device from conflict")
                )
                if row[0] in ids
            },
        }


def _written(tx: Transaction, memory_id: str, fields: dict[Field, Any], *, names: tuple[str, ...] = ()) -> str:
    tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields, names=names)])
    return memory_id


def _on_a_full_disk(tx: Transaction, work: Callable[[Transaction], T]) -> T:
    """Run a write on a disk that has no page left, and give the space back afterwards."""
    pages = tx.queries.fetch("pragma page_count")[0][0]
    most = tx.queries.fetch("pragma max_page_count")[0][0]
    tx.queries.fetch(f"pragma max_page_count = {pages}")
    try:
        return work(tx)
    finally:
        tx.queries.fetch(f"pragma max_page_count = {most}")
