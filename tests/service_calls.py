"""What tests of the service send and read: events, and the operations they call most."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType

Opener = Callable[..., AbstractAsyncContextManager[Application]]


NOW = Millis(1_800_000_000_000)
NOTHING = api.Nothing()


def said(text: str, session: str = "s1", **more: Any) -> EventDraft:
    fields: dict[str, Any] = {"agent": "test", "session_id": session, "type": EventType.USER_MESSAGE, "text": text}
    return EventDraft(**(fields | more))


async def ingest(service: Application, *drafts: EventDraft, learn: bool = True) -> api.IngestResponse:
    return await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=learn))


async def recalled(service: Application, query: str, **more: Any) -> list[str]:
    answer = await service.call(PERSON, "recall", api.RecallRequest(query=query, **more))
    return [hit.text for hit in answer.hits]


async def listed(service: Application, **more: Any) -> list[str]:
    return [entry.memory.content for entry in (await service.call(PERSON, "list", api.ListRequest(**more))).entries]


async def get(service: Application, ref: str, **more: Any) -> api.Entry:
    return await service.call(PERSON, "get", api.RefRequest(ref=ref, **more))
