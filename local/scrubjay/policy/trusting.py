"""What waits for a person's review, and how far feedback moves a memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReviewMode(StrEnum):
    """Which new memories wait for the person: none, those that may do harm, or all that the person did not add."""

    OFF = "off"
    RISKY = "risky"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """Which memories wait for the person, and what is compared with those that were rejected."""

    # `off` leaves a command that a web page planted to the ranking; `all` makes a queue that nobody reads within a
    # week. What is risky is a few in a hundred of what work with an agent teaches.
    mode: ReviewMode = ReviewMode.RISKY
    looked_chars: int = 20_000  # of a text: what is handed over is its first 320, and a rule is a sentence
    rejected_compared: int = 500  # last rejected ones of a scope, word by word: equal texts are found among all
    page: int = 100  # of the queue: more is not reviewed at a sitting


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackPolicy:
    """How far what is said of a memory moves its salience. Round numbers, none fitted."""

    agent_step: float = 0.02  # one agent's "helped": a tenth of what lies between two types of memories
    person_step: float = 0.05  # the person knows
    wrong_step: float = 0.1  # "wrong" weighs more than one "helped": a wrong memory costs more than a missing one
    counted: int = 5  # of one agent and memory: the sixth "helped" of the same agent says nothing new
    band: float = 0.15  # around the salience of its type, whatever how many agents say: a fact never passes a goal


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPolicy:
    """How much an audit reads, and from when on two memories are nearly the same."""

    memories: int = 50_000  # newest: about ten seconds beside others, and years of work with agents
    events: int = 5_000  # newest, that are looked through for secrets: what older rules let through was told of then
    sessions: int = 1_000  # newest, of those that were handed something
    at_once: int = 200  # read in one step: others get their turn after some milliseconds
    shown: int = 20  # ids of a finding: enough to look at; the count says how many there are
    near_share: float = 0.85  # of stems in common (Jaccard): a word of seven, as where learning merges
    rare_stems: int = 4  # by which those are looked for that may be near: one word of seven may differ, three are left
    compared: int = 64  # memories that are looked at for one stem
    compared_chars: int = 2_000  # of a memory: a longer one is a document
