"""A query over the index becomes one ranked list of events and memories, every score with its parts.

Theory of operation. The filter comes first: what the caller may not see, or did not ask for, takes no part in any
statistic below (no document frequency, no mean, no neighbour, no session). Then each visible document gets a dense and
a lexical z-score, both over the events and memories together, so that the two kinds are on one scale and three memories
among a thousand events are not measured against each other. A z-score beats a rank here: it keeps how far ahead the
best is. The features of the hand-set recipe (recall.md §5) are added; grips carry score both ways; and a memory and the
event it was read from become one hit.

A score is the sum of its parts, and comparable only within one ranking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index import FOREVER, Index, Mask, Table
from scrubjay.policy import RecallPolicy
from scrubjay_shared import scoring, text
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Role, Scope

Floats = npt.NDArray[np.float32]
EVENT, MEMORY = "event", "memory"
HYBRID, KEYWORD, WEIGHTED = "hybrid", "keyword", "weighted"
MODES = (HYBRID, KEYWORD, WEIGHTED)

_ASKS_WHEN = re.compile(r"\b(?:when|how long ago|(?:what|which) (?:date|day|week|month|year|time))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. `tokens` are `text.query_tokens(text)`; `vector` is float32 [d], unit, None without a model.

    `named` are the ids of memories whose name or alias the text is. `dates` are ranges [start, end) in UTC
    milliseconds that the text speaks of.
    """

    text: str
    tokens: tuple[str, ...]
    vector: Floats | None = None
    named: tuple[str, ...] = ()
    dates: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What may be seen, and what is wanted. None means "any".

    A caller with a project sees what is for the person, for its project, and for its session; and events of its
    project, of its session, or of none. A caller without one (the person at the terminal) sees all.

    `scope` and `resource_id` narrow memories further; naming a scope leaves no events, which have none.

    `types` are event or memory types: naming only memory types leaves no events. `min_salience` above 0 leaves no
    events either, which have none. `since` ≤ time < `until`, in UTC milliseconds: an event's time; a memory's validity
    where its text gave one (any overlap), else its creation.
    """

    caller_project: str | None = None
    caller_session: str | None = None
    kinds: frozenset[str] = frozenset({EVENT, MEMORY})
    types: frozenset[str] | None = None
    min_salience: float = 0.0
    agent: str | None = None
    session_id: str | None = None
    project: str | None = None
    scope: str | None = None
    resource_id: str | None = None
    since: int | None = None
    until: int | None = None
    superseded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer. `score` is exactly the sum of `parts`; `ts` the event's time or the memory's last change.

    `also` are the ids merged into it: of a memory, the event it was read from, or the other way about. `neighbours` are
    the ids around the event in its session. `cosine` (None without vectors) and `matched`, the share 0 to 1 of the
    query's token weight found in it, are absolute, for a caller who wants a floor.
    """

    id: str
    kind: str
    score: float
    parts: dict[str, float]
    ts: int
    also: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    superseded: bool = False
    cosine: float | None = None
    matched: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The hits, best first; the mode that ranked them; and what the reader should know of how."""

    hits: tuple[Hit, ...]
    mode: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """As many texts as fit, in order.

    `tokens` is their estimate, `left_out` how many did not fit, `truncated` whether the last one was cut.
    """

    texts: tuple[str, ...]
    tokens: int
    left_out: int
    truncated: bool


_EQUAL = 1e-6  # scores that deviate by less differ by rounding alone


class _Counted:
    """A mask and how many rows it lets through; one that lets all through costs nothing to apply."""

    __slots__ = ("count", "mask")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))

    def on(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array if self.count == len(array) else array * self.mask


@dataclass(slots=True)
class _Side:
    """One table during one query: who may be seen, who is wanted, and what each row has earned, all of length n."""

    kind: str
    table: Table
    seen: _Counted
    wanted: Mask
    dense: Floats
    bm25: Floats
    matched: Floats
    found: Mask  # rows with any reason to be a hit; those that are also wanted become hits
    cosine: Floats | None = None
    parts: dict[str, Floats] = field(default_factory=dict)

    @property
    def all_visible(self) -> bool:
        return self.seen.count == len(self.table)

    @property
    def visible(self) -> Mask:
        return self.seen.mask

    def total(self) -> Floats:
        found = np.zeros(len(self.table), np.float32)
        for part in self.parts.values():
            found += part
        return found


def rank(
    index: Index,
    query: Query,
    filters: Filters,
    policy: RecallPolicy,
    *,
    limit: int,
    mode: str = HYBRID,
    neighbours: int = 0,
) -> Ranking:
    """Return the best `limit` hits for a query among what the filters let through, each with its parts.

    Modes: `hybrid`, the recipe; `keyword`, plain BM25 of the tokens; `weighted`, 0.8 cosine and 0.2 weighted token
    overlap within matching topics. An empty query gives the newest first. A query that matches nothing lexically, with
    no vectors to go by, gives no hits. `neighbours` asks for so many ids to each side of an event hit.

    Raises InvalidError for an unknown mode, a negative limit, or a vector of another width than the index's.
    """
    if mode not in MODES:
        raise InvalidError(f"no recall mode {mode!r}", hint=f"one of {', '.join(MODES)}")
    if limit < 0 or neighbours < 0:
        raise InvalidError("a limit below zero", hint="ask for 1 or more")
    with index.lock:
        sides = _sides(index, filters)
        asked = bool(query.tokens or query.named or query.dates or (query.vector is not None and query.text.strip()))
        if not asked:
            return Ranking(hits=_newest(index, sides, limit, neighbours), mode=mode, notes=("no words: newest first",))
        if mode == HYBRID:
            notes = _hybrid(index, sides, query, policy)
        else:
            for side in sides:  # the plain modes count over what is asked for: no other kind takes part
                if side.kind not in filters.kinds:
                    side.seen = _Counted(np.zeros_like(side.visible))
            notes = (_keyword if mode == KEYWORD else _weighted)(index, sides, query, policy)
        if mode != KEYWORD:
            _promote(sides, query, policy)
        _demote(sides, query)
        return Ranking(hits=_hits(index, sides, limit, neighbours, policy), mode=mode, notes=notes)


def _sides(index: Index, filters: Filters) -> list[_Side]:
    sides = []
    for kind, table, visible, wanted in (
        (EVENT, index.events, _visible_events(index, filters), _wanted_events(index, filters)),
        (MEMORY, index.memories, _visible_memories(index, filters), _wanted_memories(index, filters)),
    ):
        n = len(table)
        sides.append(
            _Side(
                kind=kind,
                table=table,
                seen=_Counted(visible),
                wanted=wanted & visible,
                dense=np.zeros(n, np.float32),
                bm25=np.zeros(n, np.float32),
                matched=np.zeros(n, np.float32),
                found=np.zeros(n, np.bool_),
            )
        )
    return sides


def _visible_events(index: Index, filters: Filters) -> Mask:
    events = index.events
    visible: Mask = events["alive"].copy()
    if filters.caller_project is not None or filters.caller_session is not None:
        project = events["project"]
        own = (project == index.projects.find(filters.caller_project)) | (project == -1)
        if filters.caller_session is not None:
            own |= events["session"] == index.sessions.find(filters.caller_session)
        visible &= own
    return visible


def _visible_memories(index: Index, filters: Filters) -> Mask:
    memories = index.memories
    visible: Mask = memories["alive"].copy()
    if filters.caller_project is not None or filters.caller_session is not None:
        scope, resource = memories["scope"], memories["resource"]
        own = scope == index.scopes.find(Scope.USER)
        if filters.caller_project is not None:
            own |= (scope == index.scopes.find(Scope.PROJECT)) & (
                (resource == index.resources.find(filters.caller_project))
                | ((resource == -1) & (memories["project"] == index.projects.find(filters.caller_project)))
            )
        if filters.caller_session is not None:
            own |= (scope == index.scopes.find(Scope.SESSION)) & (
                (resource == index.resources.find(filters.caller_session))
                | (memories["session"] == index.sessions.find(filters.caller_session))
            )
        visible &= own
    return visible


def _wanted_events(index: Index, filters: Filters) -> Mask:
    events = index.events
    if EVENT not in filters.kinds or filters.min_salience > 0 or filters.scope is not None:
        return np.zeros(len(events), np.bool_)
    wanted = _wanted(index, events, filters)
    if filters.since is not None:
        wanted &= events["ts"] >= filters.since
    if filters.until is not None:
        wanted &= events["ts"] < filters.until
    return wanted


def _wanted_memories(index: Index, filters: Filters) -> Mask:
    memories = index.memories
    if MEMORY not in filters.kinds:
        return np.zeros(len(memories), np.bool_)
    wanted = _wanted(index, memories, filters)
    if filters.scope is not None:
        wanted &= memories["scope"] == index.scopes.find(filters.scope)
    if filters.resource_id is not None:
        wanted &= memories["resource"] == index.resources.find(filters.resource_id)
    if filters.min_salience > 0:
        wanted &= memories["salience"] >= np.float32(filters.min_salience)
    if not filters.superseded:
        wanted &= ~memories["superseded"]
    if filters.since is not None or filters.until is not None:
        since = -FOREVER if filters.since is None else filters.since
        wanted &= _held(memories, since, FOREVER if filters.until is None else filters.until)
    return wanted


def _wanted(index: Index, table: Table, filters: Filters) -> Mask:
    wanted = np.ones(len(table), np.bool_)
    if filters.types is not None:
        wanted &= np.isin(table["type"], [index.types.find(type_) for type_ in sorted(filters.types)])
    for column, name, names in (
        ("agent", filters.agent, index.agents),
        ("session", filters.session_id, index.sessions),
        ("project", filters.project, index.projects),
    ):
        if name is not None:
            wanted &= table[column] == names.find(name)
    return wanted


def _held(memories: Table, start: int, end: int) -> Mask:
    """Return which memories held at some time in [start, end), by their validity if a bound is known, else creation."""
    first, last, created = memories["valid_from"], memories["valid_to"], memories["created"]
    bounded = (first != -FOREVER) | (last != FOREVER)
    overlapping = (first < end) & (last >= start)
    return np.asarray(np.where(bounded, overlapping, (created >= start) & (created < end)), np.bool_)


def _newest(index: Index, sides: list[_Side], limit: int, neighbours: int) -> tuple[Hit, ...]:
    newest: list[tuple[int, str, _Side, int]] = []
    for side in sides:
        ts = side.table["ts"]
        rows = _best(ts, ts, side.table.ids, np.flatnonzero(side.wanted), limit)
        newest += [(-int(ts[row]), side.table.ids[row], side, row) for row in rows]
    newest.sort(key=lambda entry: entry[:2])
    return tuple(
        Hit(
            id=id_,
            kind=side.kind,
            score=1 / (1 + place),
            parts={"recency": 1 / (1 + place)},
            ts=-before,
            neighbours=_around(index, sides[0], id_, neighbours),
            superseded=side.kind == MEMORY and bool(side.table["superseded"][row]),
        )
        for place, (before, id_, side, row) in enumerate(newest[:limit])
    )


def _around(index: Index, events: _Side, id_: str, count: int) -> tuple[str, ...]:
    beside = index.neighbours(id_, before=count, after=count) if count else ()
    return tuple(other for other in beside if events.visible[events.table.rows[other]])


def _terms(index: Index, query: Query) -> list[int | None]:
    return [index.vocabulary.get(token) for token in dict.fromkeys(query.tokens)]


def _bm25(
    index: Index,
    sides: list[_Side],
    query: Query,
    *,
    k1: float,
    b: float,
    previous: tuple[Floats, RecallPolicy] | None = None,
) -> float:
    """Fill `bm25` and `matched` of both sides, counting over what is visible of the wanted kinds.

    `previous` asks to fill an array with BM25 of each event's text after the turn before it as well. Returns the
    weight of all the query's tokens together.
    """
    counted = sum(side.seen.count for side in sides)
    mean_length = sum(float(side.seen.on(side.table["length"]).sum()) for side in sides) / max(counted, 1)
    total = 0.0
    pair = _Pairs(sides[0], previous[1]) if previous is not None else None
    for term in _terms(index, query):
        held = [] if term is None else [_holders(side, term) for side in sides]
        df = sum(len(rows) for rows, _ in held)
        idf = scoring.bm25_idf(counted, df)
        total += idf
        for side, (rows, tf) in zip(sides, held, strict=False):
            length = side.table["length"][rows]
            long = previous[1].long_tokens if previous is not None else np.inf
            side.bm25[rows] += scoring.bm25_part(tf, length, mean_length, idf=idf, k1=k1, b=b, long=long)
            side.matched[rows] += idf
        if pair is not None and previous is not None and held:
            pair.add(*held[0], previous[0])
    if total > 0:
        for side in sides:
            side.matched /= total
    return total


def _holders(side: _Side, term: int) -> tuple[npt.NDArray[np.int32], Floats]:
    rows, tf = side.table.postings(term)
    if not side.all_visible:
        seen = side.visible[rows]
        rows, tf = rows[seen], tf[seen]
    return rows, tf.astype(np.float32)


class _Pairs:
    """BM25 of events read together with the visible turn before them."""

    def __init__(self, side: _Side, policy: RecallPolicy) -> None:
        self.policy = policy
        self.next = side.table["next"]
        self.visible = side.visible
        own = np.append(side.seen.on(side.table["length"]), 0).astype(np.float32)
        self.length = own[:-1] + own[side.table["prev"]]
        self.count = side.seen.count
        self.mean_length = float(side.seen.on(self.length).sum()) / max(self.count, 1)
        self.scratch = np.zeros(len(side.table), np.float32)

    def add(self, rows: npt.NDArray[np.int32], tf: Floats, into: Floats) -> None:
        """Add one token, held by visible `rows`."""
        after = self.next[rows]
        passed = (after >= 0) & self.visible[after]
        self.scratch[rows] = tf
        self.scratch[after[passed]] += tf[passed]
        both = np.flatnonzero(self.scratch != 0)
        idf = scoring.bm25_idf(self.count, len(both))
        k1, b, long = self.policy.k1, self.policy.b_prev, self.policy.long_tokens
        tf = self.scratch[both]
        into[both] += scoring.bm25_part(tf, self.length[both], self.mean_length, idf=idf, k1=k1, b=b, long=long)
        self.scratch[both] = 0


def _standardised(values: Sequence[Floats], masks: Sequence[_Counted], *, min_std: float = 0.0) -> list[Floats]:
    """Return z-scores over the masked rows of all arrays together, and 0 at the other rows."""
    centred, deviation = _centred(values, masks)
    return _divided(centred, max(deviation, min_std) if deviation > _EQUAL else 0.0)


def _lexical(values: Sequence[Floats], masks: Sequence[_Counted], whole: float, full_match: float) -> list[Floats]:
    """Return z-scores of BM25, 0 at the rows that are not masked, on a scale that a store may grow under.

    Most documents match nothing, so the plain deviation shrinks as the store grows: a match that scores 5 among 500
    documents would score 300 among a million, and meaning have no say. The deviation is therefore taken as if every
    document matched: a usual match counts about 1. But `whole`, the weight of all the query's tokens, counts
    `full_match` at least: a question that is one rare name has no other match to be compared with.
    """
    centred, deviation = _centred(values, masks)
    matches = sum(int(np.count_nonzero(mask.on(array))) for array, mask in zip(values, masks, strict=True))
    if not matches:
        return _divided(centred, 0.0)
    deviation *= (sum(mask.count for mask in masks) / matches) ** 0.5
    return _divided(centred, min(deviation, whole / full_match))


def _centred(values: Sequence[Floats], masks: Sequence[_Counted]) -> tuple[list[Floats], float]:
    """Return new arrays less their common mean, 0 where not masked, and their standard deviation."""
    count = max(sum(mask.count for mask in masks), 1)
    masked = [mask.on(array) for array, mask in zip(values, masks, strict=True)]
    mean = np.float32(sum(float(array.sum(dtype=np.float64)) for array in masked) / count)
    centred = [mask.on(array - mean) for array, mask in zip(masked, masks, strict=True)]
    return centred, (sum(float(np.dot(array, array)) for array in centred) / count) ** 0.5


def _divided(arrays: list[Floats], deviation: float) -> list[Floats]:
    scale = np.float32(1 / deviation if deviation > _EQUAL else 0.0)
    return [np.multiply(array, scale, out=array) for array in arrays]


def _dense(index: Index, sides: list[_Side], query: Query) -> tuple[list[_Counted], tuple[str, ...]]:
    """Fill `cosine`; return which visible rows have one, and what to say about those that have not."""
    masks = [_Counted(side.visible & side.table["embedded"]) for side in sides]
    # Tool output never gets a vector, so it is not what is missing.
    bare = index.types.find(EventType.TOOL_RESULT.value)
    have = sum(mask.count for mask in masks)
    seen = sum(int(np.count_nonzero(side.visible & (side.table["type"] != bare))) for side in sides)
    if query.vector is None or not have:
        why = "no model" if query.vector is None else "nothing embedded yet"
        return [_Counted(np.zeros_like(mask.mask)) for mask in masks], (f"{why}: lexical only",)
    index.check_width(len(query.vector))
    row, scale = scoring.quantise(query.vector[None, :])
    for side, mask in zip(sides, masks, strict=True):
        side.cosine = mask.on(side.table.cosines(row[0], float(scale[0]), mask.mask))
    return masks, () if have == seen else (f"partly embedded: {100 * have // seen}% of {seen} documents have a vector",)


def _hybrid(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    events, memories = sides
    embedded, notes = _dense(index, sides, query)
    if any(side.cosine is not None for side in sides):
        cosines = [side.cosine if side.cosine is not None else side.dense for side in sides]
        events.dense, memories.dense = _standardised(cosines, embedded, min_std=policy.min_cosine_std)
    pairs = np.zeros(len(events.table), np.float32)
    whole = _bm25(index, sides, query, k1=policy.k1, b=policy.b, previous=(pairs, policy))
    lexical = [side.bm25 > 0 for side in sides]
    visible = [side.seen for side in sides]
    events.bm25, memories.bm25 = _lexical([side.bm25 for side in sides], visible, whole, policy.full_match)
    for side, mask, matches in zip(sides, embedded, lexical, strict=True):
        side.found |= mask.mask | matches
    events.found |= pairs > 0
    (pairs,) = _lexical([pairs], [events.seen], whole, policy.full_match)
    _event_parts(index, events, pairs, query, policy)
    _memory_parts(index, events, memories, policy)
    if _ASKS_WHEN.search(query.text):
        dated = memories.table["valid_from"] > -FOREVER
        memories.parts["when"] = np.where(dated, np.float32(policy.when), np.float32(0))
    return notes


def _event_parts(index: Index, side: _Side, pairs: Floats, query: Query, policy: RecallPolicy) -> None:
    table = side.table
    own = policy.context_dense * side.dense + policy.context_bm25 * side.bm25
    beside = np.append(own, np.float32(0))  # row -1, at the ends of a session, scores 0
    side.parts |= {
        "dense": policy.event_dense * side.dense,
        "bm25": policy.event_bm25 * side.bm25,
        "bm25_prev": policy.event_bm25_prev * pairs,
        "prev": policy.event_prev * beside[table["prev"]],
        "next": policy.event_next * beside[table["next"]],
    }
    best = _session_best(own, side, len(index.sessions), policy.session_best)
    side.parts["session"] = policy.event_session * _standardised([best], [side.seen])[0]
    speaker = _named_speaker(index, side, query)
    if speaker is not None:
        side.parts["speaker"] = np.where(
            table["speaker"] == speaker, policy.event_speaker, -policy.event_speaker
        ).astype(np.float32)


def _session_best(own: Floats, side: _Side, sessions: int, count: int) -> Floats:
    """Return, by row, the mean of the `count` best visible scores of its session (of fewer where it has fewer).

    The last session number, -1, stands for rows of none; what they get is for the caller to replace.
    """
    if not len(own):
        return own
    runs = side.table.runs()
    lengths, session = np.diff(runs, append=len(own)), side.table["session"][runs]
    left = own.copy() if side.all_visible else np.where(side.visible, own, np.float32(-np.inf))
    total, taken = np.zeros(sessions + 1, np.float32), np.zeros(sessions + 1, np.int64)
    for round_ in range(count):
        best = np.full(sessions + 1, -np.inf, np.float32)
        np.maximum.at(best, session, np.maximum.reduceat(left, runs))
        at_best = np.flatnonzero((left == np.repeat(best[session], lengths)) & (left > -np.inf))
        place = np.searchsorted(runs, at_best, side="right") - 1
        equal = np.bincount(session[place] % (sessions + 1), minlength=sessions + 1)
        take = np.minimum(equal, count - taken)
        total += np.where(take > 0, best, 0) * take
        taken += take
        if round_ + 1 < count:
            left[at_best] = -np.inf
    return np.repeat((total / np.maximum(taken, 1)).astype(np.float32)[session], lengths)


def _named_speaker(index: Index, side: _Side, query: Query) -> int | None:
    """Return the one visible speaker whose name is in the query. Roles are not names; two named are no one's turn."""
    asked = frozenset(query.tokens)
    speaker = side.table["speaker"]
    named = [
        code
        for code, tokens in enumerate(index.speaker_tokens)
        if tokens & asked
        and index.speakers.strings[code] not in _ROLES
        and bool(((speaker == code) & side.visible).any())
    ]
    return named[0] if len(named) == 1 else None


_ROLES = frozenset(role.value for role in Role)


def _memory_parts(index: Index, events: _Side, memories: _Side, policy: RecallPolicy) -> None:
    table, visible = memories.table, memories.visible
    own = policy.memory_dense * memories.dense + policy.memory_bm25 * memories.bm25
    session = table["session"]
    best = _session_best(own, memories, len(index.sessions), 1)
    of_session = np.where(session >= 0, best, own)
    memories.parts |= {
        "dense": policy.memory_dense * memories.dense,
        "bm25": policy.memory_bm25 * memories.bm25,
        "session": policy.memory_session * _standardised([of_session], [memories.seen])[0],
    }
    memory, event = index.links()
    linked = visible[memory] & events.visible[event]
    memory, event = memory[linked], event[linked]
    if len(memory):
        source = _standardised([events.total()], [events.seen])[0]
        given = np.full(len(table), -np.inf, np.float32)
        np.maximum.at(given, memory, source[event])
        has = given > -np.inf
        memories.parts["source"] = np.where(has, policy.memory_source * given, np.float32(0))
        scale = np.where(has, np.float32(policy.memory_sourced), np.float32(1))
        for part in memories.parts.values():
            np.multiply(part, scale, out=part)
        memories.found[memory[events.found[event]]] = True
        credit = np.zeros(len(events.table), np.float32)
        np.maximum.at(credit, event, own[memory])
        events.parts["memory"] = policy.event_credit * credit
        events.found[event[memories.found[memory]]] = True


def _keyword(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    _bm25(index, sides, query, k1=policy.keyword_k1, b=policy.keyword_b)
    for side in sides:
        side.parts["bm25"] = side.bm25
        side.found |= side.bm25 > 0
    return (f"bm25 with k1 {policy.keyword_k1:g} and b {policy.keyword_b:g}",)


def _weighted(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    embedded, notes = _dense(index, sides, query)
    counted = sum(side.seen.count for side in sides)
    total = 0.0
    for term in _terms(index, query):
        held = [] if term is None else [_holders(side, term)[0] for side in sides]
        weight = scoring.overlap_idf(counted, sum(map(len, held)))
        total += weight
        for side, rows in zip(sides, held, strict=False):
            side.matched[rows] += weight
    for side, mask in zip(sides, embedded, strict=True):
        if total > 0:
            side.matched /= total
        side.found |= mask.mask | (side.matched > 0)
        cosine = side.cosine if side.cosine is not None else side.dense
        side.parts |= {"cosine": policy.cosine_weight * cosine, "tokens": policy.token_weight * side.matched}
    return notes + _within_topics(index, sides, query, policy)


def _within_topics(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    memories = sides[1]
    if query.vector is None or not index.topic_vectors:
        return ()
    row, scale = scoring.quantise(query.vector[None, :])
    similarities = {
        topic: float(scoring.cosines(label[None, :], np.array([size], np.float32), row[0], float(scale[0]))[0])
        for topic, (label, size) in index.topic_vectors.items()
    }
    topics = memories.table["topic"]
    counts = {topic: int(((topics == topic) & memories.wanted).sum()) for topic in similarities}
    chosen = scoring.topic_filter(
        similarities, counts, threshold=policy.topic_threshold, min_size=policy.min_topic_filter_size
    )
    if chosen is None:
        return ("no topic matches enough: all searched",)
    for side in sides:  # an event has no topic
        side.found &= np.isin(topics, sorted(chosen)) if side is memories else np.False_
    return ("within topics: " + ", ".join(sorted(index.topics.strings[topic] for topic in chosen)),)


def _promote(sides: list[_Side], query: Query, policy: RecallPolicy) -> None:
    """Add the parts that do not come from likeness: dates that the query speaks of, and memories called by name."""
    events, memories = sides
    if query.dates:
        in_event, in_memory = np.zeros(len(events.table), np.bool_), np.zeros(len(memories.table), np.bool_)
        for start, end in query.dates:
            in_event |= (events.table["ts"] >= start) & (events.table["ts"] < end)
            in_memory |= _held(memories.table, start, end)
        for side, dated in ((events, in_event), (memories, in_memory)):
            side.parts["date"] = np.where(dated, np.float32(policy.date), np.float32(0))
            side.found |= dated & side.visible
    named = _rows(memories, query.named)
    if len(named):
        memories.found[named] = True
        totals = [side.total()[side.found & side.wanted] for side in sides]
        top = max(float(total.max()) for total in totals if len(total))
        gap = top - float(memories.total()[named].min())
        memories.parts["name"] = np.zeros(len(memories.table), np.float32)
        memories.parts["name"][named] = gap + policy.named


def _rows(memories: _Side, ids: Sequence[str]) -> npt.NDArray[np.intp]:
    rows = [row for id_ in ids if (row := memories.table.rows.get(id_)) is not None and memories.wanted[row]]
    return np.array(rows, np.intp)


def _demote(sides: list[_Side], query: Query) -> None:
    """Put superseded memories after every current one, unless asked for by name; their own order stays."""
    memories = sides[1]
    shown = memories.found & memories.wanted
    old = shown & memories.table["superseded"]
    current = shown & ~old
    old[_rows(memories, query.named)] = False
    if old.any() and current.any():
        total = memories.total()
        gap = float(total[old].max() - total[current].min())
        memories.parts["superseded"] = np.where(old, np.float32(-max(gap, 0.0) - 1), np.float32(0))


def _best(
    values: npt.NDArray[Any], ts: npt.NDArray[np.int64], ids: Sequence[str], rows: npt.NDArray[np.intp], count: int
) -> list[int]:
    """Return the `count` rows of the highest values; among equals the newest, then the first ids. In no order."""
    chosen: list[int] = []
    for keys in (values, ts):
        if count >= len(rows):
            return [*chosen, *rows.tolist()]
        key = keys[rows]
        last = np.partition(key, len(key) - count)[len(key) - count] if count else np.inf
        above = rows[key > last]
        chosen += above.tolist()
        count -= len(above)
        rows = rows[key == last]
    return [*chosen, *sorted(rows.tolist(), key=lambda row: ids[row])[:count]]


_Candidate = tuple[float, int, str, _Side, int, dict[str, float]]  # (-score, -ts, id) to sort by, then what it is


def _hits(index: Index, sides: list[_Side], limit: int, neighbours: int, policy: RecallPolicy) -> tuple[Hit, ...]:
    memory, event = index.links()
    sources = np.bincount(memory, minlength=len(index.memories))
    joined = (sources[memory] <= policy.merged_sources) & ~index.memories["superseded"][memory]
    memory, event = memory[joined], event[joined]
    shown = [np.flatnonzero(side.found & side.wanted) for side in sides]
    totals = [side.total() for side in sides]
    count = 3 * limit + 16  # merging takes some away; if it takes too many, look again further down
    while True:
        candidates: list[_Candidate] = []
        for side, rows, total in zip(sides, shown, totals, strict=True):
            best = _best(total, side.table["ts"], side.table.ids, rows, count)
            columns = {name: part[best].astype(np.float64).round(6).tolist() for name, part in side.parts.items()}
            for at, row in enumerate(best):
                parts = {name: column[at] for name, column in columns.items() if column[at]}
                id_ = side.table.ids[row]
                candidates.append((-sum(parts.values()), -int(side.table["ts"][row]), id_, side, row, parts))
        candidates.sort(key=lambda candidate: candidate[:3])
        hits = _merged(sides, candidates, memory, event, limit)
        if len(hits) >= limit or all(count >= len(rows) for rows in shown):
            break
        count *= 4
    return tuple(_hit(index, sides[0], candidate, also, neighbours) for candidate, also in hits)


def _merged(
    sides: list[_Side],
    candidates: Sequence[_Candidate],
    memory: npt.NDArray[np.int32],
    event: npt.NDArray[np.int32],
    limit: int,
) -> list[tuple[_Candidate, tuple[str, ...]]]:
    """Join a memory and the events it was read from: the better one is the hit, the other ones go along."""
    events, memories = sides
    gone: set[str] = set()
    hits: list[tuple[_Candidate, tuple[str, ...]]] = []
    for candidate in candidates:
        if len(hits) == limit:
            break
        _, _, id_, side, row, _ = candidate
        if id_ in gone:
            continue
        other, partners = (memories, memory[event == row]) if side is events else (events, event[memory == row])
        also = tuple(
            sorted(
                other.table.ids[partner]
                for partner in partners.tolist()
                if other.wanted[partner] and other.found[partner] and other.table.ids[partner] not in gone
            )
        )
        gone.update((id_, *also))
        hits.append((candidate, also))
    return hits


def _hit(
    index: Index,
    events: _Side,
    candidate: _Candidate,
    also: tuple[str, ...],
    neighbours: int,
) -> Hit:
    score, ts, id_, side, row, parts = candidate
    return Hit(
        id=id_,
        kind=side.kind,
        score=0.0 - score,  # not -score, which makes -0.0 of an empty sum
        parts=parts,
        ts=-ts,
        also=also,
        neighbours=_around(index, events, id_, neighbours),
        superseded=side.kind == MEMORY and bool(side.table["superseded"][row]),
        cosine=None if side.cosine is None or not side.table["embedded"][row] else float(side.cosine[row]),
        matched=min(float(side.matched[row]), 1.0),
    )


CUT = " […]"
"""What stands at the end of a text that was cut."""


def pack(texts: Sequence[str], *, max_tokens: int) -> Packed:
    """Return as many texts, in order, as joined by line breaks cost at most `max_tokens` (`text.estimate_tokens`).

    The first that does not fit is cut at a word and marked with `CUT`, or left out where not even a few words of it
    fit; nothing after it is taken, so that the best stay first.
    """
    packed: list[str] = []
    spent = 0
    for whole in texts:
        room = max_tokens - spent - (1 if packed else 0)
        cost = text.estimate_tokens(whole)
        if cost > room:
            start = _cut(whole, room - text.estimate_tokens(CUT))
            if start:
                packed.append(start + CUT)
            return Packed(
                texts=tuple(packed),
                tokens=text.estimate_tokens("\n".join(packed)),
                left_out=len(texts) - len(packed),
                truncated=bool(start),
            )
        packed.append(whole)
        spent = max_tokens - room + cost
    return Packed(texts=tuple(packed), tokens=spent, left_out=0, truncated=False)


_MIN_CUT = 5  # estimated tokens: fewer words say nothing


def _cut(whole: str, room: int) -> str:
    """Return the longest beginning that ends with a word and costs at most `room`; nothing if it would say nothing."""
    if room < _MIN_CUT:
        return ""
    low, high = 0, len(whole)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text.estimate_tokens(whole[:middle]) <= room else (low, middle - 1)
    beginning = whole[:low]
    ended = beginning[-1:].isspace() or whole[low : low + 1].isspace()
    return (beginning if ended or " " not in beginning else beginning.rsplit(None, 1)[0]).rstrip()
