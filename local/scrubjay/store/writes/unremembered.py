"""Noting in which sessions memory is switched off, and that it is on again."""

from __future__ import annotations

from scrubjay.store.write_context import WriteContext
from scrubjay_shared.clock import Millis


class UnrememberedWrites:
    """Sessions in which memory is off. They are of this device alone: their transcripts are here."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def switch_off(self, session_id: str, *, agent: str, since: Millis, seen: Millis) -> None:
        """Have nothing stored of a session from a time on; nothing changes where that is so already."""
        self._context.run(
            "insert into unremembered (session_id, since, agent, seen) select ?1, ?2, ?3, ?4"
            " where not exists (select 1 from unremembered where session_id = ?1 and until is null)"
            " on conflict do update set until = null",
            (session_id, since, agent, seen),
        )

    def switch_on(self, session_id: str, until: Millis) -> None:
        """Have a session stored again from a time on, which is later than when it was switched off."""
        self._context.run(
            "update unremembered set until = ?2 where session_id = ?1 and until is null and seen < ?2",
            (session_id, until),
        )
