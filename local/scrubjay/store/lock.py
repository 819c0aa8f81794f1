"""The lock that makes one process the only writer. The system drops it when that process dies, however it dies.

Who has it stands in a file beside it, for messages and for deciding whether waiting is worth while. That file proves
nothing: a process that is killed leaves it behind. So it is believed only while its process lives and is no younger
than what it says.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from scrubjay_shared.errors import ConflictError, UnavailableError

CLOCK_SLACK_SECONDS = 2.0
"""A process may seem this much younger than what it wrote: its start is counted from a boot time in whole seconds."""

NAME_CHARACTERS = 60
"""How much of a program's name is kept: enough to know it by."""


class Holder(StrEnum):
    """What kind of program has a store open: what may be expected of it."""

    DAEMON = "daemon"
    COMMAND = "command"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who has a store open. `name` is how the program was called, without its arguments; `since` is UTC seconds."""

    pid: int
    kind: Holder
    name: str
    since: float

    def __str__(self) -> str:
        """Return it in words, the time on this machine's clock."""
        since = datetime.fromtimestamp(self.since, UTC).astimezone()
        today = datetime.now(UTC).astimezone().date()
        moment = since.strftime("%H:%M" if since.date() == today else "%Y-%m-%d %H:%M")
        return f"process {self.pid} ({self.name}) since {moment}"


class StoreInUseError(ConflictError):
    """Another process has the store open; `held` says which, None when it cannot be told."""

    def __init__(self, path: Path, held: Held | None) -> None:
        self.held = held
        if held is None:
            message, hint = f"{path.name} is open in another process", "close that one, and try again"
        elif held.pid == os.getpid():
            message = f"{path.name} is open in this process ({held.pid}) already"
            hint = "use the Memory that is open, or close it first"
        else:
            message, hint = f"{path.name} is open in {held}", _HINTS[held.kind]
        super().__init__(message, hint=hint)

    @property
    def passing(self) -> bool:
        """Whether it may be over soon by itself: a script keeps the store for as long as it likes."""
        return self.held is None or self.held.kind is not Holder.SCRIPT


_HINTS = {
    Holder.DAEMON: "scrubjay daemon stop ends it; scrubjay daemon status says how it is",
    Holder.COMMAND: "it is at work; try again when it is done",
    Holder.SCRIPT: "close the Memory there, or end that process; scripts begun after scrubjay daemon start share it",
}


class StoreLock:
    """An exclusive lock beside the store's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(lock_path(path), timeout=0, mode=0o600, thread_local=False)
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None

    def acquire(self) -> None:
        """Take the lock, or raise StoreInUseError, UnavailableError where there can be none. Never waits."""
        try:
            self._lock.acquire()
        except Timeout as error:
            if not lock_path(self.path).exists():  # the system would not even make it: no process holds anything
                raise UnavailableError(
                    f"{self.path.parent} cannot be written", hint="choose another folder with --data-dir"
                ) from error
            raise StoreInUseError(self.path, holder(self.path)) from error
        kind, name = program(sys.orig_argv)
        held = Held(pid=os.getpid(), kind=kind, name=name, since=time.time())
        try:
            _holder_path(self.path).write_text(json.dumps(asdict(held)), encoding="ascii")
        except OSError:
            self._lock.release()
            raise

    @property
    def held(self) -> bool:
        """Whether this process has the lock now."""
        return bool(self._lock.is_locked)

    def opened(self) -> None:
        """Remember which file lies at the path now, and which log beside it: those that were opened."""
        self._file = identity(self.path)
        self._log = identity(log_path(self.path))

    def confirm(self) -> None:
        """Raise UnavailableError when the file that was opened, or its log, no longer lies at its path.

        Whoever deletes or moves one leaves us a file that nobody will ever open again: what is written there is lost.
        """
        if self._file is not None and replaced(self.path, self._file):
            raise gone(self.path)
        if self._log is not None and replaced(log_path(self.path), self._log):
            raise gone(log_path(self.path))

    def release(self) -> None:
        """Give the lock back. The lock file stays: removing it would let two processes lock two different files."""
        if self.held:
            if self._file is None or not replaced(self.path, self._file):  # else a successor's may lie there
                _holder_path(self.path).unlink(missing_ok=True)
            self._lock.release()


def gone(path: Path) -> UnavailableError:
    """Return the error for a store whose file, or log, was deleted or moved while it is open."""
    if path.name.endswith("-wal"):
        return UnavailableError(
            f"{path} is not there any more: it was deleted or moved while it was open, and nothing is confirmed",
            hint="scrubjay daemon restart: what was written goes into the store when the daemon ends",
        )
    return UnavailableError(
        f"{path} is not there any more: it was deleted or moved while it was open, and nothing is written",
        hint="move it back if you moved it; scrubjay restore FILE puts a backup in its place",
    )


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells one file from every other on this machine, None when no file is there."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def replaced(path: Path, was: tuple[int, int] | None) -> bool:
    """Say whether another file lies at a path than the one of identity `was`, or none. What cannot be read is not."""
    try:
        return identity(path) != was
    except OSError:
        return False


def log_path(path: Path) -> Path:
    """Return the log of a store: while it is open, what was committed last stands there alone."""
    return path.with_name(f"{path.name}-wal")


def lock_path(path: Path) -> Path:
    """Return the lock file of a store."""
    return path.with_name(path.name + ".lock")


def _holder_path(path: Path) -> Path:
    return path.with_name(path.name + ".pid")


def holder(path: Path) -> Held | None:
    """Return who has the store open as far as that can be told, None when it cannot. For messages, never a proof."""
    try:
        fields = json.loads(_holder_path(path).read_text(encoding="ascii"))
        found = Held(
            pid=int(fields["pid"]),
            kind=Holder(fields["kind"]),
            name=str(fields["name"])[:NAME_CHARACTERS],
            since=float(fields["since"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if _lives(found) else None


def _lives(held: Held) -> bool:
    """Say whether the process that wrote this is still there. Its number may have been given to another since."""
    import psutil  # noqa: PLC0415  # 20 ms, and only who is refused needs it

    try:
        return bool(psutil.Process(held.pid).create_time() <= held.since + CLOCK_SLACK_SECONDS)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # another user's: it lives, and more cannot be told
        return True


def program(argv: Sequence[str]) -> tuple[Holder, str]:
    """Return what kind of program a command line starts, and its name. Never its arguments: they may hold memories.

    >>> program(["/usr/bin/python3", "-P", "-m", "scrubjay.daemon", "41f3"])
    (<Holder.DAEMON: 'daemon'>, 'scrubjay daemon')
    >>> program(["/usr/bin/python3", "/usr/bin/scrubjay", "add", "a secret"])
    (<Holder.COMMAND: 'command'>, 'scrubjay add')
    >>> program(["python", "work/my_script.py", "a secret"])
    (<Holder.SCRIPT: 'script'>, 'python my_script.py')
    """
    python = _stem(argv[0]) if argv else "python"
    rest = list(argv[1:])
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c", "-"}:
        del rest[: 2 if rest[0] in {"-X", "-W"} else 1]
    if not rest or rest[0] in {"-", "-c"} or rest == ["-m"]:
        return Holder.SCRIPT, f"{python} -c …" if rest[:1] == ["-c"] else python
    as_module = rest[0] == "-m"
    name = _shown(rest[1]) if as_module else _stem(rest[0])
    words = rest[2:] if as_module else rest[1:]
    if name == "scrubjay.daemon":
        return Holder.DAEMON, "scrubjay daemon"
    if name in {"scrubjay", "scrubjay.cli"}:
        # Options may stand before the command, and an option's value looks like one: then the name says no more.
        command = words[0] if words and words[0].isascii() and words[0].isalpha() and words[0].islower() else ""
        kind = Holder.DAEMON if command == "daemon" else Holder.COMMAND
        return kind, f"scrubjay {command}".strip()
    shown = f"{python} -m {name}" if as_module else f"{python} {name}"
    return Holder.SCRIPT, shown[:NAME_CHARACTERS]


def _stem(path: str) -> str:
    """Return a file's name without folders, and without the ending of programs on Windows."""
    return _shown(path.replace("\\", "/").rpartition("/")[2].removesuffix(".exe"))


def _shown(name: str) -> str:
    """Return a name without what would drive a terminal."""
    return "".join(character if character.isprintable() else "?" for character in name)
