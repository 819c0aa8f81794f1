"""Appending events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scrubjay.store import rows
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.events import Events
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Event


class EventWrites:
    """What this device writes of events."""

    def __init__(self, context: WriteContext, log: OpLog, events: Events) -> None:
        self._context = context
        self._log = log
        self._events = events

    def append(self, events: Sequence[Event], *, learn: bool) -> None:
        """Append events that `queries.events.known` does not know, with their ops, and open or close their sessions."""
        if not events:
            return
        redactions = self._events.redactions(event.id for event in events)  # of one that comes back from an export
        events = [
            replace(event, text=ops.blanked(event.text, redactions.get(event.id, ())), device=self._context.head.device)
            for event in events
        ]
        written = [self._log.make(OpType.EVENT, ops.event_body(event)) for event in events]
        self._log.append(written)
        self._events.add(
            [
                (op.seq, rows.event_row(event), False, int(event.id in redactions))
                for op, event in zip(written, events, strict=True)
            ],
            learn=learn,
        )

    def distilled(self, session_id: str, n: int) -> None:
        """Note that the events of a session up to arrival number `n` have been distilled."""
        self._context.run(
            "insert into learned (session_id, n) values (?1, ?2) on conflict do update set n = max(n, ?2)",
            (session_id, n),
        )
