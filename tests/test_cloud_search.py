"""Searchable scopes, on both databases: real devices write, the server reads what it may, and nothing else."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest

import cloud_client
from cloud_searching import (
    HOUR_MS,
    PROJECT,
    SPACE,
    TABLE_COUNTS,
    WIDTH,
    Searching,
    ask,
    embed,
    kept,
    meaning,
    refused,
    searching_world,
    shown,
    team,
    vector_of,
    write,
    write_all,
)
from quick_disk import quick_folder
from scrubjay.store import MemoryWrite, Store
from scrubjay_cloud import materialise
from scrubjay_cloud.jobs import Jobs
from scrubjay_cloud.metrics import Metrics
from scrubjay_cloud.policy import DEFAULT
from scrubjay_cloud.retention import sweep
from scrubjay_cloud.search.vector_index import indexed
from scrubjay_shared import envelope, scoring, segment
from scrubjay_shared.account import EntryType, scope_body
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import InvalidError, NotFoundError, NotSearchableError, WrongSpaceError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import content_hash
from scrubjay_shared.wire import PutVectors, SearchAnswer, SearchRequest, SearchVector
from scrubjay_sync import searching
from scrubjay_sync.account import account_scopes, leaving
from scrubjay_sync.api.login import SignUpRequest
from scrubjay_sync.api.rounds import SyncRequest
from scrubjay_sync.api.scopes import FindRequest, ScopeCreateRequest
from scrubjay_sync.operations import login, rounds, scopes
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.operations.dispatch import Dispatcher
from sync_devices import AUTH_KEY, GENEROUS, KDF, ORIGIN, Network

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


async def test_an_archived_memory_is_not_found_until_it_is_archived_no_more(world: Searching) -> None:
    device = await world.device()
    scope = await team(device)
    kept, archived = await write(device, "The door code was changed"), await write(device, "door code in the drawer")
    await device.set_fields(archived, archived_at=1)
    await device.sync()
    assert [hit.id for hit in (await ask(device, scope, "door code")).answer.hits] == [kept]

    await device.set_fields(archived, archived_at=None)
    await device.sync()

    assert {hit.id for hit in (await ask(device, scope, "door code")).answer.hits} == {kept, archived}


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
    await device.machine.cloud.search.put_vectors(scope, PutVectors(space=SPACE, vectors=(old,)))
    still = await world.rows("select id from mem_embedding")
    wanted = (await device.machine.cloud.search.wanted_vectors(scope)).wanted
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

    await refused(cloud.search.put_vectors(scope, vectors(1.0, space="other")), WrongSpaceError)
    await refused(cloud.search.put_vectors(scope, vectors(0.0, 1.0)), WrongSpaceError)
    await refused(cloud.search.put_vectors(scope, vectors(*[0.1] * WIDTH)), InvalidError)
    await refused(cloud.search.put_vectors(scope, vectors(*[float("nan")] * WIDTH)), InvalidError)
    await refused(cloud.search.put_vectors(scope, vectors(1.0, *[0.0] * 4_000)), WrongSpaceError)
    ask_other = SearchRequest(text="w", vector=np.array([0, 1], "<f4").tobytes(), space=SPACE)
    await refused(cloud.search.query(scope, ask_other), WrongSpaceError)
    await refused(cloud.search.query(scope, replace(ask_other, space="other")), WrongSpaceError)
    await refused(cloud.search.query(scope, SearchRequest(text="w", limit=0)), InvalidError)
    await refused(cloud.search.query(scope, SearchRequest(text="w" * 5_000)), InvalidError)


async def test_a_scope_without_a_space_takes_no_vectors_and_is_searched_by_words(world: Searching) -> None:
    device = await world.device()
    scope = await team(device, space="")
    await write(device, "plain words")
    await embed(device)
    await device.sync()

    found = await ask(device, scope, "plain")

    assert (found.answer.mode, len(found.answer.hits)) == ("keyword", 1)
    await refused(device.machine.cloud.search.put_vectors(scope, PutVectors(space="")), WrongSpaceError)
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
    near = await device.machine.cloud.search.query(scope, SearchRequest(text="", vector=sealed.tobytes(), space=SPACE))
    assert [hit.id for hit in near.hits] == [open_one]


async def test_a_sealed_scope_is_refused_before_the_question_leaves_and_at_the_server(world: Searching) -> None:
    device = await world.device()
    await team(device)
    home = device.member.home
    device.network.asked.clear()

    await refused(ask(device, home, "secret question"), NotSearchableError)
    assert device.network.asked == []
    cloud = device.machine.cloud
    await refused(cloud.search.query(home, SearchRequest(text="x")), NotSearchableError)
    await refused(cloud.search.put_vectors(home, PutVectors(space=SPACE)), NotSearchableError)
    await refused(cloud.search.wanted_vectors(home), NotSearchableError)
    await refused(cloud.search.query(bytes(16), SearchRequest(text="x")), NotFoundError)


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
    await refused(device.machine.cloud.search.query(scope, SearchRequest(text="x")), NotFoundError)


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


# --- who may, and by what way -----------------------------------------------------------------------------------------


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
            origin=ORIGIN, username="ann", auth_key=AUTH_KEY, kdf=KDF, recovery=world.code.text, device_name="mine"
        ),
    )
    await store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=str(tx.new_id()), fields=_fields("old"))]))
    ((old, said),) = await store.read(lambda q: q.fetch("select id, content_hash from memory"))
    ((row,), (scale,)) = scoring.quantise(vector_of("old")[None, :])
    await store.write(
        lambda tx: tx.vectors.put(tx.vectors.space(SPACE), [(old, said, scoring.encode_vector(row, float(scale)))])
    )
    await scopes.create_scope(mine, ScopeCreateRequest(name="team", mode="searchable", projects=(PROJECT,)))
    await rounds.sync(mine, SyncRequest())
    new = _fields("the lighthouse is green") | {Field.SCOPE: "project", Field.RESOURCE_ID: PROJECT}
    await store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=str(tx.new_id()), fields=new)]))
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
        assert len(await shown(world)) == 120
        await device.sync()  # vectors that came before their memories had been read are wanted again
        exact = await ask(device, scope, "entry 5 of 606", limit=5)
        policy = replace(DEFAULT.search, index_rows=100)

        made = await indexed(world.database, policy), await indexed(world.database, policy)
        near = await ask(device, scope, "entry 5 of 606", limit=5)
        names = await world.rows("select indexdef from pg_indexes where indexname like 'mem_near_%'")
        for one in ids[:80]:
            await device.forget(one)
        await device.sync()
        await shown(world)
        dropped = await indexed(world.database, policy)

    assert made == (1, 0)
    assert "hnsw" in names[0][0]
    assert scope.hex() in names[0][0]
    assert near.answer == exact.answer
    assert dropped == 1
