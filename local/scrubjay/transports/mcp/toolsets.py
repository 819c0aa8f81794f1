"""Which toolsets there are, by what follows /mcp/ in their path. "" is the one that every agent gets."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.transports.mcp import memory_tools
from scrubjay.transports.mcp.tools import Toolset

TOOLSETS: Mapping[str, Toolset] = {"": memory_tools.TOOLSET}
