"""A toolset on the official SDK: both eras of the protocol from one server. Imported at the first request alone."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from scrubjay.tracebacks import frames_of
from scrubjay.transports.http.guard import CALLER
from scrubjay.transports.mcp.clients import as_called_by
from scrubjay.transports.mcp.tools import Answer, Prompt, Tool, ToolContext, Toolset, arguments, schema
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from scrubjay.policy import MemoryPolicy
    from scrubjay.service.application import Application

LISTS: tuple[CacheableMethod, ...] = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
LIST_TTL_MS = 3_600_000
"""How long a client may keep the lists: they change with the version of the daemon alone."""

INTERNAL = "something went wrong inside the daemon: scrubjay daemon logs has the details"

log = logging.getLogger(__name__)


class ToolsetServer:
    """One toolset's server. `handle` is its ASGI app, within `running`."""

    def __init__(self, toolset: Toolset, service: Application, *, version: str, policy: MemoryPolicy) -> None:
        self._toolset = toolset
        self._service = service
        self._policy = policy
        self._tools = types.ListToolsResult(tools=[_tool(tool) for tool in toolset.tools])
        handlers: dict[str, Any] = {"on_list_tools": self._list_tools, "on_call_tool": self._call_tool}
        if toolset.prompts:
            handlers |= {"on_list_prompts": self._list_prompts, "on_get_prompt": self._get_prompt}
        if toolset.templates:
            handlers |= {
                "on_list_resources": self._list_resources,
                "on_list_resource_templates": self._list_templates,
                "on_read_resource": self._read_resource,
            }
        server: Server[Any] = Server(
            toolset.name,
            version=version,
            title=toolset.name,
            instructions=toolset.instructions,
            cache_hints=dict.fromkeys(LISTS, CacheHint(ttl_ms=LIST_TTL_MS, scope="public")),
            **handlers,
        )
        # Nothing is traced: spans of other people's libraries would carry what was asked.
        server.middleware.clear()
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self.handle = self._manager.handle_request

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Serve within this. To be left by the task that entered it."""
        async with self._manager.run():
            yield

    async def _context(self, request: ServerRequestContext[Any, Any]) -> ToolContext:
        """Return what a tool acts with, as the agent whose connection it is."""
        # The SDK gives it as Any or None; over HTTP it is always the request.
        caller = getattr(request.request, "scope", {})[CALLER]
        client = request.session.client_params
        caller = as_called_by(caller, None if client is None else client.client_info.name)
        caller = await self._service.handlers.placed(caller)
        now = time.time_ns() // 1_000_000

        async def operation(name: str, asked: Any) -> Any:
            return await self._service.call(caller, name, asked)

        return ToolContext(
            caller=caller,
            operation=operation,
            now=Millis(now),
            utc_offset=time.localtime(now / 1000).tm_gmtoff // 60,
            policy=self._policy,
        )

    async def _list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        return self._tools

    async def _call_tool(
        self, request: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._toolset.by_name.get(params.name)
        if tool is None:
            known = ", ".join(self._toolset.by_name)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}; tools: {known}")
        try:
            answer = await tool.run(await self._context(request), arguments(tool, params.arguments or {}))
        except ScrubjayError as error:
            # For the model to read and to act on: a protocol error would be shown to nobody.
            answer = Answer(text=_told(error), failed=True)
        except Exception as error:  # noqa: BLE001  # a call never ends without an answer; cancelling is none of these
            log.error("tool failed name=%s error=%s at=%s", tool.name, type(error).__qualname__, frames_of(error))  # noqa: TRY400  # not its words: they may quote a memory
            answer = Answer(text=INTERNAL, failed=True)
        if isinstance(answer, str):
            answer = Answer(text=answer)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=None if answer.structured is None else dict(answer.structured),
            is_error=answer.failed,
        )

    async def _list_prompts(self, _: Any, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_prompt(prompt) for prompt in self._toolset.prompts])

    async def _get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = next((one for one in self._toolset.prompts if one.name == params.name), None)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:60]!r}")
        given = params.arguments or {}
        if missing := [name for name, _ in prompt.arguments if not given.get(name)]:
            raise MCPError(types.INVALID_PARAMS, f"prompt {prompt.name} needs {', '.join(missing)}")
        text = prompt.text.format(**{name: given[name] for name, _ in prompt.arguments})
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def _list_resources(self, _: Any, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def _list_templates(self, _: Any, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=one.template, name=one.name, description=one.description, mime_type="text/markdown"
                )
                for one in self._toolset.templates
            ]
        )

    async def _read_resource(
        self, request: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        for template in self._toolset.templates:
            if uri.startswith(template.prefix):
                try:
                    named = unquote(uri.removeprefix(template.prefix))
                    text = await template.read(await self._context(request), named)
                except ScrubjayError as error:
                    raise MCPError(types.INVALID_PARAMS, _told(error), data={"uri": uri}) from error
                contents = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
                return types.ReadResourceResult(contents=[contents])
        raise MCPError(types.INVALID_PARAMS, "there is no such resource", data={"uri": uri})


def _told(error: ScrubjayError) -> str:
    return f"{error.message}. {error.hint}".rstrip() if error.hint else error.message


def _tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=None,
        description=tool.description,
        input_schema=schema(tool.arguments),
        output_schema=None if tool.output_schema is None else dict(tool.output_schema),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent or tool.read_only,
            open_world_hint=False,
        ),
    )


def _prompt(prompt: Prompt) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(name=name, description=meaning, required=True) for name, meaning in prompt.arguments
        ],
    )


def servers(
    toolsets: dict[str, Toolset], service: Application, *, version: str, policy: MemoryPolicy
) -> dict[str, ToolsetServer]:
    """Return a server for each toolset, by its path."""
    return {path: ToolsetServer(one, service, version=version, policy=policy) for path, one in toolsets.items()}
