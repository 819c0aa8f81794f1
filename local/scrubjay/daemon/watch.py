"""What a running daemon looks at every few seconds: whether its store, and the program it runs, are still there.

Both can be taken from under a process without its noticing. A deleted store goes on working as a file without a name,
whose every write is lost; an upgrade or an uninstallation leaves a process that runs the code of yesterday. No event
tells of either on every platform, so it looks: two calls of `stat`, some microseconds.
"""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from pathlib import Path

from scrubjay import version as program_version
from scrubjay.store import identity, log_path, replaced

PROGRAM = Path(program_version.__file__)
"""The file that every installation replaces, and that says of which version it is."""


class Change(Enum):
    """What has happened to what the daemon runs on."""

    STORE_GONE = "the store's file was deleted or moved"
    LOG_GONE = "the store's log was deleted or moved"
    PROGRAM_GONE = "scrubjay was uninstalled"
    PROGRAM_REPLACED = "scrubjay was upgraded"


class Watch:
    """Compares two files with what they were. A change counts when two looks in a row have found the same.

    An installer takes the old files away and puts the new ones in their place, which takes a second or more.
    """

    def __init__(self, store: Path, program: Path = PROGRAM, version: str = program_version.__version__) -> None:
        self._store, self._store_was = store, identity(store)
        self._log, self._log_was = log_path(store), identity(log_path(store))
        self._program, self._program_was = program, signature(program)
        self._version = version
        self._last: Change | None = None

    def look(self) -> Change | None:
        """Return what has changed for good, None while nothing has."""
        found = self._found()
        settled = found is not None and (found is self._last or found in {Change.STORE_GONE, Change.LOG_GONE})
        self._last = found
        return found if settled else None

    def _found(self) -> Change | None:
        if replaced(self._store, self._store_was):
            return Change.STORE_GONE
        return Change.LOG_GONE if self._log_was and replaced(self._log, self._log_was) else self._of_program()

    def _of_program(self) -> Change | None:
        if self._program_was is None:  # it never was a file of its own: in an archive, say
            return None
        now = signature(self._program, self._program_was)
        if now is None:
            return Change.PROGRAM_GONE
        if now == self._program_was:
            return None
        if (found := version_in(self._program)) is not None and found != self._version:
            return Change.PROGRAM_REPLACED
        if found is not None:
            self._program_was = now  # the same version, installed again
        return None

    async def changed(self, seconds: float) -> Change:
        """Look every `seconds`, and return what has changed once something has."""
        while True:
            await asyncio.sleep(seconds)
            found = self.look()
            if found is not None:
                return found


def signature(path: Path, was: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """Return what is different once a file was replaced or written anew, None when it is not there.

    Returns `was` when that cannot be told now.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it cannot be told now
        return was
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def version_in(path: Path) -> str | None:
    """Return the version that a file of Python states, None when it states no version (it is being written)."""
    try:
        found = re.search(r"""^__version__ = ["']([^"']+)["']""", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return None if found is None else found[1]
