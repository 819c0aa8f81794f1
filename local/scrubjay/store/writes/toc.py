"""Writing segments that were cut, and what periods become with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from scrubjay.store import contents, rows
from scrubjay.store.contents import StoredPeriod, StoredSegment
from scrubjay.store.projections.contents import Contents
from scrubjay.store.queries.toc import Stale
from scrubjay.store.write_context import WriteContext
from scrubjay.toc import VERSION

_PLACE = rows.PLACE.replace("t.", "e.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a session was cut: `segments` in place of those that are `gone`.

    `go_on` is the place from which the session is still to be cut, None when that is done.
    """

    stale: Stale
    gone: tuple[str, ...]
    segments: tuple[StoredSegment, ...]
    go_on: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TocStep:
    """Some sessions as they were cut in one snapshot, with the periods that change; `generation` is of then."""

    cuts: tuple[Cut, ...]
    changed: tuple[StoredPeriod, ...]
    generation: str


class TocWrites:
    """The table of contents, as its job writes it."""

    def __init__(self, context: WriteContext, projected: Contents) -> None:
        self._context = context
        self._contents = projected

    def put(self, step: TocStep) -> bool:
        """Put segments in place of others, and periods as they are with them.

        What was said meanwhile is cut by a later step. Returns False, and writes nothing, when anything was erased
        since the step was planned: it may hold words of that.
        """
        if self._context.queries.toc.generation() != step.generation:
            return False
        self._context.run_many(
            "delete from toc_segment where id = ?", [(gone,) for cut in step.cuts for gone in cut.gone]
        )
        self._context.run_many(
            f"insert into toc_segment ({contents.SEGMENT_COLUMNS}) values"
            f" ({rows.placeholders(contents.SEGMENT_COLUMNS)})",
            [contents.segment_row(one) for cut in step.cuts for one in cut.segments],
        )
        self._contents.put_periods(step.changed)
        for cut in step.cuts:
            self._go_on(cut)
        return True

    def tell(self, shown: Collection[str], fresh: Collection[str], title: str, summary: str) -> None:
        """Keep what the Writer calls some events of one session, in place of what it called any of them before.

        It was `shown` more than those that are `fresh`.
        """
        found = self._context.queries.fetch(
            f"select e.session_id, min(iif(e.id in (select value from json_each(?2)), {_PLACE}, null)), min({_PLACE}),"
            f" max({_PLACE}) from event e where e.id in (select value from json_each(?1))",
            (rows.array(shown), rows.array(fresh)),
        )
        session_id, place, since, last = found[0]
        if place is not None:
            self._context.run(
                "delete from toc_told where session_id = ? and place <= ? and last >= ?", (session_id, last, place)
            )
            self._context.run(
                "insert into toc_told (session_id, place, since, last, title, summary) values (?, ?, ?, ?, ?, ?)",
                (session_id, place, since, last, title, summary),
            )

    def _go_on(self, cut: Cut) -> None:
        """Note from where a session is still to be cut, or that this is done."""
        now = self._context.queries.toc.stale_session(cut.stale.session_id)
        since = None if now is None or now.marks == cut.stale.marks else now.since
        rest = [place for place in (cut.go_on, since) if place is not None]
        if rest:
            self._context.run(
                "update toc_stale set place = ?, since = null, marks = marks + 1 where session_id = ?",
                (min(rest), cut.stale.session_id),
            )
        else:
            self._context.run("delete from toc_stale where session_id = ?", (cut.stale.session_id,))

    def start_anew(self) -> bool:
        """Empty the table where another version of the code made it. Returns whether that was so."""
        if self._context.queries.meta(contents.MADE_BY) == str(VERSION):
            return False
        self._contents.empty()
        self._context.set_meta(contents.MADE_BY, str(VERSION))
        return True
