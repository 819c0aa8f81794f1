"""Real stores in temporary folders: nothing of the product is replaced by a stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest

from scrubjay.service import Service
from scrubjay_shared.records import EventDraft

# How long an example takes says how busy the machine is, not whether the law holds.
hypothesis.settings.register_profile("scrubjay", deadline=None)
hypothesis.settings.load_profile("scrubjay")

Opener = Callable[..., AbstractAsyncContextManager[Service]]


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
    async def open_service(path: Path = store_path, **options: Any) -> AsyncIterator[Service]:
        chosen: dict[str, Any] = {"models_dir": store_path.parent / "models", "model": "none"} | options
        service = await Service.open(path, **chosen)
        try:
            yield service
        finally:
            await service.close()

    return open_service


@pytest.fixture
async def service(opened: Opener) -> AsyncIterator[Service]:
    """A service on a new file, without an embedding model."""
    async with opened() as one:
        yield one


@pytest.fixture(scope="session")
def conversation() -> tuple[EventDraft, ...]:
    """The sample conversation that ships with the product."""
    text = resources.files("scrubjay").joinpath("samples", "conversation.jsonl").read_text(encoding="utf-8")
    return tuple(msgspec.json.decode(line, type=EventDraft) for line in text.splitlines())
