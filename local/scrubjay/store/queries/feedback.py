"""Reading what was said of memories."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch


class FeedbackQueries:
    """What was said of memories on this device."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def counts(self, memory_id: str) -> tuple[int, int, int]:
        """Return how often a memory helped, how often it did not, and how often it was called wrong, by everybody."""
        [(helped, missed, wrong)] = self._fetch(
            "select coalesce(sum(helped), 0), coalesce(sum(missed), 0), coalesce(sum(wrong), 0) from feedback"
            " where memory_id = ?",
            (memory_id,),
        )
        return helped, missed, wrong

    def said(self, memory_ids: Sequence[str], agent: str, verdict: str) -> dict[str, int]:
        """Return how often somebody said one of "helped", "missed" and "wrong" of each of some memories."""
        column = {"helped": "helped", "missed": "missed", "wrong": "wrong"}[verdict]
        found = self._fetch(
            f"select memory_id, {column} from feedback where agent = ?"
            " and memory_id in (select value from json_each(?))",
            (agent, rows.array(memory_ids)),
        )
        return {str(row[0]): int(row[1]) for row in found}

    def totals(self) -> dict[str, int]:
        """Return how often each was said, of all memories together."""
        [(helped, missed, wrong)] = self._fetch(
            "select coalesce(sum(helped), 0), coalesce(sum(missed), 0), coalesce(sum(wrong), 0) from feedback"
        )
        return {"helped": int(helped), "missed": int(missed), "wrong": int(wrong)}
