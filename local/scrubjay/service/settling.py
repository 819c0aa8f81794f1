"""Doing what is left to learn and embed now, for whoever waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)


class Settling:
    """Has `jobs` do what waits, in their order, by `finish`; `to_learn` and `to_embed` say what is left.

    What fails at one of the `elsewhere` (a model that does not answer) is told of, and the others go on.
    """

    def __init__(
        self,
        jobs: Sequence[str],
        elsewhere: Collection[str],
        finish: Callable[[str], Awaitable[object]],
        *,
        to_learn: Callable[[], Awaitable[int]],
        to_embed: Callable[[], Awaitable[int]],
    ) -> None:
        self._jobs = jobs
        self._elsewhere = elsewhere
        self._finish = finish
        self._to_learn = to_learn
        self._to_embed = to_embed

    async def settle(self, _: Caller, request: api.SettleRequest) -> api.SettleResponse:
        """Do what is left to learn and embed now, for at most `timeout_ms`, and say what is still left."""
        problem = None
        if request.timeout_ms > 0:
            try:
                async with asyncio.timeout(request.timeout_ms / 1000):
                    for job in self._jobs:
                        try:
                            await self._finish(job)
                        except ScrubjayError as error:
                            if job not in self._elsewhere:
                                raise
                            problem = f"{error.message}; {error.hint}" if error.hint else error.message
            except TimeoutError:
                log.info("settling gave up after ms=%d", request.timeout_ms)
        return api.SettleResponse(to_learn=await self._to_learn(), to_embed=await self._to_embed(), problem=problem)
