"""Filled stores to measure on: made once through the store's own transactions, kept by what they were made from.

Embedding 100,000 texts takes a quarter of an hour and is measured elsewhere. Here some texts are really embedded, and
every vector is a random blend of three of those with noise added, of unit length, quantised as the product does it. So
the vectors lie as closely together as real ones do; they do not mean what the text beside them says.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay import models, store
from scrubjay.service import Service
from scrubjay.store import MemoryWrite, Transaction
from scrubjay_bench import corpus
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventType, Grip, Kind, MemoryType, Role, Scope, content_hash

Floats = npt.NDArray[np.float32]

SEED = 7
BLENDED = 3  # texts in a blend: with fewer, vectors fall into clusters; with more, all become alike
NOISE = 0.03  # standard deviation a component of a unit vector; 384 of them make 0.6, against 1 of the blend
BATCH = 1_000
FORMAT = 3  # raised when this module fills otherwise than before: kept stores of older ones are then made again


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What is in a store: so many memories, `linked` of them read from an event each; `bases` texts really embedded."""

    memories: int
    linked: int = 0
    bases: int = 1_000

    @property
    def documents(self) -> int:
        """How many rows a recall ranks."""
        return self.memories + self.linked


def filled(filling: Filling, *, keep: Path, models_dir: Path, model: str) -> Path:
    """Return the path of a closed store with this content, made under `keep` unless it is there from an earlier run.

    Do not open it: a daemon writes to what it opens. `copied` gives one to open.
    """
    made_by = hashlib.sha256(f"{FORMAT}{SEED}{models.MODELS[model].space}{_schema()}{filling}".encode()).hexdigest()
    folder = keep / f"store-{filling.memories}-{filling.linked}-{made_by[:12]}"
    path = folder / "memory.db"
    if not path.exists():
        partial = keep / f"{folder.name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        blends = _Blends(_bases(filling.bases, keep, models_dir, model))
        asyncio.run(_fill(partial / path.name, filling, blends, models_dir, models.MODELS[model].space))
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return path


def copied(filled_store: Path, home: Path) -> None:
    """Put a copy of a closed store where a daemon with `SCRUBJAY_HOME=home` looks for its own."""
    (home / "data").mkdir(parents=True)
    shutil.copyfile(filled_store, home / "data" / "memory.db")


def vectors_of(filling: Filling, *, keep: Path, models_dir: Path, model: str) -> Floats:
    """Return float32 [documents, d] spread like those in the store, for the floors."""
    return _Blends(_bases(filling.bases, keep, models_dir, model)).drawn(filling.documents)


class _Blends:
    def __init__(self, bases: Floats) -> None:
        self._bases = bases
        self._random = np.random.default_rng(SEED)

    def drawn(self, count: int) -> Floats:
        """Return float32 [count, d], unit rows."""
        parts = []
        for start in range(0, count, BATCH):  # in pieces: 100,000 blends at once would need half a gigabyte
            size = min(BATCH, count - start)
            chosen = self._random.integers(0, len(self._bases), (size, BLENDED))
            weights = self._random.dirichlet(np.ones(BLENDED), size).astype(np.float32)
            rows = np.einsum("nb,nbd->nd", weights, self._bases[chosen])
            rows += self._random.normal(0, NOISE, rows.shape).astype(np.float32)
            parts.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        return np.concatenate(parts).astype(np.float32)

    def blobs(self, count: int) -> list[bytes]:
        rows, scales = scoring.quantise(self.drawn(count))
        return [scoring.encode_vector(row, float(scale)) for row, scale in zip(rows, scales, strict=True)]


def _bases(count: int, keep: Path, models_dir: Path, model: str) -> Floats:
    """Return float32 [count, d] of really embedded texts."""
    path = keep / f"bases-{count}-{hashlib.sha256(models.MODELS[model].space.encode()).hexdigest()[:12]}.npy"
    if path.exists():
        found: Floats = np.load(path)
        return found
    texts = corpus.Corpus(SEED + 1)
    embedder = models.load(models_dir, model)
    try:
        rows = embedder.embed([texts.statement() for _ in range(count)])
    finally:
        embedder.close()
    keep.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".partial").open("wb") as file:
        np.save(file, rows)
    path.with_suffix(".partial").rename(path)
    return rows


async def _fill(path: Path, filling: Filling, blends: _Blends, models_dir: Path, space_name: str) -> None:
    texts = corpus.Corpus(SEED)
    service = await Service.open(path, models_dir=models_dir, model="none")
    try:
        space = await service.store.write(lambda tx: tx.space(space_name))
        for start in range(0, filling.memories, BATCH):
            numbers = range(start, min(start + BATCH, filling.memories))
            linked = range(start, min(numbers.stop, filling.linked)) if start < filling.linked else range(0)
            blobs = blends.blobs(len(numbers) + len(linked))

            def work(
                tx: Transaction, numbers: range = numbers, linked: range = linked, blobs: Sequence[bytes] = blobs
            ) -> None:
                events = [_event(texts, number, tx) for number in linked]
                tx.append_events(events, learn=False)
                for session_id in {event.session_id for event in events}:
                    tx.learned(session_id, linked.stop)
                read_from = [*events, *[None] * (len(numbers) - len(events))]
                writes = [_memory(texts, number, event, tx) for number, event in zip(numbers, read_from, strict=True)]
                tx.write_memories(writes)
                owners = [(write.memory_id, content_hash(write.fields[Field.CONTENT])) for write in writes]
                owners += [(event.id, "0") for event in events]
                tx.put_vectors(space, [(*owner, blob) for owner, blob in zip(owners, blobs, strict=True)])

            await service.store.write(work)
        await service.store.checkpoint(truncate=True)
    finally:
        await service.close()


def _event(texts: corpus.Corpus, number: int, tx: Transaction) -> Event:
    sent = texts.event(number)
    return Event(
        id=tx.new_id(Millis(sent["ts"])),
        device="",
        agent=sent["agent"],
        session_id=sent["session_id"],
        type=EventType(sent["type"]),
        role=Role.USER if sent["metadata"] else Role.ASSISTANT,
        text=sent["text"],
        ts=Millis(sent["ts"]),
        dedupe_key=sent["dedupe_key"],
        project=sent["project"],
        metadata=sent["metadata"],
    )


def _memory(texts: corpus.Corpus, number: int, event: Event | None, tx: Transaction) -> MemoryWrite:
    at = Millis(corpus.START_MS + number * corpus.GAP_MS)
    memory_id = tx.new_id(at)
    types = tuple(MemoryType)
    said = texts.statement() if event is None else event.text.split(". ")[0]
    fields: dict[Field, Any] = {
        Field.CONTENT: said,
        Field.KIND: (Kind.STORED if event is None else Kind.OBSERVATION).value,
        Field.TYPE: types[number % len(types)].value,
        Field.SCOPE: Scope.USER.value,
        Field.SALIENCE: 0.5 + number % 40 / 100,
        Field.CREATED_AT: at,
    }
    if event is None:
        return MemoryWrite(memory_id=memory_id, fields=fields)
    fields[Field.METADATA] = {"session_id": event.session_id, "agent": event.agent, "project": event.project}
    grip = Grip(
        id=tx.new_id(at),
        memory_id=memory_id,
        event_id_start=event.id,
        event_id_end=event.id,
        span_start=0,
        span_end=len(said),
        excerpt=said,
        source="bench/1",
        created_at=at,
    )
    return MemoryWrite(memory_id=memory_id, fields=fields, grips=(grip,))


def _schema() -> str:
    """Return what changes with the tables and the texts: a kept store of others would be migrated, or another one."""
    migrations = sorted((Path(str(store.__file__)).parent / "migrations").glob("*.sql"))
    digest = hashlib.sha256(Path(corpus.__file__).read_bytes())
    for migration in migrations:
        digest.update(migration.read_bytes())
    return digest.hexdigest()
