"""How a command reaches the operations of a store: through the daemon that has it, or in its own process."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from scrubjay.accounts import MAIN
from scrubjay.cli import invocation
from scrubjay.transports import client, local
from scrubjay.transports.client import path_of
from scrubjay.transports.http.routes import PLUGIN_PATH
from scrubjay_shared.errors import UnavailableError
from scrubjay_sync.api.registry import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrubjay.settings import Settings

SLOW_S = 24 * 3600.0
"""Seconds that an operation may take whose work grows with the store; it ends when the work does."""


class Transport(Protocol):
    """A way to call the operations of one store."""

    def call(self, name: str, request: Any) -> Any:
        """Run an operation. Raises what it raises."""

    def close(self) -> None:
        """Release what the transport holds."""


class DaemonTransport:
    """Calls through the daemon that has the store. A call under way does not hold up another."""

    def __init__(self, data_dir: Path, account: str) -> None:
        self._data_dir = data_dir
        self._account = account

    def call(self, name: str, request: Any) -> Any:
        """Send a request to the daemon and return the response. Raises UnavailableError when the daemon has stopped."""
        found = client.discover(self._data_dir, account=self._account)
        if found is None:
            raise UnavailableError("the daemon has stopped", hint="the same command again works without it")
        with found:
            response = found.call(
                "POST", path_of(PLUGIN_PATH, name=f"sync.{name}"), msgspec.to_builtins(request), timeout=SLOW_S
            )
        return msgspec.convert(response, OPERATIONS[name].response)

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""


@contextmanager
def connect(chosen: Settings, *, wait_s: float = invocation.WAIT_S) -> Iterator[Transport]:
    """Connect to the operations of a store: through the daemon that has it, else in this process.

    Another command that has the store is waited for. Raises ConflictError when it still has it after `wait_s`.
    """

    def attempt() -> Transport:
        running = client.discover(chosen.data_dir)
        if running is None:
            # Imported on first use: with a daemon, a command needs neither the store nor cryptography.
            opened: Transport = import_module("scrubjay_sync.local_transport").LocalTransport(chosen)
            return opened
        running.close()
        if running.running is not None and chosen.account != MAIN:
            client.require_same_version(running.running)
        invocation.say_version(running.running)
        return DaemonTransport(chosen.data_dir, chosen.account)

    found: Transport = local.in_turn(attempt, wait_s=wait_s, waiting=invocation.waiting)
    try:
        yield found
    finally:
        found.close()
