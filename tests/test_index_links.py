"""A memory and its sources find each other, and an event its neighbours."""

from __future__ import annotations

import pytest

from index_world import event, linked, memory
from scrubjay.index.index import Index


@pytest.mark.usefixtures("low_index_bounds")
@pytest.mark.parametrize("first", ["event", "memory"])
def test_a_memory_finds_its_source_whichever_arrives_first(first: str) -> None:
    index = Index()
    if first == "event":
        index.add([event("e1")])
    index.add([memory("m1", sources=("e1", "e2", "e1"))])
    index.add([event("e1"), event("e2", order=1)])

    assert linked(index) == {("m1", "e1"), ("m1", "e2")}

    index.add([memory("m1", sources=("e2",))])
    assert linked(index) == {("m1", "e2")}

    index.add([event("e2", order=5)])
    assert linked(index) == {("m1", "e2")}

    index.remove(["e2"])
    assert linked(index) == set()


@pytest.mark.usefixtures("low_index_bounds")
def test_links_survive_compaction_of_either_side() -> None:
    index = Index()
    index.add(event(f"e{n}", order=n) for n in range(40))
    index.add(memory(f"m{n}", sources=(f"e{n}", f"late{n}")) for n in range(40))

    index.remove([f"e{n}" for n in range(20)] + [f"m{n}" for n in range(10, 30)])
    index.add([event("late35", order=99), event("late15", order=99)])

    assert linked(index) == {(f"m{n}", f"e{n}") for n in range(30, 40)} | {("m35", "late35")}


def test_neighbours_stop_at_the_ends_of_the_session() -> None:
    index = Index()
    index.add([event(f"e{n}", order=n) for n in (3, 1, 0)])
    index.add([event("e2", order=2), event("other", session="t", order=2)])

    assert index.neighbours("e1", before=2, after=1) == ("e0", "e2")
    assert index.neighbours("e3", before=2, after=2) == ("e1", "e2")
    assert index.neighbours("e0", before=0, after=0) == ()
    assert index.neighbours("unknown", before=1, after=1) == ()
