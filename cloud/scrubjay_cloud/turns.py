"""Taking turns at what is costly and comes from anybody: by network, one after another, and few wait.

Theory of operation. Who waits stands in line with others of the same network, and the lines are served in rotation: a
thousand requests from one network hold up one of another by a turn. When all places are taken, somebody of a network
with none takes the place of the last one in the longest line; else whoever comes is told when to come again. Those who
are known stand apart, and are served first: what they may ask for is limited before they come here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scrubjay_cloud.policy import TurnPolicy
from scrubjay_shared.errors import TooManyError

_Lines = OrderedDict[bytes, deque[asyncio.Future[None]]]


class Turns:
    """A few turns at a time, and the lines of those who wait for one."""

    def __init__(self, policy: TurnPolicy) -> None:
        self._policy = policy
        self._under_way = 0
        self._known: _Lines = OrderedDict()
        self._unknown: _Lines = OrderedDict()

    @asynccontextmanager
    async def taken(self, whose: bytes, *, known: bool = False) -> AsyncIterator[None]:
        """Wait for a turn and take it. Raises TooManyError when there is no place to wait in."""
        if self._under_way < self._policy.at_once:
            self._under_way += 1
        else:
            await self._waited(self._known if known else self._unknown, whose)
        try:
            yield
        finally:
            self._pass_on()

    async def _waited(self, lines: _Lines, whose: bytes) -> None:
        """Stand in line; whoever ends calls us with the turn that they had."""
        own = lines.get(whose, deque())
        if len(own) >= self._policy.share:
            raise _busy(self._policy)
        if sum(map(len, lines.values())) >= self._policy.waiting:
            longest = max(lines.values(), key=len)
            if len(longest) <= len(own) + 1:
                raise _busy(self._policy)
            last = longest.pop()
            if not last.done():  # given up a moment ago
                last.set_exception(_busy(self._policy))
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(place)
        lines[whose] = own
        try:
            await place
        except BaseException:
            if place in own:
                own.remove(place)
                if not own:
                    del lines[whose]
            elif place.done() and not place.cancelled() and place.exception() is None:
                self._pass_on()  # the turn came as this request was given up
            raise

    def _pass_on(self) -> None:
        for lines in (self._known, self._unknown):
            while lines:
                whose, line = lines.popitem(last=False)
                place = line.popleft()
                if line:
                    lines[whose] = line  # behind the others
                if not place.done():  # given up a moment ago
                    place.set_result(None)
                    return
        self._under_way -= 1


def _busy(policy: TurnPolicy) -> TooManyError:
    return TooManyError(
        "too many log in at the same time",
        hint="wait as long as the header Retry-After says",
        retry_after=policy.again_s,
    )
