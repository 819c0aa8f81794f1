"""What the toolsets that keep things of their own (a graph, files) need of the store: all of theirs, by metadata."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from scrubjay import api
from scrubjay.transports.mcp.tools import ToolContext
from scrubjay_shared.records import Kind, Memory

PAGE = 500


async def with_metadata(context: ToolContext, *keys: str, kind: Kind | None = None) -> AsyncGenerator[Memory, None]:
    """Yield the memories that the caller sees and that have one of some keys in their metadata, the oldest last."""
    cursor = None
    while True:
        request = api.ListRequest(limit=PAGE, cursor=cursor, kind=kind)
        page: api.ListResponse = await context.operation("list", request)
        for entry in page.entries:
            if any(key in entry.memory.metadata for key in keys):
                yield entry.memory
        cursor = page.next
        if cursor is None:
            return
