"""Which toolsets there are, by what follows /mcp in their path.

"" is the one that every agent gets. Each has a path of its own, so that nobody pays for the schemas of tools that they
do not use.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.transports.mcp import (
    memory_files,
    memory_tools,
    search_add_remove,
    search_fetch,
    server_memory,
    vault_tools,
)
from scrubjay.transports.mcp.tools import Toolset

TOOLSETS: Mapping[str, Toolset] = {
    "": memory_tools.TOOLSET,
    "/server-memory": server_memory.TOOLSET,
    "/memories": memory_files.TOOLSET,
    "/search-add-remove": search_add_remove.TOOLSET,
    "/search-fetch": search_fetch.TOOLSET,
    "/vault": vault_tools.TOOLSET,
}
