"""Messages of the wire from what the operations answer, and what they are asked from messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from scrubjay import api
from scrubjay.transports.grpc import memory_pb2 as pb
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventDraft, EventType, Role, TocNode

ROLES = {
    pb.EVENT_ROLE_USER: Role.USER,
    pb.EVENT_ROLE_ASSISTANT: Role.ASSISTANT,
    pb.EVENT_ROLE_SYSTEM: Role.SYSTEM,
    pb.EVENT_ROLE_TOOL: Role.TOOL,
}
TYPES = {
    pb.EVENT_TYPE_SESSION_START: EventType.SESSION_START,
    pb.EVENT_TYPE_USER_MESSAGE: EventType.USER_MESSAGE,
    pb.EVENT_TYPE_ASSISTANT_MESSAGE: EventType.ASSISTANT_MESSAGE,
    pb.EVENT_TYPE_TOOL_RESULT: EventType.TOOL_RESULT,
    pb.EVENT_TYPE_ASSISTANT_STOP: EventType.ASSISTANT_STOP,
    pb.EVENT_TYPE_SUBAGENT_START: EventType.SUBAGENT_START,
    pb.EVENT_TYPE_SUBAGENT_STOP: EventType.SUBAGENT_STOP,
    pb.EVENT_TYPE_SESSION_END: EventType.SESSION_END,
}
ROLE_NUMBERS = {role: number for number, role in ROLES.items()}
TYPE_NUMBERS = {kind: number for number, kind in TYPES.items()}
LEVELS = {
    "year": pb.TOC_LEVEL_YEAR,
    "month": pb.TOC_LEVEL_MONTH,
    "week": pb.TOC_LEVEL_WEEK,
    "day": pb.TOC_LEVEL_DAY,
    "segment": pb.TOC_LEVEL_SEGMENT,
}
UNKNOWN_AGENT = "grpc"
"""The agent of an event that names none."""


def draft(sent: pb.Event) -> EventDraft:
    """Return an event as it is to be stored. Its id on the wire is what a second delivery of it repeats."""
    agent = sent.agent or UNKNOWN_AGENT
    return EventDraft(
        agent=agent,
        session_id=sent.session_id,
        type=TYPES.get(sent.event_type, EventType.NOTE),
        role=ROLES.get(sent.role),
        text=sent.text,
        ts=Millis(sent.timestamp_ms) if sent.timestamp_ms else None,
        metadata=dict(sent.metadata),
        dedupe_key=f"{agent}/{sent.session_id}/{sent.event_id}" if sent.event_id else None,
    )


def event(found: Event) -> pb.Event:
    """Return a stored event. Types that the wire does not have are unspecified there."""
    return pb.Event(
        event_id=found.id,
        session_id=found.session_id,
        timestamp_ms=found.ts,
        event_type=TYPE_NUMBERS.get(found.type, pb.EVENT_TYPE_UNSPECIFIED),
        role=ROLE_NUMBERS[found.role],
        text=found.text,
        metadata={
            key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for key, value in found.metadata.items()
        },
        agent=found.agent,
    )


def node(found: TocNode) -> pb.TocNode:
    """Return a node of the table of contents. Each bullet has the passage that it was taken from."""
    grips = found.grip_ids if len(found.grip_ids) == len(found.bullets) else ("",) * len(found.bullets)
    return pb.TocNode(
        node_id=found.id,
        level=level_of(found.id),
        title=found.title,
        summary=found.summary or None,
        bullets=[
            pb.TocBullet(text=text, grip_ids=[grip] if grip else [])
            for text, grip in zip(found.bullets, grips, strict=True)
        ],
        keywords=found.keywords,
        child_node_ids=found.children,
        start_time_ms=found.start,
        end_time_ms=found.end,
        version=found.version,
    )


def level_of(node_id: str) -> pb.TocLevel:
    """Return the level of a node by its id: `toc:day:2026-11-21`."""
    return LEVELS.get(node_id.split(":")[1] if ":" in node_id else "", pb.TOC_LEVEL_UNSPECIFIED)


def expanded(found: api.GripResponse) -> pb.ExpandGripResponse:
    """Return a passage with the events before it, its own, and those after."""
    ids = [each.id for each in found.events]
    start, end = ids.index(found.event_id_start), ids.index(found.event_id_end)
    inside = found.events[start : end + 1]
    return pb.ExpandGripResponse(
        grip=pb.Grip(
            grip_id=found.id,
            excerpt=found.excerpt,
            event_id_start=found.event_id_start,
            event_id_end=found.event_id_end,
            timestamp_ms=inside[0].ts,
            source=found.segment or "",
        ),
        events_before=events(found.events[:start]),
        excerpt_events=events(inside),
        events_after=events(found.events[end + 1 :]),
    )


def events(found: Iterable[Event]) -> list[pb.Event]:
    """Return some events."""
    return [event(each) for each in found]


def grip_id(hit: api.Hit) -> str:
    """Return the id of the passage of an event that answers, as `grip` takes it."""
    start, end = hit.span or (0, len(hit.text))
    return f"grip:{hit.id}:{start}-{end}"
