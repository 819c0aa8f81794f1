"""Doing what is left to learn and embed now, for whoever waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from scrubjay import api
from scrubjay.api.caller import Caller

log = logging.getLogger(__name__)


class Settling:
    """Has `jobs` do what waits, in their order, by `finish`; `to_learn` and `to_embed` say what is left."""

    def __init__(
        self,
        jobs: Sequence[str],
        finish: Callable[[str], Awaitable[object]],
        *,
        to_learn: Callable[[], Awaitable[int]],
        to_embed: Callable[[], Awaitable[int]],
    ) -> None:
        self._jobs = jobs
        self._finish = finish
        self._to_learn = to_learn
        self._to_embed = to_embed

    async def settle(self, _: Caller, request: api.SettleRequest) -> api.SettleResponse:
        """Do what is left to learn and embed now, for at most `timeout_ms`, and say what is still left."""
        if request.timeout_ms > 0:
            try:
                async with asyncio.timeout(request.timeout_ms / 1000):
                    for job in self._jobs:
                        await self._finish(job)
            except TimeoutError:
                log.info("settling gave up after ms=%d", request.timeout_ms)
        return api.SettleResponse(to_learn=await self._to_learn(), to_embed=await self._to_embed())
