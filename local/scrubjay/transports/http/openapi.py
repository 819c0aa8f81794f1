"""The OpenAPI 3.1 document, generated from the operations, their types and routes, so that it cannot lie."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from scrubjay.api.operations import OPERATIONS, Kind, Operation
from scrubjay.policy import DEFAULT
from scrubjay.transports.http import problem
from scrubjay.transports.http.bounds import CONDITIONS, bounds
from scrubjay.transports.http.decoding import path_fields, takes_file
from scrubjay.transports.http.routes import ROUTES, Route
from scrubjay_shared.errors import KINDS

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"


def document(version: str) -> Schema:
    """Return the document as plain JSON values. `version` is the product's."""
    unary = [(OPERATIONS[route.operation], route) for route in ROUTES if OPERATIONS[route.operation].kind is Kind.UNARY]
    requests = {operation.request for operation, _ in unary}
    responses = {operation.response for operation, _ in unary}
    _, found = msgspec.json.schema_components(
        sorted(requests | responses, key=lambda shape: shape.__name__), ref_template=REF
    )
    schemas = {name: _tidied(schema) for name, schema in found.items()}
    for shape in requests:
        _close(schemas, shape.__name__)
    for name, fields in bounds(DEFAULT).items():
        for field, keywords in fields.items():
            schemas[name]["properties"][field] = _bounded(schemas[name]["properties"][field], keywords)
    for name, conditions in CONDITIONS.items():
        schemas[name]["allOf"] = conditions

    paths: dict[str, Schema] = {}
    for operation, route in unary:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(operation, route, schemas)
    paths |= _beside()

    # What stands in a path or a query string is described there, and is no part of a body.
    for operation, route in unary:
        if route.takes_query:
            schemas.pop(operation.request.__name__, None)
        elif operation.request.__name__ in schemas:
            for name in path_fields(route):
                schema = schemas[operation.request.__name__]
                schema["properties"].pop(name, None)
                schema["required"] = [field for field in schema["required"] if field != name]

    return {
        "openapi": "3.1.0",
        "info": {
            "title": "scrubjay",
            "version": version,
            "description": "Memory for AI agents on this machine. Times are UTC milliseconds; ids are ULIDs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7377", "description": "This machine; the same on the Unix socket."}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas | {"Problem": problem.schema()},
            "responses": {kind.code: _refusal(inspect.getdoc(kind) or "") for kind in KINDS}
            | {"internal": _refusal("Something went wrong inside the daemon. The log has it under the request's id.")},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The contents of the file `token` in the data directory.",
                }
            },
        },
    }


def _operation(operation: Operation, route: Route, schemas: dict[str, Schema]) -> Schema:
    schema = schemas[operation.request.__name__]
    in_path = path_fields(route)
    described: Schema = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": schema.get("description", ""),
        "parameters": [_parameter(name, "path", schema) for name in in_path],
        "responses": {
            str(route.status): {
                "description": schemas[operation.response.__name__].get("description", operation.summary),
                "content": {"application/json": {"schema": {"$ref": REF.format(name=operation.response.__name__)}}},
            }
        }
        | _refusals(),
    }
    others = [name for name in schema["properties"] if name not in in_path]
    if route.takes_query:
        described["parameters"] += [_parameter(name, "query", schema) for name in others]
        return described
    content: Schema = {"application/json": {"schema": {"$ref": REF.format(name=operation.request.__name__)}}}
    if takes_file(operation):
        content["application/octet-stream"] = {"schema": {"description": "The file's bytes."}}
        described["description"] += (
            "\n\nThe file may also be the body itself, under any other content type than JSON; "
            "its name and the other fields then stand in the query string."
        )
    # A condition asks for one of several fields: no body at all has none of them.
    required = any(name in schema["required"] for name in others) or operation.request.__name__ in CONDITIONS
    described["requestBody"] = {"required": required, "content": content}
    return described


def _parameter(name: str, place: str, schema: Schema) -> Schema:
    return {
        "name": name,
        "in": place,
        "required": place == "path" or name in schema["required"],
        "schema": schema["properties"][name],
    }


def _beside() -> dict[str, Schema]:
    """Return the routes beside the unary operations: the export's stream and the probes."""

    def plain(name: str, summary: str, media_type: str, schema: Schema) -> Schema:
        return {
            "operationId": name,
            "summary": summary,
            "responses": {"200": {"description": summary, "content": {media_type: {"schema": schema}}}},
        }

    health = plain(
        "healthz",
        "That the process lives, and which run of it this is. Needs no token.",
        "application/json",
        {
            "type": "object",
            "properties": {
                "ok": {"type": "boolean"},
                "pid": {"type": "integer"},
                "version": {"type": "string"},
                "instance": {"type": "string"},
            },
            "required": ["ok", "pid", "version", "instance"],
        },
    )
    readiness: Schema = {
        "type": "object",
        "properties": {"ready": {"type": "boolean"}, "instance": {"type": "string"}, "reason": {"type": "string"}},
        "required": ["ready", "instance"],
    }
    ready = plain("readyz", "Whether requests are served. Needs no token.", "application/json", readiness)
    ready["responses"]["503"] = {
        "description": "It is stopping, or the disk failed and nothing can be stored any more; `reason` then says so.",
        "content": {"application/json": {"schema": readiness}},
    }
    export = plain(
        "export",
        "Everything that is not derived, one JSON object a line. An answer that is cut off has no proper end.",
        "application/x-ndjson",
        {"type": "string"},
    )
    export["responses"] |= _refusals()
    return {
        "/v1/export": {"get": export},
        "/healthz": {"get": health | {"security": []}},
        "/readyz": {"get": ready | {"security": []}},
        "/openapi.json": {"get": plain("openapi", "This document.", "application/json", {"type": "object"})},
    }


def _refusals() -> Schema:
    """Return the error answers any operation can give, by status. Two kinds answer 500; `code` tells them apart."""
    refusals = {str(kind.status): {"$ref": f"#/components/responses/{kind.code}"} for kind in KINDS}
    return refusals | {"default": {"$ref": "#/components/responses/internal"}}


def _refusal(meaning: str) -> Schema:
    return {
        "description": meaning,
        "content": {problem.MEDIA_TYPE: {"schema": {"$ref": REF.format(name="Problem")}}},
    }


def _tidied(schema: Schema) -> Schema:
    """Return a schema with its docstring's indentation removed and every key there that readers rely on."""
    tidied = dict(schema)
    if "description" in tidied:
        tidied["description"] = inspect.cleandoc(tidied["description"])
    if tidied.get("type") == "object":
        tidied["properties"] = dict(tidied.get("properties", {}))
        tidied.setdefault("required", [])
    return tidied


def _bounded(schema: Schema, keywords: Schema) -> Schema:
    """Return a field's schema with its bounds, inside the alternatives of one that may be null."""
    if "anyOf" in schema:
        choices = [choice if choice.get("type") == "null" else choice | keywords for choice in schema["anyOf"]]
        return schema | {"anyOf": choices}
    return schema | keywords


def _close(schemas: dict[str, Schema], name: str) -> None:
    """Say that a request record, and the records in it, take no other fields."""
    schema = schemas[name]
    schema["additionalProperties"] = False
    for member in schema["properties"].values():
        reference = member.get("items", {}).get("$ref") if isinstance(member.get("items"), dict) else None
        inner = reference.rsplit("/", 1)[-1] if reference else None
        if inner and schemas[inner].get("type") == "object":
            _close(schemas, inner)
