"""Alarms of a store's file as somebody else has it open: read only, and without waiting for anybody."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from scrubjay_io.sqlite import ERRORS, reader
from scrubjay_shared.clock import Millis

WAIT_S = 0.2
"""For another connection: a command has ended, and its person reads the result."""


class Waiting(NamedTuple):
    """An alarm that nobody has acknowledged: since when (UTC milliseconds), of what code, in words, what to do."""

    at: Millis
    code: str
    message: str
    hint: str


def waiting(path: Path, codes: Sequence[str], most: int) -> list[Waiting]:
    """Return some alarms of a few kinds that nobody has acknowledged, oldest first.

    A file that cannot be read tells nothing here: whatever is wrong with it is told by what uses it.
    """
    if not path.exists():
        return []
    try:
        with closing(reader(path, timeout=WAIT_S)) as connection:
            any_of = ", ".join("?" * len(codes))
            found = connection.execute(
                f"select at, code, message, hint from alarm where code in ({any_of}) order by id limit ?",
                (*codes, most),
            ).fetchall()
    except ERRORS:
        return []
    return [Waiting(Millis(at), str(code), str(message), str(hint)) for at, code, message, hint in found]
