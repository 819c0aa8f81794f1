"""Errors as HTTP answers: RFC 9457 problem documents with a stable code, a hint, and the request's id."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from scrubjay_shared.errors import ScrubjayError, UnauthenticatedError, UnavailableError
from scrubjay_shared.wire import PROBLEM, Problem

_SENT_BY_CLIENTS = frozenset({"bad_signature", "broken_chain", "rolled_back"})
"""Kinds whose status says that something of ours is damaged: when a request raises them, it is the request that is."""
_LATER = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})


def problem(
    error: ScrubjayError, request_id: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for an error. `status` overrides the kind's own (405 is an InvalidError, too)."""
    if status is None:
        status = HTTPStatus.CONFLICT.value if error.code in _SENT_BY_CLIENTS else error.status
    given = dict(headers or {})
    if isinstance(error, UnauthenticatedError):
        given["WWW-Authenticate"] = 'Bearer realm="scrubjay"'
    if isinstance(error, UnavailableError) and status in _LATER:
        given["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    body = Problem(
        type=f"urn:scrubjay:error:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.message,
        code=error.code,
        hint=error.hint,
        request_id=request_id,
    )
    return Response(msgspec.json.encode(body), status_code=status, headers=given, media_type=PROBLEM)
