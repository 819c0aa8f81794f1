"""Which agent a client of MCP is. The client says it once, at its start; a server without a state gives it to keep.

In the protocol's older revisions a client names itself in `initialize` alone. The session id that it is given there and
brings with each request is nothing but that name, encoded: no session is kept here, and none can run out. A client may
claim any name; it says whose words something is, never what may be read or how far it is trusted. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from scrubjay.api.caller import Caller

AGENT_OF_CLIENT: Mapping[str, str] = {
    "codex-mcp-client": "codex",
    "copilot-cli": "copilot",
    "gemini-cli-mcp-client": "gemini",
}
"""What hosts call themselves here, where their hooks go by another name: one agent has one name in the store."""

MAX_NAME_CHARS = 80
SESSION_PREFIX = "agent-"


class _ClientInfo(msgspec.Struct):
    name: str = ""


class _Params(msgspec.Struct, rename="camel"):
    client_info: _ClientInfo = msgspec.field(default_factory=_ClientInfo)


class _Initialize(msgspec.Struct):
    method: str = ""
    params: _Params = msgspec.field(default_factory=_Params)


def agent_named(name: str) -> str | None:
    r"""Return the agent that a client of some name is, None for one that says nothing that can be shown.

    >>> agent_named("codex-mcp-client"), agent_named("my\u202eagent "), agent_named(" ")
    ('codex', 'myagent', None)
    """
    plain = "".join(character for character in name[:MAX_NAME_CHARS] if character.isprintable()).strip()
    return AGENT_OF_CLIENT.get(plain, plain) or None


def as_called_by(caller: Caller, client: str | None) -> Caller:
    """Return the caller as the agent that the client says it is; as before where it says nothing."""
    agent = None if client is None else agent_named(client)
    return caller if agent is None else replace(caller, agent=agent)


def initializing(body: bytes) -> str | None:
    """Return the name of the client whose `initialize` a body is; None for any other body."""
    if b'"initialize"' not in body:
        return None
    try:
        message = msgspec.json.decode(body, type=_Initialize)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return message.params.client_info.name if message.method == "initialize" else None


def session_of(client: str) -> str:
    """Return the session id that a client of some name is given: visible ASCII.

    >>> client_of(session_of("claude-code"))
    'claude-code'
    """
    name = client[:MAX_NAME_CHARS].encode(errors="replace")
    return SESSION_PREFIX + base64.urlsafe_b64encode(name).decode()


def client_of(session_id: str) -> str | None:
    """Return the name of the client that was given a session id; None for an id that is not ours."""
    if not session_id.startswith(SESSION_PREFIX):
        return None
    try:
        return base64.b64decode(session_id.removeprefix(SESSION_PREFIX), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
