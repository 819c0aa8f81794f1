"""What counts in recall where people work with an agent, and not with one another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorkPolicy:
    """How recall weighs a store of work with agents (`scrubjay.retrieval.agent_work`).

    Fitted on 288 questions about 57 sessions of four people's work, each person's figures from the other three; then
    rounded to a plateau. Questions are asked weeks later in other words, so that meaning counts for more than words,
    and what the session and the memories say for more than a turn alone.
    """

    share: float = 0.5  # of the events are an agent's or a tool's: work; below that people talk, and nothing here holds
    # What a part of an event's score is multiplied by: five turns then hold .36 of what answers, not .28. Half or twice
    # one of them stays within .03.
    dense: float = 2.5
    bm25: float = 0.5
    bm25_before: float = 1.0
    before: float = 0.25  # turns beside it are steps of the same work, and mostly say nothing
    after: float = 0.75
    session: float = 2.0
    length: float = 1.0
    memory: float = 2.0  # a memory read from it was chosen as worth keeping
    # How likely an event answers, as in `RelevancePolicy`, of the score that these parts make.
    event_bias: float = -5.5
    event_score: float = 0.27
    event_length: float = -0.2
    usual_chars: float = 400.0
    finding: float = -0.15
    question: float = -0.3
    narration: float = -1.0
    output: float = -0.5
    # How likely a memory with a source answers. A sentence out of its context seldom has the words of a question: the
    # turns around the one that it was read from say what it is about.
    memory_bias: float = -7.2
    memory_score: float = 0.25
    memory_around: float = 0.9  # a deviation of the nearest of these turns
    memory_confidence: float = 0.6  # power of its own confidence
    around: int = 4  # turns to each side
    repeats: float = 0.3  # what is left of a memory of a turn that a likelier memory was read from
