"""The OpenAPI 3.1 document of the service, generated from its endpoints and the records of `wire`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from scrubjay_cloud.endpoint import Admits, Endpoint, Takes
from scrubjay_shared.errors import KINDS, SYNC_KINDS
from scrubjay_shared.wire import CURSOR, GENERATION, HEAD, MEDIA, PROBLEM, STORE, WARNING, Problem

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
HEADERS = {
    CURSOR: "Where the next page begins. Opaque.",
    HEAD: "The cursor of one who has read everything.",
    STORE: "The server's database, by its id.",
    GENERATION: "Raised when the server was restored and may have lost a tail.",
    WARNING: "Share of the quota used, in percent.",
}
_JSON = "application/json"


def document(endpoints: Iterable[Endpoint], version: str) -> Schema:
    """Return the document as plain JSON values. `version` is the product's."""
    listed = tuple(endpoints)
    named: set[type[Any]] = {
        Problem,
        *(one for endpoint in listed for one in (endpoint.record, endpoint.answer) if one is not None),
    }
    shapes = sorted(named - {bytes, str}, key=lambda shape: shape.__name__)
    _, components = msgspec.json.schema_components(shapes, ref_template=REF)
    paths: dict[str, Schema] = {}
    for endpoint in listed:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "scrubjay-cloud",
            "version": version,
            "description": "Keeps end-to-end-encrypted memory in sync (beta). Times are UTC milliseconds; bytes are "
            "base64 in JSON and lower-case hex in paths.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: _tidied(schema) for name, schema in components.items()},
            "responses": {kind.code: _refusal(inspect.getdoc(kind) or "") for kind in (*KINDS, *SYNC_KINDS)}
            | {"internal": _refusal("Something went wrong inside the server. Its log has it under the request's id.")},
            "headers": {
                name: {"description": meaning, "schema": {"type": "string"}} for name, meaning in HEADERS.items()
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "From POST /v1/auth/token or /v1/login."}
            },
        },
    }


def _operation(endpoint: Endpoint) -> Schema:
    operation: Schema = {
        "operationId": _name(endpoint),
        "summary": endpoint.summary,
        "description": inspect.getdoc(endpoint.handler) or "",
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": f"^[0-9a-f]{{{64 if name == 'hash' else 32}}}$"},
            }
            for name in re.findall(r"{(\w+)}", endpoint.path)
        ]
        + [
            {
                "name": query.name,
                "in": "query",
                "required": query.required,
                "description": f"{query.meaning[0].upper()}{query.meaning[1:]}.",
                "schema": dict(query.schema) | ({} if query.default is None else {"default": query.default}),
            }
            for query in endpoint.query
        ],
        "responses": {str(endpoint.status): _answer(endpoint)} | _refusals(),
    }
    if endpoint.admits is Admits.ANYONE:
        operation["security"] = []
    if endpoint.takes is Takes.JSON and endpoint.record is not None:
        operation["requestBody"] = {
            "required": not endpoint.optional,
            "content": {_JSON: {"schema": {"$ref": REF.format(name=endpoint.record.__name__)}}},
        }
    if endpoint.takes is Takes.OBJECTS:
        operation["requestBody"] = {"required": True, "content": {MEDIA: {"schema": {"description": "SJS1 objects."}}}}
    return operation


def _answer(endpoint: Endpoint) -> Schema:
    response: Schema = {"description": endpoint.summary}
    if endpoint.answer is bytes:
        response["content"] = {MEDIA: {"schema": {"description": "SJS1 objects, one after another."}}}
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
    elif endpoint.answer is str:
        response["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif endpoint.answer is not None:
        response["content"] = {_JSON: {"schema": {"$ref": REF.format(name=endpoint.answer.__name__)}}}
    return response


def _name(endpoint: Endpoint) -> str:
    words = re.findall(r"[a-z]+", endpoint.path.removeprefix("/v1"))
    return "_".join((endpoint.method.lower(), *words))


def _refusals() -> Schema:
    kinds = {str(kind.status): kind.code for kind in (*SYNC_KINDS, *KINDS)}
    return {status: {"$ref": f"#/components/responses/{code}"} for status, code in sorted(kinds.items())} | {
        "405": {"$ref": "#/components/responses/invalid"},
        "default": {"$ref": "#/components/responses/internal"},
    }


def _refusal(meaning: str) -> Schema:
    return {"description": meaning, "content": {PROBLEM: {"schema": {"$ref": REF.format(name="Problem")}}}}


def _tidied(schema: Schema) -> Schema:
    tidied = dict(schema)
    if "description" in tidied:
        tidied["description"] = inspect.cleandoc(tidied["description"])
    return tidied
