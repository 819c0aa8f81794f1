"""Forgetting: the ops that erase, and what they do here at once."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.op_log import OpLog
from scrubjay.store.projections import full_text
from scrubjay.store.projections.erasure import Erasure
from scrubjay.store.projections.events import Events
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Grip


class Forgetting:
    """What this device erases, here and everywhere."""

    def __init__(self, context: WriteContext, log: OpLog, erasure: Erasure, events: Events) -> None:
        self._context = context
        self._log = log
        self._erasure = erasure
        self._events = events

    def memory(self, memory_id: str) -> None:
        """Erase a memory: its rows, its vector, and the contents of its ops. A tombstone keeps it gone."""
        self._forget(memory_id)

    def grip(self, grip: Grip) -> None:
        """Erase one grip of a memory that lives on: its excerpt is gone from the log too."""
        self._forget(grip.id, owner=grip.memory_id)

    def event(self, event_id: str) -> None:
        """Erase what an event says. Its row stays as a tombstone, so that the same event is never taken in again."""
        self._forget(event_id)

    def passages(self, event_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Erase some passages of an event's text, leaving every other character where it is.

        An event that has not come here yet is redacted when it comes.
        """
        self._log.append([self._log.make(OpType.BLANK, ops.blank_body(event_id, spans))])
        self._events.redact([event_id])

    def _forget(self, entity: str, owner: str | None = None) -> None:
        op = self._log.make(OpType.FORGET, ops.forget_body(entity, owner))
        self._log.append([op])
        self._erasure.tombstone([op])

    def erase_traces(self) -> None:
        """Make what full text still holds of deleted rows go."""
        full_text.erase_traces(self._context)
