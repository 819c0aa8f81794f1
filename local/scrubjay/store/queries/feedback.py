"""Reading whether memories helped."""

from __future__ import annotations

from scrubjay.store.sqlite import Fetch


class FeedbackQueries:
    """What was said of memories on this device."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def counts(self, memory_id: str) -> tuple[int, int]:
        """Return how often a memory helped, and how often it did not, as everybody said together."""
        [(helped, missed)] = self._fetch(
            "select coalesce(sum(helped), 0), coalesce(sum(missed), 0) from feedback where memory_id = ?", (memory_id,)
        )
        return helped, missed
