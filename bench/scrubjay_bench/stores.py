"""Filled stores to measure on: made once through the store's own transactions, kept by what they were made from.

Embedding a million texts takes half a day. Here every turn and fact is really embedded once, as it stands in the data
set, and so are some hundreds as copies say them. A line through these (`_Copying`) tells where the vector of a copy
lies, given its turn's, and its errors tell how copies scatter about that place; an item's vector is that place plus a
random blend of errors, of unit length, quantised as the product does it. On LoCoMo, 512 really embedded copies and such
ones agree in what a search depends on, as medians: cosine of a copy with its turn .853 and .861, with the nearest other
.772 and .774, of a question with the best .635 and .631, with the tenth .572 and .577.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay import store
from scrubjay.models import catalog, loading
from scrubjay.store import MemoryWrite, Store, Transaction
from scrubjay_bench import corpus, locomo, progress
from scrubjay_bench.copies import Copies, Session
from scrubjay_bench.plan import Plan
from scrubjay_io.sqlite import driver
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventType, Grip, Kind, MemoryType, Role, Scope, content_hash

Floats = npt.NDArray[np.float32]

SEED = 7
VARIED = 512  # texts embedded as a copy says them: more than the vectors have dimensions
BLENDED = 3  # errors in one blend: enough that no two items share one, few enough to stay like single ones
AT_ONCE = 100  # sessions in a transaction: some 2,400 items, so that an fsync costs little beside them
NOW = Millis(1_767_225_600_000)  # 2026-01-01 UTC: the same file whenever it is made
FORMAT = 4  # raised when this module fills otherwise than before: kept stores of older ones are then made again


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What a store is filled with: so many items, a tenth of them memories read from the others, which are events.

    `talks` made-up conversations are copied over and over unless the plan has a real data set.
    """

    items: int
    talks: int = 20


class Source:
    """The conversations that stores of one plan are made of, with the vectors of their turns and facts."""

    def __init__(self, plan: Plan, talks: int) -> None:
        """Read the conversations. What was not embedded by an earlier run is embedded here: up to two minutes."""
        self.name = f"{talks} made-up conversations" if plan.locomo is None else "LoCoMo"
        self.copies = Copies(
            corpus.conversations(talks) if plan.locomo is None else locomo.load(plan.locomo).conversations
        )
        self.space = catalog.EMBEDDERS[plan.model].space
        made_of = "\n".join([self.space, *self.copies.texts, *(text for _, text in self._varied())])
        self.digest = hashlib.sha256(made_of.encode()).hexdigest()
        self._vectors, varied = self._embedded(plan)
        self._copying = _Copying(self._vectors[[base for base, _ in self._varied()]], varied)

    def _varied(self) -> Iterator[tuple[int, str]]:
        return self.copies.varied(min(VARIED, len(self.copies.texts)))

    def _embedded(self, plan: Plan) -> tuple[Floats, Floats]:
        """Return the vectors of all bases, and those of the varied texts."""
        path = plan.keep / f"vectors-{self.digest[:12]}.npy"
        if not path.exists():
            texts = [*self.copies.texts, *(text for _, text in self._varied())]
            sys.stderr.write(f"embedding {len(texts):,} texts …\n")
            embedder = loading.load(plan.models_dir, plan.model)
            try:
                rows = embedder.embed(texts)
            finally:
                embedder.close()
            plan.keep.mkdir(parents=True, exist_ok=True)
            with path.with_suffix(".partial").open("wb") as file:
                np.save(file, rows)
            path.with_suffix(".partial").rename(path)
        found: Floats = np.load(path)
        return found[: len(self.copies.texts)], found[len(self.copies.texts) :]

    def drawn(self, bases: Sequence[int], draw: np.random.Generator) -> Floats:
        """Return float32 [n, d], unit rows: vectors as copies of these turns and facts would have."""
        return self._copying.drawn(self._vectors[list(bases)], draw)


class _Copying:
    """How the vector of a copy follows from that of its turn: `share` of it, `shift`, and an error."""

    def __init__(self, turns: Floats, copies: Floats) -> None:
        """Fit what really embedded copies show, by least squares."""
        middle, copies_middle = turns.mean(axis=0), copies.mean(axis=0)
        self._share = float(((copies - copies_middle) * (turns - middle)).sum() / ((turns - middle) ** 2).sum())
        self._shift = copies_middle - self._share * middle
        self._errors = copies - self._share * turns - self._shift

    def drawn(self, turns: Floats, draw: np.random.Generator) -> Floats:
        chosen = self._errors[draw.integers(0, len(self._errors), (len(turns), BLENDED))]
        weights = draw.normal(0, BLENDED**-0.5, (len(turns), BLENDED)).astype(np.float32)
        rows = self._share * turns + self._shift + np.einsum("nb,nbd->nd", weights, chosen)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def filled(filling: Filling, plan: Plan, source: Source) -> Path:
    """Return the path of a closed store with this content, made under `plan.keep` unless it is there already.

    Filling that was broken off goes on where it was. Do not open the store: a daemon writes to what it opens. `copied`
    gives one to open.
    """
    made_by = hashlib.sha256(f"{FORMAT}{SEED}{source.digest}{_schema()}{filling.items}".encode()).hexdigest()
    folder = plan.keep / f"store-{filling.items}-{made_by[:12]}"
    path = folder / "memory.db"
    if not path.exists():
        partial = folder.with_suffix(".partial")
        asyncio.run(_fill(partial / path.name, filling.items, source))
        partial.rename(folder)
    return path


def copied(filled_store: Path, home: Path) -> None:
    """Put a copy of a closed store where a daemon with `SCRUBJAY_HOME=home` looks for its own."""
    (home / "data").mkdir(parents=True)
    shutil.copyfile(filled_store, home / "data" / "memory.db")


def reading(filled_store: Path) -> closing[Any]:
    """Return a connection to a closed store that leaves nothing beside it, for the floors."""
    return closing(driver.connect(f"file:{filled_store}?immutable=1", uri=True))


def vectors_of(connection: Any) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the int8 [n, d] and float32 [n] of all vectors of a store."""
    found = [scoring.decode_vector(blob) for (blob,) in connection.execute("select vector from embedding")]
    rows, scales = zip(*found, strict=True)
    return np.stack(rows), np.array(scales, np.float32)


async def _fill(path: Path, items: int, source: Source) -> None:
    started = await Store.open(path, now=lambda: NOW, entropy=random.Random(SEED).randbytes)
    try:
        done = (await started.read(lambda q: q.fetch("select count(*) from session")))[0][0]
        there = (
            await started.read(lambda q: q.fetch("select (select count(*) from event) + (select count(*) from memory)"))
        )[0][0]
        space = await started.write(lambda tx: tx.vectors.space(source.space))
        sessions = islice(source.copies.sessions(), done, None)
        with progress.steps(items) as steps:
            steps.say(f"filling a store with {items:,} items")
            steps.step(there)
            while there < items:
                batch: list[Session] = []
                for session in islice(sessions, AT_ONCE):
                    batch.append(_cut(session, items - there))
                    there += len(batch[-1])
                    steps.step(len(batch[-1]))
                    if there == items:
                        break
                await started.write(partial(_write, batch, space, source, np.random.default_rng((SEED, there))))
        await started.checkpoint(truncate=True)
    finally:
        await started.close()


def _cut(session: Session, items: int) -> Session:
    """Return the beginning of a session that makes at most so many items."""
    turns = session.turns[:items]
    facts = [fact for fact in session.facts if fact.source < len(turns)]
    return Session(id=session.id, turns=turns, facts=tuple(facts[: items - len(turns)]))


def _write(sessions: Sequence[Session], space: int, source: Source, draw: np.random.Generator, tx: Transaction) -> None:
    n = int(tx.queries.fetch("select coalesce(max(n), 0) from event")[0][0])
    events: list[Event] = []
    writes: list[MemoryWrite] = []
    owners: list[tuple[str, str]] = []
    bases: list[int] = []
    for session in sessions:
        said = [_event(session, place, tx) for place in range(len(session.turns))]
        events += said
        owners += [(event.id, "0") for event in said]
        bases += [turn.base for turn in session.turns]
        for fact in session.facts:
            write = _memory(fact.text, said[fact.source], tx)
            writes.append(write)
            owners.append((write.memory_id, content_hash(fact.text)))
            bases.append(fact.base)
    tx.events.append(events, learn=True)
    for session in sessions:
        n += len(session.turns)
        tx.events.distilled(session.id, n)  # or the daemon would distil a million events while it is measured
    tx.memories.write(writes)
    rows, scales = scoring.quantise(source.drawn(bases, draw))
    blobs = [scoring.encode_vector(row, float(scale)) for row, scale in zip(rows, scales, strict=True)]
    tx.vectors.put(space, [(*owner, blob) for owner, blob in zip(owners, blobs, strict=True)])


def _event(session: Session, place: int, tx: Transaction) -> Event:
    turn = session.turns[place]
    return Event(
        id=tx.new_id(turn.ts),
        device="",
        agent="bench",
        session_id=session.id,
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text=turn.text,
        ts=turn.ts,
        dedupe_key=f"{session.id}/{place:02}",
        metadata={"speaker": turn.speaker},
    )


def _memory(said: str, event: Event, tx: Transaction) -> MemoryWrite:
    memory_id = tx.new_id(event.ts)
    fields: dict[Field, Any] = {
        Field.CONTENT: said,
        Field.KIND: Kind.OBSERVATION.value,
        Field.TYPE: MemoryType.FACT.value,
        Field.SCOPE: Scope.USER.value,
        Field.SALIENCE: 0.55,
        Field.CREATED_AT: event.ts,
        Field.METADATA: {"session_id": event.session_id, "agent": event.agent},
    }
    grip = Grip(
        id=tx.new_id(event.ts),
        memory_id=memory_id,
        event_id_start=event.id,
        event_id_end=event.id,
        span_start=0,
        span_end=len(event.text),
        excerpt=event.text,
        source="bench/1",
        created_at=event.ts,
    )
    return MemoryWrite(memory_id=memory_id, fields=fields, grips=(grip,))


def _schema() -> str:
    """Return what changes with the tables: a kept store of others would be migrated when it is opened."""
    migrations = sorted((Path(str(store.__file__)).parent / "migrations").glob("*.sql"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in migrations)).hexdigest()
