"""Memories come from events: each has its grips, and the order and size of the steps make no difference."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.records import EventDraft, MemoryDraft
from service_calls import NOTHING, NOW, Opener, ingest, listed, recalled, said

pytestmark = pytest.mark.anyio


async def test_every_memory_has_a_grip_whose_excerpt_is_what_the_events_say_there(
    service: Application, conversation: tuple[EventDraft, ...]
) -> None:
    await ingest(service, *conversation)
    await service.call(PERSON, "settle", api.SettleRequest())
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries

    assert len(entries) > 10
    for entry in entries:
        why = await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))
        assert why.sources
        for source in why.sources:
            text = "\n".join(event.text for event in source.events)
            assert source.grip.excerpt == text[source.grip.span_start : source.grip.span_end] != ""
            assert source.grip.source
            assert len({event.session_id for event in source.events}) == 1
        assert why.history[0].change == "write"


async def test_learning_in_small_steps_or_again_gives_the_same_memories(
    opened: Opener, conversation: tuple[EventDraft, ...], tmp_path: Path
) -> None:
    async with opened() as service:
        await ingest(service, *conversation)
        await service.call(PERSON, "settle", api.SettleRequest())
        whole = sorted(await listed(service, limit=500))
        await service.call(PERSON, "settle", api.SettleRequest())
        assert sorted(await listed(service, limit=500)) == whole
    async with opened(tmp_path / "twice" / "memory.db") as service:
        await ingest(service, *conversation)
        await asyncio.gather(*(service.distill.run() for _ in range(3)))
        assert sorted(await listed(service, limit=500)) == whole
        await service.store.write(lambda tx: tx.queries.fetch("delete from learned"))  # a crash before it was noted
        await service.call(PERSON, "settle", api.SettleRequest())
        assert sorted(await listed(service, limit=500)) == whole
        assert (await service.call(PERSON, "stats", NOTHING)).to_learn == 0


async def test_events_stored_without_learning_are_found_and_not_learned_from(service: Application) -> None:
    await ingest(service, said("I prefer tea to coffee in the morning."), learn=False)

    await service.call(PERSON, "settle", api.SettleRequest())

    assert await listed(service) == []
    assert await recalled(service, "tea") == ["I prefer tea to coffee in the morning."]
    assert (await service.call(PERSON, "stats", NOTHING)).to_learn == 0


async def test_what_is_said_twice_is_one_memory_with_two_sources(service: Application) -> None:
    await ingest(service, said("I prefer tea to coffee in the morning.", ts=NOW))
    await service.distill.run()
    await ingest(service, said("I prefer tea to coffee in the morning.", session="s2", ts=NOW + 86_400_000))
    await service.distill.run()

    (entry,) = (await service.call(PERSON, "list", api.ListRequest())).entries
    why = await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))

    assert [source.events[0].session_id for source in why.sources] == ["s1", "s2"]


async def test_what_is_added_while_it_is_being_learned_is_one_memory(opened: Opener, tmp_path: Path) -> None:
    drafts = tuple(said(f"I prefer tea number {n} to coffee in the morning.", ts=NOW + n) for n in range(20))
    async with opened(tmp_path / "first" / "memory.db") as service:
        await ingest(service, *drafts)
        await service.distill.run()
        contents = sorted(await listed(service))
    async with opened() as service:
        await ingest(service, *drafts)

        await asyncio.gather(
            service.distill.run(), *(service.call(PERSON, "add", MemoryDraft(content=text)) for text in contents)
        )
        await service.call(PERSON, "settle", api.SettleRequest())

        entries = (await service.call(PERSON, "list", api.ListRequest())).entries
        sources = await service.store.read(lambda q: q.grips.of_memories([entry.memory.id for entry in entries]))
    assert sorted(entry.memory.content for entry in entries) == contents
    assert len(sources) == len(entries) == 20
