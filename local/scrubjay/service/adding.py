"""Drafts become memories: what is compared before the write, and the write itself. `service.memories` calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scrubjay.api import access
from scrubjay.api.caller import Caller, Principal
from scrubjay.distill.sameness import same_words
from scrubjay.intervals import marked, told
from scrubjay.jobs import successions
from scrubjay.jobs.alike import Alike
from scrubjay.lifecycle.supersession import NewStatement, Succession, contradicting, repeated
from scrubjay.lifecycle.trust import is_believed, risks_of, waiting
from scrubjay.policy import DEFAULT, MemoryPolicy, ReviewPolicy
from scrubjay.service import refusals, transfer
from scrubjay.store import MemoryWrite, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Memory, MemoryDraft, Trust, content_hash

Embedded = tuple[int, Sequence[bytes]]
"""The space of some vectors, and the vector of each draft."""


def review_of(draft: MemoryDraft, policy: ReviewPolicy, *, contradicts: bool = False) -> str | None:
    """Return the review of what somebody else than the person adds; None where nobody need look at it."""
    return waiting(
        risks_of(
            draft.content,
            trust=draft.trust,
            scope=draft.scope,
            kind=draft.kind,
            policy=policy,
            contradicts=contradicts,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Drafts, and what is there already that each says, replaces or may not say again. `reviews` are by place."""

    drafts: Sequence[MemoryDraft]
    hashes: Sequence[str]
    statements: Sequence[NewStatement]
    replaced: Sequence[Succession]
    same: Sequence[Memory | None]
    reviews: Sequence[str | None]
    rejected: Mapping[successions.Place, str]
    may_name_existing: bool


async def compared(
    store: Store, caller: Caller, drafts: Sequence[MemoryDraft], policy: MemoryPolicy, *, alike: Alike, now: Millis
) -> Compared:
    """Compare drafts that were cleaned with what is stored. What the person says is neither reviewed nor refused."""
    statements = [_statement(place, draft, now) for place, draft in enumerate(drafts)]
    candidates = await successions.candidates(alike, [one.content for one in statements], policy)
    replaced = await successions.find(statements, candidates, policy)
    is_person = caller.principal is Principal.PERSON
    contradicts = contradicting(replaced)

    def look() -> Compared:
        return Compared(
            drafts=drafts,
            hashes=[content_hash(draft.content) for draft in drafts],
            statements=statements,
            replaced=replaced,
            same=[_same(one, found) for one, found in zip(drafts, candidates, strict=True)],
            reviews=[
                None if is_person else review_of(draft, policy.review, contradicts=one.id in contradicts)
                for draft, one in zip(drafts, statements, strict=True)
            ],
            rejected={},
            may_name_existing=access.may_name_existing(caller),
        )

    found = await asyncio.to_thread(look)
    return found if is_person else replace(found, rejected=await successions.rejected(store, drafts, policy))


class Added(NamedTuple):
    """What became of a draft: the memory that says it, whether that is new, and whether it had been forgotten."""

    memory_id: str
    created: bool = False
    lifted: bool = False


@dataclass(slots=True)
class Adding:
    """Compared drafts on their way into a store, in one transaction. `answers` has what became of each."""

    tx: Transaction
    caller: Caller
    compared: Compared
    embedded: Embedded | None
    answers: list[Added] = field(default_factory=list)
    writes: dict[str, MemoryWrite] = field(default_factory=dict)
    placed: list[tuple[str, str, bytes]] = field(default_factory=list)
    again: list[Succession] = field(default_factory=list)

    def carry_out(self) -> Sequence[Added]:
        """Write what is new, with what it replaces. Returns what became of each draft."""
        all_, tx = self.compared, self.tx
        known = {
            (said, scope, resource): found
            for said, scope, resource, found in tx.queries.memories.duplicates(all_.hashes)
        }
        unchanged = tx.queries.memories.content_hashes([memory.id for memory in all_.same if memory is not None])
        for place, (draft, said) in enumerate(zip(all_.drafts, all_.hashes, strict=True)):
            key = (said, draft.scope.value, draft.resource_id)
            twin = all_.same[place]
            if key not in known and twin is not None and unchanged.get(twin.id) == twin.content_hash:
                known[key] = twin.id
            if key in all_.rejected:
                self.answers.append(Added(all_.rejected[key]))
            elif key in known and not self._outranks(place, known[key]):
                self._name(draft, known[key])
            else:
                known[key] = self._make(place)
        ids = {all_.statements[place].id: added.memory_id for place, added in enumerate(self.answers) if added.created}
        found = [*all_.replaced, *self.again]
        tx.memories.write(successions.carry_out(tx, found, ids, list(self.writes.values())))
        if self.embedded is not None:
            tx.vectors.put(self.embedded[0], self.placed)
        return self.answers

    def _outranks(self, place: int, there: str) -> bool:
        """Whether a draft is trusted more than the memory that says the same, which it then takes the place of.

        Repeating raises no trust. With a name, it is bound to the memory that is there.
        """
        draft = self.compared.drafts[place]
        if there in self.writes or draft.trust is Trust.IMPORT or _names(draft):
            return False
        memory = self.tx.queries.memories.get(there)
        if is_believed(memory.trust, draft.trust):
            return False
        self.again.append(repeated(there, self.compared.statements[place].id, draft.trust, at=self.tx.now))
        return True

    def _make(self, place: int) -> str:
        draft, review = self.compared.drafts[place], self.compared.reviews[place]
        made = self.tx.new_id(told(draft.created_at, self.tx.now, DEFAULT.limits.clock_skew_ms))
        fields = transfer.fields_of(draft, self.tx.now) | transfer.present({Field.REVIEW: review})
        self.writes[made] = write = MemoryWrite(memory_id=made, fields=fields, names=_names(draft))
        self.answers.append(Added(made, created=True, lifted=refusals.lifted(self.tx, self.caller, write)))
        if self.embedded is not None:
            self.placed.append((made, self.compared.hashes[place], self.embedded[1][place]))
        return made

    def _name(self, draft: MemoryDraft, there: str) -> None:
        """Bind the names of a draft to the memory that says the same."""
        self.answers.append(Added(there))
        names = _names(draft)
        if names and self.compared.may_name_existing:
            earlier = self.writes.get(there, MemoryWrite(memory_id=there, fields={}))
            fields = dict(earlier.fields)
            is_named = self.tx.queries.memories.is_named(there)
            if draft.name is not None and not is_named and Field.NAME not in fields:
                fields[Field.NAME] = draft.name
            self.writes[there] = replace(earlier, fields=fields, names=(*earlier.names, *names))


def _names(draft: MemoryDraft) -> tuple[str, ...]:
    return tuple(name for name in (draft.name, *draft.aliases) if name is not None)


def _same(draft: MemoryDraft, candidates: Sequence[Memory]) -> Memory | None:
    """Return the memory that says the same in the same scope, but for punctuation and the order of its parts."""
    return next(
        (
            memory
            for memory in candidates
            if (memory.scope, memory.resource_id) == (draft.scope, draft.resource_id)
            and same_words(memory.content, draft.content)
        ),
        None,
    )


def _statement(place: int, draft: MemoryDraft, now: Millis) -> NewStatement:
    """Return what a draft says, under an id that no memory has."""
    skew = DEFAULT.limits.clock_skew_ms
    return NewStatement(
        id=f"draft {place}",
        content=draft.content,
        scope=draft.scope,
        resource_id=draft.resource_id,
        trust=draft.trust,
        created_at=told(draft.created_at, now, skew),
        valid_from=draft.valid_from,
        metadata=marked({}, draft.created_at, now, skew),
    )
