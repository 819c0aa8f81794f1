"""The law of snapshots, of whatever was written: who begins with one holds what a replay of the lanes gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quick_disk import quick_folder
from scrubjay.store import MemoryWrite, received
from scrubjay.store.transaction import Transaction
from scrubjay_shared import ops, snapshot
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.ops import Field
from scrubjay_shared.snapshot import Chunk
from simulation import engine, inline
from simulation.machine import Machine

Said = dict[str, dict[int, bytes | None]]
"""Ops by device and place, as lanes say them."""
LAST = 1 << 40


class Account:
    """Two machines that write and hear of each other, and what their lanes say."""

    def __init__(self, folder: Path, rng: Random) -> None:
        self.rng = rng
        self.folder = folder
        self.time = engine.START_MS
        self.up: list[Machine] = []
        self.writers: list[Machine] = []
        self.first: Said = {}
        """What was sent at first, before words of it were erased."""

    def now(self) -> int:
        self.time += 1
        return self.time

    async def machine(self, name: str) -> Machine:
        """Return a new machine."""
        made = Machine(name, self.folder / name, "law", self.now, 0)
        await made.open()
        self.up.append(made)
        return made

    async def write(self, machine: Machine, count: int) -> None:
        """Let a person do some things; each may be sent before the next is done."""
        for _ in range(count):
            self.time += self.rng.choice((1, 1, engine.SOON["after_request_ms"]))
            await machine.act(self.rng)
            own = machine.store.device
            for seq, data in (await said_by(machine)).get(own, {}).items():
                self.first.setdefault(own, {}).setdefault(seq, data)

    async def hear(self, machine: Machine, said: Said) -> None:
        """Have a machine take in what others said."""
        for device, run in said.items():
            if device != machine.store.device:
                await machine.store.write(lambda tx, d=device, r=run: tx.ingest.receive(d, sorted(r.items())))

    async def live(self, count: int) -> None:
        """Let both write, and hear of each other, in turns."""
        for _ in range(count):
            one, other = self.rng.sample(self.writers, 2)
            await self.write(one, self.rng.choice((1, 2, 4)))
            if self.rng.random() < 0.6:
                await self.hear(other, await said_by(one))

    async def meet(self, *more: Machine) -> Said:
        """Have all hear of all, and return what their lanes say, each by its own device."""
        everybody = [*self.writers, *more]
        for _ in range(2):
            for one in everybody:
                for other in everybody:
                    await self.hear(other, await said_by(one))
                while await one.store.write(lambda tx: tx.superseded.sweep()):
                    pass
        return {one.store.device: (await said_by(one)).get(one.store.device, {}) for one in everybody}


async def said_by(machine: Machine) -> Said:
    """Return every op that a machine holds, None for those that are erased."""

    def work(tx: object) -> Said:
        found: Said = {}
        for (device,) in tx.queries.fetch("select distinct device from op"):  # type: ignore[attr-defined]
            every = tx.queries.ops.between(device, 1, LAST)  # type: ignore[attr-defined]
            found[device] = {one.seq: one.data for one in every}
        return found

    return await machine.store.write(work)


async def snapshot_of(machine: Machine, said: Said, rng: Random) -> list[Chunk]:
    """Return the chunks of a snapshot that a machine makes, cut anywhere, as they are read again."""
    chunks = []
    for device in said:
        low, end = 1, max(said[device], default=0)
        while low <= end:
            high = low + rng.choice((2, 5, LAST))
            made = await machine.store.read(lambda q, d=device, at=(low, high): q.snapshots.chunk(d, *at))
            chunks.append(snapshot.decode_chunk(snapshot.encode_chunk(made)))
            low = high + 1
    rng.shuffle(chunks)
    return chunks


async def begun_with(account: Account, chunks: list[Chunk], seen: Said, lanes: Said) -> Machine:
    """Return a new machine that read what is newer, then a snapshot, then the lanes from their ends, as the engine does."""
    new, rng = await account.machine("new"), account.rng
    for device, run in lanes.items():
        above = sorted((seq, data) for seq, data in run.items() if seq > max(seen.get(device, {}), default=0))
        await new.store.write(lambda tx, d=device, r=above: tx.ingest.receive(d, r))
    for chunk in chunks:
        number = await new.store.read(lambda q: q.events.last()) + rng.choice((0, 1, 1, 1))
        await new.store.write(lambda tx, c=chunk, n=number: tx.unconfirmed.take(received.ready_chunk(c, n)))
    if rng.random() < 0.5:
        await account.write(new, 2)
    left = {
        device: sorted((seq, data) for seq, data in run.items() if seq <= max(seen.get(device, {}), default=0))
        for device, run in lanes.items()
    }
    while any(left.values()):
        device = rng.choice(sorted(device for device, run in left.items() if run))
        count = rng.choice((1, 3, 10))
        page, left[device] = left[device][-count:], left[device][:-count]
        made = received.ready(device, page)
        agrees = await new.store.write(
            lambda tx, m=made: tx.unconfirmed.confirm(m) and bool(tx.ingest.receive_ready(m))
        )
        assert agrees, f"a true snapshot is called a lie at {page[0][0]} to {page[-1][0]} of {device[:8]}"
    assert not await new.store.read(lambda q: q.snapshots.unconfirmed())
    return new


async def check(account: Account) -> None:
    """Play one history, and compare who began with a snapshot with who read the lanes."""
    rng = account.rng
    maker, other = account.writers = [await account.machine("a"), await account.machine("b")]
    await account.live(rng.choice((1, 3, 6)))
    await account.hear(maker, await said_by(other))
    seen = await said_by(maker)
    chunks = await snapshot_of(maker, seen, rng)
    await account.live(rng.choice((0, 1, 4)))
    lanes = await account.meet()
    if rng.random() < 0.5:  # words that were erased since have not left the lanes yet
        lanes = {device: {**run, **account.first.get(device, {})} for device, run in lanes.items()}
    new = await begun_with(account, chunks, seen, lanes)
    await account.live(rng.choice((0, 2)))
    last = await account.meet(new)
    replayed = await account.machine("replayed")
    await account.hear(replayed, last)
    await account.meet(new, replayed)

    assert await new.digest() == await replayed.digest() == await maker.digest()
    assert await new.shown() == await replayed.shown()


async def play(folder: Path, rng: Random) -> None:
    """Play one history, and close what it opened, also where Hypothesis ends it early."""
    account = Account(folder, rng)
    try:
        await check(account)
    finally:
        for one in account.up:
            await one.close()


def words(memory_id: str, said: str) -> Callable[[Transaction], None]:
    """Return a write that gives a memory other words, or makes it."""
    return lambda tx: tx.memories.write(
        [MemoryWrite(memory_id=memory_id, fields={Field.CONTENT: said, Field.CREATED_AT: 1})]
    )


@pytest.mark.anyio
async def test_words_that_were_erased_since_are_not_shown_until_what_replaced_them_comes(tmp_path: Path) -> None:
    account = Account(tmp_path, Random(0))
    maker, new = await account.machine("maker"), await account.machine("new")
    memory_id = ulid(Millis(account.now()), bytes(10))
    await maker.store.write(words(memory_id, "the old words"))
    lane = (await said_by(maker))[maker.store.device]
    ((place, whole),) = [(seq, data) for seq, data in lane.items() if data is not None and b"the old words" in data]
    written = ops.decode(whole, device=maker.store.device, seq=place)
    hollow = ops.encode(ops.emptied(written, [Field.CONTENT]))
    chunks = await snapshot_of(maker, {maker.store.device: lane}, Random(0))
    for chunk in chunks:
        await new.store.write(lambda tx, c=chunk: tx.unconfirmed.take(received.ready_chunk(c)))
    assert "the old words" in str(await new.shown())
    await maker.store.write(words(memory_id, "the new words"))
    later = sorted(item for item in (await said_by(maker))[maker.store.device].items() if item[0] not in lane)

    await new.store.write(
        lambda tx: (
            tx.unconfirmed.confirm(made := received.ready(maker.store.device, [(place, hollow)]))
            and bool(tx.ingest.receive_ready(made))
        )
    )
    hidden = str(await new.shown())
    await new.store.write(lambda tx: tx.ingest.receive(maker.store.device, later))
    shown = str(await new.shown())
    for one in account.up:
        await one.close()

    assert "the old words" not in hidden
    assert "the old words" not in shown
    assert "the new words" in shown


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_who_begins_with_a_snapshot_holds_what_a_replay_gives(rng: Random) -> None:
    folder = tempfile.TemporaryDirectory(prefix="scrubjay-law-", dir=quick_folder())
    with folder as path, engine._small(), inline.inline():
        inline.run(play(Path(path), rng))
