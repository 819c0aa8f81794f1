"""When the collector of garbage looks, and that what it never looks at does not pile up."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.garbage import keep, own, uncollected
from scrubjay.service.application import Application
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft


@pytest.fixture(autouse=True)
def _in_a_process_of_ours() -> Iterator[None]:
    assert gc.isenabled()
    own()
    yield
    own(ours=False)
    gc.unfreeze()
    gc.enable()


def test_the_collector_looks_again_only_when_the_last_of_two_imports_has_ended() -> None:
    reading, first_done = threading.Event(), threading.Event()
    seen: list[bool] = []

    def second() -> None:
        with uncollected(kept=True):
            reading.set()
            first_done.wait(10)
            seen.append(gc.isenabled())

    with uncollected(kept=True):
        thread = threading.Thread(target=second)
        thread.start()
        assert reading.wait(10)
    first_done.set()
    thread.join(10)

    assert seen == [False]
    assert gc.isenabled()


def test_an_import_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ValueError, match="damaged"), uncollected(kept=True):
        raise ValueError("damaged")

    assert gc.isenabled()


def test_many_imports_at_once_leave_the_collector_on() -> None:
    def some() -> None:
        for _ in range(200):
            with uncollected(kept=True):
                assert not gc.isenabled()

    threads = [threading.Thread(target=some) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with uncollected(kept=True):
        assert not gc.isenabled()

    assert not gc.isenabled()


@pytest.mark.parametrize("switch", [gc.enable, gc.disable])
def test_another_programs_collector_is_left_as_it_is(switch: Callable[[], None]) -> None:
    own(ours=False)
    frozen = gc.get_freeze_count()
    switch()
    on = gc.isenabled()
    with uncollected(kept=True):
        assert gc.isenabled() is on
    keep()

    assert gc.isenabled() is on
    assert gc.get_freeze_count() == frozen


@pytest.mark.anyio
async def test_a_hundred_imports_leave_no_more_behind_than_ten(service: Application) -> None:
    async def imported(times: int) -> int:
        for _ in range(times):
            await service.call(
                PERSON, "import", api.ImportRequest(name="notes.md", data=b"# One\n\nA ferry.\n\n# Two\n\nA harbour.\n")
            )
        return gc.get_freeze_count()

    await imported(10)
    few = await imported(10)
    many = await imported(100)

    assert many - few < 100 * 20, "each import leaves objects behind that the collector never looks at"


@pytest.mark.anyio
async def test_a_rebuild_is_not_interrupted_by_the_collector_and_leaves_it_on(service: Application) -> None:
    said = [
        EventDraft(agent="a", session_id="s", type=EventType.USER_MESSAGE, text=f"Ferry {n}.") for n in range(1_000)
    ]
    await service.call(PERSON, "ingest", api.IngestRequest(events=said, learn=False))
    await service.call(PERSON, "add", MemoryDraft(content="The ferry leaves at noon."))
    looked: list[int] = []

    def looking(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked.append(info["generation"])

    loaded = service.archives._load_index

    async def loading() -> None:
        await loaded()
        during.extend(looked)

    during: list[int] = []
    service.archives._load_index = loading  # type: ignore[method-assign]
    gc.callbacks.append(looking)
    try:
        rebuilt, _ = await asyncio.gather(service.call(PERSON, "rebuild", api.RebuildRequest()), asyncio.sleep(0))
    finally:
        gc.callbacks.remove(looking)

    assert (rebuilt.memories, rebuilt.events) == (1, 1_000)
    assert len(during) <= 1, "but for one that was due before it began"
    assert gc.isenabled()
