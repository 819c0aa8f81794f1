"""Where turns say what a fact claims: the passage is found here, never taken from whoever claims it.

A fact is in an observer's own words, so its place is looked for by content. The turns are cut into overlapping
passages; of the one whose words cover most of the fact's, the one or two sentences that carry it are its place, where
rare words count more than common ones, and a second passage close by may add what the first leaves out. Numbers, names
of things in code, paths and dates are not a matter of degree: each has to stand in some turn, and a number by itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
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
PARTS = re.compile(r"[a-z]+|\d+")
THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}(?!\d))")
PLURAL_CHARS = 4
"""From which an `s` at the end of a name may be a plural: "os" and "ios" are none."""
ISO_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
LINE = re.compile(r"[^\n]+")
WORDS = re.compile(r"[a-z0-9]+")
STOP = re.compile(r"(?<![.\s][A-Za-z])(?<!\b[A-Za-z]\.[A-Za-z])[.!?…]{1,3}[\"'”’)\]*_`]{0,4}(?=\s)|[。！？]")
"""Where a sentence ends; "e.g. " and "J. Doe" end none."""

MONTH = re.compile(r"(?:jan|feb|m[aä]r|apr|ma[iy]\b|jun|jul|aug|sep|o[ck]t|nov|de[cz])", re.IGNORECASE)

SENTENCE_CHARS = 300
"""Beyond a passage, in which a sentence that it cuts goes on."""


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
    """What a fact rests on: places, the best first; `trust` is the least of the turns it needs; `share` in [0, 1].

    `beside` are the places of other turns that its author cites and that say something of it; it does not need them.
    """

    places: tuple[Place, ...]
    trust: Trust
    share: float
    beside: tuple[Place, ...] = ()


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
        self._plain = [THOUSANDS.sub("", turn.text.lower()) for turn in turns]
        self._bare = ["".join(PARTS.findall(text)) for text in self._plain]

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
                told = {place.turn for place in found.places}
                return replace(found, beside=self._beside(weights, (spoken & named) - told))
        return None

    def _beside(self, weights: dict[str, float], among: Collection[int]) -> tuple[Place, ...]:
        """Return the place of each of some turns that says something of a fact."""
        fullest = [self._fullest(weights, [at], frozenset()) for at in sorted(among)]
        return tuple(
            self._carrying(one[1], weights) for one in fullest if one is not None and one[0] >= self._policy.least_part
        )

    def _carrying(self, passage: _Passage, weights: dict[str, float]) -> Place:
        """Return the sentence of a passage that covers most of the weights, or two neighbours where both are needed."""
        turn = passage.place.turn
        text = self._turns[turn].text
        cut = _sentences(text, passage.place.start, passage.place.end)
        if not cut:
            return passage.place
        total = sum(weights.values())

        def share(start: int, end: int) -> float:
            return sum(weights[stem] for stem in weights.keys() & set(analyse(text[start:end]))) / total

        one = max(cut, key=lambda span: share(*span))
        pairs = [(start, end) for (start, _), (_, end) in pairwise(cut)]
        two = max(pairs, key=lambda span: share(*span), default=one)
        start, end = two if share(*two) - share(*one) >= self._policy.second_sentence else one
        return Place(turn=turn, start=start, end=end)

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
        lacking = [
            max((self._turns[at].trust for at in holders), key=TRUST_ORDER.index)
            for holders in needed
            if told.isdisjoint(holders)
        ]
        if len(lacking) == 1 and share >= self._policy.carried:
            # One literal that a tool printed, in a sentence that people said: the agent that ran it knows it.
            lacking = [max(lacking[0], Trust.AGENT, key=TRUST_ORDER.index)]
        return Support(
            places=tuple(self._carrying(passage, weights) for passage in places),
            trust=least(*trusts, *lacking),
            share=min(share, 1.0),
        )

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
        for found in SPECIFIC.finditer(fact):
            word = found[0]
            if self._is_date_of_turns(word, beside_month=_is_beside_month(fact, found)):
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
        name = THOUSANDS.sub("", name)
        whole = self._having(name)
        if whole or name[:1].isdigit():
            return [whole] if whole else None
        found = [self._having(part) for part in WORDS.findall(name)]
        return found if found and all(found) else None

    def _having(self, name: str) -> frozenset[int]:
        """Return the turns that hold a name: a number by itself, another one also without the `s` of its plural."""
        if any(map(str.isdigit, name)):
            alone = _alone(name)
            return frozenset(at for at, text in enumerate(self._plain) if alone.search(text))
        bare = "".join(PARTS.findall(name))
        one = bare[:-1] if bare.endswith("s") and len(bare) >= PLURAL_CHARS else bare
        return frozenset(at for at, text in enumerate(self._bare) if one in text)

    def _is_date_of_turns(self, word: str, *, beside_month: bool) -> bool:
        """Say whether a number only tells when the turns were: the observer is given their dates."""
        if not ISO_DATE.fullmatch(word):
            return beside_month and any(_day(turn.ts).day == int(word) for turn in self._turns)
        slack = timedelta(days=self._policy.date_slack_days)
        return any(
            (_day(turn.ts) + shift).strftime("%Y-%m-%d").startswith(word)
            for turn in self._turns
            for shift in (-slack, timedelta(), slack)
        )


def _is_beside_month(fact: str, found: re.Match[str]) -> bool:
    """Say whether a number may be a day: of one or two digits, beside the name of a month."""
    if not (found[0].isdigit() and len(found[0]) <= 2):
        return False
    before, after = fact[: found.start()].split(), fact[found.end() :].split()
    return any(MONTH.match(word) for word in (*before[-1:], *after[:2]))


def _alone(name: str) -> re.Pattern[str]:
    """Return what finds a name with numbers, spelt together or apart, where none of its numbers is part of another.

    >>> [bool(_alone("41").search(text)) for text in ("port 41.", "port 9417", "41 ms", "4.41", "v41")]
    [True, False, True, False, True]
    """
    parts = PARTS.findall(name)
    between = [
        r"[^a-z0-9]{1,3}" if one.isdigit() and other.isdigit() else r"[^a-z0-9]?" for one, other in pairwise(parts)
    ]
    inside = parts[0] + "".join(f"{gap}{part}" for gap, part in zip(between, parts[1:], strict=True))
    before = r"(?:(?<![a-z0-9])|(?<=\bv))(?<!\d[.,])" if parts[0].isdigit() else ""
    # "3.12" is said by "3.12.4", and "3" is not.
    after = r"(?!\d)" + (r"(?![.,]\d)" if len(parts) == 1 else "") if parts[-1].isdigit() else ""
    return re.compile(before + inside + after)


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the sentences and other lines, as spans of a text, of which more than a half lies in a passage."""
    first = max(text.rfind("\n", 0, start) + 1, start - SENTENCE_CHARS)
    last = text.find("\n", end)
    last = min(len(text) if last < 0 else last, end + SENTENCE_CHARS)
    found: list[tuple[int, int]] = []
    for line in LINE.finditer(text, first, last):
        begin = line.start()
        for stop in (*STOP.finditer(text, *line.span()), None):
            upto = line.end() if stop is None else stop.end()
            piece = text[begin:upto]
            left, right = begin + len(piece) - len(piece.lstrip()), upto - len(piece) + len(piece.rstrip())
            if left < right and 2 * (min(right, end) - max(left, start)) > right - left:
                found.append((left, right))
            begin = upto
    return found


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
