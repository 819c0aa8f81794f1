"""What a turn of a conversation is to somebody who asks later: an answer, or what only led to one.

The words of a session with an agent are mostly not knowledge: the person asks, the agent says what it is about to do,
a tool prints. What was said and found in between is what a question is after.
"""

from __future__ import annotations

import re
from enum import StrEnum

from scrubjay_shared import text as words
from scrubjay_shared.records import EventType


class TurnKind(StrEnum):
    """A kind of turn. A statement is a person's (or a note); a finding an agent's; output a tool's."""

    STATEMENT = "statement"
    FINDING = "finding"
    QUESTION = "question"
    NARRATION = "narration"
    OUTPUT = "output"


NARRATION_CHARS = 400
"""A longer text of an agent says more than what it will do next."""

_BEGINS = 120  # characters of a text in which it shows what it is
_AFFIRMED = (
    r"(?:(?:perfect|great|good|excellent|now|okay|ok|yes|right|sure|alright|so|first|next|then|finally|and|but|hmm"
    r"|interesting|i see|got it|of course|absolutely)\b[\s,.!:;—–-]*){0,3}"
)
_NARRATES = re.compile(
    rf"\W*{_AFFIRMED}"
    r"(?:let me|let's|let us|i'll|i will|i'm going to|i am going to|i'm (?:now )?\w+ing|i need to|i want to|i should"
    r"|i'd like to|we need to|we'll|going to)\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:because|instead|fixed|works|passed|failed|caused?|found|root cause"
    r"|the (?:problem|issue|bug|reason|fix) (?:is|was)|means|turns out|verified|confirmed)\b",
    re.IGNORECASE,
)
_AGENTS = frozenset({EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP})


def turn_kind(type_: EventType, text: str) -> TurnKind:
    """Return what a turn is, from its type and its text, of which the beginning and the end suffice."""
    if type_ is EventType.TOOL_RESULT:
        return TurnKind.OUTPUT
    said = text.strip()
    if type_ in _AGENTS:
        if _narrates(said):
            return TurnKind.NARRATION
        return TurnKind.QUESTION if len(said) <= NARRATION_CHARS and words.asks(said) else TurnKind.FINDING
    return TurnKind.QUESTION if words.asks(said) else TurnKind.STATEMENT


def _narrates(said: str) -> bool:
    """Whether an agent only says what it will do: a short text that begins so, or leads to a list that is not there."""
    if len(said) > NARRATION_CHARS or _REPORTS.search(said):
        return False
    return said.endswith(":") or _NARRATES.match(said[:_BEGINS].replace("\u2019", "'")) is not None


def says_again(turn: str, speaker: str, memory: str) -> bool:
    """Say whether a turn has all the words of a memory that was read from it; who spoke counts as one of them.

    >>> says_again("staging is heron. ssh user is deploy on both", "user", "Ssh user is deploy on both.")
    True
    >>> says_again("I ran the race last Sunday", "Mel", "Mel ran the race on 21 May 2023")
    False
    """
    return frozenset(words.analyse(f"{speaker} {turn}")).issuperset(words.analyse(memory))
