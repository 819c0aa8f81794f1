"""The official SDK's client on a real daemon's app, over HTTP without a socket and over a bridge's stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation
from starlette.applications import Starlette

from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.transports.http.app import create_app
from scrubjay.transports.mcp.bridge import quoted
from scrubjay.transports.mcp.mount import McpMount

PERSON_TOKEN, AGENT_TOKEN, HOOK_TOKEN = "p" * 43, "a" * 43, "h" * 43
HOST = "127.0.0.1:7377"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
MODES = {MODERN: "auto", LEGACY: "legacy"}
"""The revisions in which hosts speak today, and how the SDK's client is told to."""


@asynccontextmanager
async def mounted(service: Application) -> AsyncIterator[Starlette]:
    """Yield the daemon's app over a service, with /mcp."""
    mount = McpMount(service, version="1.2.3", policy=DEFAULT)
    try:
        tokens = {"token": PERSON_TOKEN, "agent_token": AGENT_TOKEN, "hook_token": HOOK_TOKEN}
        yield create_app(service, **tokens, version="1.2.3", mcp=mount)
    finally:
        await mount.close()


@asynccontextmanager
async def over_http(
    app: Starlette,
    *,
    era: str = MODERN,
    name: str = "claude-code",
    token: str = AGENT_TOKEN,
    project: str | None = "own",
    path: str = "/mcp",
) -> AsyncIterator[Client]:
    """Yield the SDK's client of an app, of a host by its name that works in a project."""
    headers = {"Authorization": f"Bearer {token}"} | ({} if project is None else {"Scrubjay-Project": quoted(project)})
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}", headers=headers) as http:
        way = streamable_http_client(f"http://{HOST}{path}", http_client=http)
        async with Client(way, mode=MODES[era], client_info=Implementation(name=name, version="1")) as client:
            yield client


@asynccontextmanager
async def over_stdio(
    home: Path, folder: Path, *words: str, era: str = MODERN, name: str = "claude-code"
) -> AsyncIterator[Client]:
    """Yield the SDK's client of a bridge that was started in a folder."""
    environ = os.environ | {"SCRUBJAY_HOME": str(home)}
    command = ["-m", "scrubjay.cli", "mcp", *words]
    way = stdio_client(StdioServerParameters(command=sys.executable, args=command, env=environ, cwd=folder))
    async with Client(way, mode=MODES[era], client_info=Implementation(name=name, version="1")) as client:
        yield client


async def said(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that does not fail, and return its text."""
    answer = await client.call_tool(tool, arguments)
    [content] = answer.content
    assert content.type == "text"
    assert not answer.is_error, content.text
    return str(content.text)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails, and return why."""
    answer = await client.call_tool(tool, arguments)
    [content] = answer.content
    assert content.type == "text"
    assert answer.is_error, content.text
    return str(content.text)
