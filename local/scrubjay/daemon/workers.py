"""Background workers of other packages inside the daemon. One that nobody uses is never imported.

A package announces a worker under the entry point group `scrubjay.workers`: an async function from the open service and
the settings to a `Worker`. A worker named N is started with the daemon if the data directory holds `N.json`, the record
that its own commands leave while it is in use; else by the first request for it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from typing import TYPE_CHECKING, Protocol

from scrubjay_shared.errors import NotFoundError, ScrubjayError, UnavailableError

if TYPE_CHECKING:
    from scrubjay.service import Service
    from scrubjay.settings import Settings

GROUP = "scrubjay.workers"

log = logging.getLogger(__name__)


class Worker(Protocol):
    """What runs beside the service: it answers requests of its own commands, and ends when told."""

    async def call(self, verb: str, body: bytes) -> bytes:
        """Return the JSON answer to a JSON request. Raises ScrubjayError."""

    async def close(self) -> None:
        """End the work under way; nothing of it is lost."""


class Workers:
    """The workers of one daemon."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._service = service
        self._settings = settings
        self._running: dict[str, Worker] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    async def start(self) -> None:
        """Start those that are in use. One that fails is logged: the daemon serves without it."""
        for name in sorted(path.stem for path in self._settings.data_dir.glob("*.json")):
            if importlib.metadata.entry_points(group=GROUP, name=name):
                try:
                    await self._worker(name)
                except ScrubjayError as error:
                    log.warning("worker failed name=%s code=%s message=%s", name, error.code, error.message)

    async def call(self, name: str, verb: str, body: bytes) -> bytes:
        """Hand a request to a worker, starting it first where it does not run."""
        return await (await self._worker(name)).call(verb, body)

    async def _worker(self, name: str) -> Worker:
        async with self._starting:
            if self._closed:
                raise UnavailableError("the daemon is stopping", hint="scrubjay daemon start starts it again")
            if name not in self._running:
                found = importlib.metadata.entry_points(group=GROUP, name=name)
                if not found:
                    raise NotFoundError(f"nothing here is called {name[:40]!r}", hint=f"pip install 'scrubjay[{name}]'")
                try:
                    start = await asyncio.to_thread(next(iter(found)).load)
                except ModuleNotFoundError as error:
                    raise UnavailableError(
                        f"{name} needs {error.name}, which is not installed", hint=f"pip install 'scrubjay[{name}]'"
                    ) from error
                self._running[name] = await start(self._service, self._settings)
                log.info("worker started name=%s", name)
            return self._running[name]

    async def close(self) -> None:
        """End all of them; none is started any more. Twice is once."""
        self._closed = True
        async with self._starting:
            while self._running:
                name, worker = self._running.popitem()
                await worker.close()
                log.info("worker stopped name=%s", name)
