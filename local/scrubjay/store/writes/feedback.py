"""Writing down what was said of memories."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.write_context import WriteContext

_COLUMNS = {"helped": (1, 0, 0), "missed": (0, 1, 0), "wrong": (0, 0, 1)}


class FeedbackWrites:
    """What was said of memories on this device. It stays here: a count would say less on a device that did not ask."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def add(self, memory_ids: Sequence[str], agent: str, verdict: str) -> None:
        """Count that memories helped, that they did not (`missed`), or that they are wrong."""
        self._context.run_many(
            "insert into feedback (memory_id, agent, helped, missed, wrong, last) values (?, ?, ?, ?, ?, ?)"
            " on conflict do update set helped = helped + excluded.helped, missed = missed + excluded.missed,"
            " wrong = wrong + excluded.wrong, last = max(last, excluded.last)",
            [(memory_id, agent, *_COLUMNS[verdict], int(self._context.now)) for memory_id in memory_ids],
        )
