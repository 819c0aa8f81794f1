"""Whoever names a project by a folder means what that folder is a checkout of: names are made the same for all callers.

Every call passes here before its handler, so hooks, the command line, MCP and programs may all send the folder that
they are in, and a checkout that was moved, or a second one beside it, is the same project.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from scrubjay import api, projects, redaction
from scrubjay.api.caller import Caller
from scrubjay.checkouts import holds, looked_up
from scrubjay.trusted_folders import Claim, FolderState, TrustedFolders
from scrubjay_shared.records import EventDraft, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something happened: its project, and the branch that was checked out, where there is one.

    `claimed` is the project that the checkout `folder` says it is of, while the person has not said that it is.
    """

    project: str
    branch: str | None = None
    folder: str = ""
    claimed: str | None = None


class ProjectNames:
    """Names the projects of one store. `is_known` says whether anything is stored under a name.

    A folder that claims a project by its own word alone, and may not yet, is a project by its path.
    """

    def __init__(self, is_known: Callable[[str], bool], folders: TrustedFolders) -> None:
        self._is_known = is_known
        self._folders = folders

    async def place(self, name: str) -> Place:
        """Return the project that a name or a folder means. A path where no folder is means itself."""
        if not projects.is_folder(name):
            return Place(project=name)
        return await asyncio.to_thread(self._place, name)

    def _place(self, folder: str) -> Place:
        names, branch, found = looked_up(folder)
        if found is not None and (trusted := self._folders.trusted(found.top, names)) is not None:
            return Place(project=trusted, branch=branch)
        project = projects.chosen(names, folder, self._is_known)
        if found is None:
            return Place(project=project, branch=branch)
        own = {found.top, folder, os.path.realpath(folder)}
        if project in own and self._folders.is_asked_about(found.top):  # by itself for as long as its claim waits
            project = next((name for name in names if name not in own and self._is_known(name)), project)
        if project in own:
            return Place(project=project, branch=branch)
        claim = Claim(folder=found.top, common=found.common, project=project)
        state = self._folders.state_of(claim, is_known=self._is_known(project), is_listed=lambda: holds(found))
        if state is FolderState.TRUSTED:
            return Place(project=project, branch=branch)
        waits = project if state is FolderState.WAITING else None
        return Place(project=found.top, branch=branch, folder=found.top, claimed=waits)

    async def question(self, folder: str) -> str:
        """Return what a session's start asks the person of a folder whose claim waits: once, then "".

        The names are a stranger's: nothing in them may speak to the agent.
        """
        place = await self.place(folder)
        if place.claimed is None or not await asyncio.to_thread(self._folders.tell, place.folder, place.claimed):
            return ""
        top, claimed = _shown(place.folder), _shown(place.claimed)
        return (
            f"scrubjay: the folder {top} says that it is of the project {claimed}, which is known from another folder."
            " Until the person says so it is a project of its own, and is given nothing of that one. Only the person"
            f" can say whether it is theirs, by running: scrubjay projects trust {shlex.quote(top)}"
        )

    async def caller(self, caller: Caller) -> Caller:
        """Return a caller whose project has its name."""
        if caller.project is None or not projects.is_folder(caller.project):
            return caller
        return replace(caller, project=(await self.place(caller.project)).project)

    async def request(self, request: Any) -> Any:
        """Return a request whose projects have their names: its own, its memory's, and those of its events."""
        if isinstance(request, api.IngestRequest):
            return await self._ingest(request)
        for field, is_project in (("resource_id", getattr(request, "scope", None) is Scope.PROJECT), ("project", True)):
            named = getattr(request, field, None)
            if is_project and isinstance(named, str) and (meant := await self._meant(named)) != named:
                request = replace(request, **{field: meant})
        return request

    async def _meant(self, name: str) -> str:
        """Return the project that a name means: what a folder is of, or else the one whose folder here is called so."""
        if projects.is_folder(name) or self._is_known(name):
            return (await self.place(name)).project
        return projects.called(name, self._folders.of_projects()) or name

    async def _ingest(self, request: api.IngestRequest) -> api.IngestRequest:
        events = await self.events(request.events)
        return request if events is request.events else replace(request, events=events)

    async def events(self, drafts: tuple[EventDraft, ...]) -> tuple[EventDraft, ...]:
        """Return drafts whose projects have their names; the same ones where none is named by a folder."""
        folders = {draft.project for draft in drafts if draft.project and projects.is_folder(draft.project)}
        if not folders:
            return drafts
        places = {folder: (await self.place(folder)).project for folder in sorted(folders)}
        return tuple(replace(draft, project=places.get(draft.project or "", draft.project)) for draft in drafts)


def _shown(name: str) -> str:
    """Return a stranger's name in which nothing begins a line, is no sign at all, or speaks as a tag."""
    return redaction.defused("".join(each if each.isprintable() else "?" for each in name))
