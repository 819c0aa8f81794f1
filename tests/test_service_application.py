"""A service as a whole: it closes, outlives a failing part, and its counts agree after a rebuild."""

from __future__ import annotations

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.records import MemoryDraft
from service_calls import NOTHING, Opener, ingest, listed, said

pytestmark = pytest.mark.anyio


async def test_closing_twice_is_fine_and_a_full_disk_does_not_keep_the_lock(opened: Opener) -> None:
    async with opened() as service:
        await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes"))
        await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))
        await service.store._connection.call(lambda connection: connection.execute("pragma query_only = on"))
        with pytest.raises(ScrubjayError):
            await service.close()
        await service.close()
    async with opened() as service:
        assert await listed(service) == ["A zebra has stripes"]


async def test_a_copy_in_memory_that_fails_does_not_stop_the_writer(service: Application) -> None:
    def fail(_: object) -> None:
        raise ValueError("no room")

    follow, service.store.on_change = service.store.on_change, fail
    await ingest(service, said("first"))
    service.store.on_change = follow

    await ingest(service, said("second"))

    assert (await service.call(PERSON, "stats", NOTHING)).events == 2


async def test_stats_and_rebuild_say_the_same_number_of_memories(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="the harbour opens at six"))
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Ada"))
    await service.call(PERSON, "set_active", api.SlotRequest(key="task", value="the quay"))

    stats = await service.call(PERSON, "stats", api.Nothing())
    rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())

    assert (stats.memories, stats.identity_keys, stats.active_keys) == (1, 1, 1)
    assert rebuilt.memories == stats.memories == sum(stats.by_type.values()) == sum(stats.by_kind.values())
