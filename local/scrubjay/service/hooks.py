"""Hooks: what a host reports becomes events, whether it comes at once or by the spool; a second delivery is seen.

What a host delivers is trusted by who speaks in it: the person in what they typed, the agent in its answers, nobody in
what a tool printed. That it came from a host at all, the transport knows; nothing in a payload can say so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil

from scrubjay import api, hosts, spool
from scrubjay.api.caller import Caller
from scrubjay.hosts import Captured
from scrubjay.ingest import intake, payloads
from scrubjay.policy import MemoryPolicy
from scrubjay.service.events import Events
from scrubjay.service.threads import off_loop
from scrubjay.spool import Report
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.records import Json

log = logging.getLogger(__name__)

MAX_REPORT_BYTES = 32 * 1024 * 1024
"""One payload: as much as a hook reads of its standard input."""

TRANSCRIPT_BYTES = 1024 * 1024
"""Read of a transcript's end, where the last words of an agent stand."""

DRAINED = 200
"""Reports of the spool that are stored in one transaction."""

OURS = "scrubjay's own"
"""Why nothing is stored of an agent that scrubjay itself started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A report as events that are ready to be stored, and what it was."""

    captured: Captured
    clean: tuple[intake.Clean, ...] = ()


class Hooks:
    """What hosts report to one store. `folder` is where the spool is."""

    def __init__(
        self, policy: MemoryPolicy, *, events: Events, folder: Path, now: Callable[[], Millis]
    ) -> None:
        self._policy = policy
        self._events = events
        self._now = now
        self.folder = folder

    async def hook(self, _: Caller, request: api.HookRequest) -> api.HookResponse:
        """Store what a host reports. Raises InvalidError for what is no payload of a host, TooLargeError."""
        host = _known(request.host)
        if len(request.data) > MAX_REPORT_BYTES:
            raise TooLargeError(
                f"a payload must have at most {MAX_REPORT_BYTES} bytes, got {len(request.data)}",
                hint="send what the host wrote to standard input",
            )
        if request.process is not None and await asyncio.to_thread(descends, request.process, os.getpid()):
            return api.HookResponse(dropped=OURS)
        payload = await off_loop(len(request.data), lambda: self._cleaned(request.data))
        now = self._now()
        report = Report(
            host=host,
            event=request.event,
            sent=now if request.sent is None else min(request.sent, now),
            project=request.project or "",
            payload=payload,
        )
        understood = await self.understood(report)
        return await self._stored(understood)

    async def understood(self, report: Report) -> Understood:
        """Return a report as events. Raises InvalidError or TooLargeError where they cannot be stored."""
        captured = hosts.normalise(
            report.host,
            report.payload,
            event=report.event or None,
            cwd=report.project or None,
            ts=Millis(report.sent),
            utc_offset=time.localtime(report.sent / 1000).tm_gmtoff // 60,
        )
        if captured.transcript is not None:
            captured = hosts.completed(captured, await asyncio.to_thread(_tail, Path(captured.transcript)))
        drafts = [replace(draft, project=draft.project or captured.cwd) for draft in captured.drafts]
        chars = sum(len(draft.text) for draft in drafts)
        work = partial(self._events.cleaned, drafts, intake.Source.HOST, Millis(report.sent))
        cleaned = await off_loop(chars, work)
        return Understood(captured=captured, clean=tuple(one for one in cleaned if isinstance(one, intake.Clean)))

    async def drain(self) -> int:
        """Store what waits in the spool, oldest first, and return how much that was.

        A file goes when its events are stored. One that cannot be stored is put aside, and the log says so.
        """
        files = await asyncio.to_thread(spool.waiting, self.folder)
        for start in range(0, len(files), DRAINED):
            await self._drain(files[start : start + DRAINED])
        return len(files)

    async def _drain(self, files: Sequence[Path]) -> None:
        clean: list[intake.Clean] = []
        done: list[Path] = []
        for path in files:
            try:
                report = await asyncio.to_thread(spool.read, path)
                clean += (await self.understood(replace(report, host=_known(report.host)))).clean
            except InvalidError as error:
                log.warning("spool: put aside name=%s code=%s", path.name, error.code)
                await asyncio.to_thread(spool.refuse, path)
            except FileNotFoundError:
                log.info("spool: gone before it was read name=%s", path.name)
            else:
                done.append(path)
        await self._events.append(clean, learn=True)
        for path in done:
            await asyncio.to_thread(spool.remove, path)

    async def _stored(self, understood: Understood) -> api.HookResponse:
        if not understood.clean:
            return api.HookResponse(dropped=understood.captured.dropped)
        stored = await self._events.append(understood.clean, learn=True)
        skipped = stored.skipped[0].reason if stored.skipped else None
        return api.HookResponse(accepted=stored.accepted, duplicates=stored.duplicates, dropped=skipped)

    def _cleaned(self, data: bytes) -> Json:
        return payloads.cleaned(payloads.parsed(data), self._policy)


def _known(host: str) -> str:
    """Return a host's name as we write it. Raises InvalidError for one that nobody knows."""
    known = hosts.host_name(host)
    if known is None:
        raise InvalidError(f"there is no host called {host[:40]!r}", hint=f"hosts: {', '.join(hosts.HOSTS)}")
    return known


def _tail(path: Path) -> bytes:
    """Return the end of a transcript; nothing where it cannot be read: the host may not have written it yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TRANSCRIPT_BYTES))
            return file.read()
    except (OSError, ValueError):
        log.info("no transcript to read the last words from")
        return b""


def descends(pid: int, ancestor: int) -> bool:
    """Say whether a process was started by another, or by one that it started.

    Everything descends from process 1, which a daemon in a container is.
    """
    try:
        return ancestor != 1 and any(process.pid == ancestor for process in psutil.Process(pid).parents())
    except psutil.Error:  # it has ended, or is another user's
        return False
    except ValueError:  # no number of a process
        return False
