"""BM25 as the product counts it, against a library by other people: the same scores and the same order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import bm25s
import numpy as np
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT
from scrubjay.settings import NO_MODEL
from scrubjay_bench.conversations import Conversation, Turn
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.fillings import Filling, Keeper
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import analyse, query_tokens

SAID = 200


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.0), (1.2, 0.75), (2.0, 1.0)])
def test_keyword_recall_scores_and_ranks_as_bm25s_does(tmp_path: Path, k1: float, b: float) -> None:
    texts = Corpus(8)
    turns = tuple(
        Turn(id=str(at), session="1", speaker="Ada", text=texts.statement(), ts=Millis(at * 60_000))
        for at in range(SAID)
    )
    conversation = Conversation(name="made up", turns=turns, questions=())
    questions = [texts.question() for _ in range(20)]
    library = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    library.index([analyse(turn.document) for turn in turns], show_progress=False)
    keeper = Keeper(folder=tmp_path, models_dir=tmp_path, model=NO_MODEL)
    filled = keeper.filled(conversation, Filling.TURNS)

    async def recalled() -> list[dict[str, float]]:
        async with keeper.opened(filled, lambda: conversation.end, tmp_path) as service:
            policy = replace(DEFAULT.recall, keyword_k1=k1, keyword_b=b)
            service.policy = replace(service.policy, recall=policy)
            answers = [
                await service.call(
                    PERSON,
                    "recall",
                    api.RecallRequest(query=question, mode=api.Mode.KEYWORD, limit=SAID, max_tokens=10**9),
                )
                for question in questions
            ]
        return [{filled.documents.turns[hit.id]: hit.score for hit in answer.hits} for answer in answers]

    for question, ours in zip(questions, asyncio.run(recalled()), strict=True):
        known = [token for token in query_tokens(question) if token in library.vocab_dict]
        # Lucene leaves out the constant factor k1 + 1, which changes no order.
        theirs = cast("np.ndarray[tuple[int], np.dtype[np.float64]]", library.get_scores(known)) * (k1 + 1)
        assert ours == pytest.approx({str(at): score for at, score in enumerate(theirs) if score > 0}, rel=1e-4)
        best = sorted(ours, key=lambda turn: -ours[turn])
        assert [theirs[int(turn)] for turn in best] == pytest.approx(sorted(theirs[theirs > 0], reverse=True), rel=1e-4)
