"""The ten operations of the wire, each by the operation of ours that does it. Who calls was made before.

Limits of a request are the operations' own. What the wire cannot say (a project, a session) an agent's caller has.
"""

from __future__ import annotations

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

INTENTS = {
    pb.QUERY_INTENT_EXPLORE: api.Intent.EXPLORE,
    pb.QUERY_INTENT_ANSWER: api.Intent.ANSWER,
    pb.QUERY_INTENT_LOCATE: api.Intent.LOCATE,
    pb.QUERY_INTENT_TIME_BOXED: api.Intent.TIME_BOXED,
}
LAYERS = {
    "hybrid": pb.RETRIEVAL_LAYER_HYBRID,
    "vector": pb.RETRIEVAL_LAYER_VECTOR,
    "keyword": pb.RETRIEVAL_LAYER_BM25,
}
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
    """Return where words were said: nodes of the table of contents, passages, or both. Each can be opened by its id."""
    request = api.TeleportRequest(
        query=sent.query,
        mode=api.TeleportMode.KEYWORD,
        limit=limit_of(sent.limit, LIMIT),
        agent=sent.agent_filter or None,
    )
    answer = await app.call(caller, "teleport", request)
    results: dict[str, pb.TeleportSearchResult] = {}
    for pointer in answer.pointers:
        places = [(pointer.node, pb.TELEPORT_DOC_TYPE_TOC_NODE)]
        places += [(grip, pb.TELEPORT_DOC_TYPE_GRIP) for grip in pointer.grips]
        for place, kind in places:
            if sent.doc_type in (kind, pb.TELEPORT_DOC_TYPE_UNSPECIFIED) and place not in results:
                results[place] = pb.TeleportSearchResult(
                    doc_id=place,
                    doc_type=kind,
                    score=pointer.score,
                    timestamp_ms=pointer.start,
                    agent=pointer.agents[0] if pointer.agents else None,
                )
    return pb.TeleportSearchResponse(results=results.values())


async def route_query(app: Application, caller: Caller, sent: pb.RouteQueryRequest) -> pb.RouteQueryResponse:
    """Answer a question by the layers that its intent asks for, and say what was done."""
    request = api.RouteRequest(
        query=sent.query,
        intent=INTENTS.get(sent.intent_override),
        limit=limit_of(sent.limit, api.RouteRequest(query="").limit),
        agent=sent.agent_filter or None,
    )
    answer = await app.call(caller, "route", request)
    results = [
        pb.RetrievalResult(
            doc_id=each.node,
            doc_type="toc_node",
            score=each.score,
            text_preview=each.title,
            source_layer=layer_of(each.found_by[0] if each.found_by else ""),
            metadata={"day": each.day, "level": each.level},
            agent=each.agents[0] if each.agents else None,
        )
        for each in answer.pointers
    ]
    results += [
        pb.RetrievalResult(
            doc_id=messages.grip_id(hit) if hit.kind == "event" else hit.id,
            doc_type="grip" if hit.kind == "event" else hit.kind,
            score=hit.score,
            text_preview=hit.text,
            source_layer=pb.RETRIEVAL_LAYER_HYBRID,
        )
        for hit in answer.hits
    ]
    explanation = pb.ExplainabilityPayload(
        intent=next(number for number, intent in INTENTS.items() if intent is answer.intent),
        why_winner="; ".join([*answer.reasons, *(f"{each.layer}: {each.found} {each.note}" for each in answer.steps)]),
        total_time_ms=round(answer.elapsed_ms),
        grip_ids=[grip for each in answer.pointers for grip in each.grips],
    )
    return pb.RouteQueryResponse(
        results=results,
        explanation=explanation,
        has_results=bool(results),
        layers_attempted=dict.fromkeys(layer_of(each.layer) for each in answer.steps),
    )


def layer_of(name: str) -> pb.RetrievalLayer:
    """Return the wire's name of a layer; that of the walk through the contents for those which it does not have."""
    return LAYERS.get(name, pb.RETRIEVAL_LAYER_AGENTIC)


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
