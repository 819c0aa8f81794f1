"""One data set's conversations again and again, as other people's: a store of any size out of a few thousand turns.

Every copy of a conversation exchanges its names, its numbers, its months and years, and a part of its other words for
others that are as frequent; the questions of that copy are exchanged alike, so that they still ask about its turns.
Sessions keep their length and order. So texts differ (eleven in twelve of 100,000; the others are greetings and such),
names recur as unevenly as words do (Zipf), and what a search goes through grows as it does with a person's years.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count

from scrubjay_bench import corpus
from scrubjay_bench.conversations import Conversation
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import STOP_WORDS

SEED = 17
EXCHANGED = 0.25  # share of the other words: a third more, and a question's words no longer meet its turn's inflections
MIN_LETTERS = 4  # of a word that is exchanged: shorter ones hold a sentence together
SHARE = 9  # events to a memory, so that a tenth of all items are memories
FIRST_MONTH = -14 * 12  # a copy is a month later than the one before, and a million items are 153 copies
_WORD = re.compile(r"\d+|[^\W\d_]+(?:'(?!s\b)[^\W\d_]+)?")
_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_ENDINGS = ("ing", "ed", "ly", "s")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = frozenset({"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"})


class _Drawing:
    """What one copy of one conversation exchanges its words for."""

    def __init__(self, copy: int, place: int, names: corpus.Words) -> None:
        self.months = FIRST_MONTH + copy
        self.random = random.Random(f"{SEED} {copy} {place}")
        self._names = names
        self._taken: set[str] = set()

    def name(self) -> str:
        """Return a name that nothing else has in this conversation."""
        while (name := self._names.drawn(self.random)) in self._taken:
            pass
        self._taken.add(name)
        return name


Exchange = Callable[[_Drawing], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One turn of a copy; `base` is the row of `Copies.texts` that it was made of."""

    speaker: str
    text: str
    ts: Millis
    base: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One memory of a copy, read from the turn at `source` of its session."""

    text: str
    source: int
    base: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session of a copy, with what was learned from it."""

    id: str
    turns: tuple[Said, ...]
    facts: tuple[Learned, ...]

    def __len__(self) -> int:
        """Return how many items it makes."""
        return len(self.turns) + len(self.facts)


class Copies:
    """Copies of some conversations, without end. Two of the same conversations give the same ones."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        words = _Words(text for each in conversations for text in _texts(each))
        self.texts: list[str] = []
        """What is embedded of each base: first all turns of a conversation, then its facts; then the next one's."""
        self._talks: list[_Talk] = []
        for conversation in conversations:
            self._talks.append(_Talk(conversation, words, len(self.texts), len(self._talks)))
            self.texts += [turn.document for turn in conversation.turns]
            self.texts += [fact.text for fact in conversation.facts]

    def sessions(self) -> Iterator[Session]:
        """Yield sessions, copy after copy, those of a copy in order of time."""
        for copy in count():
            for _, place, number in sorted(
                (talk.starts[number], place, number)
                for place, talk in enumerate(self._talks)
                for number in range(len(talk.starts))
            ):
                yield self._talks[place].session(copy, number)

    def varied(self, number: int) -> Iterator[tuple[int, str]]:
        """Yield (base, text to embed) of some turns and facts drawn from anywhere in the first hundred copies."""
        draw = random.Random(SEED)
        bases = [(talk, at) for talk in self._talks for at in range(talk.size)]
        for _ in range(number):
            talk, at = draw.choice(bases)
            yield talk.first + at, talk.document(draw.randrange(100), at)

    def questions(self, items: int, seed: int) -> Iterator[str]:
        """Yield questions, without end, about copies that stand whole in a store of so many items."""
        size = sum(talk.items for talk in self._talks)
        draw = random.Random(seed)
        asked = [talk for talk in self._talks if talk.questions]
        while True:
            talk = draw.choices(asked, [len(each.questions) for each in asked])[0]
            yield talk.question(draw.randrange(max(items // size, 1)), draw.randrange(len(talk.questions)))


def _texts(conversation: Conversation) -> Iterator[str]:
    for turn in conversation.turns:
        yield turn.speaker
        yield turn.text
    for fact in conversation.facts:
        yield fact.text
    for question in conversation.questions:
        yield question.text


class _Words:
    """Which words of a data set are names, and which others are as frequent as one."""

    def __init__(self, texts: Iterator[str]) -> None:
        seen: Counter[str] = Counter()
        inside: Counter[str] = Counter()
        for text in texts:
            seen.update(_WORD.findall(text))
            inside.update(_INSIDE.findall(text))
        known = STOP_WORDS | {word for word in seen if word.islower()}
        self.names = {word for word in inside if word.lower() not in known} - {*_MONTHS, *_DAYS}
        self.fresh = corpus.names()
        self._bands: dict[tuple[int, str], list[str]] = {}
        for word, times in sorted(seen.items()):
            if word.islower() and word.isalpha() and len(word) >= MIN_LETTERS and word not in STOP_WORDS:
                self._bands.setdefault((times.bit_length(), _ending(word)), []).append(word)
        self._times = seen

    def alike(self, word: str) -> Sequence[str]:
        """Return the words as frequent as one, with the same ending; none when it is not one to exchange."""
        found = self._bands.get((self._times[word].bit_length(), _ending(word)), ())
        return found if word in found else ()


def _ending(word: str) -> str:
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


class _Talk:
    """One conversation as templates: what stays, and numbered slots for what every copy exchanges."""

    def __init__(self, conversation: Conversation, words: _Words, first: int, place: int) -> None:
        self.first = first
        self._name = conversation.name
        self._place = place
        self._words = words
        self._slots: dict[str, int] = {}
        self._exchanges: list[Exchange] = []
        turns = conversation.turns
        self._speakers = [self._slot(f"name {turn.speaker}", _Drawing.name) for turn in turns]
        self._templates = [self._template(turn.text) for turn in turns]
        self._templates += [self._template(fact.text) for fact in conversation.facts]
        self.questions = [self._template(question.text) for question in conversation.questions]
        self.size = len(self._templates)
        ordered = list(dict.fromkeys(turn.session for turn in turns))
        self._turns = [[at for at, turn in enumerate(turns) if turn.session == name] for name in ordered]
        self._times = [turn.ts for turn in turns]
        self.starts = [min(self._times[at] for at in session) for session in self._turns]
        placed = {turn.id: at for at, turn in enumerate(turns)}
        self._sources = [placed.get(fact.source or "", -1) for fact in conversation.facts]
        sourced = sum(source >= 0 for source in self._sources)
        self._every = max(round(sourced * SHARE / len(turns)), 1)  # one fact in so many is a memory of a copy
        self.items = len(turns) + -(-sourced // self._every)  # at most
        self._exchanged = lru_cache(maxsize=4)(self._draw)

    def session(self, copy: int, number: int) -> Session:
        """Return one session of a copy."""
        exchanged = self._exchanged(copy)
        places = self._turns[number]
        delay = _later(self.starts[number], FIRST_MONTH + copy) - self.starts[number]
        turns = tuple(
            Said(
                speaker=exchanged[self._speakers[at]],
                text=_filled(self._templates[at], exchanged),
                ts=Millis(self._times[at] + delay),
                base=self.first + at,
            )
            for at in places
        )
        within = {at: place for place, at in enumerate(places)}
        facts = tuple(
            Learned(
                text=_filled(self._templates[len(self._times) + at], exchanged),
                source=within[source],
                base=self.first + len(self._times) + at,
            )
            for at, source in enumerate(self._sources)
            if source in within and (at + copy) % self._every == 0
        )
        return Session(id=f"{copy:04}/{self._name}/{number:02}", turns=turns, facts=facts)

    def document(self, copy: int, at: int) -> str:
        """Return what is embedded of a turn or a fact of a copy."""
        exchanged = self._exchanged(copy)
        text = _filled(self._templates[at], exchanged)
        return f"[{exchanged[self._speakers[at]]}] {text}" if at < len(self._speakers) else text

    def question(self, copy: int, at: int) -> str:
        """Return one question about a copy."""
        return _filled(self.questions[at], self._exchanged(copy))

    def _draw(self, copy: int) -> list[str]:
        drawing = _Drawing(copy, self._place, self._words.fresh)
        return [exchange(drawing) for exchange in self._exchanges]

    def _template(self, text: str) -> list[str | int]:
        parts: list[str | int] = []
        found = list(_WORD.finditer(text))
        end = 0
        for at, match in enumerate(found):
            beside = [found[near][0] for near in (at - 1, at + 1, at - 2) if 0 <= near < len(found)]
            slot = self._slot_of(match[0], beside)
            if slot is not None:
                parts += [text[end : match.start()], slot]
                end = match.end()
        return [*parts, text[end:]]

    def _slot_of(self, word: str, beside: Sequence[str]) -> int | None:
        """Return the slot of a word, None for one that stays. `beside` are its neighbours, the nearest first."""
        if word in _MONTHS:
            month = _MONTHS.index(word)
            return self._slot(word, lambda drawing: _MONTHS[(month + drawing.months) % 12])
        if word.isdigit():
            return self._number(word, [_MONTHS.index(near) for near in beside if near in _MONTHS])
        if word in self._words.names:
            return self._slot(f"name {word}", _Drawing.name)
        alike = self._words.alike(word.lower())
        if not alike or word not in {word.lower(), word.capitalize()}:
            return None
        same = word.lower()

        def exchange(drawing: _Drawing) -> str:
            return drawing.random.choice(alike) if drawing.random.random() < EXCHANGED else same

        slot = self._slot(same, exchange)
        return slot if word == same else ~slot

    def _number(self, digits: str, months: Sequence[int]) -> int | None:
        if re.fullmatch("(?:19|20)[0-9]{2}", digits):
            month, year = months[0] if months else 6, int(digits)
            return self._slot(f"{digits} {month}", lambda drawing: str(year + (month + drawing.months) // 12))
        if months or not digits.isascii():
            return None  # the day of a date
        low, high = max(10 ** (len(digits) - 1), 2), 10 ** len(digits) - 1
        return self._slot(digits, lambda drawing: str(drawing.random.randint(low, high)))

    def _slot(self, key: str, exchange: Exchange) -> int:
        if key not in self._slots:
            self._slots[key] = len(self._exchanges)
            self._exchanges.append(exchange)
        return self._slots[key]


def _filled(template: Sequence[str | int], exchanged: Sequence[str]) -> str:
    """Return a template with its slots filled; `~slot` stands for a slot whose word begins a sentence."""
    return "".join(
        [
            part if isinstance(part, str) else exchanged[part] if part >= 0 else exchanged[~part].capitalize()
            for part in template
        ]
    )


def _later(ts: int, months: int) -> int:
    """Return a time so many months later, at the latest on the 28th."""
    at = datetime.fromtimestamp(ts / 1000, UTC)
    number = at.year * 12 + at.month - 1 + months
    return int(at.replace(year=number // 12, month=number % 12 + 1, day=min(at.day, 28)).timestamp() * 1000)
