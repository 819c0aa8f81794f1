"""The operations of a store in a command's own process, behind a thread with an event loop."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from scrubjay.service.application import Application
from scrubjay.transports import local
from scrubjay_shared.clock import Millis
from scrubjay_sync.api.registry import OPERATIONS
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.operations.dispatch import Dispatcher

if TYPE_CHECKING:
    from scrubjay.settings import Settings


class LocalTransport:
    """Calls in this process, which holds the store open until `close`."""

    def __init__(self, chosen: Settings) -> None:
        """Open the store. Raises ConflictError when another process has it."""
        self._portal = local.Portal()
        try:
            self._service: Application = self._portal.run(Application.configured(chosen, os.environ))
            client = SyncClient(
                self._service.store,
                chosen.store_dir,
                account=chosen.account,
                environ=os.environ,
                now=_now,
                entropy=os.urandom,
                sleep=asyncio.sleep,
                meaning=self._service.meaning,
            )
            self._dispatcher = Dispatcher(client)
        except BaseException:
            self._portal.close()
            raise

    def call(self, name: str, request: Any) -> Any:
        """Run an operation. Raises what it raises."""
        response = self._portal.run(self._dispatcher.call(name, msgspec.json.encode(request)))
        return msgspec.json.decode(response, type=OPERATIONS[name].response)

    def close(self) -> None:
        """Close the store."""
        try:
            self._portal.run(self._dispatcher.close())
            self._portal.run(self._service.close())
        finally:
            self._portal.close()


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)
