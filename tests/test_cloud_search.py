"""Searchable scopes, on both databases: real devices write, the server reads what it may, and nothing else."""

from __future__ import annotations

import sqlite3
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx2
import msgspec
import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloud_client
from quick_disk import quick_folder
from scrubjay.policy import DEFAULT as LOCAL
from scrubjay.store import MemoryWrite, Store
from scrubjay.store import rows as local_rows
from scrubjay_cloud import database, materialise
from scrubjay_cloud.app import create_app
from scrubjay_cloud.jobs import Jobs
from scrubjay_cloud.metrics import Metrics
from scrubjay_cloud.policy import DEFAULT
from scrubjay_cloud.retention import sweep
from scrubjay_cloud.search.vector_index import indexed
from scrubjay_cloud.settings import Settings
from scrubjay_shared import envelope, ops, scoring, segment
from scrubjay_shared.account import EntryType, scope_body
from scrubjay_shared.clock import ulid_text
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import InvalidError, NotFoundError, NotSearchableError, WrongSpaceError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Op, content_hash
from scrubjay_shared.text import analyse
from scrubjay_shared.wire import PutVectors, SearchAnswer, SearchRequest, SearchVector
from scrubjay_sync import packing, searching
from scrubjay_sync.account import account_scopes, leaving
from scrubjay_sync.api.login import SignUpRequest
from scrubjay_sync.api.rounds import SyncRequest
from scrubjay_sync.api.scopes import FindRequest, ScopeCreateRequest
from scrubjay_sync.operations import login, rounds, scopes
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.operations.dispatch import Dispatcher
from sync_devices import AUTH_KEY, GENEROUS, KDF, ORIGIN, Device, Network, World

pytestmark = pytest.mark.anyio

SPACE, WIDTH = "toy@1/64", 64
PROJECT = "proj_team"
HOUR_MS = 3_600_000


def vector_of(text: str) -> np.ndarray[Any, Any]:
    """A bag of words as a unit vector: near when words are shared. Enough of a model to rank by."""
    found = np.linspace(0.02, 0.05, WIDTH, dtype=np.float32)
    for word in analyse(text):
        found[crc32(word.encode()) % WIDTH] += 1
        found[crc32(word[::-1].encode()) % WIDTH] += 0.5
    return found / np.linalg.norm(found)


async def meaning(texts: Sequence[str], *, question: bool = False) -> tuple[str, np.ndarray[Any, Any]]:
    assert question in {True, False}
    return SPACE, np.stack([vector_of(text) for text in texts])


@dataclass
class Searching(World):
    """A world whose server keeps its data where a test says."""

    where: str | Path = ""

    async def serve(self) -> None:
        url = self.where if isinstance(self.where, str) else ""
        data = self.where.parent if isinstance(self.where, Path) else self.path / "cloud"
        self.settings = Settings(data=data, database_url=url, registration="open", pepper="p" * 32)
        self.database = await database.open(self.settings, now=self.now, entropy=self.random.randbytes)
        app = create_app(self.database, self.settings, now=self.now, entropy=self.random.randbytes, policy=GENEROUS)
        self.app = app
        self.transport = httpx2.ASGITransport(app=app)

    async def close(self) -> None:
        await self.database.close()

    async def rows(self, sql: str, *params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.rows(sql, params))


@asynccontextmanager
async def searching_world(path: Path, where: str | Path) -> AsyncIterator[Searching]:
    async with AsyncExitStack() as stack:
        made = Searching(path=path, stack=stack, where=where)
        await made.serve()
        stack.push_async_callback(made.close)
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where devices keep their stores: in memory, where the system can."""
    with tempfile.TemporaryDirectory(prefix="sj-search-", dir=quick_folder()) as made:
        yield Path(made)


@pytest.fixture
async def world(cloud_store: str | Path, folder: Path) -> AsyncIterator[Searching]:
    async with searching_world(folder, cloud_store) as made:
        yield made


async def team(device: Device, space: str = SPACE) -> bytes:
    """A searchable scope to which the project is bound; the device's engine has the toy model."""
    scope = await account_scopes.create_scope(
        device.member, device.machine, name="team", suite=Suite.OPEN, projects=[PROJECT], space=space
    )
    await device.sync()
    modelled(device)
    return scope


def modelled(device: Device) -> None:
    device.engine.context.meaning = meaning


async def write(device: Device, text: str, **more: Any) -> str:
    """A memory of the team's project."""
    return await device.note(text, scope="project", resource_id=PROJECT, **more)


async def write_all(device: Device, notes: Sequence[tuple[str, str | None]]) -> list[str]:
    """Many memories of the team's project, with their topics, in one transaction."""

    def work(tx: Any) -> list[str]:
        made = []
        for text, topic in notes:
            values = {Field.CONTENT: text, Field.CREATED_AT: int(tx.now), Field.SCOPE: "project"}
            values |= {Field.RESOURCE_ID: PROJECT} | ({} if topic is None else {Field.TOPIC: topic})
            made.append(MemoryWrite(memory_id=str(tx.new_id()), fields=values))
        tx.write_memories(made)
        return [one.memory_id for one in made]

    return await device.store.write(work)


async def embed(device: Device) -> None:
    """Embed every memory of a device's store, sealed ones too."""

    async def everything() -> None:
        found = await device.store.fetch("select id, content, content_hash from memory")
        made = []
        for memory, content, said in found:
            ((row,), (scale,)) = scoring.quantise(vector_of(content)[None, :])
            made.append((memory, said, scoring.encode_vector(row, float(scale))))
        await device.store.write(lambda tx: tx.put_vectors(tx.space(SPACE), made))

    await everything()


async def ask(device: Device, scope: bytes, text: str, **more: Any) -> searching.Asked:
    request = SearchRequest(text=text, **more)
    return await searching.search_scope(device.member, device.machine.cloud, meaning, scope, request)


async def refused(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await call


async def view_of(device: Device, scope: bytes) -> list[Any]:
    """What a device shows of a scope's memories."""
    return await device.store.fetch(
        "select id, content, type, topic, created_at, content_hash from memory"
        " where id in (select entity from placed where scope = ?) order by id",
        (scope,),
    )


async def shown(world: Searching) -> list[Any]:
    """What the server shows of all searchable scopes."""
    return [
        tuple(row)
        for row in await world.rows(
            "select id, text, type, topic, created, hash from mem where text is not null order by id"
        )
    ]


async def kept(world: Searching) -> list[Any]:
    """Everything that is made from lanes, bytes and all."""
    mem = await world.rows(
        "select id, fields, text, type, topic, created, updated, superseded, hash from mem order by id"
    )
    return [*map(tuple, mem), *map(tuple, await world.rows("select word, id from mem_word order by word, id"))]


TABLE_COUNTS = " union all ".join(f"select count(*) from {table}" for table in materialise.TABLES)


# --- finding ----------------------------------------------------------------------------------------------------------


async def test_what_is_written_is_found_by_meaning_and_words(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    wanted = await write(device, "We deploy the billing service on Fridays", type="decision", topic="deploys")
    for n in range(8):
        await write(device, f"The office plant number {n} needs water", topic="plants")
    await embed(device)
    await device.sync()
    await device.sync()

    found = await ask(device, scope, "when is the billing service deployed")
    by_type = await ask(device, scope, "water", type="decision")
    by_topic = await ask(device, scope, "water", topic="plants", limit=3)

    assert found.answer.mode == "hybrid"
    assert (found.answer.hits[0].id, found.answer.hits[0].type) == (wanted, "decision")
    best = found.answer.hits[0]
    assert best.score == pytest.approx(0.8 * best.cosine + 0.2 * best.overlap, abs=1e-6)
    assert [hit.id for hit in by_type.answer.hits] == [wanted]
    assert len(by_topic.answer.hits) == 3
    assert {hit.topic for hit in by_topic.answer.hits} == {"plants"}


async def test_without_a_model_words_alone_are_searched_and_said_so(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    wanted = await write(device, "The passphrase hint is kept by Ottoline")
    await write(device, "Lunch is at noon")
    await device.sync()

    found = await searching.search_scope(
        device.member, device.machine.cloud, None, scope, SearchRequest(text="Ottoline")
    )

    assert found.answer.mode == "keyword"
    assert [hit.id for hit in found.answer.hits] == [wanted]
    assert "words only" in found.note


async def test_memories_without_a_vector_are_found_by_words_among_those_that_have_one(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    for n in range(3):
        await write(device, f"Quarterly report number {n}")
    await embed(device)
    await device.sync()
    late = await write(device, "The quokka enclosure opens in May")
    await device.sync()

    found = await ask(device, scope, "quokka")

    assert found.answer.mode == "hybrid"
    assert late in {hit.id for hit in found.answer.hits}


async def test_topics_near_the_question_keep_to_their_memories(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    for n in range(6):
        await write(device, f"Basil and mint, bed {n}", topic="garden herbs")
    other = await write(device, "garden herbs were mentioned by the accountant", topic="taxes")
    await embed(device)
    await device.sync()
    await device.sync()

    found = await ask(device, scope, "garden herbs")

    assert {hit.topic for hit in found.answer.hits} == {"garden herbs"}
    assert other not in {hit.id for hit in found.answer.hits}


async def test_superseded_memories_come_after_all_others(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    new = await write(device, "The door code was changed in spring")
    old = await write(device, "door code door code", superseded_by=new)
    await device.sync()

    found = await ask(device, scope, "door code")

    assert [hit.id for hit in found.answer.hits] == [new, old]


async def test_both_databases_answer_the_same(postgres: str, folder: Path) -> None:
    answers = []
    for name, where in (("a", folder / "cloud" / "server.db"), ("b", postgres)):
        async with searching_world(folder / name, where) as world:
            device = await world.device()
            scope = await team(device)
            topics = ("red fox", "blue whale", None)
            said = [f"note {n} about item {n % 7} and colour {n % 11} seen on day {n % 13}" for n in range(300)]
            await write_all(device, [(text, topics[n % 3]) for n, text in enumerate(said)])
            await embed(device)
            await device.sync()
            await device.sync()
            asked = [("item 3 colour 5", {}), ("red fox day 4", {}), ("day 12", {"topic": "blue whale"}), ("zzz", {})]
            answers.append([(await ask(device, scope, text, limit=50, **more)).answer for text, more in asked])

    strip = [
        [replace(one, hits=tuple(replace(h, id="", created_at=0) for h in one.hits)) for one in a] for a in answers
    ]
    assert strip[0] == strip[1]
    assert len(answers[0][0].hits) == 50


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
    assert await world.rows("select n from mem_lane where scope = ?", scope) == [(lane[0] + 2,)]
    assert [row[1] for row in await shown(world)] == ["before"]


async def _sent_ops(device: Device) -> AsyncIterator[bytes]:
    for (body,) in await device.store.fetch("select body from op where body is not null order by seq"):
        yield bytes(body)


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


# --- vectors ----------------------------------------------------------------------------------------------------------


async def test_a_vector_goes_when_the_words_change_and_an_old_one_is_not_taken(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    one = await write(device, "first words")
    await embed(device)
    await device.sync()
    had = await world.rows("select id from mem_embedding")

    await device.edit(one, "other words")
    await device.sync()
    without = await world.rows("select id from mem_embedding")
    old = SearchVector(id=one, content_hash=content_hash("first words"), vector=vector_of("first words").tobytes())
    await device.machine.cloud.put_vectors(scope, PutVectors(space=SPACE, vectors=(old,)))
    still = await world.rows("select id from mem_embedding")
    wanted = (await device.machine.cloud.wanted_vectors(scope)).wanted
    await embed(device)
    await device.sync()

    assert (had, without, still) == ([(one,)], [], [])
    assert [(w.id, w.content_hash) for w in wanted] == [(one, content_hash("other words"))]
    assert await world.rows("select id from mem_embedding") == [(one,)]


async def test_vectors_of_another_space_width_or_length_are_refused_by_name(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    one = await write(device, "words")
    await embed(device)
    await device.sync()
    cloud, said = device.machine.cloud, content_hash("words")

    def vectors(*values: float, space: str = SPACE) -> PutVectors:
        data = np.array(values, "<f4").tobytes()
        return PutVectors(space=space, vectors=(SearchVector(id=one, content_hash=said, vector=data),))

    await refused(cloud.put_vectors(scope, vectors(1.0, space="other")), WrongSpaceError)
    await refused(cloud.put_vectors(scope, vectors(0.0, 1.0)), WrongSpaceError)
    await refused(cloud.put_vectors(scope, vectors(*[0.1] * WIDTH)), InvalidError)
    await refused(cloud.put_vectors(scope, vectors(*[float("nan")] * WIDTH)), InvalidError)
    await refused(cloud.put_vectors(scope, vectors(1.0, *[0.0] * 4_000)), WrongSpaceError)
    ask_other = SearchRequest(text="w", vector=np.array([0, 1], "<f4").tobytes(), space=SPACE)
    await refused(cloud.search(scope, ask_other), WrongSpaceError)
    await refused(cloud.search(scope, replace(ask_other, space="other")), WrongSpaceError)
    await refused(cloud.search(scope, SearchRequest(text="w", limit=0)), InvalidError)
    await refused(cloud.search(scope, SearchRequest(text="w" * 5_000)), InvalidError)


async def test_a_scope_without_a_space_takes_no_vectors_and_is_searched_by_words(world: Searching) -> None:
    device = await world.device()
    scope = await team(device, space="")
    await write(device, "plain words")
    await embed(device)
    await device.sync()

    found = await ask(device, scope, "plain")

    assert (found.answer.mode, len(found.answer.hits)) == ("keyword", 1)
    await refused(device.machine.cloud.put_vectors(scope, PutVectors(space="")), WrongSpaceError)
    assert await world.rows("select count(*) from mem_embedding") == [(0,)]


# --- what stays sealed, and what goes ---------------------------------------------------------------------------------


async def test_sealed_words_and_vectors_never_reach_the_servers_tables(world: Searching) -> None:
    device = await world.device()
    early = await write(device, "canaryearly was written before the binding")
    scope = await team(device)
    await device.note("canaryhome belongs to nobody's project", topic="canarytopic")
    await device.say("canaryevent in the team's project", project=PROJECT)
    open_one = await write(device, "openly said")
    await device.edit(early, "canaryedit of what lives at home")
    await embed(device)
    for _ in range(3):
        await device.sync()

    assert await world.rows("select id from mem") == [(open_one,)]
    assert await world.rows("select id from mem_embedding") == [(open_one,)]
    assert await world.rows("select topic from mem_label") == []
    words = {row[0] for row in await world.rows("select distinct word from mem_word")}
    assert not {word for word in words if "canari" in word or "canary" in word}
    stored = b"".join(
        [repr(row).encode() for table in materialise.TABLES for row in await world.rows(f"select * from {table}")]
    )
    for text in ("canaryearly", "canaryhome", "canaryedit", "canarytopic", "canaryevent"):
        assert text.encode() not in stored
    sealed = vector_of("canaryhome belongs to nobody's project")
    near = await device.machine.cloud.search(scope, SearchRequest(text="", vector=sealed.tobytes(), space=SPACE))
    assert [hit.id for hit in near.hits] == [open_one]


async def test_a_sealed_scope_is_refused_before_the_question_leaves_and_at_the_server(world: Searching) -> None:
    device = await world.device()
    await team(device)
    home = device.member.home
    device.network.asked.clear()

    await refused(ask(device, home, "secret question"), NotSearchableError)
    assert device.network.asked == []
    cloud = device.machine.cloud
    await refused(cloud.search(home, SearchRequest(text="x")), NotSearchableError)
    await refused(cloud.put_vectors(home, PutVectors(space=SPACE)), NotSearchableError)
    await refused(cloud.wanted_vectors(home), NotSearchableError)
    await refused(cloud.search(bytes(16), SearchRequest(text="x")), NotFoundError)


async def test_forgotten_words_and_vectors_leave_the_tables_at_once_and_the_files_in_time(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    gone = await write(device, "zanzibarwort is forgotten", topic="zanzibartopic")
    await write(device, "this stays")
    await embed(device)
    await device.sync()
    await device.sync()
    made = vector_of("zanzibarwort is forgotten")
    ((row,), (scale,)) = scoring.quantise(made[None, :])
    there = scoring.dequantise(row[None, :], np.array([scale]))[0]
    there /= np.linalg.norm(there)

    await device.forget(gone)
    await device.sync()
    left = [
        await world.rows("select text, fields, topic from mem where id = ?", gone),
        *[await world.rows(f"select * from {table} where id = ?", gone) for table in ("mem_word", "mem_embedding")],
        await world.rows("select * from mem_label"),
    ]
    world.time += 13 * HOUR_MS
    await device.sync()
    world.time += 8 * 24 * HOUR_MS
    await sweep(world.database, world.now(), DEFAULT)

    assert left == [[(None, b"", None)], [], [], []]
    assert len((await ask(device, scope, "zanzibarwort")).answer.hits) <= 1
    for (body,) in await world.rows("select body from object where scope = ?", scope):
        one = envelope.parse(bytes(body))
        assert b"zanzibar" not in segment.decompress(one.body, one.header.flags)
    if isinstance(world.where, Path):
        await world.database.close()
        with sqlite3.connect(world.where) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
            connection.execute("vacuum")
        connection.close()
        found = b"".join(path.read_bytes() for path in world.where.parent.glob("*") if path.is_file())
        assert b"zanzibar" not in found
        assert there.astype("<f4").tobytes()[:32] not in found
        assert b"this stays" in found
        await world.serve()


async def test_deleting_the_scope_or_the_account_leaves_no_row(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    await write(device, "words", topic="a topic")
    await embed(device)
    await device.sync()
    await device.sync()
    full = await world.rows(TABLE_COUNTS)

    deleted = await account_scopes.delete_scope(device.member, device.machine.cloud, scope)
    empty = await world.rows(TABLE_COUNTS)

    assert all(count > 0 for (count,) in full)
    assert deleted.left == 0
    assert {count for (count,) in empty} == {0}
    await refused(device.machine.cloud.search(scope, SearchRequest(text="x")), NotFoundError)


async def test_deleting_the_account_leaves_no_row_of_its_searchable_scopes(world: Searching) -> None:
    device = await world.device()
    await team(device)
    await write(device, "words", topic="a topic")
    await embed(device)
    await device.sync()
    await device.sync()

    deleted = await leaving.delete_account(device.machine, AUTH_KEY)

    assert deleted.left == 0
    assert {count for (count,) in await world.rows(TABLE_COUNTS)} == {0}


# --- who may, and by what way ------------------------------------------------------------------------------------------


async def test_only_devices_that_may_read_the_scope_search_it_and_only_writers_give_vectors(
    cloud_store: str | Path,
) -> None:
    async with cloud_client.opened(cloud_store, policy=GENEROUS) as world:
        owner = await cloud_client.signed_up(world.client, now=world.now)
        scope = owner.account.entropy(16)
        await owner.append(owner.account.say(EntryType.SCOPE_CREATE, scope_body(scope, suite=Suite.OPEN, space=SPACE)))
        path, asked = f"/v1/search/{scope.hex()}", SearchRequest(text="words")
        stranger = await cloud_client.second_device(owner, scopes=[owner.account.home])
        reader = await cloud_client.second_device(owner, scopes=[scope], read_only=True)
        other = await cloud_client.signed_up(world.client, "eve", now=world.now)

        codes = []
        for device, method, place, body in (
            (stranger, "POST", path, asked),
            (stranger, "GET", f"{path}/vectors", None),
            (reader, "PUT", f"{path}/vectors", PutVectors(space=SPACE)),
            (other, "POST", path, asked),
        ):
            with pytest.raises(cloud_client.RefusedError) as caught:
                await device.client.call(method, place, body)
            codes.append(caught.value.code)

        assert codes == ["denied", "denied", "denied", "not_found"]
        assert (await reader.client.call("POST", path, asked, answer=SearchAnswer)).hits == ()


async def test_the_job_reads_on_where_a_crash_left_a_lane(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    await write(device, "said before the crash")
    await device.sync()
    whole = await kept(world)
    await world.database.write(lambda tx: tx.execute("delete from mem where scope = ?", (scope,)))
    await world.database.write(lambda tx: tx.execute("delete from mem_word where scope = ?", (scope,)))
    await world.database.write(lambda tx: tx.execute("update mem_lane set n = 0"))

    jobs = Jobs(world.database, world.settings, Metrics(now=world.now, backups=False), holder="one", now=world.now)
    ran = await jobs.run("search")

    assert ran
    assert await kept(world) == whole


async def test_the_verb_makes_a_scope_in_the_stores_space_and_asks_the_server(world: Searching, folder: Path) -> None:
    store = await Store.open(folder / "mine" / "memory.db", now=world.now, entropy=world.random.randbytes)
    world.stack.push_async_callback(store.close)

    async def sleep(_: float) -> None:
        return None

    mine = SyncClient(
        store,
        folder / "mine",
        environ={"SCRUBJAY_KEYCHAIN": "file"},
        now=world.now,
        entropy=world.random.randbytes,
        sleep=sleep,
        transport=Network(world),
        meaning=meaning,
    )
    world.stack.push_async_callback(mine.close)
    await login.sign_up(
        mine,
        SignUpRequest(
            origin=ORIGIN, username="ann", auth_key=AUTH_KEY, kdf=KDF, recovery=world.code.public, device_name="mine"
        ),
    )
    await store.write(lambda tx: tx.write_memories([MemoryWrite(memory_id=str(tx.new_id()), fields=_fields("old"))]))
    ((old, said),) = await store.fetch("select id, content_hash from memory")
    ((row,), (scale,)) = scoring.quantise(vector_of("old")[None, :])
    await store.write(
        lambda tx: tx.put_vectors(tx.space(SPACE), [(old, said, scoring.encode_vector(row, float(scale)))])
    )
    await scopes.create_scope(mine, ScopeCreateRequest(name="team", mode="searchable", projects=(PROJECT,)))
    await rounds.sync(mine, SyncRequest())
    new = _fields("the lighthouse is green") | {Field.SCOPE: "project", Field.RESOURCE_ID: PROJECT}
    await store.write(lambda tx: tx.write_memories([MemoryWrite(memory_id=str(tx.new_id()), fields=new)]))
    await rounds.sync(mine, SyncRequest())

    found = await scopes.search(mine, FindRequest(ref="team", text="lighthouse"))
    as_json = msgspec.json.decode(await Dispatcher(mine).call("search", b'{"ref": "team", "text": "lighthouse"}'))

    session = await mine.session()
    assert session is not None
    assert {one.space for one in session.member.state.scopes.values() if one.suite == Suite.OPEN} == {SPACE}
    assert (found.scope, found.mode, found.note) == ("team", "hybrid", "")
    assert [hit.content for hit in found.hits] == ["the lighthouse is green"]
    assert as_json["hits"][0]["content"] == "the lighthouse is green"
    await refused(scopes.search(mine, FindRequest(ref="home", text="old")), NotSearchableError)


def _fields(text: str) -> dict[Field, Any]:
    return {Field.CONTENT: text, Field.CREATED_AT: 5}


# --- PostgreSQL's own -------------------------------------------------------------------------------------------------


async def test_without_pgvector_searchable_scopes_are_refused_and_the_rest_works(
    postgres_server: str, folder: Path
) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create role plain login")
        connection.execute("create database bare owner plain")
    where = (
        postgres_server.replace("/postgres?", "/bare?")
        .replace("//postgres:", "//plain:")
        .replace("//postgres@", "//plain@")
    )
    assert "plain" in where
    async with searching_world(folder, where) as world:
        device = await world.device()
        await device.note("sealed")

        await refused(team(device), NotSearchableError)
        await device.sync()

        assert (await device.machine.cloud.caps()).features == ()
        assert not world.database.searches
    with psycopg.connect(postgres_server.replace("/postgres?", "/bare?"), autocommit=True) as connection:
        connection.execute("create extension vector")
    async with searching_world(folder / "again", where) as world:
        assert world.database.searches


async def test_a_large_scope_gets_an_index_of_its_own_and_loses_it_when_it_is_small_again(
    postgres: str, folder: Path
) -> None:
    async with searching_world(folder, postgres) as world:
        device = await world.device()
        scope = await team(device)
        ids = await write_all(device, [(f"entry {n} of {n * 7919 % 997}", None) for n in range(120)])
        await embed(device)
        await device.sync()
        exact = await ask(device, scope, "entry 5 of 606", limit=5)
        policy = replace(DEFAULT.search, index_rows=100)

        made = await indexed(world.database, policy), await indexed(world.database, policy)
        near = await ask(device, scope, "entry 5 of 606", limit=5)
        names = await world.rows("select indexdef from pg_indexes where indexname like 'mem_near_%'")
        for one in ids[:80]:
            await device.forget(one)
        await device.sync()
        dropped = await indexed(world.database, policy)

    assert made == (1, 0)
    assert "hnsw" in names[0][0]
    assert scope.hex() in names[0][0]
    assert near.answer == exact.answer
    assert dropped == 1
