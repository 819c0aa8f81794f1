"""The lock that makes one process the only writer. The system drops it when that process dies, however it dies."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from scrubjay_shared.errors import ConflictError, UnavailableError


class StoreLock:
    """An exclusive lock beside the store's file. `holder.pid` beside it only says who to name in the error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(lock_path(path), timeout=0, mode=0o600, thread_local=False)

    def acquire(self) -> None:
        """Take the lock or raise ConflictError naming the holder, UnavailableError where none can be. Never waits."""
        try:
            self._lock.acquire()
        except Timeout as error:
            if not lock_path(self.path).exists():  # the system would not even make it: no process holds anything
                raise UnavailableError(
                    f"{self.path.parent} cannot be written", hint="choose another folder with --data-dir"
                ) from error
            who = holder(self.path)
            raise ConflictError(
                f"{self.path.name} is in use by process {who or 'unknown'}",
                hint="scrubjay daemon status shows the daemon; commands and Memory go through it by themselves",
            ) from error
        try:
            _pid_path(self.path).write_text(str(os.getpid()), encoding="ascii")
        except OSError:
            self._lock.release()
            raise

    @property
    def held(self) -> bool:
        """Whether this process has the lock now."""
        return bool(self._lock.is_locked)

    def release(self) -> None:
        """Give the lock back. The lock file stays: removing it would let two processes lock two different files."""
        if self.held:
            _pid_path(self.path).unlink(missing_ok=True)
            self._lock.release()


def lock_path(path: Path) -> Path:
    """Return the lock file of a store."""
    return path.with_name(path.name + ".lock")


def _pid_path(path: Path) -> Path:
    return path.with_name(path.name + ".pid")


def holder(path: Path) -> int | None:
    """Return the process id that last took the lock, or None. A hint for messages, never a proof."""
    try:
        return int(_pid_path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
