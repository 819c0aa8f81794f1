"""Questions put to a service, in one configuration: what came back, in what order, and how long each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_bench.configurations import Configuration, Fused, Measured, Scored
from scrubjay_bench.conversations import Conversation, Question
from scrubjay_bench.fillings import Filled, Keeper
from scrubjay_shared import text
from scrubjay_shared.clock import Millis

NO_BUDGET = 1_000_000_000  # tokens: what is measured is the order, and what the first k of it cost
WARM_UP = "Who said what?"  # loads the models, which is no part of a question's latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one question brought: hits in order, the estimated tokens of their texts, milliseconds in all and by stage.

    Only the first hits' tokens are counted, as many as were asked to be.
    """

    hits: tuple[str, ...]
    tokens: int
    ms: float
    stages: dict[str, float]


async def ask(
    keeper: Keeper,
    filled: Filled,
    conversation: Conversation,
    configuration: Measured,
    *,
    kinds: tuple[str, ...],
    k: int,
    scratch: Path | None,
    step: Callable[[], None] = lambda: None,
) -> dict[Question, Answer]:
    """Ask every question about a conversation that its data set does not leave out. A part that fails raises."""
    clock = [conversation.end]
    combine = configuration.combine(filled.documents.texts) if isinstance(configuration, Fused) else None
    answers: dict[Question, Answer] = {}
    costs: dict[str, int] = {}
    async with keeper.opened(filled, lambda: clock[0], scratch) as service:
        for part in configuration.parts:
            await _asked(service, part, conversation.name, WARM_UP, kinds)
        for question in conversation.questions:
            if question.left_out:
                continue
            clock[0] = conversation.end if question.asked is None else Millis(question.asked)
            began = time.perf_counter()
            parts = [
                await _asked(service, part, conversation.name, question.text, kinds) for part in configuration.parts
            ]
            rankings = [[Scored(id=hit.id, score=hit.score) for hit in found.hits] for found in parts]
            ranked = rankings[0] if combine is None else combine(question.text, rankings)
            ms = (time.perf_counter() - began) * 1000
            shown = {hit.id: hit.text for found in parts for hit in found.hits}
            for one in ranked[:k]:
                if one.id not in costs:
                    costs[one.id] = text.estimate_tokens(shown[one.id])
            stages: dict[str, float] = {}
            for part_answer in parts:
                for stage, spent in part_answer.stages_ms.items():
                    stages[stage] = stages.get(stage, 0.0) + spent
            answers[question] = Answer(
                hits=tuple(one.id for one in ranked),
                tokens=sum(costs[one.id] for one in ranked[:k]),
                ms=ms,
                stages=stages,
            )
            step()
    return answers


async def _asked(
    service: Application, part: Configuration, conversation: str, question: str, kinds: tuple[str, ...]
) -> api.RecallResponse:
    policy = part.policy_for(conversation)
    if service.policy.recall is not policy:
        service.policy = replace(service.policy, recall=policy)
    answer: api.RecallResponse = await service.call(
        PERSON,
        "recall",
        api.RecallRequest(
            query=question,
            limit=part.limit,
            mode=part.mode,
            kinds=kinds,
            max_tokens=NO_BUDGET,
            rerank=part.rerank,
        ),
    )
    return answer
