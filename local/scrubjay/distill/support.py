"""Where turns say what a fact claims: the passage is found here, never taken from whoever claims it.

A fact is in an observer's own words, so its place is looked for by content. The turns are cut into overlapping
passages; the one whose words cover most of the fact's is its place, where rare words count more than common ones, and a
second passage close by may add what the first leaves out. Numbers, names of things in code, paths and dates are not a
matter of degree: each has to stand in some turn.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from scrubjay.distill.lexicon import words
from scrubjay.policy import SupportPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import TRUST_ORDER, Trust, least
from scrubjay_shared.text import analyse

FRAMING = frozenset(
    analyse(
        " ".join(
            words(
                """
                person user developer agent assistant project repository codebase session wants prefers decided
                decision preference likes asked says should must always never use uses used using now new instead
                because person's
                """
            )
        )
    )
)
"""What observers add in their own words to whatever they note: that it is missing from a turn says nothing."""

SPECIFIC = re.compile(
    r"[\w.@~-]*\d(?:[\w.,%-]*\w)?"  # 16, v1.2, 2026-01-29, s3
    r"|\w+(?:[._]\w+)+"  # config.toml, max_batch
    r"|~?(?:/[\w.@-]+)+"  # /usr/lib
    r"|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*"  # camelCase, CamelCase
    r"|(?<!\w)--[a-z][\w-]+"  # --flag
)
PARTS = re.compile(r"[a-z0-9]+")
ISO_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One turn: its text, when it was, how far it is trusted, and whether somebody spoke it (a tool does not speak).

    `fresh` says that facts are looked for in it; another one is context, which may add to them.
    """

    text: str
    ts: Millis
    trust: Trust
    spoken: bool
    fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`[start:end]` (characters) of the text of the turn of that index."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What a fact rests on: places, the best first; `trust` is the least of the turns it needs; `share` in [0, 1]."""

    places: tuple[Place, ...]
    trust: Trust
    share: float


@dataclass(frozen=True, slots=True)
class _Passage:
    place: Place
    stems: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Floors:
    """The least share of one passage alone, of two together, and of the first of these."""

    one: float
    both: float
    first: float


class Turns:
    """The turns that facts are looked for in, cut up once."""

    def __init__(self, turns: Sequence[Said], policy: SupportPolicy) -> None:
        self._turns = turns
        self._policy = policy
        self._passages = [
            _Passage(Place(turn=at, start=start, end=end), frozenset(analyse(turn.text[start:end])))
            for at, turn in enumerate(turns)
            for start, end in _windows(turn.text, policy.passage_chars)
        ]
        self._of_turn: dict[int, list[_Passage]] = {}
        for passage in self._passages:
            self._of_turn.setdefault(passage.place.turn, []).append(passage)
        self._count = Counter(
            stem
            for passages in self._of_turn.values()
            for stem in frozenset[str]().union(*(passage.stems for passage in passages))
        )
        self._joined = [" ".join(PARTS.findall(turn.text.lower())) for turn in turns]
        self._bare = [turn.replace(" ", "") for turn in self._joined]

    def support(self, fact: str, cited: Collection[int] = ()) -> Support | None:
        """Return what a fact rests on, None where the turns do not say it.

        `cited` are the turns that its author names. They are looked at first, and the others where these do not say it.
        """
        weights = self._weights(fact)
        needed = self._specifics(fact)
        if not weights or needed is None:
            return None
        spoken = {at for at, turn in enumerate(self._turns) if turn.spoken}
        fresh = {at for at, turn in enumerate(self._turns) if turn.fresh}
        named = fresh.intersection(cited)
        spoken &= fresh
        policy = self._policy
        uncited = _Floors(policy.floor, policy.joint_floor, policy.least_part)
        for among, floors in (
            (spoken & named, _Floors(policy.cited_floor, policy.cited_joint_floor, 0.0)),
            (spoken, uncited),
            (named - spoken, uncited),
            (fresh - spoken, uncited),
        ):
            found = self._best(weights, among, needed, floors)
            if found is not None:
                return found
        return None

    def _best(
        self,
        weights: dict[str, float],
        among: Collection[int],
        needed: Sequence[frozenset[int]],
        floors: _Floors,
    ) -> Support | None:
        first = self._fullest(weights, among, frozenset())
        if first is None:
            return None
        share, best = first
        places = [best]
        if share < floors.one:
            if share < floors.first:
                return None
            at = best.place.turn
            near = range(at - self._policy.near_turns, at + self._policy.near_turns + 1)
            second = self._fullest(weights, [n for n in near if self._is_spoken(n)], best.stems)
            if second is None or second[0] < floors.both:
                return None
            share = second[0]
            places.append(second[1])
        told = {passage.place.turn for passage in places}
        trusts = [self._turns[at].trust for at in told]
        trusts += [
            max((self._turns[at].trust for at in holders), key=TRUST_ORDER.index)
            for holders in needed
            if told.isdisjoint(holders)
        ]
        return Support(places=tuple(passage.place for passage in places), trust=least(*trusts), share=min(share, 1.0))

    def _is_spoken(self, at: int) -> bool:
        return 0 <= at < len(self._turns) and self._turns[at].spoken

    def _fullest(
        self, weights: dict[str, float], among: Collection[int], beside: frozenset[str]
    ) -> tuple[float, _Passage] | None:
        """Return the passage that, with the stems beside it, covers most of the weights, and how much."""
        total = sum(weights.values())
        best: tuple[float, _Passage] | None = None
        for at in sorted(among):
            for passage in self._of_turn.get(at, ()):
                covered = weights.keys() & (passage.stems | beside)
                share = sum(weights[stem] for stem in covered) / total
                if best is None or share > best[0]:
                    best = (share, passage)
        return best

    def _weights(self, fact: str) -> dict[str, float]:
        turns = len(self._turns) + self._policy.prior_turns
        return {
            stem: math.log((turns + 1) / (self._count[stem] + 0.5))
            for stem in set(analyse(fact))
            if stem not in FRAMING
        }

    def _specifics(self, fact: str) -> list[frozenset[int]] | None:
        """Return the turns that hold each specific of a fact, None where one stands in no turn."""
        needed = []
        for word in dict.fromkeys(SPECIFIC.findall(fact)):
            if self._is_date_of_turns(word):
                continue
            for name in filter(None, word.lower().split("/")):
                parts = self._holders(name)
                if parts is None:
                    return None
                needed += parts
        return needed

    def _holders(self, name: str) -> list[frozenset[int]] | None:
        """Return the turns that hold a name; where none does, those that hold each of its parts (`store.exists`)."""
        if name.startswith("--"):
            exactly = frozenset(at for at, turn in enumerate(self._turns) if name in turn.text.lower())
            return [exactly] if exactly else None
        parts = PARTS.findall(name)
        whole = self._having("".join(parts))
        if whole:
            return [whole]
        found = [self._having(part) for part in parts]
        return found if all(found) and not name[:1].isdigit() else None

    def _having(self, bare: str) -> frozenset[int]:
        return frozenset(at for at, text in enumerate(self._bare) if bare in text)

    def _is_date_of_turns(self, word: str) -> bool:
        """Say whether a number only tells when the turns were: the observer is given their dates."""
        if not ISO_DATE.fullmatch(word):
            return word.isdigit() and len(word) <= 2 and any(_day(turn.ts).day == int(word) for turn in self._turns)
        slack = timedelta(days=self._policy.date_slack_days)
        return any(
            (_day(turn.ts) + shift).strftime("%Y-%m-%d").startswith(word)
            for turn in self._turns
            for shift in (-slack, timedelta(), slack)
        )


def _day(ts: Millis) -> datetime:
    return datetime.fromtimestamp(ts / 1000, UTC)


def _windows(text: str, chars: int) -> Iterator[tuple[int, int]]:
    """Yield spans of whole lines of about so many characters, and ones between two of them; a long line is cut."""
    spans: list[tuple[int, int]] = []
    for line in LINE.finditer(text):
        start, end = line.span()
        while end - start > chars:
            spans.append((start, start + chars))
            start += chars
        if spans and end - spans[-1][0] <= chars:
            spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))
    yield from spans
    for (a, b), (c, d) in pairwise(spans):
        yield (a + b) // 2, (c + d) // 2
