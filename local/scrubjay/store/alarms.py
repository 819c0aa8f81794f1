"""Alarms of a store's file as somebody else has it open: read only, and without waiting for anybody."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from scrubjay_io.sqlite import ERRORS, driver

WAIT_S = 0.2
"""For another connection: a command has ended, and its person reads the result."""


def waiting(path: Path, codes: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Return (message, what to do) of some alarms of a few kinds that nobody has acknowledged, oldest first.

    A file that cannot be read tells nothing here: whatever is wrong with it is told by what uses it.
    """
    if not path.exists():
        return []
    try:
        with closing(driver.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as connection:
            found = connection.execute(
                f"select message, hint from alarm where code in ({', '.join('?' * len(codes))}) order by id limit ?",
                (*codes, most),
            ).fetchall()
    except ERRORS:
        return []
    return [(str(message), str(hint)) for message, hint in found]
