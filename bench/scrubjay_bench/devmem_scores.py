"""The arithmetic of labelled sessions: which memory matches which label, and what share of anything is right.

Everything is a list of values by name, one value a memory, a label or a question. Projects are pooled by laying their
lists together; a row of the table is the means of the lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scrubjay_bench import measures
from scrubjay_bench.devmem import Label, Project, Question

MATCHES = 0.5  # overlap from which two texts say the same: read by eye, above it they do, below they mostly do not
RECALL_AT = (1, 3, 5, 10)
ASKED_FOR = 10
AMONG = 3
IMPORTANT = (2, 3)
LETTERS_A_TOKEN = 4  # of English, roughly: a share of two texts needs no better
SAME_TYPE = {("howto", "fact"), ("howto", "insight"), ("fact", "insight"), ("insight", "fact")}  # label, memory
DIGITS = measures.DIGITS
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at for and or is are was were be been it its this that with as by from not no do does has"
        " have had will would should can must may they their he his she her user person project use uses",
    )
)
_WORD = re.compile(r"[a-z0-9_./-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A memory that was learned: the turns under its grips, and the words of the grips."""

    id: str
    content: str
    type: str
    scope: str
    trust: str
    turns: frozenset[str]
    excerpt: str
    confidence: float = 1.0
    by_observer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question brought.

    `ids` are the hits' own, `turns` the turns that each of them is or was read from, `unbounded` the same with no
    budget of tokens; `confidence` orders answers by how sure they are.
    """

    question: Question
    ids: tuple[str, ...]
    turns: tuple[frozenset[str], ...]
    unbounded: tuple[frozenset[str], ...]
    tokens: int
    ms: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """`best` names each learned label's best memory, `all` every memory that matches it, by their places."""

    best: dict[str, int] = field(default_factory=dict)
    all: dict[str, frozenset[int]] = field(default_factory=dict)

    @property
    def memories(self) -> frozenset[int]:
        """The memories that match some label."""
        return frozenset(self.best.values()).union(*self.all.values())


@lru_cache(maxsize=65_536)
def words(said: str) -> frozenset[str]:
    """Return the words of a text that carry its content."""
    return frozenset(word for word in _WORD.findall(said.lower()) if word not in STOP_WORDS and len(word) > 1)


def overlap(one: str, other: str) -> float:
    """Return how much of the words of two texts they share (Dice), in [0, 1].

    >>> overlap("The project uses Postgres 16, with sqlite for tests", "postgres 16")
    0.6666666666666666
    """
    left, right = words(one), words(other)
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


def matched(learned: Sequence[Learned], labels: Iterable[Label]) -> Matches:
    """Return which memories match which labels: read from a turn of the label's evidence, and in similar words.

    A memory's text or excerpt may match the label's quote, or its text the label's text.
    """
    found = Matches()
    for label in labels:
        near = [(place, memory) for place, memory in enumerate(learned) if memory.turns & label.turns]
        scores = {place: close(memory, label) for place, memory in near}
        best = max(((score, place) for place, score in scores.items()), default=(0.0, -1))
        if best[0] >= MATCHES:
            found.best[label.id] = best[1]
            found.all[label.id] = frozenset(place for place, memory in near if _same(memory, label)) | {best[1]}
        else:
            found.all[label.id] = frozenset()
    return found


def _same(memory: Learned, label: Label) -> bool:
    """Whether a memory says what a label says, also where another memory says it better."""
    return max(overlap(memory.content, label.text), overlap(memory.excerpt, label.quote)) >= MATCHES


def close(memory: Learned, label: Label) -> float:
    """Return how near the words of a memory, or of its places, are to a label's, in [0, 1]."""
    return max(
        overlap(memory.content, label.text),
        overlap(memory.content, label.quote),
        overlap(memory.excerpt, label.quote),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One value a memory, label or question, by the name of what is measured; and what needs more than a mean."""

    shares: dict[str, list[float]] = field(default_factory=dict)
    by_category: dict[str, list[float]] = field(default_factory=dict)
    known: list[tuple[bool, float]] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    memory_tokens: int = 0
    turn_tokens: int = 0

    def add(self, name: str, value: float) -> None:
        """Note one value."""
        self.shares.setdefault(name, []).append(float(value))


def learning(project: Project, learned: Sequence[Learned], matches: Matches) -> Values:
    """Return the values of what was learned."""
    values = Values(
        memory_tokens=sum(len(memory.content) // LETTERS_A_TOKEN for memory in learned),
        turn_tokens=sum(len(turn.text) // LETTERS_A_TOKEN for turn in project.turns),
    )
    right = matches.memories
    for place in range(len(learned)):
        values.add("precision", place in right)
    for label in project.labels:
        is_learned = label.id in matches.best
        values.add(f"coverage.{label.importance}", is_learned)
        if label.importance in IMPORTANT:
            values.add("coverage.2-3", is_learned)
        if is_learned:
            memory = learned[matches.best[label.id]]
            values.add("type_right", memory.type == label.type or (label.type, memory.type) in SAME_TYPE)
            values.add("scope_right", memory.scope == label.scope)
    for words_ in project.tempting:
        kept = any(
            words_.turn in memory.turns and overlap(memory.excerpt, words_.quote) >= MATCHES for memory in learned
        )
        values.add("tempting_kept", kept)
    return values


def asking(asked: Iterable[Asked], known: Mapping[str, frozenset[str]]) -> Values:
    """Return the values of what was asked. `known` has the ids of the memories that say what a label says."""
    values = Values()
    for one in asked:
        evidence = frozenset(one.question.evidence)
        values.known.append((bool(evidence), one.confidence))
        if not evidence:
            continue
        values.ms.append(one.ms)
        recall = {k: recall_at(k, one.turns, evidence) for k in RECALL_AT}
        for k in RECALL_AT:
            values.add(f"recall.{k}", recall[k])
            values.add(f"recall_no_budget.{k}", recall_at(k, one.unbounded, evidence))
        values.by_category.setdefault(one.question.category, []).append(recall[5])
        first = _first(one.turns, evidence)
        values.add("first_right", first == 0)
        values.add("first_right_no_budget", _first(one.unbounded, evidence) == 0)
        values.add("among_three", first is not None and first < AMONG)
        values.add("mrr_10", 0.0 if first is None else 1 / (first + 1))
        if outdated := frozenset(one.question.stale) - evidence:
            old = _first(one.turns, outdated)
            values.add("current_first", first is not None and (old is None or first < old))
        if answers := frozenset[str]().union(*(known.get(label, ()) for label in one.question.memories)):
            values.add("memory_among_three", not answers.isdisjoint(one.ids[:AMONG]))
        values.add("tokens", one.tokens)
        values.add("hits", len(one.turns))
    return values


def recall_at(k: int, ranked: Sequence[frozenset[str]], relevant: frozenset[str]) -> float:
    """Return the share of the relevant turns that the first k hits are or were read from."""
    return len(relevant.intersection(frozenset().union(*ranked[:k]))) / len(relevant)


def _first(ranked: Sequence[frozenset[str]], wanted: frozenset[str]) -> int | None:
    return next((place for place, turns in enumerate(ranked[:ASKED_FOR]) if turns & wanted), None)


def auc(known: Iterable[tuple[bool, float]]) -> float | None:
    """Return how often an answerable question is surer of its answer than an unanswerable one; equal is a half."""
    pairs = list(known)
    yes, no = ([sure for is_known, sure in pairs if is_known is wanted] for wanted in (True, False))
    if not yes or not no:
        return None
    return sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / (len(yes) * len(no))


def pooled(of: Sequence[Values]) -> Values:
    """Return the values of several lists as those of one."""
    found = Values(
        known=[pair for one in of for pair in one.known],
        ms=[ms for one in of for ms in one.ms],
        memory_tokens=sum(one.memory_tokens for one in of),
        turn_tokens=sum(one.turn_tokens for one in of),
    )
    for one in of:
        for name, values in one.shares.items():
            found.shares.setdefault(name, []).extend(values)
        for name, values in one.by_category.items():
            found.by_category.setdefault(name, []).extend(values)
    return found


def row(values: Values) -> dict[str, Any]:
    """Return the means as they stand in JSON (docs/retrieval-format.md); null where there is nothing to count."""
    shares = values.shares
    unanswerable = sum(not is_known for is_known, _ in values.known)

    def mean(name: str) -> float | None:
        return _mean(shares.get(name, []))

    def means(prefix: str, of: Iterable[object]) -> dict[str, float | None]:
        return {str(one): mean(f"{prefix}.{one}") for one in of}

    return {
        "memories": len(shares.get("precision", [])),
        "precision": mean("precision"),
        "labels": {str(one): len(shares.get(f"coverage.{one}", [])) for one in (1, 2, 3)},
        "coverage": means("coverage", (1, 2, 3, "2-3")),
        "type_right": mean("type_right"),
        "scope_right": mean("scope_right"),
        "tempting": len(shares.get("tempting_kept", [])),
        "tempting_kept": mean("tempting_kept"),
        "token_share": round(values.memory_tokens / values.turn_tokens, DIGITS) if values.turn_tokens else None,
        "questions": len(values.ms),
        "recall": means("recall", RECALL_AT),
        "first_right": mean("first_right"),
        "recall_no_budget": means("recall_no_budget", RECALL_AT),
        "first_right_no_budget": mean("first_right_no_budget"),
        "among_three": mean("among_three"),
        "mrr_10": mean("mrr_10"),
        "updates": len(shares.get("current_first", [])),
        "current_first": mean("current_first"),
        "unanswerable": unanswerable,
        "known_auc": _rounded(auc(values.known)),
        "learned_questions": len(shares.get("memory_among_three", [])),
        "memory_among_three": mean("memory_among_three"),
        "hits": mean("hits"),
        "tokens": mean("tokens"),
        "latency_ms": measures.latency(values.ms) if values.ms else {"p50": None, "p95": None},
        "by_category": {
            name: {"questions": len(found), "recall": {"5": _mean(found)}}
            for name, found in sorted(values.by_category.items())
        },
    }


def averaged(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the unweighted mean over projects: counts are added, everything else averaged where it is not null."""
    return {
        name: _combined([one[name] for one in rows])
        for name in dict.fromkeys(key for one in rows for key in one)
        if name != "by_category"
    }


def _combined(values: Sequence[Any]) -> Any:
    there = [value for value in values if value is not None]
    if there and isinstance(there[0], dict):
        return {key: _combined([one.get(key) for one in there]) for key in there[0]}
    if there and all(isinstance(value, int) for value in there):
        return sum(there)
    return _mean(there)


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), DIGITS) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
