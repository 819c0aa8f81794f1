"""What becomes of a memory when somebody says that it helped, that it did not, or that it is wrong. Pure.

What agents say moves little and not without end: each agent counts a few times, nothing leaves the band around the
salience of its type, and what an agent says of its own memory moves nothing. What an agent calls wrong goes to the
person; what the person calls wrong is put away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scrubjay.lifecycle.trust import Risk, is_believed, with_reason
from scrubjay.policy import TYPE_SALIENCE
from scrubjay.policy.trusting import FeedbackPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Memory, ReviewState, Trust, review_state


class Verdict(StrEnum):
    """What is said of a memory."""

    HELPED = "helped"
    MISSED = "missed"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """Who says what of a memory. `agent` is None for the person; `before` is how often the same one said so before."""

    verdict: Verdict
    agent: str | None
    before: int = 0


def appraised(memory: Memory, said: Appraisal, policy: FeedbackPolicy, now: Millis) -> Mapping[Field, Any]:
    """Return the registers of a memory that change by what is said of it: none where it counts no more."""
    if said.verdict is Verdict.WRONG:
        return _wrong(memory, said, policy, now)
    if said.agent is None:
        step = policy.person_step
    elif said.before >= policy.counted or memory.metadata.get("agent") == said.agent:
        return {}
    else:
        step = policy.agent_step
    return _moved(memory, step if said.verdict is Verdict.HELPED else -step, policy)


def _wrong(memory: Memory, said: Appraisal, policy: FeedbackPolicy, now: Millis) -> Mapping[Field, Any]:
    if said.agent is None:
        archived = {} if memory.archived_at is not None else {Field.ARCHIVED_AT: int(now)}
        return {Field.REVIEW: ReviewState.REJECTED.value} | archived
    if said.before or review_state(memory.review) in {ReviewState.ACCEPTED, ReviewState.REJECTED}:
        return {}
    if is_believed(memory.trust, Trust.USER):  # no agent takes a person's word out of use
        return {Field.REVIEW: with_reason(memory.review, ReviewState.DISPUTED, Risk.DISPUTED)}
    waits = {Field.REVIEW: with_reason(memory.review, ReviewState.WAITING, Risk.DISPUTED)}
    return waits | _moved(memory, -policy.wrong_step, policy)


def _moved(memory: Memory, step: float, policy: FeedbackPolicy) -> dict[Field, Any]:
    """Return another salience, within the band of its type; one that somebody set beyond it is not drawn back."""
    usual = TYPE_SALIENCE[memory.type]
    low = max(min(memory.salience, usual - policy.band), 0.0)
    high = min(max(memory.salience, usual + policy.band), 1.0)
    salience = round(min(max(memory.salience + step, low), high), 4)
    return {} if salience == memory.salience else {Field.SALIENCE: salience}
