"""mem0's self-hosted REST interface below /mem0, for programs that were written for it: one person's memory, not many.

`user_id`, `agent_id` and `run_id` are kept beside what is added and narrow what is found; they do not say who calls.
That says the token, in `X-API-Key` as mem0's programs send it or in `Authorization`. What was learned from messages
(`infer`) is the person's and found under every `user_id`; deleting by an id deletes only what was added under that id.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from scrubjay import api
from scrubjay.hosts.fields import said
from scrubjay.transports.http.guard import CALLER, OPERATION
from scrubjay_io.bodies import bounded_body
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, EventType, Json, Memory, MemoryDraft

if TYPE_CHECKING:
    from starlette.requests import Request

    from scrubjay.policy import MemoryPolicy
    from scrubjay.service.application import Application

PATH = "/mem0"
VIA = "mem0"
IDS = ("user_id", "agent_id", "run_id")
PAGE = 500
TOP = 100
"""Memories of a listing, and at most of a search, unless the program says less."""

OVER = 5
"""So many times as many hits are ranked as are asked for, where an id narrows them afterwards."""

LEARN_MS = 10_000
"""How long an answer waits for what is learned from messages: a few sentences take milliseconds."""

TYPES = {"user": EventType.USER_MESSAGE, "assistant": EventType.ASSISTANT_MESSAGE}


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation. Its content is a text, parts of which some are texts, or null beside calls."""

    role: str = "user"
    content: Any = ""

    @property
    def text(self) -> str:
        """Its words."""
        return self.content if isinstance(self.content, str) else said(self.content)


class Ids(msgspec.Struct, frozen=True, kw_only=True):
    """Whose something is, as mem0 has it."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def given(self) -> dict[str, str]:
        """Return those that are given."""
        return {name: value for name in IDS if (value := getattr(self, name))}


class Add(Ids, frozen=True, kw_only=True):
    """The body of POST /memories."""

    messages: str | Message | list[Message]
    metadata: Json = msgspec.field(default_factory=dict)
    infer: bool = True


class Search(Ids, frozen=True, kw_only=True):
    """The body of POST /search. `filters` holds the ids in newer programs, `top_k` what was `limit`."""

    query: str
    filters: Json = msgspec.field(default_factory=dict)
    top_k: int | None = None
    limit: int | None = None
    threshold: float | None = None


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """The body of PUT /memories/{id}: its words under any of the names that programs use."""

    text: str | None = None
    data: str | None = None
    memory: str | None = None
    metadata: Json | None = None


class Mem0:
    """The routes of one daemon."""

    def __init__(self, service: Application, policy: MemoryPolicy) -> None:
        self._service = service
        self._policy = policy

    def routes(self) -> list[Route]:
        """Return the routes, with and without the slash at the end that some programs send."""
        paths: Mapping[str, Mapping[str, Any]] = {
            "/memories": {"POST": self._add, "GET": self._list, "DELETE": self._delete_all},
            "/memories/{id}": {"GET": self._get, "PUT": self._update, "DELETE": self._delete},
            "/memories/{id}/history": {"GET": self._history},
            "/search": {"POST": self._search},
            "/reset": {"POST": self._reset},
        }
        return [
            Route(f"{PATH}{path}{slash}", _marked(handler), methods=[method])
            for path, methods in paths.items()
            for method, handler in methods.items()
            for slash in ("", "/")
        ]

    async def _call(self, request: Request, name: str, asked: Any) -> Any:
        return await self._service.call(request.scope[CALLER], name, asked)

    async def _body(self, request: Request, shape: Any) -> Any:
        body = await bounded_body(request, self._policy.limits.max_body_bytes)
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidError(f"the body is not valid: {error}", hint="see mem0's REST interface") from error

    async def _add(self, request: Request) -> Response:
        asked: Add = await self._body(request, Add)
        ids = asked.given()
        if not ids:
            raise InvalidError("At least one identifier (user_id, agent_id, run_id) is required.", hint="send user_id")
        given = [Message(content=asked.messages)] if isinstance(asked.messages, str) else asked.messages
        messages = [one for one in (given if isinstance(given, list) else [given]) if one.text.strip()]
        if asked.infer:
            made = await self._learned(request, messages, ids)
        else:
            made = []
            about = {**asked.metadata, **ids, "via": VIA}
            for message in messages:
                draft = MemoryDraft(content=message.text, metadata=about | {"role": message.role})
                made.append((await self._call(request, "add", draft)).memory)
        return _json({"results": [{"id": one.id, "memory": one.content, "event": "ADD"} for one in made]})

    async def _learned(self, request: Request, messages: list[Message], ids: Mapping[str, str]) -> list[Memory]:
        """Store messages as what was said, learn from them, and return the memories that this made."""
        began = Millis(time.time_ns() // 1_000_000)
        drafts = tuple(
            EventDraft(
                agent=ids.get("agent_id", VIA),
                session_id=ids.get("run_id") or f"{VIA}/{ids.get('user_id', '')}",
                type=TYPES[message.role],
                text=message.text,
                metadata={**ids, "via": VIA},
            )
            for message in messages
            if message.role in TYPES
        )
        if not drafts:
            return []
        await self._call(request, "ingest", api.IngestRequest(events=drafts))
        await self._call(request, "settle", api.SettleRequest(timeout_ms=LEARN_MS))
        page: api.ListResponse = await self._call(request, "list", api.ListRequest(since=began, limit=PAGE))
        return [entry.memory for entry in page.entries]

    async def _memories(self, request: Request) -> AsyncGenerator[Memory, None]:
        cursor = None
        while True:
            page: api.ListResponse = await self._call(request, "list", api.ListRequest(limit=PAGE, cursor=cursor))
            for entry in page.entries:
                yield entry.memory
            cursor = page.next
            if cursor is None:
                return

    async def _list(self, request: Request) -> Response:
        ids = _ids(request.query_params)
        limit = _whole(request.query_params.get("top_k") or request.query_params.get("limit"))
        found: list[Json] = []
        async with contextlib.aclosing(self._memories(request)) as memories:
            async for memory in memories:
                if len(found) == limit:
                    break
                if _fits(memory, ids):
                    found.append(_shown(memory))
        return _json({"results": found})

    async def _search(self, request: Request) -> Response:
        asked: Search = await self._body(request, Search)
        ids = asked.given() | _ids(asked.filters)
        limit = min(asked.top_k or asked.limit or 20, TOP)
        most = min(limit * OVER if ids else limit, self._policy.work.recalled_hits)
        question = api.RecallRequest(query=asked.query, limit=max(most, 1), kinds=("memory",), max_tokens=100_000)
        answer: api.RecallResponse = await self._call(request, "recall", question)
        here = await self._service.store.read(lambda q: q.memories.by_id([hit.id for hit in answer.hits]))
        results: list[Json] = []
        for hit in answer.hits:
            score = hit.score if hit.confidence is None else hit.confidence
            if len(results) >= limit or (asked.threshold is not None and score < asked.threshold):
                continue
            memory = here.get(hit.id)
            if memory is None:  # it is another account's
                memory = (await self._call(request, "get", api.RefRequest(ref=hit.id))).memory
            if _fits(memory, ids):
                results.append(_shown(memory) | {"score": score})
        return _json({"results": results})

    async def _get(self, request: Request) -> Response:
        found: api.Entry = await self._call(request, "get", api.RefRequest(ref=request.path_params["id"]))
        return _json(_shown(found.memory))

    async def _update(self, request: Request) -> Response:
        asked: Update = await self._body(request, Update)
        text = next((given for given in (asked.text, asked.data, asked.memory) if given is not None), None)
        ref = request.path_params["id"]
        metadata = asked.metadata
        if metadata is not None:  # what it was added under stays, as in mem0
            metadata = (await self._call(request, "get", api.RefRequest(ref=ref))).memory.metadata | metadata
        await self._call(request, "update", api.UpdateRequest(ref=ref, content=text, metadata=metadata))
        return _json({"message": "Memory updated successfully!"})

    async def _delete(self, request: Request) -> Response:
        left = await self._erased(request, [request.path_params["id"]])
        return _json({"message": "Memory deleted successfully!"} | left)

    async def _delete_all(self, request: Request) -> Response:
        ids = _ids(request.query_params)
        if not ids:
            raise InvalidError(
                "At least one identifier (user_id, agent_id, run_id) is required.", hint="name whose to delete"
            )
        gone = [one.id async for one in self._memories(request) if ids.items() <= one.metadata.items()]
        return _json({"message": "All relevant memories deleted"} | await self._erased(request, gone))

    async def _reset(self, request: Request) -> Response:
        gone = [one.id async for one in self._memories(request) if one.metadata.get("via") == VIA]
        return _json({"message": "All memories reset"} | await self._erased(request, gone))

    async def _erased(self, request: Request, refs: list[str]) -> dict[str, Any]:
        """Forget memories. Returns what is to be added to the answer: copies that a program's forget leaves alone."""
        done = [await self._call(request, "forget", api.ForgetRequest(ref=ref, in_copies=False)) for ref in refs]
        blanks = [one.blanks for one in done if one.holding]
        return {"copies_holding": max(one.holding for one in done), "blank_them_with": blanks} if blanks else {}

    async def _history(self, request: Request) -> Response:
        found: api.WhyResponse = await self._call(request, "why", api.RefRequest(ref=request.path_params["id"]))
        writes = [change for change in found.history if change.change == "write"]
        rows = [
            {
                "id": f"{change.device}-{change.seq}",
                "memory_id": found.entry.memory.id,
                "old_memory": None,
                "new_memory": found.entry.memory.content if change is writes[-1] else None,
                "event": "ADD" if change is writes[0] else "UPDATE",
                "created_at": _iso(change.ts),
                "updated_at": _iso(change.ts),
                "is_deleted": False,
            }
            for change in writes
        ]
        return _json(rows)


def _marked(handler: Any) -> Any:
    async def served(request: Request) -> Response:
        request.scope[OPERATION] = VIA
        answer: Response = await handler(request)
        return answer

    return served


def _ids(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(given[name]) for name in IDS if given.get(name)}


def _fits(memory: Memory, ids: Mapping[str, str]) -> bool:
    """Say whether a memory is found under some ids: one that was added under another is not."""
    return all(memory.metadata.get(name, value) == value for name, value in ids.items())


def _whole(text: str | None) -> int:
    return min(int(text), PAGE) if text and text.isdecimal() and len(text) < 10 else TOP


def _iso(ts: Millis) -> str:
    return datetime.fromtimestamp(ts / 1000, UTC).isoformat()


def _shown(memory: Memory) -> Json:
    """Return a memory as mem0 does: the ids beside the metadata, not in it."""
    return {
        "id": memory.id,
        "memory": memory.content,
        "hash": memory.content_hash,
        "metadata": {name: value for name, value in memory.metadata.items() if name not in {*IDS, "via"}},
        "created_at": _iso(memory.created_at),
        "updated_at": _iso(memory.updated_at),
        **{name: memory.metadata.get(name) for name in IDS},
    }


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
