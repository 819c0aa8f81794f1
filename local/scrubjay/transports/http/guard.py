"""Who may come in, and what leaves when something fails: the one layer around every route.

A local API is reachable by every program and every web page on the machine. So: a bearer token for everything but the
two probes, a Host header that names this daemon (a page whose domain was rebound to 127.0.0.1 still sends its own
name), no foreign Origin, no CORS. The token is asked for on the Unix socket too, although its mode (0600) already
keeps others out: sockets get mounted into containers and forwarded over ssh, and one rule for both cannot drift.
There are three tokens: one makes the caller the person, one an agent, bound to what its headers name, and one an
agent's host, which reports what happens and may do nothing else.
The probes answer without it, because they tell nothing and a client must know whom it greets before it sends its token.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from scrubjay import tracebacks, tracing
from scrubjay.api.caller import HOST, PERSON, Caller, Principal
from scrubjay.transports.client import ACCOUNT_HEADER, AGENT_HEADER, PROJECT_HEADER, SESSION_HEADER, skew
from scrubjay.transports.http.decoding import UnknownFieldError
from scrubjay.transports.http.problem import problem
from scrubjay.transports.one_request import VERSION_HEADER
from scrubjay_shared.errors import DeniedError, InvalidError, ScrubjayError, UnauthenticatedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROBES = frozenset({"/healthz", "/readyz"})
KEY_PATHS = "/mem0/"
"""Below this, programs of another interface send the token as they send its key."""

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
REQUEST_ID = "scrubjay.request"
OPERATION = "scrubjay.operation"
CALLER = "scrubjay.caller"
"""Under this key of its scope a request has its `Caller`: whose token it brought, and what an agent is bound to."""

_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

MAX_HEADER_CHARS = 4_096
"""Of a project or a session in a header: a path at the longest."""


log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware: admits a request or refuses it, gives it an id, and turns every failure into a problem."""

    def __init__(self, app: ASGIApp, *, token: str, agent_token: str, hook_token: str, version: str) -> None:
        self._app = app
        self._version = version
        self._bearers = (
            (f"bearer {token}".encode(), Principal.PERSON),
            (f"bearer {agent_token}".encode(), Principal.AGENT),
            (f"bearer {hook_token}".encode(), Principal.HOST),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Nothing escapes but a cancellation."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        began = time.perf_counter()
        status = 0
        # Routes match the path as it was sent: a %2F inside a name is part of the name.
        inner = dict(scope, path=scope["raw_path"].decode("latin-1"))
        inner[REQUEST_ID] = request_id
        tracing.REQUEST.set(request_id)

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode()), *_ALWAYS]
            await send(message)

        try:
            self._admit(inner)
            await self._app(inner, receive, marked)
        except ClientDisconnect:
            pass
        except Exception as error:  # noqa: BLE001  # the last line of defence: a request never ends without an answer
            if not isinstance(error, ScrubjayError):
                _record_failure(request_id, error)
                error = ScrubjayError(
                    "something went wrong inside the daemon",
                    hint=f"scrubjay daemon logs has the details under {request_id}",
                )
            if isinstance(error, UnknownFieldError):
                error = explained(error, Headers(scope=inner), self._version)
            if not status:
                await problem(error, request_id)(inner, receive, marked)
            # Otherwise half an answer is out: returning without its end makes the server cut the connection,
            # which is how the client learns that the rest is missing.
        finally:
            log.debug(
                "answered request=%s operation=%s status=%d ms=%.1f",
                request_id,
                inner.get(OPERATION, "-"),
                status,
                (time.perf_counter() - began) * 1000,
            )

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        # A Unix socket has no port; whoever could open it is on this machine, and no browser can.
        port: int | None = scope["server"][1] if scope["server"] else None
        if port is not None and [name.lower() for name in headers.getlist("host")] not in [
            [name] for name in _names(port)
        ]:
            raise DeniedError(
                "the Host header does not name this daemon", hint=f"ask for http://127.0.0.1:{port}, not another name"
            )
        if any(
            port is None or origin.lower() not in {f"http://{name}" for name in _names(port)}
            for origin in headers.getlist("origin")
        ):
            raise DeniedError("requests from web pages of another origin are refused", hint="call from a program")
        if scope["path"] in PROBES:
            return
        scope[CALLER] = self._caller(headers, by_key=scope["path"].startswith(KEY_PATHS))

    def _caller(self, headers: Headers, *, by_key: bool) -> Caller:
        """Return who calls, by the token. Raises UnauthenticatedError for a token that is not ours.

        `by_key`: the token may stand in `X-API-Key` too.
        """
        given = headers.get("authorization", "")
        if by_key and not given:
            given = f"bearer {headers.get('x-api-key', '')}"
        scheme, _, credentials = given.partition(" ")
        bearer = f"{scheme.lower()} {credentials.strip()}".encode()
        # All are compared always: how long it takes tells nothing.
        found = [principal for ours, principal in self._bearers if hmac.compare_digest(bearer, ours)]
        if not found:
            raise UnauthenticatedError(
                "a valid bearer token is missing" if given else "a bearer token is missing",
                hint="send Authorization: Bearer and the contents of the file `token` in the data directory",
            )
        if found[0] is Principal.PERSON:
            account = _of_header(headers, ACCOUNT_HEADER)
            return PERSON if account is None else replace(PERSON, account=account)
        if found[0] is Principal.HOST:
            return HOST
        return agent_of(headers)


def agent_of(headers: Headers) -> Caller:
    """Return the agent that a request's headers name, bound to what they name. Raises InvalidError."""
    return Caller(
        principal=Principal.AGENT,
        agent=_of_header(headers, AGENT_HEADER),
        project=_of_header(headers, PROJECT_HEADER),
        session_id=_of_header(headers, SESSION_HEADER),
    )


def explained(error: ScrubjayError, headers: Mapping[str, str], version: str) -> ScrubjayError:
    """Return the error for what this daemon does not know. A client of another version is told that this is why."""
    theirs = headers.get(VERSION_HEADER)
    apart = None if theirs is None else skew(version, own=theirs[:40])
    return (
        error if apart is None else UnavailableError(f"{apart[0]}; the daemon answers: {error.message}", hint=apart[1])
    )


def _of_header(headers: Headers, name: str) -> str | None:
    """Return what a header says, percent-encoded UTF-8; None where it is absent or empty. Raises InvalidError."""
    given = headers.get(name)
    if not given:
        return None
    try:
        value = unquote_to_bytes(given).decode()
    except UnicodeError as error:
        raise InvalidError(f"the header {name} is not UTF-8", hint="percent-encode UTF-8") from error
    if len(value) > MAX_HEADER_CHARS:
        raise InvalidError(f"the header {name} is too long", hint=f"at most {MAX_HEADER_CHARS} characters")
    return value


def _names(port: int) -> list[str]:
    return [f"{name}:{port}" for name in LOOPBACK_NAMES] + (list(LOOPBACK_NAMES) if port == 80 else [])


def _record_failure(request_id: str, error: BaseException) -> None:
    """Log where it happened. Not the exception's own words: they may quote a memory."""
    log.error("failed request=%s error=%s at=%s", request_id, type(error).__qualname__, tracebacks.frames_of(error))
