"""The reranker reorders what it read and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import POLICY, ask, crowd, index_of
from scrubjay.retrieval.reranking import passage, reranked


@pytest.mark.slow
@given(st.lists(st.floats(-12, 12), max_size=6), st.integers(0, 8))
def test_a_reranker_reorders_what_it_read_and_nothing_else(logits: list[float], limit: int) -> None:
    docs, vectors = crowd(40)
    ranking = ask(index_of(*docs, vectors=vectors), "word1 word2 word3", limit=8)

    found = reranked(ranking, np.array(logits, np.float32), POLICY, limit=limit)

    read = len(logits)
    assert {hit.id for hit in found.hits[:read]} <= {hit.id for hit in ranking.hits[:read]} or limit < read
    assert [hit.id for hit in found.hits[read:]] == [hit.id for hit in ranking.hits[read:limit]]
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found.hits)


def test_what_the_reranker_prefers_strongly_comes_first() -> None:
    docs, vectors = crowd(40)
    ranking = ask(index_of(*docs, vectors=vectors), "word1 word2 word3", limit=4)

    found = reranked(ranking, np.array([0, 0, 0, 100], np.float32), POLICY, limit=4)

    assert found.hits[0].id == ranking.hits[3].id
    assert found.hits[0].parts["rerank"] == pytest.approx(100 * POLICY.rerank)


def test_a_passage_is_the_turn_with_the_last_words_before_it() -> None:
    before = [("Ann", "one two three"), ("Ann", "four five")]

    assert passage("Bob", "six", before, replace(POLICY, rerank_words=4)) == "Ann: three, Ann: four five, Bob: six"
    assert passage("Bob", "a b c d e", before, replace(POLICY, rerank_words=4)) == "Bob: a b c d e"
    assert passage("Bob", "six", before, replace(POLICY, rerank_before=0)) == "Bob: six"
    assert passage("Bob", "six", [], POLICY) == "Bob: six"
