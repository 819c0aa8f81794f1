"""What runs each operation. Every call of every transport passes here, and so does the check of who may call."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.api.operations import OPERATIONS, Kind, Operation
from scrubjay.service.account_stores import AccountStores
from scrubjay.service.project_names import ProjectNames
from scrubjay.tracing import REQUEST, Tracer, new_request
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError

Handler = Callable[[Caller, Any], Awaitable[Any]]
"""Runs an operation that gives one response."""

QUESTIONS = frozenset({"recall", "ask", "route", "context", "hook", "toc", "timeline", "grip", "why", "teleport"})
"""Operations whose callers wait for an answer about what is remembered: work of the night keeps out of their way."""

STAGES: Mapping[str, str] = {
    "ingest": "commit",
    "hook": "commit",
    "recall": "recall",
    "ask": "recall",
    "route": "recall",
}
"""The stages that operations are, for traces. What is written for a cause is told of by the store."""

StreamHandler = Callable[[Caller, Any], AsyncGenerator[bytes, None]]
"""Runs an operation that gives a stream of lines."""


class Handlers:
    """The handlers of an application: those of the core, and those that plugins register."""

    def __init__(
        self,
        unary: Mapping[str, Handler],
        streams: Mapping[str, StreamHandler],
        project_names: ProjectNames,
        tracer: Tracer,
    ) -> None:
        """Bind every operation of the core; one without a handler is an error of ours."""
        if set(OPERATIONS) != {*unary, *streams}:
            raise ValueError(f"operations without a handler: {sorted(set(OPERATIONS) ^ {*unary, *streams})}")
        self._operations = dict(OPERATIONS)
        self._unary = dict(unary)
        self._streams = dict(streams)
        self._project_names = project_names
        self._tracer = tracer
        self._asked_at = -math.inf
        self.accounts: AccountStores | None = None
        """The accounts of the home, None for a store that is by itself."""

    def register(self, operation: Operation, handler: Handler) -> None:
        """Add an operation of a plugin. Raises ConflictError for a name that is taken."""
        if operation.name in self._operations:
            raise ConflictError(f"there is an operation {operation.name} already", hint="give it another name")
        self._operations[operation.name] = operation
        self._unary[operation.name] = handler

    def unregister(self, name: str) -> None:
        """Take away an operation of a plugin that ended."""
        del self._operations[name], self._unary[name]

    def quiet_seconds(self) -> float:
        """Return how long ago the last question came; infinity before the first."""
        return time.monotonic() - self._asked_at

    def find(self, name: str) -> Operation | None:
        """Return an operation by its name, or None when there is none."""
        return self._operations.get(name)

    async def call(self, caller: Caller, name: str, request: Any) -> Any:
        """Run an operation and return its response. Raises DeniedError where the caller may not call it.

        A project that the caller or the request names by a folder gets its name first (`project_names`).
        """
        access.check_call(caller, self._known(name, Kind.UNARY))
        if name in QUESTIONS:
            self._asked_at = time.monotonic()

        async def here(caller: Caller, request: Any) -> Any:
            caller = await self._project_names.caller(caller)
            request = await self._project_names.request(request)
            if name not in STAGES or getattr(request, "trial", False):  # of a trial nothing stays, no span either
                return await self._unary[name](caller, request)
            with self._tracer.span(STAGES[name], name) as noting:
                response = await self._unary[name](caller, request)
                noting.session = caller.session_id or getattr(request, "session_id", None)
                noting.ids += _ids(response)
                return response

        token = REQUEST.set(REQUEST.get() or new_request())
        try:
            if self.accounts is None:
                return await here(caller, request)
            return await self.accounts.call(caller, name, request, here=here)
        finally:
            REQUEST.reset(token)

    async def placed(self, caller: Caller) -> Caller:
        """Return a caller with its account, and with the name that this account has for its project."""
        names: ProjectNames | None = None
        if self.accounts is not None:
            caller = await self.accounts.placed(caller)
            names = await self.accounts.names_for(caller)
        return await (names or self._project_names).caller(caller)

    def stream(self, caller: Caller, name: str, request: Any) -> AsyncGenerator[bytes, None]:
        """Run an operation and yield the lines of its response. Raises DeniedError as `call`, before the first line."""
        access.check_call(caller, self._known(name, Kind.STREAM))
        if self.accounts is None or caller.account is None:
            return self._streams[name](caller, request)
        return self._stream(caller, name, request, self.accounts)

    async def _stream(
        self, caller: Caller, name: str, request: Any, accounts: AccountStores
    ) -> AsyncGenerator[bytes, None]:
        elsewhere = await accounts.stream(caller, name, request)
        async for line in self._streams[name](caller, request) if elsewhere is None else elsewhere:
            yield line

    def _known(self, name: str, kind: Kind) -> Operation:
        operation = self._operations.get(name)
        if operation is None:
            raise NotFoundError(f"there is no operation {name[:60]!r}", hint=f"operations: {', '.join(OPERATIONS)}")
        if operation.kind is not kind:
            raise InvalidError(
                f"{name} is a {operation.kind} operation, not a {kind} one",
                hint="stream() runs the stream operations, call() the others",
            )
        return operation


def _ids(response: Any) -> list[str]:
    """Return the memories and events that a response is about, in its order."""
    found = [hit.id for hit in getattr(response, "hits", ())]
    return [one for one in (*getattr(response, "ids", ()), *found) if one]
