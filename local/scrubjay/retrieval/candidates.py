"""The candidates of one kind of document during one query: who may be seen, who is considered, what each has earned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Mask
from scrubjay.index.index import Index
from scrubjay.index.table import Table
from scrubjay.retrieval.filters import Filters, Rows, found_by_members, members, superseded
from scrubjay.retrieval.query import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How filters apply to one kind: who may be seen, who is asked for (None: all), and who is of a time."""

    visible: Callable[[Index, Filters], Mask | None]
    wanted: Callable[[Index, Filters], Mask | None]
    within: Callable[[Table, Rows | None, int, int], Mask]


@dataclass(slots=True)
class CandidateSet:
    """One table during one query: who may be seen, who is wanted, and the rows considered with what each has earned.

    `seen`, `wanted` and `pool` are masks over the table, None for every living row; the pool is those of the seen that
    may be proposed. `rows` ascend; all arrays beside them are parallel to them.
    """

    kind: str
    table: Table
    selection: Selection
    seen: Mask | None
    wanted: Mask | None
    count: int  # how many rows are seen
    as_of: int | None = None  # the moment at which is asked what held, None for now
    pool: Mask | None = None
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    found: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # rows with any reason to be a hit
    matched: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    cosine: Floats | None = None
    around: Floats | None = None  # cosine of the nearest turn around its sources, NaN without any
    parts: dict[str, Floats] = field(default_factory=dict)

    @property
    def shown(self) -> Mask:
        """Which of the rows considered become hits."""
        return self.found if self.wanted is None else self.found & self.wanted[self.rows]

    @property
    def superseded(self) -> Mask:
        """Which of the rows considered another document had taken the place of."""
        if "superseded" not in self.table.kind.columns:
            return np.zeros(len(self.rows), np.bool_)
        return superseded(self.table, self.rows, self.as_of)

    def searched(self, mask: Mask | None) -> Mask | None:
        """Return a mask without archives that are found by the words of what they hold."""
        if "has_members" not in self.table.kind.columns or not (archives := found_by_members(self.table)).any():
            return mask
        return np.asarray((self.table["alive"] if mask is None else mask) & ~archives, np.bool_)

    def standing(self, mask: Mask | None) -> Mask | None:
        """Return a mask without what was put away into another: as things are listed, not as they are found."""
        if "is_member" not in self.table.kind.columns or not (inside := members(self.table, self.as_of)).any():
            return mask
        return np.asarray((self.table["alive"] if mask is None else mask) & ~inside, np.bool_)

    def visible(self, rows: npt.NDArray[Any]) -> Mask:
        """Return which rows are seen; -1 is no row."""
        return (rows >= 0) if self.seen is None else (rows >= 0) & self.seen[rows]

    def within(self, rows: Rows | None, start: int, end: int) -> Mask:
        """Return which rows (of all the table without `rows`) are of a time."""
        return self.selection.within(self.table, rows, start, end)

    def of(self, mask: Mask | None) -> Rows:
        """Return the rows of a mask over the table, None for every living row."""
        return np.flatnonzero(self.table["alive"] if mask is None else mask)

    def exclude(self) -> None:
        """Take no part: nothing is seen."""
        self.seen, self.count = np.zeros(len(self.table), np.bool_), 0

    def total(self) -> Floats:
        """Return the sum of the parts of each row considered."""
        total = np.zeros(len(self.rows), np.float32)
        for part in self.parts.values():
            total += part
        return total

    def consider(self, more: Rows) -> None:
        """Add rows that no signal proposed, with nothing earned."""
        rows = distinct(self.table, [self.rows, more])
        if len(rows) > len(self.rows):
            at = np.searchsorted(rows, self.rows)

            def widened(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
                wider = np.zeros(len(rows), values.dtype)
                wider[at] = values
                return wider

            self.found, self.matched = widened(self.found), widened(self.matched)
            self.cosine = None if self.cosine is None else widened(self.cosine)
            if self.around is not None:
                beside = np.full(len(rows), np.nan, np.float32)
                beside[at] = self.around
                self.around = beside
            self.parts = {name: widened(part) for name, part in self.parts.items()}
            self.rows = rows


Candidates = dict[str, CandidateSet]
"""By kind of document, events first."""


def linked(index: Index, candidates: Candidates, kind: str) -> tuple[Rows, Rows]:
    """Return the links between rows considered, as indices among them: of documents of a kind, and of events."""
    documents, events = candidates[kind], candidates["event"]
    document, event = index.links[kind].pairs()
    both = marked(documents.table, documents.rows)[document] & marked(events.table, events.rows)[event]
    return np.searchsorted(documents.rows, document[both]), np.searchsorted(events.rows, event[both])


def distinct(table: Table, parts: Sequence[npt.NDArray[Any]]) -> Rows:
    """Return the rows of all parts, each once, ascending; -1 is no row. Marking them is faster than sorting them."""
    mask = np.zeros(len(table) + 1, np.bool_)  # the last is row -1
    for rows in parts:
        mask[rows] = True
    return np.flatnonzero(mask[:-1])


def marked(table: Table, rows: Rows) -> Mask:
    """Return a mask over a table of some of its rows."""
    mask = np.zeros(len(table), np.bool_)
    mask[rows] = True
    return mask
