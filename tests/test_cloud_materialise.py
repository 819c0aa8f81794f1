"""What the server makes of a searchable scope's lanes is what devices make of them, on both databases."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud_searching import (
    Searching,
    ask,
    kept,
    searching_world,
    shown,
    team,
    view_of,
    write,
    write_all,
)
from quick_disk import quick_folder
from scrubjay.policy import DEFAULT as LOCAL
from scrubjay.store import rows as local_rows
from scrubjay_cloud import materialise
from scrubjay_cloud.policy import DEFAULT
from scrubjay_shared import envelope, ops, segment
from scrubjay_shared.clock import ulid_text
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Op
from scrubjay_sync import packing
from sync_devices import Device

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where devices keep their stores: in memory, where the system can."""
    with tempfile.TemporaryDirectory(prefix="sj-search-", dir=quick_folder()) as made:
        yield Path(made)


@pytest.fixture
async def world(cloud_store: str | Path, folder: Path) -> AsyncIterator[Searching]:
    async with searching_world(folder, cloud_store) as made:
        yield made


# --- the same as on devices -------------------------------------------------------------------------------------------


async def test_concurrent_edits_end_with_the_same_view_on_devices_and_server(world: Searching) -> None:
    first, second = await world.device(), await world.device()
    scope = await team(first)
    await second.sync()
    shared = [await write(first, f"draft {n}") for n in range(6)]
    await world.settle(first, second)

    for n, one in enumerate(shared):
        await first.edit(one, f"first says {n}")
        await second.edit(one, f"second says {n}")
    await first.forget(shared[0])
    await second.edit(shared[0], "edited after it was forgotten")
    await second.rename(shared[1], "the plan")
    await world.settle(first, second)

    assert await view_of(first, scope) == await view_of(second, scope)
    assert await shown(world) == [tuple(row) for row in await view_of(first, scope)]
    assert len(await shown(world)) == 5


async def test_rows_made_again_from_the_lanes_are_the_rows_that_grew(world: Searching) -> None:
    first, second = await world.device(), await world.device()
    scope = await team(first)
    await second.sync()
    ids = []
    for n in range(16):
        ids.append(await write(first, f"thing {n}", topic=f"topic {n % 4}"))
        if n % 5 == 0:
            await world.settle(first, second, rounds=1)
            await second.edit(ids[n // 2], f"changed {n}")
    await first.forget(ids[3])
    await world.settle(first, second)
    grown = await kept(world)

    account = first.member.account
    await world.database.write(lambda tx: materialise.cleared(tx, account, scope))
    assert await kept(world) == []
    service = world.app.state.service
    small = replace(DEFAULT.search, batch_objects=3, batch_bytes=1, batch_rows=2)
    await materialise.caught_up(world.database, account, scope, policy=small, offload=service.offload)

    assert await kept(world) == grown
    assert grown


async def test_what_other_code_read_and_lanes_that_were_set_back_are_read_again(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    await write(device, "one")
    await device.sync()
    before = await kept(world)
    read = materialise.caught_up
    account, service = device.member.account, world.app.state.service
    for change in ("version = 0", "n = n + 5", "n = n - 1"):
        await world.database.write(lambda tx, c=change: tx.execute(f"update mem_lane set {c}"))
        assert await materialise.behind(world.database) == [(account, scope)]

        await read(world.database, account, scope, policy=DEFAULT.search, offload=service.offload)

        assert await kept(world) == before
        assert await materialise.behind(world.database) == []


_texts = st.text(alphabet="abc \0é東", max_size=6)
_writes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from("wtf"), _texts, st.integers(1, 9)), max_size=25
)


@settings(max_examples=60)
@given(writes=_writes, data=st.data())
def test_folding_in_any_order_and_any_pieces_shows_what_the_merge_core_shows(writes: Any, data: st.DataObject) -> None:
    made = [_op(seq, one) for seq, one in enumerate(writes, 1)]
    order = data.draw(st.permutations(made))
    cut = data.draw(st.integers(0, len(order)))

    state = materialise._shown(ops.fold(order[:cut]))
    packed = materialise._rows(state, _touched(state), DEFAULT.search)
    again = materialise._stored((row.id, row.fields) for row in packed)
    whole = materialise._shown(ops.merge(again, materialise._shown(ops.fold(order[cut:]))))

    expected = ops.view(ops.fold(made)).memories
    got = ops.view(whole).memories
    assert {one: (m.content, m.topic, m.updated_at) for one, m in got.items()} == {
        one: (m.content, m.topic, m.updated_at) for one, m in expected.items()
    }
    rows = {row.id: row for row in materialise._rows(whole, _touched(whole), DEFAULT.search)}
    assert {one for one, row in rows.items() if row.text is not None} == set(expected)
    assert not any("\0" in (row.text or "") for row in rows.values())


def _touched(state: ops.State) -> list[str]:
    return sorted({entity for entity, _ in state.registers} | state.forgotten)


def _op(seq: int, written: tuple[int, int, str, str, int]) -> Op:
    device, memory, what, text, hlc = written
    entity = ulid_text(bytes([memory]) * 16)
    fields = {Field.CONTENT: text, Field.CREATED_AT: 5} if what == "w" else {Field.TOPIC: text.replace("\0", "")}
    body = ops.forget_body(entity) if what == "f" else ops.memory_body(entity, fields)
    kind = ops.OpType.FORGET if what == "f" else ops.OpType.MEMORY
    # One stamp is one write: a device never gives it twice.
    return Op(
        device=bytes([device]).hex() * 16, seq=seq, op_id=bytes(16), hlc=((hlc << 16) | seq), type=int(kind), body=body
    )


def test_the_numbers_are_those_of_the_local_weighted_mode() -> None:
    names = ("cosine_weight", "token_weight", "topic_threshold", "min_topic_filter_size")
    assert {n: getattr(DEFAULT.search, n) for n in names} == {n: getattr(LOCAL.recall, n) for n in names}
    assert DEFAULT.search.indexed_chars == local_rows.MAX_INDEXED_CHARS
    assert DEFAULT.search.text_chars == local_rows.MAX_EMBEDDED_CHARS
    assert {one.name for one in fields(DEFAULT.search)}


# --- what stops nothing -----------------------------------------------------------------------------------------------


async def test_ops_that_cannot_be_read_stop_neither_a_push_nor_those_after_them(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    await write(device, "before")
    strange = msgspec.msgpack.encode((99, 7, bytes(16), 1 << 20, {1: bytes(16)}))
    good = [one async for one in _sent_ops(device)][-1]
    state = await device.sync()
    lane = (await world.rows("select n, tip from lane where scope = ?", scope))[0]

    place = packing.SealContext(
        account=device.member.account,
        scope=scope,
        device=bytes.fromhex(device.store.device),
        n=lane[0] + 1,
        prev=lane[1],
        suite=0,
        epoch=0,
        key=b"",
    )
    entries = [(1000, strange), (1001, b"\xc1"), (1002, None), (1003, good)]
    sent = packing.segments(place, entries, device.engine.context.signer)
    header = replace(
        sent[0].envelope.header, n_from=lane[0] + 2, n_to=lane[0] + 2, prev=sent[0].envelope.link, body_len=5
    )
    broken = envelope.assemble(header, b"zstd?", device.member.sign)
    results = await device.machine.cloud.push([sent[0].envelope, broken])

    assert state.synced
    assert [one.status for one in results] == ["ok", "ok"]
    await world.app.state.service.materialising.idle()
    assert await world.rows("select n from mem_lane where scope = ?", scope) == [(lane[0] + 2,)]
    assert [row[1] for row in await shown(world)] == ["before"]


async def _sent_ops(device: Device) -> AsyncIterator[bytes]:
    for (body,) in await device.store.read(
        lambda q: q.fetch("select body from op where body is not null order by seq")
    ):
        yield bytes(body)


async def test_small_objects_that_unpack_to_much_are_read_a_few_at_a_time(world: Searching) -> None:
    """The attack: a hundred objects of a kilobyte, 32 MiB unpacked each, were unpacked in one go."""
    device = await world.device()
    await team(device)
    service, batches = world.app.state.service, list[int]()
    fold = service.materialising._fold

    async def counted(work: Any) -> Any:
        sizes = [envelope.parse(body) for body in work.args[0].bodies]
        batches.append(sum(segment.unpacked_size(one.body, one.header.flags) for one in sizes))
        return await fold(work)

    service.materialising._fold = counted
    for n in range(12):
        await write(device, f"{n} " + "a" * 200_000)
        await device.sync()
    await service.materialising.idle()
    account, scope = (await world.rows("select account, scope from mem_lane"))[0]
    await world.database.write(lambda tx: materialise.cleared(tx, account, scope))
    batches.clear()
    small = replace(DEFAULT.search, batch_unpacked=600_000)
    await materialise.caught_up(world.database, account, scope, policy=small, offload=counted)

    assert len(await shown(world)) == 12
    assert len(batches) >= 6
    assert max(batches) <= 600_000


@pytest.mark.slow
async def test_a_push_does_not_wait_for_ten_thousand_ops_to_be_read_and_a_question_finds_them(
    world: Searching,
) -> None:
    device = await world.device()
    scope = await team(device)
    await write_all(device, [(f"note {n} of the harbour", None) for n in range(2_000)])
    service = world.app.state.service
    folded: list[int] = []
    fold = service.materialising._fold

    async def counted(work: Any) -> Any:
        folded.append(sum(map(len, work.args[0].bodies)))
        return await fold(work)

    service.materialising._fold = counted
    await device.sync()
    pushed = (await world.rows("select n from lane where scope = ?", scope))[0][0]
    await service.materialising.idle()
    answer = (await ask(device, scope, "note 1999")).answer

    assert max(folded) > DEFAULT.search.small_bytes  # in the process, not in this one
    assert len(answer.hits) > 0
    assert await world.rows("select n from mem_lane where scope = ?", scope) == [(pushed,)]
    assert len(await shown(world)) == 2_000


@pytest.mark.slow
async def test_a_memory_in_parts_is_read_once_all_of_them_are_there(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    noise = b64encode(world.random.randbytes(600_000)).decode()
    long = await write(device, f"needle at the start {noise}")
    await write(device, "short")
    await device.sync()
    count = (await world.rows("select count(*) from object where scope = ?", scope))[0][0]
    grown = await kept(world)

    account, service = device.member.account, world.app.state.service
    await world.database.write(lambda tx: materialise.cleared(tx, account, scope))
    small = replace(DEFAULT.search, batch_objects=2, batch_bytes=1)
    await materialise.caught_up(world.database, account, scope, policy=small, offload=service.offload)

    assert count > 2
    assert (await ask(device, scope, "needle")).answer.hits[0].id == long
    assert await kept(world) == grown
