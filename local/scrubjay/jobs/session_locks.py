"""One reader of a session at a time: what was read of it is stored before the next step begins."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class SessionLocks:
    """A lock for each session that is being read."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, session_id: str) -> asyncio.Lock:
        """Return the lock of a session: the same one as long as somebody holds or awaits it."""
        return self._locks.setdefault(session_id, asyncio.Lock())
