"""Which account's store a call is about, and the stores of the accounts beside the main one.

Theory of operation. The application of the main account is asked first, by every transport. What belongs to another
account (because the person says so, or because the project lives there) is handed on to an application of that
account's own: another file, other jobs, other keys. So nothing has to keep two accounts apart in one store. What is
here decides where a call goes, and refuses to write what belongs elsewhere. An account's store is opened when it is
first needed, or by the daemon at its start.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from scrubjay import accounts, api, projects
from scrubjay.accounts import MAIN, Accounts
from scrubjay.api.caller import Caller, Principal
from scrubjay.checkouts import looked_up
from scrubjay.service.project_names import ProjectNames
from scrubjay.spool import Report
from scrubjay_shared.errors import ConflictError, ScrubjayError, UnavailableError
from scrubjay_shared.records import EventDraft, Scope

log = logging.getLogger(__name__)

WRITES = frozenset({"add", "ingest", "learn", "observe"})
"""The operations that put something new under a project."""


class Served(Protocol):
    """The application of one account, as the main one reaches it."""

    @property
    def call(self) -> Callable[[Caller, str, Any], Awaitable[Any]]:
        """Run an operation."""

    @property
    def stream(self) -> Callable[[Caller, str, Any], AsyncGenerator[bytes, None]]:
        """Run a stream operation."""

    @property
    def failure(self) -> ScrubjayError | None:
        """Why nothing can be stored there any more; None while all is well."""

    @property
    def warnings(self) -> Sequence[Callable[[], Awaitable[Iterable[str]]]]:
        """What a person is to be told of what runs there."""

    @property
    def project_names(self) -> ProjectNames:
        """How the account's store names projects."""

    async def has_session(self, session_id: str) -> bool:
        """Say whether anything of a session is stored there."""

    async def take_report(self, report: Report, *, size: int) -> None:
        """Store what a host reported, which came by the spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccount:
    """An account whose store is open. `find_plugin` has the plugin of an operation run; `close` ends all of it."""

    service: Served
    close: Callable[[], Awaitable[None]]
    find_plugin: Callable[[str], Awaitable[object]] | None = None


Handler = Callable[[Caller, Any], Awaitable[Any]]
"""Runs one operation of this store."""

Opener = Callable[[str], Awaitable[OpenAccount]]
"""Opens the store of an account by its name."""


class AccountStores:
    """The accounts of one data folder, as seen from the store of `own`. `close` when done."""

    def __init__(self, data_dir: Path, own: str, opener: Opener) -> None:
        self._data_dir = data_dir
        self._own = own
        self._opener = opener
        self._path = accounts.record_path(data_dir)
        self._mark: tuple[int, ...] | None = None
        self._known = Accounts()
        self._opened: dict[str, OpenAccount] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, ScrubjayError] = {}
        self._closed = asyncio.Event()

    def open_with(self, opener: Opener) -> None:
        """Open stores in another way from now on: the daemon runs jobs and plugins beside each."""
        self._opener = opener

    @property
    def known(self) -> Accounts:
        """The accounts and their projects, as they stand in the record now. Raises CorruptError, UnavailableError."""
        try:
            found = os.stat(self._path)  # noqa: PTH116  # at every call: pathlib takes twice as long
            mark: tuple[int, ...] | None = (found.st_mtime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            mark = None
        if mark != self._mark:
            self._known, self._mark = accounts.load(self._data_dir), mark
        return self._known

    async def start(self) -> None:
        """Open every account's store. One that fails is logged and told in `warnings`; it is tried again when asked."""
        if self._own != MAIN:
            return
        try:
            names = tuple(self.known.projects)
        except ScrubjayError as error:  # each call says so, too, until the record is mended
            self._failed[accounts.RECORD_NAME] = error
            log.warning("accounts not read code=%s", error.code)
            return
        for name in names:
            try:
                await self._open(name)
            except ScrubjayError as error:
                log.warning("account not opened name=%s code=%s", name, error.code)

    async def warnings(self) -> tuple[str, ...]:
        """Return what to tell a person of the other accounts: which are not served, and what each has to say itself."""
        told = [
            f"{name} is not served: {error.message}. {error.hint}".rstrip()
            for name, error in sorted(self._failed.items())
        ]
        for name, opened in sorted(self._opened.items()):
            if (failure := opened.service.failure) is not None:
                told.append(f"account {name}: {failure.message}. {failure.hint}".rstrip())
            told += [f"account {name}: {one}" for source in opened.service.warnings for one in await source()]
        return tuple(told)

    async def close(self) -> None:
        """Close the stores, all at the same time: none waits for another one's server. A second call does nothing."""
        self._closed.set()
        opened, self._opened = list(self._opened.values()), {}
        for failure in await asyncio.gather(*(one.close() for one in opened), return_exceptions=True):
            if isinstance(failure, BaseException):
                log.error("account not closed error=%s", type(failure).__qualname__)

    async def account_of(self, project: str) -> str:
        """Return the account of a project, which may be named by a folder."""
        known = self.known
        if not known.projects:
            return MAIN
        names = (await asyncio.to_thread(looked_up, project))[0] if projects.is_folder(project) else [project]
        return known.of(names)

    async def placed(self, caller: Caller) -> Caller:
        """Return a caller with its account: the one that it names, else an agent's by its project."""
        if caller.account is not None:
            self.known.require(caller.account)
            return caller
        if self._own != MAIN:
            return replace(caller, account=self._own)
        if caller.principal is Principal.AGENT and caller.project is not None:
            return replace(caller, account=await self.account_of(caller.project))
        return caller

    async def tell(self, caller: Caller, name: str, request: Any) -> None:
        """Run an operation in each other account whose store is open. Raises what it raises there."""
        for account, opened in [*self._opened.items()]:
            await opened.service.call(replace(caller, account=account), name, request)

    async def names_for(self, caller: Caller) -> ProjectNames | None:
        """Return how the store of a placed caller's account names projects, None where that is this very store."""
        if caller.account in {None, self._own}:
            return None
        return (await self._open(caller.account or MAIN)).service.project_names

    async def call(self, caller: Caller, name: str, request: Any, *, here: Handler) -> Any:
        """Run an operation where it belongs: `here`, which is this store's handler, or with another account.

        Raises ConflictError for something new that belongs to another account than the one that was named, and what
        the operation raises. Of a batch of events of several accounts, each account's part is stored by itself.
        """
        caller = await self.placed(caller)
        if not self.known.projects:
            return await here(caller, request)
        if isinstance(request, api.IngestRequest) and caller.account is None:
            return await self._ingested(caller, request, here=here)
        account = await self._account(caller, name, request)
        if account == self._own:
            return await here(caller, request)
        return await self._handed_on(account, caller, name, request)

    async def stream(self, caller: Caller, name: str, request: Any) -> AsyncGenerator[bytes, None] | None:
        """Return the stream of the account that a caller names, None where that is this very store."""
        account = (await self.placed(caller)).account
        if account in {None, self._own}:
            return None
        return (await self._open(account or MAIN)).service.stream(replace(caller, account=account), name, request)

    async def elsewhere(
        self, folder: str | None, session_id: str | None, *, began_here: Callable[[str], Awaitable[bool]]
    ) -> Served | None:
        """Return the application of the account in which a host's report belongs, None for this very store.

        That is the account of the folder; where the folder is routed nowhere, the one in which the session began: a
        session that works in a project stays in its account when it looks into other folders. Raises what opening a
        store raises that may have the session: then nobody knows yet where the report belongs.
        """
        if self._own != MAIN or not self.known.projects:
            return None
        account = MAIN if folder is None else await self.account_of(folder)
        if account != MAIN:
            return (await self._open(account)).service
        if session_id is None or await began_here(session_id):
            return None
        for name in self.known.projects:
            there = (await self._open(name)).service
            if await there.has_session(session_id):
                return there
        return None

    async def is_elsewhere(self, project: str) -> bool:
        """Say whether a project, which may be named by a folder, is routed to another account than this store's."""
        return bool(self.known.projects) and await self.account_of(project) not in {MAIN, self._own}

    async def strangers(self, drafts: Sequence[EventDraft]) -> frozenset[str]:
        """Return the projects of some drafts that belong to other accounts than this store's."""
        if not self.known.projects:
            return frozenset()
        named = sorted({draft.project for draft in drafts if draft.project})
        return frozenset([project for project in named if await self.account_of(project) != self._own])

    async def _account(self, caller: Caller, name: str, request: Any) -> str:
        """Return whose store a call is about, which is no batch of events without an account."""
        if caller.principal is not Principal.PERSON:
            return caller.account or self._own
        named = _projects_of(request)
        belongs = {account for project in named if (account := await self.account_of(project)) != MAIN}
        if caller.account is None:
            return next(iter(belongs), self._own)
        # A project that is routed nowhere may be anybody's: what the person says counts.
        if name in WRITES and (others := sorted(belongs - {caller.account})):
            raise ConflictError(
                f"this project belongs to the account {others[0]}, and nothing of it is stored in {caller.account}",
                hint=f"leave out --account, or say --account {others[0]}; scrubjay sync projects list shows them all",
            )
        return caller.account

    async def _ingested(self, caller: Caller, request: api.IngestRequest, *, here: Handler) -> api.IngestResponse:
        """Store a batch that names no account: each event where its project lives."""
        known: dict[str | None, str] = {None: self._own}
        places: dict[str, list[int]] = {}
        for place, draft in enumerate(request.events):
            if draft.project is not None and draft.project not in known:
                known[draft.project] = await self.account_of(draft.project)
            places.setdefault(known[draft.project], []).append(place)
        answers: dict[str, api.IngestResponse] = {}
        failed: ScrubjayError | None = None
        for account, chosen in places.items():
            part = replace(request, events=tuple(request.events[place] for place in chosen))
            work = here(caller, part) if account == self._own else self._handed_on(account, caller, "ingest", part)
            try:
                answers[account] = await work
            except ScrubjayError as error:  # the other accounts' parts are stored; sent again, they are duplicates
                failed = failed or error
        if failed is not None:
            raise failed
        return next(iter(answers.values())) if len(answers) == 1 else _joined(places, answers)

    async def _handed_on(self, account: str, caller: Caller, name: str, request: Any) -> Any:
        opened = await self._open(account)
        if "." in name and opened.find_plugin is not None:
            await opened.find_plugin(name)
        return await opened.service.call(replace(caller, account=account), name, request)

    async def _open(self, account: str) -> OpenAccount:
        self.known.require(account)
        async with self._opening.setdefault(account, asyncio.Lock()):
            found = self._opened.get(account)
            if found is None:
                if self._closed.is_set():
                    raise UnavailableError("the daemon is stopping", hint="scrubjay daemon start starts it again")
                try:
                    found = await self._opener(account)
                except ScrubjayError as error:
                    self._failed[f"the account {account}"] = error
                    raise
                if self._closed.is_set():
                    await found.close()
                    raise UnavailableError("the daemon is stopping", hint="scrubjay daemon start starts it again")
                self._opened[account] = found
                self._failed.pop(f"the account {account}", None)
            return found


def _projects_of(request: Any) -> list[str]:
    """Return the projects that a request is about, each by its name or its folder."""
    if isinstance(request, api.IngestRequest):
        return sorted({draft.project for draft in request.events if draft.project})
    if isinstance(request, api.ImportRequest) and request.project is None and request.place is not None:
        return [os.path.dirname(request.place)]  # noqa: PTH120  # of another system perhaps: then it is a name
    if getattr(request, "scope", None) is Scope.PROJECT:
        named = getattr(request, "resource_id", None)
    else:
        named = getattr(request, "project", None)
    return [named] if isinstance(named, str) and named else []


def _joined(places: dict[str, list[int]], answers: dict[str, api.IngestResponse]) -> api.IngestResponse:
    """Return the responses to the parts of one batch as one, ids in the order of the batch."""
    ids = {place: answers[account].ids[at] for account in answers for at, place in enumerate(places[account])}
    redactions: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for answer in answers.values():
        redactions.update(answer.redactions)
        skipped.update({line.reason: line.count for line in answer.skipped})
    return api.IngestResponse(
        accepted=sum(answer.accepted for answer in answers.values()),
        duplicates=sum(answer.duplicates for answer in answers.values()),
        ids=tuple(ids[place] for place in sorted(ids)),
        redactions=dict(sorted(redactions.items())),
        skipped=tuple(api.Skipped(reason=reason, count=count) for reason, count in sorted(skipped.items())),
    )
