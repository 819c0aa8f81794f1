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
    # Off an agent's turn that another step of it follows: of its last turn before the person speaks 1 in 8 answered
    # something, of the steps 1 in 70.
    step: float = 1.5
    # How likely an event answers, as in `RelevancePolicy`, of the score that these parts make.
    event_bias: float = -5.1
    event_score: float = 0.27
    event_length: float = -0.12
    usual_chars: float = 400.0
    finding: float = 0.1
    question: float = -0.3
    narration: float = -1.0
    output: float = -1.0
    # A memory stands in the place of the turn that it was read from, as in `RelevancePolicy`, whatever words it has:
    # it is found by its turn, and quotes it. Of questions whose answer was learned 3 in 100 more then show it.
    instead: float = 0.1
    instead_matched: float = 0.0
    # Two of the first three are memories, where they are at least this share as likely as the turn that they pass.
    first: int = 3
    first_memories: int = 2
    passing: float = 0.4
    # Whether anything is known, as in `RelevancePolicy`, of the mean likeness of what is nearest: of one in so many,
    # from ten to fifty. Ten alone tell questions about a store's sessions from those about another's with an AUC of
    # .70, fifty with .80.
    answer_bias: float = -3.65
    answer_cosine: float = 1.6
    near_share: int = 20
    near_least: int = 10
    near_most: int = 50
    # How likely a memory with a source answers. A sentence out of its context seldom has the words of a question: the
    # turns around the one that it was read from say what it is about.
    memory_bias: float = -7.2
    memory_score: float = 0.25
    memory_around: float = 0.9  # a deviation of the nearest of these turns
    memory_confidence: float = 0.6  # power of its own confidence
    around: int = 4  # turns to each side
    repeats: float = 0.3  # what is left of a memory of a turn that a likelier memory was read from
    # How likely a memory answers that no turn says, as in `RelevancePolicy`: it stands alone, in words of its own.
    added_bias: float = -5.8
    added_cosine: float = 0.8
    added_words: float = 5.6
    # And when the reranking model has read it: of its odds before, and the model's logit.
    read_bias: float = 0.45
    read_odds: float = 0.4
    read_logit: float = 0.25
    # An exchange is what somebody asked and what the agent said of it last. It is looked for over so many turns.
    exchange: int = 400
