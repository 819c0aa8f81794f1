"""Appending events."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import rows
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.events import Events
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.records import Event


class EventWrites:
    """What this device writes of events."""

    def __init__(self, context: WriteContext, log: OpLog, events: Events) -> None:
        self._context = context
        self._log = log
        self._events = events

    def append(self, events: Sequence[Event], *, learn: bool) -> list[str]:
        """Append events that `queries.events.known` does not know, with their ops, and open or close their sessions.

        Returns their ids: an event whose id is "" gets one. The device is this one, whatever an event says.
        """
        if not events:
            return []
        device = self._context.head.device
        ids = [event.id or self._context.new_id() for event in events]
        back = [event.id for event in events if event.id]  # from an export
        redactions = self._events.redactions(back) if back else {}
        made = []
        for event_id, event in zip(ids, events, strict=True):
            row = rows.event_row(event)
            text = ops.blanked(event.text, redactions[event_id]) if event_id in redactions else event.text
            made.append((event_id, device, *row[2:9], text, *row[10:]))
        places = self._log.append_events(ids)
        self._events.add(
            [(seq, row, False, int(row[0] in redactions)) for seq, row in zip(places, made, strict=True)], learn=learn
        )
        return ids

    def distilled(self, session_id: str, n: int) -> None:
        """Note that the events of a session up to arrival number `n` have been distilled."""
        self._context.run(
            "insert into learned (session_id, n) values (?1, ?2) on conflict do update set n = max(n, ?2)",
            (session_id, n),
        )
