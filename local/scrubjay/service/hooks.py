"""Hooks: what a host reports becomes events, whether it comes at once or by the spool; a second delivery is seen.

What a host delivers is trusted by who speaks in it: the person in what they typed, the agent in its answers, nobody in
what a tool printed. That it came from a host at all, the transport knows; nothing in a payload can say so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from scrubjay import api, hosts, refusals, spool
from scrubjay.api.caller import Caller, Principal
from scrubjay.hosts import Captured
from scrubjay.ingest import intake, payloads
from scrubjay.policy import MemoryPolicy
from scrubjay.service.account_stores import AccountStores, Served
from scrubjay.service.context import Context
from scrubjay.service.events import OFF, Events
from scrubjay.service.handing import Handing, Wish
from scrubjay.service.project_names import ProjectNames
from scrubjay.service.session_switch import OFF_NOTICE, SessionSwitch
from scrubjay.service.threads import off_loop
from scrubjay.spool import Report
from scrubjay.store import Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError, TooLargeError, UnavailableError
from scrubjay_shared.records import EventDraft

log = logging.getLogger(__name__)

MAX_REPORT_BYTES = 32 * 1024 * 1024
"""One payload: as much as a hook reads of its standard input."""

TRANSCRIPT_BYTES = 1024 * 1024
"""Read of a transcript's end, where the last words of an agent stand."""

TRANSCRIPT_WAITS = (0.3, 0.7, 2.0)
"""Seconds between looks for words that are not there yet: Copilot CLI writes them a tenth of a second after it told."""

DRAINED = 200
"""Reports of the spool that are stored in one transaction."""

NOT_THE_FILES = (UnavailableError, CorruptError, NotFoundError, MemoryError)
"""Errors for which a file of the spool is left to wait: a store or the machine cannot take it now."""

UNKNOWN_HOST = "-"

EMPTIED = ("compact", "clear")
"""Of a session's start, the sources by which the agent has forgotten what it was handed."""

TRIED = "tried"
"""Why nothing is stored of an event that was sent on trial."""

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
        self,
        policy: MemoryPolicy,
        *,
        events: Events,
        project_names: ProjectNames,
        handing: Handing,
        context: Context,
        switch: SessionSwitch,
        store: Store,
        folder: Path,
        accounts: Callable[[], AccountStores | None],
        now: Callable[[], Millis],
    ) -> None:
        self._policy = policy
        self._events = events
        self._project_names = project_names
        self._handing = handing
        self._context = context
        self._switch = switch
        self._store = store
        self._now = now
        self._accounts = accounts
        self._late: set[asyncio.Future[None]] = set()
        self._told: dict[tuple[str, ...], float] = {}
        self.folder = folder

    async def hook(self, caller: Caller, request: api.HookRequest) -> api.HookResponse:
        """Store what a host reports. Raises InvalidError for what is no payload of a host, TooLargeError.

        What is refused is counted: a host takes no notice of an error, and sends nothing twice.
        """
        try:
            return await self._taken(caller, request)
        except InvalidError as error:
            if not request.trial:
                await self._count(request.host, refusals.reason_of(error))
            raise

    async def _taken(self, caller: Caller, request: api.HookRequest) -> api.HookResponse:
        host = self._host(request.host)
        if len(request.data) > MAX_REPORT_BYTES:
            raise TooLargeError(
                f"a payload must have at most {MAX_REPORT_BYTES} bytes, got {len(request.data)}",
                hint="send what the host wrote to standard input",
            )
        if request.process is not None and await asyncio.to_thread(descends, request.process, os.getpid()):
            return api.HookResponse(dropped=OURS)
        now = self._now()
        sent = now if request.sent is None else max(0, min(request.sent, now))

        def read() -> tuple[list[Report], bool]:
            found, more = payloads.all_parsed(request.data)
            return [
                Report(
                    host=host,
                    event=request.event,
                    sent=sent,
                    project=request.project or "",
                    payload=payloads.cleaned(payload, self._policy),
                    use_memory=request.use_memory,
                )
                for payload in found
            ], more

        reports, more = await off_loop(len(request.data), read)
        if more and not request.trial:
            await self._count(host, "not_json")
        *others, last = reports
        for report in others:  # each is as good as one that came alone, also when another is not
            try:
                await self._reported(caller, report, request)
            except InvalidError as error:
                await self._count(host, refusals.reason_of(error))
        return await self._reported(caller, last, request)

    async def _reported(self, caller: Caller, report: Report, request: api.HookRequest) -> api.HookResponse:
        """Store one report of a request, and return what became of it."""
        size = len(request.data)
        there = await self._elsewhere(report, size=size)
        if there is not None:
            alone = replace(request, data=json.dumps(report.payload).encode())
            answer: api.HookResponse = await there.call(caller, "hook", alone)
            return answer
        if not request.trial:
            await self._switch.told(report)
        if not report.use_memory and not request.trial:
            captured = await off_loop(size, partial(_normalised, report))
            tells = request.inject and captured.context == "session_start"
            return api.HookResponse(dropped=OFF, output=hosts.notice(report.host, OFF_NOTICE) if tells else "")
        understood = await self.understood(report, size=size)
        if request.trial:
            return await self._tried(understood)
        await self._count_dropped(report, understood.captured)
        stored = await self._stored(understood)
        if understood.captured.transcript is not None and not understood.clean:
            self._later(self._written(understood.captured, report))
        if not request.inject or understood.captured.context is None or self._is_told(understood):
            return stored
        return replace(stored, output=await self._handed(understood, report))

    def _is_told(self, understood: Understood) -> bool:
        """Say whether what belongs to an event is handed over already, by the hook of another registration."""
        event, now = understood.clean[0].event, time.monotonic()
        about = [str(event.metadata.get(name, "")) for name in ("prompt_id", "turn_id", "source")]
        told = (event.agent, event.session_id, str(understood.captured.context), event.text, *about)
        seconds = self._policy.handing.twice_seconds
        self._told = {key: at for key, at in self._told.items() if now - at < seconds}
        again = told in self._told
        self._told.setdefault(told, now)
        return again

    async def _count_dropped(self, report: Report, captured: Captured) -> None:
        """Count a report of which nothing is stored although it may have held words."""
        if captured.dropped in hosts.REFUSED and report.payload:
            await self._count(report.host, captured.dropped)

    async def _count(self, host: str, reason: str) -> None:
        log.warning("hooks: refused host=%.40r reason=%s", host, reason)
        try:
            await asyncio.to_thread(refusals.count, self.folder, host, reason)
        except OSError as error:  # the log has it
            log.warning("hooks: the refusal is not counted error=%s", error.strerror)

    async def understood(self, report: Report, *, size: int) -> Understood:
        """Return a report of so many bytes as events. Raises InvalidError, TooLargeError where it cannot be stored."""
        captured = await off_loop(size, partial(_normalised, report))
        if captured.transcript is not None:
            captured = hosts.completed(captured, await asyncio.to_thread(_tail, Path(captured.transcript)))
        return await self._ready(captured, report, size=size)

    async def take_report(self, report: Report, *, size: int) -> None:
        """Store a report of so many bytes that came by the spool. Raises InvalidError, TooLargeError."""
        await self._events.append(await self._spooled(report, size=size), learn=True)

    async def _spooled(self, report: Report, *, size: int) -> tuple[intake.Clean, ...]:
        await self._switch.told(report)
        if not report.use_memory:
            return ()
        understood = await self.understood(report, size=size)
        await self._count_dropped(report, understood.captured)
        return understood.clean

    async def _elsewhere(self, report: Report, *, size: int) -> Served | None:
        """Return the application of another account where a report belongs to it, None where it belongs here."""
        accounts = self._accounts()
        if accounts is None or not accounts.known.projects:
            return None
        captured = await off_loop(size, partial(_normalised, report))
        session = next((draft.session_id for draft in captured.drafts), None)

        async def began_here(session_id: str) -> bool:
            return await self._store.read(lambda q: q.events.has_session(session_id))

        return await accounts.elsewhere(captured.cwd or report.project or None, session, began_here=began_here)

    async def _ready(self, captured: Captured, report: Report, *, size: int) -> Understood:
        drafts = await self._placed(captured)
        work = partial(self._events.cleaned, drafts, intake.Source.HOST, Millis(report.sent))
        cleaned = await off_loop(size, work)
        return Understood(captured=captured, clean=tuple(one for one in cleaned if isinstance(one, intake.Clean)))

    async def _placed(self, captured: Captured) -> Sequence[EventDraft]:
        """Return the drafts with the project of the folder they come from, and the branch that is checked out there."""
        if captured.cwd is None or not captured.drafts:
            return captured.drafts
        place = await self._project_names.place(captured.cwd)
        branch = {} if place.branch is None else {"git_branch": place.branch}
        return [replace(draft, project=place.project, metadata=draft.metadata | branch) for draft in captured.drafts]

    async def _handed(self, understood: Understood, report: Report) -> str:
        """Return what a hook prints for its agent: what the agent may see of what is worth telling it now."""
        captured = understood.captured
        event = understood.clean[0].event
        caller = Caller(
            principal=Principal.AGENT, agent=captured.host, project=event.project, session_id=event.session_id
        )
        starts = captured.context == "session_start"
        always = ""
        if starts:
            found = await self._context.always(caller, project=event.project, session_id=event.session_id)
            always = found.text
        wish = Wish(
            project=event.project,
            session_id=event.session_id,
            prompt=None if starts else event.text,
            always=always,
        )
        anew = starts and report.payload.get("source") in EMPTIED
        block = await self._handing.deliver(caller, wish, anew=anew)
        noticed = await self._project_names.question(captured.cwd) if starts and captured.cwd else ""
        return hosts.answer(captured.host, captured.kind, block, noticed=noticed)

    async def _tried(self, understood: Understood) -> api.HookResponse:
        """Store an event and find it, in a transaction that is rolled back. `accepted` says how much was found."""
        if not understood.clean:
            return api.HookResponse(dropped=understood.captured.dropped)
        return api.HookResponse(accepted=await self._events.rehearse(understood.clean), dropped=TRIED)

    async def _written(self, captured: Captured, report: Report) -> None:
        """Store the last words of an agent once its host has written them down, which it does after it told of them."""
        for seconds in TRANSCRIPT_WAITS:
            await asyncio.sleep(seconds)
            found = hosts.completed(captured, await asyncio.to_thread(_tail, Path(captured.transcript or "")))
            if found.drafts:
                await self._stored(await self._ready(found, report, size=TRANSCRIPT_BYTES))
                return
        log.info("hooks: the transcript never held the last words host=%s", captured.host)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on that the host does not wait for."""
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._late.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("hooks: what went on failed error=%s", type(error).__qualname__)

    async def close(self) -> None:
        """Let go of what still goes on; `scrubjay reconcile` finds what it would have."""
        for task in tuple(self._late):
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    async def drain(self) -> int:
        """Store what waits in the spool, oldest first, and return how much that was.

        A file goes when its events are stored. One that cannot be stored is put aside and counted, and costs no other.
        """
        files = await asyncio.to_thread(spool.waiting, self.folder)
        for start in range(0, len(files), DRAINED):
            await self._drain(files[start : start + DRAINED])
        return len(files)

    async def _drain(self, files: Sequence[Path]) -> None:
        read: list[tuple[Path, tuple[intake.Clean, ...]]] = []
        for path in files:
            host = UNKNOWN_HOST
            try:
                report = await asyncio.to_thread(spool.read, path, now=self._now())
                report = replace(report, host=self._host(report.host))
                host = report.host
                size = path.stat().st_size
                there = await self._elsewhere(report, size=size)
                if there is None:
                    read.append((path, await self._spooled(report, size=size)))
                else:
                    await there.take_report(report, size=size)
                    read.append((path, ()))
            except FileNotFoundError:
                log.info("spool: gone before it was read name=%s", path.name)
            except Exception as error:  # noqa: BLE001  # whatever a file holds, the next one is read
                await self._set_aside(path, host, error)
        try:
            await self._store_read(read)
        except NOT_THE_FILES:
            raise
        except Exception as error:  # noqa: BLE001  # as above: one of them, and the others are stored without it
            log.warning("spool: stored one by one error=%s", type(error).__qualname__)
            for path, clean in read:
                try:
                    await self._store_read([(path, clean)])
                except Exception as error:  # noqa: BLE001  # as above
                    await self._set_aside(path, UNKNOWN_HOST, error)

    async def _store_read(self, read: Sequence[tuple[Path, tuple[intake.Clean, ...]]]) -> None:
        await self._events.append([clean for _, cleaned in read for clean in cleaned], learn=True)
        for path, _ in read:
            await asyncio.to_thread(spool.remove, path)

    async def _set_aside(self, path: Path, host: str, error: Exception) -> None:
        """Put a file aside that cannot be stored, and count it; leave it where the store cannot take it now."""
        if isinstance(error, NOT_THE_FILES):
            log.warning("spool: left for later name=%s error=%s", path.name, refusals.reason_of(error))
            return
        log.warning("spool: put aside name=%s error=%s", path.name, refusals.reason_of(error))
        try:
            await asyncio.to_thread(spool.refuse, path)
        except OSError as refusal:
            log.warning("spool: cannot be put aside name=%s error=%s", path.name, refusal.strerror)
        else:
            await self._count(host, refusals.reason_of(error))

    async def _stored(self, understood: Understood) -> api.HookResponse:
        if not understood.clean:
            return api.HookResponse(dropped=understood.captured.dropped)
        stored = await self._events.append(understood.clean, learn=True)
        skipped = stored.skipped[0].reason if stored.skipped else None
        return api.HookResponse(accepted=stored.accepted, duplicates=stored.duplicates, dropped=skipped)

    def _host(self, name: str) -> str:
        """Return a host's name as we write it; any host may report. Raises InvalidError for what is no name."""
        most = self._policy.limits.max_name_chars
        if not name.strip() or len(name) > most:
            raise InvalidError(
                f"a host's name must have 1 to {most} characters, got {len(name.strip())}",
                hint=f"hosts: {', '.join(hosts.HOSTS)}",
            )
        return hosts.host_name(name)


def _normalised(report: Report) -> Captured:
    return hosts.normalise(
        report.host,
        report.payload,
        event=report.event or None,
        cwd=report.project or None,
        ts=Millis(report.sent),
        utc_offset=time.localtime(report.sent / 1000).tm_gmtoff // 60,
    )


def _tail(path: Path) -> bytes:
    """Return the end of a transcript; nothing where it cannot be read: the host may not have written it yet."""
    try:
        if not path.is_file():  # a device has no end
            return b""
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
