"""What a receiver notes of a write by somebody who is not the store's person: where it may show, and who it is by.

A writer outside (another member of a team, a device without a person) says of a memory what it likes. Whoever takes its
op in adds these bounds to the op's body, in the place of any that came with it, and what shows of the memory keeps to
them whatever its registers say, now or later. So the verdict is part of the log: it is the same on every device that
received the op, after a rebuild, and once the team or the scope is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from scrubjay_shared.ops.registers import Version
from scrubjay_shared.ops.schema import BOUNDS, Field
from scrubjay_shared.ops.stamps import Stamp
from scrubjay_shared.records import ALWAYS_LOADED, AUTHOR, Layer, Memory, ReviewState, Scope, review_state


class Bounds(NamedTuple):
    """What is noted of a write: `projects` are those in which it may show, None for all that are nobody else's.

    `place` stands for a project where the memory names none of these: no folder is a checkout of it, so that no agent
    is handed it. `review` is what screening the write's words found.
    """

    place: str
    author: str
    projects: tuple[str, ...] | None
    review: str | None


def bounded(body: Mapping[int, Any], bounds: Bounds) -> dict[int, Any]:
    """Return the body of a write to a memory with these bounds, and no others."""
    projects = None if bounds.projects is None else list(bounds.projects)
    return {**body, BOUNDS: [bounds.place, bounds.author, projects, bounds.review]}


def bounds_of(body: Mapping[int, Any]) -> Bounds | None:
    """Return what is noted of a write, None where nothing is. Raises ValueError and TypeError where it is malformed."""
    if BOUNDS not in body:
        return None
    place, author, projects, review = body[BOUNDS]
    named = None if projects is None else tuple(projects)
    if not all(type(one) is str for one in (place, author, *(named or ()), review or "")):
        raise TypeError("bounds are texts")
    return Bounds(place, author, named, review)


def within_bounds(
    memory: Memory,
    shown: Mapping[int, Stamp],
    bounds: Mapping[Stamp, Bounds],
    registers: Mapping[tuple[str, int], Mapping[Stamp, Version]],
) -> Memory:
    """Return a memory as it may show. `shown` has the stamp of the version that shows of each register.

    Bounds hold from the first register that somebody outside wrote and that shows. Whose words it has is its author.
    What the store's person took to another place, of all `registers`, nobody outside brings back.
    """
    outside = {key: stamp for key, stamp in shown.items() if stamp in bounds}
    if not outside:
        return memory
    of_words = outside.get(Field.CONTENT)
    bound = bounds[max(outside.values()) if of_words is None else of_words]
    metadata = {} if Field.METADATA in outside else dict(memory.metadata)
    metadata.pop(AUTHOR, None)
    return replace(
        memory,
        scope=Scope.PROJECT,
        resource_id=_place(memory, bound, _said_inside(memory.id, bounds, registers)),
        layer=Layer.ARCHIVE if memory.layer in ALWAYS_LOADED else memory.layer,
        review=memory.review if of_words is None else _review(memory.review, shown, of_words, bounds),
        metadata=metadata if of_words is None else {**metadata, AUTHOR: bound.author},
    )


def _said_inside(
    memory_id: str, bounds: Mapping[Stamp, Bounds], registers: Mapping[tuple[str, int], Mapping[Stamp, Version]]
) -> dict[int, Any]:
    """Return what the store's person said last of where a memory stands, of what they said anything."""
    said = {}
    for key in (Field.SCOPE, Field.RESOURCE_ID):
        versions = registers.get((memory_id, key), {})
        if inside := versions.keys() - bounds.keys():
            said[int(key)] = versions[max(inside)][0]
    return said


def _place(memory: Memory, bound: Bounds, inside: Mapping[int, Any]) -> str:
    project = memory.resource_id
    if bound.projects is None:
        return project if project is not None and memory.scope is Scope.PROJECT else bound.place
    moved = inside.get(Field.RESOURCE_ID)
    if inside.get(Field.SCOPE, Scope.PROJECT) != Scope.PROJECT or (moved is not None and moved not in bound.projects):
        return bound.place
    if project in bound.projects:
        return str(project)
    return bound.projects[0] if project is None and len(bound.projects) == 1 else bound.place


def _review(
    said: str | None, shown: Mapping[int, Stamp], of_words: Stamp, bounds: Mapping[Stamp, Bounds]
) -> str | None:
    """Return the review: what the store's person said of these words, else what screening them found."""
    at = shown.get(Field.REVIEW)
    state = review_state(said)
    if state is ReviewState.REJECTED or (at is not None and at not in bounds and at > of_words):
        return said
    found = bounds[of_words].review
    if state is not ReviewState.WAITING and state is not ReviewState.DISPUTED:
        return found
    reasons = [*(found or "").split()[1:], *(said or "").split()[1:]]
    return " ".join(dict.fromkeys([state.value, *reasons]))
