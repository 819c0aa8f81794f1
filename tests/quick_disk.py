"""Where files of tests are quick to sync: in memory, on a system that has room there."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOM_BYTES = 1 << 30
"""Two workers, each with a PostgreSQL server and some stores, stay far below; a container's 64 MB would not do."""


def quick_folder() -> Path | None:
    """Return a folder in memory, or None where there is none with room; `tempfile` takes None for its own choice."""
    memory = Path("/dev/shm")  # noqa: S108 - folders of their own are made in it
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    return memory if usable and shutil.disk_usage(memory).free >= ROOM_BYTES else None


if __name__ == "__main__":  # for the Makefile
    sys.stdout.write(str(quick_folder() or tempfile.gettempdir()))
