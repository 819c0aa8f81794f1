"""A query over the index becomes one ranked list of events and memories, every score with its parts.

Theory of operation. The filter comes first: what the caller may not see takes no part in any statistic below. A score
is a plain sum. Meaning counts in standard deviations by which a cosine exceeds that of unrelated texts, a constant of
the embedding model; words count by BM25, divided by what the rarest word could weigh in a store of this size. So a
document's score hardly depends on what else is in the store: adding an unrelated one moves the rarity of the words by
a hair and nothing more. What stands around an event adds to it: the words said just before, the turns beside it, the
best of its session. Grips carry score both ways, and a memory and the event it was read from become one hit.

Of a small store every row is scored. Of a large one the nearest rows, those with the rarest words, and those of a date
that the question names are proposed; the best of them by their own score, with their surroundings, get the whole sum.

A score is the sum of its parts, and comparable only within one ranking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index.index import FOREVER, Index, Mask, Table
from scrubjay.policy import RecallPolicy
from scrubjay_shared import scoring, text
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Role, Scope

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
EVENT, MEMORY = "event", "memory"
HYBRID, KEYWORD, WEIGHTED = "hybrid", "keyword", "weighted"
MODES = (HYBRID, KEYWORD, WEIGHTED)

_ASKS_WHEN = re.compile(
    r"\b(?:when|how long|how recently|(?:what|which) (?:date|day|week|month|year|season|time))\b", re.IGNORECASE
)
_ASKS_HOW_MANY = re.compile(r"\bhow (?:many|much|often|old|long|far|big|tall|high)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. `tokens` are `text.query_tokens(text)`; `vector` is float32 [d], unit, None without a model.

    `named` are the ids of memories whose name or alias the text is. `dates` are ranges [start, end) in UTC
    milliseconds that the text speaks of. `spread` is the mean and the standard deviation of the cosine of unrelated
    texts in the space of `vector`, which the embedding model knows.
    """

    text: str
    tokens: tuple[str, ...]
    vector: Floats | None = None
    named: tuple[str, ...] = ()
    dates: tuple[tuple[int, int], ...] = ()
    spread: tuple[float, float] = (0.0, 1.0)


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
    the ids around the event in its session, `before` those before it. `cosine` (None without vectors) and `matched`,
    the share 0 to 1 of the query's token weight found in it, are absolute, for a caller who wants a floor.
    """

    id: str
    kind: str
    score: float
    parts: dict[str, float]
    ts: int
    also: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
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
_MARK_ASKS, _MARK_TIMED, _MARK_COUNTED = (1 << bit for bit in range(3))


@dataclass(slots=True)
class _Side:
    """One table during one query: who may be seen, who is wanted, and the rows considered with what each has earned.

    `seen` and `pool` are masks over the table, None for every living row; the pool is those of the seen that may be
    proposed. `rows` ascend; all arrays beside them are parallel to them.
    """

    kind: str
    table: Table
    seen: Mask | None
    wanted: Mask | None
    count: int  # how many rows are seen
    pool: Mask | None = None
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    found: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # rows with any reason to be a hit
    matched: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    cosine: Floats | None = None
    parts: dict[str, Floats] = field(default_factory=dict)

    @property
    def shown(self) -> Mask:
        """Which of the rows considered become hits."""
        return self.found if self.wanted is None else self.found & self.wanted[self.rows]

    def visible(self, rows: npt.NDArray[Any]) -> Mask:
        """Return which rows are seen; -1 is no row."""
        return (rows >= 0) if self.seen is None else (rows >= 0) & self.seen[rows]

    def total(self) -> Floats:
        total = np.zeros(len(self.rows), np.float32)
        for part in self.parts.values():
            total += part
        return total


def rank(
    index: Index,
    query: Query,
    filters: Filters,
    policy: RecallPolicy,
    *,
    limit: int,
    mode: str = HYBRID,
    neighbours: int = 0,
    before: int = 0,
) -> Ranking:
    """Return the best `limit` hits for a query among what the filters let through, each with its parts.

    Modes: `hybrid`, the recipe; `keyword`, plain BM25 of the tokens; `weighted`, 0.8 cosine and 0.2 weighted token
    overlap within matching topics. An empty query gives the newest first. A query that matches nothing lexically, with
    no vectors to go by, gives no hits. `neighbours` asks for so many ids to each side of an event hit, `before` for so
    many before it.

    Raises InvalidError for an unknown mode, a negative limit, or a vector of another width than the index's.
    """
    if mode not in MODES:
        raise InvalidError(f"{mode!r} is not a mode of recall", hint=f"allowed: {', '.join(MODES)}")
    if limit < 0 or neighbours < 0:
        raise InvalidError(
            f"limit and neighbours must be 0 or more, got {limit} and {neighbours}", hint="ask for 1 hit or more"
        )
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
                    side.seen, side.count = np.zeros(len(side.table), np.bool_), 0
                side.pool = side.seen
            notes = (_keyword if mode == KEYWORD else _weighted)(index, sides, query, policy)
        if mode != KEYWORD:
            _promote(sides, query, policy)
        _demote(sides, query)
        return Ranking(hits=_hits(index, sides, limit, (neighbours, before), policy), mode=mode, notes=notes)


def reranked(ranking: Ranking, logits: Floats, policy: RecallPolicy, *, limit: int) -> Ranking:
    """Return the best `limit` hits after the first `len(logits)` were reordered by what a reranking model says of each.

    Its part is `rerank` times how far a logit is above the least of them, so no hit falls below those it did not read.
    """
    read, rest = ranking.hits[: len(logits)], ranking.hits[len(logits) :]
    gained = policy.rerank * (np.asarray(logits, np.float64) - min(map(float, logits), default=0.0))
    hits = [
        replace(hit, score=sum(parts.values()), parts=parts)
        for hit, gain in zip(read, gained.round(6).tolist(), strict=True)
        for parts in [hit.parts | ({"rerank": gain} if gain else {})]
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.ts, hit.id))
    return replace(ranking, hits=(*hits, *rest)[:limit])


def _sides(index: Index, filters: Filters) -> list[_Side]:
    sides = []
    for kind, table, seen, wanted in (
        (EVENT, index.events, _visible_events(index, filters), _wanted_events(index, filters)),
        (MEMORY, index.memories, _visible_memories(index, filters), _wanted_memories(index, filters)),
    ):
        count = len(table.rows) if seen is None else int(np.count_nonzero(seen))
        both = seen if wanted is None else wanted if seen is None else wanted & seen
        # What is not asked for at all still lends its score to what is.
        pool = both if kind in filters.kinds else seen
        sides.append(_Side(kind=kind, table=table, seen=seen, wanted=both, count=count, pool=pool))
    return sides


def _visible_events(index: Index, filters: Filters) -> Mask | None:
    if filters.caller_project is None and filters.caller_session is None:
        return None
    events = index.events
    project = events["project"]
    own = (project == index.projects.find(filters.caller_project)) | (project == -1)
    if filters.caller_session is not None:
        own |= events["session"] == index.sessions.find(filters.caller_session)
    return np.asarray(own & events["alive"], np.bool_)


def _visible_memories(index: Index, filters: Filters) -> Mask | None:
    if filters.caller_project is None and filters.caller_session is None:
        return None
    memories = index.memories
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
    return np.asarray(own & memories["alive"], np.bool_)


def _wanted_events(index: Index, filters: Filters) -> Mask | None:
    events = index.events
    if EVENT not in filters.kinds or filters.min_salience > 0 or filters.scope is not None:
        return np.zeros(len(events), np.bool_)
    masks = _wanted(index, events, filters)
    if filters.since is not None:
        masks.append(events["ts"] >= filters.since)
    if filters.until is not None:
        masks.append(events["ts"] < filters.until)
    return _all(events, masks)


def _wanted_memories(index: Index, filters: Filters) -> Mask | None:
    memories = index.memories
    if MEMORY not in filters.kinds:
        return np.zeros(len(memories), np.bool_)
    masks = _wanted(index, memories, filters)
    if filters.scope is not None:
        masks.append(memories["scope"] == index.scopes.find(filters.scope))
    if filters.resource_id is not None:
        masks.append(memories["resource"] == index.resources.find(filters.resource_id))
    if filters.min_salience > 0:
        masks.append(memories["salience"] >= np.float32(filters.min_salience))
    if not filters.superseded:
        masks.append(~memories["superseded"])
    if filters.since is not None or filters.until is not None:
        since = -FOREVER if filters.since is None else filters.since
        masks.append(_held(memories, None, since, FOREVER if filters.until is None else filters.until))
    return _all(memories, masks)


def _all(table: Table, masks: Sequence[Mask]) -> Mask | None:
    return np.logical_and.reduce([table["alive"], *masks]) if masks else None


def _wanted(index: Index, table: Table, filters: Filters) -> list[Mask]:
    masks: list[Mask] = []
    if filters.types is not None:
        masks.append(np.isin(table["type"], [index.types.find(type_) for type_ in sorted(filters.types)]))
    for column, name, names in (
        ("agent", filters.agent, index.agents),
        ("session", filters.session_id, index.sessions),
        ("project", filters.project, index.projects),
    ):
        if name is not None:
            masks.append(table[column] == names.find(name))
    return masks


def _held(memories: Table, rows: Rows | None, start: int, end: int) -> Mask:
    """Return which memories held at some time in [start, end), by their validity if a bound is known, else creation."""
    columns = (memories[name] for name in ("valid_from", "valid_to", "created"))
    first, last, created = columns if rows is None else (column[rows] for column in columns)
    bounded = (first != -FOREVER) | (last != FOREVER)
    overlapping = (first < end) & (last >= start)
    return np.asarray(np.where(bounded, overlapping, (created >= start) & (created < end)), np.bool_)


def _pool_rows(side: _Side, mask: Mask | None) -> Rows:
    return np.flatnonzero(side.table["alive"] if mask is None else mask)


def _newest(index: Index, sides: list[_Side], limit: int, neighbours: int) -> tuple[Hit, ...]:
    newest: list[tuple[int, str, _Side, int]] = []
    for side in sides:
        ts = side.table["ts"]
        rows = _pool_rows(side, side.wanted)
        best = rows[_best(ts[rows], ts[rows], side.table.ids, rows, limit)]
        newest += [(-int(ts[row]), side.table.ids[row], side, row) for row in best.tolist()]
    newest.sort(key=lambda entry: entry[:2])
    return tuple(
        Hit(
            id=id_,
            kind=side.kind,
            score=1 / (1 + place),
            parts={"recency": 1 / (1 + place)},
            ts=-before,
            neighbours=_around(index, sides[0], id_, neighbours, neighbours),
            superseded=side.kind == MEMORY and bool(side.table["superseded"][row]),
        )
        for place, (before, id_, side, row) in enumerate(newest[:limit])
    )


def _around(index: Index, events: _Side, id_: str, before: int, after: int) -> tuple[str, ...]:
    beside = index.neighbours(id_, before=before, after=after) if before or after else ()
    return tuple(other for other in beside if events.seen is None or events.seen[events.table.rows[other]])


# --- words ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """A token of the query: its weight, and who of the seen holds it how often, side by side."""

    idf: float
    held: tuple[tuple[Rows, Floats], tuple[Rows, Floats]]


def _words(index: Index, sides: list[_Side], query: Query) -> list[_Word]:
    """Return what the query's tokens weigh among all that is seen, memories and events together."""
    counted = sum(side.count for side in sides)
    words = []
    for token in dict.fromkeys(query.tokens):
        term = index.vocabulary.get(token)
        held = tuple(_holders(side, term) for side in sides)
        df = sum(len(rows) for rows, _ in held)
        words.append(_Word(scoring.bm25_idf(counted, df), (held[0], held[1])))
    return words


def _holders(side: _Side, term: int | None) -> tuple[Rows, Floats]:
    if term is None:
        return np.zeros(0, np.intp), np.zeros(0, np.float32)
    rows, tf = side.table.postings(term)
    if side.seen is not None:
        seen = side.seen[rows]
        rows, tf = rows[seen], tf[seen]
    return rows.astype(np.intp, copy=False), tf.astype(np.float32)


def _lexical(side: _Side, at: int, words: Sequence[_Word], *, k1: float, b: float, mean: float, long: float) -> Floats:
    """Return BM25 of every row of the table, with one 0 more at the end: the score of the row -1, which is none."""
    scores = np.zeros(len(side.table) + 1, np.float32)
    for word in words:
        rows, tf = word.held[at]
        scores[rows] += scoring.bm25_part(tf, side.table["length"][rows], mean, idf=word.idf, k1=k1, b=b, long=long)
    return scores


def _matched(side: _Side, at: int, words: Sequence[_Word], weight: Callable[[_Word], float]) -> Floats:
    """Return of each row considered which share of the query's weight it holds."""
    found, total = np.zeros(len(side.table), np.float32), sum(map(weight, words))
    for word in words:
        found[word.held[at][0]] += weight(word)
    return found[side.rows] / np.float32(total or 1)


# --- the recipe -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Signals:
    """What the hybrid mode knows of one side: lexical scores of every row, and how to compare any row by meaning."""

    side: _Side
    lexical: Floats  # [n + 1]
    vector: tuple[scoring.Rows, float] | None
    spread: tuple[float, float]
    weights: tuple[float, float]  # of meaning and words in a document's own score
    scale: np.float32  # on BM25

    def cosine(self, rows: Rows) -> Floats:
        """Return the cosine of rows, 0 where there is none."""
        return (
            np.zeros(len(rows), np.float32) if self.vector is None else self.side.table.cosines_of(rows, *self.vector)
        )

    def dense(self, rows: Rows, cosine: Floats) -> Floats:
        """Return the cosine in standard deviations of unrelated texts; 0, as an unrelated text has, for none."""
        if self.vector is None:
            return cosine
        mean, deviation = self.spread
        embedded = self.side.table["embedded"][rows]
        return np.where(embedded, (cosine - np.float32(mean)) * np.float32(1 / deviation), np.float32(0))

    def own(self, rows: Rows, dense: Floats) -> Floats:
        """Return what documents are worth by themselves."""
        meaning, words = self.weights
        return np.float32(meaning) * dense + np.float32(words) * self.lexical[rows]


def _hybrid(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    vector, notes = _vector(index, sides, query)
    words = _words(index, sides, query)
    # The rarest token weighs ln(1 + 2N) in a store of N documents: dividing by it keeps the balance with meaning.
    scale = np.float32(policy.lexical / math.log1p(2 * max(sum(side.count for side in sides), 1)))
    signals = []
    for at, (side, weights) in enumerate(
        zip(sides, ((policy.own_dense, policy.own_bm25), (policy.memory_dense, policy.memory_bm25)), strict=True)
    ):
        lexical = _lexical(side, at, words, k1=policy.k1, b=0.0, mean=1.0, long=policy.long_tokens)
        lexical *= scale
        signals.append(_Signals(side, lexical, vector, query.spread, weights, scale))
    events, memories = signals
    chosen = [_seeds(each, query, policy) for each in signals]
    _link(index, sides, chosen)
    for side, rows in zip(sides, chosen, strict=True):
        side.rows = rows
    _event_parts(index, events, words, query, policy)
    _memory_parts(index, events, memories, policy)
    for at, side in enumerate(sides):
        side.matched = _matched(side, at, words, lambda word: word.idf)
    if asks_when(query.text):
        dated = memories.side.table["valid_from"][memories.side.rows] > -FOREVER
        memories.side.parts["when"] = np.where(dated, np.float32(policy.memory_when), np.float32(0))
    return notes


def _vector(
    index: Index, sides: list[_Side], query: Query
) -> tuple[tuple[scoring.Rows, float] | None, tuple[str, ...]]:
    """Return the query's quantised vector if anything can be compared with it, and what to say about what cannot."""
    have, seen = 0, 0
    # Tool output never gets a vector, so it is not what is missing.
    bare = index.types.find(EventType.TOOL_RESULT.value)
    for side in sides:
        table = side.table
        if side.seen is None:
            have += table.embedded
            seen += side.count - (table.count_of("type", bare) if side.kind == EVENT else 0)
        else:
            have += int(np.count_nonzero(side.seen & table["embedded"]))
            seen += int(np.count_nonzero(side.seen & (table["type"] != bare)))
    if query.vector is None:  # whoever asks knows why, and says so
        return None, ()
    if not have:
        return None, ("nothing embedded yet: lexical only",)
    index.check_width(len(query.vector))
    row, scale = scoring.quantise(query.vector[None, :])
    part = f"partly embedded: {100 * have // max(seen, 1)}% of {seen} documents have a vector"
    return (row[0], float(scale[0])), () if have >= seen else (part,)


def _seeds(signals: _Signals, query: Query, policy: RecallPolicy) -> Rows:
    """Return the rows worth looking at: all of a small pool, of a large one the best of each signal by their own score.

    Two documents that score alike are told apart by time and id, so it does not matter in which order they came.
    """
    side = signals.side
    pool = side.pool
    if (side.count if pool is None else int(np.count_nonzero(pool))) <= policy.exhaustive:
        return _pool_rows(side, pool)
    best = _nearest_and_matching(signals, pool, policy.candidates)
    bonus: list[tuple[Mask, float]] = []
    for start, end in query.dates:
        dated = _within(side, None, start, end)
        bonus.append((dated, policy.date))
        best.append(
            np.concatenate(_nearest_and_matching(signals, dated if pool is None else dated & pool, policy.seeds))
        )
    rows = _distinct(best)
    own = signals.own(rows, signals.dense(rows, signals.cosine(rows)))
    for mask, worth in bonus:
        own += np.where(mask[rows], np.float32(worth), np.float32(0))
    table = side.table
    return np.sort(rows[_best(own, table["ts"][rows], table.ids, rows, policy.seeds)])


def _nearest_and_matching(signals: _Signals, pool: Mask | None, count: int) -> list[Rows]:
    table = signals.side.table
    matching = np.flatnonzero(signals.lexical[:-1])
    if pool is not None:
        matching = matching[pool[matching]]
    found = [matching[_best(signals.lexical[matching], table["ts"][matching], table.ids, matching, count)]]
    if signals.vector is not None:
        found.append(table.nearest(*signals.vector, pool, count)[0])
    return found


def _link(index: Index, sides: list[_Side], chosen: list[Rows]) -> None:
    """Add the events that chosen memories were read from, and the memories read from chosen events, if seen."""
    memory, event = index.links()
    if not len(memory):
        return
    events, memories = (_marked(side.table, rows) for side, rows in zip(sides, chosen, strict=True))
    from_memories = event[memories[memory]]
    from_events = memory[events[event]]
    for at, linked in ((0, from_memories), (1, from_events)):
        visible = linked[sides[at].visible(linked)]
        chosen[at] = _distinct([chosen[at], visible])


def _distinct(parts: Sequence[npt.NDArray[Any]]) -> Rows:
    """Return the rows of all parts, each once, ascending; -1 is none. Ten times as fast as numpy's own unique."""
    rows = np.sort(np.concatenate(parts))
    rows = rows[np.searchsorted(rows, 0) :]
    return np.asarray(rows[np.flatnonzero(np.diff(rows, prepend=-1))], np.intp)


def _marked(table: Table, rows: Rows) -> Mask:
    mask = np.zeros(len(table), np.bool_)
    mask[rows] = True
    return mask


def _steps(side: _Side, column: str, rows: Rows, count: int) -> Iterator[Rows]:
    """Yield the row before (or after) each row in its session, then the one before that; -1 once there is none seen."""
    links = side.table[column]
    for _ in range(count):
        rows = np.where(rows >= 0, links[rows], -1) if len(rows) else rows
        if side.seen is not None:
            rows = np.where(side.visible(rows), rows, -1)
        yield rows


def _window(side: _Side, column: str, rows: Rows, policy: RecallPolicy) -> Iterator[tuple[Rows, npt.NDArray[np.int64]]]:
    """Yield the rows before (or after) each row as far as a window reaches, step by step, and how long they are."""
    length = side.table["length"]
    room = np.full(len(rows), policy.window_tokens, np.int64)
    for step in _steps(side, column, rows, policy.window_turns):
        taken = np.where(room > 0, step, -1)
        if not (taken >= 0).any():
            return
        tokens = np.where(taken >= 0, length[taken], 0)
        yield taken, tokens
        room -= tokens


def _event_parts(index: Index, signals: _Signals, words: Sequence[_Word], query: Query, policy: RecallPolicy) -> None:
    side, table = signals.side, signals.side.table
    reach = len(policy.beside)
    if len(side.rows) < side.count:  # what stands around a seed may be the answer to it
        following = [rows for rows, _ in _window(side, "next", side.rows, policy)]
        side.rows = _distinct([side.rows, *_steps(side, "prev", side.rows, reach), *following])
    rows = side.rows
    before, after = (list(_steps(side, column, rows, reach)) for column in ("prev", "next"))
    needed = _distinct([rows, *before, *after])
    own = np.zeros(len(table) + 1, np.float32)  # by row; the last is row -1, which is none
    cosine = signals.cosine(needed)
    dense = signals.dense(needed, cosine)
    own[needed] = signals.own(needed, dense)
    at = np.searchsorted(needed, rows)
    cosine, dense, pairs = cosine[at], dense[at], _windowed(side, rows, words, policy) * signals.scale
    tokens = np.minimum(table["length"][rows], np.float32(policy.long_tokens))
    side.parts |= {
        "dense": np.float32(policy.event_dense) * dense,
        "bm25": np.float32(policy.event_bm25) * signals.lexical[rows],
        "bm25_before": np.float32(policy.event_bm25_before) * pairs,
        "before": np.float32(policy.event_before) * _mixed(own, before, policy.beside),
        "after": np.float32(policy.event_after) * _mixed(own, after, policy.beside),
        "session": np.float32(policy.event_session) * _best_of_session(own[rows], table["session"][rows]),
        "length": np.float32(policy.event_length) * np.log((1 + tokens) / np.float32(1 + policy.usual_tokens)),
    }
    if policy.event_answers and before:
        asked = (before[0] >= 0) & ((table["marks"][before[0]] & text.Mark.ASKS) > 0)
        side.parts["answers"] = np.float32(policy.event_answers) * np.where(asked, own[before[0]], np.float32(0))
    marks = table["marks"][rows]
    for name, mark, applies, weight in (
        ("asks", text.Mark.ASKS, True, -policy.event_asks),
        ("when", text.Mark.TIMED, asks_when(query.text), policy.event_when),
        ("count", text.Mark.COUNTED, asks_how_many(query.text), policy.event_count),
    ):
        if applies:
            side.parts[name] = np.where(marks & mark, np.float32(weight), np.float32(0))
    speaker = _named_speaker(index, side, query)
    if speaker is not None:
        worth = np.float32(policy.event_speaker)
        side.parts["speaker"] = np.where(table["speaker"][rows] == speaker, worth, -worth)
    side.cosine = None if signals.vector is None else cosine
    embedded = table["embedded"][rows] if signals.vector is not None else np.zeros(len(rows), np.bool_)
    side.found = embedded | (signals.lexical[rows] > 0) | (pairs > 0)


def _mixed(own: Floats, steps: Sequence[Rows], weights: Sequence[float]) -> Floats:
    """Return the weighted sum of the scores of the rows at each step."""
    mixed = np.zeros(len(steps[0]) if steps else 0, np.float32)
    for rows, weight in zip(steps, weights, strict=True):
        mixed += np.float32(weight) * own[rows]
    return mixed


def _windowed(side: _Side, rows: Rows, words: Sequence[_Word], policy: RecallPolicy) -> Floats:
    """Return BM25 of events read together with what was said just before them: an answer seldom repeats the question.

    The window goes back until it holds `window_tokens`, so that it is two turns of a talk and six of a chat.
    """
    table = side.table
    windows, held = [rows], table["length"][rows].astype(np.float32)
    for taken, tokens in _window(side, "prev", rows, policy):
        windows.append(taken)
        held += tokens
    tfs = np.zeros(len(table) + 1, np.float32)
    found = np.zeros(len(rows), np.float32)
    for word in words:
        at, tf = word.held[0]
        tfs[at] = tf
        together = tfs[windows[0]]
        for window in windows[1:]:
            together += tfs[window]
        found += scoring.bm25_part(together, held, 1.0, idf=word.idf, k1=policy.k1, b=0.0, long=policy.long_tokens)
        tfs[at] = 0
    return found


def _best_of_session(own: Floats, session: npt.NDArray[np.int32]) -> Floats:
    """Return, for each row, the best score of its session; of a row without a session its own."""
    if not len(own):
        return own
    best = np.full(int(session.max()) + 2, -np.inf, np.float32)
    np.maximum.at(best, session, own)
    return np.where(session >= 0, best[session], own)


def asks_when(text_: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(text_) is not None


def asks_how_many(text_: str) -> bool:
    """Whether a question asks for a number."""
    return _ASKS_HOW_MANY.search(text_) is not None


def _named_speaker(index: Index, side: _Side, query: Query) -> int | None:
    """Return the one visible speaker whose name is in the query. Roles are not names; two named are no one's turn."""
    asked = frozenset(query.tokens)
    named = [
        code
        for code, tokens in enumerate(index.speaker_tokens)
        if tokens & asked and index.speakers.strings[code] not in _ROLES and _speaks(side, code)
    ]
    return named[0] if len(named) == 1 else None


def _speaks(side: _Side, code: int) -> bool:
    if side.seen is None:
        return side.table.count_of("speaker", code) > 0
    return bool(((side.table["speaker"] == code) & side.seen).any())


_ROLES = frozenset(role.value for role in Role)


def _memory_parts(index: Index, events: _Signals, memories: _Signals, policy: RecallPolicy) -> None:
    side, table = memories.side, memories.side.table
    rows = side.rows
    cosine = memories.cosine(rows)
    dense, lexical = memories.dense(rows, cosine), memories.lexical[rows]
    own = np.float32(policy.memory_dense) * dense + np.float32(policy.memory_bm25) * lexical
    side.parts |= {
        "dense": np.float32(policy.memory_dense) * dense,
        "bm25": np.float32(policy.memory_bm25) * lexical,
        "session": np.float32(policy.memory_session) * _best_of_session(own, table["session"][rows]),
    }
    side.cosine = None if memories.vector is None else cosine
    embedded = table["embedded"][rows] if memories.vector is not None else np.zeros(len(rows), np.bool_)
    side.found = embedded | (lexical > 0)
    memory, event = _pairs(index, events.side, side)
    if len(memory):
        source = events.side.total()
        given = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(given, memory, source[event])
        has = given > -np.inf
        side.parts["source"] = np.where(has, np.float32(policy.memory_source) * given, np.float32(0))
        share = np.where(has, np.float32(policy.memory_sourced), np.float32(1))
        side.parts = {name: part * share for name, part in side.parts.items()}
        credit = np.full(len(events.side.rows), -np.inf, np.float32)
        np.maximum.at(credit, event, own[memory])
        credit[credit < 0] = 0  # a memory that has nothing to say of the query is no reason against its source
        events.side.parts["memory"] = np.float32(policy.event_credit) * credit
        linked = side.found.copy()
        linked[memory[events.side.found[event]]] = True
        events.side.found[event[side.found[memory]]] = True
        side.found = linked


def _pairs(index: Index, events: _Side, memories: _Side) -> tuple[Rows, Rows]:
    """Return the links between rows considered, as places among them: of the memory and of the event."""
    memory, event = index.links()
    both = _marked(memories.table, memories.rows)[memory] & _marked(events.table, events.rows)[event]
    return np.searchsorted(memories.rows, memory[both]), np.searchsorted(events.rows, event[both])


# --- the plain modes --------------------------------------------------------------------------------------------------


def _keyword(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    words = _words(index, sides, query)
    counted = sum(side.count for side in sides)
    lengths = sum(
        side.table.tokens if side.seen is None else int(side.table["length"][side.seen].sum()) for side in sides
    )
    k1, b, mean = policy.keyword_k1, policy.keyword_b, lengths / max(counted, 1)
    for at, side in enumerate(sides):
        scores = _lexical(side, at, words, k1=k1, b=b, mean=mean, long=math.inf)
        side.rows = np.flatnonzero(scores[:-1])
        side.parts["bm25"] = scores[side.rows]
        side.found = np.ones(len(side.rows), np.bool_)
        side.matched = _matched(side, at, words, lambda word: word.idf)
    return (f"bm25 with k1 {k1:g} and b {b:g}",)


def _weighted(index: Index, sides: list[_Side], query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    vector, notes = _vector(index, sides, query)
    words = _words(index, sides, query)
    counted = sum(side.count for side in sides)

    def weight(word: _Word) -> float:
        return scoring.overlap_idf(counted, sum(len(rows) for rows, _ in word.held))

    for at, side in enumerate(sides):
        side.rows = _pool_rows(side, side.seen)
        embedded = np.zeros(len(side.rows), np.bool_)
        cosine = np.zeros(len(side.rows), np.float32)
        if vector is not None:
            embedded = side.table["embedded"][side.rows]
            side.cosine = cosine = side.table.cosines_of(side.rows, *vector)
        side.matched = _matched(side, at, words, weight)
        side.found = embedded | (side.matched > 0)
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
    topics = memories.table["topic"][memories.rows]
    wanted = memories.wanted[memories.rows] if memories.wanted is not None else np.True_
    counts = {topic: int(((topics == topic) & wanted).sum()) for topic in similarities}
    chosen = scoring.topic_filter(
        similarities, counts, threshold=policy.topic_threshold, min_size=policy.min_topic_filter_size
    )
    if chosen is None:
        return ("no topic matches enough: all searched",)
    for side in sides:  # an event has no topic
        side.found &= np.isin(topics, sorted(chosen)) if side is memories else np.False_
    return ("within topics: " + ", ".join(sorted(index.topics.strings[topic] for topic in chosen)),)


# --- what does not come from likeness ---------------------------------------------------------------------------------


def _within(side: _Side, rows: Rows | None, start: int, end: int) -> Mask:
    """Return which rows (of all the table without `rows`) are of a time: an event's own, a memory's validity."""
    if side.kind == MEMORY:
        return _held(side.table, rows, start, end)
    ts = side.table["ts"] if rows is None else side.table["ts"][rows]
    return np.asarray((ts >= start) & (ts < end), np.bool_)


def _promote(sides: list[_Side], query: Query, policy: RecallPolicy) -> None:
    """Add the parts that do not come from likeness: dates that the query speaks of, and memories called by name."""
    if query.dates:
        for side in sides:
            dated = np.zeros(len(side.rows), np.bool_)
            for start, end in query.dates:
                dated |= _within(side, side.rows, start, end)
            side.parts["date"] = np.where(dated, np.float32(policy.date), np.float32(0))
            side.found |= dated
    memories = sides[1]
    named = _named_rows(memories, query.named)
    if len(named):
        _consider(memories, named)
        places = np.searchsorted(memories.rows, named)
        memories.found[places] = True
        totals = [side.total()[side.shown] for side in sides]
        top = max(float(total.max()) for total in totals if len(total))
        gap = top - float(memories.total()[places].min())
        memories.parts["name"] = np.zeros(len(memories.rows), np.float32)
        memories.parts["name"][places] = gap + policy.named


def _consider(side: _Side, more: Rows) -> None:
    """Add rows that no signal proposed, with nothing earned."""
    rows = _distinct([side.rows, more])
    if len(rows) > len(side.rows):
        at = np.searchsorted(rows, side.rows)

        def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            wider = np.zeros(len(rows), values.dtype)
            wider[at] = values
            return wider

        side.found, side.matched = spread(side.found), spread(side.matched)
        side.cosine = None if side.cosine is None else spread(side.cosine)
        side.parts = {name: spread(part) for name, part in side.parts.items()}
        side.rows = rows


def _named_rows(memories: _Side, ids: Sequence[str]) -> Rows:
    rows = [memories.table.rows.get(id_) for id_ in ids]
    wanted = memories.wanted
    return np.array(sorted(row for row in rows if row is not None and (wanted is None or wanted[row])), np.intp)


def _demote(sides: list[_Side], query: Query) -> None:
    """Put superseded memories after every current one, unless asked for by name; their own order stays."""
    memories = sides[1]
    shown = memories.shown
    old = shown & memories.table["superseded"][memories.rows]
    current = shown & ~old
    old &= ~np.isin(memories.rows, _named_rows(memories, query.named))
    if old.any() and current.any():
        total = memories.total()
        gap = float(total[old].max() - total[current].min())
        memories.parts["superseded"] = np.where(old, np.float32(-max(gap, 0.0) - 1), np.float32(0))


def _best(
    values: npt.NDArray[Any], ts: npt.NDArray[np.int64], ids: Sequence[str], rows: Rows, count: int
) -> npt.NDArray[np.intp]:
    """Return the places of the `count` highest values; among equals the newest, then the first ids. In no order."""
    chosen: list[npt.NDArray[np.intp]] = []
    places = np.arange(len(rows))
    for keys in (values, ts):
        if count >= len(places):
            return np.concatenate([*chosen, places])
        key = keys[places]
        last = np.partition(key, len(key) - count)[len(key) - count] if count else np.inf
        chosen.append(places[key > last])
        count -= len(chosen[-1])
        places = places[key == last]
    if count:
        by_id = sorted(places.tolist(), key=lambda place: ids[int(rows[place])])
        chosen.append(np.array(by_id[:count], np.intp))
    return np.concatenate(chosen)


_Candidate = tuple[float, int, str, _Side, int, dict[str, float]]  # (-score, -ts, id) to sort by, then what it is


def _hits(
    index: Index, sides: list[_Side], limit: int, around: tuple[int, int], policy: RecallPolicy
) -> tuple[Hit, ...]:
    memory, event = _pairs(index, sides[0], sides[1])
    sources = np.bincount(memory, minlength=len(sides[1].rows))
    joined = (sources[memory] <= policy.merged_sources) & ~sides[1].table["superseded"][sides[1].rows[memory]]
    memory, event = memory[joined], event[joined]
    shown = [np.flatnonzero(side.shown) for side in sides]
    totals = [side.total() for side in sides]
    count = 3 * limit + 16  # merging takes some away; if it takes too many, look again further down
    while True:
        candidates: list[_Candidate] = []
        for side, places, total in zip(sides, shown, totals, strict=True):
            ts = side.table["ts"]
            best = places[_best(total[places], ts[side.rows[places]], side.table.ids, side.rows[places], count)]
            columns = {name: part[best].astype(np.float64).round(6).tolist() for name, part in side.parts.items()}
            for at, place in enumerate(best.tolist()):
                parts = {name: column[at] for name, column in columns.items() if column[at]}
                row = side.rows[place]
                candidates.append((-sum(parts.values()), -int(ts[row]), side.table.ids[row], side, place, parts))
        candidates.sort(key=lambda candidate: candidate[:3])
        hits = _merged(sides, candidates, memory, event, limit)
        if len(hits) >= limit or all(count >= len(places) for places in shown):
            break
        count *= 4
    return tuple(_hit(index, sides[0], candidate, also, around) for candidate, also in hits)


def _merged(
    sides: list[_Side], candidates: Sequence[_Candidate], memory: Rows, event: Rows, limit: int
) -> list[tuple[_Candidate, tuple[str, ...]]]:
    """Join a memory and the events it was read from: the better one is the hit, the other ones go along."""
    events, memories = sides
    shown = {side.kind: side.shown for side in sides}
    gone: set[str] = set()
    hits: list[tuple[_Candidate, tuple[str, ...]]] = []
    for candidate in candidates:
        if len(hits) == limit:
            break
        _, _, id_, side, place, _ = candidate
        if id_ in gone:
            continue
        other, partners = (memories, memory[event == place]) if side is events else (events, event[memory == place])
        beside = (other.table.ids[other.rows[at]] for at in partners.tolist() if shown[other.kind][at])
        also = tuple(sorted(partner for partner in beside if partner not in gone))
        gone.update((id_, *also))
        hits.append((candidate, also))
    return hits


def _hit(
    index: Index,
    events: _Side,
    candidate: _Candidate,
    also: tuple[str, ...],
    around: tuple[int, int],
) -> Hit:
    score, ts, id_, side, place, parts = candidate
    row = side.rows[place]
    return Hit(
        id=id_,
        kind=side.kind,
        score=0.0 - score,  # not -score, which makes -0.0 of an empty sum
        parts=parts,
        ts=-ts,
        also=also,
        neighbours=_around(index, events, id_, around[0], around[0]),
        before=_around(index, events, id_, around[1], 0),
        superseded=side.kind == MEMORY and bool(side.table["superseded"][row]),
        cosine=None if side.cosine is None or not side.table["embedded"][row] else float(side.cosine[place]),
        matched=min(float(side.matched[place]), 1.0),
    )


def passage(speaker: str, said: str, before: Sequence[tuple[str, str]], policy: RecallPolicy) -> str:
    """Return an event as a reranking model reads it: "speaker: text", after some words of what was said before it.

    `before` are the speakers and texts of the turns before it, in order. A reranker that sees an answer without its
    question takes it for small talk. Its time is linear in the words, so a long event has fewer before.
    """
    parts = [f"{speaker}: {said}"]
    room = min(policy.rerank_before, policy.rerank_words - len(said.split()))
    for who, what in reversed(before):
        last = what.split()[-room:] if room > 0 else []
        if last:
            parts.append(f"{who}: {' '.join(last)}")
            room -= len(last)
    return ", ".join(reversed(parts))


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
