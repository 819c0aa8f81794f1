"""Errors as HTTP answers: RFC 9457 problem documents with a stable code, a hint, and the request's id."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from scrubjay_shared.errors import ScrubjayError, UnauthenticatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"


def problem(
    error: ScrubjayError, request_id: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for an error. `status` overrides the kind's own (405 is an InvalidError, too)."""
    status = status or error.status
    fields = {
        "type": f"urn:scrubjay:error:{error.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "instance": f"urn:scrubjay:request:{request_id}",
        "code": error.code,
        "hint": error.hint,
    }
    given = dict(headers or {})
    if isinstance(error, UnauthenticatedError):
        given["WWW-Authenticate"] = 'Bearer realm="scrubjay"'
    return Response(msgspec.json.encode(fields), status_code=status, headers=given, media_type=MEDIA_TYPE)


def schema() -> dict[str, object]:
    """Return the JSON Schema of a problem document."""
    texts = {
        "type": "The kind of error as a URI: urn:scrubjay:error: and the code.",
        "title": "The HTTP status in words.",
        "detail": "What went wrong.",
        "instance": "The request, as the log names it: urn:scrubjay:request: and its id.",
        "code": "The kind of error; stable across releases.",
        "hint": "What to do about it; may be empty.",
    }
    properties: dict[str, object] = {
        name: {"type": "string", "description": meaning} for name, meaning in texts.items()
    }
    properties["status"] = {"type": "integer", "description": "The HTTP status."}
    return {"title": "Problem", "type": "object", "properties": properties, "required": sorted(properties)}
