"""Contradictions of five shapes, twenty cases each: what holds comes first, and what may not is never told unmarked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import MemoryDraft, MemoryType, Scope
from service_calls import NOW, Opener
from sync_devices import world_at

pytestmark = pytest.mark.anyio

DAY = 86_400_000
CASES: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "fixtures" / "contradictions.json").read_text(encoding="utf-8")
)
SHAPES = {"replacement", "polarity", "retraction", "partial", "bounded"}


def test_there_are_twenty_cases_of_each_shape() -> None:
    assert Counter(case["shape"] for case in CASES) == dict.fromkeys(SHAPES, 20)
    assert len({case["old"] for case in CASES}) == len({case["new"] for case in CASES}) == 100


async def tell(service: Application, text: str, at: int, project: str) -> None:
    draft = MemoryDraft(
        content=text, created_at=Millis(at), scope=Scope.PROJECT, resource_id=project, type=MemoryType.PREFERENCE
    )
    await service.call(PERSON, "add", draft)


async def hits(service: Application, case: dict[str, str], project: str, **more: Any) -> list[api.Hit]:
    request = api.RecallRequest(query=case["question"], kinds=("memory",), project=project, limit=10, **more)
    answer = await service.call(PERSON, "recall", request)
    return list(answer.hits)


async def faults(service: Application, every: int = 1) -> list[str]:
    """Return what is wrong: what does not come first, what is stale and not marked, what is handed over."""
    found = []
    for number, case in list(enumerate(CASES))[::every]:
        project = f"proj_{number}"
        now = await hits(service, case, project)
        if not now or now[0].text != case["new"]:
            found.append(f"not first: {case}")
        if any(hit.text == case["old"] and not (hit.superseded_by or hit.questioned_by) for hit in now):
            found.append(f"not marked: {case}")
        context = await service.call(PERSON, "context", api.ContextRequest(project=project))
        prompted = await service.call(PERSON, "context", api.ContextRequest(project=project, prompt=case["question"]))
        if any(item.text.endswith(f") {case['old']}") for item in (*context.items, *prompted.items)):
            found.append(f"handed over: {case}")
        then = await hits(service, case, project, as_of=Millis(NOW + DAY))
        if [hit.text for hit in then] != [case["old"]] or then[0].questioned_by:
            found.append(f"not as it was: {case}")
    return found


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
async def test_what_holds_comes_first_and_what_may_not_is_marked_also_after_rebuild_and_restart(
    opened: Opener, every: int
) -> None:
    now = Millis(NOW + 10 * DAY)
    async with opened(now=lambda: now) as service:
        for number, case in list(enumerate(CASES))[::every]:
            await tell(service, case["old"], NOW, f"proj_{number}")
            await tell(service, case["new"], NOW + 2 * DAY, f"proj_{number}")
        assert await faults(service, every) == []
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert await faults(service, every) == []
    async with opened(now=lambda: now) as service:
        assert await faults(service, every) == []


@pytest.mark.slow
async def test_what_two_devices_said_is_settled_by_a_run_on_one_and_holds_on_both(
    opened: Opener, tmp_path: Path
) -> None:
    async with world_at(tmp_path) as world:
        one, two = await world.device(), await world.device()
        for number, case in enumerate(CASES):
            place = {"scope": "project", "resource_id": f"proj_{number}", "type": "preference", "kind": "stored"}
            await one.note(case["old"], **place, created_at=NOW)
            await two.note(case["new"], **place, created_at=NOW + 2 * DAY)
        await world.settle()
        await one.store.close()
        async with opened(path=one.path, now=lambda: Millis(NOW + 10 * DAY)) as service:
            for _ in range(10):
                await service.call(PERSON, "consolidate", api.ConsolidateRequest())
            assert await faults(service) == []
        await one.reopen()
        await world.settle()
        assert await one.digest() == await two.digest()
        await two.store.close()
        async with opened(path=two.path, now=lambda: Millis(NOW + 10 * DAY)) as service:
            assert await faults(service) == []
        await two.reopen()
