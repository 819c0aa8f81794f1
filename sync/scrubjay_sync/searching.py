"""Searchable scopes from the client's side: vectors given to the server, and questions asked of it.

Only what this store has placed in a scope of suite 0 is ever given: the server reads those memories already. A vector
goes with the hash of the words it was made of, and only in the space that the scope was made with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scrubjay.store import Store
from scrubjay_shared import scoring
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import NotSearchableError
from scrubjay_shared.wire import PutVectors, SearchAnswer, SearchRequest, SearchVector, TopicVector
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud

Vectors = npt.NDArray[np.float32]


class Meaning(Protocol):
    """The daemon's embedding model: the space in use and float32 [n, d] of unit length; None without one that works."""

    def __call__(self, texts: Sequence[str], *, question: bool = False) -> Awaitable[tuple[str, Vectors] | None]:
        """Embed some texts, as what is stored or as what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSearch:
    """What the server answered, and why it searched by words alone when it did."""

    answer: SearchAnswer
    note: str = ""


async def upload_vectors(
    store: Store, member: Member, cloud: Cloud, meaning: Meaning | None, unembeddable: set[bytes]
) -> int:
    """Give the server the vectors that its searchable scopes want and this store has. Returns how many.

    Scopes whose topics the model at hand cannot embed are added to `unembeddable`: it is not loaded for them again.
    """
    count = 0
    if member.read_only:
        return count
    for scope in member.scopes.ids:
        state = member.state.scopes[scope]
        space = (
            await store.read(lambda q: q.embed_queue.space_number(state.space))
            if state.suite == Suite.OPEN and state.space
            else None
        )
        if space is None:
            continue
        after, topics = "", tuple[str, ...]()
        while True:
            page = await cloud.search.wanted_vectors(scope, after=after)
            topics = topics or page.topics
            said = {one.id: one.content_hash for one in page.wanted}
            vectors = await _vectors_of(store, scope, space, said)
            if vectors:
                await cloud.search.put_vectors(scope, PutVectors(space=state.space, vectors=tuple(vectors)))
                count += len(vectors)
            after = page.next
            if not after:
                break
        if not topics or meaning is None or scope in unembeddable:
            continue
        labels = await meaning(topics)
        if labels is None or labels[0] != state.space:
            unembeddable.add(scope)
        else:
            named = zip(topics, labels[1], strict=True)
            found = tuple(TopicVector(topic=topic, vector=_wire(vector)) for topic, vector in named)
            await cloud.search.put_vectors(scope, PutVectors(space=state.space, topics=found))
    return count


async def _vectors_of(store: Store, scope: bytes, space: int, said: dict[str, str]) -> list[SearchVector]:
    """Return the vectors that the store has of some memories that live in a scope, if they say what `said` does."""
    rows = await store.read(lambda q: q.documents.vectors_in_scope(space, scope, list(said)))
    rows = [row for row in rows if said[row[0]] == row[1]]
    if not rows:
        return []
    vectors = scoring.dequantise(*scoring.decode_vectors([bytes(row[2]) for row in rows]))
    lengths = np.linalg.norm(vectors, axis=1)
    return [
        SearchVector(id=row[0], content_hash=row[1], vector=_wire(vector / length))
        for row, vector, length in zip(rows, vectors, lengths, strict=True)
        if length > 0  # a text without words has no meaning to be found by
    ]


def _wire(vector: Vectors) -> bytes:
    return np.asarray(vector, "<f4").tobytes()


async def search_scope(
    member: Member, cloud: Cloud, meaning: Meaning | None, scope: bytes, request: SearchRequest
) -> ScopeSearch:
    """Ask the server, with the question's vector if the model in use makes those of the scope's space.

    Raises NotSearchableError for a sealed scope, before anything of the question has left this machine.
    """
    if member.scopes.suite(scope) != Suite.OPEN:
        raise NotSearchableError(
            f"scope {member.scopes.name(scope)} is sealed: the server cannot search it",
            hint="scrubjay recall searches everything, on this machine",
        )
    space = member.state.scopes[scope].space
    found = await meaning([request.text], question=True) if space and meaning is not None else None
    if found is None or found[0] != space:
        answer = await cloud.search.query(scope, request)
        note = (
            "the scope has no embedding space"
            if not space
            else "no embedding model at hand"
            if found is None
            else f"the model in use makes vectors of {found[0]}, the scope's are of {space}"
        )
        return ScopeSearch(answer=answer, note=f"{note}: searched by words only")
    return ScopeSearch(answer=await cloud.search.query(scope, replace(request, vector=_wire(found[1][0]), space=space)))


async def space_in_use(store: Store) -> str:
    """Return the embedding space that most of a store's vectors are in; "" when it has none."""
    return await store.read(lambda q: q.documents.most_used_space())
