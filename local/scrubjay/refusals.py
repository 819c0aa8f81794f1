"""The count of what hosts reported and nobody could keep: when, from which host and why. Never a word of it.

One line each in a file of the data folder, appended by whoever refuses: the hook's process, the daemon, its reader of
the spool. Standard library only, and little of that: `scrubjay-hook` imports it while an agent waits.
"""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would slow every event
if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "hook_refusals"

MOST_BYTES = 128 * 1024
"""Of the file: some 4,000 lines. Then it becomes the older one of two, and the count is "at least"."""

DAYS = 30
"""For so many days a refusal is told: long enough to be seen, and then it is nobody's trouble any more."""

_NAME_CHARS = 40

_TIME_DIGITS = 15
"""Of a time in milliseconds, until the year 33658: a longer number is damage."""


class Refusal:
    """One report that was refused: when (UTC milliseconds), of which host, and why, in a word."""

    __slots__ = ("host", "reason", "ts")

    def __init__(self, ts: int, host: str, reason: str) -> None:
        self.ts, self.host, self.reason = ts, host, reason


def count(data_dir: str | Path, host: str, reason: str) -> None:
    """Note that a report of a host was refused. Raises OSError where the disk takes nothing at all."""
    path = f"{data_dir}/{FILE_NAME}"
    # The line before may be torn, by a disk that was full.
    line = f"\n{time.time_ns() // 1_000_000} {_word(host)} {_word(reason)}\n".encode()
    # One short write at the end of a file: other processes' lines come before or after it, never amid it.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        os.write(descriptor, line)
        full = os.fstat(descriptor).st_size > MOST_BYTES
    finally:
        os.close(descriptor)
    if full:
        os.replace(path, f"{path}.old")  # noqa: PTH105  # pathlib takes as long as half of the interpreter


def counted(data_dir: str | Path, *, now: int) -> list[Refusal]:
    """Return what was refused in the last days, oldest first."""
    since, found = now - DAYS * 86_400_000, []
    for name in (f"{FILE_NAME}.old", FILE_NAME):
        if not os.path.isfile(f"{data_dir}/{name}"):  # noqa: PTH113  # nothing was refused yet; a pipe is waited for
            continue
        try:
            with open(f"{data_dir}/{name}", encoding="ascii", errors="replace") as file:  # noqa: PTH123  # as above
                lines = file.read(2 * MOST_BYTES).splitlines()
        except OSError:
            continue
        for line in lines:
            ts, _, rest = line.partition(" ")
            host, _, reason = rest.partition(" ")
            if ts.isdecimal() and len(ts) <= _TIME_DIGITS and reason and int(ts) >= since:
                found.append(Refusal(int(ts), host, reason))
    return found


def reason_of(error: BaseException) -> str:
    """Return in a word why an error refuses a report: its own reason or code, else its kind."""
    if isinstance(error, OSError) and error.errno:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return str(getattr(error, "reason", None) or getattr(error, "code", None) or type(error).__name__)


def _word(text: str) -> str:
    """Return a name as one word of ASCII: it may come from a command line, and must not make lines of its own."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.:") else "_" for letter in text)
    return plain[:_NAME_CHARS] or "-"
