"""Plugins: other packages inside the daemon. One that nobody uses is never imported.

A package announces a plugin under the entry point group `scrubjay.plugins`: an async function from the open service and
the settings to a `Plugin`, which brings background jobs, and operations under names that begin with its own
("sync.log_in"). A plugin named N is started with the daemon if the folder of the store holds `N.json`, the record that
its own commands leave while it is in use; else by the first request for one of its operations.

They are other people's code, and may fail in any way (a library that is missing or broken, a bug): that is logged and
said in `status`, and the daemon serves without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.tracebacks import frames_of
from scrubjay_shared.errors import NotFoundError, ScrubjayError, UnavailableError
from scrubjay_shared.extras import install_command

if TYPE_CHECKING:
    from scrubjay.api.operations import Operation
    from scrubjay.jobs.registry import Job
    from scrubjay.service.application import Application
    from scrubjay.service.handlers import Handler
    from scrubjay.settings import Settings

GROUP = "scrubjay.plugins"

START_S = 10.0
"""How long `status` waits for plugins that are starting: the daemon answers before they run."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What a package runs beside the service: its operations with their handlers, its jobs, and how it ends.

    `close` ends the work under way, with the runs of its jobs that are; nothing of it is lost.
    """

    operations: Sequence[tuple[Operation, Handler]]
    close: Callable[[], Awaitable[None]]
    jobs: Sequence[Job] = ()


class Plugins:
    """The plugins of one daemon."""

    def __init__(self, service: Application, settings: Settings) -> None:
        self._service = service
        self._settings = settings
        self._running: dict[str, Plugin] = {}
        self._failed: dict[str, ScrubjayError] = {}
        self._starting = asyncio.Lock()
        self._closed = False
        self._tried = asyncio.Event()

    async def warnings(self) -> tuple[str, ...]:
        """Return what to tell a person of plugins that are in use and do not run, once each has been tried."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._tried.wait(), START_S)
        return tuple(
            f"{name} does not run: {error.message}. {error.hint}".rstrip()
            for name, error in sorted(self._failed.items())
        )

    async def start(self) -> None:
        """Start those that are in use. One that fails is logged and remembered: the daemon serves without it."""
        try:
            for name in sorted(path.stem for path in self._settings.store_dir.glob("*.json")):
                if importlib.metadata.entry_points(group=GROUP, name=name):
                    try:
                        await self._plugin(name)
                    except ScrubjayError as error:
                        log.warning("plugin failed name=%s code=%s message=%s", name, error.code, error.message)
        finally:
            self._tried.set()

    async def find(self, name: str) -> Operation:
        """Return an operation of a plugin by its name, after starting the plugin where it does not run.

        Raises NotFoundError when there is none, and what starting the plugin raises.
        """
        plugin = await self._plugin(name.partition(".")[0])
        found = next((operation for operation, _ in plugin.operations if operation.name == name), None)
        if found is None:
            known = ", ".join(operation.name for operation, _ in plugin.operations)
            raise NotFoundError(f"there is no operation {name[:60]!r}", hint=f"operations: {known}")
        return found

    async def _plugin(self, name: str) -> Plugin:
        """Return a running plugin, started where it does not run yet. Raises ScrubjayError, whatever went wrong."""
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
                    plugin = await self._started(next(iter(found)))
                except ScrubjayError as error:
                    self._failed[name] = error
                    raise
                for operation, handler in plugin.operations:
                    self._service.handlers.register(operation, handler)
                for job in plugin.jobs:
                    self._service.scheduler.add(job)
                self._running[name] = plugin
                self._failed.pop(name, None)
                log.info("plugin started name=%s", name)
            return self._running[name]

    async def _started(self, found: importlib.metadata.EntryPoint) -> Plugin:
        try:
            start = await asyncio.to_thread(found.load)
            plugin: Plugin = await start(self._service, self._settings)
        except ScrubjayError:
            raise
        except ImportError as error:
            raise unloadable(found.name, found.name, error) from error
        except Exception as error:
            log.error("plugin failed name=%s error=%s at=%s", found.name, type(error).__qualname__, frames_of(error))  # noqa: TRY400  # not its words: they may quote a memory
            raise UnavailableError(
                f"{found.name} cannot be started ({type(error).__qualname__})",
                hint="scrubjay daemon logs shows where it failed",
            ) from error
        return plugin

    async def close(self) -> None:
        """End all of them; none is started any more. A second call does nothing.

        One that cannot end does not hold up the others.
        """
        self._closed = True
        async with self._starting:
            while self._running:
                name, plugin = self._running.popitem()
                for operation, _ in plugin.operations:
                    self._service.handlers.unregister(operation.name)
                try:
                    await plugin.close()
                except Exception as error:  # noqa: BLE001  # the daemon must end, and close its store
                    log.error("plugin failed name=%s error=%s at=%s", name, type(error).__qualname__, frames_of(error))  # noqa: TRY400  # as above
                else:
                    log.info("plugin stopped name=%s", name)
                for job in plugin.jobs:  # waits for a run under way, which `close` has ended
                    await self._service.scheduler.remove(job.name)


def unloadable(what: str, extra: str, error: ImportError) -> UnavailableError:
    """Return the error for a package that is not all there: something it needs is missing, or cannot be loaded."""
    command = install_command(extra, importlib.metadata.distribution("scrubjay"), Path(sys.prefix))
    if isinstance(error, ModuleNotFoundError):
        return UnavailableError(
            f"{what} needs the extra '{extra}', which is not installed ({error.name} is missing)", hint=command
        )
    return UnavailableError(f"{what} cannot be loaded: {error.msg[:200]}", hint=f"install its parts again: {command}")
