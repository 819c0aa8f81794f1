"""Events: a batch is redacted, normalised and appended; they are paged through in time order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay.service.paging import check_times, cursor, cursor_text, page_limit
from scrubjay.service.references import References
from scrubjay.service.threads import SMALL_CHARS, off_loop
from scrubjay.store import Cause, EventFilter, Statement, Store, Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.records import Event, EventDraft, EventType

SPOKEN = frozenset({EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP})
"""Events after which it may show what a session will need: what tools print comes by the hundred, and waits for one."""


OFF = "memory_off"
"""Why nothing is stored of what was said in a session while memory was switched off there."""

SWITCH = "useMemory"
"""The key of an event's metadata that, when false, says that nothing is learned of its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The events of one request, None for one that is not to be stored; `learn` says whether they are distilled.

    `imported` ones are copies of what was said before, whatever time they bear.
    """

    events: Sequence[Event | None]
    learn: bool
    imported: bool = False


class Events:
    """The events of one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        references: References,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._wake = wake
        self._now = now
        self._append = store.joined(_appended)

    async def ingest(self, caller: Caller, request: api.IngestRequest) -> api.IngestResponse:
        """Redact, normalise and append a batch of events; durable when this returns.

        Raises InvalidError naming the first draft that cannot be an event; then none of the batch is stored.
        """
        if len(request.events) > self._policy.limits.max_batch:
            raise TooLargeError(
                f"a request must have at most {self._policy.limits.max_batch} events, got {len(request.events)}",
                hint="send them in several requests",
            )
        drafts = [access.owned(caller, draft) for draft in request.events]
        # Metadata is cleaned too, and nobody knows how long it takes before it is.
        chars = sum(SMALL_CHARS if draft.metadata else len(draft.text) + 1 for draft in drafts)
        cleaned = await off_loop(chars, partial(self.cleaned, drafts, intake.source_of(caller), self._now()))
        return await self.append([one for one in cleaned if isinstance(one, intake.Clean)], learn=request.learn)

    def cleaned(
        self, drafts: Sequence[EventDraft], source: intake.Source, now: Millis
    ) -> list[intake.Clean | InvalidError]:
        """Return drafts as events. Of an import, one that cannot be an event gives its error, and the others go on."""
        found: list[intake.Clean | InvalidError] = []
        for place, draft in enumerate(drafts):
            try:
                found.append(
                    intake.event(draft, place, device=self._store.device, now=now, policy=self._policy, source=source)
                )
            except InvalidError as error:
                if source not in {intake.Source.IMPORT, intake.Source.TRANSCRIPT}:
                    raise
                found.append(error)
        return found

    async def append(
        self, cleaned: Sequence[intake.Clean], *, learn: bool, cause: Cause | None = None
    ) -> api.IngestResponse:
        """Append events that were cleaned; one that is there already is counted and not stored again.

        What an agent sends as it happens has no cause: an event says itself which agent and session it is of.
        """
        redactions: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        wanted: list[Event | None] = []
        for clean in cleaned:
            if clean.reason:
                skipped[clean.reason] += 1
                wanted.append(None)
            else:
                redactions += clean.redactions
                wanted.append(clean.event)

        batch = Batch(events=wanted, learn=learn, imported=cause is not None)
        if cause is None:
            ids, accepted, forgotten, off = await self._append(batch)
        else:
            ids, accepted, forgotten, off = (await self._store.write(lambda tx: _appended(tx, [batch]), cause=cause))[0]
        skipped["forgotten"] += forgotten
        skipped[OFF] += off
        if accepted:
            if any(event is not None and event.type is EventType.COMPACTION for event in wanted):
                self._wake("compact")
            self._wake("learn")
            self._wake("embed")
            if any(event is not None and event.type in SPOKEN for event in wanted):
                self._wake("surface")
        return api.IngestResponse(
            accepted=accepted,
            duplicates=sum(1 for event in wanted if event is not None) - accepted - forgotten - off,
            ids=tuple(ids),
            redactions=dict(sorted(redactions.items())),
            skipped=skipped_of(skipped),
        )

    async def rehearse(self, cleaned: Sequence[intake.Clean]) -> int:
        """Store events and find them, and take that back. Returns how many were found; nothing of it stays anywhere."""
        wanted = [one.event for one in cleaned if not one.reason]

        def work(tx: Transaction) -> int:
            (ids, *_), *_ = _appended(tx, [Batch(events=wanted, learn=False)])
            return len(tx.queries.events.existing([one for one in ids if one]))

        return await self._store.rehearse(work)

    async def events(self, caller: Caller, request: api.EventsRequest) -> api.EventsResponse:
        """Return a page of events in time order."""
        check_times(request.since, request.until)
        seen = access.view(caller, project=request.project)
        chosen = EventFilter(
            session_id=request.session_id,
            project=seen.project,
            own_session=seen.session_id,
            since=request.since,
            until=request.until,
        )
        found, more = await self._store.read(
            lambda q: q.events.page(
                chosen,
                after=cursor(request.cursor),
                limit=page_limit(self._policy, request.limit),
                chars=self._policy.limits.page_chars,
            )
        )
        notes = await self._references.notes_on(request.project)
        return api.EventsResponse(events=tuple(found), next=cursor_text(more), notes=notes)

    async def sessions(self, caller: Caller, _: api.Nothing) -> api.SessionsResponse:
        """Return all sessions, newest first."""
        seen = access.view(caller)
        found = await self._store.read(lambda q: q.events.sessions())
        return api.SessionsResponse(sessions=tuple(session for session in found if seen.shows_session(session)))


def _appended(tx: Transaction, batches: Sequence[Batch]) -> list[tuple[list[str], int, int, int]]:
    """Append what is new in the batches of some requests.

    Returns of each the ids of its events, how many are new, and how many are not stored because they were forgotten,
    or because memory was off. An event of an earlier batch is there already for a later one.
    """
    known = tx.queries.events.known([event for batch in batches for event in batch.events if event is not None])
    off = tx.queries.unremembered.spans(
        event.session_id for batch in batches for event in batch.events if event is not None
    )
    counts: list[tuple[int, int, int]] = []
    refuses = tx.queries.tombstones.any_words()
    for learn, alike in groupby(batches, key=lambda batch: batch.learn):
        fresh: dict[str, Event] = {}
        for batch in alike:
            before = len(fresh)
            new = [event for event in batch.events if event is not None and event.dedupe_key not in known]
            heard = [event for event in new if not _is_off(event, off)]
            left = without_forgotten(tx, heard, imported=batch.imported) if refuses else heard
            for event in left:
                fresh.setdefault(event.dedupe_key, event)
            counts.append((len(fresh) - before, len(heard) - len(left), len(new) - len(heard)))
        switched = _switched(tx, list(fresh.values()))
        for is_off, run in groupby(switched, key=lambda event: event.metadata.get(SWITCH) is False):
            same = list(run)
            ids = tx.events.append(same, learn=learn and not is_off)
            known |= zip((event.dedupe_key for event in same), ids, strict=True)
    return [
        (["" if event is None else known.get(event.dedupe_key, "") for event in batch.events], *count)
        for batch, count in zip(batches, counts, strict=True)
    ]


def _is_off(event: Event, off: Mapping[str, Sequence[tuple[int, int | None]]]) -> bool:
    """Say whether memory was off in the event's session when it was said."""
    spans = off.get(event.session_id, ())
    return any(since <= event.ts and (until is None or event.ts < until) for since, until in spans)


def without_forgotten(tx: Transaction, events: Sequence[Event], *, imported: bool) -> list[Event]:
    """Return events as they may be stored: copies of forgotten ones are left out, forgotten sentences blanked.

    That holds for what was said before it was forgotten, and for all that is `imported`: what is said anew is what
    happened, and stays as it was said.
    """
    latest = tx.queries.tombstones.latest()
    old = {place for place, event in enumerate(events) if imported or event.ts <= latest}
    said = {place: Statement(text=events[place].text, project=events[place].project) for place in old}
    copies = dict(zip(said, tx.queries.tombstones.refusing_events(list(said.values())), strict=True))
    left: list[Event] = []
    refused: list[str] = []
    for place, event in enumerate(events):
        if place in old:
            at = None if imported else event.ts
            gone = [entity for entity, when in copies[place].items() if at is None or at <= when]
            refused += gone
            if gone:
                continue
            if spans := tx.queries.tombstones.passages(said[place], at=at):
                sentences = [replace(said[place], text=event.text[start:end]) for start, end in spans]
                refused += [entity for one in tx.queries.tombstones.refusing(sentences) for entity in one]
                left.append(replace(event, text=ops.blanked(event.text, spans)))
                continue
        left.append(event)
    tx.forget.count(refused)
    return left


def _switched(tx: Transaction, events: Sequence[Event]) -> list[Event]:
    """Return events with the off switch of their request: what follows a prompt that has it has it too."""
    off: dict[str, bool] = {}
    switched = []
    for event in events:
        given = event.metadata.get(SWITCH)
        if isinstance(given, bool) or event.type is EventType.USER_MESSAGE:
            off[event.session_id] = given is False
        elif event.session_id not in off:
            before = tx.queries.events.last_before(event.session_id, event.ts)
            off[event.session_id] = before is not None and before.metadata.get(SWITCH) is False
        is_off = off[event.session_id]
        switched.append(replace(event, metadata=event.metadata | {SWITCH: False}) if is_off else event)
    return switched


def skipped_of(reasons: Mapping[str, int]) -> tuple[api.Skipped, ...]:
    """Return the reasons why something was left out, each with how often."""
    return tuple(api.Skipped(reason=reason, count=count) for reason, count in sorted(reasons.items()) if count)
