"""Noting what a session was handed."""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay.store.write_context import WriteContext
from scrubjay_shared.clock import DAY_MINUTES

_DAY_MS = DAY_MINUTES * 60_000


class Handed:
    """What sessions were handed. It is of this device alone: agents run here."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def note(self, session_id: str, refs: Iterable[str], *, kept_days: int) -> None:
        """Note what a session is handed now; what is older than `kept_days` is let go."""
        now = self._context.now
        self._context.run_many(
            "insert into handed (session_id, ref, at) values (?1, ?2, ?3) on conflict do nothing",
            [(session_id, ref, now) for ref in refs],
        )
        self._context.run("delete from handed where at < ?", (now - kept_days * _DAY_MS,))

    def clear(self, session_id: str) -> None:
        """Let go of what a session was handed: its context is gone, and may be handed again."""
        self._context.run("delete from handed where session_id = ?", (session_id,))
