"""The ten operations of the wire, each by the operation of ours that does it. Who calls was made before.

Limits of a request are the operations' own. What the wire cannot say (a project, a session) an agent's caller has.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.service.application import Application
from scrubjay.transports.grpc import memory_pb2 as pb
from scrubjay.transports.grpc import messages
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

ROOT = "toc"
LIMIT = 20
"""Results where a request names no limit."""

MANY = 100
"""Children and events where a request names no limit."""

INTENT = pb.QUERY_INTENT_ANSWER
BUCKETS = {"": api.Bucket.DAY, "day": api.Bucket.DAY, "week": api.Bucket.WEEK}

Handler = Callable[[Application, Caller, Any], Awaitable[Any]]


async def ingest_event(app: Application, caller: Caller, sent: pb.IngestEventRequest) -> pb.IngestEventResponse:
    """Store one event; the same again is known."""
    answer = await app.call(caller, "ingest", api.IngestRequest(events=(messages.draft(sent.event),)))
    return pb.IngestEventResponse(event_id=answer.ids[0], created=answer.accepted == 1)


async def get_toc_root(app: Application, caller: Caller, _: pb.GetTocRootRequest) -> pb.GetTocRootResponse:
    """Return the years, the newest first."""
    answer = await app.call(caller, "toc", api.TocRequest(limit=MANY))
    years = sorted(answer.children, key=lambda each: -each.start)
    return pb.GetTocRootResponse(nodes=[messages.node(each) for each in years])


async def get_node(app: Application, caller: Caller, sent: pb.GetNodeRequest) -> pb.GetNodeResponse:
    """Return one node; no node where there is none of that id."""
    try:
        answer = await app.call(caller, "toc", api.TocRequest(id=sent.node_id or ROOT, limit=1))
    except NotFoundError:
        return pb.GetNodeResponse()
    return pb.GetNodeResponse(node=messages.node(answer.node))


async def browse_toc(app: Application, caller: Caller, sent: pb.BrowseTocRequest) -> pb.BrowseTocResponse:
    """Return a page of a node's children."""
    request = api.TocRequest(
        id=sent.parent_id or ROOT, limit=limit_of(sent.limit, MANY), cursor=sent.continuation_token or None
    )
    answer = await app.call(caller, "toc", request)
    return pb.BrowseTocResponse(
        children=[messages.node(each) for each in answer.children],
        continuation_token=answer.next,
        has_more=answer.next is not None,
    )


async def get_events(app: Application, caller: Caller, sent: pb.GetEventsRequest) -> pb.GetEventsResponse:
    """Return the events from one time to another, both inclusive."""
    request = api.EventsRequest(
        since=Millis(sent.from_timestamp_ms) if sent.from_timestamp_ms else None,
        until=Millis(sent.to_timestamp_ms + 1) if sent.to_timestamp_ms else None,
        limit=limit_of(sent.limit, MANY),
    )
    answer = await app.call(caller, "events", request)
    return pb.GetEventsResponse(events=messages.events(answer.events), has_more=answer.next is not None)


async def expand_grip(app: Application, caller: Caller, sent: pb.ExpandGripRequest) -> pb.ExpandGripResponse:
    """Return a passage with what was said around it; nothing where there is none of that id."""
    request = api.GripRequest(id=sent.grip_id)
    before = sent.events_before if sent.HasField("events_before") else request.before
    after = sent.events_after if sent.HasField("events_after") else request.after
    try:
        answer = await app.call(caller, "grip", api.GripRequest(id=sent.grip_id, before=before, after=after))
    except NotFoundError:
        return pb.ExpandGripResponse()
    return messages.expanded(answer)


async def teleport_search(
    app: Application, caller: Caller, sent: pb.TeleportSearchRequest
) -> pb.TeleportSearchResponse:
    """Return where words were said: passages, or the segments that hold them. Both can be opened by their ids."""
    hits = await found(app, caller, sent, api.Mode.KEYWORD)
    results: dict[str, pb.TeleportSearchResult] = {}
    for hit in hits:
        place, kind = messages.grip_id(hit), pb.TELEPORT_DOC_TYPE_GRIP
        if sent.doc_type == pb.TELEPORT_DOC_TYPE_TOC_NODE:
            passage = await app.call(caller, "grip", api.GripRequest(id=place, before=0, after=0))
            place, kind = passage.segment or "", pb.TELEPORT_DOC_TYPE_TOC_NODE
        if place and place not in results:
            results[place] = pb.TeleportSearchResult(
                doc_id=place, doc_type=kind, score=hit.score, timestamp_ms=hit.ts, agent=sent.agent_filter or None
            )
    return pb.TeleportSearchResponse(results=results.values())


async def route_query(app: Application, caller: Caller, sent: pb.RouteQueryRequest) -> pb.RouteQueryResponse:
    """Answer a question by words and by meaning, and say what was done."""
    began = time.perf_counter()
    hits = await found(app, caller, sent, api.Mode.HYBRID)
    layer = pb.RETRIEVAL_LAYER_HYBRID
    grips = [messages.grip_id(hit) for hit in hits]
    results = [
        pb.RetrievalResult(
            doc_id=grip,
            doc_type="grip",
            score=hit.score,
            text_preview=hit.text,
            source_layer=layer,
            agent=sent.agent_filter or None,
        )
        for grip, hit in zip(grips, hits, strict=True)
    ]
    why = "recall in mode hybrid: by words and by meaning, as far as a model is installed"
    explanation = pb.ExplainabilityPayload(
        intent=sent.intent_override or INTENT,
        why_winner=why,
        total_time_ms=round((time.perf_counter() - began) * 1000),
        grip_ids=grips,
    )
    return pb.RouteQueryResponse(
        results=results, explanation=explanation, has_results=bool(results), layers_attempted=[layer]
    )


async def found(app: Application, caller: Caller, sent: Any, mode: api.Mode) -> tuple[api.Hit, ...]:
    """Return the events that answer what a search or a route asks."""
    request = api.RecallRequest(
        query=sent.query,
        mode=mode,
        limit=limit_of(sent.limit, LIMIT),
        kinds=("event",),
        agent=sent.agent_filter or None,
    )
    answer: api.RecallResponse = await app.call(caller, "recall", request)
    return answer.hits


async def list_agents(app: Application, caller: Caller, _: pb.ListAgentsRequest) -> pb.ListAgentsResponse:
    """Return who contributed."""
    answer = await app.call(caller, "agents", api.AgentsRequest())
    return pb.ListAgentsResponse(
        agents=[
            pb.AgentSummary(
                agent_id=each.name,
                event_count=each.events,
                session_count=each.sessions,
                first_seen_ms=each.first,
                last_seen_ms=each.last,
            )
            for each in answer.agents
        ]
    )


async def get_agent_activity(
    app: Application, caller: Caller, sent: pb.GetAgentActivityRequest
) -> pb.GetAgentActivityResponse:
    """Return how much was done on each day or in each week."""
    bucket = BUCKETS.get(sent.bucket)
    if bucket is None:
        raise InvalidError(f"{sent.bucket[:40]!r} is not a bucket", hint="day or week")
    request = api.ActivityRequest(
        agent=sent.agent_id or None,
        since=Millis(sent.from_ms) if sent.HasField("from_ms") else None,
        until=Millis(sent.to_ms) if sent.HasField("to_ms") else None,
        bucket=bucket,
    )
    answer = await app.call(caller, "agent_activity", request)
    length = timedelta(days=7 if bucket is api.Bucket.WEEK else 1)
    buckets = []
    for each in answer.activity:
        start = datetime.fromisoformat(each.day).replace(tzinfo=UTC)
        buckets.append(
            pb.ActivityBucket(
                start_ms=int(start.timestamp() * 1000),
                end_ms=int((start + length).timestamp() * 1000),
                event_count=each.events,
                agent_id=each.agent,
            )
        )
    return pb.GetAgentActivityResponse(buckets=buckets)


def limit_of(given: int, otherwise: int) -> int:
    """Return a limit; 0, which is what an absent one reads as, is none."""
    return given or otherwise


HANDLERS: dict[str, tuple[type[Any], Handler]] = {
    "IngestEvent": (pb.IngestEventRequest, ingest_event),
    "GetTocRoot": (pb.GetTocRootRequest, get_toc_root),
    "GetNode": (pb.GetNodeRequest, get_node),
    "BrowseToc": (pb.BrowseTocRequest, browse_toc),
    "GetEvents": (pb.GetEventsRequest, get_events),
    "ExpandGrip": (pb.ExpandGripRequest, expand_grip),
    "TeleportSearch": (pb.TeleportSearchRequest, teleport_search),
    "RouteQuery": (pb.RouteQueryRequest, route_query),
    "ListAgents": (pb.ListAgentsRequest, list_agents),
    "GetAgentActivity": (pb.GetAgentActivityRequest, get_agent_activity),
}
"""Each operation by its name on the wire: what it is sent, and what answers."""
