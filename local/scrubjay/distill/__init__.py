"""Events become memories by patterns: offline, deterministic, no model. Knows nothing of the store or the clock."""

from __future__ import annotations

from scrubjay.distill.directives import Directive, Directives, parse_directives
from scrubjay.distill.observe import Counters, Distilled, ExtractedMemory, Observation, distill, extract_memories
from scrubjay.distill.sameness import same_memory

__all__ = [
    "Counters",
    "Directive",
    "Directives",
    "Distilled",
    "ExtractedMemory",
    "Observation",
    "distill",
    "extract_memories",
    "parse_directives",
    "same_memory",
]
