"""Memory for AI agents that lives on the person's own machine. `from scrubjay import Memory`."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would slow every start
if TYPE_CHECKING:
    from typing import Any

    from scrubjay.distill import ExtractedMemory, extract_memories
    from scrubjay.memory import Memory

__version__ = "0.1.0"
__all__ = ["ExtractedMemory", "Memory", "__version__", "extract_memories"]

_HOMES = {"Memory": "memory", "extract_memories": "distill", "ExtractedMemory": "distill"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: importing the package costs nothing, because every command starts with it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'scrubjay' has no attribute {name!r}")
    import importlib  # noqa: PLC0415  # every start pays for what stands above

    return getattr(importlib.import_module(f"scrubjay.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
