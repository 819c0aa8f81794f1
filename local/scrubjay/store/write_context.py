"""What the parts of one transaction share: the connection, the time, where the log of this device ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.store.causes import Cause
from scrubjay.store.changes import Changes
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Hlc, Millis, ulid

START = Hlc(0)


@dataclass(slots=True)
class LogHead:
    """Where this device's part of the log ends, and its clock. What a transaction changes of it is undone with it."""

    device: str = ""
    seq: int = 0
    hlc: Hlc = START

    def copy(self) -> LogHead:
        """Return it as it is now."""
        return replace(self)

    def set(self, held: LogHead) -> None:
        """Go back to what `copy` returned."""
        self.device, self.seq, self.hlc = held.device, held.seq, held.hlc


@dataclass(slots=True)
class WriteContext:
    """One transaction. `now` is the one time of all that it writes; `entropy(n)` gives n random bytes.

    `cause` is what it writes for; None for what is no run, request or plan.
    """

    connection: Any
    queries: Queries
    head: LogHead
    now: Millis
    entropy: Callable[[int], bytes]
    cause: Cause | None = None
    changes: Changes = field(default_factory=Changes)

    def new_id(self, at: Millis | None = None) -> str:
        """Return a fresh ULID of a time (now, unless told)."""
        return ulid(self.now if at is None else at, self.entropy(10))

    def run(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Run a statement that returns nothing."""
        self.connection.execute(sql, params)

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of some rows of values."""
        if values:
            self.connection.executemany(sql, values)

    def set_meta(self, key: str, value: str) -> None:
        """Keep one setting of the file itself."""
        self.run("insert or replace into meta (key, value) values (?, ?)", (key, value))

    def note_rewritten(self) -> None:
        """Note that events changed in a way that the log does not tell a copy of the index."""
        self.set_meta("rewritten", str(int(self.queries.meta("rewritten") or 0) + 1))
