"""Pages tile the list, and a list can be narrowed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Kind, Layer, MemoryDraft, MemoryType, Scope
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


async def test_what_agents_are_handed_comes_first_and_pages_tile_it(service: Application) -> None:
    drafts = [
        MemoryDraft(content="ended", salience=1.0, type=MemoryType.PREFERENCE),
        MemoryDraft(content="small", salience=0.1),
        MemoryDraft(content="large", salience=0.9),
        MemoryDraft(content="rule", salience=0.1, type=MemoryType.HOWTO),
        MemoryDraft(content="loaded", salience=0.1, layer=Layer.IDENTITY, name="identity/who"),
        MemoryDraft(content="also large", salience=0.9),
    ]
    added = [(await service.call(PERSON, "add", draft)).memory.id for draft in drafts]
    await service.call(PERSON, "update", api.UpdateRequest(ref=added[0], superseded_by=added[2]))
    agent = Caller(principal=Principal.AGENT, agent="crow", project="p")
    for content, kind in (("Always push.", MemoryType.HOWTO), ("The carts are in SQLite.", MemoryType.FACT)):
        draft = MemoryDraft(content=content, type=kind, salience=1.0, scope=Scope.PROJECT, resource_id="p")
        await service.call(agent, "add", draft)

    whole = await listed(service, handed_first=True)
    pages, cursor = [], None
    while True:
        page = await service.call(PERSON, "list", api.ListRequest(limit=3, cursor=cursor, handed_first=True))
        pages += [entry.memory.content for entry in page.entries]
        if (cursor := page.next) is None:
            break

    assert whole[:2] == ["loaded", "rule"]
    assert whole[2:6] == ["The carts are in SQLite.", "also large", "large", "small"]
    assert set(whole[6:]) == {"ended", "Always push."}, "nobody is handed what ended or waits"
    assert pages == whole
