"""An id is found by its row, and the row by its id."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index_world import LOW, event
from scrubjay.index.index import Index

IDS = st.lists(st.text(min_size=1, max_size=30) | st.sampled_from([f"{n:026d}" for n in range(9)]), unique=True)


@settings(max_examples=60)
@given(IDS, IDS)
def _any_id_is_found_by_its_row_and_the_other_way_about(ids: list[str], others: list[str]) -> None:
    index = Index()
    index.add(event(id_, "w") for id_ in ids)
    index.remove(others[::2])
    index.add(event(id_, "w") for id_ in others[::3])
    there = (set(ids) - set(others[::2])) | set(others[::3])

    found = index.events.rows.find([*ids, *others])

    assert set(index.events.rows) == there
    for id_, row in zip([*ids, *others], found.tolist(), strict=True):
        assert (row >= 0) == (id_ in there)
        assert index.events.rows.get(id_, -1) == row
        assert row < 0 or index.events.ids[row] == id_


def test_any_id_is_found_by_its_row_and_the_other_way_about(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, values in LOW.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    _any_id_is_found_by_its_row_and_the_other_way_about()
