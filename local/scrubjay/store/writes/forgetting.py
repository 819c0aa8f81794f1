"""Forgetting: the ops that erase, and what they do here at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scrubjay.store.op_log import OpLog
from scrubjay.store.projections import full_text
from scrubjay.store.projections.erasure import Erasure
from scrubjay.store.projections.events import Events
from scrubjay.store.queries.tombstones import Statement
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops, tombstones
from scrubjay_shared.ops import ForgottenWords, OpType
from scrubjay_shared.records import Grip, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is refused from a forget on: `texts` that say the same; `event`: an import of an event that says the same.

    In `project` alone, and where there is none; None for everywhere.
    """

    texts: tuple[str, ...] = ()
    event: str | None = None
    project: str | None = None


class Forgetting:
    """What this device erases, here and everywhere."""

    def __init__(self, context: WriteContext, log: OpLog, erasure: Erasure, events: Events) -> None:
        self._context = context
        self._log = log
        self._erasure = erasure
        self._events = events

    def memory(self, memory_id: str, refusal: Refusal | None = None) -> None:
        """Erase a memory: its rows, its vector, and the contents of its ops. A tombstone keeps it gone.

        With a `refusal`, a keyed digest keeps its words away too, under whatever id they come.
        """
        self._forget(memory_id, words=self._words(refusal))

    def grip(self, grip: Grip) -> None:
        """Erase one grip of a memory that lives on: its excerpt is gone from the log too."""
        self._forget(grip.id, owner=grip.memory_id)

    def event(self, event_id: str, refusal: Refusal | None = None) -> None:
        """Erase what an event says. Its row stays as a tombstone, so that the same event is never taken in again."""
        self._forget(event_id, words=self._words(refusal))

    def passages(self, event_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Erase some passages of an event's text, leaving every other character where it is.

        An event that has not come here yet is redacted when it comes.
        """
        self._log.append([self._log.make(OpType.BLANK, ops.blank_body(event_id, spans))])
        self._events.redact([event_id])

    def again(self, erasures: Sequence[Op]) -> int:
        """Erase here what another file of this store says was erased, as own ops anew. Returns how many ops that took.

        Their bodies name ids, places in texts and keyed digests, and no words.
        """
        for one in erasures:
            op = self._log.make(OpType(one.type), one.body)
            self._log.append([op])
            if op.type == OpType.BLANK:
                self._events.redact([ops.entity_of(op)])
            else:
                self._erasure.tombstone([op])
        if erasures:
            full_text.erase_traces(self._context)
            self._context.changes.erased = True
        return len(erasures)

    def left_of(self, said: Sequence[Statement]) -> list[str | None]:
        """Return what may be stored of each text, as `queries.tombstones.left_of`, and count what is refused."""
        left = self._context.queries.tombstones.left_of(said)
        refused = [one for one, now in zip(said, left, strict=True) if now != one.text]
        if refused:
            self.count(self._refusing(refused))
        return left

    def count(self, entities: Iterable[str]) -> None:
        """Count that the words of something forgotten were refused here once more."""
        now = int(self._context.now)
        self._context.run_many(
            "insert into tombstone_hit (entity, times, last) values (?1, 1, ?2)"
            " on conflict do update set times = times + 1, last = ?2",
            [(entity, now) for entity in entities],
        )

    def lift(self, said: Sequence[Statement], memory_id: str) -> list[str]:
        """Refuse some words no more, and the sentences in them: they are in a memory by the person's own act.

        Returns whose words they were. What was forgotten stays so: its id and its contents never come back. The op is
        sent where that memory lives, before it, so that no device sees the words before it knows that they may be.
        """
        if not self._context.queries.tombstones.any_words():
            return []
        found = self._refusing(said)
        lifted = [self._log.make(OpType.FORGET, ops.forget_body(entity, memory_id, lifted=True)) for entity in found]
        self._log.append(lifted)
        self._erasure.tombstone(lifted)
        return found

    def _refusing(self, said: Sequence[Statement]) -> list[str]:
        """Return of which forgotten things some texts, or sentences in them, are the words."""
        parts = [
            Statement(text=one.text[start:end], project=one.project)
            for one in said
            for start, end in tombstones.sentences(one.text)
        ]
        found = dict.fromkeys(
            entity for one in self._context.queries.tombstones.refusing([*said, *parts]) for entity in one
        )
        return list(found)

    def _forget(self, entity: str, owner: str | None = None, words: ForgottenWords | None = None) -> None:
        op = self._log.make(OpType.FORGET, ops.forget_body(entity, owner, words))
        self._log.append([op])
        self._erasure.tombstone([op])

    def _words(self, refusal: Refusal | None) -> ForgottenWords | None:
        """Return what is kept of words that are refused from now on; None where they have no form."""
        if refusal is None:
            return None
        event = None if refusal.event is None else tombstones.event_form(refusal.event)
        forms = {form for text in refusal.texts for form in tombstones.forgotten_forms(text)}
        if event is not None:
            forms.add(event)
        if not forms:
            return None
        key_id, key = self._key()
        return ForgottenWords(
            key=key_id,
            digests=tuple({tombstones.digest(key, form) for form in forms}),
            project=b"" if refusal.project is None else tombstones.project_digest(key, refusal.project),
        )

    def _key(self) -> tuple[str, bytes]:
        """Return the key for digests: the first that is known here, or else a new one, which the log then has."""
        for known in self._context.queries.tombstones.keys().items():
            return known
        key_id, key = self._context.new_id(), self._context.entropy(tombstones.KEY_BYTES)
        op = self._log.make(OpType.FORGET, ops.new_key_body(key_id, key))
        self._log.append([op])
        self._erasure.tombstone([op])
        return key_id, key

    def erase_traces(self) -> None:
        """Make what full text still holds of deleted rows go."""
        full_text.erase_traces(self._context)
