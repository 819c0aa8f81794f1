"""Writing down whether memories helped."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.write_context import WriteContext


class FeedbackWrites:
    """What was said of memories on this device. It stays here: a count would say less on a device that did not ask."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def add(self, memory_ids: Sequence[str], agent: str, *, helped: bool) -> None:
        """Count that memories helped, or did not."""
        self._context.run_many(
            "insert into feedback (memory_id, agent, helped, missed, last) values (?, ?, ?, ?, ?)"
            " on conflict do update set helped = helped + excluded.helped, missed = missed + excluded.missed,"
            " last = max(last, excluded.last)",
            [(memory_id, agent, int(helped), int(not helped), self._context.now) for memory_id in memory_ids],
        )
