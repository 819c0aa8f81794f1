"""The gRPC server of the daemon: on the loopback alone, with the same tokens as HTTP, in the daemon's own event loop.

Who calls follows from the token in the call's metadata (`authorization: Bearer …`): the person, or an agent that the
metadata `scrubjay-agent`, `-project` and `-session` bind. An error of ours has the status that gRPC has for it, and its
hint behind the message. Anything else is INTERNAL, and says nothing of itself.
"""

from __future__ import annotations

import hmac
import logging
from typing import Any

import grpc
from starlette.datastructures import Headers

from scrubjay import tracebacks
from scrubjay.api.caller import PERSON, Caller
from scrubjay.service.application import Application
from scrubjay.transports.grpc.servicer import HANDLERS, Handler
from scrubjay.transports.http.guard import agent_of
from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)

SERVICE = "memory.MemoryService"
HOST = "127.0.0.1"
MAX_MESSAGE_BYTES = 16 << 20
"""Bytes of one message: an event's text has at most a million characters, of four bytes at the most."""

MAX_CALLS = 64
"""Calls under way at once; more are refused. The daemon has one event loop for all that it does."""

GRACE_SECONDS = 2
STATUS: tuple[tuple[type[ScrubjayError], grpc.StatusCode], ...] = (
    (UnauthenticatedError, grpc.StatusCode.UNAUTHENTICATED),
    (DeniedError, grpc.StatusCode.PERMISSION_DENIED),
    (NotFoundError, grpc.StatusCode.NOT_FOUND),
    (TooLargeError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (InvalidError, grpc.StatusCode.INVALID_ARGUMENT),
    (ConflictError, grpc.StatusCode.ABORTED),
    (UnavailableError, grpc.StatusCode.UNAVAILABLE),
)
"""Statuses of our errors, the more particular first."""

log = logging.getLogger(__name__)


class GrpcServer:
    """Serves one application on a port of the loopback. Use: `start`, then `close`."""

    def __init__(self, app: Application, *, token: str, agent_token: str) -> None:
        self._app = app
        self._person = f"bearer {token}".encode()
        self._agent = f"bearer {agent_token}".encode()
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
        ]
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MAX_CALLS)
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(handler),
                request_deserializer=sent.FromString,
                response_serializer=lambda answer: answer.SerializeToString(),
            )
            for name, (sent, handler) in HANDLERS.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

    async def start(self, port: int) -> int:
        """Listen, and return the port: a free one for 0. Raises UnavailableError when it is taken."""
        try:
            bound: int = self._server.add_insecure_port(f"{HOST}:{port}")
        except RuntimeError as error:
            raise UnavailableError(
                f"the port {port} for gRPC is taken", hint="set grpc_port to another one, or free it"
            ) from error
        await self._server.start()
        log.info("gRPC port=%d", bound)
        return bound

    async def close(self) -> None:
        """Stop: calls under way have a moment to end."""
        await self._server.stop(GRACE_SECONDS)

    def _answering(self, handler: Handler) -> Any:
        async def answer(request: Any, context: Any) -> Any:
            try:
                return await handler(self._app, self._caller(context.invocation_metadata()), request)
            except ScrubjayError as error:
                code = next((code for kind, code in STATUS if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
                await context.abort(code, f"{error.message} ({error.hint})" if error.hint else error.message)
            except Exception as error:  # noqa: BLE001  # the last line of defence: a call never ends without a status
                log.error("gRPC failed %s", tracebacks.frames_of(error))  # noqa: TRY400  # no memory text in the log
                await context.abort(grpc.StatusCode.INTERNAL, "something went wrong inside the daemon")

        return answer

    def _caller(self, metadata: Any) -> Caller:
        """Return who calls, by the token. Raises UnauthenticatedError for a token that is not ours."""
        texts = [(str(key), value) for key, value in metadata or () if isinstance(value, str)]
        headers = Headers(raw=[(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in texts])
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        bearer = f"{scheme.lower()} {credentials.strip()}".encode()
        is_person = hmac.compare_digest(bearer, self._person)
        is_agent = hmac.compare_digest(bearer, self._agent)
        if not (is_person or is_agent):
            raise UnauthenticatedError(
                "a valid bearer token is missing",
                hint="send as authorization: Bearer and the contents of the file `token` in the data directory",
            )
        return PERSON if is_person else agent_of(headers)
