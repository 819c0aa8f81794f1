"""Events of a snapshot are made ready column by column, and are what each makes alone; several runs are asked at once."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.store import Store, event_columns, sqlite
from scrubjay.store.preparation import Child, Preparation
from scrubjay.store.received import ready, ready_chunk
from scrubjay_shared import ops, snapshot
from scrubjay_shared.clock import Millis, ulid, ulid_bytes, ulid_text, uuid7
from scrubjay_shared.errors import MalformedError
from scrubjay_shared.ops import OpType
from scrubjay_shared.snapshot import Chunk, ImagedEvent

pytestmark = pytest.mark.anyio

NOW = Millis(1_800_000_000_000)
DEVICE = b"\x0b" * 16

ODD: list[dict[str, Any]] = [
    {"cause": f"run:{ulid(NOW, bytes(10))}"},
    {"cause": "nobody"},
    {"type": "of a newer version"},
    {"type": "session_start"},
    {"role": "of a newer version"},
    {"trust": "of a newer version"},
    {"role": "tool", "type": "tool_result"},  # its trust is above its role
    {"role": "tool", "type": "tool_result", "trust": "external"},
    {"agent": "a\0b"},
    {"session_id": "\0"},
    {"dedupe_key": "k\0"},
    {"project": "\0"},
    {"project": ""},
    {"project": "acorns", "utc_offset": -60, "metadata": {"n": [1, None, {"x": 0.5}], "speaker": "Mel"}},
    {"metadata": {"speaker": 1}},
    {"metadata": {"x": b"no JSON"}},
    {"metadata": {"x": float("inf")}},
    {"metadata": {}},
    {"utc_offset": 1_440},
    {"utc_offset": -1_440},
    {"ts": -1},
    {"ts": 1 << 50},
    {"ts": 0},
    {"hlc": 0},
    {"hlc": 1 << 63},
    {"text": ""},
    {"text": "東京 is where? \0 \x01"},
    {"text": "acorns " * 4_000 + "?"},
]
"""What can be the matter with an event, and what only looks as if something were."""


def imaged(seq: int, odd: dict[str, Any]) -> ImagedEvent:
    """Return an event of a snapshot with something odd about it, or nothing."""
    plain = {
        "seq": seq,
        "op_id": uuid7(Millis(NOW + seq), seq.to_bytes(10, "big")),
        "hlc": (int(NOW) + seq) << 16,
        "cause": None,
        "entity": ulid_bytes(ulid(Millis(NOW + seq), seq.to_bytes(10, "big"))),
        "agent": "test",
        "session_id": f"s{seq % 3}",
        "type": "user_message",
        "role": "user",
        "text": f"a jay hides acorn {seq}",
        "ts": int(NOW) + seq,
        "dedupe_key": f"k{seq}",
        "project": None,
        "utc_offset": 0,
        "trust": "user",
        "metadata": None,
    }
    return ImagedEvent(**(plain | odd))


def chunk_of(odd: list[dict[str, Any]]) -> Chunk:
    """Return a chunk with an event for each, as it is read again."""
    made = Chunk(DEVICE, [imaged(seq, one) for seq, one in enumerate(odd, 1)], [])
    return snapshot.decode_chunk(snapshot.encode_chunk(made))


@given(st.lists(st.one_of(st.just({}), st.sampled_from(ODD)), max_size=12))
@settings(max_examples=200)
def test_what_a_chunk_says_of_an_event_does_not_depend_on_what_is_beside_it(odd: list[dict[str, Any]]) -> None:
    chunk = chunk_of(odd)

    together = ready_chunk(chunk)
    alone = [event for one in chunk.events for event in ready_chunk(Chunk(DEVICE, [one], [])).events]

    assert together.events == alone


async def test_where_a_run_has_fewer_events_than_it_looked_the_next_are_numbered_as_they_arrive() -> None:
    preparation = Preparation()
    payload = snapshot.encode_chunk(chunk_of([{}, {"type": "of a newer version"}, {}]))
    try:
        preparation.follow(10)
        first = await preparation.ready_chunk(payload)
        second = await preparation.ready_chunk(payload)
        assert [first.numbered, second.numbered] == [11, 13]
    finally:
        await preparation.close()


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_event_of_a_snapshot_is_ready_as_its_op_is(odd: dict[str, Any]) -> None:
    (event,) = chunk_of([odd]).events
    body = ops.caused(event.body, event.cause)
    data = ops.encode_wire((int(OpType.EVENT), ops.VERSION, event.op_id, event.hlc, body))
    by_lane = ready(DEVICE.hex(), [(1, data)], 7)

    by_snapshot = ready_chunk(Chunk(DEVICE, [event], []), 7)

    if event.cause == "nobody" or by_lane.refused:
        assert not by_snapshot.count
    else:
        assert by_snapshot == by_lane


def test_a_chunk_of_many_blocks_is_numbered_through() -> None:
    chunk = chunk_of([ODD[13 * (seq % 2)] if seq % 5 == 0 else {} for seq in range(1, 1_301)])
    data = [
        (one.seq, ops.encode_event_body(ops.caused(one.body, one.cause), one.op_id, one.hlc)) for one in chunk.events
    ]

    assert ready_chunk(chunk, 41) == ready(DEVICE.hex(), data, 41)


@given(st.lists(st.binary(min_size=16, max_size=16)))
def test_ids_become_texts_at_once_as_each_does(ids: list[bytes]) -> None:
    assert event_columns.ulid_texts(ids) == [ulid_text(one) for one in ids]


# --- several runs at once ---------------------------------------------------------------------------------------------


async def test_runs_that_are_asked_for_at_once_come_in_order_and_are_numbered_one_after_the_other() -> None:
    preparation = Preparation()
    chunks = [chunk_of([{}] * count) for count in (3, 700, 1, 40, 2)]
    payloads = [snapshot.encode_chunk(one) for one in chunks]
    firsts = list(accumulate((len(one.events) for one in chunks), initial=101))[:-1]
    try:
        preparation.follow(100)
        made = await asyncio.gather(*map(preparation.ready_chunk, payloads))
        assert made == [ready_chunk(one, first) for one, first in zip(chunks, firsts, strict=True)]
        for one in made:
            preparation.settled(one)
        preparation.follow(900)  # 54 events of somebody else came between
        assert (await preparation.ready_chunk(payloads[0])).numbered == 901
    finally:
        await preparation.close()


async def test_a_child_that_dies_with_runs_to_answer_is_done_without_and_another_goes_on() -> None:
    preparation = Preparation(children=2)
    chunk = chunk_of([{}] * 900)
    payload = snapshot.encode_chunk(chunk)
    try:
        preparation.follow(0)
        await asyncio.gather(*(preparation.ready_chunk(payload) for _ in preparation._children))
        child = preparation._children[0]
        assert child is not None
        asked = [asyncio.create_task(preparation.ready_chunk(payload)) for _ in range(4)]
        await asyncio.sleep(0)
        child.process.kill()
        assert [one.numbered for one in await asyncio.gather(*asked)] == [1_801, 2_701, 3_601, 4_501]
        again = await asyncio.gather(preparation.ready_chunk(payload), preparation.ready_chunk(payload))
        assert again == [ready_chunk(chunk, 5_401), ready_chunk(chunk, 6_301)]
        assert preparation._children[0] not in {None, child}
    finally:
        await preparation.close()


async def test_a_chunk_that_is_none_is_refused_and_those_beside_it_are_made_ready() -> None:
    preparation = Preparation()
    chunk = chunk_of([{}] * 5)
    payload = snapshot.encode_chunk(chunk)
    try:
        await preparation.ready_chunk(payload)
        bad = msgspec.msgpack.encode({1: DEVICE, 2: "no list", 3: []})
        one, none, other = await asyncio.gather(
            *map(preparation.ready_chunk, (payload, bad, payload)), return_exceptions=True
        )
        assert one == other == ready_chunk(chunk)
        assert isinstance(none, MalformedError)
    finally:
        await preparation.close()


async def test_closing_does_not_wait_for_runs_that_nobody_will_store() -> None:
    preparation = Preparation()
    payload = snapshot.encode_chunk(chunk_of([{}] * 3_000))
    await preparation.ready_chunk(payload)
    asked = [asyncio.create_task(preparation.ready_chunk(payload)) for _ in range(5)]
    await asyncio.sleep(0.01)
    for one in asked:
        one.cancel()

    async with asyncio.timeout(4):  # before the child would be given up
        await preparation.close()

    assert all(isinstance(one, BaseException) for one in await asyncio.gather(*asked, return_exceptions=True))


async def test_a_process_that_is_being_started_while_all_is_closed_is_ended_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Child] = []
    begun = threading.Event()

    class Slow(Child):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)
            begun.set()
            time.sleep(0.2)

    monkeypatch.setattr("scrubjay.store.preparation.Child", Slow)
    preparation = Preparation(1)
    asked = asyncio.create_task(preparation.ready_chunk(snapshot.encode_chunk(chunk_of([{}]))))
    await asyncio.to_thread(begun.wait, 10)
    asked.cancel()
    await preparation.close()

    assert [child.process.returncode is None for child in started] == [False]


# --- the log of a first reading ---------------------------------------------------------------------------------------


async def test_the_log_goes_into_the_file_less_often_while_much_is_taken_in(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)

    async def pages() -> int:
        return int((await store._writer.outside("pragma wal_autocheckpoint"))[0][0])

    try:
        before = await pages()
        async with store.taking_in():
            during = await pages()
        with pytest.raises(LookupError):
            async with store.taking_in():
                raise LookupError
        assert (before, during, await pages()) == (
            sqlite.CHECKPOINT_PAGES,
            sqlite.FIRST_READING_CHECKPOINT_PAGES,
            sqlite.CHECKPOINT_PAGES,
        )
    finally:
        await store.close()


async def test_a_store_that_is_closed_meanwhile_ends_taking_in_without_a_complaint(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)
    async with store.taking_in():
        await store.close()
