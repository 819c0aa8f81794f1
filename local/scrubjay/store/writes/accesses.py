"""Counting how often memories are recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrubjay.store import rows
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.memories import Memories
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import OpType


class Accesses:
    """This device's counts, which go into the log now and then."""

    def __init__(self, context: WriteContext, log: OpLog, memories: Memories) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._log = log
        self._memories = memories

    def count(self, found: Mapping[str, tuple[int, Millis]], *, log_after_ms: int) -> None:
        """Add to this device's counts of how often memories were recalled, and when last.

        A total goes into the log at most once in `log_after_ms`, so that recall does not become the log's main load.
        """
        self._run_many(
            "insert into access (memory_id, total, last, logged) select id, ?2, ?3, 0 from memory where id = ?1"
            " on conflict do update set total = total + ?2, last = max(last, ?3)",
            [(memory_id, count, last) for memory_id, (count, last) in found.items()],
        )
        self._log_counts(
            self._fetch(
                "select memory_id, total, last from access where logged <= ? and logged < last"
                " and memory_id in (select value from json_each(?))",
                (self._context.now - log_after_ms, rows.array(found)),
            )
        )

    def log_all(self) -> None:
        """Put every count into the log that is ahead of it: before a copy is made that holds the log alone."""
        self._log_counts(self._fetch("select memory_id, total, last from access where logged < last"))

    def _log_counts(self, due: Sequence[tuple[Any, ...]]) -> None:
        self._log.append(
            [
                self._log.make(OpType.COUNT, ops.count_body(memory_id, ops.Counter.ACCESS, total, Millis(last)))
                for memory_id, total, last in due
            ]
        )
        self._memories.count([(memory_id, self._context.head.device, total, last) for memory_id, total, last in due])
        self._run_many("update access set logged = ? where memory_id = ?", [(self._context.now, row[0]) for row in due])
