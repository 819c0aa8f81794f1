"""Stores that exchange their logs show the same, in whatever order, how often and with what gaps the ops come.

Real stores on real files; the exchange here is what sync does, without the network: `unsent` of one is `receive`d by
the others. What a store shows is compared with the pure fold of all ops, and with a rebuild of itself.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import random
import shutil
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from quick_disk import quick_folder
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.cli import main
from scrubjay.cli.render import conflicts
from scrubjay.index.index import Index
from scrubjay.policy import DEFAULT
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import rank
from scrubjay.service import index_maintainer
from scrubjay.service.application import Application
from scrubjay.store import EventFilter, MemoryWrite, Outgoing, Received, Store, Transaction, file, op_ingest, rows
from scrubjay.store.rows import EVENT_COLUMNS, GRIP_COLUMNS, MEMORY_COLUMNS
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops, text
from scrubjay_shared.clock import MAX_LEAD_MS, Hlc, Millis, millis_of, ulid, ulid_bytes, uuid7
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import Counter, Field, OpType
from scrubjay_shared.records import Event, EventType, Grip, MemoryDraft, MemoryType, Op, Role

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = 1_800_000_000_000


# --- devices ------------------------------------------------------------------------------------------------------------


class Clock:
    """A wall clock that a test moves."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at

    def __call__(self) -> Millis:
        return Millis(self.at)


@asynccontextmanager
async def device(folder: Path, number: int, clock: Clock | None = None, seed: int = 0) -> AsyncIterator[Store]:
    """A store with a random stream of its own."""
    rng = random.Random(seed or number)
    store = await Store.open(folder / f"{number}.db", now=clock or Clock(), entropy=rng.randbytes)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def devices(count: int, clocks: Sequence[Clock] = ()) -> AsyncIterator[list[Store]]:
    folder = Path(tempfile.mkdtemp(dir=quick_folder()))
    try:
        async with AsyncExitStack() as stack:
            chosen = [*clocks, *(Clock() for _ in range(count))]
            yield [await stack.enter_async_context(device(folder, n + 1, chosen[n])) for n in range(count)]
    finally:
        shutil.rmtree(folder)


async def said_by(store: Store) -> list[tuple[int, bytes | None]]:
    """Return a device's whole log as it would be sent."""
    sent: list[Outgoing] = await store.write(lambda tx: tx.queries.ops.unsent(store.device, 0, 1_000_000))
    return [(one.seq, one.data) for one in sent]


async def take(store: Store, name: str, run: Sequence[tuple[int, bytes | None]]) -> Received:
    return await store.write(lambda tx: tx.ingest.receive(name, run))


async def exchange(*stores: Store) -> None:
    """Let every device have what every other wrote."""
    logs = {store.device: await said_by(store) for store in stores}
    for store in stores:
        for name, run in logs.items():
            if name != store.device:
                await take(store, name, run)


async def remember(store: Store, memory_id: str, content: str, **more: Any) -> str:
    fields = {Field.CONTENT: content, Field.CREATED_AT: NOW}
    names = (more["name"],) if "name" in more else ()
    fields |= {Field[key.upper()]: value for key, value in more.items()}
    await store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields, names=names)]))
    return memory_id


async def edit(store: Store, memory_id: str, *, settles: bool = False, **fields: Any) -> None:
    values = {Field[key.upper()]: value for key, value in fields.items()}
    write = MemoryWrite(memory_id=memory_id, fields=values, settles=settles)
    await store.write(lambda tx: tx.memories.write([write]))


async def bind(store: Store, memory_id: str, names: tuple[str, ...] = (), grips: tuple[Grip, ...] = ()) -> None:
    write = MemoryWrite(memory_id=memory_id, fields={}, names=names, grips=grips)
    await store.write(lambda tx: tx.memories.write([write]))


async def recall(store: Store, memory_id: str, count: int, *, at: int) -> None:
    """Count that a memory was recalled, and put the total into the log at once."""
    await store.write(lambda tx: tx.accesses.count({memory_id: (count, Millis(at))}, log_after_ms=-1))


async def say(store: Store, text: str, *, event_id: str | None = None, session: str = "s", ts: int = NOW) -> str:
    def work(tx: Transaction) -> str:
        made = event_of(tx.new_id() if event_id is None else event_id, text, session=session, ts=ts)
        tx.events.append([made], learn=True)
        return made.id

    return await store.write(work)


def event_of(event_id: str, text: str, *, session: str = "s", ts: int = NOW) -> Event:
    return Event(
        id=event_id,
        device="",
        agent="test",
        session_id=session,
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text=text,
        ts=Millis(ts),
        dedupe_key=event_id,
    )


def id_of(number: int) -> str:
    return ulid(Millis(NOW), number.to_bytes(10, "big"))


def grip_of(number: int, memory_id: str, event_id: str, *, end: str | None = None) -> Grip:
    return Grip(
        id=id_of(number),
        memory_id=memory_id,
        event_id_start=event_id,
        event_id_end=event_id if end is None else end,
        span_start=2,
        span_end=5,
        excerpt="grp",
        source="test/1",
        created_at=Millis(NOW),
    )


def op(seq: int, op_type: int, body: dict[int, Any], *, at: int = NOW) -> tuple[int, bytes]:
    """Return an op as another device would send it."""
    made = Op(
        device="", seq=seq, op_id=uuid7(Millis(at), bytes(10)), hlc=Hlc((at << 16) + seq), type=op_type, body=body
    )
    return seq, ops.encode(made)


async def shown(store: Store) -> dict[str, Any]:
    """Return what a store shows, in the form of a view; of an event without the device that it came from."""
    memories = await store.read(lambda q: q.memories.by_id([row[0] for row in q.fetch("select id from memory")]))
    counted = {
        row[0]: (row[1], row[2])
        for row in await store.read(
            lambda q: q.fetch("select memory_id, sum(total), max(last) from counted group by memory_id")
        )
    }
    names = await store.read(lambda q: q.fetch("select name, memory_id, canonical, created_at from name"))
    events = await store.read(lambda q: q.events.by_id([row[0] for row in q.fetch("select id from event")]))
    grips = await store.read(lambda q: q.grips.of_memories(list(memories)))
    return {
        "memories": {
            memory.id: replace(
                memory,
                access_count=counted.get(memory.id, (0, 0))[0],
                accessed_at=counted[memory.id][1] if memory.id in counted else None,
            )
            for memory in memories.values()
        },
        "names": {name: memory_id for name, memory_id, _, _ in names},
        "aliases": {(name, memory_id, at) for name, memory_id, canonical, at in names if not canonical},
        "events": events,
        "grips": {grip.id: grip for found in grips.values() for grip in found},
        "conflicts": {
            (one.memory_id, one.field): tuple(at for at, _ in one.versions)
            for one in await store.read(lambda q: q.conflicts.open())
        },
    }


def expected(every: Iterable[Op]) -> dict[str, Any]:
    """Return what the pure fold of some ops shows, in the form of `shown`."""
    state = ops.fold(every)
    view = ops.view(state)
    return {
        "memories": view.memories,
        "names": {name: entity for name, (entity, _) in ops.holders(state).items() if entity in view.memories},
        "aliases": {(alias.name, alias.memory_id, alias.created_at) for alias in view.aliases.values()},
        "events": view.events,
        "grips": view.grips,
        "conflicts": {
            key: lost
            for key, versions in state.registers.items()
            if key[0] in view.memories and (lost := ops.to_settle(versions))
        },
    }


def decoded(logs: dict[str, list[tuple[int, bytes | None]]]) -> list[Op]:
    return [
        ops.decode(data, device=name, seq=seq) for name, log in logs.items() for seq, data in log if data is not None
    ]


# --- any history --------------------------------------------------------------------------------------------------------

MEMORIES = tuple(id_of(n) for n in range(1, 4))
EVENTS = tuple(id_of(n) for n in range(11, 16))
GRIPS = tuple(range(21, 25))
NAMES = ("a", "b", "a~2", "a~3", "a~02")
KINDS = (
    "edit", "edit", "settle", "event", "event", "claim", "claim", "unclaim", "grip", "count", "blank",
    "forget memory", "forget event", "forget grip", "exchange", "exchange",
)  # fmt: skip
step = st.tuples(st.integers(0, 2), st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 9), st.integers(0, 2_000))


def act(tx: Transaction, kind: str, one: int, other: int) -> None:  # noqa: C901, PLR0912 - a table
    """Write what a device may write, through the store's own functions; what it refuses is not written."""
    memory_id, event_id, name = MEMORIES[one % 3], EVENTS[one % 5], NAMES[other % 5]
    known = bool(tx.queries.memories.existing([memory_id]))
    if tx.queries.ops.forgotten([memory_id]) and kind not in {"event", "blank", "forget event"}:
        return
    if kind in {"edit", "settle"}:
        fields: dict[Field, Any] = {} if known else {Field.CONTENT: f"first {other}", Field.CREATED_AT: NOW}
        fields |= {Field.CONTENT: f"text {other}"} if other % 2 else {Field.SALIENCE: other / 10}
        if other == 9:
            fields[Field.NAME] = NAMES[one % 5]
        tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields, settles=kind == "settle")])
    elif kind == "event" and not tx.queries.ops.forgotten([event_id]):
        drafted = event_of(event_id, f"word{other} said at length", session=f"s{other % 2}", ts=NOW + other % 3)
        if not tx.queries.events.known([drafted]):
            tx.events.append([drafted], learn=True)
    elif kind == "claim":
        tx.memories.write([MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,))])
    elif kind == "unclaim" and (held := [row[0] for row in tx.queries.fetch("select name from name order by name")]):
        tx.memories.unclaim(
            tx.queries.names.holders([held[other % len(held)]])[held[other % len(held)]], held[other % len(held)]
        )
    elif kind == "grip" and not tx.queries.ops.forgotten([id_of(GRIPS[one % 4])]):
        made = grip_of(GRIPS[one % 4], MEMORIES[one % 2], EVENTS[other % 5], end=EVENTS[(other + one) % 5])
        if not tx.queries.ops.forgotten([made.memory_id]):
            tx.memories.write([MemoryWrite(memory_id=made.memory_id, fields={}, grips=(made,))])
    elif kind == "count":
        tx.accesses.count({memory_id: (1 + other, Millis(NOW + other + 1))}, log_after_ms=-10_000_000)
    elif kind == "blank":
        tx.forget.passages(event_id, [(other, other + 3)])
    elif kind == "forget memory" and known and other < 3:
        tx.forget.memory(memory_id)
    elif kind == "forget event" and other < 3:
        tx.forget.event(event_id)
    elif kind == "forget grip" and (grips := tx.queries.grips.of_memory(memory_id)):
        tx.forget.grip(grips[other % len(grips)])


async def lived(
    stores: Sequence[Store], clocks: Sequence[Clock], history: Sequence[tuple[int, str, int, int, int]]
) -> None:
    for who, kind, one, other, later in history:
        store = stores[who % len(stores)]
        clocks[who % len(stores)].at += later
        if kind == "exchange":
            source = stores[one % len(stores)]
            log = await said_by(source)
            if source is not store:
                await take(store, source.device, log[other % 4 :: 1 + other % 2])
        else:
            try:
                await store.write(partial(act, kind=kind, one=one, other=other))
            except (ConflictError, NotFoundError):
                continue  # a name that belongs to another memory


async def delivered(stores: Sequence[Store], seed: int) -> dict[str, list[tuple[int, bytes | None]]]:
    """Give every device the whole log of every other, in pieces, mixed, some of them twice. Returns the logs."""
    rng = random.Random(seed)
    logs = {store.device: await said_by(store) for store in stores}
    for store in stores:
        pieces = []
        for name, log in logs.items():
            if name != store.device and log:
                cuts = sorted(rng.choices(range(len(log) + 1), k=3))
                pieces += [(name, log[low:high]) for low, high in itertools.pairwise([0, *cuts, len(log)])]
        pieces += rng.sample(pieces, len(pieces) // 2)
        rng.shuffle(pieces)
        for name, piece in pieces:
            await take(store, name, rng.sample(piece, len(piece)))
    return logs


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(step, max_size=40), st.integers(), st.lists(st.integers(-5_000_000, 5_000_000), min_size=3, max_size=3))
def test_devices_with_the_same_ops_show_the_same_as_the_fold_and_as_a_rebuild(
    history: list[tuple[int, str, int, int, int]], seed: int, skews: list[int]
) -> None:
    async def run() -> None:
        clocks = [Clock(NOW + skew) for skew in skews]
        async with devices(3, clocks) as stores:
            await lived(stores, clocks, history)
            logs = await delivered(stores, seed)

            digests = {await store.read(lambda q: q.digests.state()) for store in stores}
            assert len(digests) == 1
            want = expected(decoded(logs))
            for store in stores:
                assert await shown(store) == want
                before = await store.write(lambda tx: tx.queries.digests.view())
                await store.write(lambda tx: tx.projections.rebuild(vectors=False))
                assert await store.write(lambda tx: tx.queries.digests.view()) == before
                assert await store.read(lambda q: q.ops.quarantined()) == []

    asyncio.run(run())


# --- the single rules ---------------------------------------------------------------------------------------------------


async def test_a_thousand_interleaved_edits_with_renames_and_deletes_converge_without_resurrection() -> None:
    rng = random.Random(5)
    clocks = [Clock(NOW), Clock(NOW - 3_600_000)]
    ids = [id_of(n) for n in range(100, 140)]
    async with devices(2, clocks) as stores:
        for memory_id in ids:
            await remember(stores[0], memory_id, f"begin {memory_id}", name=f"n{memory_id}")
        await exchange(*stores)
        gone: set[str] = set()
        for turn in range(1_000):
            clocks[turn % 2].at += rng.randrange(5_000)
            memory_id, choice = rng.choice(ids), rng.random()
            fields = {Field.CONTENT: f"turn {turn}"} if choice < 0.7 else {Field.NAME: f"name {turn % 50}"}
            write = MemoryWrite(memory_id=memory_id, fields=fields, names=(fields.get(Field.NAME, f"n{memory_id}"),))

            def work(tx: Transaction, write: MemoryWrite = write, *, forget: bool = choice > 0.98) -> None:
                if forget and tx.queries.memories.existing([write.memory_id]):
                    tx.forget.memory(write.memory_id)
                    gone.add(write.memory_id)
                elif not tx.queries.ops.forgotten([write.memory_id]) and not tx.queries.names.holders(
                    write.names
                ).keys() - {write.memory_id}:
                    tx.memories.write([write])

            await stores[turn % 2].write(work)
            if turn % 97 == 0:
                await exchange(*stores)
        await exchange(*stores)

        assert await stores[0].read(lambda q: q.digests.state()) == await stores[1].read(lambda q: q.digests.state())
        logs = {store.device: await said_by(store) for store in stores}
        for store in stores:
            assert await shown(store) == expected(decoded(logs))
            left = {row[0] for row in await store.read(lambda q: q.fetch("select id from memory"))}
            assert left == set(ids) - gone
        assert gone


async def test_ops_received_again_are_counted_as_duplicates_and_change_nothing() -> None:
    async with devices(2) as (here, there):
        await remember(there, id_of(1), "x", name="a")
        log = await said_by(there)

        first = await take(here, there.device, log)
        before = await here.read(lambda q: q.digests.state())
        again = await take(here, there.device, log + log)

        assert (first.applied, first.duplicates, first.quarantined) == (len(log), 0, 0)
        assert (again.applied, again.duplicates, again.quarantined) == (0, 2 * len(log), 0)
        assert await here.read(lambda q: q.digests.state()) == before


EVENT_BODY = ops.event_body(event_of(id_of(9), "hello"))
ODD_OPS: list[tuple[str, tuple[int, bytes]]] = [
    ("bytes that are no op", (1, b"\xff\x00junk")),
    ("no bytes", (1, b"")),
    ("an op of a newer type", op(1, 99, {1: bytes(16)})),
    ("an event of a newer type", op(1, OpType.EVENT, EVENT_BODY | {4: "daydream"})),
    ("an event of a newer role", op(1, OpType.EVENT, EVENT_BODY | {5: "dog"})),
    ("an event without text", op(1, OpType.EVENT, {key: EVENT_BODY[key] for key in EVENT_BODY if key != 6})),
    ("an event of a text that is a number", op(1, OpType.EVENT, EVENT_BODY | {6: 5})),
    ("an event of before 1970", op(1, OpType.EVENT, EVENT_BODY | {7: -1})),
    ("an event of the far future", op(1, OpType.EVENT, EVENT_BODY | {7: 1 << 60})),
    ("an event of a session with a NUL", op(1, OpType.EVENT, EVENT_BODY | {3: "a\0b"})),
    ("an event of a time that no clock has", op(1, OpType.EVENT, EVENT_BODY, at=1 << 47)),
    ("a memory with a salience above one", op(1, OpType.MEMORY, {1: bytes(16), 2: {7: 1.5, 1: "x", 14: NOW}})),
    ("a memory with a content that is a list", op(1, OpType.MEMORY, {1: bytes(16), 2: {1: ["x"], 14: NOW}})),
    ("a memory with a time too large for the file", op(1, OpType.MEMORY, {1: bytes(16), 2: {1: "x", 14: 1 << 63}})),
    ("metadata that no JSON holds", op(1, OpType.MEMORY, {1: bytes(16), 2: {1: "x", 14: NOW, 15: {"a": {2.5: 1}}}})),
    ("a name that is no text", op(1, OpType.CLAIM, {1: bytes(16), 2: 7})),
    ("a count without a total", op(1, OpType.COUNT, {1: bytes(16), 2: 1})),
    ("a forget of nothing", op(1, OpType.FORGET, {1: b"short"})),
    ("a blank of words", op(1, OpType.BLANK, {1: bytes(16), 2: [["a", "b"]]})),
]


@pytest.mark.parametrize("odd", [case for _, case in ODD_OPS], ids=[name for name, _ in ODD_OPS])
async def test_what_cannot_be_applied_is_parked_and_the_others_go_on(odd: tuple[int, bytes]) -> None:
    fine = op(2, OpType.EVENT, ops.event_body(event_of(id_of(8), "fine")))
    async with devices(1) as (here,):
        result = await take(here, "ab" * 16, [fine, odd])
        again = await take(here, "ab" * 16, [odd])

        assert (result.applied, result.quarantined) == (1, 1)
        assert (again.duplicates, again.quarantined) == (1, 0)
        assert [(one.device, one.seq) for one in await here.read(lambda q: q.ops.quarantined())] == [("ab" * 16, 1)]
        assert all("daydream" not in one.why for one in await here.read(lambda q: q.ops.quarantined()))
        assert [event.text for event in (await here.read(lambda q: q.events.by_id([id_of(8)]))).values()] == ["fine"]
        kept = await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 9))
        assert [(one.seq, one.data) for one in kept] == [odd, fine]
        assert (await here.write(lambda tx: tx.ingest.retry_quarantined())).applied == 0
        assert len(await here.read(lambda q: q.ops.quarantined())) == 1


async def test_a_parked_op_is_applied_by_the_version_that_knows_it(tmp_path: Path) -> None:
    later = op(1, OpType.EVENT, ops.event_body(event_of(id_of(9), "from the future")))
    async with device(tmp_path, 1) as store:
        # As an older version left it, to which this op said nothing.
        await store.write(
            lambda tx: tx.ingest._quarantine("ab" * 16, [(1, None, later[1], "type 1 is of a newer version")])
        )

    async with device(tmp_path, 1) as store:
        assert [event.text for event in (await store.read(lambda q: q.events.by_id([id_of(9)]))).values()] == [
            "from the future"
        ]
        assert await store.read(lambda q: q.ops.quarantined()) == []
        assert (await take(store, "ab" * 16, [later])).duplicates == 1


@pytest.mark.parametrize("version", [0, 2, 9])
async def test_an_op_of_a_version_that_is_not_known_is_kept_as_it_came_and_changes_nothing(version: int) -> None:
    seq, data = op(1, OpType.MEMORY, {1: ulid_bytes(id_of(1)), 2: {1: "x", 14: NOW}})
    kind, _, op_id, hlc, body = ops.read(data, device="ab" * 16, seq=seq)
    later = ops.encode_wire((kind, version, op_id, hlc, body))
    async with devices(1) as (here,):
        assert (await take(here, "ab" * 16, [(seq, later)])).quarantined == 1
        assert await here.read(lambda q: q.memories.by_id([id_of(1)])) == {}
        [kept] = await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 9))
        assert kept.data == later


async def test_a_value_that_a_newer_version_knows_shows_as_the_default_and_is_kept() -> None:
    fields = {1: "x", 14: NOW, 3: "hypothesis", 6: "subconscious", 99: {"new": "field"}}
    sent = op(1, OpType.MEMORY, {1: ulid_bytes(id_of(1)), 2: fields})
    async with devices(1) as (here,):
        await take(here, "ab" * 16, [sent])

        memory = await here.read(lambda q: q.memories.get(id_of(1)))
        assert (memory.type.value, memory.layer.value) == ("fact", "archive")
        (kept,) = await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 1))
        assert kept.data == sent[1]


async def test_a_howto_is_shown_as_such_once_the_version_that_knows_it_opens_the_store(tmp_path: Path) -> None:
    """An older version took the op in, kept it, sent it on, and showed a fact."""
    sent = op(1, OpType.MEMORY, {1: ulid_bytes(id_of(1)), 2: {1: "run make dev", 14: NOW, 3: "howto"}})
    async with device(tmp_path, 1) as store:
        await take(store, "ab" * 16, [sent])
        assert (await store.read(lambda q: q.memories.get(id_of(1)))).type is MemoryType.HOWTO

        def as_it_left_them(tx: Transaction) -> None:
            tx.set_meta("projected", "4")
            tx.queries.fetch("update memory set type = 'fact'")

        await store.write(as_it_left_them)
        assert (await store.read(lambda q: q.memories.get(id_of(1)))).type is MemoryType.FACT

    async with device(tmp_path, 1) as store:
        assert (await store.read(lambda q: q.memories.get(id_of(1)))).type is MemoryType.HOWTO
        (kept,) = await store.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 1))
        assert kept.data == sent[1]


ERASED_FIRST = ["event", "memory", "claim", "grip", "count", "blank"]


@pytest.mark.parametrize("what", ERASED_FIRST)
async def test_what_was_forgotten_before_it_came_is_stored_without_its_words(what: str) -> None:
    memory_id, event_id = id_of(1), id_of(2)
    body = {
        "event": (OpType.EVENT, ops.event_body(event_of(event_id, "quvex"))),
        "memory": (OpType.MEMORY, ops.memory_body(memory_id, {Field.CONTENT: "quvex", Field.CREATED_AT: NOW})),
        "claim": (OpType.CLAIM, ops.claim_body(memory_id, "quvex")),
        "grip": (OpType.GRIP, ops.grip_body(replace(grip_of(3, memory_id, event_id), excerpt="quvex"))),
        "count": (OpType.COUNT, ops.count_body(memory_id, Counter.ACCESS, 3, Millis(NOW))),
        "blank": (OpType.BLANK, ops.blank_body(event_id, [(0, 3)])),
    }[what]
    gone = event_id if what in {"event", "blank"} else id_of(3) if what == "grip" else memory_id
    async with devices(1) as (here,):
        forget = await take(here, "ab" * 16, [op(2, OpType.FORGET, ops.forget_body(gone))])
        await take(here, "ab" * 16, [op(1, *body)])

        assert not forget.erased  # there was nothing yet
        assert (await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 1)))[0].data is None
        found = await shown(here)
        assert not any(found[part] for part in ("memories", "names", "events", "grips"))
        assert (
            await here.read(lambda q: q.fetch("select * from counted union all select name, '', 0, 0 from claim")) == []
        )
        assert "quvex" not in repr(await here.read(lambda q: q.fetch("select text from event")))


async def test_a_forget_takes_parked_bytes_of_the_same_memory_too() -> None:
    odd = op(1, OpType.MEMORY, {1: ulid_bytes(id_of(1)), 2: {1: ["quvex"]}})
    async with devices(1) as (here,):
        await take(here, "ab" * 16, [odd])
        result = await take(here, "cd" * 16, [op(1, OpType.FORGET, ops.forget_body(id_of(1)))])

        assert result.erased
        assert await here.read(lambda q: q.ops.quarantined()) == []
        assert (await take(here, "ab" * 16, [odd])).duplicates == 1


async def test_blanked_passages_stay_blank_whenever_the_event_comes() -> None:
    async with devices(3) as (author, here, there):
        event_id = await say(author, "we moved to Oslo")
        log = await said_by(author)
        await take(here, author.device, log)
        await here.write(lambda tx: tx.forget.passages(event_id, [(12, 16)]))
        erasure = await said_by(here)

        await take(there, here.device, erasure)
        await take(there, author.device, log)
        result = await take(author, here.device, erasure)

        for store in (author, here, there):
            assert (await store.read(lambda q: q.events.by_id([event_id])))[event_id].text == "we moved to ░░░░"
        assert result.erased
        assert [data for _, data in await said_by(author)] != [data for _, data in log]
        assert b"Oslo" not in b"".join(data for _, data in await said_by(author) if data)


async def test_an_erased_op_takes_its_place_and_nothing_else() -> None:
    async with devices(1) as (here,):
        result = await take(here, "ab" * 16, [(1, None), op(2, OpType.CLAIM, ops.claim_body(id_of(1), "a"))])

        assert (result.applied, result.quarantined, result.duplicates) == (1, 0, 0)
        assert (await take(here, "ab" * 16, [(1, None)])).duplicates == 1
        assert [one.data for one in await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 1))] == [None]


async def test_two_holders_of_a_name_show_as_two_names_and_the_second_gets_it_when_the_first_goes() -> None:
    async with devices(2, [Clock(NOW), Clock(NOW + 5)]) as (here, there):
        await remember(here, id_of(1), "first", name="a")
        await remember(there, id_of(2), "second", name="a")
        await remember(there, id_of(3), "third", name="a~2")
        await exchange(here, there)
        for store in (here, there):
            assert {
                name: [*(await store.read(lambda q: q.names.holders([name]))).values()] for name in ("a", "a~2", "a~3")
            } == {
                "a": [id_of(1)],
                "a~2": [id_of(3)],
                "a~3": [id_of(2)],
            }
            assert (await store.read(lambda q: q.memories.get(id_of(2)))).name == "a~3"
            with pytest.raises(ConflictError):
                await edit_named(store, id_of(1), "a~3")

        await there.write(lambda tx: tx.forget.memory(id_of(3)))
        await exchange(here, there)
        assert [(await store.read(lambda q: q.memories.get(id_of(2)))).name for store in (here, there)] == [
            "a~2",
            "a~2",
        ]

        await here.write(lambda tx: tx.forget.memory(id_of(1)))
        await exchange(here, there)
        assert [(await store.read(lambda q: q.memories.get(id_of(2)))).name for store in (here, there)] == ["a", "a"]


async def edit_named(store: Store, memory_id: str, name: str) -> None:
    write = MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,))
    await store.write(lambda tx: tx.memories.write([write]))


async def test_a_name_taken_away_is_free_for_the_other_device_and_its_number_too() -> None:
    async with devices(2, [Clock(NOW), Clock(NOW + 5)]) as (here, there):
        for number, store in ((1, here), (2, there)):
            await remember(store, id_of(number), f"text {number}", name=f"own {number}")
            await bind(store, id_of(number), names=("shared",))
        await exchange(here, there)
        assert (await here.read(lambda q: q.names.aliases([id_of(2)])))[id_of(2)][0].name == "shared~2"

        await there.write(lambda tx: tx.memories.unclaim(id_of(1), "shared"))
        await exchange(here, there)

        for store in (here, there):
            assert [*(await store.read(lambda q: q.names.holders(["shared"]))).values()] == [id_of(2)]
            assert [*(await store.read(lambda q: q.names.holders(["shared~2"]))).values()] == []
        await there.write(lambda tx: tx.memories.unclaim(id_of(2), "shared"))
        await exchange(here, there)
        assert [[*(await store.read(lambda q: q.names.holders(["shared"]))).values()] for store in (here, there)] == [
            [],
            [],
        ]


async def test_a_conflict_is_listed_on_both_devices_and_settling_it_closes_it_on_both_for_good() -> None:
    async with devices(3, [Clock(NOW), Clock(NOW + 5), Clock(NOW - 9)]) as (here, there, third):
        await remember(here, id_of(1), "begin")
        await exchange(here, there, third)
        for store, said in ((here, "left"), (there, "right"), (third, "right")):
            await edit(store, id_of(1), content="draft")
            await edit(store, id_of(1), content=said)
        await edit(here, id_of(1), salience=0.5)
        await exchange(here, there, third)
        for store in (here, there, third):
            (one,) = await store.read(lambda q: q.conflicts.open())
            assert (one.field, one.shown) == (Field.CONTENT, "right")
            assert [value for _, value in one.versions] == ["left"]

        await edit(here, id_of(1), content="both", settles=True)
        log = await said_by(here)
        await take(third, here.device, log)
        await take(there, here.device, log)

        for store in (here, there, third):
            assert await store.read(lambda q: q.conflicts.open()) == []
            assert (await store.read(lambda q: q.memories.get(id_of(1)))).content == "both"
        assert ops.view(ops.fold(decoded({here.device: log, there.device: await said_by(there)}))).conflicts == {}


async def test_an_edit_that_did_not_decide_leaves_the_conflict_open() -> None:
    async with devices(2, [Clock(NOW), Clock(NOW + 5)]) as (here, there):
        await remember(here, id_of(1), "begin")
        await exchange(here, there)
        await edit(here, id_of(1), content="left")
        await edit(there, id_of(1), content="right")
        result = await take(here, there.device, await said_by(there))

        await edit(here, id_of(1), content="an import's")

        assert result.conflicts == 1
        assert [value for one in await here.read(lambda q: q.conflicts.open()) for _, value in one.versions] == ["left"]


async def test_counts_of_devices_add_up_and_none_is_counted_twice() -> None:
    async with devices(2) as (here, there):
        await remember(here, id_of(1), "x")
        await exchange(here, there)
        for store, times in ((here, (2, 1)), (there, (5,))):
            for place, count in enumerate(times):
                await recall(store, id_of(1), count, at=NOW + place + 1)
        await exchange(here, there)
        await exchange(here, there)
        # one more that is not in the log yet: it shows here alone
        await here.write(lambda tx: tx.accesses.count({id_of(1): (1, Millis(NOW + 9))}, log_after_ms=3_600_000))

        assert [(await store.read(lambda q: q.memories.get(id_of(1)))).access_count for store in (here, there)] == [
            9,
            8,
        ]
        assert (await here.read(lambda q: q.memories.get(id_of(1)))).accessed_at == NOW + 9
        assert await here.read(lambda q: q.digests.state()) == await there.read(lambda q: q.digests.state())


async def test_events_of_other_devices_are_searched_and_embedded_but_never_distilled() -> None:
    async with devices(2) as (here, there):
        await say(there, "theirs before", ts=NOW)
        await say(here, "ours one", ts=NOW + 1)
        await take(here, there.device, await said_by(there))
        assert [count for _, count in await here.read(lambda q: q.events.undistilled_sessions())] == [1]
        events, new, upto = await here.read(lambda q: q.events.undistilled("s", context=5, limit=50, chars=10_000))
        assert ([event.text for event in events], len(new)) == (["theirs before", "ours one"], 1)
        await here.write(lambda tx: tx.events.distilled("s", upto))
        assert await here.read(lambda q: q.events.undistilled_sessions()) == []

        await say(there, "theirs after", session="s", ts=NOW + 2)
        await say(there, "elsewhere", session="t", ts=NOW + 3)
        await take(here, there.device, await said_by(there))
        assert await here.read(lambda q: q.events.undistilled_sessions()) == []
        await here.write(lambda tx: tx.vectors.enter_space("test"))
        assert len(await here.read(lambda q: q.embed_queue.first(10))) == 4
        assert {session.id: session.events for session in await here.read(lambda q: q.events.sessions())} == {
            "s": 3,
            "t": 1,
        }

        await say(here, "ours two", ts=NOW + 4)
        assert [count for _, count in await here.read(lambda q: q.events.undistilled_sessions())] == [1]
        _, new, upto = await here.read(lambda q: q.events.undistilled("s", context=5, limit=50, chars=10_000))
        assert len(new) == 1
        await here.write(lambda tx: tx.events.distilled("s", upto))
        await here.write(lambda tx: tx.projections.rebuild(vectors=False))
        assert await here.read(lambda q: q.events.undistilled_sessions()) == []


async def test_events_of_one_time_stand_in_the_order_they_were_said_in_whatever_order_they_came() -> None:
    async with devices(3) as (author, here, there):
        for n in range(20):
            await say(author, f"line {n}", ts=NOW)
        log = await said_by(author)
        await take(here, author.device, log)
        for piece in (log[10:], log[5:10], log[:5]):
            await take(there, author.device, piece)

        for store in (author, here, there):
            page, _ = await store.read(lambda q: q.events.page(EventFilter(), after=None, limit=50, chars=10_000))
            assert [event.text for event in page] == [f"line {n}" for n in range(20)]
            assert (await store.read(lambda q: q.events.sessions()))[0].title == "line 0"
            docs = [doc async for batch in store.pages(lambda q, after: q.documents.events(after)) for doc in batch]
            assert [doc.id for doc in sorted(docs, key=lambda doc: doc.order)] == [event.id for event in page]


# --- clocks -------------------------------------------------------------------------------------------------------------


async def test_a_device_whose_clock_is_days_ahead_moves_nobody_else_and_is_still_overruled(tmp_path: Path) -> None:
    ahead, clock = Clock(NOW + 9 * 86_400_000), Clock(NOW)
    async with devices(1, [ahead]) as (fast,), device(tmp_path, 7, clock) as here:
        await remember(fast, id_of(1), "from the future")
        log = await said_by(fast)
        await take(here, fast.device, log)
        await edit(here, id_of(1), content="from now")
        assert (await here.read(lambda q: q.memories.get(id_of(1)))).content == "from now"
        assert millis_of(here.last_hlc) <= NOW + 1
        path = here.path

    async with device(path.parent, 7, clock) as again:
        assert millis_of(again.last_hlc) <= NOW + 1
        await remember(again, id_of(2), "another")
        (stamp,) = await again.read(lambda q: q.fetch("select hlc from op where entity = ?", (id_of(2),)))
        assert millis_of(Hlc(stamp[0])) <= NOW + 1


@pytest.mark.parametrize(("lead", "moved"), [(MAX_LEAD_MS, True), (MAX_LEAD_MS + 1, False)])
async def test_a_clock_a_little_ahead_is_taken_over_also_after_a_restart(
    tmp_path: Path, lead: int, *, moved: bool
) -> None:
    sent = op(1, OpType.CLAIM, ops.claim_body(id_of(1), "a"), at=NOW + lead)
    async with device(tmp_path, 1) as here:
        await take(here, "ab" * 16, [sent])
        assert (millis_of(here.last_hlc) == NOW + lead) is moved

    async with device(tmp_path, 1) as here:
        assert (millis_of(here.last_hlc) == NOW + lead) is moved


async def test_stamps_of_a_device_rise_over_restarts_also_when_its_clock_goes_back(tmp_path: Path) -> None:
    clock = Clock(NOW)
    stamps: list[int] = []
    for jump in (0, -86_400_000, 5, -1):
        clock.at += jump
        async with device(tmp_path, 1, clock) as here:
            for n in range(3):
                await remember(here, id_of(len(stamps) + n + 1), "x")
            stamps = [row[0] for row in await here.read(lambda q: q.fetch("select hlc from op order by seq"))]

    assert stamps == sorted(set(stamps))


# --- another incarnation ------------------------------------------------------------------------------------------------


async def test_a_clone_goes_on_as_another_device_and_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """The store is copied, both copies go on, and one of them finds out and takes another name."""
    async with device(tmp_path, 1) as store:
        await remember(store, id_of(1), "begin", name="a")
        await say(store, "before the copy")
        await recall(store, id_of(1), 3, at=NOW)
        acknowledged = store.last_seq
    (tmp_path / "clone").mkdir()
    shutil.copy(tmp_path / "1.db", tmp_path / "clone" / "1.db")

    async with (
        device(tmp_path, 1, seed=11) as here,
        device(tmp_path / "clone", 1, Clock(NOW + 5), seed=12) as clone,
        devices(1) as (other,),
    ):
        for store, said in ((here, "here"), (clone, "clone")):
            await edit(store, id_of(1), content=f"{said} one")
            await edit(store, id_of(1), content=f"{said} two")
            event_id = await say(store, f"said at {said}")
            await bind(store, id_of(1), names=(said,), grips=(grip_of(50 + len(said), id_of(1), event_id),))
            await store.write(lambda tx: tx.memories.unclaim(memory_id=id_of(1), name=said))
            await recall(store, id_of(1), 2, at=NOW + 7)
        before = await clone.write(lambda tx: tx.queries.ops.unsent(clone.device, acknowledged, 100))
        fresh = "fe" * 16

        moved = await clone.write(lambda tx: tx.incarnation.renew(fresh, acknowledged))

        assert moved == len(before)
        assert (clone.device, clone.last_seq) == (fresh, moved)
        after = await clone.write(lambda tx: tx.queries.ops.unsent(clone.device, 0, 100))
        assert [one.seq for one in after] == list(range(1, moved + 1))
        assert [id_in(one) for one in after] == [id_in(one) for one in before]
        await take(clone, here.device, await said_by(here))
        await take(here, fresh, await said_by(clone))
        for store in (here, clone):
            await take(other, store.device, await said_by(store))
        assert len({await store.read(lambda q: q.digests.state()) for store in (here, clone, other)}) == 1
        for store in (here, clone, other):
            memory = await store.read(lambda q: q.memories.get(id_of(1)))
            assert (memory.content, memory.access_count) == ("clone two", 7)
            assert [value for one in await store.read(lambda q: q.conflicts.open()) for _, value in one.versions] == [
                "here two"
            ]
            assert [*(await store.read(lambda q: q.names.holders(["clone"]))).values()] == []
            assert await shown(store) == expected(
                decoded({here.device: await said_by(here), fresh: await said_by(clone)})
            )
        assert {event.text for event in (await shown(other))["events"].values()} == {
            "before the copy",
            "said at here",
            "said at clone",
        }
        await remember(clone, id_of(5), "life goes on")
        assert clone.last_seq == moved + 1
        path = clone.path

    async with device(path.parent, 1) as clone:
        assert (clone.device, clone.last_seq) == (fresh, moved + 1)


async def test_a_store_takes_all_that_it_holds_to_an_account_that_knows_none_of_it() -> None:
    async with devices(3) as (here, there, fresh):
        await remember(here, id_of(1), "kept here", name="both")
        await exchange(here, there)
        event_id = await say(there, "said there")
        await remember(there, id_of(2), "learned there")
        await bind(there, id_of(2), names=("two",), grips=(grip_of(60, id_of(2), event_id),))
        await edit(there, id_of(1), content="changed there")
        await edit(here, id_of(1), content="changed here")
        await remember(there, id_of(3), "gone")
        await there.write(lambda tx: tx.forget.memory(id_of(3)))
        await recall(there, id_of(2), 3, at=NOW + 9)
        await exchange(here, there)
        before = await shown(here)
        told = len(await here.read(lambda q: q.fetch("select 1 from op where device <> ?", (here.device,))))
        open_before = [value for one in await here.read(lambda q: q.conflicts.open()) for _, value in one.versions]

        moved = await here.write(lambda tx: tx.incarnation.adopt())

        assert moved == told
        assert await here.read(lambda q: q.fetch("select distinct device from op")) == [(here.device,)]
        sent = await said_by(here)
        assert [seq for seq, _ in sent] == list(range(1, here.last_seq + 1))
        await take(fresh, here.device, sent)
        assert await fresh.read(lambda q: q.digests.state()) == await here.read(lambda q: q.digests.state())
        after = await shown(here)
        assert {key: memory.content for key, memory in after["memories"].items()} == {
            key: memory.content for key, memory in before["memories"].items()
        }
        assert (await here.read(lambda q: q.memories.get(id_of(2)))).access_count == 3
        assert (
            [value for one in await here.read(lambda q: q.conflicts.open()) for _, value in one.versions]
            == open_before
            != []
        )
        assert (
            await here.read(lambda q: q.events.undistilled_sessions()) == []
        )  # what was distilled there is not distilled here once more
        await remember(here, id_of(9), "life goes on")
        assert here.last_seq == len(sent) + 1


async def test_a_store_takes_what_it_holds_of_one_device_to_an_account_that_does_not_know_that_one() -> None:
    async with devices(4) as (here, unknown, known, fresh):
        await remember(unknown, id_of(1), "made by who is not known")
        await recall(unknown, id_of(1), 2, at=NOW + 9)
        event_id = await say(unknown, "said there")
        await bind(unknown, id_of(1), names=("one",), grips=(grip_of(60, id_of(1), event_id),))
        await exchange(here, unknown)
        await remember(known, id_of(2), "made by who is known")
        await exchange(here, known)
        await edit(here, id_of(1), content="changed here")
        await here.write(lambda tx: tx.memories.unclaim(memory_id=id_of(1), name="one"))
        [(of_unknown,)] = await here.read(
            lambda q: q.fetch("select count(*) from op where device = ?", (unknown.device,))
        )

        moved = await here.write(lambda tx: tx.incarnation.adopt([unknown.device]))

        assert moved == of_unknown
        writers = {one for (one,) in await here.read(lambda q: q.fetch("select distinct device from op"))}
        assert writers == {here.device, known.device}
        assert await here.write(lambda tx: tx.incarnation.adopt([unknown.device])) == 0
        for device, sent in ((here.device, await said_by(here)), (known.device, await said_by(known))):
            await take(fresh, device, sent)
        assert await fresh.read(lambda q: q.digests.state()) == await here.read(lambda q: q.digests.state())
        assert (await fresh.read(lambda q: q.memories.get(id_of(1)))).content == "changed here"
        assert (await here.read(lambda q: q.memories.get(id_of(1)))).access_count == 2
        assert await fresh.read(lambda q: q.conflicts.open()) == []  # the change had seen what it changed
        assert await fresh.read(lambda q: q.names.holders(["one"])) == {}
        assert (await shown(here))["memories"].keys() == {id_of(1), id_of(2)}
        await remember(here, id_of(9), "life goes on")
        assert here.last_seq == len(await said_by(here))


def id_in(sent: Outgoing) -> bytes:
    assert sent.data is not None
    return ops.decode(sent.data, device="", seq=sent.seq).op_id


async def test_a_restored_backup_takes_its_own_log_back_and_goes_on_after_it(tmp_path: Path) -> None:
    async with device(tmp_path, 1) as store:
        await remember(store, id_of(1), "begin")
        await store.backup(tmp_path / "backup.db")
        await edit(store, id_of(1), content="after the backup")
        await recall(store, id_of(1), 4, at=NOW + 1)
        log, own, digest = await said_by(store), store.device, await store.read(lambda q: q.digests.state())
    (tmp_path / "restored").mkdir()
    shutil.copy(tmp_path / "backup.db", tmp_path / "restored" / "1.db")

    async with device(tmp_path / "restored", 1) as store:
        await take(store, own, log[::-1])

        assert await store.read(lambda q: q.digests.state()) == digest
        assert store.last_seq == len(log)
        assert (await store.read(lambda q: q.memories.get(id_of(1)))).access_count == 4
        await edit(store, id_of(1), content="and on")
        assert [one.seq for one in await store.write(lambda tx: tx.queries.ops.unsent(store.device, len(log), 9))] == [
            len(log) + 1
        ]


# --- what is sent -------------------------------------------------------------------------------------------------------


async def test_what_is_sent_says_which_project_it_was_first_written_for() -> None:
    async with devices(1) as (here,):
        in_project = MemoryWrite(
            memory_id=id_of(1),
            fields={Field.CONTENT: "x", Field.CREATED_AT: NOW, Field.SCOPE: "project", Field.RESOURCE_ID: "proj_a"},
            grips=(grip_of(7, id_of(1), id_of(9)),),
        )
        await here.write(lambda tx: tx.memories.write([in_project]))
        await edit(here, id_of(1), scope="project", resource_id="proj_b")
        await remember(here, id_of(2), "anywhere", scope="user")
        event = replace(event_of(id_of(9), "said"), project="proj_c")
        await here.write(lambda tx: tx.events.append([event], learn=True))
        await here.write(lambda tx: tx.forget.passages(id_of(9), [(0, 1)]))
        await here.write(lambda tx: tx.forget.grip(grip_of(7, id_of(1), id_of(9))))

        sent = await here.write(lambda tx: tx.queries.ops.unsent(here.device, 0, 100))

        assert [(one.type, one.entity, one.project, one.data is None) for one in sent] == [
            (OpType.MEMORY, id_of(1), "proj_a", False),
            (OpType.GRIP, id_of(1), "proj_a", True),
            (OpType.MEMORY, id_of(1), "proj_a", False),
            (OpType.MEMORY, id_of(2), None, False),
            (OpType.EVENT, id_of(9), "proj_c", False),
            (OpType.BLANK, id_of(9), "proj_c", False),
            (OpType.FORGET, id_of(1), "proj_a", False),
        ]
        assert [one.seq for one in await here.write(lambda tx: tx.queries.ops.unsent(here.device, 2, 3))] == [3, 4, 5]


async def test_an_op_comes_back_byte_for_byte_also_where_its_row_could_not_repeat_it() -> None:
    event = event_of(id_of(9), "said")
    bodies = [
        ops.event_body(replace(event, metadata={"b": 1, "a": {"d": 2, "c": None}}, utc_offset=60, project="p")),
        ops.event_body(replace(event, id=id_of(10))) | {77: "of a newer version"},
        ops.event_body(replace(event, id=id_of(11))) | {10: 0},
        ops.event_body(replace(event, id=id_of(12), metadata={"a": [1.5, True]})),
    ]
    log = [op(n, OpType.EVENT, body) for n, body in enumerate(bodies, 1)]
    async with devices(1) as (here,):
        await take(here, "ab" * 16, log)

        kept = await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 9))
        assert [(one.seq, one.data) for one in kept] == log
        await here.write(lambda tx: tx.forget.passages(id_of(10), [(0, 4)]))
        assert b"said" not in ((await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 2, 2)))[0].data or b"")


ODD_BODIES: tuple[dict[int, Any], ...] = (
    {},
    {9: "proj_a"},
    {10: -90},
    {12: {"speaker": "Mel", "a": [1.5, {"b": None}]}},
    {12: {"b": 1, "a": 2}},
    {9: None},
    {10: 0},
    {12: {}},
    {77: "of a newer version"},
    {4: "session_end"},
    {4: "tool_result", 5: "tool"},
    {6: ""},
    {6: "¿Dónde está el café? 東京 " * 3},
)
"""What may stand in an event beside what always does: some of it no row can repeat byte for byte."""

arrival = st.tuples(
    st.sampled_from(("event",) * 6 + ("blank", "forget")), st.integers(11, 16), st.sampled_from(ODD_BODIES)
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(arrival, max_size=30), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_run_of_events_leaves_what_they_leave_one_by_one_in_any_order(
    arrivals: list[tuple[str, int, dict[int, Any]]], at_once: int, rng: random.Random
) -> None:
    logs: dict[str, list[tuple[int, bytes | None]]] = {"ab" * 16: [], "cd" * 16: []}
    said: set[tuple[str, int]] = set()
    for place, (kind, number, odd) in enumerate(arrivals):
        name = ("ab" * 16, "cd" * 16)[place % 2]
        if kind == "event" and (name, number) in said:
            continue  # an id belongs to one event of a device
        said.add((name, number))
        words = event_of(id_of(number), f"we said word{place}, didn't we?", session=f"s{place % 2}", ts=NOW + place % 3)
        bodies = {
            "event": (OpType.EVENT, ops.event_body(words) | odd),
            "blank": (OpType.BLANK, ops.blank_body(id_of(number), [(3, 8)])),
            "forget": (OpType.FORGET, ops.forget_body(id_of(number))),
        }
        logs[name].append(op(len(logs[name]) + 1, *bodies[kind]))

    async def left(runs: Sequence[tuple[str, Sequence[tuple[int, bytes | None]]]]) -> list[object]:
        async with devices(1) as (here,):
            for name, piece in runs:
                await take(here, name, piece)
            kept = [await here.write(lambda tx: tx.queries.ops.between(device=name, low=1, high=99)) for name in logs]
            docs, _ = await here.read(lambda q: q.documents.events(None))
            found = sorted(doc.id for doc in docs if "said" in doc.tokens.split())
            digest = await here.write(lambda tx: tx.queries.digests.view())
            await here.write(lambda tx: tx.projections.rebuild(vectors=False))
            assert await here.write(lambda tx: tx.queries.digests.view()) == digest
            return [kept, found, digest, await here.read(lambda q: q.ops.quarantined())]

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(op_ingest, "_AT_ONCE", at_once)
            together = await left(list(logs.items()))
        alone = [(name, [one]) for name, log in logs.items() for one in log]
        rng.shuffle(alone)
        assert together == await left(alone)

    asyncio.run(run())


@pytest.mark.parametrize("order", [1, -1], ids=["blank last", "blank first"])
async def test_an_erased_passage_is_in_no_byte_also_of_an_event_that_its_row_cannot_repeat(order: int) -> None:
    body = ops.event_body(event_of(id_of(9), "my secret word")) | {77: "of a newer version"}
    log = [op(1, OpType.EVENT, body), op(2, OpType.BLANK, ops.blank_body(id_of(9), [(3, 9)]))]
    async with devices(1) as (here,):
        for one in log[::order]:
            await take(here, "ab" * 16, [one])

        sent = await here.write(lambda tx: tx.queries.ops.between("ab" * 16, 1, 9))
        assert [event.text for event in (await here.read(lambda q: q.events.by_id([id_of(9)]))).values()] == [
            "my ░░░░░░ word"
        ]
        assert all(b"secret" not in (one.data or b"") for one in sent)
        assert not await here.read(lambda q: q.fetch("select 1 from op where instr(body, ?)", (b"secret",)))


@given(st.sampled_from(ODD_BODIES), st.sampled_from(ODD_BODIES), st.sampled_from([dict, sorted]))
def test_the_row_of_an_event_is_that_of_its_record_and_gives_its_bytes_again(
    one: dict[int, Any], other: dict[int, Any], order: Callable[[Any], Any]
) -> None:
    body = ops.event_body(event_of(id_of(9), "said")) | one | other
    body = {key: body[key] for key in order(body)}
    made = ops.decode(op(1, OpType.EVENT, body)[1], device="ab" * 16, seq=1)
    data = ops.encode(made)
    event, row = ops.event_of(made), rows.received_row("ab" * 16, id_of(9), made.body)

    assert rows.event_row(event) == row
    assert rows.event_of(row) == replace(event, metadata=rows.unjson(row[10]))
    assert rows.event_body(row) == ops.event_body(rows.event_of(row))
    wire = ops.read(data, device="ab" * 16, seq=1)
    again = ops.encode_event_body(rows.event_body(row), made.op_id, made.hlc)
    assert ops.is_repeatable(wire, data, rows.unjson(row[10]) if 12 in body else None) == (again == data)


# --- a service around it ------------------------------------------------------------------------------------------------


async def received(service: Application, log: Sequence[tuple[int, bytes | None]], name: str = "ab" * 16) -> Received:
    return await service.store.write(lambda tx: tx.ingest.receive(name, log))


async def test_what_came_from_another_device_is_recalled_at_once(service: Application) -> None:
    asked: list[str] = []
    service.on_work = asked.append
    memory = ops.memory_body(id_of(1), {Field.CONTENT: "the harbour is quvexzoldrun blue", Field.CREATED_AT: NOW})
    log = [
        op(1, OpType.EVENT, ops.event_body(event_of(id_of(9), "we painted the wubbaflintok boat"))),
        op(2, OpType.MEMORY, memory),
        op(3, OpType.GRIP, ops.grip_body(grip_of(7, id_of(1), id_of(9)))),
    ]
    await received(service, log[1:])
    await received(service, log[:1])

    hits = (await service.call(PERSON, "recall", api.RecallRequest(query="quvexzoldrun"))).hits
    assert [(hit.id, hit.sources[0].event_id) for hit in hits] == [(id_of(1), id_of(9))]
    assert [hit.id for hit in (await service.call(PERSON, "recall", api.RecallRequest(query="wubbaflintok"))).hits] == [
        id_of(9)
    ]
    assert set(asked) == {"embed", "sweep", "toc"}
    await received(service, [op(4, OpType.FORGET, ops.forget_body(id_of(1)))])
    assert (await service.call(PERSON, "recall", api.RecallRequest(query="quvexzoldrun", kinds=("memory",)))).hits == ()


async def test_a_forget_of_another_device_leaves_no_byte_in_any_file(opened: Opener, store_path: Path) -> None:
    words = "quvexzoldrun gondolas"
    log = [
        op(1, OpType.EVENT, ops.event_body(event_of(id_of(9), f"I like {words}"))),
        op(2, OpType.MEMORY, ops.memory_body(id_of(1), {Field.CONTENT: f"likes {words}", Field.CREATED_AT: NOW})),
        op(3, OpType.CLAIM, ops.claim_body(id_of(1), "quvexzoldrun")),
        op(4, OpType.GRIP, ops.grip_body(replace(grip_of(7, id_of(2), id_of(9)), excerpt=words))),
        op(5, OpType.MEMORY, ops.memory_body(id_of(2), {Field.CONTENT: "stays", Field.CREATED_AT: NOW})),
        op(6, OpType.MEMORY, {1: ulid_bytes(id_of(1)), 2: {1: [words]}}),
    ]
    forgets = [op(7 + n, OpType.FORGET, ops.forget_body(gone)) for n, gone in enumerate((id_of(9), id_of(1), id_of(7)))]

    def holders() -> list[str]:
        return [
            path.name for path in store_path.parent.iterdir() if path.is_file() and b"vexzoldrun" in path.read_bytes()
        ]

    async with opened() as service:
        await received(service, log)
        (store_path.parent / "memory.db.index").write_bytes(b"a copy with quvexzoldrun")
        assert holders()

        result = await received(service, forgets)
        await service._maintainer.erasures()

        assert result.erased
        assert holders() == []
        assert (await service.call(PERSON, "get", api.RefRequest(ref=id_of(2)))).memory.content == "stays"
    assert holders() == []


async def test_a_person_lists_conflicts_and_keeps_one_of_the_versions(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="begin", name="boat"))
    memory_id = entry.memory.id
    here = await said_by(service.store)
    base = (ops.decode(here[0][1] or b"", device="", seq=1).hlc, service.store.device)
    body = ops.memory_body(memory_id, {Field.CONTENT: "theirs"}, {Field.CONTENT: (int(base[0]), base[1])})
    await service.call(PERSON, "update", api.UpdateRequest(ref="boat", content="ours"))
    at = int(millis_of(Hlc(service.store.last_hlc)))
    result = await received(service, [op(1, OpType.MEMORY, body, at=at - 60_000)])

    (one,) = (await service.call(PERSON, "conflicts", api.ConflictsRequest())).conflicts

    assert result.conflicts == 1
    assert (one.memory_id, one.name, one.field, one.shown) == (memory_id, "boat", "content", "ours")
    assert [(other.value, other.device) for other in one.others] == [("theirs", "ab" * 16)]
    request = api.ResolveRequest(ref="boat", field="content", version=one.others[0].version)
    assert (await service.call(PERSON, "resolve", request)).memory.content == "theirs"
    assert (await service.call(PERSON, "conflicts", api.ConflictsRequest())).conflicts == ()
    with pytest.raises(NotFoundError):
        await service.call(PERSON, "resolve", request)


async def test_writing_a_field_again_settles_its_conflict(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="ours", name="boat"))
    body = ops.memory_body(entry.memory.id, {Field.CONTENT: "theirs"})
    await received(service, [op(1, OpType.MEMORY, body)])
    assert len((await service.call(PERSON, "conflicts", api.ConflictsRequest())).conflicts) == 1

    await service.call(PERSON, "update", api.UpdateRequest(ref="boat", content="both"))

    assert (await service.call(PERSON, "conflicts", api.ConflictsRequest())).conflicts == ()


# --- copies of the store ------------------------------------------------------------------------------------------------


def indexed(index: Index) -> dict[str, Any]:
    """Return what an index holds, told without the numbers of its rows."""
    events = {id_: row for id_, row in index.events.rows.items() if index.events["alive"][row]}
    memories = {id_: row for id_, row in index.memories.rows.items() if index.memories["alive"][row]}
    names = {row: id_ for id_, row in events.items()}
    owners = {row: id_ for id_, row in memories.items()}
    linked, sources = index.links["memory"].pairs()
    following = {id_: names.get(int(index.events["next"][row])) for id_, row in events.items()}
    words = set(text.analyse("word said text first b 2 " + " ".join(f"word{n}" for n in range(10))))
    return {
        "events": following,
        "memories": {id_: float(index.memories["salience"][row]) for id_, row in memories.items()},
        "links": {
            (owners[memory], names[event])
            for memory, event in zip(linked.tolist(), sources.tolist(), strict=True)
            if memory in owners and event in names
        },
        "found": {
            word: sorted(
                hit.id
                for hit in rank(
                    index,
                    Query(text=word, tokens=(word,)),
                    Filters(kinds=frozenset({"memory", "event"})),
                    DEFAULT.recall,
                    limit=50,
                    mode="keyword",
                    neighbours=0,
                ).hits
            )
            for word in words
        },
    }


async def fresh_index(store: Store) -> Index:
    index = Index()
    async for events in store.pages(lambda q, after: q.documents.events(after)):
        index.load(events)
    async for memories in store.pages(lambda q, after: q.documents.memories(after)):
        index.load(memories)
    index.loaded()
    return index


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
async def test_an_index_that_follows_or_is_loaded_from_a_saved_copy_holds_what_the_store_holds(
    seed: int, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_maintainer, "SAVED_FROM", 1)
    monkeypatch.setattr(index_maintainer, "SAVED_SHARE", 1_000_000)
    rng = random.Random(seed)
    clock, far = Clock(), Clock(NOW + 7)
    loaded = 0
    async with devices(1, [far]) as (there,):
        for _ in range(12):
            drawn = rng.randbytes
            async with opened(now=clock, entropy=drawn) as service:
                loaded += (await service._maintainer._saved()) is not None
                stores, clocks = [service.store, there], [clock, far]
                await service.indexed()
                assert indexed(service._maintainer.index) == indexed(await fresh_index(service.store))
                kinds = [kind for kind in KINDS if not (kind.startswith(("forget", "blank")) and rng.random() < 0.8)]
                for _ in range(8):
                    step_ = (
                        rng.randrange(2),
                        rng.choice(kinds),
                        rng.randrange(10),
                        rng.randrange(10),
                        rng.randrange(9),
                    )
                    await lived(stores, clocks, [step_])
                log = await said_by(there)
                await take(service.store, there.device, rng.sample(log, rng.randrange(len(log) + 1)))
                await service.indexed()
                assert indexed(service._maintainer.index) == indexed(await fresh_index(service.store))
    assert loaded  # a saved copy was of use at least once


async def test_a_filled_gap_is_noticed_by_whoever_keeps_a_copy_and_an_end_is_followed() -> None:
    claims = [op(n, OpType.CLAIM, ops.claim_body(id_of(n), f"n{n}")) for n in range(1, 6)]
    async with devices(1) as (here,):
        await remember(here, id_of(1), "x", name="mine")
        await take(here, "ab" * 16, claims[2:3])
        start = await here.position()
        assert await here.read(lambda q: q.ops.changed_since(start, here.device)) == []

        await take(here, "ab" * 16, claims[3:4])
        assert await here.read(lambda q: q.ops.changed_since(start, here.device)) == [id_of(4)]
        await edit(here, id_of(1), content="y")
        assert set(await here.read(lambda q: q.ops.changed_since(start, here.device)) or ()) == {
            id_of(1),
            id_of(4),
        }

        await take(here, "ab" * 16, claims[:1])
        assert await here.read(lambda q: q.ops.changed_since(start, here.device)) is None
        again = await here.position()
        assert await here.read(lambda q: q.ops.changed_since(again, here.device)) == []
        await here.write(lambda tx: tx.incarnation.renew("ee" * 16, 1))
        assert await here.read(lambda q: q.ops.changed_since(again, here.device)) is None


async def test_a_claim_from_elsewhere_tells_a_copy_of_the_memory_that_lost_its_name() -> None:
    async with devices(1) as (here,):
        await remember(here, id_of(1), "x", name="a")
        start = await here.position()
        earlier = op(1, OpType.CLAIM, ops.claim_body(id_of(2), "a"), at=NOW - 9)
        there = op(2, OpType.MEMORY, ops.memory_body(id_of(2), {1: "y", 14: NOW, 16: "a"}), at=NOW - 9)  # type: ignore[dict-item]

        await take(here, "ab" * 16, [earlier, there])

        assert (await here.read(lambda q: q.memories.get(id_of(1)))).name == "a~2"
        assert set(await here.read(lambda q: q.ops.changed_since(start, here.device)) or ()) == {
            id_of(1),
            id_of(2),
        }


async def test_a_store_of_the_first_schema_shows_the_same_after_its_migration(tmp_path: Path) -> None:
    old = tmp_path / "old" / "1.db"
    old.parent.mkdir()
    async with device(tmp_path, 1) as store:
        for n in range(1, 6):
            await remember(store, id_of(n), f"text {n}", name=f"name {n}")
            event_id = await say(store, f"line {n}", session=f"s{n % 2}", ts=NOW + n % 3)
            await bind(store, id_of(n), grips=(grip_of(20 + n, id_of(n), event_id),))
        await store.write(lambda tx: tx.forget.event(event_id))
        await store.write(lambda tx: tx.forget.memory(id_of(2)))
        await recall(store, id_of(1), 3, at=NOW)
        digest = await store.read(lambda q: q.digests.state())
        tables = {
            "event": f"n, {EVENT_COLUMNS}, erased",
            "op": "device, seq, op_id, hlc, type, entity, body",
            "tombstone": "id, hlc",
            "memory": f"n, {MEMORY_COLUMNS.removesuffix(', archived_at, review')}",
            "name": "name, memory_id, created_at, canonical",
            "grip": GRIP_COLUMNS,
            "access": "memory_id, total, last, logged",
            "memory_fts": "rowid, tokens",
        }
        rows_of = {
            name: await store.read(lambda q: q.fetch(f"select {columns} from {name}"))
            for name, columns in tables.items()
        }
        seed = {"store_id": store.store_id, "device": store.device, "created": "1"}
    file.prepare(old, file.migrations()[:1], lambda: seed)
    with closing(driver.connect(str(old))) as connection:
        for name, found in rows_of.items():
            marks = ", ".join("?" * len(found[0]))
            connection.executemany(f"insert into {name} ({tables[name]}) values ({marks})", found)
        connection.commit()

    async with device(old.parent, 1) as store:
        assert await store.read(lambda q: q.digests.state()) == digest
        assert store.last_seq == len(await said_by(store))
        assert await store.read(lambda q: q.events.undistilled_sessions()) == [("s1", 2), ("s0", 2)]


def test_the_command_line_lists_conflicts_and_settles_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")

    def run(*line: str) -> Any:
        assert main([*line]) == 0
        return json.loads(capsys.readouterr().out)

    memory_id = run("add", "ours", "--name", "boat")["memory"]["id"]
    assert run("conflicts") == {"conflicts": [], "doubts": []}
    (path,) = tmp_path.rglob("memory.db")

    async def hear() -> None:
        store = await Store.open(path, now=Clock(), entropy=random.Random(1).randbytes)
        await take(
            store, "ab" * 16, [op(1, OpType.MEMORY, ops.memory_body(memory_id, {Field.CONTENT: "theirs\x1b[2J"}))]
        )
        await store.close()

    asyncio.run(hear())
    (found,) = run("conflicts")["conflicts"]
    values = {found["shown"], *(other["value"] for other in found["others"])}
    assert (found["memory_id"], found["field"], values) == (memory_id, "content", {"ours", "theirs\x1b[2J"})
    answer = api.ConflictsResponse(conflicts=(msgspec.convert(found, api.Conflict),))
    console = Console(file=io.StringIO(), width=200)
    console.print(conflicts.conflicts(answer, {}))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert found["others"][0]["version"] in printed
    assert "\x1b" not in printed

    assert run("conflicts", "--keep", "boat", "content", found["others"][0]["version"]) == {
        "conflicts": [],
        "doubts": [],
    }
    assert run("get", "boat")["memory"]["content"] == found["others"][0]["value"]
    assert main(["conflicts", "--keep", "boat", "content", "shown"]) == 3


@pytest.mark.slow
async def test_adopting_a_long_log_holds_little_of_it_in_memory() -> None:
    """Ops with a field of a newer version are kept as they came: here 24 MB of them."""
    async with devices(2) as (here, there):
        event_id = await say(there, "x" * 40_000)
        [(_, data)] = await said_by(there)
        assert data is not None
        first = ops.decode(data, device=there.device, seq=1)
        run = []
        for n in range(600):
            body = {**first.body, 1: ulid_bytes(id_of(n)), 8: f"key {n}", 99: "newer"}
            run.append((n + 1, ops.encode(replace(first, body=body))))
        await take(here, there.device, run)

        tracemalloc.start()
        try:
            adopted = await here.write(lambda tx: tx.incarnation.adopt())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert adopted == 600
        assert peak < 12_000_000
        own = await said_by(here)
        assert [seq for seq, _ in own] == list(range(1, 601))
        assert {ops.decode(data, device="", seq=0).body[99] for _, data in own if data} == {"newer"}
        assert event_id
