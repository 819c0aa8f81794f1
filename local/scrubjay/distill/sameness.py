"""When two memories say the same: equal text, or nearly equal words with equal specifics. Decides; merges nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

from scrubjay.dates import COUNT_OF, MONTH_OF, WEEKDAYS
from scrubjay.distill.lexicon import words
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import Scope, content_hash
from scrubjay_shared.text import analyse

WORDS = re.compile(r"[^\W_]+(?:['.:/-][^\W_]+)*")
MARKED = re.compile(r"[^\W_]+[+#]+|\?$")
"""What is another word by a mark behind it (C++, C#), and the end of a question."""
CALENDAR = frozenset((*MONTH_OF, *WEEKDAYS)) - {"mar", "sun", "sat", "jan"}
COUNTED = frozenset(COUNT_OF) - {"a", "an", "one"}
CONTRASTS = words(
    """
    no not never none nobody nothing neither nor without cannot no-one anymore longer stop stopped quit before
    after until off up down out more less most least first last all any only always sometimes better worse best
    worst instead old new may might must should could would will his her hers mine yours yesterday today
    tomorrow left right over under
    """
)
"""Words of which one changes the meaning while the rest stays: two memories that differ in these are two."""

EDGES = ".,;:!\"'()“”‘’"
"""What stands at the edge of a word and is no part of it. A question mark is: it makes another sentence."""
DEFINITE = frozenset({"the", "our", "my", "your"})
_OF_THE_PERSON = re.compile(r"(?i)^the user\b(?!')")
"""How others tell what a person tells with "I"."""
MAX_SAME_CHARS = 1_000
"""Longer texts are the same only word by word: turning one around tries each of its places."""


class Statement(Protocol):
    """What is compared: a stored memory or an observation not stored yet."""

    @property
    def content(self) -> str:
        """The words."""

    @property
    def scope(self) -> Scope:
        """Who it is for."""

    @property
    def resource_id(self) -> str | None:
        """Which project, person or session."""


StatementT = TypeVar("StatementT", bound=Statement)


def same_memory(candidate: Statement, existing: Sequence[StatementT], policy: DistillPolicy) -> StatementT | None:
    """Return the one of `existing` that already says what `candidate` says, or None: then it is new.

    Only memories of the same scope and resource are compared, exact equals first, then near equals in order. A near
    equal holds every word of the candidate that carries detail, in the same order, with the same numbers, dates, names
    and contrasts, and little more: merging into it loses nothing. Order does not count for dates ("on 7 May" may lead).
    """
    near = [e for e in existing if e.scope is candidate.scope and e.resource_id == candidate.resource_id]
    hash_ = content_hash(candidate.content)
    for said in near:
        if content_hash(said.content) == hash_ or same_words(candidate.content, said.content):
            return said
    essence = _essence(candidate.content)
    if not essence.detail:
        return None
    return next((said for said in near if _covers(_essence(said.content), essence, policy.near_overlap)), None)


def same_words(one: str, other: str) -> bool:
    """Say whether two texts are the same words but for case, punctuation and which part of the sentence leads.

    >>> same_words("We ship on 7 May.", "on 7 May we ship")
    True
    >>> same_words("Petra is the reviewer.", "The reviewer is Petra")
    True
    >>> same_words("Ann told Ben.", "Ben told Ann.")
    False
    """
    if max(len(one), len(other)) > MAX_SAME_CHARS:
        return False
    ours, theirs = _bare(one), _bare(other)
    if ours == theirs:
        return bool(ours)
    if sorted(ours) != sorted(theirs):
        return False
    turned = any(ours[at:] + ours[:at] == theirs for at in range(1, len(ours)))
    return turned or any(
        (*ours[at + 1 :], word, *ours[:at]) == theirs and DEFINITE & {*ours[:1], *ours[at + 1 : at + 2]}
        for at, word in enumerate(ours)
        if word in {"is", "are"}
    )


@lru_cache(maxsize=256)
def _bare(text: str) -> tuple[str, ...]:
    return tuple([bare for word in text.casefold().split() if (bare := word.strip(EDGES))])


@dataclass(frozen=True, slots=True)
class _Essence:
    """What may not differ between two memories that say the same: detail in order, names, and what is `fixed`."""

    detail: tuple[str, ...]
    words: frozenset[str]
    names: frozenset[str]
    fixed: tuple[str, ...]


def _essence(content: str) -> _Essence:
    said = WORDS.findall(_OF_THE_PERSON.sub("I", content.replace("\u2019", "'").replace("'ll ", " will ")))
    low = [word.lower() for word in said]
    fixed = (w for w in low if w in CALENDAR | COUNTED | CONTRASTS or w.endswith("n't") or any(c.isdigit() for c in w))
    return _Essence(
        detail=tuple(stem for w in low if w not in CALENDAR and not w.isdigit() for stem in analyse(w)),
        words=frozenset(low),
        names=frozenset(w.lower() for n, w in enumerate(said) if n and w[0].isupper()) - CALENDAR,
        fixed=tuple(sorted([*fixed, *MARKED.findall(content.lower())])),
    )


def _covers(fuller: _Essence, essence: _Essence, overlap: float) -> bool:
    if fuller.fixed != essence.fixed or not (fuller.names <= essence.words and essence.names <= fuller.words):
        return False
    ours, theirs = set(essence.detail), set(fuller.detail)
    if len(ours & theirs) < overlap * len(ours | theirs):
        return False
    rest = iter(fuller.detail)
    return all(stem in rest for stem in essence.detail)
