"""`scrubjay-cloud check`: whether this machine and these settings can run the service, line by line with what to do."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import shutil
import ssl
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import psycopg

from scrubjay_cloud import database, litestream
from scrubjay_cloud.backup import backups
from scrubjay_cloud.bodies import BodyStore, open_store
from scrubjay_cloud.database import sqlite_file
from scrubjay_cloud.pepper import HOW, path_in
from scrubjay_cloud.policy import OPERATIONS
from scrubjay_cloud.restore import KEPT
from scrubjay_cloud.settings import Settings
from scrubjay_io.sqlite import version as sqlite_version
from scrubjay_shared.errors import ScrubjayError, UnavailableError

SAFE_PGVECTOR = (0, 8, 0)
"""Older ones return too few rows when a filter stands beside the distance."""
SAFE_POSTGRES = 150_000
"""15: what this is tested from."""
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a service that listens everywhere is asked
_READY_S = 5.0


class Level(StrEnum):
    """What a line says."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that was looked at; `todo` says what to do when it is not ok."""

    name: str
    level: Level
    words: str
    todo: str = ""


def ok(name: str, words: str) -> Line:
    """Return a line about what is as it should be."""
    return Line(name=name, level=Level.OK, words=words)


def warn(name: str, words: str, todo: str) -> Line:
    """Return a line about what works and should be better."""
    return Line(name=name, level=Level.WARN, words=words, todo=todo)


def fail(name: str, words: str, todo: str) -> Line:
    """Return a line about what keeps the service from starting, or from being trusted."""
    return Line(name=name, level=Level.FAIL, words=words, todo=todo)


def checked(settings: Settings, *, now: Callable[[], int]) -> Iterator[Line]:
    """Yield the lines. Changes nothing but a probe in the store of bodies; may run beside the service."""
    yield from _configuration(settings)
    if settings.database_url:
        yield from _guarded("postgres", lambda: _postgres(settings))
        yield from _guarded("bodies", lambda: _bodies(settings))
        yield ok("backups", "PostgreSQL's own: its archive, pg_basebackup or pg_dump; see that they run and restore")
        return
    yield from _guarded("sqlite", _engine)
    yield from _guarded("folder", lambda: _folder(settings))
    yield from _guarded("disk", lambda: _disk(settings))
    yield from _guarded("database", lambda: _file(settings))
    yield from _guarded("replica", lambda: _replica(settings))
    yield from _guarded("backups", lambda: _backups(settings, now()))


def _guarded(name: str, lines: Callable[[], Iterator[Line]]) -> Iterator[Line]:
    try:
        yield from lines()
    except ScrubjayError as error:
        yield fail(name, error.message, error.hint)
    except OSError as error:
        yield fail(name, f"{error.filename or name}: {(error.strerror or 'failed').lower()}", "check its permissions")


def _configuration(settings: Settings) -> Iterator[Line]:
    if settings.origin:
        yield ok("origin", settings.origin)
    else:
        yield warn(
            "origin", "no origin is set: clients may come by any name", "set SCRUBJAY_CLOUD_ORIGIN to the https address"
        )
    if settings.secure and not settings.proxies and settings.tls_cert is None:
        yield warn(
            "proxies",
            "no proxy is trusted: every client counts as the proxy's one address",
            "set SCRUBJAY_CLOUD_PROXIES to the proxy's network",
        )
    if not settings.pepper:
        if settings.secure or settings.database_url:
            yield fail("pepper", "no pepper is set: the service does not start without one", HOW)
        else:
            kept = path_in(settings.data)
            yield warn("pepper", f"none is set: {kept} is made and used", "for others than yourself: " + HOW)
    if settings.registration == "open":
        yield warn("registration", "anybody may sign up", "set SCRUBJAY_CLOUD_REGISTRATION=invite unless you mean it")
    else:
        yield ok("registration", "by invitation")


def _engine() -> Iterator[Line]:
    sqlite_file.refuse_old_sqlite()
    yield ok("sqlite", f"SQLite {sqlite_version}")


def _folder(settings: Settings) -> Iterator[Line]:
    folder = settings.data
    if not folder.exists():
        yield warn("folder", f"{folder} is not there yet", "scrubjay-cloud serve makes it")
        return
    sqlite_file.refuse_network(folder)
    state = folder.stat()
    if state.st_uid != os.geteuid():
        yield fail(
            "folder", f"{folder} belongs to another user", f"chown it to user {os.geteuid()}, or run as its owner"
        )
    elif stat.S_IMODE(state.st_mode) & 0o077:
        yield warn("folder", f"{folder} is open to other users", f"chmod 700 {folder}")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield fail("folder", f"{folder} cannot be written", f"chmod 700 {folder}")
    else:
        yield ok("folder", str(folder))


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _disk(settings: Settings) -> Iterator[Line]:
    free = shutil.disk_usage(_existing(settings.data)).free
    words = f"{free >> 20} MiB free"
    if free < OPERATIONS.low_bytes:
        yield fail("disk", words, "free some space: pushes will soon be refused")
    elif free < OPERATIONS.free_bytes:
        yield warn("disk", words, "free some space")
    else:
        yield ok("disk", words)


def _file(settings: Settings) -> Iterator[Line]:
    path = settings.database_path
    if not path.is_file():
        yield ok("database", "not made yet; scrubjay-cloud serve makes it")
        return
    with sqlite_file.translated(path), contextlib.closing(sqlite_file.raw(path, read_only=True)) as connection:
        identity = connection.execute("pragma application_id").fetchone()[0]
        if identity != sqlite_file.APPLICATION_ID:
            yield fail("database", f"{path} is not a database of this service", "choose another data folder")
            return
        version, latest = (
            connection.execute("select max(version) from migration").fetchone()[0],
            database.latest("sqlite"),
        )
        if version > latest:
            yield fail("schema", f"version {version}, and this program knows {latest}", "update scrubjay")
        elif version < latest:
            yield warn("schema", f"version {version} of {latest}", "scrubjay-cloud serve migrates it at its start")
        else:
            yield ok("schema", f"version {version}")
        words = connection.execute("pragma quick_check(1)").fetchone()[0]
        if words != "ok":
            yield fail("database", f"{path.name} is damaged: {words}", "stop the service; scrubjay-cloud admin restore")
        else:
            generation = connection.execute("select v from meta where k = 'generation'").fetchone()[0]
            yield ok("database", f"intact, {path.stat().st_size >> 20} MiB, generation {generation}")


def _replica(settings: Settings) -> Iterator[Line]:
    if not settings.replica:
        yield warn(
            "replica",
            "there is no replica: the loss of this disk costs everything since the last backup that no device has",
            "set SCRUBJAY_CLOUD_REPLICA to a bucket or a folder on another disk",
        )
        return
    litestream.socket_of(settings.database_path)
    binary = litestream.checked_program()
    yield ok("litestream", ".".join(map(str, litestream.version(binary))))
    if settings.replica.startswith("s3://") and "AWS_CA_BUNDLE" in os.environ:
        yield warn(
            "litestream", "AWS_CA_BUNDLE is set: a litestream beside the service fails with it", "unset it there"
        )


def _backups(settings: Settings, now: int) -> Iterator[Line]:
    if kept := [path.name for path in settings.data.glob(f"{KEPT}*")]:
        yield warn(
            "kept", f"{', '.join(sorted(kept))}", "delete what is not needed: what people deleted is still in it"
        )
    made = backups(settings.backups) if settings.backups.is_dir() else []
    if not made:
        yield warn(
            "backups",
            f"there is no backup in {settings.backups}",
            "the service makes one a day; scrubjay-cloud admin backup",
        )
        return
    age = datetime.fromtimestamp(now / 1000, UTC) - made[-1].at
    words = f"{len(made)}, the newest {age.total_seconds() / 3600:.0f} h old"
    if age.total_seconds() > OPERATIONS.backup_alarm_s:
        yield warn("backups", words, "see the service's log for why none is made; scrubjay-cloud admin backup")
    else:
        yield ok("backups", words)


def _postgres(settings: Settings) -> Iterator[Line]:
    try:
        with psycopg.connect(
            settings.database_url, connect_timeout=10, application_name="scrubjay-cloud check"
        ) as server:
            version = server.info.server_version
            vector = server.execute(
                "select default_version from pg_available_extensions where name = 'vector'"
            ).fetchone()
            encoding = server.execute("show server_encoding").fetchone()
            there = server.execute("select to_regclass('migration')").fetchone()
            schema = server.execute("select max(version) from migration").fetchone() if there and there[0] else None
    except psycopg.Error as error:
        yield fail("postgres", f"it cannot be reached: {type(error).__name__}", "check DATABASE_URL and the network")
        return
    words = f"PostgreSQL {version // 10000}.{version % 10000}"
    yield (
        ok("postgres", words)
        if version >= SAFE_POSTGRES
        else warn("postgres", f"{words}: tested from 15", "update PostgreSQL")
    )
    if vector is None:
        yield warn("pgvector", "not there: searchable scopes will find by words only", "install pgvector 0.8 or newer")
    elif tuple(int(part) for part in str(vector[0]).split(".")) < SAFE_PGVECTOR:
        yield warn("pgvector", f"{vector[0]}: filtered searches may find too little", "install pgvector 0.8 or newer")
    else:
        yield ok("pgvector", str(vector[0]))
    if encoding and encoding[0] != "UTF8":
        yield warn("encoding", f"{encoding[0]}", "make the database with encoding UTF8")
    latest = database.latest("postgres")
    schema_version = schema[0] if schema else None
    if schema_version is None:
        yield ok("schema", "not made yet; scrubjay-cloud serve makes it")
    elif schema_version > latest:
        yield fail("schema", f"version {schema_version}, and this program knows {latest}", "update scrubjay")
    elif schema_version < latest:
        yield warn("schema", f"version {schema_version} of {latest}", "scrubjay-cloud serve migrates it at its start")
    else:
        yield ok("schema", f"version {schema_version}")


def _bodies(settings: Settings) -> Iterator[Line]:
    store = open_store(settings)
    if store is None:
        yield ok("bodies", "all in the database")
        return
    if settings.bodies_endpoint.startswith("http://"):
        yield warn("bodies", "the store is asked without TLS", "use its https address, unless the network is your own")
    key, probe = f"check/{os.urandom(8).hex()}", os.urandom(32)
    began = time.monotonic()
    same = asyncio.run(_kept(store, key, probe))
    words = f"{settings.bodies}: one written, read and deleted in {(time.monotonic() - began) * 1000:.0f} ms"
    if same:
        yield ok("bodies", words)
    else:
        yield fail("bodies", f"{settings.bodies} gave back something else than was written", "use another store")


async def _kept(store: BodyStore, key: str, probe: bytes) -> bool:
    await store.put(key, probe)
    try:
        return await store.get(key) == probe
    finally:
        await store.delete([key])


def ready(settings: Settings) -> str:
    """Return what the running service says of itself at /readyz. Raises UnavailableError when it is not ready."""
    host = _ANYWHERE.get(settings.host, settings.host)
    connection: http.client.HTTPConnection
    if settings.tls_cert is not None:
        # Its own certificate names the public address, not this one; nothing secret is asked or told.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection = http.client.HTTPSConnection(host, settings.port, timeout=_READY_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, settings.port, timeout=_READY_S)
    began = time.monotonic()
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        words = answer.read(4096).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(
            f"nothing answers at {host}:{settings.port}", hint="scrubjay-cloud serve starts the service"
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise UnavailableError(f"the service is not ready: {words}", hint="see its log")
    return f"{words} after {(time.monotonic() - began) * 1000:.0f} ms"
