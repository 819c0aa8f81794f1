"""Texts made up for measuring, always the same for a seed: sentences of a working life over a Zipf vocabulary.

They are like what an agent stores in how long they are, how words repeat and how many are rare; not in what they mean.
No retrieval quality is measured on them.
"""

# ruff: noqa: SIM905  # words are read as words, not as a list of quotes and commas
from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from scrubjay_bench.conversations import DAY_MS, Conversation, Fact, Question, Turn
from scrubjay_shared.clock import Millis

RARE_WORDS = 20_000  # names of things: the long tail that makes most postings short
ZIPF = 1.07  # exponent of word frequency against rank in English text
SESSION_EVENTS = 40  # events of one session: an afternoon with an agent
START_MS = 1_767_225_600_000  # 2026-01-01 UTC
GAP_MS = 90_000  # between two events of a session
TALK_SEED = 8
TALK_TURNS = 60  # of a made-up conversation; sessions of LoCoMo have 10 to 47 turns, conversations 369 to 689
SESSION_TURNS = 20

_PEOPLE = (
    "Anna Ben Clara David Elif Farid Grace Hugo Ines Jonas Kira Liam Mona Nils Olga Pablo Quinn Rosa Samir Tara Uma "
    "Viktor Wanda Xenia Yusuf Zoe Astrid Bruno Chiara Dmitri"
).split()
_THINGS = (
    "service database schema release invoice report meeting budget pipeline deployment test branch library queue cache "
    "index dashboard server token account contract customer order calendar ticket migration backup parser editor model "
    "garden recipe flight hotel apartment bicycle concert birthday doctor insurance school marathon piano camera boat"
).split()
_KINDS = (
    "new old slow broken shared weekly nightly internal public small large final second cheap quiet green remote local "
    "encrypted monthly temporary important strict empty European early late private simple"
).split()
_DID = (
    "moved renamed fixed rewrote cancelled booked tested reviewed reverted shipped measured replaced documented bought "
    "repaired postponed simplified archived automated approved split merged traced profiled"
).split()
_WILL = "migrate replace finish paint learn visit review deploy rewrite measure sell plan rebuild explain".split()
_LIKES = "prefers uses likes avoids recommends trusts distrusts maintains wants needs".split()
_WHY = (
    "because the tests were flaky",
    "since the old one lost data",
    "because nobody could read it",
    "so that the weekend stays free",
    "because the vendor raised the price",
    "since it must work without a network",
    "so that two workers never collide",
    "because the doctor said so",
    "since the train leaves at seven",
    "so that errors are seen early",
)
_WHEN = (
    "last Tuesday",
    "on 14 March",
    "before the release",
    "in the summer",
    "every Monday morning",
    "after the holidays",
    "at the end of the quarter",
    "next week",
    "in October",
    "two days ago",
)
_STATEMENTS = (
    "{who} {did} the {kind} {thing} of {name} {when} {why}.",
    "{who} {likes} the {kind} {thing} from {name} over the {thing2}, {why}.",
    "We decided to {will} the {thing} for {name} with {name2} {when} {why}.",
    "The {kind} {thing} of {name} takes {number} seconds with {name2} {when}, and the {thing2} takes longer.",
    "{who} told {who2} that the {thing} at {name} costs {number} euros, {why}.",
    "{who} wants to {will} a {kind} {thing} {when} and asked {who2} about {name}.",
    "Version {number} of {name} {did} the {thing} and the {thing2} that {name2} relied on.",
)
_QUESTIONS = (
    "When did {who} say the {thing} of {name} was {did}?",
    "What does {who} think of the {kind} {thing} at {name}?",
    "Why did we {will} the {thing} for {name}?",
    "How long does the {kind} {thing} of {name} take with {name2}?",
    "Who {did} the {thing} and the {thing2}?",
    "What did {who} tell {who2} about the {kind} {thing}?",
)
_ONSETS = "b br c ch d dr f g gr h j k l m n p pl qu r s st t tr v w z".split()
_VOWELS = "a e i o u ai ea ou io".split()
_CODAS = "n r l s t x nd rk".split() + [""] * 4


class Corpus:
    """A source of texts. Two of the same seed give the same ones, whatever the process."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._who = Words(_PEOPLE)
        self._thing = Words(_THINGS)
        self._name = names()
        self._rest = {name: Words(pool) for name, pool in _OTHERS.items()}

    def statement(self) -> str:
        """Return a sentence of 10 to 25 words."""
        return self._filled(self._random.choice(_STATEMENTS))

    def question(self) -> str:
        """Return a question over the same words."""
        return self._filled(self._random.choice(_QUESTIONS))

    def event(self, number: int) -> dict[str, Any]:
        """Return the `number`-th event, as a client sends it: one to four sentences, two at the median.

        The dedupe key is its number: send each once.
        """
        user = number % 2 == 0
        count = self._random.choice((1, 1, 2, 2, 2, 3, 4))
        return {
            "agent": "bench",
            "session_id": f"bench-{number // SESSION_EVENTS:06}",
            "type": "user_message" if user else "assistant_message",
            "text": " ".join(self.statement() for _ in range(count)),
            "project": f"project-{number // SESSION_EVENTS % 7}",
            "ts": START_MS + number * GAP_MS,
            "dedupe_key": f"bench-{number}",
            "metadata": {"speaker": self._who.drawn(self._random)} if user else {},
        }

    def _filled(self, form: str) -> str:
        draw = self._random
        return form.format(
            who=self._who.drawn(draw),
            who2=self._who.drawn(draw),
            thing=self._thing.drawn(draw),
            thing2=self._thing.drawn(draw),
            name=self._name.drawn(draw),
            name2=self._name.drawn(draw),
            number=draw.randint(2, 400),
            when=draw.choice(_WHEN),
            why=draw.choice(_WHY),
            **{name: words.drawn(draw) for name, words in self._rest.items()},
        )


class Words:
    """Words to draw from, the first ones most often."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._weights = tuple(accumulate(1 / rank**ZIPF for rank in range(1, len(words) + 1)))

    def drawn(self, draw: random.Random) -> str:
        """Return one of them."""
        return draw.choices(self._words, cum_weights=self._weights)[0]


def names() -> Words:
    """Return made-up names, the same ones for all: questions must be able to meet statements."""
    draw = random.Random(0)
    found: dict[str, None] = {}
    while len(found) < RARE_WORDS:
        found["".join(draw.choice(part) for part in (_ONSETS, _VOWELS, _CODAS) * 2).capitalize()] = None
    return Words(tuple(found))


def conversations(number: int) -> tuple[Conversation, ...]:
    """Return made-up conversations of `TALK_TURNS` turns, with facts and questions: they stand in for real ones."""
    texts = Corpus(TALK_SEED)
    return tuple(_conversation(texts, f"talk-{at:02}") for at in range(number))


def _conversation(texts: Corpus, name: str) -> Conversation:
    start = Millis(START_MS)
    turns = tuple(
        Turn(
            id=str(at),
            session=str(at // SESSION_TURNS),
            speaker=_PEOPLE[at % 2],
            text=texts.statement(),
            ts=Millis(start + at // SESSION_TURNS * 7 * DAY_MS + at * GAP_MS),
        )
        for at in range(TALK_TURNS)
    )
    return Conversation(
        name=name,
        turns=turns,
        facts=tuple(
            Fact(session=turn.session, speaker=turn.speaker, text=texts.statement(), source=turn.id, ts=turn.ts)
            for turn in turns[::2]
        ),
        questions=tuple(
            Question(text=texts.question(), evidence=frozenset(), category="made up") for _ in range(TALK_TURNS)
        ),
    )


_OTHERS = {"did": _DID, "will": _WILL, "likes": _LIKES, "kind": _KINDS}
