"""Scores: quantised cosines are close, BM25 and z-scores behave at their edges, the weighted formula is 002's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scrubjay_shared import scoring
from scrubjay_shared.errors import CorruptError

FLOATS = arrays.arrays(
    np.float32, st.tuples(st.integers(0, 8), st.integers(1, 16)), elements=st.floats(-1, 1, width=32)
)
VALUES = arrays.arrays(np.float32, st.integers(0, 50), elements=st.floats(-1e4, 1e4, width=32))


def unit(n: int, d: int, seed: int = 0) -> scoring.Floats:
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@given(FLOATS)
def test_quantising_loses_at_most_half_a_step(vectors: scoring.Floats) -> None:
    rows, scales = scoring.quantise(vectors)

    back = scoring.dequantise(rows, scales)

    assert np.abs(back - vectors).max(initial=0) <= 0.5001 * scales.max(initial=0) + 1e-30


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0])
def test_a_row_that_is_no_direction_becomes_zeros(bad: float) -> None:
    rows, scales = scoring.quantise(np.full((1, 4), bad, np.float32))

    assert not rows.any()
    assert scales.tolist() == [0.0]


def test_a_vector_survives_its_blob() -> None:
    rows, scales = scoring.quantise(unit(1, 384))

    blob = scoring.encode_vector(rows[0], float(scales[0]))
    row, scale = scoring.decode_vector(blob)

    assert len(blob) == 388
    assert row.tolist() == rows[0].tolist()
    assert scale == float(scales[0])


@pytest.mark.parametrize("blob", [b"", b"\0\0\0\0", b"\0\0\xc0\x7f" + b"\1" * 8, b"\0\0\x80\xbf" + b"\1" * 8])
def test_a_damaged_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(CorruptError):
        scoring.decode_vector(blob)


def test_quantised_cosines_are_the_cosines_to_a_hundredth() -> None:
    vectors, query = unit(500, 384), unit(1, 384, seed=1)
    (rows, scales), (row, scale) = scoring.quantise(vectors), scoring.quantise(query)

    found = scoring.cosines(rows, scales, row[0], float(scale[0]))

    assert np.abs(found - vectors @ query[0]).max() < 0.01
    assert scoring.cosines(rows[:0], scales[:0], row[0], float(scale[0])).shape == (0,)


def test_bm25_is_the_textbook_value() -> None:
    documents = [["cat", "cat", "dog"], ["dog"], ["bird", "fish"]]

    scores = scoring.bm25(["cat"], documents, k1=1.2, b=0.75)

    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert scores[0] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)), rel=1e-6)
    assert scores[1:] == [0.0, 0.0]


def test_bm25_counts_a_repeated_query_token_once() -> None:
    documents = [["cat"], ["dog"]]

    assert scoring.bm25(["cat", "cat"], documents, k1=1.2, b=0.75) == scoring.bm25(["cat"], documents, k1=1.2, b=0.75)


@pytest.mark.parametrize("documents", [[], [[]], [["a"]]])
def test_bm25_of_next_to_nothing_is_finite(documents: list[list[str]]) -> None:
    assert all(math.isfinite(score) for score in scoring.bm25(["a"], documents, k1=0.9, b=0.4))


def test_a_log_of_any_words_does_not_beat_a_sentence() -> None:
    tf, length = np.array([1, 1], np.float32), np.array([12, 50_000], np.float32)

    sentence, log = scoring.bm25_part(tf, length, 20.0, idf=1.0, k1=0.9, b=0.0, long=128.0).tolist()

    assert sentence == pytest.approx(1.0)
    assert log < 0.01


def test_overlap_weighs_rare_tokens_more() -> None:
    idf = {"the": scoring.overlap_idf(100, 100), "xylophone": scoring.overlap_idf(100, 1)}

    common = scoring.overlap(["the", "xylophone"], ["the"], idf)
    rare = scoring.overlap(["the", "xylophone"], ["xylophone"], idf)

    assert idf["the"] == 1.0
    assert rare > 0.8
    assert common + rare == pytest.approx(1.0)
    assert scoring.overlap([], ["the"], idf) == 0.0


def test_the_weighted_score_is_eight_tenths_cosine_and_two_tenths_overlap() -> None:
    cosine, overlaps = np.array([1.0, 0.5], np.float32), np.array([0.0, 1.0], np.float32)

    scores = scoring.weighted(cosine, overlaps, cosine_weight=0.8, token_weight=0.2)

    assert scores.tolist() == pytest.approx([0.8, 0.6])


@pytest.mark.parametrize(
    ("similarities", "counts", "chosen"),
    [
        ({"food": 0.7, "work": 0.3}, {"food": 9, "work": 9}, frozenset({"food"})),
        ({"food": 0.6, "work": 0.6}, {"food": 3, "work": 3}, frozenset({"food", "work"})),
        ({"food": 0.7}, {"food": 4}, None),  # too few to choose from
        ({"food": 0.5}, {"food": 9}, None),  # not like enough
        ({}, {}, None),
    ],
)
def test_topics_are_chosen_or_all_are_searched(
    similarities: dict[str, float], counts: dict[str, int], chosen: frozenset[str] | None
) -> None:
    assert scoring.topic_filter(similarities, counts, threshold=0.6, min_size=5) == chosen
