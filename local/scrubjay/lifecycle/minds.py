"""How likely a statement tells of a change of mind about an earlier one, in whatever words. Pure.

Theory of operation. A logistic model weighs ten plain measures of two statements: what share of each one's words the
other has, how alike they are word by word, whether they give different numbers, whether the later one names something,
says that something has ended, and tells of a change at all. How near they are in meaning, a cross-encoder's score and a
forest were tried beside it and gained next to nothing (docs/decisions.md).

The weights were fitted to `bench/minds`: pairs of statements of many trades and manners of speaking, written for this
project. `python -m scrubjay_bench.fit_minds` fits them again.

It ends nothing, and what it alone doubts is told on: the rules of `lifecycle.supersession` come first, and say more.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from scrubjay.intervals import TOLD
from scrubjay.lifecycle.readings import WORD, begun, ended, kind_of, read, telling
from scrubjay.lifecycle.supersession import Statement, Succession, Verdict, is_same_place
from scrubjay.policy import SupersessionPolicy
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.records import TRUST_ORDER

WEIGHTS = "minds.json"
SHA256 = "63440b23251dea0d6fd156be2835087f66ae8fea079d40e8324324238ea4aef2"

CHANGES = re.compile(
    r"\b(?:now|nowadays|currently|today|henceforth|these days|from (?:now|here|today|this|next|\w+day|the)|since|as of"
    r"|going forward|starting|at last|finally|no longer|(?:not? |any ?)more|any longer|stop\w*|drop\w*|kill\w*|dead"
    r"|gone|out|off|over|abandon\w*|scrap\w*|ditch\w*|retir\w*|remov\w*|forget|g[ia]ve\w* up|fell through|shut\w*|left"
    r"|quit\w*|discontinu\w*|cancel\w*|deprecat\w*|withdr\w+|delet\w*|mov\w+|switch\w*|swap\w*|migrat\w+|chang\w+"
    r"|replac\w+|rewr\w+|convert\w*|bump\w*|rais\w+|lower\w*|lift\w*|extend\w*|increas\w+|reduc\w+|decreas\w+|cut|went"
    r"|go(?:es)? (?:to|up|down|with|back)|t(?:ake|ook|aken|akes) over|hand\w* over|pushed back|shift\w*|transfer\w*"
    r"|becom\w+|became|turn\w* into|new|upgrad\w+|postpon\w+|renam\w+|resiz\w+|rebook\w*|back to|in ?stead|rather than"
    r"|in place of|in favou?r|supersed\w+|ok(?:ay)?|fine|allowed|again|after all|actually|in the end|mind"
    r"|second thoughts?|correction|sorry|scratch that|turns out|decided|agreed)\b"
    r"|\b(?:not|no)\b.{1,40}\bbut\b|, not\b|\bit is\b",
    re.IGNORECASE,
)
"""Words with which people tell of a change: what is so now, what has ended, what moved, what is allowed after all."""
DOUBTS = re.compile(
    r"\?|\b(?:maybe|perhaps|might|could|would|should we|if|think\w*|consider\w*|idea|plan\w*|try|look\w*|wonder\w*"
    r"|propos\w+|seems?|nicer?|easier|afraid|too|possibl\w+|some ?day|anybody|not (?:yet )?decided|not sure|hm+)\b",
    re.IGNORECASE,
)
"""Words with which people weigh a thing, and have not decided."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_OF_RULES = frozenset({"never", "always"})
_MOST_SHARED = 3
"""Words in common that count: with more, statements are mostly longer."""

FEATURES = (
    *("share_of_old", "share_of_new", "shared", "in_order", "other_number", "names"),
    *("says_ended", "tells", "shares_and_tells", "doubts"),
)
"""What is measured of two texts."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic model of what `FEATURES` names."""

    weights: Sequence[float]
    offset: float

    def chance(self, old: str, new: str) -> float:
        """Return how likely a later text tells of a change of mind about an earlier one, in [0, 1]."""
        said = self.offset + sum(w * x for w, x in zip(self.weights, features(old, new), strict=True))
        return 1 / (1 + math.exp(-said))


def tells(text: str) -> bool:
    """Say whether a text has words with which people tell of a change."""
    return CHANGES.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Text:
    """What is read of one statement, once for all that it is compared with."""

    words: tuple[str, ...]
    stems: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    gone: frozenset[str]
    tells: bool
    doubts: bool


@lru_cache(maxsize=512)
def _read(text: str) -> _Text:
    words = WORD.findall(text)
    return _Text(
        words=tuple(word.lower() for word in words),
        stems=telling(text),
        numbers=frozenset(_NUMBER.findall(text)),
        names=frozenset(word.lower() for word in words[1:] if kind_of((word,)) == "name"),
        gone=ended(text),
        tells=tells(text),
        doubts=DOUBTS.search(text) is not None,
    )


def features(old: str, new: str) -> list[float]:
    """Return what is measured of two statements, in the order of `FEATURES`."""
    before, after = _read(old), _read(new)
    shared = len(before.stems & after.stems)
    share = shared / max(1, len(before.stems))
    numbers = bool(before.numbers and after.numbers) and before.numbers.isdisjoint(after.numbers)
    return [
        share,
        shared / max(1, len(after.stems)),
        min(_MOST_SHARED, shared) / _MOST_SHARED,
        difflib.SequenceMatcher(None, before.words, after.words, autojunk=False).ratio(),
        float(numbers),
        float(not after.names <= set(before.words)),
        len(after.gone & before.stems) / len(after.gone) if after.gone else 0.0,
        float(after.tells),
        share * after.tells,
        float(after.doubts),
    ]


def parse(data: bytes) -> Weights:
    """Return the weights in the bytes of a file. Raises CorruptError where they were fitted to other features."""
    held = json.loads(data)
    if tuple(held["features"]) != FEATURES:
        raise CorruptError("what tells of a change of mind was fitted to other features", hint="install scrubjay again")
    *weights, offset = held["weights"]
    return Weights(weights=tuple(weights), offset=offset)


@cache
def fitted() -> Weights:
    """Return the weights that ship. Raises CorruptError when the file is not the one that was shipped."""
    data = resources.files("scrubjay.lifecycle").joinpath(WEIGHTS).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise CorruptError(f"{WEIGHTS} is damaged: its sha256 is {found[:12]}…", hint="install scrubjay again")
    return parse(data)


LIKELY = "likely"
"""The evidence of a verdict by the fitted chance alone."""


def likely(
    new: Statement,
    candidates: Iterable[Statement],
    policy: SupersessionPolicy,
    *,
    around: str = "",
) -> list[Succession]:
    """Return of which memories it is likely that `new`, or a later one of them, tells of a change of mind.

    `around` is the turn in which it was said: of a change of mind it may be one half. A later statement is about one
    other, the likeliest: people change their mind about one thing at a time. What is trusted less questions nothing,
    else an agent could do so to the person's word; nor does what nobody knows the time of.
    """
    found: dict[str, tuple[float, Succession]] = {}
    for candidate in candidates:
        if candidate.id == new.id or candidate.created_at == new.created_at or not is_same_place(new, candidate):
            continue
        old, later = (candidate, new) if candidate.created_at < new.created_at else (new, candidate)
        if TOLD in later.metadata or TRUST_ORDER.index(later.trust) < TRUST_ORDER.index(old.trust):
            continue
        chance = chance_of(old.content, later.content, policy)
        if around and later is new:
            chance = max(chance, chance_of(old.content, around, policy))
        if chance > found.get(later.id, (0.0,))[0]:
            at = max(later.created_at, later.valid_from or later.created_at)
            each = Succession(old=old.id, new=later.id, at=at, verdict=Verdict.UNSURE, why=LIKELY)
            found[later.id] = chance, each
    return [each for _, each in found.values()]


def chance_of(old: str, new: str, policy: SupersessionPolicy) -> float:
    """Return how likely a later text tells of a change of mind; 0 where nobody is to be asked.

    >>> chance_of("Deploys go to Heroku", "we moved the deploys from Heroku to Fly", SupersessionPolicy()) > 0.9
    True
    """
    if max(len(old), len(new)) > policy.max_chars:
        return 0.0
    chance = fitted().chance(old, new)
    return chance if chance >= policy.ask and not _stand_beside(old, new) else 0.0


def _stand_beside(old: str, new: str) -> bool:
    """Say whether one text says the same, asks, or is a rule besides: that one is lifted, somebody says."""
    before = read(old)
    after = begun(read(new), before)
    same = before.core == after.core and before.denied == after.denied
    if same or before.hypothetical or after.hypothetical or (before.denied and after.denied):
        return True
    is_rule = before.denied or not _OF_RULES.isdisjoint((*before.low, *after.low))
    return is_rule and not _read(new).tells
