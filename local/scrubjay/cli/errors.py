"""What goes wrong, as two lines for people or one object for programs. Loaded when something has."""

from __future__ import annotations

import errno
import json
import os
import sys

from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

_OF_ERRNO: dict[int, tuple[type[ScrubjayError], str]] = {
    errno.ENOENT: (NotFoundError, "check the path"),
    errno.ENOTDIR: (NotFoundError, "check the path"),
    errno.EISDIR: (InvalidError, "name a file, not a folder"),
    errno.ENAMETOOLONG: (InvalidError, "use a shorter path"),
    errno.EINVAL: (InvalidError, "check the path"),
    errno.EACCES: (DeniedError, "check who owns it, and its permissions"),
    errno.EPERM: (DeniedError, "check who owns it, and its permissions"),
    errno.EROFS: (DeniedError, "that disk is read-only; choose another place with --data-dir"),
    errno.EEXIST: (ConflictError, "name one that does not exist yet"),
    errno.ENOSPC: (UnavailableError, "free some disk space and try again"),
    errno.EDQUOT: (UnavailableError, "your disk quota is used up; free some space and try again"),
}


def of(error: Exception) -> ScrubjayError:
    """Return our error for whatever ended a command."""
    if isinstance(error, ScrubjayError):
        return error
    return of_os_error(error) if isinstance(error, OSError) else _unexpected(error)


def of_os_error(error: OSError) -> ScrubjayError:
    """Return our error for one of the system's about a file that a person named."""
    kind, hint = _OF_ERRNO.get(error.errno or 0, (UnavailableError, "check the disk, and try again"))
    what = (error.strerror or type(error).__name__).lower()
    name = error.filename if isinstance(error.filename, str) else ""
    return kind(f"{name}: {what}" if name else what, hint=hint)


def report(error: ScrubjayError, *, as_json: bool) -> int:
    """Write an error on stderr and return the exit code it stands for."""
    try:
        if as_json:
            record = {"code": error.code, "message": error.message, "hint": error.hint}
            sys.stderr.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            sys.stderr.write(f"scrubjay: {_line(error.message)}\n")
            sys.stderr.write(f"      {_line(error.hint) or 'scrubjay doctor checks everything'}\n")
        sys.stderr.flush()
    except (BrokenPipeError, UnicodeEncodeError):
        pass  # nobody reads, or nobody can: the exit code still says it
    return error.exit_code


def _line(text: str) -> str:
    """Return the text on one line, without what would drive the terminal."""
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _unexpected(error: Exception) -> ScrubjayError:
    """Return the error for a bug of ours. Its own words are left out: they may hold a person's text."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" in {frame.tb_frame.f_code.co_filename.rpartition(os.sep)[2]}:{frame.tb_lineno}" if frame else ""
    return ScrubjayError(
        f"unexpected {type(error).__name__}{where}", hint="SCRUBJAY_DEBUG=1 scrubjay … shows where; please report it"
    )
