"""Bodies in a store beside PostgreSQL: a real S3 server, a real database, the real service."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

import s3_server
from cloud_client import Account, Client, Clock, Device, RefusedError, World, opened, second_device, signed_up
from cloud_drill import Deployment, client_of
from quick_disk import quick_folder
from s3_server import Bucket, S3Server
from scrubjay_cloud import check
from scrubjay_cloud.bodies import open_store
from scrubjay_cloud.bodies.collection import collect
from scrubjay_cloud.bodies.loose import announce, forget, mark, release, take, waiting
from scrubjay_cloud.bodies.s3 import S3Bodies
from scrubjay_cloud.bodies.transfer import refuse_without_store, sent
from scrubjay_cloud.database import Transaction
from scrubjay_cloud.database import open as open_database
from scrubjay_cloud.jobs import Jobs
from scrubjay_cloud.metrics import Metrics
from scrubjay_cloud.migrate import migrate
from scrubjay_cloud.policy import BodyPolicy, CloudPolicy, LimitPolicy
from scrubjay_cloud.policy import Bucket as Tokens
from scrubjay_cloud.restore import restore
from scrubjay_cloud.retention import sweep
from scrubjay_cloud.settings import Settings, load
from scrubjay_cloud.verify import repair_each, verify
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import HEADER_BYTES, Header, ObjectKind, Suite, assemble
from scrubjay_shared.errors import InvalidError, UnavailableError
from scrubjay_shared.wire import DeleteAccount, Deleted

pytestmark = pytest.mark.anyio

WIDE = Tokens(burst=10**9, rate=10**6, draw=10**6)
BODIES = BodyPolicy(least_bytes=4_096, connect_s=2.0, answer_s=5.0, retries=1, give_up_s=2.0)
POLICY = CloudPolicy(
    limits=LimitPolicy(register=WIDE, push=WIDE, pull=WIDE, control=WIDE, traffic=WIDE, token=WIDE, challenge=WIDE),
    bodies=BODIES,
    hash_memory_kib=64,
    hash_iterations=1,
)
LARGE, SMALL = 10_000, 100


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server.running() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> Bucket:
    return s3.bucket()


@pytest.fixture
async def world(postgres: str, bucket: Bucket) -> AsyncIterator[World]:
    store = S3Bodies.of(bucket.settings, lambda *_: None, BODIES)
    async with opened(postgres, policy=POLICY, body_store=store) as found:
        yield found


@pytest.fixture
async def device(world: World) -> Device:
    return await signed_up(world.client, now=world.now)


@pytest.fixture
def away() -> S3Bodies:
    """A store at a port where nobody listens."""
    nobody = Bucket(f"http://127.0.0.1:{s3_server.free_port()}", "bodies")
    return S3Bodies.of(nobody.settings, lambda *_: None, BODIES)


async def refused(call: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        await call
    return caught.value.problem.status, caught.value.code


async def named(world: World) -> set[str]:
    """The keys that rows name."""
    rows = await world.rows("select body_key from object union all select body_key from blob")
    return {key for (key,) in rows if key is not None}


async def collected(world: World) -> int:
    assert world.service.body_store is not None
    return await collect(world.database, world.service.body_store, world.now(), rows=2)


async def test_large_bodies_go_to_the_store_and_come_back_byte_for_byte(
    world: World, device: Device, bucket: Bucket
) -> None:
    sent_objects = [device.quick(size) for size in (SMALL, LARGE, SMALL, LARGE, LARGE)]
    assert await device.statuses(*sent_objects) == ["ok"] * 5
    reader = await second_device(device)

    pulled = await reader.drain()
    lane = await reader.client.call("GET", f"/v1/lanes/{device.account.home.hex()}/{device.id.hex()}")

    assert [one.data for one in pulled] == [one.data for one in sent_objects]
    assert lane.content == b"".join(one.data for one in sent_objects)
    assert await named(world) == bucket.keys()
    assert len(bucket.keys()) == 3
    rows = await world.rows("select length(body), size, body_key is null from object order by gseq")
    assert [row[2] for row in rows] == [True, False, True, False, False]
    assert [row[0] for row in rows] == [row[1] if row[2] else HEADER_BYTES for row in rows]
    assert await world.rows("select bytes, objects from account") == [(sum(len(one.data) for one in sent_objects), 5)]
    assert await world.rows("select * from loose_body") == []


async def test_what_the_server_reads_itself_stays_in_the_database(device: Device, bucket: Bucket) -> None:
    scope = device.account.scope(Suite.OPEN)
    await device.append(device.account.entries[-1])
    noise = os.urandom(LARGE)

    assert await device.statuses(device.segment(noise, scope=scope, suite=Suite.OPEN)) == ["ok"]

    assert bucket.keys() == set()


async def test_an_object_in_no_lane_goes_there_too_and_is_kept_once(
    world: World, device: Device, bucket: Bucket
) -> None:
    account = device.account
    header = Header(
        suite=Suite.SEALED,
        kind=ObjectKind.BLOB,
        account=account.id,
        scope=account.home,
        device=device.id,
        n_from=0,
        n_to=0,
        prev=bytes(32),
        salt=account.entropy(32),
        commit=account.entropy(32),
        body_len=LARGE,
    )
    data = assemble(header, account.entropy(LARGE), device.key.sign).data
    path = f"/v1/objects/{sha256(data).hexdigest()}"

    await device.client.call("PUT", path, data)
    await device.client.call("PUT", path, data)
    world.now.pass_(3_601)
    await device.authenticate()

    assert (await device.client.call("GET", path)).content == data
    assert await collected(world) == 1  # what the second request had sent
    assert bucket.keys() == await named(world)
    assert len(bucket.keys()) == 1


async def test_what_packs_have_replaced_leaves_the_store_when_it_leaves_the_database(
    world: World, device: Device, bucket: Bucket
) -> None:
    pieces = [device.quick(LARGE) for _ in range(4)]
    await device.push(*pieces)
    pack = device.pack(pieces[:3], size=LARGE)
    assert await device.statuses(pack, path="/v1/pack") == ["ok"]
    assert len(bucket.keys()) == 5

    await sweep(world.database, world.now(), POLICY)
    assert await collected(world) == 0
    world.now.at += POLICY.superseded_ms
    await sweep(world.database, world.now(), POLICY)
    assert await collected(world) == 3

    assert bucket.keys() == await named(world)
    await device.authenticate()
    assert [one.data for one in await device.drain()] == [pack.data, pieces[3].data]


async def test_a_deleted_account_leaves_nothing_in_the_store(world: World, device: Device, bucket: Bucket) -> None:
    other = await signed_up(world.client, "bob", now=world.now)
    for one in (device, other):
        await one.push(one.quick(LARGE), one.quick(LARGE))
    answer = await device.client.call(
        "DELETE", "/v1/account", DeleteAccount(auth_key=device.account.auth_key), answer=Deleted
    )

    assert (answer.objects, answer.left) == (2, 0)
    assert {key.split("/")[0] for key in sorted(bucket.keys())} == {other.account.id.hex()}
    assert len(bucket.keys()) == 2
    assert await world.rows("select * from loose_body") == []


async def test_a_store_that_is_away_is_a_503_and_loses_nothing(
    world: World, device: Device, bucket: Bucket, away: S3Bodies
) -> None:
    first = device.quick(LARGE)
    await device.push(first)
    there, world.service.body_store = world.service.body_store, away

    small, large = device.quick(SMALL), device.quick(LARGE)
    assert await refused(device.pull()) == (503, "unavailable")
    assert await device.statuses(small) == ["ok"]  # goes nowhere near the store
    assert await refused(device.push(large)) == (503, "unavailable")
    assert await world.rows("select objects from account") == [(2,)]

    world.service.body_store = there
    assert await device.statuses(large) == ["ok"]
    assert [one.data for one in await device.drain()] == [first.data, small.data, large.data]
    world.now.pass_(3_601)
    assert await collected(world) == 1  # the key under which the store never got anything
    assert bucket.keys() == await named(world)


async def test_a_store_that_is_away_when_an_account_goes_is_emptied_later(
    world: World, device: Device, bucket: Bucket, away: S3Bodies
) -> None:
    await device.push(device.quick(LARGE))
    there, world.service.body_store = world.service.body_store, away

    answer = await device.client.call(
        "DELETE", "/v1/account", DeleteAccount(auth_key=device.account.auth_key), answer=Deleted
    )

    assert answer.left == 0
    assert len(bucket.keys()) == 1
    assert await world.database.read(lambda tx: waiting(tx, world.now())) == 1
    world.service.body_store = there
    assert await collected(world) == 1
    assert bucket.keys() == set()


async def test_a_request_that_broke_off_after_its_body_leaves_nothing_for_long(
    world: World, device: Device, bucket: Bucket
) -> None:
    store = world.service.body_store
    assert store is not None
    [key] = await sent(
        world.database, store, device.account.id, [b"x"], now=world.now(), entropy=os.urandom, policy=BODIES
    )

    world.now.pass_(3_599)
    assert await collected(world) == 0
    assert bucket.keys() == {key}
    world.now.pass_(1)
    assert await collected(world) == 1
    assert bucket.keys() == set()


async def test_a_body_that_was_cleared_away_meanwhile_is_taken_by_no_row(world: World, device: Device) -> None:
    account = device.account.id
    await world.database.write(lambda tx: announce(tx, account, ["a", "b"], world.now()))
    await world.database.write(lambda tx: mark(tx, world.now(), 1))

    with pytest.raises(UnavailableError, match="cleared away"):
        await world.database.write(lambda tx: take(tx, account, ["a", "b"]))

    assert len(await world.rows("select * from loose_body")) == 2


async def test_a_lost_body_is_named_and_a_device_gives_it_back(
    world: World, device: Device, bucket: Bucket, away: S3Bodies
) -> None:
    sent_objects = [device.quick(LARGE) for _ in range(5)]
    await device.push(*sent_objects)
    store = world.service.body_store
    assert store is not None
    keys = [key for (key,) in await world.rows("select body_key from object order by gseq")]
    await store.delete([keys[2]])

    assert await refused(device.pull()) == (500, "corrupt")
    found = await world.database.read(lambda tx: verify(tx, store))
    assert [one.words.partition(": ")[2] for one in found.findings] == [
        "the body of the object at place 3 is missing in the store"
    ]
    with pytest.raises(UnavailableError):  # what is out of reach is not taken for lost
        await repair_each(world.database, away)
    assert len(await world.rows("select * from object")) == 5

    await repair_each(world.database, store)
    assert await device.statuses(*sent_objects[2:], path="/v1/heal") == ["ok"] * 3
    assert [one.data for one in await device.drain()] == [one.data for one in sent_objects]
    assert (await world.database.read(lambda tx: verify(tx, store))).holds
    await collected(world)
    assert bucket.keys() == await named(world)


async def test_a_restore_in_place_reads_the_store(world: World, device: Device, bucket: Bucket, postgres: str) -> None:
    await device.push(device.quick(LARGE), device.quick(SMALL))
    given_settings = replace(bucket.settings, database_url=postgres)

    done = await restore(given_settings, source=None, timestamp="", now=world.now, entropy=os.urandom)
    with pytest.raises(UnavailableError, match="none is set"):
        await restore(
            Settings(data=Path("unused"), database_url=postgres),
            source=None,
            timestamp="",
            now=world.now,
            entropy=os.urandom,
        )

    assert done.verified.holds
    assert (done.verified.objects, done.generation) == (2, 2)


async def test_a_move_to_sqlite_takes_the_bodies_out_of_the_store(world: World, device: Device, tmp_path: Path) -> None:
    sent_objects = [device.quick(LARGE), device.quick(SMALL)]
    await device.push(*sent_objects)
    file = await open_database(tmp_path / "server.db", now=world.now, entropy=os.urandom)
    try:
        await migrate(world.database, file, world.service.body_store)
        bodies = await file.read(lambda tx: tx.rows("select body, body_key from object order by gseq"))
    finally:
        await file.close()

    assert bodies == [(one.data, None) for one in sent_objects]


async def test_a_service_without_its_store_does_not_start(world: World, device: Device) -> None:
    await refuse_without_store(world.database, None)
    await device.push(device.quick(LARGE))

    with pytest.raises(InvalidError, match="none is set"):
        await refuse_without_store(world.database, None)
    await refuse_without_store(world.database, world.service.body_store)


async def test_the_job_clears_away_and_metrics_count_and_name_nobody(
    world: World, device: Device, bucket: Bucket, postgres: str
) -> None:
    metrics = Metrics(now=world.now, backups=False)
    given_settings = replace(bucket.settings, database_url=postgres)
    world.service.body_store = open_store(given_settings, metrics.body_moved)
    jobs = Jobs(
        world.database, given_settings, metrics, holder="one", now=world.now, body_store=world.service.body_store
    )
    await device.push(device.quick(LARGE))
    await device.drain()
    await world.database.write(lambda tx: announce(tx, device.account.id, ["gone"], world.now()))

    await jobs.measure()
    before = metrics.registry.get_sample_value("scrubjay_loose_bodies")
    assert await jobs.run("bodies")
    await jobs.measure()

    def count(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"scrubjay_body_store_{name}", labels)

    assert (before, metrics.registry.get_sample_value("scrubjay_loose_bodies")) == (1, 0)
    assert count("seconds_count", operation="put", result="done") == 1
    assert count("bytes_total", operation="put") == count("bytes_total", operation="get") == LARGE + HEADER_BYTES + 64
    assert count("seconds_count", operation="delete", result="done") == 1


async def test_a_collection_beside_pushes_loses_nothing(world: World, device: Device, bucket: Bucket) -> None:
    stop = asyncio.Event()

    async def clear() -> None:
        while not stop.is_set():
            await collected(world)
            await asyncio.sleep(0)

    clearing = asyncio.create_task(clear())
    sent_objects = [device.quick(LARGE) for _ in range(12)]
    for one in sent_objects:
        assert await device.statuses(one) == ["ok"]
    stop.set()
    await clearing

    assert [one.data for one in await device.drain()] == [one.data for one in sent_objects]
    assert bucket.keys() == await named(world)


# --- settings and check -----------------------------------------------------------------------------------------------


def test_settings_say_what_is_missing_and_show_no_secret() -> None:
    environ = {
        "DATABASE_URL": s3_server.DATABASE,
        "SCRUBJAY_CLOUD_BODIES": "s3://bodies/of/scrubjay",
        "SCRUBJAY_CLOUD_BODIES_ACCESS_KEY_ID": "id",
        "SCRUBJAY_CLOUD_BODIES_SECRET_ACCESS_KEY": s3_server.ACCESS["bodies_secret_access_key"],
    }
    found = load(environ=environ)

    assert found.bodies == "s3://bodies/of/scrubjay"
    assert s3_server.ACCESS["bodies_secret_access_key"] not in repr(found) + repr(open_store(found))
    for missing in ("DATABASE_URL", "SCRUBJAY_CLOUD_BODIES_SECRET_ACCESS_KEY"):
        with pytest.raises(InvalidError, match="needs"):
            load(environ={key: value for key, value in environ.items() if key != missing})
    for wrong in ("bodies", "https://bodies", "s3://", "s3://B/x", "s3://bodies//x"):
        with pytest.raises(InvalidError, match="SCRUBJAY_CLOUD_BODIES"):
            load(environ=environ | {"SCRUBJAY_CLOUD_BODIES": wrong})


def test_without_the_extra_it_says_what_to_install(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scrubjay_cloud.bodies.s3")
    monkeypatch.setitem(sys.modules, "obstore", None)

    with pytest.raises(InvalidError, match="cloud-s3"):
        open_store(bucket.settings)


def test_check_writes_reads_and_deletes_a_probe(bucket: Bucket, postgres: str) -> None:
    def line(settings: Settings) -> check.Line:
        return next(one for one in reversed(list(check.checked(settings, now=Clock()))) if one.name == "bodies")

    fine = line(replace(bucket.settings, database_url=postgres))
    other = line(replace(bucket.settings, database_url=postgres, bodies="s3://no-such-bucket"))

    assert fine.level is check.Level.OK
    assert bucket.keys() == set()
    assert other.level is check.Level.FAIL
    assert "store" in other.words
    assert s3_server.ACCESS["bodies_secret_access_key"] not in fine.words + other.words


@pytest.mark.slow
async def test_the_program_itself_uses_the_store_and_does_not_start_without_it(
    bucket: Bucket, postgres: str, tmp_path: Path
) -> None:
    secret = s3_server.ACCESS["bodies_secret_access_key"]
    plain = {"DATABASE_URL": postgres, "SCRUBJAY_CLOUD_PEPPER": "p" * 32}
    store = {
        "SCRUBJAY_CLOUD_BODIES": bucket.settings.bodies,
        "SCRUBJAY_CLOUD_BODIES_ENDPOINT": bucket.endpoint,
        "SCRUBJAY_CLOUD_BODIES_ACCESS_KEY_ID": s3_server.ACCESS["bodies_access_key_id"],
        "SCRUBJAY_CLOUD_BODIES_SECRET_ACCESS_KEY": secret,
    }
    deployment = Deployment(root=tmp_path, more=plain | store)
    large = policy_bytes()
    with deployment.serving():
        async with client_of(deployment) as client:
            account = Account.make("ann", origin=deployment.origin)
            device = account.device(Client(client.http))
            await account.register(client)
            await device.authenticate()
            sent_objects = [device.quick(large), device.quick(large - 1_000)]
            assert await device.statuses(*sent_objects) == ["ok", "ok"]
            assert [one.data for one in await device.drain()] == [one.data for one in sent_objects]
            found = deployment.metrics()

    assert len(bucket.keys()) == 1
    assert found['scrubjay_body_store_seconds_count{operation="put",result="done"}'] == 1
    assert found['scrubjay_body_store_bytes_total{operation="get"}'] == len(sent_objects[0].data)
    restored = deployment.json("admin", "restore")
    assert restored["verified"]["objects"] == 2
    assert restored["verified"]["findings"] == []
    assert secret not in deployment.log() + deployment.run("check").stdout
    without = Deployment(root=tmp_path, more=plain).run("serve")
    assert (without.returncode, "none is set" in without.stderr) == (2, True)


def policy_bytes() -> int:
    """The least body that goes to the store, by the product's own policy."""
    return CloudPolicy().bodies.least_bytes


# --- the law ----------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["announce", "put", "commit", "delete", "wait", "mark", "clear", "forget"]), st.integers(0, 1)
    ),
    min_size=30,
    max_size=60,
)
ROW = (
    "insert into object (account, gseq, scope, device, kind, n_from, n_to, hash, tip, size, received, body, body_key)"
    " values (?, ?, ?, ?, 1, ?, ?, ?, ?, 0, 0, ?, ?)"
)


@pytest.fixture(scope="module")
def law_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sj-law-", dir=quick_folder()) as folder:
        yield Path(folder)


@given(steps=STEPS)
@settings(max_examples=100)
def test_however_requests_and_collections_break_off_what_a_row_names_is_there(
    law_folder: Path, steps: list[tuple[str, int]]
) -> None:
    """Each step of two uploads and of two collections may be the last one of its process, in any order of them all."""
    named_at_the_end, kept = asyncio.run(_played(law_folder, steps))

    assert named_at_the_end == kept


async def _played(folder: Path, steps: list[tuple[str, int]]) -> tuple[set[str], set[str]]:
    clock = Clock()
    database = await open_database(folder / "server.db", now=clock, entropy=os.urandom, inline=True)
    try:
        await database.write(lambda tx: [tx.execute(f"delete from {table}") for table in ("object", "loose_body")])
        play = Play(database, clock)
        for step, slot in steps:
            await getattr(play, step)(slot)
            assert await play.named() <= play.kept()
        clock.pass_(3_601)
        await collect(database, play.store, clock(), rows=2)
        return await play.named(), play.kept()
    finally:
        await database.close()


class Play:
    """Two uploads and two collections, step by step. A request has sent its body long before its hour is over."""

    account = b"a" * 16

    def __init__(self, database: Any, clock: Clock) -> None:
        self.database, self.clock, self.memory = database, clock, MemoryStore()
        self.store = S3Bodies(self.memory, BODIES, lambda *_: None)
        self.uploads: dict[int, tuple[str, int]] = {}
        self.sent: set[str] = set()
        self.marked: dict[int, list[tuple[bytes, str]]] = {}
        self.cleared: set[int] = set()
        self.count = 0

    async def named(self) -> set[str]:
        return {key for (key,) in await self.database.read(lambda tx: tx.rows("select body_key from object"))}

    def kept(self) -> set[str]:
        return {str(one["path"]) for page in self.memory.list() for one in page}

    async def announce(self, slot: int) -> None:
        self.count += 1
        key, due = f"k{self.count}", Millis(self.clock() + BODIES.loose_ms)
        self.uploads[slot] = (key, due)
        await self.database.write(lambda tx: announce(tx, self.account, [key], due))

    async def put(self, slot: int) -> None:
        key, due = self.uploads.get(slot, ("", 0))
        if self.clock() < due and key not in self.sent:
            self.sent.add(key)
            await self.store.put(key, b"body")

    async def commit(self, slot: int) -> None:
        key, _ = self.uploads.get(slot, ("", 0))
        if key not in self.sent:
            return
        self.count += 1

        def work(tx: Transaction) -> None:
            tx.execute(ROW, (self.account, self.count, b"s", b"d", self.count, self.count, b"h", b"t", b"head", key))
            take(tx, self.account, [key])

        del self.uploads[slot]
        with contextlib.suppress(UnavailableError):
            await self.database.write(work)

    async def delete(self, slot: int) -> None:
        for key in sorted(await self.named())[slot : slot + 1]:
            await self.database.write(lambda tx, key=key: self._delete(tx, key))

    def _delete(self, tx: Transaction, key: str) -> None:
        release(tx, "object", "account = ? and body_key = ?", (self.account, key))
        tx.execute("delete from object where account = ? and body_key = ?", (self.account, key))

    async def wait(self, _: int) -> None:
        self.clock.pass_(3_601)

    async def mark(self, slot: int) -> None:
        self.cleared.discard(slot % 2)
        self.marked[slot % 2] = await self.database.write(lambda tx: mark(tx, self.clock(), 2))

    async def clear(self, slot: int) -> None:
        self.cleared.add(slot % 2)
        await self.store.delete([key for _, key in self.marked.get(slot % 2, ())])

    async def forget(self, slot: int) -> None:
        if slot % 2 in self.cleared:
            await self.database.write(lambda tx: forget(tx, self.marked.get(slot % 2, ())))
