"""What each filter lets through, in every mode."""

from __future__ import annotations

import pytest

from ranking_world import EVENTS, MEMORIES, ask, event, ids, index_of, memory
from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.ranking import MODES
from scrubjay_shared.clock import Millis

WORLD: list[EventDoc | MemoryDoc] = [
    event("e-a", "dog", order=10, session="sa", project="proj_a"),
    event("e-b", "dog", order=20, session="sb", project="proj_b", agent="codex", type="tool_result"),
    event("e-none", "dog", order=30, session="sn"),
    memory("m-user", "dog", created_at=Millis(10), salience=0.9, type="decision"),
    memory("m-a", "dog", created_at=Millis(20), scope="project", resource_id="proj_a", project="proj_a"),
    memory("m-b", "dog", created_at=Millis(30), scope="project", resource_id="proj_b", agent="codex"),
    memory("m-sa", "dog", created_at=Millis(40), scope="session", session_id="sa", project="proj_a"),
    memory("m-old", "dog", created_at=Millis(90), valid_from=Millis(5), valid_to=Millis(12)),
]


ALL = {doc.id for doc in WORLD}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ALL),
        (Filters(caller_project="proj_a"), {"e-a", "e-none", "m-user", "m-a", "m-old"}),
        (Filters(caller_project="proj_a", caller_session="sa"), {"e-a", "e-none", "m-user", "m-a", "m-sa", "m-old"}),
        (Filters(caller_project="proj_c"), {"e-none", "m-user", "m-old"}),
        (Filters(kinds=EVENTS), {"e-a", "e-b", "e-none"}),
        (Filters(kinds=MEMORIES), {"m-user", "m-a", "m-b", "m-sa", "m-old"}),
        (Filters(types=frozenset({"decision"})), {"m-user"}),
        (Filters(types=frozenset({"tool_result", "decision"})), {"e-b", "m-user"}),
        (Filters(types=frozenset({"unheard"})), set()),
        (Filters(min_salience=0.8), {"m-user"}),
        (Filters(agent="codex"), {"e-b", "m-b"}),
        (Filters(session_id="sa"), {"e-a", "m-sa"}),
        (Filters(project="proj_a"), {"e-a", "m-a", "m-sa"}),
        (Filters(project="proj_a", caller_project="proj_b"), set()),
        (Filters(since=20, until=40), {"e-b", "e-none", "m-a", "m-b"}),
        (Filters(until=11), {"e-a", "m-user", "m-old"}),
        (Filters(since=12), {"e-b", "e-none", "m-a", "m-b", "m-sa", "m-old"}),
    ],
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["dog", ""])
def test_filters_let_through(filters: Filters, expected: set[str], mode: str, text: str) -> None:
    assert set(ids(ask(index_of(*WORLD), text, filters, mode=mode, limit=20))) == expected
