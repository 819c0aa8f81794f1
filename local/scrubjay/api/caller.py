"""Who calls: made by the transport that received the call, never by the request that came over it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Principal(StrEnum):
    """On whose behalf something is said: the person, an agent of theirs, a file that is read, or an agent's host.

    A host reports what passes between the person and an agent: each of its events is trusted by who speaks in it.

    Jobs and sync say nothing of their own, so they are no principals: see `access.TRUST_CEILING`.
    """

    PERSON = "person"
    AGENT = "agent"
    IMPORTER = "importer"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls. An agent is bound to its project and its session; None means that it has none.

    `account` is whose store a person means (`scrubjay.accounts`); None leaves that to the project. An agent has none:
    its project says it.

    `access` says what follows from this: what a caller sees, what it may write, and how far that is trusted.
    """

    principal: Principal
    agent: str | None = None
    project: str | None = None
    session_id: str | None = None
    account: str | None = None


PERSON = Caller(principal=Principal.PERSON)
"""The person at the keyboard, who sees and may do everything."""

HOST = Caller(principal=Principal.HOST)
"""What runs an agent, and reports by hooks what happens there. It may call that one operation."""

IMPORTER = Caller(principal=Principal.IMPORTER)
"""A file that is read: what it says of itself is believed no more than an import."""
