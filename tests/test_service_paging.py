"""Pages tile the list, and a list can be narrowed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Kind, MemoryDraft, MemoryType, Scope
from service_calls import ingest, listed, said

pytestmark = pytest.mark.anyio


@settings(max_examples=8)
@given(
    st.lists(st.sampled_from([0, 1, 1, 2, 5]), min_size=1, max_size=25),
    st.integers(1, 7),
)
def test_pages_tile_the_list(times: list[int], limit: int) -> None:
    async def run(folder: str) -> None:
        path = Path(folder) / "memory.db"
        service = await Application.open(path, models_dir=path.parent, model="none")
        try:
            drafts = [said(f"text {n}", ts=at, dedupe_key=f"{n}") for n, at in enumerate(times)]
            await ingest(service, *drafts, learn=False)
            for n, at in enumerate(times):
                await service.call(PERSON, "add", MemoryDraft(content=f"text {n}", created_at=Millis(at)))
            memories: list[str] = []
            cursor = None
            while True:
                page = await service.call(PERSON, "list", api.ListRequest(limit=limit, cursor=cursor))
                memories += [entry.memory.content for entry in page.entries]
                assert len(page.entries) == limit or page.next is None
                if (cursor := page.next) is None:
                    break
            events: list[str] = []
            while True:
                part = await service.call(PERSON, "events", api.EventsRequest(limit=limit, cursor=cursor))
                events += [event.text for event in part.events]
                if (cursor := part.next) is None:
                    break
        finally:
            await service.close()
        in_order = [f"text {n}" for _, n in sorted((at, n) for n, at in enumerate(times))]
        assert events == in_order
        assert memories == in_order[::-1]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def test_lists_can_be_narrowed(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="one", type=MemoryType.GOAL, created_at=Millis(1_000)))
    await service.call(PERSON, "add", MemoryDraft(content="two", kind=Kind.NOTE, created_at=Millis(2_000)))
    await service.call(
        PERSON, "add", MemoryDraft(content="three", scope=Scope.PROJECT, resource_id="p", created_at=Millis(3_000))
    )

    assert await listed(service, type=MemoryType.GOAL) == ["one"]
    assert await listed(service, kind=Kind.NOTE) == ["two"]
    assert await listed(service, scope=Scope.PROJECT) == ["three"]
    assert await listed(service, since=1_500, until=3_000) == ["two"]
