"""Between two steps of long work: whoever asks a question meanwhile is answered first."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from scrubjay.policy import TocPolicy


async def give_way(quiet_seconds: Callable[[], float], stopping: asyncio.Event, policy: TocPolicy) -> None:
    """Wait while questions are asked: a step takes the interpreter from them, and nobody waits for it.

    `quiet_seconds` says how long ago the last question came.
    """
    until = time.monotonic() + policy.way_seconds
    while (left := policy.asked_seconds - quiet_seconds()) > 0 and time.monotonic() < until and not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), min(left, until - time.monotonic()))
