"""Where an exception came from, for the log: files and lines, and never a value, which may be private."""

from __future__ import annotations

import traceback

MAX_FRAMES = 12
"""Frames logged of an unexpected error, innermost first: beyond, it is the web framework's own."""


def frames_of(error: BaseException) -> str:
    """Return where an exception came from, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
