"""Requests and responses about the scopes of the account, and of searches in those that the server can read."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.wire import SearchHit
from scrubjay_sync.api.identity import Who

MODES = ("sealed", "searchable")
"""Whether the server can read a scope: no, or yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLine:
    """A scope as people see it. `mode` is sealed or searchable."""

    id: str
    name: str
    mode: str
    home: bool
    projects: tuple[str, ...]
    epoch: int
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopesResponse:
    """The scopes of the account."""

    who: Who
    scopes: tuple[ScopeLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCreateRequest:
    """A new scope; its mode is for ever."""

    name: str
    mode: str = "sealed"
    projects: tuple[str, ...] = ()
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """A question for the server, about one searchable scope. `type` and `topic` keep to memories of one."""

    ref: str
    text: str
    limit: int = 10
    type: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResponse:
    """What the server found, best first. `mode` is hybrid or keyword; `note` says why it is keyword."""

    who: Who
    scope: str
    mode: str
    note: str
    hits: tuple[SearchHit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDeletedResponse:
    """What the server deleted."""

    who: Who
    objects: int
