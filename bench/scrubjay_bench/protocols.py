"""What is asked of which store, and what counts as found: P1 to P4, for every data set alike.

The turns a memory was read from decide whether it is right. Where events and memories come together, a hit counts as
the turns it stands for, in their order, and the first k turns are looked at, not the first k hits: a memory of three
turns takes three places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scrubjay_bench.conversations import Conversation, Question
from scrubjay_bench.fillings import Documents, Filling
from scrubjay_shared.errors import InvalidError

EVENTS, MEMORIES, BOTH = ("event",), ("memory",), ("memory", "event")
UNRESOLVED = "evidence names no turn"
UNCOVERED = "no memory rests on the evidence"
OTHERS = "not among the questions of P1"


class Unit(StrEnum):
    """What is counted: memories read from an evidence turn, evidence turns, or the sessions that answer."""

    MEMORY = "memory"
    TURN = "turn"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One row's rules. `macro` takes the unweighted mean over categories; `of_facts` only questions P1 counts too."""

    name: str
    meaning: str
    filling: Filling
    kinds: tuple[str, ...]
    unit: Unit
    macro: bool = False
    of_facts: bool = False

    @property
    def asking(self) -> tuple[Filling, tuple[str, ...]]:
        """What the service is asked: rows that agree in this are scored from the same answers."""
        return self.filling, self.kinds

    def relevant(self, conversation: Conversation, question: Question, documents: Documents) -> frozenset[str]:
        """Return what should be found; empty where nothing could."""
        if self.unit is Unit.MEMORY:
            covers = documents.covers.items()
            return frozenset(memory for memory, covered in covers if not question.evidence.isdisjoint(covered))
        if self.unit is Unit.SESSION:
            return question.sessions & {turn.session for turn in conversation.turns}
        return question.evidence & {turn.id for turn in conversation.turns}

    def out(self, conversation: Conversation, question: Question, documents: Documents) -> str:
        """Return why a question is not counted, "" when it is."""
        if question.left_out:
            return question.left_out
        if not self.relevant(conversation, question, documents):
            return UNRESOLVED if question.evidence.isdisjoint(turn.id for turn in conversation.turns) else UNCOVERED
        if self.of_facts and not any(fact.source in question.evidence for fact in conversation.facts):
            return OTHERS
        return ""

    def units(self, conversation: Conversation, documents: Documents, hits: Iterable[str]) -> list[str]:
        """Return what some hits stand for, each thing once, in the order it first comes."""
        sessions = {turn.id: turn.session for turn in conversation.turns} if self.unit is Unit.SESSION else {}
        found: dict[str, None] = {}
        for hit in hits:
            if self.unit is Unit.MEMORY:
                found[hit] = None
            else:
                for turn in self._turns(documents, hit):
                    found[sessions[turn] if sessions else turn] = None
        return list(found)

    def _turns(self, documents: Documents, hit: str) -> Iterator[str]:
        if hit in documents.turns:
            yield documents.turns[hit]
        else:
            yield from documents.covers.get(hit, ())


P1 = Protocol(
    name="P1",
    meaning="the facts that the data set ships (its own, not a distiller's output), as memories",
    filling=Filling.FACTS,
    kinds=MEMORIES,
    unit=Unit.MEMORY,
)
P1_PROVENANCE = Protocol(
    name="P1+provenance",
    meaning="the same, with the turns stored too and a grip from each fact on its turn; memories asked for",
    filling=Filling.LINKED,
    kinds=MEMORIES,
    unit=Unit.MEMORY,
)
P2 = Protocol(
    name="P2", meaning="raw turns; evidence turns are to be found", filling=Filling.TURNS, kinds=EVENTS, unit=Unit.TURN
)
P2_CUT = Protocol(
    name="P2, questions of P1",
    meaning="raw turns, and only the questions that P1 counts",
    filling=Filling.TURNS,
    kinds=EVENTS,
    unit=Unit.TURN,
    of_facts=True,
)
P3 = Protocol(
    name="P3",
    meaning="as P2, the unweighted mean over the categories",
    filling=Filling.TURNS,
    kinds=EVENTS,
    unit=Unit.TURN,
    macro=True,
)
P2_SESSIONS = Protocol(
    name="P2, sessions",
    meaning="raw turns; the sessions that answer are to be found",
    filling=Filling.TURNS,
    kinds=EVENTS,
    unit=Unit.SESSION,
)
P4_MEMORIES = Protocol(
    name="P4, memories",
    meaning="raw sessions through our own distiller; its memories with a grip on an evidence turn are to be found",
    filling=Filling.LEARNED,
    kinds=MEMORIES,
    unit=Unit.MEMORY,
)
P4_TURNS = Protocol(
    name="P4, memories as turns",
    meaning="the same answers, but evidence turns are to be found, under no memory's grip or not",
    filling=Filling.LEARNED,
    kinds=MEMORIES,
    unit=Unit.TURN,
)
P4_BOTH = Protocol(
    name="P4, memories and events",
    meaning="memories and turns asked for together; a memory counts as the turns under its grips",
    filling=Filling.LEARNED,
    kinds=BOTH,
    unit=Unit.TURN,
)

_P2, _P4 = (P2, P3), (P4_MEMORIES, P4_TURNS, P4_BOTH)
OF_LOCOMO = {"P1": (P1,), "P1+provenance": (P1_PROVENANCE,), "P2": (P2, P2_CUT), "P3": (P3,), "P4": _P4}
OF_CHATS = {"P2": (P2,), "P3": (P3,), "P4": _P4}
OF_LONGMEMEVAL = {"P2": (P2, P2_SESSIONS), "P3": (P3,), "P4": _P4}


def named(offered: dict[str, tuple[Protocol, ...]], names: Sequence[str]) -> tuple[Protocol, ...]:
    """Return protocols by their names on the command line. Raises InvalidError for one that is not offered."""
    for name in names:
        if name not in offered:
            raise InvalidError(f"no protocol is called {name}", hint=f"protocols: {', '.join(offered)}")
    return tuple(dict.fromkeys(protocol for name in names for protocol in offered[name]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the evidence the memories rest on: shares of questions with any and all of it under some grip.

    `turns` is the share of the evidence turns, `compression` the tokens of the memories by those of the turns,
    `memories` how many there are.
    """

    any: float
    all: float
    turns: float
    compression: float
    memories: int


def coverage(stores: Sequence[tuple[Conversation, Documents]]) -> Coverage:
    """Return what the distiller's memories cover of the evidence that resolves to a turn."""
    counted: Counter[str] = Counter()
    for conversation, documents in stores:
        said = {turn.id for turn in conversation.turns}
        covered = {turn for turns in documents.covers.values() for turn in turns}
        counted.update(from_=documents.turn_tokens, to=documents.memory_tokens, memories=len(documents.covers))
        named_turns: set[str] = set()
        for question in conversation.questions:
            evidence = question.evidence & said
            if evidence and not question.left_out:
                named_turns |= evidence
                counted.update(questions=1, any=bool(evidence & covered), all=evidence <= covered)
        counted.update(evidence=len(named_turns), covered=len(named_turns & covered))
    return Coverage(
        any=counted["any"] / max(counted["questions"], 1),
        all=counted["all"] / max(counted["questions"], 1),
        turns=counted["covered"] / max(counted["evidence"], 1),
        compression=counted["to"] / max(counted["from_"], 1),
        memories=counted["memories"],
    )
