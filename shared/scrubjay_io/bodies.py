"""Reading a request's body without holding more of it than is allowed."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from scrubjay_shared.errors import TooLargeError

JOINED_BYTES = 4 * 1024 * 1024
"""From here on the pieces are joined in a thread: for hundreds of megabytes it takes a tenth of a second."""

DIGITS = 19
"""Of a declared length, as many digits as are read: so many are more than any limit, and int refuses thousands."""


async def bounded_body(request: Request, limit: int) -> bytes:
    """Return the request's body, holding no more than `limit` bytes of it, whatever its headers claim.

    Raises TooLargeError.
    """
    return await bounded(request.receive, request.headers.get("content-length", ""), limit)


async def bounded(receive: Receive, declared: str, limit: int) -> bytes:
    """Do what `bounded_body` does, of what `receive` gives; `declared` is the header Content-Length, "" without one.

    Raises TooLargeError, and ClientDisconnect when the client goes away in between.
    """
    chunks: list[bytes] = []
    known = declared.isascii() and declared.isdecimal()
    size = int(declared.lstrip("0")[:DIGITS] or 0) if known else 0
    more = size <= limit
    if more:
        size = 0
    while more and size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if chunk := message.get("body", b""):
            size += len(chunk)
            chunks.append(chunk)
        more = message.get("more_body", False)
    if size > limit:
        raise TooLargeError(f"the body is larger than {limit} bytes", hint="send it in several requests")
    if len(chunks) == 1:
        return chunks[0]
    return await asyncio.to_thread(b"".join, chunks) if size >= JOINED_BYTES else b"".join(chunks)
