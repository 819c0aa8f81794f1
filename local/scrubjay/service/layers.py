"""The active layer as a person decides on it: what is active, what is proposed, what is confirmed and dismissed.

A proposal is computed when it is asked for, of what the store says now: a goal that was reached is gone from it by
itself. What a person decides is written: a memory's layer, or in its metadata the reason for which it was dismissed.
The end of a session is words of an event; deciding on it makes a memory of these, which where it is dismissed holds no
longer. An agent proposes by adding a goal: what it adds is its own words, and only a person confirms them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.lifecycle import proposals
from scrubjay.lifecycle.proposals import DISMISSED, LEFT_OFF, Reason, Unfinished
from scrubjay.policy import MemoryPolicy
from scrubjay.service import transfer
from scrubjay.service.context import Context
from scrubjay.service.references import References
from scrubjay.store import MemoryFilter, MemoryWrite, Store, Transaction
from scrubjay.store.queries import Queries
from scrubjay.store.queries.memories import END
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Grip, Kind, Layer, Memory, MemoryDraft, MemoryType, Scope, author_of
from scrubjay_shared.text import estimate_tokens, unbracketed

SOURCE = "active/1"
"""The source of the grip of a memory that was made of a session's end."""

LEFT_OFF_SALIENCE = 0.6
"""Of such a memory: above a fact, below a goal; it is over soon."""

_REASONS = {MemoryType.GOAL: Reason.GOAL, MemoryType.DECISION: Reason.DECISION}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A line that is proposed: a memory, or where a session ended."""

    reason: Reason
    memory: Memory | None = None
    end: Unfinished | None = None

    @property
    def ref(self) -> str:
        """The id of the memory or the event."""
        return self.memory.id if self.memory is not None else self.end.event.id if self.end is not None else ""


class Layers:
    """The active layer of one store, and what is proposed for it."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        context: Context,
        references: References,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._context = context
        self._references = references
        self._wake = wake
        self._now = now

    async def active(self, caller: Caller, request: api.ActiveRequest) -> api.ActiveResponse:
        """Return what is active and what is proposed, as a caller sees it."""
        asked = request.project if request.project is not None else caller.project
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        project = asked
        if project is None and not seen.is_bounded:
            project = await self._store.read(lambda q: q.layers.last_project())
        found = await self._proposed(seen, project)
        shown = seen if seen.is_bounded or project is None else View(project=project, session_id=request.session_id)
        loaded = await self._context.always(caller, project=project, session_id=request.session_id)
        lines = await self._context.lines(Layer.ACTIVE, shown)
        notes = list(await self._references.notes_on(request.project))
        if asked is None and project is not None:
            notes.append(f"of {project}, where something was said last: --project names another")
        return api.ActiveResponse(
            project=project,
            active=tuple(
                api.ActiveLine(
                    key=line.key, ref=line.memory.id, text=line.memory.content, fits=line.key not in loaded.cut
                )
                for line in lines
            ),
            proposed=tuple(_proposal(one) for one in found),
            tokens=loaded.active_tokens,
            budget=self._policy.limits.active_tokens,
            notes=tuple(notes),
        )

    async def confirm(self, caller: Caller, request: api.ProposalsRequest) -> api.ActiveResponse:
        """Put proposals into the active layer. Raises NotFoundError for what is not proposed."""
        chosen = await self._chosen(caller, request)

        def work(tx: Transaction) -> None:
            tx.memories.write([self._confirmed(tx, one) for one in chosen])

        return await self._decided(caller, request, chosen, work, "confirm_active")

    async def dismiss(self, caller: Caller, request: api.ProposalsRequest) -> api.ActiveResponse:
        """Propose lines no more for the reason that they are proposed for; take active ones out of the layer."""
        chosen = await self._chosen(caller, request, active=True)

        def work(tx: Transaction) -> None:
            tx.memories.write([self._dismissed(tx, one) for one in chosen])

        return await self._decided(caller, request, chosen, work, "dismiss_active")

    async def _decided(
        self,
        caller: Caller,
        request: api.ProposalsRequest,
        chosen: Sequence[_Found],
        work: Callable[[Transaction], None],
        kind: str,
    ) -> api.ActiveResponse:
        if chosen:
            await self._store.write(work, cause=self._store.new_cause(kind))
            self._wake("embed")
        return await self.active(caller, api.ActiveRequest(project=request.project, session_id=request.session_id))

    async def _chosen(self, caller: Caller, request: api.ProposalsRequest, *, active: bool = False) -> list[_Found]:
        """Return the proposals that a request names; with `active`, also lines that are active already."""
        most = self._policy.work.recalled_hits
        if request.every == bool(request.refs) or len(request.refs) > most:
            raise InvalidError(
                f"name up to {most} proposals by their ids, or all of them", hint="scrubjay active lists them"
            )
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        project = request.project if request.project is not None else caller.project
        if project is None:
            project = await self._store.read(lambda q: q.layers.last_project())
        found = await self._proposed(seen, project)
        if request.every:
            return found
        shown = [
            _Found(reason=_reason_of(line.memory), memory=line.memory)
            for line in await self._context.lines(Layer.ACTIVE, seen)
        ]
        return [_named(ref, [*found, *shown] if active else found) for ref in dict.fromkeys(request.refs)]

    async def _proposed(self, seen: View, project: str | None) -> list[_Found]:
        policy, now = self._policy.layers, self._now()

        def read(q: Queries) -> list[_Found]:
            page, _ = q.memories.page(
                MemoryFilter(project=project),
                after=None,
                limit=policy.looked_at,
                chars=self._policy.limits.page_chars,
            )
            memories = [memory for memory in page if seen.shows(memory) and author_of(memory) is None]
            found = [
                _Found(reason=reason, memory=memory)
                for reason, memory in proposals.proposed(memories, policy, project=project, now=now)
            ]
            before = None if project is None else q.handed.session_before(project, seen.session_id)
            if before is None or not seen.shows_session(before):
                return found
            words = q.handed.last_words(before.id, limit=policy.turns, chars=policy.turn_chars)
            turns = [event for event in words if author_of(event) is None]
            end = proposals.unfinished(turns, policy, now=now)
            if end is None or q.layers.decided(end.event.id, LEFT_OFF):
                return found
            if _says_more(q, end, {one.ref for one in found}):
                found.append(_Found(reason=Reason.LEFT_OFF, end=end))
            return found

        return await self._store.read(read)

    def _confirmed(self, tx: Transaction, one: _Found) -> MemoryWrite:
        if one.memory is not None:
            return MemoryWrite(memory_id=one.memory.id, fields={Field.LAYER: Layer.ACTIVE.value})
        return self._made(tx, one, layer=Layer.ACTIVE)

    def _dismissed(self, tx: Transaction, one: _Found) -> MemoryWrite:
        if one.memory is None:
            return self._made(tx, one, layer=Layer.ARCHIVE)
        memory = tx.queries.memories.get(one.memory.id)
        fields: dict[Field, Any] = {Field.LAYER: Layer.ARCHIVE.value} if memory.layer is Layer.ACTIVE else {}
        if LEFT_OFF in memory.metadata:
            fields[Field.VALID_TO] = tx.now
        else:
            reasons = memory.metadata.get(DISMISSED)
            kept = reasons if isinstance(reasons, list) else []
            fields[Field.METADATA] = memory.metadata | {DISMISSED: [*kept, one.reason.value]}
        return MemoryWrite(memory_id=memory.id, fields=fields)

    def _made(self, tx: Transaction, one: _Found, *, layer: Layer) -> MemoryWrite:
        """Return a memory of a session's end: active, or one that holds no longer."""
        if one.end is None:
            raise ValueError("a memory is made of a session's end")
        end, event = one.end, one.end.event
        draft = MemoryDraft(
            content=intake.content(self._policy, end.text),
            kind=Kind.NOTE,
            type=MemoryType.DAILY,
            scope=Scope.PROJECT if event.project else Scope.USER,
            resource_id=event.project,
            layer=layer,
            salience=LEFT_OFF_SALIENCE,
            trust=event.trust,
            valid_to=tx.now if layer is Layer.ARCHIVE else None,
            metadata={LEFT_OFF: event.id},
        )
        memory_id = tx.new_id()
        grip = Grip(
            id=tx.new_id(),
            memory_id=memory_id,
            event_id_start=event.id,
            event_id_end=event.id,
            span_start=end.start,
            span_end=end.end,
            excerpt=end.text,
            source=SOURCE,
            created_at=event.ts,
        )
        return MemoryWrite(memory_id=memory_id, fields=transfer.fields_of(draft, tx.now), grips=(grip,))


def _says_more(queries: Queries, end: proposals.Unfinished, proposed: Collection[str]) -> bool:
    """Say whether the end of a session says more than memories that were read from it and are proposed or active."""
    grips = [
        grip
        for grip in queries.grips.over(end.event.id, [(end.start, end.end)])
        if grip.event_id_start == grip.event_id_end
    ]
    read = queries.memories.by_id([grip.memory_id for grip in grips])
    lines = {memory_id for memory_id, memory in read.items() if memory_id in proposed or memory.layer is Layer.ACTIVE}
    return proposals.says_more(end, [(grip.span_start, grip.span_end) for grip in grips if grip.memory_id in lines])


def _proposal(one: _Found) -> api.Proposal:
    if one.memory is not None:
        text, ts, trust, kind = one.memory.content, one.memory.created_at, one.memory.trust, "memory"
    elif one.end is not None:
        text, ts, trust, kind = one.end.text, one.end.event.ts, one.end.event.trust, "event"
    else:
        raise ValueError("a proposal is a memory or the end of a session")
    return api.Proposal(
        ref=one.ref,
        kind=kind,
        reason=one.reason.value,
        text=text,
        ts=ts,
        trust=trust.value,
        tokens=estimate_tokens(text),
    )


def _reason_of(memory: Memory) -> Reason:
    """Return the reason for which an active line would be proposed again if it were taken out."""
    return Reason.LEFT_OFF if LEFT_OFF in memory.metadata else _REASONS.get(memory.type, Reason.GOAL)


def _named(ref: str, found: Sequence[_Found]) -> _Found:
    """Return what a reference names. Raises NotFoundError, ConflictError where several ids begin so."""
    wanted = unbracketed(ref.strip()).upper()
    matches = [one for one in found if wanted and one.ref.startswith(wanted)]
    matches = matches or [one for one in found if len(wanted) == END and one.ref.endswith(wanted)]
    if not matches:
        raise NotFoundError(f"{ref[:60]!r} is not proposed", hint="scrubjay active lists what is, with its ids")
    if len(matches) > 1 and all(one.ref != wanted for one in matches):
        raise ConflictError(f"{ref[:60]!r} is the beginning or the end of several ids", hint="give more of it")
    return matches[0]
