"""The database port on both sides, what a start refuses, and that every table stays bounded."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cloud_client import Client, Clock, World, keyring, object_hash, opened, second_device, signed_up
from scrubjay_cloud import database as port
from scrubjay_cloud.accounts.registration import create_invite
from scrubjay_cloud.credentials import totp
from scrubjay_cloud.database import migrations, sqlite_file
from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.policy import DAY_MS, CloudPolicy
from scrubjay_cloud.retention import Swept, sweep
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import EntryType
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, UnavailableError
from scrubjay_shared.wire import AccountName, SetName

pytestmark = pytest.mark.anyio

CHEAP = CloudPolicy(hash_memory_kib=64, hash_iterations=1)


@pytest.fixture
async def database(cloud_store: str | Path) -> AsyncIterator[Database]:
    found = await port.open(cloud_store, now=Clock(), entropy=os.urandom)
    try:
        yield found
    finally:
        await found.close()


def put(key: str, value: str) -> Any:
    return lambda tx: tx.execute("insert into meta (k, v) values (?, ?)", (key, value))


def held(prefix: str) -> Any:
    return lambda tx: tx.rows("select k, v from meta where k like ? order by k", (prefix + "_",))


# --- the port ---------------------------------------------------------------------------------------------------------


def lookup_of(table: str, database: Database) -> str:
    if database.dialect == "postgres":
        return f"select convert_to(k, 'UTF8'), v from {table} where convert_to(k, 'UTF8') = any(?)"
    return f"select cast(k as blob), v from {table} where cast(k as blob) = ?"


async def test_work_that_fails_writes_nothing_and_harms_no_other_in_its_group(database: Database) -> None:
    def fails(tx: Transaction) -> None:
        put("x3", "lost")(tx)
        raise InvalidError("no", hint="")

    outcomes = await asyncio.gather(
        *(database.write(fails if n == 3 else put(f"x{n}", str(n))) for n in range(6)), return_exceptions=True
    )

    assert [type(one) is InvalidError for one in outcomes] == [n == 3 for n in range(6)]
    assert [key for key, _ in await database.read(held("x"))] == ["x0", "x1", "x2", "x4", "x5"]


async def test_works_that_name_their_accounts_share_a_commit_and_no_failure(database: Database) -> None:
    def fails(tx: Transaction) -> None:
        put("s3", "lost")(tx)
        raise InvalidError("no", hint="")

    accounts = [bytes([n % 5]) * 16 for n in range(8)]
    outcomes = await asyncio.gather(
        *(database.write(fails if n == 3 else put(f"s{n}", str(n)), account=accounts[n]) for n in range(8)),
        return_exceptions=True,
    )

    assert [type(one) is InvalidError for one in outcomes] == [n == 3 for n in range(8)]
    assert [key for key, _ in await database.read(held("s"))] == [f"s{n}" for n in range(8) if n != 3]


async def test_works_of_one_account_run_one_after_another(database: Database) -> None:
    def add(tx: Transaction) -> int:
        row = tx.row("select v from meta where k = 'count'")
        count = int(row[0]) + 1 if row else 1
        tx.pipeline(
            ("delete from meta where k = ?", [("count",)]),
            ("insert into meta (k, v) values (?, ?)", [("count", str(count)), (f"u{count:03}", "x")]),
        )
        return count

    counts = await asyncio.gather(*(database.write(add, account=b"a" * 16) for _ in range(100)))

    assert counts == list(range(1, 101))
    assert len(await database.read(lambda tx: tx.rows("select k from meta where k like 'u0__' or k = 'u100'"))) == 100


async def test_what_is_looked_up_at_once_finds_each_its_own_and_shares_no_failure(database: Database) -> None:
    await database.write(put("l1", "one"))
    await database.write(put("l4", "four"))

    found = await asyncio.gather(
        *(database.lookup(lookup_of("nowhere" if n == 2 else "meta", database), b"l%d" % n) for n in (0, 1, 2, 1, 4)),
        return_exceptions=True,
    )

    assert isinstance(found[2], Exception)
    assert "nowhere" not in str(found[2])
    assert [one for n, one in enumerate(found) if n != 2] == [None, (b"l1", "one"), (b"l1", "one"), (b"l4", "four")]


async def test_what_goes_together_is_answered_one_by_one_and_durable(database: Database) -> None:
    def run(tx: Transaction, items: Sequence[str]) -> list[str]:
        for item in items:
            tx.execute("insert into meta (k, v) values (?, ?)", (item, "one"))
        return [f"stored {item}" for item in items]

    names = [f"t{n}" for n in range(6)]
    answers = await asyncio.gather(*(database.together(run, name, account=name.encode()) for name in names))

    assert answers == [f"stored {name}" for name in names]
    assert await database.read(held("t")) == [(name, "one") for name in names]


async def test_a_broken_rule_of_the_schema_is_an_error_of_ours(database: Database) -> None:
    await database.write(put("y1", "one"))

    with pytest.raises(Exception, match=r"IntegrityError|UniqueViolation") as caught:
        await database.write(put("y1", "two"))

    assert "two" not in str(caught.value)
    assert await database.read(held("y")) == [("y1", "one")]


async def test_a_read_sees_one_state_of_the_database(database: Database) -> None:
    loop = asyncio.get_running_loop()
    begun, written = asyncio.Event(), asyncio.Event()

    def look(tx: Transaction) -> tuple[int, int]:
        before = len(held("z")(tx))
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(written.wait(), loop).result(timeout=10)
        return before, len(held("z")(tx))

    reading = asyncio.create_task(database.read(look))
    await begun.wait()
    await database.write(put("z1", "new"))
    written.set()

    assert await reading == (0, 0)
    assert len(await database.read(held("z"))) == 1


async def test_statements_that_were_prepared_before_a_change_of_the_schema_are_run_again(postgres: str) -> None:
    database = await port.open(postgres, now=Clock(), entropy=os.urandom)
    await database.write(lambda tx: tx.execute("create table plan (a bigint not null)"))
    await database.write(lambda tx: tx.execute("insert into plan (a) values (?)", (1,)))

    def all_of_it(tx: Transaction) -> list[Any]:
        return tx.rows("select * from plan where a = ?", (1,))

    for _ in range(40):  # in turn by whatever connections the pool has
        assert await database.read(all_of_it) == [(1,)]
    prepared = await database.read(lambda tx: tx.rows("select name from pg_prepared_statements"))
    await database.write(lambda tx: tx.execute("alter table plan add column b bigint not null default 2"))

    assert [await database.read(all_of_it) for _ in range(3)] == [[(1, 2)]] * 3
    assert prepared
    await database.close()


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match=r"read|refused|write"):
        await database.read(put("w1", "x"))

    assert await database.read(held("w")) == []


async def test_nothing_is_taken_after_the_end(database: Database) -> None:
    await database.close()

    with pytest.raises(UnavailableError):
        await database.read(held("x"))
    with pytest.raises(UnavailableError):
        await database.write(put("x1", "x"))
    await database.close()


async def test_after_a_disk_that_failed_every_write_is_refused_and_none_waits_for_ever(tmp_path: Path) -> None:
    database = await port.open(tmp_path / "cloud.db", now=Clock(), entropy=os.urandom)
    await database.write(put("before", "1"))

    async with asyncio.timeout(10):
        outcomes = await asyncio.gather(
            database.write(lambda tx: tx._connection.close()),  # type: ignore[attr-defined]
            *(database.write(put(f"w{n}", "1")) for n in range(100)),
            return_exceptions=True,
        )
        with pytest.raises(UnavailableError, match="stopped writing"):
            await database.write(put("after", "1"))
        found = await database.read(held("befor"))
        await database.close()

    assert {type(outcome) for outcome in outcomes} == {UnavailableError}
    assert found == [("before", "1")]


async def test_what_a_caller_who_went_away_wrote_is_written(database: Database) -> None:
    task = asyncio.create_task(database.write(put("v1", "x")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await database.write(put("v2", "x"))

    assert [key for key, _ in await database.read(held("v"))][-1] == "v2"


async def test_it_keeps_its_identity_and_secret_when_it_is_opened_again(cloud_store: str | Path) -> None:
    metas = []
    for _ in range(2):
        found = await port.open(cloud_store, now=Clock(), entropy=os.urandom)
        metas.append(dict(found.meta))
        await found.close()

    assert metas[0] == metas[1]
    assert {*port.SEED} <= metas[0].keys()


# --- migrations -------------------------------------------------------------------------------------------------------


def test_both_dialects_have_the_same_steps() -> None:
    names = [[(step.version, step.name) for step in migrations.steps(dialect)] for dialect in ("sqlite", "postgres")]

    assert names[0] == names[1]
    assert [version for version, _ in names[0]] == list(range(1, len(names[0]) + 1))


def test_a_function_is_one_statement() -> None:
    sql = "create table a (b int);\ncreate function c() returns int as $$\nbegin\n  return 1;\nend\n$$;\nselect 2;\n"
    step = migrations.Step(version=1, name="x", sql=sql)

    assert step.statements() == [
        "create table a (b int)",
        "create function c() returns int as $$\nbegin\n  return 1;\nend\n$$",
        "select 2",
    ]


async def test_both_dialects_have_the_same_tables_and_columns(postgres: str, tmp_path: Path) -> None:
    found = []
    for where in (tmp_path / "server.db", postgres):
        opened_ = await port.open(where, now=Clock(), entropy=os.urandom)
        found.append(await opened_.read(_columns))
        await opened_.close()

    assert found[0] == found[1]


def _columns(tx: Transaction) -> dict[str, list[str]]:
    if tx.dialect == "sqlite":
        tables = [name for (name,) in tx.rows("select name from sqlite_master where type = 'table'")]
        return {name: sorted(row[1] for row in tx.rows(f"pragma table_info({name})")) for name in tables}
    found: dict[str, list[str]] = {}
    for table, column in tx.rows(
        "select table_name, column_name from information_schema.columns where table_schema = 'public'"
    ):
        if not table.startswith("object_"):
            found.setdefault(table, []).append(column)
    return {table: sorted(columns) for table, columns in found.items()}


async def test_two_instances_that_start_at_once_migrate_once(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create database empty_start")
    where = postgres_server.replace("/postgres?", "/empty_start?")

    both = await asyncio.gather(*(port.open(where, now=Clock(), entropy=os.urandom) for _ in range(2)))
    versions = await both[0].read(lambda tx: tx.rows("select version from migration order by version"))
    for one in both:
        await one.close()

    assert both[0].meta == both[1].meta
    assert [version for (version,) in versions] == list(range(1, port.latest("postgres") + 1))


async def test_postgres_keeps_bodies_uncompressed_in_sixteen_parts(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        stored = connection.execute(
            "select c.relname, a.attstorage from pg_attribute a join pg_class c on c.oid = a.attrelid"
            " where a.attname = 'body' and c.relname like 'object%' and c.relkind in ('r', 'p')"
        ).fetchall()

    assert len(stored) == 17
    assert {storage for _, storage in stored} == {"e"}


async def test_a_database_of_a_newer_version_is_left_alone(cloud_store: str | Path) -> None:
    found = await port.open(cloud_store, now=Clock(), entropy=os.urandom)
    await found.write(lambda tx: tx.execute("insert into migration (version, name, at) values (999, 'later', 0)"))
    await found.close()

    with pytest.raises(ConflictError, match="newer version"):
        await port.open(cloud_store, now=Clock(), entropy=os.urandom)


# --- what SQLite must be ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "fine"), [((3, 51, 2), False), ((3, 40, 1), False), ((3, 51, 3), True)])
def test_an_sqlite_that_can_corrupt_its_log_is_refused(version: tuple[int, ...], fine: bool) -> None:  # noqa: FBT001
    if fine:
        sqlite_file.refuse_old_sqlite(version)
        return
    with pytest.raises(UnavailableError, match=r"SQLite 3\.\d+\.\d+ can corrupt"):
        sqlite_file.refuse_old_sqlite(version)


MOUNTS = """
21 1 0:1 / / rw - ext4 /dev/sda1 rw
30 21 0:9 / /mnt/nas rw,relatime shared:1 - nfs4 nas:/export rw
31 21 0:9 / /mnt/with\\040space rw - cifs //host/share rw
32 30 0:2 / /mnt/nas/local rw - xfs /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/scrubjay", None),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nas/data", "nfs4"),
        ("/mnt/nasty", None),
        ("/mnt/nas/local/x", None),
        ("/mnt/with space/x", "cifs"),
    ],
)
def test_a_network_file_system_is_refused(tmp_path: Path, folder: str, kind: str | None) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS, encoding="utf-8")

    if kind is None:
        sqlite_file.refuse_network(Path(folder), mounts)
        return
    with pytest.raises(UnavailableError, match=rf"network file system \({kind}\)"):
        sqlite_file.refuse_network(Path(folder), mounts)


async def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    first = await port.open(path, now=Clock(), entropy=os.urandom)

    with pytest.raises(ConflictError, match="in use by another process"):
        await port.open(path, now=Clock(), entropy=os.urandom)
    await first.close()
    await (await port.open(path, now=Clock(), entropy=os.urandom)).close()


async def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    foreign, broken = tmp_path / "a" / "server.db", tmp_path / "b" / "server.db"
    foreign.parent.mkdir()
    broken.parent.mkdir()
    with sqlite3.connect(foreign) as connection:
        connection.execute("create table mine (x)")
    connection.close()
    broken.write_bytes(b"nonsense" * 1_000)

    for path in (foreign, broken):
        before = path.read_bytes()
        with pytest.raises(CorruptError):
            await port.open(path, now=Clock(), entropy=os.urandom)
        assert path.read_bytes()[100:] == before[100:]


async def test_a_file_is_for_its_owner_only_and_set_up_for_safety(tmp_path: Path) -> None:
    path = tmp_path / "data" / "server.db"
    found = await port.open(path, now=Clock(), entropy=os.urandom)

    def pragmas(tx: Transaction) -> dict[str, Any]:
        names = ("journal_mode", "synchronous", "busy_timeout", "trusted_schema", "cell_size_check", "mmap_size")
        rows = {name: tx.rows(f"pragma {name}") for name in (*names, "auto_vacuum")}
        return {name: row[0][0] if row else 0 for name, row in rows.items()}

    everyone = [await found.read(pragmas), await found.write(pragmas)]
    await found.close()

    expected = {
        "journal_mode": "wal",
        "synchronous": 2,
        "busy_timeout": 5000,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "mmap_size": 0,
        "auto_vacuum": 2,
    }
    assert everyone == [expected, expected]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_copy_is_whole_and_a_file_shrinks(tmp_path: Path) -> None:
    async with opened(tmp_path / "server.db", policy=CHEAP) as world:
        device = await signed_up(world.client, now=world.now)
        await device.push(*[device.quick(20_000) for _ in range(30)])
        copy = tmp_path / "copy.db"
        await world.database.copy_to(copy)
        await world.database.write(lambda tx: tx.execute("delete from object"))
        free = (await world.rows("pragma freelist_count"))[0][0]
        await world.database.shrink(10_000)

        assert free > 100
        assert (await world.rows("pragma freelist_count"))[0][0] == 0
        with pytest.raises(ConflictError):
            await world.database.copy_to(copy)
    with sqlite3.connect(copy) as connection:
        assert connection.execute("select count(*) from object").fetchone() == (30,)
    connection.close()


async def test_inline_works_alike_without_a_thread(tmp_path: Path) -> None:
    found = await port.open(tmp_path / "server.db", now=Clock(), entropy=os.urandom, inline=True)

    def fails(tx: Transaction) -> None:
        put("x1", "lost")(tx)
        raise InvalidError("no", hint="")

    await found.write(put("x0", "kept"))
    with pytest.raises(InvalidError):
        await found.write(fails)

    assert await found.read(held("x")) == [("x0", "kept")]
    await found.close()


async def test_connections_that_the_server_ended_are_replaced(postgres: str) -> None:
    found = await port.open(postgres, now=Clock(), entropy=os.urandom)
    await asyncio.gather(*(found.read(lambda tx: tx.rows("select pg_sleep(0.05)")) for _ in range(8)))
    with psycopg.connect(postgres, autocommit=True) as connection:
        ended = connection.execute(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        ).fetchone()

    looked = await asyncio.gather(*(found.lookup(lookup_of("meta", found), b"t0") for _ in range(8)))
    rows = await asyncio.gather(*(found.read(lambda tx: tx.rows("select 1")) for _ in range(8)))
    await found.write(put("t1", "x"))
    await found.write(put("t2", "x"), account=b"a" * 16)
    await found.close()

    assert ended is not None
    assert ended[0] > 1
    assert looked == [None] * 8
    assert rows == [[(1,)]] * 8


async def test_a_postgres_that_is_not_there_is_named_and_its_address_is_not(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        await port.open(f"postgres://user:secret@/x?host={tmp_path}", now=Clock(), entropy=os.urandom)

    assert "secret" not in str(caught.value) + caught.value.hint


# --- every table is bounded -------------------------------------------------------------------------------------------


async def filled(world: World) -> None:
    """Some of everything that ends by age."""
    device = await signed_up(world.client, now=world.now)
    await second_device(device)
    pending = await device.account.login(world.client)
    await device.ask(pending)
    sent = [device.quick() for _ in range(6)]
    await device.push(*sent)
    await device.send("/v1/pack", [device.pack(sent[:4])])
    await device.client.call(
        "PUT", "/v1/account/name", SetName(auth_key=device.account.auth_key, username="bea"), answer=AccountName
    )
    await world.database.write(lambda tx: create_invite(tx, random=bytes(15), now=world.now(), policy=CHEAP))


AGED = ("token", "enroll", "challenge", "invite", "bucket", "audit", "former_name", "known_network")


async def test_everything_that_ages_goes_in_the_end(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=CHEAP) as world:
        await filled(world)
        before = {table: (await world.rows(f"select count(*) from {table}"))[0][0] for table in AGED}

        young = await sweep(world.database, world.now(), CHEAP)
        world.now.at += CHEAP.superseded_ms
        week = await sweep(world.database, world.now(), CHEAP)
        superseded = await world.rows("select superseded from account")
        world.now.at += 400 * DAY_MS
        rest = await sweep(world.database, world.now(), CHEAP)

        assert all(before.values())
        assert young == Swept()
        assert week.objects == 4
        assert superseded == [(0,)]
        assert {table: (await world.rows(f"select count(*) from {table}"))[0][0] for table in AGED} == dict.fromkeys(
            AGED, 0
        )
        assert rest.rows + week.rows == sum(before.values()) + 4
        assert await world.rows("select count(*), sum(size) from object") == await world.rows(
            "select objects, bytes from account"
        )


async def test_a_sweep_goes_on_until_nothing_is_left(cloud_store: str | Path) -> None:
    policy = replace(CHEAP, sweep_rows=2)
    async with opened(cloud_store, policy=policy) as world:
        await filled(world)
        world.now.at += 400 * DAY_MS

        swept = await sweep(world.database, world.now(), policy)

        assert swept.objects == 4
        assert await world.rows("select count(*) from object where superseded_at is not null") == [(0,)]


async def test_an_account_keeps_so_many_audit_rows_and_no_more(cloud_store: str | Path) -> None:
    policy = replace(CHEAP, audit_rows=3)
    async with opened(cloud_store, policy=policy) as world:
        device = await signed_up(world.client, now=world.now)
        for _ in range(4):
            await device.account.login(world.client)

        await sweep(world.database, world.now(), policy)

        assert await world.rows("select what from audit order by id") == [("login",)] * 3


async def test_no_table_is_without_a_bound(cloud_store: str | Path) -> None:
    """Each table is bounded by age (swept), by a limit of an account, or by the number of accounts, and says which."""
    bounds = {
        "age": {"token", "enroll", "challenge", "invite", "bucket", "audit", "former_name", "known_network"}
        | {"loose_body"},
        "an account's limits": {"account_log", "account_state", "device", "wrap", "lane", "object", "blob", "refusal"},
        "accounts": {"account"},
        "the operator": {"meta", "migration", "lease"},
        "a team's limits": {"team", "team_log", "team_member", "team_wrap", "team_card", "team_lane", "team_object"},
    }
    found = await port.open(cloud_store, now=Clock(), entropy=os.urandom)
    tables = set(await found.read(_columns))
    await found.close()

    materialised = {table for table in tables if table.startswith("mem")}  # from objects of searchable scopes: as many
    assert tables - materialised == set().union(*bounds.values())


# --- small proofs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "code"),
    [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ],
)
def test_codes_are_those_of_rfc_6238(time: int, code: str) -> None:
    assert totp(b"12345678901234567890", time // 30) == code


async def test_the_log_of_requests_names_no_one_and_shows_nothing(
    cloud_store: str | Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with opened(cloud_store, policy=CHEAP) as world:
        device = await signed_up(world.client, "canary-name", now=world.now)
        await device.push(device.segment(b"canary-content"))
        await device.pull()
        await Client(world.client.http).http.get("/v1/prelogin?username=canary-name")
        account = device.account

    text = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("scrubjay"))
    assert "method=POST route=/v1/push status=200 ms=" in text
    assert f"account={account.id.hex()[:8]}" in text
    for secret in ("canary", device.client.token, account.id.hex(), account.auth_key.hex()):
        assert secret not in text


async def test_a_keyring_that_was_replaced_stays_half_a_year(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=CHEAP) as world:
        device = await signed_up(world.client, now=world.now)
        rings = [keyring(device.account, version) for version in (1, 2)]
        for version, ring in enumerate(rings, start=1):
            device.account.say(EntryType.KEYRING_SET, {1: version, 2: object_hash(ring)})
            await device.append(device.account.entries[-1], blobs=[ring])
        world.now.at += CHEAP.keyring_ms - 1
        early = await sweep(world.database, world.now(), CHEAP)
        world.now.at += 1
        late = await sweep(world.database, world.now(), CHEAP)

        assert (early.keyrings, late.keyrings) == (0, 1)
        assert await world.rows("select body from blob") == [(rings[1],)]
        assert accountlog.replay(device.account.entries).keyring == (2, object_hash(rings[1]))
