"""Writing down the Writer's calls."""

from __future__ import annotations

from scrubjay.store.queries.writer_calls import OPEN, WriterCall
from scrubjay.store.write_context import WriteContext


class WriterCallWrites:
    """The table `writer_call`: a row is opened before a call is made, and settled after it."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def open(self, call: WriterCall, day: str) -> int:
        """Write down a call that is about to be made on a civil day, and return its number."""
        self._context.run(
            "insert into writer_call (at, day, job, writer, model, input, output, estimated, outcome)"
            " values (?, ?, ?, ?, ?, ?, ?, 1, ?)",
            (self._context.now, day, call.job, call.writer, call.model, call.input_tokens, call.output_tokens, OPEN),
        )
        [(n,)] = self._context.queries.fetch("select last_insert_rowid()")
        return int(n)

    def settle(
        self, n: int, *, input_tokens: int, output_tokens: int, model: str, estimated: bool, outcome: str, ms: int
    ) -> None:
        """Write down how a call ended, and what it cost."""
        self._context.run(
            "update writer_call set input = ?, output = ?, model = ?, estimated = ?, outcome = ?, ms = ? where n = ?",
            (input_tokens, output_tokens, model, int(estimated), outcome, ms, n),
        )

    def drop_before(self, day: str) -> None:
        """Let go of the calls of the days before one."""
        self._context.run("delete from writer_call where day < ?", (day,))
