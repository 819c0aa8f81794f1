"""Work that is long for a long text only: in a thread then, else at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from scrubjay.garbage import uncollected

T = TypeVar("T")

SMALL_CHARS = 4_000
"""Up to this much text is redacted on the loop: a hop to a thread costs more."""


async def off_loop(chars: int, work: Callable[[], T]) -> T:
    """Run what takes long on a long text in a thread, and on a short one at once: a hop to a thread costs more."""
    return await asyncio.to_thread(work) if chars > SMALL_CHARS else work()


def kept_from_collector(work: Callable[[], T]) -> T:
    """Return what `work` makes of a whole file. The garbage collector never looks at it."""
    with uncollected(kept=True):
        return work()
