"""Writing segments that were cut, and what periods become with them."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import contents, rows
from scrubjay.store.contents import StoredPeriod, StoredSegment
from scrubjay.store.projections.contents import Contents
from scrubjay.store.queries.toc import Stale
from scrubjay.store.write_context import WriteContext
from scrubjay.toc import VERSION


class TocWrites:
    """The table of contents, as its job writes it."""

    def __init__(self, context: WriteContext, projected: Contents) -> None:
        self._context = context
        self._contents = projected

    def put(
        self,
        stale: Stale,
        generation: str,
        *,
        gone: Sequence[str],
        segments: Sequence[StoredSegment],
        changed: Sequence[StoredPeriod],
        go_on: str | None,
    ) -> bool:
        """Put segments in place of those that are `gone`, and periods as they are with them.

        `go_on` is the place from which the session is still to be cut, None when that is done. What came meanwhile is
        cut by the next step. Returns False, and writes nothing, when anything was erased since it was read.
        """
        now = self._context.queries.toc.stale_session(stale.session_id)
        if now is None or self._context.queries.toc.generation() != generation:
            return False
        self._context.run_many("delete from toc_segment where id = ?", [(segment_id,) for segment_id in gone])
        self._context.run_many(
            f"insert into toc_segment ({contents.SEGMENT_COLUMNS}) values"
            f" ({rows.placeholders(contents.SEGMENT_COLUMNS)})",
            [contents.segment_row(one) for one in segments],
        )
        self._contents.put_periods(changed)
        rest = [place for place in (go_on, now.since if now.marks != stale.marks else None) if place is not None]
        if rest:
            self._context.run(
                "update toc_stale set place = ?, since = null, marks = marks + 1 where session_id = ?",
                (min(rest), stale.session_id),
            )
        else:
            self._context.run("delete from toc_stale where session_id = ?", (stale.session_id,))
        return True

    def start_anew(self) -> bool:
        """Empty the table where another version of the code made it. Returns whether that was so."""
        if self._context.queries.meta(contents.MADE_BY) == str(VERSION):
            return False
        self._contents.empty()
        self._context.set_meta(contents.MADE_BY, str(VERSION))
        return True
