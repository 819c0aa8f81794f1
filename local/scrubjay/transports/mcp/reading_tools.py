"""The tools that read: search, get, and how the memory is."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from scrubjay import api, redaction
from scrubjay.policy import DEFAULT
from scrubjay.routing.intent import classify
from scrubjay.routing.timespans import timespans
from scrubjay.transports.mcp import answers
from scrubjay.transports.mcp.answers import Page, bare
from scrubjay.transports.mcp.tools import Answer, Arguments, ToolContext
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError
from scrubjay_shared.records import Event, Scope
from scrubjay_shared.text import estimate_tokens, unbracketed

ALSO = DEFAULT.limits.also
"""How many other phrasings a search takes."""

SEARCH_LIMIT = 20
"""The most hits of a page: also how many recall judges, so that a later page continues the same order."""

ANSWER_TOKENS = 2_000
"""What an answer costs a model unless it asks for more: twenty hits, three of them at length."""

FULL_HITS = 3
"""Hits that are told at length; the others have a line each: the model chooses which it opens."""

HEAD_TOKENS = 30
"""What stands before the words of a hit: its id, what it is, when it was said."""

MOST_TOKENS = 20_000
"""The most that one answer may cost: hosts cut tool results off at 25,000."""

NEXT_TOKENS = 30
"""Kept for the line that says how to go on."""

PLACES = 3
"""Places of the table of contents above the hits: a page has room for them, and each leads to those beside it."""

MOST_AROUND = 10
"""The most events to each side of a source: what the operation allows."""

NEAR = 2
"""Turns to each side of what is opened, where nobody says how many: a turn alone seldom says what it was said for."""

NEAR_CHARS = 400
"""Of each of these: a paragraph. Its id opens the whole."""

FIRST_LETTER = "grip:{}:0-1"
"""The passage that stands for a whole event: its first letter."""

LEAST_TOKENS = 120
"""Less would not hold one memory: the fence (19), what it is (up to 50), the way on (30), and a sentence."""

Tokens = Annotated[int, Meta(ge=LEAST_TOKENS, le=MOST_TOKENS)]


class Search(Arguments, frozen=True):
    """Arguments of memory_search."""

    query: Annotated[str, Meta(description="question or keywords")]
    also: Annotated[list[str], Meta(max_length=ALSO, description="up to 3 other phrasings")] = msgspec.field(
        default_factory=list
    )
    scope: Literal["", "project", "user"] = ""
    when: Annotated[str, Meta(description='"last week", "2026-11-20", "March 2026"')] = ""
    agent: Annotated[str, Meta(description="only what this agent said")] = ""
    limit: Annotated[int, Meta(ge=1, le=SEARCH_LIMIT)] = SEARCH_LIMIT
    cursor: str = ""
    max_tokens: Tokens = ANSWER_TOKENS
    why: Annotated[bool, Meta(description="explain the ranking")] = False


async def search(context: ToolContext, asked: Search) -> str:
    """Return what answers a question, best first: the first hits in full, a line of each other, a cursor for more."""
    if not asked.query.strip():
        raise InvalidError("memory_search needs a question", hint="give query a question or some keywords")
    since, until = answers.period(asked.when, context.now, context.utc_offset)
    skip = _skipped(asked.cursor)
    request = api.RecallRequest(
        query=asked.query,
        also=tuple(asked.also),
        limit=min(skip + asked.limit + 1, context.policy.work.recalled_hits),
        scope=Scope(asked.scope) if asked.scope else None,
        agent=asked.agent or None,
        since=since,
        until=until,
        max_tokens=_words_of(asked, skip),
    )
    found: api.RecallResponse = await context.operation("recall", request)
    page = Page(asked.max_tokens)
    if not skip and not asked.scope:
        await _add_places(context, asked, since, until, page)
    hits = found.hits[skip : skip + asked.limit]
    if not hits:
        page.add("no more hits" if skip else "nothing is remembered that comes near: try other words or no filters")
    shown = 0
    for hit in hits:
        text = answers.hit(hit, context.utc_offset, why=asked.why, brief=shown >= FULL_HITS)
        if shown and not page.add(text, reserve=NEXT_TOKENS):
            break
        if not shown:
            page.add_cut(text, reserve=NEXT_TOKENS)
        shown += 1
    if skip + shown < len(found.hits) or found.left_out:
        page.add(f"more: cursor={skip + shown}")
    if found.notes:
        page.add(answers.noted(found.notes))
    return page.text()


def _words_of(asked: Search, skip: int) -> int:
    """Return what the words of the hits may cost, so that with what stands before them they fit a page."""
    page = asked.max_tokens - answers.FENCE_TOKENS - NEXT_TOKENS - asked.limit * HEAD_TOKENS
    return max(page, asked.max_tokens // 2) * (skip // asked.limit + 1)


async def _add_places(
    context: ToolContext, asked: Search, since: Millis | None, until: Millis | None, page: Page
) -> None:
    """Add where it was said, for a question that is after a place or a time rather than an answer; with `why`, how.

    One that is after an answer is not routed: the way to its answer is the recall that was made already.
    """
    named = timespans(asked.query, context.now, context.utc_offset) if since is None and until is None else ()
    reading = classify(asked.query, times=tuple(span.words for span in named if span.words))
    if reading.intent is api.Intent.ANSWER and not asked.why:
        return
    request = api.RouteRequest(
        query=asked.query, limit=PLACES, agent=asked.agent or None, since=since, until=until, max_tokens=LEAST_TOKENS
    )
    found: api.RouteResponse = await context.operation("route", request)
    room = asked.max_tokens * 2 // 3  # for the hits
    for place in found.pointers if found.intent is not api.Intent.ANSWER else ():
        agents = f" · {', '.join(place.agents)}" if place.agents else ""
        page.add(f"{place.node} · {place.title} · {place.day}{agents}", reserve=room)
    if asked.why:
        steps = ", ".join(
            f"{step.layer} {step.found}" + (f" ({step.note})" if step.note else "") for step in found.steps
        )
        page.add(f"taken for: {found.intent} ({'; '.join(found.reasons)}); layers: {steps}", reserve=NEXT_TOKENS)


def _skipped(cursor: str) -> int:
    """Return how many hits earlier pages had. Raises InvalidError for a cursor that no page gave."""
    if not cursor:
        return 0
    if not cursor.isdecimal() or len(cursor) > 3:
        raise InvalidError(f"{cursor[:40]!r} is not a cursor", hint="give it as the page before did, or leave it out")
    return int(cursor)


class Get(Arguments, frozen=True):
    """Arguments of memory_get."""

    ids: Annotated[list[str], Meta(description="m_…, e_…, grip:… or names")]
    before: Annotated[int, Meta(ge=0, le=MOST_AROUND, description="whole events around")] | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, le=MOST_AROUND)] | UnsetType = UNSET
    detail: Literal["brief", "full"] = "brief"
    max_tokens: Tokens = ANSWER_TOKENS

    @property
    def around(self) -> tuple[int, int] | None:
        """How many events before and after are asked for; None where nobody says: then as many as there is room for."""
        if self.before is UNSET and self.after is UNSET:
            return None
        return self.before or 0, self.after or 0


async def get(context: ToolContext, asked: Get) -> Answer:
    """Return memories with what they were read from, and events and passages with what was said around them."""
    if not asked.ids:
        raise InvalidError("memory_get needs ids", hint="memory_search gives them")
    page = Page(asked.max_tokens)
    missing = 0
    share = asked.max_tokens // len(asked.ids)
    for place, ref in enumerate(asked.ids, start=1):
        try:
            kept = NEXT_TOKENS + share * (len(asked.ids) - place)  # for the ids that follow
            is_whole = await _read(context, ref.strip(), asked, page, kept)
        except ScrubjayError as error:
            if len(asked.ids) == 1:
                raise
            missing += 1
            page.add(f"{ref[:60]}: {error.message}", reserve=NEXT_TOKENS)
            continue
        if not is_whole:
            page.add("cut to max_tokens: ask for fewer ids, or give max_tokens")
            break
    return Answer(text=page.text(), failed=missing == len(asked.ids))


async def _read(context: ToolContext, ref: str, asked: Get, page: Page, kept: int) -> bool:
    """Add what an id means. Say whether all of it fitted. Raises NotFoundError."""
    inner = unbracketed(ref)
    if inner.startswith(answers.EVENT_ID):
        return await _around(context, FIRST_LETTER.format(bare(ref)), asked, page, kept)
    if inner.startswith("grip:"):
        return await _around(context, inner, asked, page, kept, is_quoted=True)
    found: api.WhyResponse = await context.operation("why", api.RefRequest(ref=bare(ref)))
    is_full = asked.detail == "full"
    for piece in answers.memory(found, context.utc_offset, full=is_full):
        if not page.add_cut(piece, reserve=NEXT_TOKENS):
            return False
    if not found.sources or asked.around == (0, 0) or (asked.around is None and is_full):
        return True
    source = found.sources[0]
    try:
        return await _around(context, source.grip.id, asked, page, kept, told=source.grip.excerpt)
    except NotFoundError:
        if asked.around is not None:
            raise
        return True


async def _around(
    context: ToolContext, grip: str, asked: Get, page: Page, kept: int, *, is_quoted: bool = False, told: str = ""
) -> bool:
    """Add the events of a passage with those around it; `is_quoted`: the passage first; `told`: it was, with a memory.

    Where nobody says how many are around, they are shortened, and those are added that leave `kept` tokens, the nearest
    first. Says whether all of it fitted. Raises NotFoundError.
    """
    before, after = asked.around or (NEAR, NEAR)
    found: api.GripResponse = await context.operation("grip", api.GripRequest(id=grip, before=before, after=after))
    if (
        found.segment
        and (asked.around is not None or not told)
        and not page.add(f"in {found.segment}", reserve=NEXT_TOKENS)
    ):
        return False
    if is_quoted and not page.add_cut(f"“{found.excerpt}”", reserve=NEXT_TOKENS):
        return False
    shown = found.events if asked.around is not None else _near(found, page.room - kept, told)
    for event in shown:
        if not page.add_cut(_event(event, is_source=event.id == found.event_id_start), reserve=NEXT_TOKENS):
            return False
    return True


def _near(found: api.GripResponse, room: int, told: str) -> list[Event]:
    """Return the events of a passage, and of those around it as many as fit, shortened, the nearest first.

    An event whose words were `told` is left out, and with a memory the passage itself where it does not fit.
    """
    at = {event.id: place for place, event in enumerate(found.events)}
    first, last = at.get(found.event_id_start, 0), at.get(found.event_id_end, 0)
    shown: dict[int, Event] = {}
    for place, event in sorted(enumerate(found.events), key=lambda one: max(first - one[0], one[0] - last, 0)):
        is_source = first <= place <= last
        if is_source and event.text.strip() == told.strip():
            continue
        is_cut = not is_source and len(event.text) > NEAR_CHARS
        near = replace(event, text=event.text[:NEAR_CHARS].rstrip() + answers.CUT) if is_cut else event
        room -= estimate_tokens(redaction.defused(_event(near, is_source=is_source))) + 1
        if room < 0 and (told or not is_source):
            break
        shown[place] = near
    return [event for _, event in sorted(shown.items())]


def _event(event: Event, *, is_source: bool) -> str:
    """Return one event: who said it, when, its words and its id."""
    said = f"{'>' if is_source else '·'} {event.speaker}, {answers.day(event.ts, event.utc_offset)}, {event.agent}"
    return f"{said}: {event.text} ({answers.EVENT_ID}{event.id})"


class Status(Arguments, frozen=True):
    """Arguments of memory_status: none."""


async def status(context: ToolContext, _: Status) -> str:
    """Say what is remembered, what waits, and what is wrong."""
    stats: api.StatsResponse = await context.operation("stats", api.Nothing())
    process: api.StatusResponse = await context.operation("status", api.Nothing())
    unsettled: api.ConflictsResponse = await context.operation("conflicts", api.ConflictsRequest())
    page = Page(ANSWER_TOKENS, recalled=False)
    by_count = sorted(stats.by_type.items(), key=lambda one: -one[1])
    types = ", ".join(f"{count} {name}" for name, count in by_count if count)
    page.add(f"{stats.memories} memories ({types or 'none yet'}); {stats.events} events in {stats.sessions} sessions")
    if stats.oldest is not None and stats.newest is not None:
        page.add(" to ".join(answers.day(moment, context.utc_offset) for moment in (stats.oldest, stats.newest)))
    page.add(f"waiting: {stats.to_learn} events to learn from, {stats.to_embed} texts to embed")
    waiting = len(unsettled.conflicts) + len(unsettled.doubts)
    page.add(f"for the person to settle: {waiting}" + (" (scrubjay conflicts)" if waiting else ""))
    page.add(f"project: {context.caller.project or 'none'}; you are {context.caller.agent or 'an unnamed agent'}")
    models = f"{process.model} {process.model_state}, {process.reranker} {process.reranker_state}"
    page.add(f"scrubjay {process.version}; models: {models}")
    for warning in process.warnings:
        page.add(f"warning: {warning}")
    return page.text()


async def read_memory(context: ToolContext, ref: str) -> str:
    """Return one memory with all its sources."""
    found: api.WhyResponse = await context.operation("why", api.RefRequest(ref=bare(ref)))
    return redaction.injected("\n".join(answers.memory(found, context.utc_offset, full=True)))


async def read_session(context: ToolContext, session_id: str) -> str:
    """Return what was said in a session, from its beginning."""
    page = Page(MOST_TOKENS)
    found: api.EventsResponse = await context.operation("events", api.EventsRequest(session_id=session_id))
    if not found.events:
        raise NotFoundError(f"there is no session {session_id[:60]!r}", hint="memory_search finds what was said")
    for event in found.events:
        said = f"{answers.day(event.ts, event.utc_offset)} {event.speaker}: {event.text} (e_{event.id})"
        if not page.add(said, reserve=NEXT_TOKENS):
            page.add("the session goes on: memory_search finds what was said in it")
            break
    return page.text()
