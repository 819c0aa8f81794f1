"""The order of events within their sessions: a linked list each, because events may arrive in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrubjay.index.arrays import Arrays, Growing, Ints
from scrubjay.index.table import Table


class SessionSequence:
    """Keeps the columns `prev` and `next` of a table, in the order of its columns `session` and `order`, then ids."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._ends = Growing({"first": np.int32, "last": np.int32})  # by session, plus 1: 0 is none

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays beside the table."""
        return self._ends.nbytes

    def sessions(self, count: int) -> None:
        """Make room for the sessions of the numbers below `count`."""
        self._ends.append(max(count - self._ends.used, 0), {})

    def place(self, rows: range) -> None:
        """Put new rows, sorted by session and order, into their sessions' lists."""
        table = self._table
        prev, following, order = table["prev"], table["next"], table["order"]
        first, last = self._ends["first"], self._ends["last"]
        for row, at in zip(rows, table["session"][rows.start :].tolist(), strict=True):
            before, after, key = int(last[at]) - 1, -1, order[row]
            while before >= 0 and (order[before] > key or (order[before] == key and self._is_after(before, row))):
                before, after = int(prev[before]), before
            prev[row], following[row] = before, after
            if before >= 0:
                following[before] = row
            else:
                first[at] = row + 1
            if after >= 0:
                prev[after] = row
            else:
                last[at] = row + 1

    def place_all(self) -> None:
        """Make the list of each session at once."""
        table = self._table
        session, order = table["session"], table["order"]
        rows = np.lexsort((order, session))
        rows = rows[table["alive"][rows]]
        key = np.flatnonzero((session[rows[1:]] == session[rows[:-1]]) & (order[rows[1:]] == order[rows[:-1]]))
        for at in key.tolist():  # of equal order, which is rare: let each sink to its place by id
            while at >= 0 and session[rows[at]] == session[rows[at + 1]] and self._is_after(rows[at], rows[at + 1]):
                rows[at], rows[at + 1] = rows[at + 1], rows[at]
                at -= 1  # noqa: PLW2901 - an insertion sort
        same = session[rows[1:]] == session[rows[:-1]]
        table["prev"][:] = table["next"][:] = -1
        table["prev"][rows[1:][same]] = rows[:-1][same]
        table["next"][rows[:-1][same]] = rows[1:][same]
        for name, ends in (("first", np.append(True, ~same)), ("last", np.append(~same, True))):
            some = rows[ends[: len(rows)]]
            self._ends[name][session[some]] = some + 1

    def take_out(self, row: int) -> None:
        """Join what stands before and after a row that is about to be removed."""
        prev, following = self._table["prev"], self._table["next"]
        before, after, session = int(prev[row]), int(following[row]), int(self._table["session"][row])
        if before >= 0:
            following[before] = after
        else:
            self._ends["first"][session] = after + 1
        if after >= 0:
            prev[after] = before
        else:
            self._ends["last"][session] = before + 1

    def around(self, row: int, *, before: int, after: int) -> list[int]:
        """Return the rows around one in its session, in order, without itself; fewer at the session's ends."""
        return [*reversed(self._walk("prev", row, before)), *self._walk("next", row, after)]

    def compact(self, moved: Ints) -> None:
        """Take the new number of each row after the table was compacted."""
        for column in ("prev", "next"):
            self._table[column][:] = moved[self._table[column]]
        for end in ("first", "last"):
            self._ends[end][:] = moved[self._ends[end] - 1] + 1

    def pack(self, prefix: str, arrays: Arrays) -> None:
        """Put what this holds beside the table into arrays."""
        self._ends.pack(prefix, arrays)

    def unpack(self, prefix: str, arrays: Arrays) -> None:
        """Become what was packed."""
        self._ends.unpack(prefix, arrays)

    def _walk(self, column: str, row: int, steps: int) -> list[int]:
        pointers = self._table[column]
        found: list[int] = []
        while len(found) < steps and (row := int(pointers[row])) >= 0:
            found.append(row)
        return found

    def _is_after(self, one: Any, other: Any) -> bool:
        """Whether a row comes after another one of its session."""
        order, ids = self._table["order"], self._table.ids
        return bool(order[one] > order[other] or (order[one] == order[other] and ids[one] > ids[other]))
