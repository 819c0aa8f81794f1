"""What an operator does: invitations, accounts, and writing down that a backup or drill was made.

On SQLite the service holds the folder's lock while it runs. These are single short transactions, which SQLite itself
keeps apart from the service's, so they go beside it; everything longer wants the service stopped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from filelock import FileLock

from scrubjay_cloud import database
from scrubjay_cloud.accounts.quotas import Quota, quota_of, set_quota
from scrubjay_cloud.accounts.registration import INVITE_BYTES, create_invite
from scrubjay_cloud.backup import BackedUp, back_up
from scrubjay_cloud.bodies import open_store
from scrubjay_cloud.credentials import folded
from scrubjay_cloud.database import Database, Transaction, sqlite_file
from scrubjay_cloud.database.sqlite import InlineSqliteDatabase
from scrubjay_cloud.drill import Drilled, drill
from scrubjay_cloud.jobs import BACKUP_AT, keep, note, note_drill, take
from scrubjay_cloud.migrate import Migrated, migrate
from scrubjay_cloud.policy import DEFAULT, OPERATIONS
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.wire import Invite

_HOLDER = "scrubjay-cloud admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One account, as its operator may see it: no key, no label, no name of anything that it holds."""

    name: str
    account: str
    devices: int
    objects: int
    bytes: int
    created: int
    last_seen: int
    locked: bool
    quota: int | None
    """Bytes that it may hold, where that was set for it; None where the server's default counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Time and randomness, as every command is given them."""

    now: Callable[[], Millis]
    entropy: Callable[[int], bytes]


@asynccontextmanager
async def opened(settings: Settings, ways: Ways, *, beside: bool) -> AsyncIterator[Database]:
    """Open the database; with `beside`, an SQLite file that a running service has open, too.

    Raises as `database.open`; ConflictError beside a service of another version.
    """
    if not settings.database_url and not settings.database_path.is_file():
        raise NotFoundError(
            f"there is no database in {settings.data}",
            hint="check --data and SCRUBJAY_CLOUD_DATA; scrubjay-cloud serve makes a database",
        )
    try:
        opened_database = await database.open(settings, now=ways.now, entropy=ways.entropy)
    except ConflictError:
        if settings.database_url or not beside:
            raise
        opened_database = _beside(settings)
    try:
        yield opened_database
    finally:
        await opened_database.close()


def _beside(settings: Settings) -> Database:
    path = settings.database_path
    with sqlite_file.translated(path):
        connection = sqlite_file.raw(path, read_only=False)
        try:
            _refuse_other_version(connection.execute("select max(version) from migration").fetchone()[0])
            meta = dict(connection.execute("select k, v from meta").fetchall())
        except BaseException:
            connection.close()
            raise
    return InlineSqliteDatabase(path, FileLock(path.with_name("lock")), connection, meta)


def _refuse_other_version(found: int) -> None:
    if found != database.latest("sqlite"):
        raise ConflictError("the running service is of another version", hint="restart it with this version first")


async def invite(settings: Settings, ways: Ways) -> Invite:
    """Make an invitation that registers one account."""
    async with opened(settings, ways, beside=True) as opened_database:
        random, now = ways.entropy(INVITE_BYTES), ways.now()
        return await opened_database.write(lambda tx: create_invite(tx, random=random, now=now, policy=DEFAULT))


async def users(settings: Settings, ways: Ways) -> list[User]:
    """Return every account, by name."""
    async with opened(settings, ways, beside=True) as opened_database:
        return await opened_database.read(_users)


def _users(tx: Transaction) -> list[User]:
    return [
        User(
            name=row[0],
            account=bytes(row[1]).hex(),
            objects=row[2],
            bytes=row[3],
            created=row[4],
            locked=row[5] != 0,
            devices=int(row[6]),
            last_seen=int(row[7]),
            quota=row[8],
        )
        for row in tx.rows(
            "select name, id, objects, bytes, created, status,"
            " (select count(*) from device where account = account.id and revoked_at is null),"
            " (select coalesce(max(last_seen), 0) from device where account = account.id), quota"
            " from account order by name"
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an operator wants an account's quota to be: so many bytes, or the server's default with None."""

    bytes: int | None


async def quota(settings: Settings, ways: Ways, name: str, change: Change | None = None) -> Quota:
    """Return an account's quota, after changing it where that is asked for. It counts from the next request on.

    Raises NotFoundError for a name that nobody has, InvalidError for one that nobody can have.
    """
    folded_name = folded(name, DEFAULT)
    async with opened(settings, ways, beside=True) as opened_database:
        if change is None:
            return await opened_database.read(lambda tx: quota_of(tx, folded_name))
        now = ways.now()
        return await opened_database.write(lambda tx: set_quota(tx, folded_name, change.bytes, now))


async def backup(settings: Settings, ways: Ways) -> BackedUp:
    """Make a backup beside the service or without it; the service then makes none of its own that day."""
    if settings.database_url:
        raise InvalidError(
            "scrubjay-cloud does not back up PostgreSQL",
            hint="use PostgreSQL's own archive, pg_basebackup or pg_dump",
        )
    async with opened(settings, ways, beside=True) as opened_database:
        now = ways.now()
        made = await back_up(opened_database, settings.backups, OPERATIONS, now=now)
        await opened_database.write(lambda tx: _noted_backup(tx, now))
        return made


async def drilled(settings: Settings, ways: Ways) -> list[Drilled]:
    """Run the drill beside the service or without it, and write down how it went."""
    async with opened(settings, ways, beside=True) as opened_database:
        now = ways.now()
        done = drill(settings)
        await opened_database.write(lambda tx: _noted_drill(tx, done, now))
        return done


def _noted_backup(tx: Transaction, now: Millis) -> None:
    note(tx, BACKUP_AT, now)
    _not_due(tx, "backup", now)


def _noted_drill(tx: Transaction, done: list[Drilled], now: Millis) -> None:
    note_drill(tx, done, now)
    _not_due(tx, "drill", now)


def _not_due(tx: Transaction, job: str, now: Millis) -> None:
    if take(tx, job, _HOLDER, now, OPERATIONS.daily_s):
        return
    row = tx.row("select holder from lease where job = ?", (job,))
    keep(tx, job, str(row[0]) if row else "", Millis(now + round(OPERATIONS.daily_s * 1000)))


async def moved(settings: Settings, ways: Ways, *, to_sqlite: bool) -> Migrated:
    """Copy the whole service from the SQLite file to PostgreSQL, or back; the source stays as it is."""
    if not settings.database_url:
        raise InvalidError("migrating needs the address of PostgreSQL", hint="set DATABASE_URL, or give --database-url")
    if not to_sqlite and not settings.database_path.is_file():
        raise NotFoundError(f"there is no {settings.database_path.name} in {settings.data}", hint="check --data")
    file = await database.open(settings.database_path, now=ways.now, entropy=ways.entropy)
    try:
        server = await database.open(settings.database_url, now=ways.now, entropy=ways.entropy)
        try:
            source, target = (server, file) if to_sqlite else (file, server)
            return await migrate(source, target, open_store(settings) if to_sqlite else None)
        finally:
            await server.close()
    finally:
        await file.close()
