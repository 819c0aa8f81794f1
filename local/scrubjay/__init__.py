"""Memory for AI agents that lives on the person's own machine. `from scrubjay import Memory`."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would slow every start
if TYPE_CHECKING:
    from typing import Any

    from scrubjay.distill import ExtractedMemory, extract_memories
    from scrubjay.memory import Memory
    from scrubjay.version import __version__
    from scrubjay_shared.errors import (
        ConflictError,
        CorruptError,
        DeniedError,
        InvalidError,
        NotFoundError,
        ScrubjayError,
        TooLargeError,
        UnavailableError,
    )

__all__ = [
    "ConflictError",
    "CorruptError",
    "DeniedError",
    "ExtractedMemory",
    "InvalidError",
    "Memory",
    "NotFoundError",
    "ScrubjayError",
    "TooLargeError",
    "UnavailableError",
    "__version__",
    "extract_memories",
]

_MODULES = {
    "Memory": "scrubjay.memory",
    "extract_memories": "scrubjay.distill",
    "ExtractedMemory": "scrubjay.distill",
    "__version__": "scrubjay.version",
} | dict.fromkeys((name for name in __all__ if name.endswith("Error")), "scrubjay_shared.errors")


def __getattr__(name: str) -> Any:
    """Load what is asked for: importing the package costs nothing, because every command starts with it."""
    if name not in _MODULES:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    import importlib  # noqa: PLC0415  # every start pays for what stands above

    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
