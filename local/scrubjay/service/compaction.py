"""Compaction: a session's beginning becomes an archive with a marker, any number of times, and its history is replayed.

Theory of operation. Events never change, so compaction loses nothing: the archive is a memory that quotes the events
before the marker, each quotation with its grip, and the marker is an event that says up to where. Both are written in
one transaction. What is read for it keeps nobody waiting; where it was overtaken, it is read again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import EVERYTHING, View
from scrubjay.api.caller import Caller
from scrubjay.compaction import markers, requests
from scrubjay.compaction.markers import Marker, Place
from scrubjay.policy import MemoryPolicy
from scrubjay.service.paging import cursor, cursor_text, page_limit
from scrubjay.service.references import References
from scrubjay.store import Cause, EventFilter, MemoryWrite, Queries, Statement, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import (
    Event,
    EventDraft,
    EventType,
    Grip,
    Kind,
    MemoryType,
    Role,
    Scope,
    Trust,
    least,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scrubjay.compaction.extract import Line
    from scrubjay.distill.reading import Reader

NAME_CHARS = 80
"""Of a session's id in the name of an archive: enough for any id that an agent makes."""

_UNNAMED = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """What is about to be compacted: the events after a marker (None: from the beginning) up to one of them."""

    chosen: EventFilter
    upto: Place
    last: Event
    events: int
    projects: Sequence[str | None]
    latest: Marker | None


class Compaction:
    """Compacts and replays the sessions of one store.

    `wake` tells a background job that it has something to do; `reader` returns what reads turns of work.
    """

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        references: References,
        wake: Callable[[str], None],
        reader: Callable[[], Awaitable[Reader]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._wake = wake
        self._reader = reader
        self._compacting = asyncio.Lock()

    async def compact(self, caller: Caller, request: api.CompactRequest) -> api.CompactResponse:
        """Write an archive of a session up to an event, and the marker. Raises NotFoundError, InvalidError."""
        seen = access.view(caller)
        access.owned(caller, EventDraft(agent="", session_id=request.session_id, type=EventType.COMPACTION))
        answer = await self._compacted(request.session_id, request.upto, seen, self._store.new_cause("compact"))
        self._wake("embed")
        return answer

    async def carry_out(self, session_id: str) -> int:
        """Compact a session as its host asked, up to the last event that asks. Returns how many archives are new."""
        events = await self._store.read(lambda q: q.compactions.of_session(session_id))
        # What another device was asked, that device does: its archive comes with its ops.
        asking = [event for event, _ in events if requests.asks(event) and event.device == self._store.device]
        latest = _latest(events)
        cause = self._store.new_cause("compact")
        made = 0
        for event in asking:
            place = await self._store.read(lambda q, at=event.id: q.compactions.place(at))  # type: ignore[misc]
            if place is None or (latest is not None and place[1] <= latest.upto):
                continue
            answer = await self._compacted(session_id, event.id, EVERYTHING, cause)
            made += answer.created
        if made:
            self._wake("embed")
        return made

    async def _compacted(self, session_id: str, upto: str | None, seen: View, cause: Cause) -> api.CompactResponse:
        for _ in range(self._policy.compaction.tries):
            async with self._compacting:
                found = await self._store.read(lambda q: _range(q, session_id, upto, seen))
                if isinstance(found, tuple):
                    return await self._there(found[0], found[1])
                lines = await self._quoted(found)
                written = await self._store.write(lambda tx, f=found, q=lines: self._written(tx, f, q), cause=cause)  # type: ignore[misc]
            if written is not None:
                memory_id, marker = written
                entry = await self._references.entry(memory_id, created=True)
                return api.CompactResponse(archive=entry, marker=marker, events=found.events)
        raise ConflictError(
            f"session {session_id[:80]} changed again and again while it was compacted", hint="try it once more"
        )

    async def _quoted(self, found: _Range) -> Sequence[Line]:
        """Return what the archive will quote."""
        # What distils is an eighth of the daemon's start.
        from scrubjay.compaction import extract  # noqa: PLC0415

        if found.last.type is EventType.COMPACTION and found.last.text.strip():
            return [extract.summary(found.last)]
        lines: list[Line] = []
        chosen = replace(found.chosen, types=extract.SAID)
        at: tuple[int, int] | None = None
        while True:
            events, at = await self._store.read(
                lambda q, after=at: q.events.page(  # type: ignore[misc]
                    chosen, after=after, limit=self._policy.work.page, chars=self._policy.limits.page_chars
                )
            )
            lines += await asyncio.to_thread(
                extract.candidates, events, self._policy.compaction, self._policy.distill, await self._reader()
            )
            if at is None:
                return extract.chosen(lines, self._policy.compaction)

    def _written(self, tx: Transaction, found: _Range, lines: Sequence[Line]) -> tuple[str, Event] | None:
        """Write the archive and the marker; None when something was compacted or forgotten since it was read."""
        from scrubjay.compaction import extract  # noqa: PLC0415

        there = tx.queries.compactions.of_session(found.last.session_id)
        quoted = tx.queries.events.by_id([line.event_id for line in lines])
        if _latest(there) != found.latest or any(
            line.event_id not in quoted or quoted[line.event_id].text[line.start : line.end] != line.text
            for line in lines
        ):
            return None
        last, number = found.last, len([1 for event, seq in there if markers.marker_of(event, seq)]) + 1
        [project] = found.projects if len(found.projects) == 1 else [None]
        name = _free_name(tx, last.session_id, number)
        left = tx.forget.left_of([Statement(text=line.text, project=project) for line in lines])
        lines = [  # what was forgotten for good and said again since is not quoted
            replace(line, text=text) for line, text in zip(lines, left, strict=True) if text is not None
        ]
        memory_id = tx.new_id()
        about = extract.About(
            session_id=last.session_id,
            agent=last.agent,
            project=project,
            events=found.events,
            first=_first(tx.queries, found),
            last=last.ts,
            utc_offset=last.utc_offset,
        )
        fields = {
            Field.CONTENT: extract.rendered(about, lines),
            Field.KIND: Kind.ARCHIVE.value,
            Field.NAME: name,
            Field.TYPE: MemoryType.DAILY.value,
            Field.SCOPE: (Scope.SESSION if project is None else Scope.PROJECT).value,
            Field.RESOURCE_ID: last.session_id if project is None else project,
            Field.SALIENCE: self._policy.compaction.salience,
            Field.TRUST: least(Trust.AGENT, *(line.trust for line in lines)).value,
            Field.CREATED_AT: int(tx.now),
            Field.METADATA: about.metadata(),
        }
        grips = tuple(
            Grip(
                id=tx.new_id(),
                memory_id=memory_id,
                event_id_start=line.event_id,
                event_id_end=line.event_id,
                span_start=line.start,
                span_end=line.end,
                excerpt=line.text,
                source=extract.source_of(line.part),
                created_at=line.ts,
            )
            for line in lines
        )
        tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields, grips=grips, names=(name,))])
        marker = Event(
            id="",
            device="",
            agent=last.agent,
            session_id=last.session_id,
            type=EventType.COMPACTION,
            role=Role.SYSTEM,
            text="",
            ts=tx.now,
            dedupe_key=f"compaction/{last.session_id}/{found.upto.id}/{memory_id}",
            project=last.project,
            utc_offset=last.utc_offset,
            trust=Trust.AGENT,
            metadata=markers.metadata_of(archive_name=name, archived_at=tx.now, upto=found.upto, events=found.events),
        )
        [marker_id] = tx.events.append([marker], learn=False)
        return memory_id, tx.queries.events.by_id([marker_id])[marker_id]

    async def _there(self, marker: Marker, seen: View) -> api.CompactResponse:
        """Return what a session was compacted into before."""
        event = (await self._store.read(lambda q: q.events.by_id([marker.event_id])))[marker.event_id]
        memory_id = await self._references.resolve(marker.archive_name, seen)
        events = event.metadata.get(markers.EVENTS)
        return api.CompactResponse(
            archive=await self._references.entry(memory_id),
            marker=event,
            events=events if isinstance(events, int) else 0,
            created=False,
        )

    async def replay(self, caller: Caller, request: api.ReplayRequest) -> api.ReplayResponse:
        """Return a session's history from its latest marker on, or what one of its archives stands for."""
        seen = access.view(caller)
        limit, after = page_limit(self._policy, request.limit), cursor(request.cursor)

        def work(q: Queries) -> api.ReplayResponse:
            chosen = _visible(request.session_id, seen)
            placed = [one for one in q.compactions.of_session(request.session_id) if seen.shows_event(one[0])]
            found = markers.in_order([marker for event, seq in placed if (marker := markers.marker_of(event, seq))])
            if q.compactions.last(chosen) is None:
                raise _no_session(request.session_id)
            chosen = replace(chosen, without=tuple(marker.event_id for marker in found))
            shown = found[-1] if found else None
            if request.archive is not None:
                shown = next((marker for marker in reversed(found) if marker.archive_name == request.archive), None)
                if shown is None:
                    raise NotFoundError(
                        f"session {request.session_id[:80]} has no archive {request.archive[:80]!r}",
                        hint="its archives: " + (", ".join(marker.archive_name for marker in found) or "none"),
                    )
                chosen = replace(chosen, after=markers.before(found, shown), upto=shown.upto)
            elif shown is not None:
                chosen = replace(chosen, after=shown.upto)
            events, more = q.events.page(chosen, after=after, limit=limit, chars=self._policy.limits.page_chars)
            return api.ReplayResponse(
                session_id=request.session_id,
                events=tuple(events),
                archive_name=None if shown is None else shown.archive_name,
                archived_at=None if shown is None else shown.archived_at,
                archive_text=None if shown is None else _text(q, shown, request.session_id, seen),
                archives=tuple(marker.archive_name for marker in found),
                next=cursor_text(more),
            )

        return await self._store.read(work)


def _visible(session_id: str, seen: View) -> EventFilter:
    return EventFilter(session_id=session_id, project=seen.project, own_session=seen.session_id)


def _no_session(session_id: str) -> NotFoundError:
    return NotFoundError(f"there is no session {session_id[:80]!r}", hint="scrubjay sessions lists them")


def _latest(events: Sequence[tuple[Event, int]]) -> Marker | None:
    found = [marker for event, seq in events if (marker := markers.marker_of(event, seq))]
    return markers.in_order(found)[-1] if found else None


def _range(q: Queries, session_id: str, upto: str | None, seen: View) -> _Range | tuple[Marker, View]:
    """Return what is to be compacted, or the marker up to which a session is compacted already.

    Of a session of which the caller does not see everything, nothing is there for it.
    """
    whole, visible = EventFilter(session_id=session_id), _visible(session_id, seen)
    count, _ = q.compactions.extent(whole)
    if count == 0 or (seen.is_bounded and q.compactions.extent(visible)[0] != count):
        raise _no_session(session_id)
    there = q.compactions.of_session(session_id)
    marked = [marker for event, seq in there if (marker := markers.marker_of(event, seq))]
    latest = markers.in_order(marked)[-1] if marked else None
    chosen = replace(
        whole,
        after=None if latest is None else latest.upto,
        without=tuple(marker.event_id for marker in marked),
    )
    if upto is not None:
        found = q.compactions.place(upto)
        if found is None or found[0] != session_id:
            raise NotFoundError(
                f"session {session_id[:80]} has no event {upto[:60]!r}",
                hint="scrubjay events --in-session lists its events with their ids",
            )
        asked = Place(*found[1])
        if latest is not None and asked <= latest.upto:
            if asked == latest.upto:
                return latest, seen
            raise InvalidError(
                f"session {session_id[:80]} is compacted beyond that event already, into {latest.archive_name}",
                hint=f"name a later event, or none: scrubjay replay {session_id[:80]} shows what is left",
            )
        chosen = replace(chosen, upto=asked)
    last = _last(q, chosen)
    if last is None:
        if latest is None:
            raise InvalidError(
                f"session {session_id[:80]} has nothing to compact", hint="compact it once something was said in it"
            )
        return latest, seen
    event, place = last
    events, projects = q.compactions.extent(chosen)
    return _Range(chosen=chosen, upto=place, last=event, events=events, projects=projects, latest=latest)


def _last(q: Queries, chosen: EventFilter) -> tuple[Event, Place] | None:
    found = q.compactions.last(chosen)
    return None if found is None else (found[0], Place(*found[1]))


def _first(q: Queries, found: _Range) -> Millis:
    events, _ = q.events.page(found.chosen, after=None, limit=1, chars=1)
    return events[0].ts if events else found.last.ts


def _free_name(tx: Transaction, session_id: str, number: int) -> str:
    """Return a name for the archive that no memory has: an agent may have taken the one that it would get."""
    stem = f"archive/{_UNNAMED.sub('-', session_id)[:NAME_CHARS].strip('-') or 'session'}/"
    while tx.queries.names.holders([f"{stem}{number}"]):
        number += 1
    return f"{stem}{number}"


def _text(q: Queries, marker: Marker, session_id: str, seen: View) -> str | None:
    """Return what an archive says; None when it is gone, or is not this session's, or not the caller's to see."""
    memory_id = q.names.holders([marker.archive_name]).get(marker.archive_name)
    memory = None if memory_id is None else q.memories.by_id([memory_id]).get(memory_id)
    if memory is None or memory.kind is not Kind.ARCHIVE or not seen.shows(memory):
        return None
    return memory.content if memory.metadata.get("session_id") == session_id else None
