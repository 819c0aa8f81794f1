"""Memories in the forms of other programs: Portable AI Memory, the MCP memory server's graph, and notes of markdown.

Pure: memories in, bytes out. What happened (events) and the log are in scrubjay's own export alone.
"""

from __future__ import annotations

from enum import StrEnum


class ExportFormat(StrEnum):
    """What memories can be written as. The value is the word a person types after `--format`."""

    SCRUBJAY = "scrubjay"
    PAM = "pam"
    MCP_MEMORY = "mcp-memory"
    MARKDOWN = "markdown"
