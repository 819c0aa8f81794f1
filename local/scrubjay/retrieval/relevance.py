"""How likely a hit answers the question, in [0, 1], so that memories and events can be compared.

Theory of operation. A score is comparable within one kind alone: an event's is a sum over what stands around it, a
memory's is a sentence's own. What both become comparable by is how often such a hit turned out to answer: a logistic
function of a few signals, fitted for each kind on judged questions (`policy.RelevancePolicy` says on which). A memory
is relevant only if it is also true, so its probability is multiplied by a power of its own confidence. Every function
here is monotone: more likeness, more words in common or more confidence never make a hit less relevant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scrubjay.policy import AgentWorkPolicy, RecallPolicy, RelevancePolicy
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.turns import TurnKind


def of_memory(hit: Hit, confidence: float, policy: RelevancePolicy, *, cosine_baseline: tuple[float, float]) -> float:
    """Return how likely a memory answers; `confidence` in [0, 1] is how sure it is that the memory is right.

    A memory called by its name answers for certain; a superseded one has `policy.superseded` of its relevance.
    """
    if hit.parts.get("name"):
        return 1.0
    likely = _logistic(
        policy.memory_bias
        + policy.memory_cosine * _deviations(hit, cosine_baseline)
        + policy.memory_words * hit.matched
    )
    right = math.pow(confidence, policy.memory_confidence)
    return likely * right * (policy.superseded if hit.superseded else 1.0)


def of_sourced(hit: Hit, confidence: float, policy: RecallPolicy, *, cosine_baseline: tuple[float, float]) -> float:
    """Return how likely a memory answers that was read from turns of work: of its score, and what stands around them.

    Otherwise as `of_memory`.
    """
    if hit.parts.get("name"):
        return 1.0
    mean, deviation = cosine_baseline
    near = 0.0 if hit.around is None else max((hit.around - mean) / deviation, 0.0)
    work = policy.agent_work
    likely = _logistic(work.memory_bias + work.memory_score * hit.score + work.memory_around * near)
    right = math.pow(confidence, work.memory_confidence)
    return likely * right * (policy.relevance.superseded if hit.superseded else 1.0)


def of_added(hit: Hit, confidence: float, policy: RecallPolicy, *, cosine_baseline: tuple[float, float]) -> float:
    """Return how likely a memory answers, in a store of work, that no turn of it says: of its meaning and its words.

    Otherwise as `of_memory`.
    """
    if hit.parts.get("name"):
        return 1.0
    work = policy.agent_work
    likely = _logistic(
        work.added_bias + work.added_cosine * _deviations(hit, cosine_baseline) + work.added_words * hit.matched
    )
    right = math.pow(confidence, policy.relevance.memory_confidence)
    return likely * right * (policy.relevance.superseded if hit.superseded else 1.0)


def of_read(hit: Hit, logit: float, work: AgentWorkPolicy) -> float:
    """Return how likely a judged memory of work answers, now that a reranking model has read it and said a logit.

    One that was read from a turn never loses by it: the model read a sentence, and its turn says more.
    """
    if hit.parts.get("name"):
        return 1.0
    before = min(max(hit.confidence or 0.0, _LEAST), 1 - _LEAST)
    odds = math.log(before / (1 - before))
    likely = _logistic(work.read_bias + work.read_odds * odds + work.read_logit * logit)
    return max(likely, hit.confidence or 0.0) if hit.also else likely


_LEAST = 1e-6
"""A likelihood that still has odds."""


def of_event(hit: Hit, kind: TurnKind, chars: int, policy: RelevancePolicy | AgentWorkPolicy) -> float:
    """Return how likely an event answers, of its score, the kind of turn it is, and its length in characters."""
    turn = {
        TurnKind.STATEMENT: 0.0,
        TurnKind.FINDING: policy.finding,
        TurnKind.QUESTION: policy.question,
        TurnKind.NARRATION: policy.narration,
        TurnKind.OUTPUT: policy.output,
    }[kind]
    length = policy.event_length * math.log1p(chars / policy.usual_chars)
    return _logistic(policy.event_bias + policy.event_score * hit.score + turn + length)


def of_answer(
    hits: Sequence[Hit], policy: RecallPolicy, *, cosine_baseline: tuple[float, float], near: float | None = None
) -> float:
    """Return how likely some judged hits answer at all: whether what is asked is known.

    What is talked of in a store has much that is near: the mean likeness of the nearest `policy.answer_hits` tells
    known from unknown better than the nearest alone, which may be chance. Without vectors the share of the question's
    words in the hit that holds most of them has to do. A store of few documents may hold the answer once, so an answer
    is at least as sure as its best hit. No hits answer nothing. Of work with agents, `near` is the mean cosine of what
    is nearest in all that was looked at, and is gone by: a matter that is worked on comes up more often than ten times.
    """
    if not hits:
        return 0.0
    usual, (mean, deviation) = policy.relevance, cosine_baseline
    found = sorted((_deviations(hit, cosine_baseline) for hit in hits if hit.cosine is not None), reverse=True)
    nearest = found[: usual.answer_hits]
    if near is not None:
        work = policy.agent_work
        known = _logistic(work.answer_bias + work.answer_cosine * (near - mean) / deviation)
    elif nearest:
        known = _logistic(usual.answer_bias + usual.answer_cosine * sum(nearest) / len(nearest))
    else:
        known = _logistic(usual.words_bias + usual.words_matched * max(hit.matched for hit in hits))
    return max(known, *(hit.confidence or 0.0 for hit in hits))


def _deviations(hit: Hit, cosine_baseline: tuple[float, float]) -> float:
    """Return the cosine in standard deviations of unrelated texts; 0, as an unrelated text has, for none."""
    mean, deviation = cosine_baseline
    return 0.0 if hit.cosine is None else (hit.cosine - mean) / deviation


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -30.0), 30.0)))
