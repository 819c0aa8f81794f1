"""What the service asks of a store of bodies, and how one is opened: its client is loaded only where one is set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

from scrubjay_cloud.settings import Settings
from scrubjay_shared.errors import InvalidError

Observed = Callable[[str, float, int, bool], None]
"""Told of every request to the store: its kind, its seconds, the bytes of its bodies, and whether it held."""


class BodyStore(Protocol):
    """Bodies by their keys.

    Every method raises UnavailableError when the store does not do it in time, retries included.
    """

    async def put(self, key: str, body: bytes) -> None:
        """Keep a body; once this returns, it is durable."""

    async def get(self, key: str) -> bytes:
        """Return a body. Raises NotFoundError when the store has none of that key."""

    def fetch(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return bodies in the order of their keys, None for those that the store does not have.

        For a thread that may wait: it does not return before all are there.
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete bodies; those that are not there count as deleted."""


def open_store(settings: Settings, observed: Observed | None = None) -> BodyStore | None:
    """Return the store that the settings name, None where they name none. Asks nothing of it yet.

    Raises InvalidError when the client library is not installed.
    """
    if not settings.bodies:
        return None
    try:
        s3 = import_module("scrubjay_cloud.bodies.s3")
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise InvalidError(
            "a store of bodies needs the extra 'cloud-s3', which is not installed (obstore is missing)",
            hint="pip install 'scrubjay[cloud,cloud-s3]'",
        ) from error
    opened: BodyStore = s3.S3Bodies.of(settings, observed or _unobserved)
    return opened


def _unobserved(kind: str, seconds: float, size: int, held: bool) -> None:  # noqa: FBT001 - as `Observed`
    """Tell nobody."""
