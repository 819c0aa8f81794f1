"""Which stored memories new ones take the place of: looked for before a write, carried out with it.

`lifecycle.supersession` decides. What it is sure of ends the earlier memory (`valid_to`, `superseded_by`) under the
cause of the write that brought the later one, so that undoing that write takes it back. What it is unsure of is noted
in the later memory's metadata (`MAY_SUPERSEDE`), where `conflicts` finds it. What no rule sees and `lifecycle.minds`
finds likely is noted there too, as a guess (`GUESSED`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from scrubjay.distill.sameness import same_words
from scrubjay.intervals import dated
from scrubjay.jobs.alike import Alike
from scrubjay.lifecycle.consolidation import GUESSED, MAY_SUPERSEDE
from scrubjay.lifecycle.minds import LIKELY, likely
from scrubjay.lifecycle.replacement import closes_circle
from scrubjay.lifecycle.supersession import NewStatement, Succession, Verdict, successions
from scrubjay.policy import MemoryPolicy
from scrubjay.store import MemoryWrite, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Layer, Memory, ReviewState, Scope, content_hash


async def find(
    new: Sequence[NewStatement],
    candidates: Sequence[Sequence[Memory]],
    policy: MemoryPolicy,
    *,
    turns: Sequence[str] = (),
) -> list[Succession]:
    """Return what statements that are about to be stored replace, and what replaces them, of the candidates of each.

    With `turns`, in which they were said, of one another too, where that was at different times.
    """

    def decide() -> list[Succession]:
        found: list[Succession] = []
        for at, (statement, like) in enumerate(zip(new, candidates, strict=True)):
            stored = [dated(memory, policy.limits.clock_skew_ms) for memory in like]
            earlier = [other for other in new[:at] if turns and other.created_at != statement.created_at]
            ruled = [*successions(statement, stored, policy.supersession)]
            ruled += successions(statement, earlier, policy.supersession)
            around = turns[at] if turns else ""
            guesses = likely(statement, [*stored, *earlier], policy.supersession, around=around)
            pairs = {(each.old, each.new) for each in ruled}
            sure = {each.new for each in ruled if each.verdict is Verdict.SUPERSEDES}
            found += [*ruled, *(one for one in guesses if one.new not in sure and (one.old, one.new) not in pairs)]
        return found

    return await asyncio.to_thread(decide)


async def candidates(alike: Alike, contents: Sequence[str], policy: MemoryPolicy) -> list[list[Memory]]:
    """Return for each text the memories that share most words with it, of those that something can replace."""
    longest = policy.supersession.max_chars
    found = await alike.to_each([one if len(one) <= longest else "" for one in contents], chars=longest)
    return [[memory for memory in memories if replaceable(memory)] for memories in found]


Place = tuple[str, str, str | None]
"""(content hash, scope, resource id): what two equal memories share."""


class Said(Protocol):
    """What may have been rejected before: a draft, or what was read from a session."""

    @property
    def content(self) -> str:
        """The words."""

    @property
    def scope(self) -> Scope:
        """Who it is for."""

    @property
    def resource_id(self) -> str | None:
        """Which project, person or session."""


async def rejected(store: Store, said: Sequence[Said], policy: MemoryPolicy) -> dict[Place, str]:
    """Return what of it a person rejected before, but for punctuation and order: the memory, by its place.

    Equal words are looked for among all that was rejected, words in another order among the last of it.
    """
    if not said:
        return {}
    hashes = {content_hash(one.content): one for one in said}
    found = await store.read(lambda q: q.review.rejected(list(hashes)))
    last, _ = await store.read(
        lambda q: q.review.page(
            [ReviewState.REJECTED.value],
            after=None,
            limit=policy.review.rejected_compared,
            chars=policy.limits.page_chars,
        )
    )
    if not last:
        return found

    def compare() -> dict[Place, str]:
        return {
            (hash_, one.scope.value, one.resource_id): memory.id
            for hash_, one in hashes.items()
            for memory in last
            if (memory.scope, memory.resource_id) == (one.scope, one.resource_id)
            and same_words(memory.content, one.content)
        }

    return found | await asyncio.to_thread(compare)


def replaceable(memory: Memory) -> bool:
    """Say whether something that is said later may end a memory. What is always loaded is the person's to change."""
    return (
        memory.superseded_by is None
        and memory.kind is not Kind.ARCHIVE
        and memory.archived_at is None
        and memory.layer not in {Layer.IDENTITY, Layer.ACTIVE}
    )


def carry_out(
    tx: Transaction, found: Sequence[Succession], ids: Mapping[str, str], writes: Sequence[MemoryWrite]
) -> list[MemoryWrite]:
    """Return some writes of new memories with what follows for the earlier ones.

    `ids` are those of the new memories, by the ids that their statements had when they were looked for: one that is
    missing was not stored after all. A memory that was changed, replaced or forgotten meanwhile is left as it is.
    """
    by_id = {write.memory_id: write for write in writes}
    stored = tx.queries.memories.by_id([one for each in found for one in (each.old, each.new) if one not in ids])
    ended: dict[str, str] = {}
    unsure: dict[str, dict[str, list[str]]] = {}
    order = list(by_id)

    def alive(memory_id: str) -> bool:
        return memory_id in by_id or (memory_id in stored and replaceable(stored[memory_id]))

    def successor_of(memory_id: str) -> str | None:
        return ended.get(memory_id) or tx.queries.memories.successor(memory_id)

    for each in sorted(found, key=lambda one: (one.at, one.old, one.new)):
        old, later = ids.get(each.old, each.old), ids.get(each.new, each.new)
        if not (alive(old) and alive(later)) or old == later or old in ended:
            continue
        if each.verdict is Verdict.UNSURE:
            noted = unsure.setdefault(later, {MAY_SUPERSEDE: [], GUESSED: []})
            for key in (MAY_SUPERSEDE, GUESSED) if each.why == LIKELY else (MAY_SUPERSEDE,):
                noted[key].append(old)
        elif not closes_circle(old, later, successor_of):
            ended[old] = later
            _add(by_id, order, old, ending(later, each.at, stored.get(old), by_id.get(old)))
    for later, noted in unsure.items():
        known = by_id[later].fields.get(Field.METADATA) or {} if later in by_id else stored[later].metadata
        left = {key: [old for old in olds if old not in ended and later not in ended] for key, olds in noted.items()}
        more = {key: _joined(known.get(key), olds) for key, olds in left.items() if olds}
        if more:
            _add(by_id, order, later, {Field.METADATA: {**known, **more}})
    return [by_id[memory_id] for memory_id in order]


def _joined(before: object, more: Sequence[str]) -> list[str]:
    noted = [one for one in before if isinstance(one, str)] if isinstance(before, list) else []
    return list(dict.fromkeys([*noted, *more]))


def _add(by_id: dict[str, MemoryWrite], order: list[str], memory_id: str, fields: Mapping[Field, Any]) -> None:
    write = by_id.get(memory_id)
    if write is None:
        order.append(memory_id)
        by_id[memory_id] = MemoryWrite(memory_id=memory_id, fields=fields)
    else:
        by_id[memory_id] = MemoryWrite(
            memory_id=memory_id, fields={**write.fields, **fields}, grips=write.grips, names=write.names
        )


def ending(successor: str, at: Millis, memory: Memory | None, write: MemoryWrite | None = None) -> dict[Field, Any]:
    """Return the registers of a memory whose place another takes at a time. One that ended before keeps that end."""
    said = write.fields if write is not None else {}
    start = memory.valid_from if memory is not None else said.get(Field.VALID_FROM)
    end = memory.valid_to if memory is not None else said.get(Field.VALID_TO)
    fields: dict[Field, Any] = {Field.SUPERSEDED_BY: successor}
    until = at if start is None else max(at, start)
    if end is None or end > until:
        fields[Field.VALID_TO] = int(until)
    return fields
