"""Vectors stay with their documents, and the nearest are those that comparing all finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index_world import event, memory, nearest_first, vectors
from scrubjay.index import vectors as vector_blocks
from scrubjay.index.arrays import floor_of_best
from scrubjay.index.index import Index
from scrubjay_shared import scoring
from scrubjay_shared.errors import InvalidError


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans()), max_size=60), st.integers(1, 12))
def test_the_nearest_are_those_that_comparing_all_finds(docs: list[tuple[int, int, bool]], count: int) -> None:
    index = Index()
    rows, scales = vectors(5)
    index.add(event(f"e{n:02d}", "w", order=order) for n, (_, order, _) in enumerate(docs))
    for n, (number, _, _) in enumerate(docs):
        index.set_vectors([f"e{n:02d}"], rows[number : number + 1], scales[number : number + 1])
    seen = np.zeros(len(docs), np.bool_)
    for n, (_, _, visible) in enumerate(docs):
        seen[index.events.rows[f"e{n:02d}"]] = visible

    for mask in (None, seen):
        found, cosines = index.events.nearest(rows[0], float(scales[0]), mask, count)
        order = nearest_first(index, found, cosines)

        all_of_them = scoring.cosines(rows, scales, rows[0], float(scales[0]))
        wanted = sorted(
            (-float(all_of_them[number]), -order, f"e{n:02d}")
            for n, (number, order, visible) in enumerate(docs)
            if visible or mask is None
        )[:count]
        assert [index.events.ids[row] for row in found[order].tolist()] == [id_ for _, _, id_ in wanted]
        assert cosines[order].tolist() == [-cosine for cosine, _, _ in wanted]


def test_choosing_by_signs_finds_nearly_all_of_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_blocks, "EXACT", 10_000)
    monkeypatch.setattr(vector_blocks, "RESCORED", 1_000)  # of 20,000: a share like that of a large table
    draw = np.random.default_rng(7)
    topics = draw.standard_normal((300, 384)) + draw.standard_normal(384)  # texts share a common direction
    blends = np.einsum("nb,nbd->nd", draw.dirichlet(np.ones(3), 20_000), topics[draw.integers(0, 300, (20_000, 3))])
    blends += draw.normal(0, 0.3, blends.shape)
    index = Index()
    index.load([event(f"{n:026d}", "w", order=n) for n in range(20_000)])
    index.loaded()
    unit = np.asarray(blends / np.linalg.norm(blends, axis=1, keepdims=True), np.float32)
    rows, scales = scoring.quantise(unit)
    index.set_vectors([f"{n:026d}" for n in range(20_000)], rows, scales)

    agreed = []
    for n in range(0, 20_000, 500):
        query, (scale,) = scoring.quantise(topics[n % 300][None].astype(np.float32))
        found, _ = index.events.nearest(query[0], float(scale), None, 10)
        best = np.argsort(-scoring.cosines(rows, scales, query[0], float(scale)), kind="stable")[:10]
        agreed.append(np.isin(best, found).mean())

    assert np.mean(agreed) >= 0.98


@pytest.mark.usefixtures("low_index_bounds")
def test_vectors_stay_with_their_documents_through_growth_removal_and_compaction() -> None:
    rows, scales = vectors(60)
    index = Index()
    index.add(event(f"e{n}", "w", order=n) for n in range(60))
    index.set_vectors([f"e{n}" for n in range(60)], rows, scales)

    index.remove(f"e{n}" for n in range(0, 60, 2))

    for n in range(1, 60, 2):
        row = np.array([index.events.rows[f"e{n}"]])
        assert index.events.vectors(row).tolist() == [rows[n].tolist()]
        assert index.events["scale"][row].tolist() == [scales[n]]
    assert index.embedded == (30, 30)
    assert len(index.events) < 60


@pytest.mark.parametrize(("keep", "embedded"), [(True, 1), (False, 0)])
def test_a_replaced_document_keeps_its_vector_only_on_request(keep: bool, embedded: int) -> None:  # noqa: FBT001
    rows, scales = vectors(1)
    index = Index()
    index.add([memory("m1", "dog")])
    index.set_vectors(["m1"], rows, scales)

    index.add([memory("m1", "cat")], keep_vectors=keep)

    assert index.embedded == (embedded, 1)
    assert "dog" not in index.vocabulary
    if keep:
        assert index.memories.vectors(np.array([index.memories.rows["m1"]])).tolist() == rows.tolist()


def test_a_vector_of_another_width_is_refused_until_all_are_cleared() -> None:
    index = Index()
    index.add([memory("m1")])
    index.set_vectors(["m1", "unknown"], *vectors(2))

    with pytest.raises(InvalidError):
        index.set_vectors(["m1"], *vectors(1, d=9))

    index.clear_vectors()
    assert index.embedded == (0, 1)
    assert index.set_vectors(["m1"], *vectors(1, d=9)) == 1


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_the_floor_of_the_best_is_reached_by_as_many_as_are_asked_for(kind: type) -> None:
    values = np.arange(5000, dtype=kind)

    for count in (1, 10, 4999, 5000, 6000):
        assert np.count_nonzero(values >= floor_of_best(values, count)) >= min(count, len(values))
    assert np.count_nonzero(values[:0] >= floor_of_best(values[:0], 3)) == 0


@pytest.mark.parametrize("count", [np.float32(0), np.float32(2)], ids=["few values", "mostly nothing"])
def test_the_floor_of_the_best_holds_where_many_values_are_equal(count: np.float32) -> None:
    values = np.random.default_rng(3).integers(0, 4, 200_000).astype(np.float32) - count
    values[values < 0] = 0

    for wanted in (1, 1_000, 150_000):
        assert np.count_nonzero(values >= floor_of_best(values, wanted)) >= wanted


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_the_rows_whose_signs_agree_best_are_those_that_counting_all_finds(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_blocks, "RESCORED", 700)
    draw = np.random.default_rng(5)
    rows, _ = scoring.quantise(draw.standard_normal((40_000, 64)).astype(np.float32))
    vectors_ = vector_blocks.Vectors(64)
    vectors_.put(np.arange(len(rows)), rows)
    held = draw.random(len(rows)) < share

    for query in rows[::9_000]:
        apart = np.count_nonzero((rows > 0) != (query > 0), axis=1)
        least = max(700, int(held.sum()) // vector_blocks.RESCORED_SHARE)
        worst = np.sort(apart[held])[least - 1]
        found = vectors_.agreeing(query, held, len(rows), int(held.sum()))
        assert found.tolist() == np.flatnonzero(held & (apart <= worst)).tolist()


def test_the_product_of_picked_rows_is_exact() -> None:
    rows = np.random.default_rng(6).integers(-127, 128, (40_000, 64)).astype(np.int8)
    vectors_ = vector_blocks.Vectors(64)
    vectors_.put(np.arange(len(rows)), rows)

    for picked in (np.arange(0, 40_000, 7), np.arange(3_000), np.array([39_999, 39_999])):
        wanted = rows[picked].astype(np.int64) @ rows[11].astype(np.int64)
        assert vectors_.products(picked, rows[11]).tolist() == wanted.tolist()
