"""When memory was switched off in which session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Unremembered:
    """A session in which memory is off: whose, and since when this device knows."""

    session_id: str
    agent: str
    seen: Millis


class UnrememberedQueries:
    """The sessions of this device in which memory is or was switched off."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def spans(self, session_ids: Iterable[str]) -> dict[str, list[tuple[int, int | None]]]:
        """Return from when to when memory was off in some sessions; no end where it still is."""
        found: dict[str, list[tuple[int, int | None]]] = {}
        for session_id, since, until in self._fetch(
            "select session_id, since, until from unremembered where session_id in (select value from json_each(?))",
            (rows.array(sorted(set(session_ids))),),
        ):
            found.setdefault(str(session_id), []).append((int(since), until))
        return found

    def off(self) -> list[Unremembered]:
        """Return the sessions in which memory is off, the latest first."""
        return [
            Unremembered(session_id=str(row[0]), agent=str(row[1]), seen=Millis(row[2]))
            for row in self._fetch(
                "select session_id, agent, seen from unremembered where until is null order by seen desc, session_id"
            )
        ]
