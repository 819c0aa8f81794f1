"""What is kept of what a person says at work, by a reader: a model that was taught by judged sentences.

The reader says how likely a sentence would still matter weeks later, what kind of memory it would be, and whether it
says anything without the words before it. Here its chances become decisions. The words stay as they were said, since
people write notes to agents in no grammar that a rule would not spoil; a sentence that leans on the one before is told
with it, and an answer with what it answers. Where there is no model, what a person says in so many words is kept alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from scrubjay.dates import find_dates
from scrubjay.distill.kinds import kind_of
from scrubjay.distill.language import is_english
from scrubjay.distill.pasted import own_words
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.scope import OF_ONESELF, is_personal
from scrubjay.distill.thought import SpeechContext, Thought, was_redacted
from scrubjay.distill.wording import as_said, dated, sentence_case, validity
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import MemoryType

_EXPLICIT = re.compile(
    r"(?i)(?<!\bi )(?<!\byou )(?<!n't )(?<!cannot )\bremember\b|\b(?:keep in mind|from (?:now|here) on|going forward|"
    r"in (?:the )?future|as a rule|i prefer|(?:you|we) (?:should|must) (?:always|never)|i want you to (?:always|never)|"
    r"(?:do not|don'?t) ever|we (?:always|never) (?!got\b|get\b|had\b|saw\b|found\b|did\b|\w+ed\b)|"
    r"we(?:'ve| have)? (?:decided|agreed))\b|\b(?:rule(?: of thumb)?|convention|decision)(?: is)?:|"
    r"(?:^|[:;,.\u2013\u2014-] )\W*(?:(?:please|also|and|so) )*(?:always(?! the\b| fails?\b| an?\b)|"
    r"never(?! ?mind\b))\b"
)
"""How people say in so many words that something is to be remembered: whoever does is not left to a model's doubt."""

_PLACE = r"(?:project|repo(?:sitory)?|window|chat|session|tab|terminal|thread|conversation|agent)"
_AHEAD = (
    r"(?i)\W*(?:(?:ah|oh|oops|ups|no|nah|yeah|nvm|wait|argh|lol|hm+|sorry(?: about that)?|my (?:bad|mistake)|actually|"
    r"ok|hey|but|please|just)\b\W*)*"
)
_ENDS = r"(?:\W+(?:sorry|please|again|my bad))?\W*$"
"""Nothing follows: what goes on says something of its own ("never mind the gap, fix the header")."""
_TAKES_BACK_OWN = re.compile(
    rf"{_AHEAD}(?:(?:(?:that|this|it)(?:'?s| is| was) |i(?:'?m| am| was) )?(?:meant |for |in |about )*(?:the )?wrong "
    rf"{_PLACE}|"
    rf"i (?:pasted|typed|wrote|put|sent) (?:that|this|it) (?:in|into|to) the (?:wrong|other) {_PLACE}|"
    rf"(?:that|this|it)(?:'?s| is| was) (?:meant |for |about )*(?:the|an|my) ?other {_PLACE}|"
    r"(?:ignore|disregard|forget|scratch|strike) (?:(?:about )?what i (?:just )?(?:said|wrote)|my (?:last|previous) "
    rf"(?:message|sentence|prompt|one|comment))|(?:i )?(?:take|took) (?:that|it) back){_ENDS}"
)
"""How people take back what they just said, all of it: what it corrects in part is another matter."""
_TAKES_BACK = re.compile(
    rf"{_AHEAD}(?:(?:ignore|disregard|forget|scratch|strike) (?:that|this|it)|never ?mind(?: that)?){_ENDS}"
)
"""The same, where nobody else spoke in between: else it may be of what the agent said."""


def takes_back(said: str, *, answers: bool = False) -> bool:
    """Say whether a sentence takes back what the person said right before it; with `answers`, before the agent spoke.

    >>> takes_back("ah no sorry, that's the other project"), takes_back("ignore this warning in the linter")
    (True, False)
    >>> takes_back("never mind"), takes_back("never mind", answers=True)
    (True, False)
    """
    return _TAKES_BACK_OWN.match(said) is not None or (not answers and _TAKES_BACK.match(said) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a person said at work, and what the agent had said `before` it, "" for nothing."""

    text: str
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a reader makes of one sentence. `worth` and `leans` are chances, in [0, 1].

    `worth`: it would still matter weeks later. `leans`: it says nothing without the words before it. `personal`: it
    would hold for the person in every project.
    """

    worth: float
    leans: float
    type: MemoryType
    personal: bool


class Reader(Protocol):
    """Reads the sentences that a person typed in a turn. Blocking and thread-safe: call it in a worker thread.

    `source` is its name and version, for `Grip.source`.
    """

    @property
    def source(self) -> str:
        """The name."""
        ...

    def read(self, turn: Turn, found: Sequence[Span]) -> Sequence[Judgement]:
        """Return what it makes of each sentence, in their order; the same whatever was read before."""
        ...


class ExplicitWords:
    """Reads without a model: it knows nothing, so that only what is said in so many words is kept."""

    source = "patterns/6"

    def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
        """Return no chance for any sentence, and for whom each would hold."""
        return [_unread(turn.text[one.start : one.end]) for one in found]


def _unread(said: str) -> Judgement:
    low, kind = said.lower(), kind_of(said)
    personal = is_personal(low, kind, asked=OF_ONESELF.match(low) is None)
    return Judgement(worth=0.0, leans=0.0, type=kind, personal=personal)


EXPLICIT_WORDS = ExplicitWords()
IN_SO_MANY_WORDS = "said in so many words"
NOT_SAID = "it is not said in so many words, and without a model nothing else is learned"
_PROPOSES = re.compile(
    r"(?i)\?|\b(?:would|should|could|shall|recommend\w*|suggest\w*|propos\w*|options?|either|default)\b"
)
"""An agent's sentence that a person may answer: what it only reports is no part of what they say next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What becomes of one sentence: the thoughts that are kept of it (none: refused), and why.

    `chance` is how likely a careful reader would keep it, in [0, 1].
    """

    sentence: Span
    thoughts: tuple[Thought, ...]
    chance: float
    why: str


def chosen(turn: Turn, context: SpeechContext, policy: DistillPolicy, reader: Reader) -> Iterator[Choice]:
    """Yield what becomes of each sentence of a turn, in order.

    Where an answer is kept that leans on what the other said before, its thought has a negative `start`: that many
    characters before the turn, with a line break between both texts.
    """
    text = turn.text
    found = list(islice(sentences(text, own_words(text)), policy.max_read))
    last: Choice | None = None
    for one, reading in zip(found, reader.read(turn, found), strict=True):
        made = _choice(turn, one, reading, context, policy)
        if takes_back(turn.text[one.start : one.end]):
            made = replace(made, thoughts=(), why="it takes back what was said before")
            if last is not None:
                last = replace(last, thoughts=(), why="taken back in the same breath")
        if made.thoughts and reading.leans >= policy.min_leaning and made.why != IN_SO_MANY_WORDS:
            last, made = _with_words_before(turn, last, made, context, policy)
        if last is not None:
            yield last
        last = made
    if last is not None:
        yield last


def _choice(turn: Turn, one: Span, reading: Judgement, context: SpeechContext, policy: DistillPolicy) -> Choice:
    """Return what becomes of a sentence by itself."""
    said = turn.text[one.start : one.end]
    is_explicit = _EXPLICIT.search(said) is not None and not said.rstrip().endswith("?")
    refused = ""
    if reading.worth < policy.min_worth and not is_explicit:
        refused = (
            NOT_SAID
            if not reading.worth
            else f"the reader gives it {reading.worth:.2f}, and asks for {policy.min_worth:.2f}"
        )
    elif was_redacted(turn.text, one):
        refused = "a secret was taken out of its line"
    elif one.end - one.start > policy.max_sentence_chars:
        refused = f"longer than {policy.max_sentence_chars} characters"
    elif not is_english(said):
        refused = "not English, which is all that the reader knows"
    if refused:
        return Choice(sentence=one, thoughts=(), chance=reading.worth, why=refused)
    plain = as_said(turn.text, one, context.people)
    if not plain:
        return Choice(sentence=one, thoughts=(), chance=reading.worth, why="it has no words")
    dates = () if context.anchor is None else find_dates(plain, context.anchor, context.utc_offset)
    valid_from, valid_to = validity(plain, dates)
    # Of people left out cues are right in .57, the reader in .49; but it knows findings, which are facts to the cues.
    kind = kind_of(said)
    is_found = kind is MemoryType.FACT and reading.type is MemoryType.INSIGHT
    why = IN_SO_MANY_WORDS if is_explicit else "the reader chooses it"
    thought = Thought(
        content=sentence_case(dated(plain, dates)),
        type=MemoryType.INSIGHT if is_found else kind,
        confidence=round(max(reading.worth, policy.instruction_confidence if is_explicit else 0.0), 3),
        start=one.start,
        end=one.end,
        valid_from=valid_from,
        valid_to=valid_to,
        personal=reading.personal,
    )
    return Choice(sentence=one, thoughts=(thought,), chance=reading.worth, why=why)


def _with_words_before(
    turn: Turn, last: Choice | None, made: Choice, context: SpeechContext, policy: DistillPolicy
) -> tuple[Choice | None, Choice]:
    """Return both choices, once a sentence that says nothing by itself is told with what stands before it."""
    [thought] = made.thoughts
    if last is not None:
        first = last.sentence
        words = as_said(turn.text, first, context.people)
        if not words or thought.end - first.start > policy.max_sentence_chars or was_redacted(turn.text, first):
            return last, made
        told = last.thoughts[0].content if last.thoughts else sentence_case(words)
        start = last.thoughts[0].start if last.thoughts else first.start
        both = replace(thought, content=f"{told} {thought.content}", start=start)
        why = "told together with the next sentence, which leans on it"
        last = replace(last, thoughts=(), why=why)
        return last, replace(made, thoughts=(both,), why=f"{made.why}, with the one before")
    asked = deque(sentences(turn.before), maxlen=1)
    if not asked or was_redacted(turn.before, asked[0]):
        return last, made
    gap = len(turn.before) + 1 - asked[0].start
    question = as_said(turn.before, asked[0], context.people)
    if not _PROPOSES.search(question) or gap > policy.max_sentence_chars:
        return last, made
    both = replace(thought, content=f"{question} \N{EN DASH} {thought.content}", start=-gap)
    return last, replace(made, thoughts=(both,), why=f"{made.why}, with what it answers")
