"""The way to the verbs of a store: through the daemon that has it, or in this process."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from scrubjay.cli import invocation
from scrubjay.service.service import Service
from scrubjay.transports import client, local
from scrubjay.transports.client import path_of
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError
from scrubjay_sync.verbs import VERBS, Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrubjay.settings import Settings

SLOW_S = 24 * 3600.0
"""What a verb may take whose work grows with the store; it ends when the work does."""


class Way(Protocol):
    """A way to the verbs of this store."""

    def call(self, verb: str, request: Any) -> Any:
        """Run a verb. Raises what it raises."""


class Inside:
    """The verbs, in this process, behind a thread with an event loop."""

    def __init__(self, chosen: Settings) -> None:
        """Open the store. Raises ConflictError when another process has it."""
        self._portal = local.Portal()
        try:
            self._service: Service = self._portal.run(Service.configured(chosen, os.environ))
            self._verbs = Verbs(
                self._service.store,
                chosen.data_dir,
                environ=os.environ,
                now=_now,
                entropy=os.urandom,
                sleep=asyncio.sleep,
                meaning=self._service.meaning,
            )
        except BaseException:
            self._portal.close()
            raise

    def call(self, verb: str, request: Any) -> Any:
        """Run a verb."""
        return msgspec.json.decode(
            self._portal.run(self._verbs.call(verb, msgspec.json.encode(request))), type=VERBS[verb][1]
        )

    def close(self) -> None:
        """Close the store."""
        try:
            self._portal.run(self._verbs.close())
            self._portal.run(self._service.close())
        finally:
            self._portal.close()


class Daemon:
    """The verbs, through the daemon that has the store. A call that is under way does not hold up another."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def call(self, verb: str, request: Any) -> Any:
        """Send a verb to the daemon."""
        speaker = client.discover(self._data_dir)
        if speaker is None:
            raise UnavailableError("the daemon has stopped", hint="the same command again works without it")
        with speaker:
            answer = speaker.call(
                "POST", path_of("/v1/workers/sync/{verb}", verb=verb), msgspec.to_builtins(request), timeout=SLOW_S
            )
        return msgspec.convert(answer, VERBS[verb][1])

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def way_of(chosen: Settings, *, wait_s: float = invocation.WAIT_S) -> Iterator[Inside | Daemon]:
    """Open the way to the verbs: through the daemon that has the store, else here.

    Another command that has the store is waited for. Raises ConflictError when it still has it after `wait_s`.
    """

    def attempt() -> Inside | Daemon:
        running = client.discover(chosen.data_dir)
        if running is None:
            return Inside(chosen)
        running.close()
        invocation.say_version(running.running)
        return Daemon(chosen.data_dir)

    found: Inside | Daemon = local.in_turn(attempt, wait_s=wait_s, waiting=invocation.waiting)
    try:
        yield found
    finally:
        found.close()


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)
