"""mem0's REST interface below /mem0: a program that was written for it stores, finds, changes and deletes memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from scrubjay.transports.mem0 import Mem0
from test_daemon import AGENT_TOKEN, TOKEN, opened_client


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with opened_client(tmp_path_factory.mktemp("mem0")) as client:
        client.post("/v1/memories", json={"content": "The person's own: the office is in Graz"})
        yield client


@pytest.fixture
def mem0(daemon: TestClient) -> Iterator[TestClient]:
    """A program with the key where mem0's programs have it; the store has nothing of theirs."""
    before = dict(daemon.headers)
    daemon.headers.pop("Authorization")
    daemon.headers["X-API-Key"] = TOKEN
    assert daemon.post("/mem0/reset").json() == {"message": "All memories reset"}
    yield daemon
    daemon.headers.clear()
    daemon.headers.update(before)


def added(mem0: TestClient, text: str, **more: Any) -> str:
    answer = mem0.post("/mem0/memories", json={"messages": text, "user_id": "ana", "infer": False} | more)
    assert answer.status_code == 200, answer.text
    [result] = answer.json()["results"]
    assert result == {"id": result["id"], "memory": text, "event": "ADD"}
    return str(result["id"])


def found(mem0: TestClient, **asked: Any) -> list[str]:
    return [one["memory"] for one in mem0.post("/mem0/search", json={"query": "zebra"} | asked).json()["results"]]


def test_what_is_added_is_found_read_changed_and_deleted(mem0: TestClient) -> None:
    ref = added(mem0, "zebra stripes are white", metadata={"topic": "animals"})
    one = mem0.get(f"/mem0/memories/{ref}").json()
    assert (one["memory"], one["user_id"], one["agent_id"], one["metadata"]) == (
        "zebra stripes are white",
        "ana",
        None,
        {"topic": "animals", "role": "user"},
    )
    assert found(mem0, user_id="ana") == found(mem0, filters={"user_id": "ana"}, top_k=5) == ["zebra stripes are white"]
    assert mem0.put(f"/mem0/memories/{ref}", json={"text": "zebra stripes are black"}).status_code == 200
    assert mem0.get(f"/mem0/memories/{ref}/").json()["memory"] == "zebra stripes are black"
    assert [row["event"] for row in mem0.get(f"/mem0/memories/{ref}/history").json()] == ["ADD", "UPDATE"]
    assert mem0.delete(f"/mem0/memories/{ref}").json() == {"message": "Memory deleted successfully!"}
    assert mem0.get(f"/mem0/memories/{ref}").status_code == 404


def test_an_id_narrows_what_is_found_and_what_is_deleted(mem0: TestClient) -> None:
    added(mem0, "zebra of ana", agent_id="crow")
    added(mem0, "zebra of ben", user_id="ben")
    assert found(mem0, user_id="ben") == ["zebra of ben"]
    assert found(mem0, agent_id="crow", user_id="ana") == ["zebra of ana"]
    assert sorted(found(mem0)) == ["zebra of ana", "zebra of ben"]
    listed = mem0.get("/mem0/memories", params={"user_id": "ana"}).json()["results"]
    assert "zebra of ben" not in {one["memory"] for one in listed}
    assert mem0.delete("/mem0/memories", params={"user_id": "ana"}).status_code == 200
    assert found(mem0) == ["zebra of ben"]
    assert mem0.delete("/mem0/memories").status_code == 400


def test_deleting_all_of_a_program_leaves_the_persons_own(mem0: TestClient) -> None:
    added(mem0, "zebra of ana")
    mem0.delete("/mem0/memories", params={"user_id": "ana"})
    mem0.post("/mem0/reset")
    left = [one["memory"] for one in mem0.get("/mem0/memories").json()["results"]]
    assert left == ["The person's own: the office is in Graz"]


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        [
            {"type": "text", "text": "zebra"},
            {"type": "image_url", "image_url": {"url": "x"}},
            {"type": "text", "text": "two"},
        ],
        ["zebra", "two"],
        {"type": "text", "text": "zebra\ntwo"},
    ],
)
def test_a_message_in_parts_is_taken_by_its_words(mem0: TestClient, content: Any, infer: bool) -> None:  # noqa: FBT001
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    body = {"messages": [{"role": "user", "content": content}, calls], "user_id": "ana", "infer": infer}

    answer = mem0.post("/mem0/memories", json=body)

    assert answer.status_code == 200, answer.text
    if not infer:
        assert [one["memory"] for one in answer.json()["results"]] == ["zebra\ntwo"]


def test_messages_without_words_are_nothing_to_remember(mem0: TestClient) -> None:
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": []}], "user_id": "ana"}

    assert mem0.post("/mem0/memories", json=body).json() == {"results": []}


def test_a_short_listing_reads_one_page_and_a_search_its_hits_at_once(
    mem0: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        added(mem0, f"zebra number {number}")
    asked: list[str] = []
    call = Mem0._call

    async def counted(self: Mem0, request: Any, name: str, given: Any) -> Any:
        asked.append(name)
        return await call(self, request, name, given)

    monkeypatch.setattr(Mem0, "_call", counted)
    monkeypatch.setattr("scrubjay.transports.mem0.PAGE", 2)

    assert len(mem0.get("/mem0/memories", params={"limit": "1"}).json()["results"]) == 1
    assert len(found(mem0)) == 6
    assert asked == ["list", "recall"]


def test_messages_are_learned_from(mem0: TestClient) -> None:
    messages = [
        {"role": "user", "content": "We decided to use SQLite WAL for the cart store because readers were locked out."},
        {"role": "assistant", "content": "Noted."},
    ]
    results = mem0.post("/mem0/memories", json={"messages": messages, "user_id": "ana", "run_id": "r1"}).json()[
        "results"
    ]
    assert any("SQLite WAL" in one["memory"] for one in results)
    assert any("SQLite WAL" in text for text in found(mem0, query="cart store", user_id="ana"))


@pytest.mark.parametrize(
    ("body", "status"),
    [({"messages": "x"}, 400), ({"user_id": "ana"}, 400), ({"messages": 3, "user_id": "ana"}, 400), ([], 400)],
)
def test_a_wrong_body_is_refused(mem0: TestClient, body: Any, status: int) -> None:
    assert mem0.post("/mem0/memories", json=body).status_code == status


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/mem0/memories", {"X-API-Key": "wrong"}, 401),
        ("/mem0/memories", {"X-API-Key": ""}, 401),
        ("/mem0/memories", {"X-API-Key": TOKEN, "Authorization": "Bearer wrong"}, 401),
        ("/mem0/memories", {"X-API-Key": AGENT_TOKEN}, 200),
        ("/v1/memories", {"X-API-Key": TOKEN}, 401),
        ("/mem0/memories", {"X-API-Key": TOKEN, "Host": "evil.example"}, 403),
        ("/mem0/memories", {"X-API-Key": TOKEN, "Origin": "http://evil.example"}, 403),
    ],
)
def test_the_key_is_the_token_and_opens_these_paths_alone(
    mem0: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    assert mem0.get(path, headers=headers).status_code == status


def test_an_agents_key_sees_its_project_alone_and_is_trusted_as_an_agent(mem0: TestClient) -> None:
    theirs = {"content": "zebra of another project", "scope": "project", "resource_id": "other"}
    mem0.post("/v1/memories", json=theirs, headers={"Authorization": f"Bearer {TOKEN}"})
    key = {"X-API-Key": AGENT_TOKEN, "Scrubjay-Project": "own"}
    answer = mem0.post("/mem0/search", json={"query": "zebra"}, headers=key).json()
    assert [one["memory"] for one in answer["results"]] == []
    made = mem0.post("/mem0/memories", json={"messages": "zebra note", "user_id": "ana", "infer": False}, headers=key)
    [ref] = [one["id"] for one in made.json()["results"]]
    memory = mem0.get(f"/v1/memories/{ref}", headers={"Authorization": f"Bearer {TOKEN}"}).json()["memory"]
    assert memory["trust"] == "agent"
