"""Reading and writing the files of a vault: whole or not at all, and never over what somebody wrote meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from scrubjay.destination import appear
from scrubjay_shared.errors import InvalidError, TooLargeError, UnavailableError


class BusyError(UnavailableError):
    """The file is being written just now."""


Stamp = tuple[int, int, int]
"""A file's time of change in nanoseconds, its size in bytes and its number on the disk."""

ABSENT: Stamp = (0, -1, 0)
"""The stamp where there is no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as it was read: its bytes, None where there is none, and its stamp."""

    data: bytes | None
    stamp: Stamp


def stamp(path: Path) -> Stamp:
    """Return what is different once a file was written."""
    try:
        found = path.lstat()
    except OSError:
        return ABSENT
    return found.st_mtime_ns, found.st_size, found.st_ino


def read(path: Path, most: int) -> Content:
    """Read a file of at most so many bytes.

    Raises InvalidError where it is no plain file, TooLargeError, UnavailableError where it cannot be read, and of these
    BusyError while it is being written.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return Content(data=None, stamp=ABSENT)
    except OSError as error:
        if path.is_symlink():
            raise _no_plain_file(path, "a link") from error
        raise UnavailableError(
            f"{path.name} cannot be read ({error.strerror})", hint=f"check its permissions: ls -l '{path}'"
        ) from error
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode) or before.st_size > most:
        os.close(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise _no_plain_file(path, "a folder" if stat.S_ISDIR(before.st_mode) else "a device or a pipe")
        raise TooLargeError(
            f"{path.name} has {before.st_size:,} bytes, and at most {most:,} are read",
            hint="move older sections into another file, or let `scrubjay vault compact` shorten it",
        )
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(most + 1)
        after = os.fstat(descriptor)
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or len(data) != after.st_size:
        raise BusyError(f"{path.name} is being written", hint="it is read again in a moment")
    return Content(data=data, stamp=(after.st_mtime_ns, after.st_size, after.st_ino))


def _no_plain_file(path: Path, what: str) -> InvalidError:
    return InvalidError(
        f"{path.name} is {what}, and a vault holds plain files",
        hint="put a file of its own there; scrubjay follows no link out of the folder",
    )


def decoded(path: Path, data: bytes) -> str:
    """Return the text of a file. Raises InvalidError where it holds none."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"{path.name} is not text in UTF-8 (byte {error.start})", hint="save it as UTF-8 in your editor"
        ) from error
    if "\0" in text:
        raise InvalidError(f"{path.name} holds a zero byte, so it is no text", hint="restore it from a copy")
    return text


def write(path: Path, data: bytes, *, over: bytes | None) -> Stamp | None:
    """Replace a file that holds `over` (None: that is not there). Returns the new stamp.

    Returns None, and leaves everything as it is, where the file holds something else by now. Between that look and the
    replacing pass some microseconds. Raises UnavailableError where the folder takes no file.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.scrubjay")
    try:
        mode = stat.S_IMODE(path.lstat().st_mode) if over is not None else 0o600
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(mode)
        if over is None:
            appear(partial, path)  # fails where somebody made the file meanwhile
        else:
            if path.is_symlink() or path.read_bytes() != over:
                partial.unlink()
                return None
            partial.replace(path)
    except (FileExistsError, FileNotFoundError):
        with contextlib.suppress(OSError):
            partial.unlink()
        return None
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise UnavailableError(
            f"{path} cannot be written ({error.strerror})", hint="check the space on the disk and the permissions"
        ) from error
    return stamp(path)
