"""The texts of ranked hits: read in one snapshot, cut to what matters, as they stand in an answer.

Each kind of document says here how its hits are built and what a reranking model reads of them (`HIT_KINDS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay import api
from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.assemble import Hit as Ranked
from scrubjay.retrieval.folding import Told
from scrubjay.retrieval.fusion import Known
from scrubjay.retrieval.packing import CUT
from scrubjay.retrieval.passages import SEARCHED_CHARS, passage
from scrubjay.retrieval.reranking import passage as read_as
from scrubjay.retrieval.turns import turn_kind
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Grip, Kind, Memory, author_of
from scrubjay_shared.text import analyse

KNOWN_CHARS = 4_000
"""Of an event, to tell what kind of turn it is; a longer one counts as so long."""

RERANKED_CHARS = 8_000
"""Of a text given to the reranking model, whose window is 512 tokens: more words than it reads."""


SOURCES = 8
"""Places that a hit of recall quotes at most: more is a list to read, and not evidence."""

BESIDE_SHARE = 4
"""The other side of an exchange has one in so many of the characters of a hit: enough to know what it was about."""

SOURCE_CHARS = 60
"""The least that a quoted place has: half a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitKind:
    """How hits of one kind are read. `build` returns them by id, with no text much longer than so many characters.

    `passages` returns by id what a reranking model reads. What is gone since it was ranked is absent from both.
    """

    build: Callable[[Queries, Sequence[Ranked], int, Wanted], Mapping[str, api.Hit]]
    passages: Callable[[Queries, Sequence[Ranked], RecallPolicy], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much of a long text a hit has (characters), and what the question's tokens weigh, to find the passage.

    `as_of` is the moment (UTC milliseconds) at which is asked what held, None for now.
    """

    chars: int
    weights: Mapping[str, float]
    as_of: int | None = None

    def own(self, hit: Ranked) -> int:
        """Return how many of the characters are left for a hit beside the other sides that it shows."""
        return self.chars - (self.chars // BESIDE_SHARE if hit.beside else 0)


def read_known(queries: Queries, ranked: Sequence[Ranked]) -> dict[str, Known]:
    """Return what only the store knows of ranked hits; what was forgotten since is absent."""
    memories = queries.memories.by_id([hit.id for hit in ranked if hit.kind == MEMORY.name], chars=0)
    events = queries.events.by_id([hit.id for hit in ranked if hit.kind == EVENT.name], chars=KNOWN_CHARS)
    known = {id_: Known(confidence=memory.confidence) for id_, memory in memories.items()}
    return known | {
        id_: Known(turn=turn_kind(event.type, event.text), chars=len(event.text)) for id_, event in events.items()
    }


def read_texts(queries: Queries, ranked: Sequence[Ranked], chars: int) -> dict[str, str]:
    """Return the first characters of ranked hits' texts; what was forgotten since is absent."""
    memories = queries.memories.by_id([hit.id for hit in ranked if hit.kind == MEMORY.name], chars=chars)
    events = queries.events.by_id([hit.id for hit in ranked if hit.kind == EVENT.name], chars=chars)
    return {id_: memory.content for id_, memory in memories.items()} | {id_: one.text for id_, one in events.items()}


def read_put_away(queries: Queries, ids: Sequence[str], as_of: Millis | None) -> dict[str, Told | None]:
    """Return by what those of some memories are told that were put away by a time, None for now; None: by nothing."""
    memories = queries.memories.by_id(ids, chars=0)
    inside = {
        id_: one
        for id_, one in memories.items()
        if one.archived_at is not None and (as_of is None or one.archived_at <= as_of)
    }
    held = queries.members.holders(inside) if inside else {}
    return {id_: _told(queries, one, held[id_]) if id_ in held else None for id_, one in inside.items()}


def _told(queries: Queries, memory: Memory, holder: Memory) -> Told:
    """Return by what a memory is told that was put away, into what it was merged or into an archive in the end."""
    if holder.kind is not Kind.ARCHIVE:
        return Told(id=holder.id, archive=None)
    told, into = memory.id, memory.superseded_by
    while into is not None and into != holder.id:
        told, into = into, queries.memories.successor(into)
    return Told(id=told, archive=holder.id)


def read_hits(queries: Queries, ranked: Sequence[Ranked], most: int, wanted: Wanted) -> tuple[api.Hit, ...]:
    """Return ranked hits with their texts, of which none has more than about `most` characters.

    A longer one is cut and marked, so that it does not look whole; of a cut text, at least as many are left as can
    matter to a budget that gave `most`. An event longer than is wanted is its passage that answers.
    """
    built: dict[str, api.Hit] = {}
    for name, kind in HIT_KINDS.items():
        built |= kind.build(queries, [hit for hit in ranked if hit.kind == name], most, wanted)
    around = queries.events.by_id([*{id_ for hit in ranked for id_ in hit.neighbours}], chars=most + 1)
    sides = queries.events.by_id([*{id_ for hit in ranked for id_ in hit.beside}], chars=SEARCHED_CHARS)
    found = []
    for hit in ranked:
        if hit.id in built:
            one = built[hit.id]
            neighbours = tuple(_quote(around[id_]) for id_ in hit.neighbours if id_ in around)
            beside = tuple(
                _other_side(sides[id_], wanted)
                for id_ in hit.beside
                if id_ in sides and not _ACKNOWLEDGED.match(sides[id_].text)
            )
            found.append(_cut(replace(one, neighbours=neighbours, sources=(*one.sources, *beside)), most))
    return tuple(found)


_ACKNOWLEDGED = re.compile(
    r"(?i)\W*(?:(?:ok|okay|done|noted|got it|understood|will do|all ?right|thanks|thank you|on it|i will)\b\W*)+$"
)
"""What is said to have heard: "OK, I will." answers nothing, and "Of course." may."""


def _other_side(event: Event, wanted: Wanted) -> api.Quote:
    """Return the other side of an exchange as a source: of a long turn the passage that answers."""
    side = api.Beside.ASKED if event.type is EventType.USER_MESSAGE else api.Beside.ANSWERED
    return replace(_quote(event, _excerpt(event.text, wanted, wanted.chars // BESIDE_SHARE)), beside=side)


def read_passages(queries: Queries, ranked: Sequence[Ranked], policy: RecallPolicy) -> list[str]:
    """Return what a reranking model reads of each hit; "" of one that was forgotten since it was ranked."""
    found: dict[str, str] = {}
    for name, kind in HIT_KINDS.items():
        found |= kind.passages(queries, [hit for hit in ranked if hit.kind == name], policy)
    return [found.get(hit.id, "") for hit in ranked]


def _event_hits(queries: Queries, ranked: Sequence[Ranked], most: int, wanted: Wanted) -> Mapping[str, api.Hit]:
    chars = max(SEARCHED_CHARS, most) + 1 if wanted.chars < most else most + 1
    events = queries.events.by_id([hit.id for hit in ranked], chars=chars)
    return {hit.id: _event_hit(hit, events[hit.id], wanted) for hit in ranked if hit.id in events}


def _event_hit(hit: Ranked, event: Event, wanted: Wanted) -> api.Hit:
    text = event.text or str(event.metadata.get("caption", ""))
    part = passage(text, wanted.weights, chars=wanted.own(hit))
    cut = len(part.text) < len(text)
    return api.Hit(
        id=hit.id,
        kind=hit.kind,
        text=part.text,
        score=hit.score,
        ts=event.ts,
        type=event.type.value,
        parts=hit.parts,
        trust=event.trust.value,
        sources=(replace(_quote(event), text=""),),
        truncated=cut,
        span=(part.start, part.end) if cut else None,
        confidence=hit.confidence,
        author=author_of(event),
    )


def _event_passages(queries: Queries, ranked: Sequence[Ranked], policy: RecallPolicy) -> Mapping[str, str]:
    events = queries.events.by_id([hit.id for hit in ranked], chars=RERANKED_CHARS)
    before = queries.events.by_id([id_ for hit in ranked for id_ in hit.before], chars=-RERANKED_CHARS)
    return {
        hit.id: read_as(
            events[hit.id].speaker,
            events[hit.id].text,
            [(before[id_].speaker, before[id_].text) for id_ in hit.before if id_ in before],
            policy,
        )
        for hit in ranked
        if hit.id in events
    }


def _memory_hits(queries: Queries, ranked: Sequence[Ranked], most: int, wanted: Wanted) -> Mapping[str, api.Hit]:
    ids = [hit.id for hit in ranked]
    memories, grips = queries.memories.by_id(ids, chars=most + 1), queries.grips.of_memories(ids)
    ends = {grip.event_id_start for found in grips.values() for grip in found}
    events = queries.events.by_id([*ends], chars=0)  # only who said it and when: the grip has the words
    return {
        hit.id: _memory_hit(hit, memories[hit.id], grips.get(hit.id, ()), events, wanted)
        for hit in ranked
        if hit.id in memories
    }


def _memory_hit(
    hit: Ranked,
    memory: Memory,
    grips: Sequence[Grip],
    events: Mapping[str, Event],
    wanted: Wanted,
) -> api.Hit:
    room = max(wanted.own(hit) - len(memory.content), wanted.chars // 3)
    shown = _shown(grips, room // SOURCE_CHARS, wanted if memory.kind is Kind.ARCHIVE else None)
    return api.Hit(
        id=memory.id,
        kind=hit.kind,
        text=memory.content,
        score=hit.score,
        ts=memory.created_at,
        type=memory.type.value,
        parts=hit.parts,
        name=memory.name,
        scope=memory.scope.value,
        resource_id=memory.resource_id,
        salience=memory.salience,
        trust=memory.trust.value,
        review=memory.review,
        superseded_by=_replaced_by(memory, wanted.as_of) if hit.archive is None else None,
        archive=hit.archive,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        sources=tuple(
            _quote(events[grip.event_id_start], _excerpt(grip.excerpt, wanted, room // len(shown)))
            for grip in shown
            if grip.event_id_start in events
        ),
        confidence=hit.confidence,
        author=author_of(memory),
    )


def _replaced_by(memory: Memory, as_of: int | None) -> str | None:
    """Return what had taken a memory's place at a moment, None for now. What did so only later had not yet."""
    until = memory.archived_at if memory.valid_to is None else memory.valid_to
    return None if as_of is not None and until is not None and until > as_of else memory.superseded_by


def _shown(grips: Sequence[Grip], room: int, wanted: Wanted | None) -> Sequence[Grip]:
    """Return the grips that a hit quotes: where it was said first and where last, in their order. `why` has them all.

    What is said every day has hundreds, and they share what one hit may cost. Of an archive (`wanted` is given) they
    say different things, and those are quoted that say most of what is asked.
    """
    most = min(max(room, 1), SOURCES)
    if wanted is not None and len(grips) > most:
        told = [sum(wanted.weights.get(token, 0.0) for token in set(analyse(grip.excerpt))) for grip in grips]
        best = sorted(range(len(grips)), key=lambda place: (-told[place], place))[:most]
        return [grips[place] for place in sorted(best)]
    return grips if len(grips) <= most else (grips[0], *grips[len(grips) - most + 1 :])


def _excerpt(text: str, wanted: Wanted, chars: int) -> str:
    """Return an excerpt, of a long one the passage that answers with marks where it was cut."""
    part = passage(text, wanted.weights, chars=chars)
    return part.text if len(part.text) == len(text) else part.text + CUT


def _memory_passages(queries: Queries, ranked: Sequence[Ranked], _: RecallPolicy) -> Mapping[str, str]:
    memories = queries.memories.by_id([hit.id for hit in ranked], chars=RERANKED_CHARS)
    return {memory_id: memory.content for memory_id, memory in memories.items()}


HIT_KINDS: Mapping[str, HitKind] = {
    EVENT.name: HitKind(build=_event_hits, passages=_event_passages),
    MEMORY.name: HitKind(build=_memory_hits, passages=_memory_passages),
}


def _quote(event: Event, text: str | None = None) -> api.Quote:
    return api.Quote(
        event_id=event.id,
        session_id=event.session_id,
        ts=event.ts,
        utc_offset=event.utc_offset,
        speaker=_who(event),
        text=event.text if text is None else text,
    )


def _who(event: Event) -> str:
    """Return who said something: the speaker, or the file that a paragraph stands in."""
    source = event.metadata.get("source")
    return source if event.type is EventType.NOTE and isinstance(source, str) and source else event.speaker


def _cut(hit: api.Hit, most: int) -> api.Hit:
    """Return a hit whose texts end after `most` characters and say so."""
    if len(hit.text) <= most and all(len(quote.text) <= most for quote in (*hit.sources, *hit.neighbours)):
        return hit

    def quotes(given: Sequence[api.Quote]) -> tuple[api.Quote, ...]:
        return tuple(
            replace(quote, text=quote.text[:most] + CUT) if len(quote.text) > most else quote for quote in given
        )

    cut = len(hit.text) > most
    return replace(
        hit,
        text=hit.text[:most] + CUT if cut else hit.text,
        truncated=cut or hit.truncated,
        sources=quotes(hit.sources),
        neighbours=quotes(hit.neighbours),
    )
