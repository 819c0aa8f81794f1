"""What a route is: a line in a table, from which the routes, the checks before them and the document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from starlette.responses import Response

from scrubjay_cloud.service import Service
from scrubjay_shared.wire import WARNING


class Admits(Enum):
    """Who may call a route."""

    ANYONE = "anyone"
    PENDING = "pending"  # a password has been proved; devices may, too
    DEVICE = "device"
    FULL = "full"  # a device that holds the account's root key


class Takes(Enum):
    """What a body is."""

    NOTHING = "nothing"
    JSON = "json"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls: an account, and the device whose token it is; None for a pending token.

    `head` is the hash of the account log's last entry and `gseq` the position of the account's last object, both as of
    this request.
    """

    account: bytes
    device: bytes | None
    token: bytes
    expires: int
    head: bytes
    gseq: int
    full: bool
    warning: int = 0
    """Share of the quota used in percent, when it is over the threshold; else 0."""

    @property
    def waits_as(self) -> bytes:
        """Who waits for news: a device, but every instance of a limited one, and every login, by itself."""
        return self.device if self.device is not None and self.full else self.token

    @property
    def spends_as(self) -> bytes:
        """Whom to count what a revocation needs against: a device, or a login. None exhausts another's."""
        return self.account + (self.token if self.device is None else self.device)

    @property
    def warnings(self) -> Mapping[str, str]:
        """The headers that say so."""
        return {WARNING: str(self.warning)} if self.warning else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, read and admitted.

    `path` holds the path's ids (bytes), `query` the other fields, `body` the record or the bytes, as the endpoint says.
    """

    request_id: str
    address: bytes
    path: Mapping[str, bytes]
    query: Mapping[str, Any]
    body: Any
    who: Caller | None

    @property
    def caller(self) -> Caller:
        """Who calls. Only for endpoints that ask for a token."""
        assert self.who is not None  # noqa: S101 - the guard admits nobody without one
        return self.who


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back: a record as JSON, objects as bytes, or a response made by the handler itself."""

    record: Any = None
    objects: tuple[bytes, ...] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    response: Response | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One field of a query string: its type, and its value when it is not given."""

    name: str
    meaning: str
    read: Callable[[str], Any]
    schema: Mapping[str, Any]
    default: Any = None
    required: bool = False


Handler = Callable[[Service, Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path.

    `path` names ids in braces: `{device}` is 32 hex digits, `{hash}` 64. `record` is the JSON body's type, `answer` the
    answer's: a record type, `bytes` for objects, None for no content. `limit` names a bucket of `LimitPolicy`.
    `most` names the number of `CloudPolicy` that bounds its body, where that is not the one of its kind.
    `optional` is whether a request without a body is one too. `refused` is whether a device may call that another one
    refuses for a while: to read, and to revoke that one.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    admits: Admits
    takes: Takes = Takes.NOTHING
    record: type[Any] | None = None
    answer: type[Any] | None = None
    status: int = 200
    query: tuple[Query, ...] = ()
    limit: str = "control"
    most: str = ""
    optional: bool = False
    refused: bool = False
