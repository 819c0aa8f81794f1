"""The first day of a machine: what an account holds comes quickly, in any order of mishaps, and nothing else with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import redaction
from scrubjay.ingest import receipt
from scrubjay.ingest.intake import hidden
from scrubjay.policy import DEFAULT
from scrubjay.redaction import blocks, pipeline
from scrubjay.store import Store, check, checksums, damage, tables
from scrubjay.store.preparation import Preparation
from scrubjay.store.received import EVENT_VALUES, TIME, ready
from scrubjay.store.session_counts import place_of, session_counts
from scrubjay_bench import bootstrap, clouds, daemons
from scrubjay_bench.figures import Rounds
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis, ulid, ulid_bytes, uuid7
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.ops import OpType
from sync_devices import Device, World, world_at

pytestmark = pytest.mark.anyio

NOW = Millis(1_800_000_000_000)
DEVICE, OTHER = "0b" * 16, "0c" * 16


def event_op(
    seq: int, text: str = "a jay hides an acorn", body: Mapping[int, Any] = MappingProxyType({})
) -> tuple[int, bytes]:
    """Return an op of another device that appends an event, with its place."""
    made = {
        ops.ENTITY: ulid_bytes(ulid(Millis(NOW + seq), seq.to_bytes(10, "big"))),
        2: "test",
        3: f"s{seq % 7}",
        4: "user_message",
        5: "user",
        6: text,
        7: int(NOW) + seq,
        8: f"k{seq}",
        11: "user",
        **body,
    }
    op_id = uuid7(Millis(NOW + seq), seq.to_bytes(10, "big"))
    return seq, ops.encode_wire((int(OpType.EVENT), ops.VERSION, op_id, (int(NOW) + seq) << 16, made))


# --- screening a run at once --------------------------------------------------------------------------------------------

SIGNS = [
    "password: hunter2",
    "<private>x</private>",
    "AKIAQ3EGRWZ7XKLM2NPV",
    "4111 1111 1111 1111",
    "Ab1" * 9,
    "İ",
    "Σ",
    "token",
    "&lt;b",
    "e" * 20,
    "e" * 19 + "\x1c" + "e" * 19,
    "a://b",
    "\n",
]


@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(SIGNS), st.just("y" * 3_000)), max_size=40))
@settings(max_examples=60)
def test_what_a_run_calls_harmless_is_so_for_each_alone(texts: list[str]) -> None:
    for text, harmless in zip(texts, redaction.harmless(texts), strict=True):
        signs = len(text) > 2_048 or blocks.may_hold_tag(text) or pipeline._holds_sign(text)
        assert harmless == redaction.harmless([text])[0] == (not signs)
        if harmless:
            assert redaction.clean(text).text == text


def test_a_secret_among_many_harmless_texts_is_taken_out() -> None:
    wires = [ops.read(event_op(seq)[1], device=DEVICE, seq=seq) for seq in range(1, 40)]
    secret = ops.read(event_op(40, "my key is AKIA" + "Q3EGRWZ7XKLM2NPV")[1], device=DEVICE, seq=40)
    run = [*wires[:20], None, secret, *wires[20:]]

    harmless = receipt.harmless_words(run)

    assert [at for at, one in enumerate(harmless) if not one] == [20, 21]
    assert receipt.received(secret, harmless=False)[4][6] == "my key is ********************"


@given(st.from_regex(receipt._PLAIN, fullmatch=True))
def test_a_key_that_is_one_plain_word_is_what_looking_at_it_leaves(key: str) -> None:
    assert hidden(key, DEFAULT.redact) == key


# --- rows that bring their check sums ---------------------------------------------------------------------------------


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    made = await Store.open(tmp_path / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)
    yield made
    await made.close()


async def test_a_large_run_of_events_carries_check_sums_as_single_ones_do(store: Store) -> None:
    run = [event_op(seq) for seq in range(1, 601)]

    await store.write(lambda tx: tx.ingest.receive(DEVICE, run[:590]))
    for one in run[590:]:
        await store.write(lambda tx, one=one: tx.ingest.receive(DEVICE, [one]))

    unsummed = await store.read(
        lambda q: [
            q.fetch(f"select count(*) from {table} where crc is null")[0][0] for table in ("event", "op", "unlearned")
        ]
    )
    assert unsummed == [0, 0, 0]
    await store.checkpoint(truncate=True)
    assert not list(damage.find(store.path, lambda *_: None))


async def test_what_fails_in_the_middle_leaves_the_triggers_that_add_check_sums(store: Store) -> None:
    def failing(tx: Any) -> None:
        connection = tx._context.connection
        connection.execute("savepoint here")
        with pytest.raises(LookupError), checksums.brought_along(connection, ("unlearned",)):
            raise LookupError
        connection.execute("rollback to here")
        connection.execute("insert into unlearned (n) values (7)")

    await store.write(failing)

    assert (await store.read(lambda q: q.fetch("select crc from unlearned")))[0][0] == checksums.checksum(7)


# --- ops made ready in another process --------------------------------------------------------------------------------


def mixed_run() -> list[tuple[int, bytes | None]]:
    """Return a run with everything that can come: events plain and with all fields, others, refused, erased, unread."""
    whole = {9: "proj", 10: 60, 12: {"speaker": "Mel", "n": 1}, ops.CAUSE: f"run:{ulid(NOW, bytes(10))}"}
    memory = ulid_bytes(ulid(NOW, b"m" * 10))
    fields = {int(ops.Field.CONTENT): "acorns are under the oak", int(ops.Field.CREATED_AT): int(NOW)}
    write = ops.encode_wire(
        (int(OpType.MEMORY), ops.VERSION, uuid7(NOW, b"o" * 10), int(NOW) << 16, {1: memory, 2: fields})
    )
    return [
        event_op(1),
        event_op(2, "whole", whole),
        event_op(3, "its trust is above its role", {5: "tool", 4: "tool_result"}),
        event_op(4, "my key is AKIA" + "Q3EGRWZ7XKLM2NPV"),
        (5, write),
        (6, None),
        (7, b"\xc1 no op at all"),
        (8, ops.encode_wire((99, 1, uuid7(NOW, b"p" * 10), 5, {1: memory}))),
    ]


async def test_another_process_makes_of_a_run_what_this_one_does() -> None:
    preparation = Preparation()
    try:
        assert await preparation.ready(DEVICE, mixed_run()) == ready(DEVICE, mixed_run())
        assert await preparation.ready(DEVICE, []) == ready(DEVICE, [])
    finally:
        await preparation.close()


async def test_a_process_that_is_killed_is_done_without() -> None:
    preparation = Preparation()
    try:
        await preparation.start()
        for child in preparation._children:
            assert child is not None
            child.process.kill()
            child.process.wait()
        assert await preparation.ready(DEVICE, mixed_run()) == ready(DEVICE, mixed_run())
    finally:
        await preparation.close()


async def test_who_stops_waiting_for_a_run_leaves_the_next_one_its_own_answer() -> None:
    preparation = Preparation()
    long = [event_op(number, "acorns under the oak " * 50) for number in range(2_000)]
    try:
        await preparation.start()
        for seconds in (0, 0.001, 0.01, 0.03, 0.1):  # not sent yet, sent in part, being made
            given_up = asyncio.create_task(preparation.ready(OTHER, long))
            await asyncio.sleep(seconds)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            assert await preparation.ready(DEVICE, mixed_run()) == ready(DEVICE, mixed_run())
    finally:
        await preparation.close()


async def test_ops_made_ready_are_stored_as_those_that_were_not(tmp_path: Path) -> None:
    found = []
    for name, number in (("plain", 0), ("ready", 0), ("numbered", 1), ("numbered otherwise", 7), ("twice", 1)):
        made = await Store.open(tmp_path / name / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)
        run = ready(DEVICE, mixed_run(), number)
        if name in {"plain", "twice"}:
            await made.write(lambda tx: tx.ingest.receive(DEVICE, mixed_run()))
        if name != "plain":
            received = await made.write(lambda tx, run=run: tx.ingest.receive_ready(run))
            assert received.duplicates == (len(mixed_run()) if name == "twice" else 0)
        found.append(
            await made.read(
                lambda q: [
                    *(q.fetch(shown) for shown in tables.SHOWN),
                    q.fetch("select device, seq, op_id, hlc, type, entity, body, cause, crc from op order by 1, 2"),
                    q.fetch("select device, seq, entity, op, why from parked order by 1, 2"),
                    q.fetch("select * from event order by n"),
                    q.fetch("select * from unlearned order by n"),
                ]
            )
        )
        assert sorted(one.seq for one in await made.read(lambda q: q.ops.between(DEVICE, 1, 8))) == list(range(1, 9))
        await made.close()
        assert not list(damage.find(made.path, lambda *_: None))

    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("number", [0, 1])
async def test_one_event_that_cannot_be_stored_keeps_no_other_of_its_run_out(store: Store, number: int) -> None:
    run = ready(DEVICE, [event_op(seq) for seq in range(1, 301)], number)
    run.rows[7 * EVENT_VALUES + TIME] = None  # the table refuses it

    received = await store.write(lambda tx: tx.ingest.receive_ready(run))

    assert (received.applied, received.quarantined) == (299, 1)
    assert not list(damage.find(store.path, lambda *_: None))


async def test_a_disk_that_is_full_within_a_run_keeps_none_of_it_and_all_that_was_written_beside_it(
    store: Store,
) -> None:
    run = ready(DEVICE, [event_op(seq, "a jay hides an acorn " * 20) for seq in range(1, 1_001)], 1)

    def leave(pages: int, tx: Any) -> None:
        most = tx.queries.fetch("pragma page_count")[0][0] + pages if pages else 1 << 30
        tx.queries.fetch(f"pragma max_page_count = {most}")

    await store.write(partial(leave, 40))
    refused, _ = await asyncio.gather(
        store.write(lambda tx: tx.ingest.receive_ready(run)),
        store.write(lambda tx: tx.set_meta("beside", "here")),
        return_exceptions=True,
    )
    assert isinstance(refused, UnavailableError)
    assert await store.read(lambda q: (q.meta("beside"), q.events.last())) == ("here", 0)

    await store.write(partial(leave, 0))
    assert (await store.write(lambda tx: tx.ingest.receive_ready(run))).applied == 1_000
    await store.checkpoint(truncate=True)
    assert not list(damage.find(store.path, lambda *_: None))


@given(
    st.lists(st.tuples(st.integers(1, 1 << 62), st.integers(0, 3), st.sampled_from("ab"), st.booleans()), min_size=1)
)
def test_a_session_begins_and_is_named_at_the_first_of_its_events_in_the_order_of_places(
    said: list[tuple[int, int, str, bool]],
) -> None:
    events = [
        (seq, (event_id, "", "agent", "s", None, ts, 0, "user_message" if titles else "tool_result", "", f"{seq} {ts}"))
        for seq, ts, event_id, titles in said
    ]

    (count,) = session_counts(events)

    places = [(place_of(seq, row), row[5], row[9], row[7] == "user_message") for seq, row in events]
    assert count.first_at == min(place for place, ts, _, _ in places if ts == count.start)
    titled = min(((place, text) for place, _, text, titles in places if titles), default=("", ""))
    assert (count.title_at, count.title) == titled


async def test_what_a_run_was_made_ready_for_counts_only_while_it_holds(tmp_path: Path) -> None:
    """What is here, forgotten, partly erased or numbered by another meanwhile is taken in as if nothing were ready."""
    op = partial(event_op, body={9: "proj"})
    entity = [ulid(Millis(NOW + seq), seq.to_bytes(10, "big")) for seq in range(9)]
    forget = ops.encode_wire(
        (int(OpType.FORGET), ops.VERSION, uuid7(NOW, b"f" * 10), 2, {ops.ENTITY: ulid_bytes(entity[3])})
    )
    found = []
    for number in (0, 1):
        made = await Store.open(tmp_path / str(number) / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)
        runs = [
            ready(DEVICE, [op(1), op(2)], number),
            ready(OTHER, [op(1, "a jay hides an acorn twice"), op(4), (9, forget)], 3 * number),  # its twin
            ready(DEVICE, [op(3), op(5), op(6)], 4 * number),  # forgotten
            ready(DEVICE, [op(7)], number),  # its number is taken
            ready(DEVICE, [op(8)], 8 * number),
        ]
        for run in runs:
            await made.write(lambda tx, run=run: tx.ingest.receive_ready(run))
        found.append(await made.read(lambda q: [q.fetch(shown) for shown in tables.SHOWN]))
        assert not await made.read(lambda q, gone=entity[3]: q.events.by_id([gone]))
        await made.close()
        assert not list(damage.find(made.path, lambda *_: None))

    assert found[0] == found[1]


async def test_a_child_numbers_events_as_they_will_arrive() -> None:
    preparation = Preparation()
    try:
        preparation.follow(40)
        first = await preparation.ready(DEVICE, [event_op(1), event_op(2)])
        assert first == ready(DEVICE, [event_op(1), event_op(2)], 41)
        second = await preparation.ready(DEVICE, [event_op(3)])
        assert second.numbered == 43  # behind the one that is not stored yet
        preparation.settled(first)
        preparation.follow(50)  # somebody else wrote meanwhile
        assert (await preparation.ready(DEVICE, [event_op(4)])).numbered == 52
        preparation.follow(None)
        assert (await preparation.ready(DEVICE, [event_op(5)])).numbered == 0
    finally:
        await preparation.close()


# --- a first reading that is interrupted ------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def long_history(one: Device, rounds: int) -> None:
    for number in range(rounds):
        await one.say(*(f"acorn {number} {place}" for place in range(520)))
        await one.sync()


@pytest.mark.parametrize("pages", [1, 3])
@pytest.mark.slow
async def test_a_first_reading_that_is_cut_goes_on_where_it_was_and_doubles_nothing(world: World, pages: int) -> None:
    one = await world.device()
    await long_history(one, 6)
    forgotten = await one.note("not to come back")
    await one.sync()
    await one.forget(forgotten)
    await one.sync()
    two = await world.device()
    asked = 0

    async def cut(request: httpx2.Request, answer: Any) -> httpx2.Response:
        nonlocal asked
        asked += "/v1/lanes/" in request.url.path
        if asked > pages:
            raise httpx2.ConnectError("gone")
        return await answer()

    two.network.fault = cut
    with pytest.raises(UnavailableError):
        await two.sync()
    partly = await two.store.read(lambda q: q.fetch("select max(text), count(*) from event"))
    await two.reopen()
    two.network.fault = None
    await world.settle()

    assert partly[0][1] < 6 * 520
    assert pages == 1 or "acorn 5" in partly[0][0], "the newest comes first"
    assert (await two.store.read(lambda q: q.fetch("select count(*) from event")))[0][0] == 6 * 520
    assert await two.digest() == await one.digest()
    assert await two.contents() == []
    assert (await two.store.read(lambda q: q.fetch("select count(*) from event where crc is null")))[0][0] == 0


@pytest.mark.slow
async def test_a_first_reading_that_is_ended_leaves_no_process(world: World) -> None:
    one = await world.device()
    await long_history(one, 6)
    two = await world.device()
    before = (
        psutil.Process().children()
    )  # helpers of the first device, that end when they have been idle for long enough

    def begun() -> list[psutil.Process]:
        return [child for child in psutil.Process().children() if child not in before]

    async def ended(_: httpx2.Request, answer: Any) -> httpx2.Response:
        if begun():
            asyncio.get_running_loop().call_soon(reading.cancel)
        return await answer()

    two.network.fault = ended
    reading = asyncio.create_task(two.sync())
    with pytest.raises(asyncio.CancelledError):
        await reading
    two.network.fault = None

    assert begun() == []
    await world.settle()
    assert begun() == []
    assert await two.digest() == await one.digest()


# --- kill -9 ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_daemon_killed_again_and_again_while_it_joins_ends_with_everything_once(tmp_path: Path) -> None:
    events = 40_000
    newest = bootstrap._newest_words(events)
    first = bootstrap.stored(tmp_path / "keep", events)
    with (
        daemons.scratch(None) as folder,
        clouds.running(folder / "cloud", unlimited=True) as service,
        clouds.keys_in_files(),
    ):
        bootstrap._upload(Rounds(), first, folder / "first", service, events)
        home, kills, there = folder / "second", 0, 0
        while there < events:
            with daemons.serving(home, models_dir=tmp_path, model="none") as daemon, daemon.client() as client:
                if not kills:
                    bootstrap.log_in(client, service.origin, "second")
                    bootstrap.sync(client, "recover", {"code": bootstrap.CODE.text})
                began, found = there, False
                while there < events and (kills >= 4 or not found or there <= began):
                    there = int(client.call("GET", "/v1/stats")["events"])
                    found = bool(client.call("POST", "/v1/recall", {"query": newest, "mode": "keyword"})["hits"])
                if there < events:
                    children = daemon.process.children()
                    daemon.process.kill()
                    daemon.process.wait()
                    psutil.wait_procs(children, timeout=10)
                    assert not any(child.is_running() for child in children), "the other process outlived the daemon"
                    kills += 1
        assert kills >= 2
        path = daemon.settings.store_path
        assert check(path) == []
        assert not list(damage.find(path, lambda *_: None))
        with closing(driver.connect(f"file:{path}?mode=ro", uri=True)) as store:
            assert store.execute("select count(*), count(distinct entity) from op").fetchone() == (events, events)
            assert store.execute("select sum(events), count(*) from session").fetchone()[0] == events
            assert store.execute("select count(*) from event where n in (select n from unlearned)").fetchone() == (
                events,
            )
