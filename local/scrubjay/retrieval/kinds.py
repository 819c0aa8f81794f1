"""The kinds of documents as recall knows them: one entry says how a kind is filtered, weighed and scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval import filters
from scrubjay.retrieval.candidates import Selection
from scrubjay.retrieval.event_scores import score_events
from scrubjay.retrieval.memory_scores import score_memories
from scrubjay.retrieval.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallKind:
    """A kind of document in recall. `name` is that of its `DocumentKind`.

    `own` are the weights of meaning and of words in a document's own score, by which candidates are chosen. `score`
    gives its candidates their parts, after those of the kinds before it.
    """

    name: str
    selection: Selection
    own: Callable[[RecallPolicy], tuple[float, float]]
    score: Callable[[Recipe], None]


KINDS = (
    RecallKind(
        name=EVENT.name,
        selection=Selection(visible=filters.visible_events, wanted=filters.wanted_events, within=filters.happened),
        own=lambda policy: (policy.own_dense, policy.own_bm25),
        score=score_events,
    ),
    RecallKind(
        name=MEMORY.name,
        selection=Selection(visible=filters.visible_memories, wanted=filters.wanted_memories, within=filters.held),
        own=lambda policy: (policy.memory_dense, policy.memory_bm25),
        score=score_memories,
    ),
)
"""All kinds, events first: the others give them credit, and take score from them."""
