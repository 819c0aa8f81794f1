"""The gRPC interface: ten operations under the wire's names, the caller from the token, and statuses for our errors."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from grpc_tools import protoc

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay.transports.grpc import memory_pb2 as pb
from scrubjay.transports.grpc.server import SERVICE, GrpcServer
from scrubjay.transports.grpc.servicer import HANDLERS

ROOT = Path(__file__).parent.parent
PROTO = "scrubjay/transports/grpc/memory.proto"
START = 1_795_165_200_000
TOKEN, AGENT_TOKEN = "person-secret", "agent-secret"
WIRE = {
    ("Event", "event_id"): 1,
    ("Event", "session_id"): 2,
    ("Event", "timestamp_ms"): 3,
    ("Event", "event_type"): 4,
    ("Event", "role"): 5,
    ("Event", "text"): 6,
    ("Event", "metadata"): 7,
    ("Event", "agent"): 8,
    ("TocNode", "node_id"): 1,
    ("TocNode", "level"): 2,
    ("TocNode", "bullets"): 5,
    ("TocNode", "child_node_ids"): 7,
    ("TocNode", "version"): 10,
    ("Grip", "grip_id"): 1,
    ("Grip", "excerpt"): 2,
    ("Grip", "event_id_start"): 3,
    ("Grip", "event_id_end"): 4,
    ("Grip", "timestamp_ms"): 5,
    ("Grip", "source"): 6,
    ("RouteQueryRequest", "limit"): 5,
    ("GetAgentActivityRequest", "bucket"): 4,
}
"""Numbers that clients send, as their own file has them."""

pytestmark = pytest.mark.anyio


class Client:
    """A client as a stranger writes it: paths and messages, no stub of ours."""

    def __init__(self, channel: Any, token: str | None = TOKEN, **metadata: str) -> None:
        self._channel = channel
        self._metadata = [(f"scrubjay-{key}", value) for key, value in metadata.items()]
        if token is not None:
            self._metadata.append(("authorization", f"Bearer {token}"))

    async def __call__(self, name: str, **fields: Any) -> Any:
        sent, answered = getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response")
        call = self._channel.unary_unary(
            f"/{SERVICE}/{name}", request_serializer=sent.SerializeToString, response_deserializer=answered.FromString
        )
        return await call(sent(**fields), metadata=self._metadata, timeout=30)


@pytest.fixture
async def channel(service: Application) -> AsyncIterator[Any]:
    server = GrpcServer(service, token=TOKEN, agent_token=AGENT_TOKEN)
    port = await server.start(0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened
    await server.close()


def said(number: int, text: str, session: str = "s1", **more: Any) -> pb.Event:
    return pb.Event(
        event_id=f"evt-{number}",
        session_id=session,
        timestamp_ms=START + number * 60_000,
        event_type=pb.EVENT_TYPE_USER_MESSAGE,
        role=pb.EVENT_ROLE_USER,
        text=text,
        agent="claude-code",
        **more,
    )


async def filled(client: Client, service: Application) -> list[str]:
    texts = ["We move the cart store to SQLite WAL.", "The port of the shop is 8080.", "Maya prefers green tea."]
    ids = [(await client("IngestEvent", event=said(n, text))).event_id for n, text in enumerate(texts)]
    await service.call(PERSON, "rebuild", api.RebuildRequest())
    return ids


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), str(caught.value.details())


async def test_an_event_is_stored_once_and_read_as_it_was_sent(channel: Any) -> None:
    client = Client(channel)
    sent = said(1, "Use tabs.", metadata={"file": "a.py"})
    first = await client("IngestEvent", event=sent)
    again = await client("IngestEvent", event=sent)
    answer = await client("GetEvents", from_timestamp_ms=sent.timestamp_ms, to_timestamp_ms=sent.timestamp_ms)
    outside = await client("GetEvents", from_timestamp_ms=sent.timestamp_ms + 1, to_timestamp_ms=START * 2)
    (read,) = answer.events

    assert (first.created, again.created, first.event_id == again.event_id) == (True, False, True)
    assert (read.event_id, read.text, read.agent, read.timestamp_ms, read.role, read.event_type) == (
        first.event_id,
        sent.text,
        sent.agent,
        sent.timestamp_ms,
        sent.role,
        sent.event_type,
    )
    assert read.metadata["file"] == "a.py"
    assert not outside.events


async def test_the_walk_from_the_years_to_the_words(channel: Any, service: Application) -> None:
    client = Client(channel)
    ids = await filled(client, service)
    (year,) = (await client("GetTocRoot")).nodes
    node, levels, path = year, [year.level], year.node_id
    while children := (await client("BrowseToc", parent_id=node.node_id)).children:
        node = children[0]
        levels.append(node.level)
        path = node.node_id
    segment = (await client("GetNode", node_id=path)).node
    grip = next(grip for bullet in segment.bullets for grip in bullet.grip_ids)
    passage = await client("ExpandGrip", grip_id=grip, events_before=1, events_after=5)

    assert levels == [
        pb.TOC_LEVEL_YEAR,
        pb.TOC_LEVEL_MONTH,
        pb.TOC_LEVEL_WEEK,
        pb.TOC_LEVEL_DAY,
        pb.TOC_LEVEL_SEGMENT,
    ]
    assert passage.grip.excerpt in passage.excerpt_events[0].text
    around = [*passage.events_before, *passage.excerpt_events, *passage.events_after]
    assert {each.event_id for each in around} <= set(ids)
    assert passage.grip.source == segment.node_id


async def test_what_is_not_there_is_an_answer_without_it(channel: Any) -> None:
    client = Client(channel)

    assert not (await client("GetNode", node_id="toc:year:1999")).HasField("node")
    assert not (await client("ExpandGrip", grip_id="grip:01KXK2Y3A8M3N5P9R2T4V6W8Y0:0-3")).HasField("grip")
    assert not (await client("GetTocRoot")).nodes
    assert not (await client("ListAgents")).agents


async def test_a_search_gives_pointers_that_can_be_opened(channel: Any, service: Application) -> None:
    client = Client(channel)
    await filled(client, service)
    grips = await client("TeleportSearch", query="cart store WAL", doc_type=pb.TELEPORT_DOC_TYPE_GRIP, limit=3)
    nodes = await client("TeleportSearch", query="cart store WAL", doc_type=pb.TELEPORT_DOC_TYPE_TOC_NODE)
    routed = await client("RouteQuery", query="Which port does the shop use?", limit=3)
    passage = await client("ExpandGrip", grip_id=grips.results[0].doc_id)
    segment = await client("GetNode", node_id=nodes.results[0].doc_id)
    other = await client("TeleportSearch", query="cart store WAL", agent_filter="codex")

    assert "WAL" in passage.grip.excerpt
    assert segment.node.level == pb.TOC_LEVEL_SEGMENT
    assert routed.has_results
    assert any("8080" in result.text_preview for result in routed.results)
    assert routed.results[0].doc_type == "toc_node"
    assert routed.explanation.intent == pb.QUERY_INTENT_ANSWER
    assert routed.layers_attempted
    assert not other.results


async def test_agents_and_their_days(channel: Any, service: Application) -> None:
    client = Client(channel)
    await filled(client, service)
    (agent,) = (await client("ListAgents")).agents
    (day,) = (await client("GetAgentActivity", from_ms=START, bucket="day")).buckets
    (week,) = (await client("GetAgentActivity", from_ms=START, agent_id="claude-code", bucket="week")).buckets

    assert (agent.agent_id, agent.event_count, agent.session_count) == ("claude-code", 3, 1)
    assert (day.event_count, week.event_count) == (3, 3)
    assert day.start_ms <= START < day.end_ms
    assert week.end_ms - week.start_ms == 7 * (day.end_ms - day.start_ms)


async def test_who_calls_follows_from_the_token_and_never_from_a_request(channel: Any, service: Application) -> None:
    own = Client(channel, AGENT_TOKEN, agent="codex", project="/shop", session="s1")
    other = Client(channel, AGENT_TOKEN, agent="codex", project="/other", session="s2")
    stored = await own("IngestEvent", event=said(1, "I always use tabs."))
    (mine,) = (await own("GetEvents")).events
    events = (await service.call(PERSON, "events", api.EventsRequest())).events

    assert mine.event_id == stored.event_id
    assert not (await other("GetEvents")).events
    assert (events[0].project, events[0].session_id, events[0].trust.value) == ("/shop", "s1", "agent")


async def test_without_a_token_of_ours_nothing_is_answered(channel: Any) -> None:
    for token in (None, "", "wrong", TOKEN[:-1], f"{TOKEN}x"):
        for name in HANDLERS:
            code, words = await status_of(Client(channel, token)(name))

            assert code is grpc.StatusCode.UNAUTHENTICATED, (name, token)
            assert "token" in words


async def test_errors_have_the_status_that_grpc_has_for_them(channel: Any) -> None:
    client = Client(channel)
    agent = Client(channel, AGENT_TOKEN, agent="codex", project="%FF")

    assert (await status_of(client("IngestEvent")))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert (await status_of(client("GetAgentActivity", bucket="hour")))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert (await status_of(client("BrowseToc", parent_id="toc:year:1999")))[0] is grpc.StatusCode.NOT_FOUND
    assert (await status_of(agent("ListAgents")))[0] is grpc.StatusCode.INVALID_ARGUMENT
    unknown = channel.unary_unary(f"/{SERVICE}/PruneVectorIndex", request_serializer=bytes, response_deserializer=bytes)
    assert (await status_of(unknown(b"")))[0] is grpc.StatusCode.UNIMPLEMENTED


async def test_a_secret_is_taken_out_on_this_way_too(channel: Any) -> None:
    key = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    client = Client(channel)
    await client("IngestEvent", event=said(1, f"the token is {key}"))
    (read,) = (await client("GetEvents")).events

    assert key not in read.text


def test_names_and_numbers_are_those_that_clients_send() -> None:
    assert (pb.DESCRIPTOR.package, SERVICE) == ("memory", "memory.MemoryService")
    assert {method.name for method in pb.DESCRIPTOR.services_by_name["MemoryService"].methods} == set(HANDLERS)
    for (message, field), number in WIRE.items():
        assert getattr(pb, message).DESCRIPTOR.fields_by_name[field].number == number, (message, field)


def test_a_client_with_more_fields_is_understood() -> None:
    """Field 101 of a node (`salience_score`) is one that we do not have."""
    sent = pb.TocNode(node_id="toc:year:2026").SerializeToString() + b"\xad\x06\x00\x00\x00\x3f"

    assert json_format.MessageToDict(pb.TocNode.FromString(sent)) == {"nodeId": "toc:year:2026"}


def test_the_generated_files_are_those_that_the_proto_gives(tmp_path: Path) -> None:
    well_known = resources.files("grpc_tools") / "_proto"
    code = protoc.main(
        ["protoc", f"-I{ROOT / 'local'}", f"-I{well_known}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", PROTO]
    )

    assert code == 0
    for name in ("memory_pb2.py", "memory_pb2.pyi"):
        made = (tmp_path / PROTO).with_name(name).read_text()
        assert made == (ROOT / "local" / PROTO).with_name(name).read_text(), f"make it again with {sys.executable}"
