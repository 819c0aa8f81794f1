"""The plain modes are their formulas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ranking_world import EVERYTHING, MEMORIES, POLICY, ask, event, index_of, memory, unit
from scrubjay.index import table as tables
from scrubjay.index import vectors as vector_blocks
from scrubjay.index.table import Table
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.ranking import KEYWORD, WEIGHTED
from scrubjay_shared import scoring
from scrubjay_shared.text import analyse, query_tokens


def test_keyword_scores_are_plain_bm25_over_what_was_asked_for() -> None:
    contents = ["the red bicycle", "a bicycle, a bicycle and a car", "a long story about nothing at all", "red car"]
    index = index_of(
        *(memory(f"m{n}", content) for n, content in enumerate(contents)), event("e1", "red red bicycle bicycle")
    )

    ranking = ask(index, "red bicycle", Filters(kinds=MEMORIES), mode=KEYWORD)

    documents = [analyse(content) for content in contents]
    scores = scoring.bm25(query_tokens("red bicycle"), documents, k1=POLICY.keyword_k1, b=POLICY.keyword_b)
    assert {hit.id: hit.score for hit in ranking.hits} == {
        f"m{n}": pytest.approx(score, abs=1e-5) for n, score in enumerate(scores) if score
    }
    assert ranking.notes == ("bm25 with k1 1.2 and b 0.75",)
    assert all(set(hit.parts) == {"bm25"} for hit in ranking.hits)


def test_weighted_scores_are_the_formula_of_cosine_and_overlap() -> None:
    index = index_of(memory("m1", "red bicycle"), memory("m2", "red car"), vectors={"m1": unit(1, 1), "m2": unit(1, 0)})

    hits = ask(index, "red bicycle", mode=WEIGHTED, vector=np.array(unit(1, 0), np.float32)).hits

    red, bicycle = scoring.overlap_idf(2, 2), scoring.overlap_idf(2, 1)
    assert {hit.id: hit.score for hit in hits} == {
        "m1": pytest.approx(0.8 * 0.7071 + 0.2, abs=0.01),
        "m2": pytest.approx(0.8 + 0.2 * red / (red + bicycle), abs=0.01),
    }


def test_weighted_mode_scores_every_row_and_copies_no_more_than_a_block_of_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_blocks, "BLOCK", 8)
    monkeypatch.setattr(tables, "_PICKED", 8)
    copied: list[int] = []
    real = Table.vectors

    def counting(table: Table, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        copied.append(len(rows))
        return real(table, rows)

    draw = np.random.default_rng(3)
    vectors = {f"m{n}": unit(*draw.normal(size=5)) for n in range(100) if n % 7}
    index = index_of(
        *(memory(f"m{n}", "bread", scope="project", resource_id="one" if n % 5 == 0 else "two") for n in range(100)),
        vectors=vectors,
    )
    query = np.array(unit(*draw.normal(size=5)), np.float32)
    monkeypatch.setattr(Table, "vectors", counting)

    for filters, count in ((EVERYTHING, 100), (Filters(caller_project="one"), 20)):
        found = {hit.id: hit for hit in ask(index, "bread", filters, mode=WEIGHTED, vector=query, limit=100).hits}

        assert len(found) == count
        assert max(copied, default=0) <= 8
        for id_, hit in found.items():
            exact = float(np.dot(vectors[id_], query)) if id_ in vectors else None
            assert hit.cosine == (None if exact is None else pytest.approx(exact, abs=0.02))


@pytest.mark.parametrize(("tagged", "found"), [(5, 5), (4, 10)])
def test_weighted_mode_searches_matching_topics_unless_they_hold_too_little(tagged: int, found: int) -> None:
    index = index_of(
        *(memory(f"m{n}", "bread", topic="food" if n < tagged else "work") for n in range(10)),
        vectors={f"m{n}": unit(1, 1) for n in range(10)},
    )
    index.set_topics(["food", "work"], *scoring.quantise(np.array([unit(1, 0), unit(0, 1)], np.float32)))

    ranking = ask(index, "bread", mode=WEIGHTED, vector=np.array(unit(1, 0), np.float32), limit=20)

    assert len(ranking.hits) == found
    assert ranking.notes == (
        ("within topics: food",) if found == tagged else ("no topic matches enough: all searched",)
    )
