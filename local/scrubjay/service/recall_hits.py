"""The texts of ranked hits: read in one snapshot, cut to what there is room for, as they stand in an answer.

Theory of operation. A hit has parts: of an event its own text, of a memory the turn that it was read from, of work with
an agent the other side of the exchange. Short turns are told whole, so that no sentence hides what stands beside it.
Where a budget has no room for that, it is shared out: the first hits have the most, none has more than it needs, and
what one leaves the others have. Each kind of document says here how its hits are built and what a reranking model
reads of them (`HIT_KINDS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from scrubjay import api
from scrubjay.api.access import EVERYTHING, View
from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.policy import RecallPolicy, ShowingPolicy
from scrubjay.retrieval.assemble import Hit as Ranked
from scrubjay.retrieval.folding import Told
from scrubjay.retrieval.fusion import Known
from scrubjay.retrieval.packing import CUT, shared_out
from scrubjay.retrieval.passages import SEARCHED_CHARS, Excerpt, excerpt, says_nothing
from scrubjay.retrieval.reranking import passage as read_as
from scrubjay.retrieval.turns import turn_kind
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Grip, Kind, Memory, author_of
from scrubjay_shared.text import analyse, estimate_tokens

KNOWN_CHARS = 4_000
"""Of an event, to tell what kind of turn it is; a longer one counts as so long."""

RERANKED_CHARS = 8_000
"""Of a text given to the reranking model, whose window is 512 tokens: more words than it reads."""

SOURCES = 8
"""Places that a hit of recall quotes at most: more is a list to read, and not evidence."""

SAMPLE_CHARS = 300
"""Of a text whose tokens are counted; of a longer one they are reckoned from so much of it."""

ENDING_CHARS = 1_000
"""Of the end of a turn that is longer than what is searched: what it came to is said in fewer."""

_AGENTS = frozenset({EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the hits may cost together (tokens), and what the question's tokens weigh, to find the passages.

    `most` is how many characters of any text can matter, `seen` what the caller sees, `as_of` the moment (UTC
    milliseconds) at which is asked what held, None for now.
    """

    tokens: int
    most: int
    weights: Mapping[str, float]
    policy: ShowingPolicy
    seen: View = EVERYTHING
    as_of: int | None = None

    @property
    def read(self) -> int:
        """How many characters of a text are read."""
        return max(SEARCHED_CHARS, self.most) + 1

    def held(self, text: str) -> float:
        """Return what the question's words in a text weigh."""
        return sum(self.weights.get(token, 0.0) for token in set(analyse(text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A text of a hit before it is cut, the tokens of all of it, and its weight when room is shared out.

    `quote` is what it becomes the text of, None for the hit itself. The words at `cited` are marked. A turn that
    `concludes` is told with its last words; `ending` is that of one too long to be read whole. What `is_near` is told
    because turns around the hit were asked for.
    """

    text: str
    need: int
    quote: api.Quote | None = None
    cited: tuple[int, int] | None = None
    concludes: bool = False
    ending: str = ""
    weight: float = 1.0
    is_near: bool = False

    @property
    def may_go(self) -> bool:
        """Whether a hit is told without it where there is no room: neither its own words nor its turn are."""
        return self.quote is not None and self.cited is None

    def cut(self, share: int, wanted: Wanted) -> Excerpt:
        """Return what is shown of it for so many tokens."""
        chars = len(self.text) if share >= self.need else len(self.text) * share // self.need
        return excerpt(
            self.text, wanted.weights, chars=chars, cited=self.cited, concludes=self.concludes, ending=self.ending
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A hit before its parts are cut. `fixed` are the tokens of what it says whatever room there is."""

    hit: api.Hit
    fixed: int = 0
    parts: tuple[_Part, ...] = ()

    @property
    def need(self) -> int:
        """Return the tokens of all of it."""
        return self.fixed + sum(part.need for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitKind:
    """How hits of one kind are read. `drafts` returns them by id, before anything is cut.

    `passages` returns by id what a reranking model reads. What is gone since it was ranked is absent from both.
    """

    drafts: Callable[[Queries, Sequence[Ranked], Wanted], Mapping[str, Draft]]
    passages: Callable[[Queries, Sequence[Ranked], RecallPolicy], Mapping[str, str]]


def read_known(queries: Queries, ranked: Sequence[Ranked]) -> dict[str, Known]:
    """Return what only the store knows of ranked hits; what was forgotten since is absent, and what says nothing."""
    sure = queries.memories.confidences([hit.id for hit in ranked if hit.kind == MEMORY.name])
    events = queries.events.by_id([hit.id for hit in ranked if hit.kind == EVENT.name], chars=KNOWN_CHARS)
    known = {id_: Known(confidence=confidence) for id_, confidence in sure.items()}
    return known | {
        id_: Known(turn=turn_kind(event.type, event.text), chars=len(event.text))
        for id_, event in events.items()
        if not says_nothing(_words(event))
    }


def read_texts(queries: Queries, ranked: Sequence[Ranked], chars: int) -> dict[str, str]:
    """Return the first characters of ranked hits' texts; what was forgotten since is absent."""
    memories = queries.memories.by_id([hit.id for hit in ranked if hit.kind == MEMORY.name], chars=chars)
    events = queries.events.by_id([hit.id for hit in ranked if hit.kind == EVENT.name], chars=chars)
    return {id_: memory.content for id_, memory in memories.items()} | {id_: one.text for id_, one in events.items()}


def read_put_away(queries: Queries, ids: Sequence[str], as_of: Millis | None) -> dict[str, Told | None]:
    """Return by what those of some memories are told that were put away by a time, None for now; None: by nothing."""
    archived = queries.memories.by_id(ids, chars=0, archived=True)
    inside = {
        id_: one for id_, one in archived.items() if one.archived_at and (as_of is None or one.archived_at <= as_of)
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


def read_hits(queries: Queries, ranked: Sequence[Ranked], wanted: Wanted) -> tuple[api.Hit, ...]:
    """Return the first of some ranked hits with their texts: as many as there is room for, and at least one.

    What has no room is cut to what answers and marked, so that it does not look whole. No text has more than about
    `wanted.most` characters.
    """
    drafts: dict[str, Draft] = {}
    for name, kind in HIT_KINDS.items():
        drafts |= kind.drafts(queries, [hit for hit in ranked if hit.kind == name], wanted)
    there = [hit for hit in ranked if hit.id in drafts]
    around = queries.events.by_id([*{id_ for hit in there for id_ in hit.neighbours}], chars=wanted.read)
    sides = queries.events.by_id([*{id_ for hit in there for id_ in hit.beside}], chars=wanted.read)
    found = []
    for hit in there:
        draft = drafts[hit.id]
        quoted = {part.quote.event_id for part in draft.parts if part.quote is not None}
        beside = [sides[id_] for id_ in hit.beside if id_ in sides and id_ not in quoted]
        more = [_other_side(event, wanted) for event in beside if not _ACKNOWLEDGED.match(event.text)]
        near = [_turn(around[id_], _quote(around[id_]), wanted) for id_ in hit.neighbours if id_ in around]
        more += [replace(part, weight=wanted.policy.beside, is_near=True) for part in near]
        found.append(replace(draft, parts=(*draft.parts, *more)))
    return _fitted(_ended(queries, found, wanted), wanted)


def _fitted(drafts: Sequence[Draft], wanted: Wanted) -> tuple[api.Hit, ...]:
    """Return the hits that there is room for, each cut to its share."""
    policy = wanted.policy
    needs = [draft.need for draft in drafts]
    least = [min(need, draft.fixed + policy.least) for draft, need in zip(drafts, needs, strict=True)]
    count = max(sum(spent <= wanted.tokens for spent in accumulate(least)), 1)
    weights = [
        policy.output if draft.hit.type == EventType.TOOL_RESULT else policy.first if at < policy.first_hits else 1.0
        for at, draft in enumerate(drafts[:count])
    ]
    shares = shared_out(wanted.tokens, needs[:count], weights, least[:count])
    return tuple(_built(draft, share, wanted) for draft, share in zip(drafts, shares, strict=False))


def _built(draft: Draft, share: int, wanted: Wanted) -> api.Hit:
    """Return a hit cut to its share: what stands beside it is left out before it would be a few words."""
    parts, few = [*draft.parts], wanted.policy.beside_least
    while True:
        needs = [part.need for part in parts]
        room = shared_out(max(share - draft.fixed, 0), needs, [part.weight for part in parts], [0] * len(parts))
        small = [at for at, part in enumerate(parts) if part.may_go and room[at] < min(needs[at], few)]
        if not small:
            break
        del parts[small[-1]]
    hit, sources = draft.hit, [*draft.hit.sources]
    near: list[api.Quote] = []
    for part, given in zip(parts, room, strict=True):
        cut = part.cut(max(given, few), wanted)
        if part.quote is None:
            hit = replace(hit, text=cut.text, truncated=cut.span is not None, span=cut.span)
        else:
            quote = replace(part.quote, text=cut.text + ("" if cut.ends else CUT), cited=cut.cited)
            (near if part.is_near else sources).append(quote)
    return _bounded(replace(hit, sources=tuple(sources), neighbours=tuple(near)), wanted.most)


def _ended(queries: Queries, drafts: Sequence[Draft], wanted: Wanted) -> Sequence[Draft]:
    """Return drafts with the last words of those turns that are too long to be read whole."""

    def long(part: _Part) -> bool:
        return part.concludes and len(part.text) >= wanted.read

    ids = {_event_id(draft, part) for draft in drafts for part in draft.parts if long(part)}
    if not ids:
        return drafts
    ends = queries.events.by_id([*ids], chars=-ENDING_CHARS)

    def ended(draft: Draft, part: _Part) -> _Part:
        event = ends.get(_event_id(draft, part)) if long(part) else None
        return part if event is None else replace(part, ending=event.text)

    return [replace(draft, parts=tuple(ended(draft, part) for part in draft.parts)) for draft in drafts]


def _event_id(draft: Draft, part: _Part) -> str:
    return draft.hit.id if part.quote is None else part.quote.event_id


_ACKNOWLEDGED = re.compile(
    r"(?i)\W*(?:(?:ok|okay|done|noted|got it|understood|will do|all ?right|thanks|thank you|on it|i will)\b\W*)+$"
)
"""What is said to have heard: "OK, I will." answers nothing, and "Of course." may."""


def _other_side(event: Event, wanted: Wanted) -> _Part:
    """Return the other side of an exchange as a source."""
    side = api.Beside.ASKED if event.type is EventType.USER_MESSAGE else api.Beside.ANSWERED
    return _turn(event, replace(_quote(event), beside=side), wanted, weight=wanted.policy.beside)


def _turn(
    event: Event,
    quote: api.Quote | None,
    wanted: Wanted,
    *,
    cited: tuple[int, int] | None = None,
    weight: float = 1.0,
) -> _Part:
    """Return what was said in a turn, before it is cut."""
    text = _words(event)
    return _Part(
        text=text,
        need=_estimated(text, wanted.most),
        quote=quote,
        cited=cited,
        concludes=event.type in _AGENTS,
        weight=weight,
    )


def _estimated(text: str, most: int) -> int:
    """Return about how many tokens a text costs; a long one is taken to go on as it begins."""
    counted = min(SAMPLE_CHARS, most)
    tokens = estimate_tokens(text[:counted])
    return tokens if len(text) <= counted else tokens * len(text) // counted


def _words(event: Event) -> str:
    """Return what was said in an event, or what is said about a picture."""
    return event.text or str(event.metadata.get("caption", ""))


def read_passages(queries: Queries, ranked: Sequence[Ranked], policy: RecallPolicy) -> list[str]:
    """Return what a reranking model reads of each hit; "" of one that was forgotten since it was ranked."""
    found: dict[str, str] = {}
    for name, kind in HIT_KINDS.items():
        found |= kind.passages(queries, [hit for hit in ranked if hit.kind == name], policy)
    return [found.get(hit.id, "") for hit in ranked]


def _event_drafts(queries: Queries, ranked: Sequence[Ranked], wanted: Wanted) -> Mapping[str, Draft]:
    events = queries.events.by_id([hit.id for hit in ranked], chars=wanted.read)
    return {hit.id: _event_draft(hit, events[hit.id], wanted) for hit in ranked if hit.id in events}


def _event_draft(ranked: Ranked, event: Event, wanted: Wanted) -> Draft:
    hit = api.Hit(
        id=ranked.id,
        kind=ranked.kind,
        text="",
        score=ranked.score,
        ts=event.ts,
        type=event.type.value,
        parts=ranked.parts,
        trust=event.trust.value,
        sources=(_quote(event),),
        confidence=ranked.confidence,
        author=author_of(event),
    )
    return Draft(hit=hit, parts=(_turn(event, None, wanted),))


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


def _memory_drafts(queries: Queries, ranked: Sequence[Ranked], wanted: Wanted) -> Mapping[str, Draft]:
    ids = [hit.id for hit in ranked]
    memories, grips = queries.memories.by_id(ids, chars=wanted.most + 1), queries.grips.of_memories(ids)
    there = [hit for hit in ranked if hit.id in memories]
    shown = {hit.id: _shown(memories[hit.id], grips.get(hit.id, ()), wanted) for hit in there}
    told = {hit.id: _told_with(hit, memories[hit.id], shown[hit.id], wanted) for hit in there}
    places = {grip.id: _places(queries, grip) for found in shown.values() for grip in found}
    whole = {event_id for grip in told.values() if grip is not None for event_id in places[grip.id]}
    rest = {event_id for found in places.values() for event_id in found} - whole
    events = queries.events.by_id([*rest], chars=0) | queries.events.by_id([*whole], chars=wanted.read)

    def draft(hit: Ranked) -> Draft:
        memory = memories[hit.id]
        quotes = [
            part
            for grip in shown[hit.id]
            for part in _said(memory, _Place(grip, places[grip.id], grip is told[hit.id]), events, wanted)
        ]
        need = _estimated(memory.content, wanted.most)
        if need <= wanted.policy.whole:
            return Draft(hit=_memory_hit(hit, memory, wanted), fixed=need, parts=tuple(quotes))
        words = _Part(text=memory.content, need=need)
        return Draft(hit=_memory_hit(hit, memory, wanted), parts=(words, *quotes))

    return {hit.id: draft(hit) for hit in there}


def _places(queries: Queries, grip: Grip) -> Mapping[str, tuple[int, int]]:
    """Return in which events the words of a grip stand, and where in each. An answer to a question stands in two."""
    if grip.event_id_start == grip.event_id_end:
        return {grip.event_id_start: (grip.span_start, grip.span_end)}
    return {event_id: spans[0] for event_id, spans in queries.grips.passages([grip]).items()}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a memory was read from: in which events the words stand and where in each; with one of them it is told."""

    grip: Grip
    spans: Mapping[str, tuple[int, int]]
    is_told: bool


def _said(memory: Memory, place: _Place, events: Mapping[str, Event], wanted: Wanted) -> list[_Part]:
    """Return what quotes a place: each turn that it is in, whole where the memory is told with it, or its own words.

    Words that are the memory's are not said twice: then a quote says who and when alone.
    """
    found = []
    for event_id, (start, end) in place.spans.items():
        if event_id not in events:
            continue
        event, quote = events[event_id], _quote(events[event_id])
        words = place.grip.excerpt if len(place.spans) == 1 else event.text[start:end]
        is_told = place.is_told and wanted.seen.shows_event(event)
        at = start if event.text[start:end] == words else event.text.find(words)
        turn = event.text if is_told and at >= 0 else words
        if _plain(turn) in {_plain(memory.content), ""}:
            found.append(_Part(text="", need=0, quote=quote))
        elif place.is_told:
            cited = (at, at + len(words)) if turn is event.text else (0, len(words))
            found.append(_turn(replace(event, text=turn), quote, wanted, cited=cited))
        else:
            need = _estimated(words, wanted.most)
            found.append(_Part(text=words, need=need, quote=quote, weight=wanted.policy.beside))
    return found


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .!").casefold()


def _memory_hit(hit: Ranked, memory: Memory, wanted: Wanted) -> api.Hit:
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
        confidence=hit.confidence,
        author=author_of(memory),
    )


def _replaced_by(memory: Memory, as_of: int | None) -> str | None:
    """Return what had taken a memory's place at a moment, None for now. What did so only later had not yet."""
    until = memory.archived_at if memory.valid_to is None else memory.valid_to
    return None if as_of is not None and until is not None and until > as_of else memory.superseded_by


def _shown(memory: Memory, grips: Sequence[Grip], wanted: Wanted) -> Sequence[Grip]:
    """Return the grips that a hit quotes: where it was said first and where last, in their order. `why` has them all.

    What is said every day has hundreds. Of an archive they say different things, and those are quoted that say most of
    what is asked.
    """
    if len(grips) <= SOURCES:
        return grips
    if memory.kind is Kind.ARCHIVE:
        told = [wanted.held(grip.excerpt) for grip in grips]
        best = sorted(range(len(grips)), key=lambda place: (-told[place], place))[:SOURCES]
        return [grips[place] for place in sorted(best)]
    return (grips[0], *grips[len(grips) - SOURCES + 1 :])


def _told_with(hit: Ranked, memory: Memory, grips: Sequence[Grip], wanted: Wanted) -> Grip | None:
    """Return the grip whose turn is told with a memory: of the turn that was found, or holds most of what is asked.

    None of an archive: it was read from many.
    """
    if not grips or memory.kind is Kind.ARCHIVE:
        return None
    if len(grips) == 1:
        return grips[0]
    return max(
        grips,
        key=lambda grip: (grip.event_id_start in hit.also or grip.event_id_end in hit.also, wanted.held(grip.excerpt)),
    )


def _memory_passages(queries: Queries, ranked: Sequence[Ranked], _: RecallPolicy) -> Mapping[str, str]:
    memories = queries.memories.by_id([hit.id for hit in ranked], chars=RERANKED_CHARS)
    return {memory_id: memory.content for memory_id, memory in memories.items()}


HIT_KINDS: Mapping[str, HitKind] = {
    EVENT.name: HitKind(drafts=_event_drafts, passages=_event_passages),
    MEMORY.name: HitKind(drafts=_memory_drafts, passages=_memory_passages),
}


def _quote(event: Event) -> api.Quote:
    """Return who said something and when; the words come later."""
    return api.Quote(
        event_id=event.id,
        session_id=event.session_id,
        ts=event.ts,
        utc_offset=event.utc_offset,
        speaker=_who(event),
        text="",
    )


def _who(event: Event) -> str:
    """Return who said something: the speaker, or the file that a paragraph stands in."""
    source = event.metadata.get("source")
    return source if event.type is EventType.NOTE and isinstance(source, str) and source else event.speaker


def _bounded(hit: api.Hit, most: int) -> api.Hit:
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
