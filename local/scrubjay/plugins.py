"""Background workers of other packages inside the daemon. One that nobody uses is never imported.

A package announces a worker under the entry point group `scrubjay.workers`: an async function from the open service and
the settings to a `Worker`. A worker named N is started with the daemon if the data directory holds `N.json`, the record
that its own commands leave while it is in use; else by the first request for it.

They are other people's code, and may fail in any way (a library that is missing or broken, a bug): that is logged and
said in `status`, and the daemon serves without them.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scrubjay.tracebacks import frames_of
from scrubjay_shared.errors import NotFoundError, ScrubjayError, UnavailableError
from scrubjay_shared.extras import install_command

if TYPE_CHECKING:
    from scrubjay.service.service import Service
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
        self._failed: dict[str, ScrubjayError] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to tell a person of workers that are in use and do not run."""
        return tuple(
            f"{name} does not run: {error.message}. {error.hint}".rstrip()
            for name, error in sorted(self._failed.items())
        )

    async def start(self) -> None:
        """Start those that are in use. One that fails is logged and remembered: the daemon serves without it."""
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
        """Return a running worker, started where it does not run yet. Raises ScrubjayError, whatever went wrong."""
        async with self._starting:
            if self._closed:
                raise UnavailableError("the daemon is stopping", hint="scrubjay daemon start starts it again")
            if name not in self._running:
                found = importlib.metadata.entry_points(group=GROUP, name=name)
                if not found:
                    raise NotFoundError(
                        f"this daemon has no part called {name[:40]!r}", hint=f"pip install 'scrubjay[{name}]'"
                    )
                try:
                    self._running[name] = await self._started(next(iter(found)))
                except ScrubjayError as error:
                    self._failed[name] = error
                    raise
                self._failed.pop(name, None)
                log.info("worker started name=%s", name)
            return self._running[name]

    async def _started(self, found: importlib.metadata.EntryPoint) -> Worker:
        try:
            start = await asyncio.to_thread(found.load)
            worker: Worker = await start(self._service, self._settings)
        except ScrubjayError:
            raise
        except ImportError as error:
            raise unloadable(found.name, found.name, error) from error
        except Exception as error:
            log.error("worker failed name=%s error=%s at=%s", found.name, type(error).__qualname__, frames_of(error))  # noqa: TRY400  # not its words: they may quote a memory
            raise UnavailableError(
                f"{found.name} cannot be started ({type(error).__qualname__})",
                hint="scrubjay daemon logs shows where it failed",
            ) from error
        return worker

    async def close(self) -> None:
        """End all of them; none is started any more. A second call does nothing.

        One that cannot end does not hold up the others.
        """
        self._closed = True
        async with self._starting:
            while self._running:
                name, worker = self._running.popitem()
                try:
                    await worker.close()
                except Exception as error:  # noqa: BLE001  # the daemon must end, and close its store
                    log.error("worker failed name=%s error=%s at=%s", name, type(error).__qualname__, frames_of(error))  # noqa: TRY400  # as above
                else:
                    log.info("worker stopped name=%s", name)


def unloadable(what: str, extra: str, error: ImportError) -> UnavailableError:
    """Return the error for a package that is not all there: something it needs is missing, or cannot be loaded."""
    command = install_command(extra, importlib.metadata.distribution("scrubjay"), Path(sys.prefix))
    if isinstance(error, ModuleNotFoundError):
        return UnavailableError(
            f"{what} needs the extra '{extra}', which is not installed ({error.name} is missing)", hint=command
        )
    return UnavailableError(f"{what} cannot be loaded: {error.msg[:200]}", hint=f"install its parts again: {command}")
