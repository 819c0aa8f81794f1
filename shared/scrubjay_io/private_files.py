"""Files that only their owner may read: made so from the first byte on, never by a later chmod."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from scrubjay_shared.errors import UnavailableError

MODE = 0o600
FOLDER_MODE = 0o700


def opener(path: str, flags: int) -> int:
    """Return a descriptor of a file that is made private; for `open(…, opener=opener)`."""
    return os.open(path, flags, MODE)


def create(path: Path) -> None:
    """Make an empty private file. Raises FileExistsError where there is one, and OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE))


def write(path: Path, data: bytes, mode: int = MODE) -> None:
    """Replace a file by a private one in one durable step: a reader sees the old or the new, never half of it.

    Makes the folder, too. Another `mode` is what a file had that is the person's own. Raises UnavailableError.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        partial.unlink(missing_ok=True)  # one that a crash left behind may be anybody's to read
        with open(partial, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode != MODE:
            partial.chmod(mode)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        hint = "free some space and try again" if full else f"check the permissions: ls -ld '{path.parent}'"
        raise UnavailableError(f"{path} cannot be written ({error.strerror})", hint=hint) from error
