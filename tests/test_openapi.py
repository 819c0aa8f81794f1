"""The OpenAPI document says what the registry of operations says: nothing missing, nothing invented, every reference resolves."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import hypothesis
import msgspec
import pytest
import schemathesis
from starlette.testclient import TestClient

from scrubjay.api.operations import OPERATIONS, Kind
from scrubjay.transports.http.openapi import document
from scrubjay.transports.http.routes import ROUTES, Route
from scrubjay_shared.errors import KINDS
from test_daemon import AGENT_TOKEN, TOKEN, opened_client

DOCUMENT: dict[str, Any] = json.loads(msgspec.json.encode(document("1.2.3")))
UNARY = [route for route in ROUTES if OPERATIONS[route.operation].kind is Kind.UNARY]
by_name = pytest.mark.parametrize("route", UNARY, ids=lambda route: route.operation)


def walk(value: object) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from walk(member)
    elif isinstance(value, list):
        for member in value:
            yield from walk(member)


def resolved(reference: str) -> Any:
    assert reference.startswith("#/")
    found: Any = DOCUMENT
    for step in reference[2:].split("/"):
        found = found[step]
    return found


def operation_of(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return operation


def body_schema(operation: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = resolved(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"])
    return schema


def test_it_is_openapi_3_1_with_the_product_version_and_a_token_on_everything() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"]["version"] == "1.2.3"
    assert DOCUMENT["security"] == [{"token": []}]
    assert DOCUMENT["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_reference_resolves() -> None:
    references = [value["$ref"] for value in walk(DOCUMENT) if "$ref" in value]

    assert references
    assert [resolved(reference) for reference in references]


def test_every_component_is_used() -> None:
    used = {value["$ref"] for value in walk(DOCUMENT) if "$ref" in value}

    stated = {
        f"#/components/{part}/{name}" for part in ("schemas", "responses") for name in DOCUMENT["components"][part]
    }
    assert stated == used


@by_name
def test_every_operation_is_described(route: Route) -> None:
    operation = operation_of(route)

    assert operation["operationId"] == route.operation
    assert operation["summary"] == OPERATIONS[route.operation].summary
    answer = operation["responses"][str(route.status)]["content"]["application/json"]["schema"]
    assert answer == {"$ref": f"#/components/schemas/{OPERATIONS[route.operation].response.__name__}"}


def test_nothing_is_described_that_is_no_unary_operation_but_the_export_and_the_probes() -> None:
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}

    beside = {("GET", "/v1/export"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/openapi.json")}
    assert described - {(route.method, route.path) for route in UNARY} == beside
    names = [value["operationId"] for value in walk(DOCUMENT["paths"]) if "operationId" in value]
    assert len(names) == len(set(names)) == len(UNARY) + len(beside)


@by_name
def test_every_field_of_a_request_stands_in_exactly_one_place(route: Route) -> None:
    operation = operation_of(route)
    places = [parameter["name"] for parameter in operation["parameters"]]
    if "requestBody" in operation:
        places += list(body_schema(operation)["properties"])

    assert sorted(places) == sorted(field.name for field in dataclasses.fields(OPERATIONS[route.operation].request))


@by_name
def test_what_is_required_is_what_has_no_default(route: Route) -> None:
    operation = operation_of(route)
    required = [parameter["name"] for parameter in operation["parameters"] if parameter["required"]]
    if "requestBody" in operation:
        schema = body_schema(operation)
        required += schema["required"]
        # One that says "one of these fields" in `allOf` says it of a body that is there.
        assert operation["requestBody"]["required"] == bool(schema["required"] or "allOf" in schema)

    expected = {
        field.name
        for field in dataclasses.fields(OPERATIONS[route.operation].request)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    assert set(required) == expected


@by_name
def test_path_parameters_are_those_of_the_path(route: Route) -> None:
    in_path = [parameter for parameter in operation_of(route)["parameters"] if parameter["in"] == "path"]

    assert {parameter["name"] for parameter in in_path} == set(re.findall(r"{(\w+)}", route.path))
    assert all(parameter["required"] for parameter in in_path)


@by_name
def test_every_error_an_operation_can_answer_with_is_described(route: Route) -> None:
    responses = operation_of(route)["responses"]

    for kind in KINDS:
        described = resolved(responses[str(kind.status)]["$ref"])
        assert described["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }
    assert {kind.code for kind in KINDS} | {"internal"} == set(DOCUMENT["components"]["responses"])


def test_a_body_says_that_it_takes_no_other_fields() -> None:
    for route in UNARY:
        operation = operation_of(route)
        if "requestBody" in operation:
            assert body_schema(operation)["additionalProperties"] is False
    assert DOCUMENT["components"]["schemas"]["EventDraft"]["additionalProperties"] is False
    assert DOCUMENT["components"]["schemas"]["MemoryDraft"]["additionalProperties"] is False


def test_an_import_takes_a_file_as_it_is_too() -> None:
    content = DOCUMENT["paths"]["/v1/import"]["post"]["requestBody"]["content"]

    assert set(content) == {"application/json", "application/octet-stream"}


def test_descriptions_carry_no_source_indentation() -> None:
    texts = [value["description"] for value in walk(DOCUMENT) if isinstance(value.get("description"), str)]

    assert texts
    assert not [text for text in texts if "\n  " in text]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_probes_need_no_token(path: str) -> None:
    assert DOCUMENT["paths"][path]["get"]["security"] == []


# What the document allows is taken.


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with opened_client(tmp_path_factory.mktemp("openapi")) as client:
        yield client


TAKES_WHAT_A_TYPE_CANNOT_SAY = {
    "import": "a file's contents decide",
    "hook": "the payload's contents decide",
    "backup": "the folder must exist",
    "vault_init": "it makes a folder wherever the path says",
    "use_model": "the model must exist",
    "resolve": "the version must exist",
    "forget_all": "exactly one of three is named",
    "settle": "it waits",
    "rebuild": "it takes a while",
}


@pytest.mark.parametrize(
    "route",
    [route for route in UNARY if route.operation not in TAKES_WHAT_A_TYPE_CANNOT_SAY],
    ids=lambda route: route.operation,
)
def test_a_request_that_the_document_allows_is_not_refused(client: TestClient, route: Route) -> None:
    operation = schemathesis.openapi.from_dict(client.get("/openapi.json").json())[route.path][route.method]
    refused: list[str] = []

    @hypothesis.settings(
        max_examples=12,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url=str(client.base_url))
        response = client.request(**{key: value for key, value in sent.items() if key not in {"cookies", "headers"}})
        # Metadata is free JSON, whose whole numbers no schema of the document bounds: the one documented refusal.
        if response.status_code not in {200, 201, 202, 204, 404, 409} and "number beyond 2^63" not in response.text:
            refused.append(f"{response.status_code} {response.text}")

    ask()

    assert refused == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/recall", {"query": "berths", "limit": 5.0}),
        ("/v1/events", {"events": [{"agent": "a", "session_id": "s", "type": "note", "text": "x", "ts": 5.0}]}),
    ],
)
def test_a_whole_number_may_be_written_with_a_point(client: TestClient, path: str, body: dict[str, Any]) -> None:
    assert client.post(path, json=body).status_code in {200, 202}


EXTREMES = (-1, 0, 1, 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, 0.5, -0.0, 1e308)


def numeric(schema: dict[str, Any]) -> bool:
    """Say whether a schema takes a number."""
    return any(part.get("type") in {"integer", "number"} for part in walk(schema))


@pytest.mark.parametrize(
    "route", [r for r in UNARY if r.operation not in {"settle", "rebuild"}], ids=lambda r: r.operation
)
def test_no_number_of_a_request_however_large_or_small_makes_an_internal_error(
    client: TestClient, route: Route
) -> None:
    event = {"agent": "a", "session_id": "s", "type": "user_message", "text": "We chose SQLite for the cart."}
    said = client.post("/v1/events", json={"events": [event]}).json()["ids"][0]
    memory = client.post("/v1/memories", json={"content": "The cart is stored in SQLite."}).json()["memory"]["id"]
    operation = operation_of(route)
    parameters = operation.get("parameters", [])
    fields = body_schema(operation).get("properties", {}) if "requestBody" in operation else {}
    broken: list[str] = []
    for ref in (said, memory):
        path = re.sub(r"\{\w+\}", ref, route.path)
        required = {one["name"]: ref for one in parameters if one["in"] == "query" and one.get("required")}
        needed = dict.fromkeys(body_schema(operation).get("required", []) if fields else [], ref)
        for value in EXTREMES:
            for one in parameters:
                if one["in"] == "query" and numeric(one["schema"]):
                    answer = client.request(route.method, path, params=required | {one["name"]: value})
                    broken += [f"{one['name']}={value}: {answer.text}"] if answer.status_code >= 500 else []
            for name, schema in fields.items():
                if numeric(schema):
                    answer = client.request(route.method, path, params=required, json=needed | {name: value})
                    broken += [f"{name}={value}: {answer.text}"] if answer.status_code >= 500 else []

    assert broken == []


@pytest.mark.parametrize("token", [TOKEN, AGENT_TOKEN])
@pytest.mark.parametrize("path", ["/v1/memories"])
def test_nobody_adds_a_memory_that_the_store_would_call_unsound(client: TestClient, token: str, path: str) -> None:
    draft = {"content": "It was decided to use SQLite.", "kind": "observation"}

    answer = client.post(path, json=draft, headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 400, answer.text
    assert "nobody adds one" in answer.text
