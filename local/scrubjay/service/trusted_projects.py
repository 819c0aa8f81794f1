"""The person's word on folders that claim a known project, and the move of what these stored by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.checkouts import absolute, looked_up
from scrubjay.ingest import intake
from scrubjay.service import archive_words
from scrubjay.store import MemoryWrite, Store, Transaction, moved_key
from scrubjay.trusted_folders import Claim, FolderState, TrustedFolders
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Grip

if TYPE_CHECKING:
    from scrubjay.api.caller import Caller

MOVED_AT_ONCE = 200
"""Events in one transaction of a move: some tenths of a second."""


class TrustedProjects:
    """What the person says of the folders of one store."""

    def __init__(self, store: Store, folders: TrustedFolders, *, wake: Callable[[str], None]) -> None:
        self._store = store
        self._folders = folders
        self._wake = wake

    async def projects(self, _: Caller, __: api.Nothing) -> api.ProjectsResponse:
        """Return every checkout that claimed a project here."""
        return api.ProjectsResponse(folders=_listed(self._folders.claims()))

    async def trust(self, _: Caller, request: api.TrustFolderRequest) -> api.TrustFolderResponse:
        """Let a folder speak for the project that it claims, or not; what it stored by itself moves over at the yes.

        Raises NotFoundError for a folder that claims nothing.
        """
        folder = absolute(intake.valid(request.folder))
        found = await asyncio.to_thread(looked_up, folder)
        top = folder if found.checkout is None else found.checkout.top
        state = FolderState.TRUSTED if request.trusted else FolderState.REFUSED
        decided = self._folders.decide(top, state, None if found.checkout is None else found.names)
        if not decided:
            raise NotFoundError(
                f"{top} claims no project that is known here, so there is nothing to say of it",
                hint="scrubjay projects lists the folders that do",
            )
        events = memories = 0
        if request.trusted:
            for claim in decided:
                moved = await self._moved(top, claim.project)
                events, memories = events + moved[0], memories + moved[1]
        if events or memories:
            self._wake("embed")
            self._wake("toc")
        return api.TrustFolderResponse(folders=_listed(decided), events=events, memories=memories)

    async def _moved(self, own: str, project: str) -> tuple[int, int]:
        """Move everything of the project `own` into another. Returns how many events and memories that were.

        A batch is one transaction: where this is cut off, saying yes again goes on.
        """
        cause = self._store.new_cause("move", label=f"{own} to {project}")
        memories = await self._store.write(lambda tx: _move_memories(tx, own, project), cause=cause)
        events = 0
        while moved := await self._store.write(lambda tx: _move_events(tx, own, project), cause=cause):
            events += moved
        return events, memories


def _listed(claims: Sequence[Claim]) -> tuple[api.ProjectFolder, ...]:
    return tuple(api.ProjectFolder(folder=one.folder, project=one.project, state=one.state.value) for one in claims)


def _move_memories(tx: Transaction, own: str, project: str) -> int:
    ids = tx.queries.memories.of_resource(own)
    tx.memories.write([MemoryWrite(memory_id=one, fields={Field.RESOURCE_ID: project}) for one in ids])
    return len(ids)


def _move_events(tx: Transaction, own: str, project: str) -> int:
    """Move the next events: each is stored again under the project, with what was read from it, and its row erased.

    An event says itself which project it is of, on every device alike, so that it cannot be changed in place.
    """
    events = tx.queries.events.of_project(own, MOVED_AT_ONCE)
    if not events:
        return 0
    copies = [replace(event, id="", project=project, dedupe_key=moved_key(event.id)) for event in events]
    there = dict(zip((event.id for event in events), tx.events.append(copies, learn=False), strict=True))
    grips = {grip.id: grip for event_id in there for grip in tx.queries.grips.over(event_id, None)}
    moved = {one: found for one, grip in grips.items() if (found := _moved_grips(tx, grip, there))}
    tx.memories.write(
        [MemoryWrite(memory_id=grips[one].memory_id, fields={}, grips=found) for one, found in moved.items()]
    )
    for one in moved:  # its memory rests on the new ones
        tx.forget.grip(grips[one])
    for event_id in there:
        tx.forget.event(event_id)
    about = dict.fromkeys(grips[one].memory_id for one in moved)
    archive_words.rewrite(tx, [one for one in about if tx.queries.memories.is_archive(one)])
    tx.forget.erase_traces()
    return len(events)


def _moved_grips(tx: Transaction, grip: Grip, there: dict[str, str]) -> tuple[Grip, ...]:
    """Return what a grip covers, one for each event: those of `there` by their copies, others where they are.

    One over several events would cover the erased ones, too, which stand between the copies in time.
    """
    if grip.event_id_start == grip.event_id_end:
        return (_replaced(tx, grip, there[grip.event_id_start]),)
    found = []
    for event_id, spans in tx.queries.grips.passages([grip]).items():
        text = tx.queries.events.by_id([event_id])[event_id].text
        for start, end in spans:
            part = replace(grip, excerpt=text[start:end], span_start=start, span_end=end)
            found.append(_replaced(tx, part, there.get(event_id, event_id)))
    return tuple(found)


def _replaced(tx: Transaction, grip: Grip, event_id: str) -> Grip:
    return replace(grip, id=tx.new_id(), event_id_start=event_id, event_id_end=event_id)
