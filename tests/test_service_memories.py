"""A memory by its id, its name and its aliases: read, written, renamed, and never stored twice."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.records import MemoryDraft, Scope
from service_calls import NOW, Opener, get, listed, recalled

pytestmark = pytest.mark.anyio


async def test_a_memory_answers_to_its_id_its_beginning_its_name_and_its_aliases(service: Application) -> None:
    entry = await service.call(
        PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea", "🍵"))
    )

    assert entry.created
    refs = (entry.memory.id, entry.memory.id.lower(), entry.memory.id[:20], "drinks", "tea", "🍵")
    for ref in refs:
        assert (await get(service, ref)).memory.id == entry.memory.id
    assert (entry.memory.name, entry.aliases) == ("drinks", ("tea", "🍵"))


@pytest.mark.parametrize(
    "ref",
    [
        "",
        " ",
        "x",
        "01",
        "nobody",
        "01M4R1QQHYFZ11W4G73CQMT87C",
        "'; --",
        "\0",
        "\ud800",
        "é" * 9,
        "%" * 7,
        "a" * 10_000,
    ],
)
async def test_what_does_not_exist_is_said_to_not_exist(ref: str, service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks"))
    calls: list[Callable[[], Any]] = [
        lambda: get(service, ref),
        lambda: service.call(PERSON, "why", api.RefRequest(ref=ref)),
        lambda: service.call(PERSON, "update", api.UpdateRequest(ref=ref, content="x")),
        lambda: service.call(PERSON, "rename", api.RenameRequest(ref=ref, name="x")),
        lambda: service.call(PERSON, "alias", api.AliasRequest(ref=ref, alias="x")),
        lambda: service.call(PERSON, "alias", api.AliasRequest(ref=ref, alias="x", remove=True)),
        lambda: service.call(PERSON, "forget", api.ForgetRequest(ref=ref)),
    ]
    for call in calls:
        with pytest.raises(NotFoundError) as refused:
            await call()
        assert refused.value.hint
        assert len(refused.value.message) < 200


async def test_a_beginning_that_fits_two_is_no_name_of_either(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        first, _ = [await service.call(PERSON, "add", MemoryDraft(content=text)) for text in ("one", "two")]

        with pytest.raises(ConflictError, match="several"):
            await get(service, first.memory.id[:10])


async def test_a_name_belongs_to_one_memory(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea",)))
    await service.call(PERSON, "add", MemoryDraft(content="The harbour is full", name="harbour"))
    calls: list[Callable[[], Any]] = [
        lambda: service.call(PERSON, "add", MemoryDraft(content="other", name="drinks")),
        lambda: service.call(PERSON, "add", MemoryDraft(content="other", name="new", aliases=("tea",))),
        lambda: service.call(PERSON, "rename", api.RenameRequest(ref="harbour", name="tea")),
        lambda: service.call(PERSON, "alias", api.AliasRequest(ref="harbour", alias="drinks")),
    ]
    for call in calls:
        with pytest.raises(ConflictError):
            await call()

    assert len(await listed(service)) == 2
    assert (await get(service, "harbour")).aliases == ()


async def test_a_race_for_a_name_has_one_winner(service: Application) -> None:
    adds = [service.call(PERSON, "add", MemoryDraft(content=f"text {n}", name="the one")) for n in range(12)]

    outcomes = await asyncio.gather(*adds, return_exceptions=True)

    won = [outcome for outcome in outcomes if isinstance(outcome, api.Entry)]
    assert len(won) == 1
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 11
    assert await listed(service) == [won[0].memory.content]


async def test_a_renamed_memory_still_answers_to_its_old_name(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks"))

    entry = await service.call(PERSON, "rename", api.RenameRequest(ref="drinks", name="hot drinks"))

    assert (entry.memory.name, entry.aliases) == ("hot drinks", ("drinks",))
    assert (await service.call(PERSON, "rename", api.RenameRequest(ref="hot drinks", name="drinks"))).aliases == (
        "hot drinks",
    )


async def test_an_alias_that_is_taken_away_is_free_for_another(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea",)))
    await service.call(PERSON, "alias", api.AliasRequest(ref="drinks", alias="tea", remove=True))

    other = await service.call(PERSON, "add", MemoryDraft(content="Tea is a plant", name="tea"))

    assert (await get(service, "tea")).memory.id == other.memory.id
    with pytest.raises(NotFoundError):
        await service.call(PERSON, "alias", api.AliasRequest(ref="drinks", alias="tea", remove=True))
    with pytest.raises(ConflictError):
        await service.call(PERSON, "alias", api.AliasRequest(ref="tea", alias="tea", remove=True))


async def test_a_written_memory_is_found_by_its_new_words_only(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="note one"))

    await service.call(PERSON, "update", api.UpdateRequest(ref="note one", content="Maya drinks cocoa", salience=0.9))

    assert await recalled(service, "cocoa") == ["Maya drinks cocoa"]
    assert await recalled(service, "tea", mode=api.Mode.KEYWORD) == []
    entry = await get(service, "note one")
    assert (entry.memory.salience, entry.memory.updated_at >= entry.memory.created_at) == (0.9, True)


async def test_a_name_is_searched_and_an_alias_only_resolves(service: Application) -> None:
    await service.call(
        PERSON, "add", MemoryDraft(content="Maya drinks tea", name="beverages", aliases=("thirst quenchers",))
    )

    assert await recalled(service, "which beverages", mode=api.Mode.KEYWORD) == ["Maya drinks tea"]
    assert await recalled(service, "quenchers", mode=api.Mode.KEYWORD) == []
    assert await recalled(service, "thirst quenchers") == ["Maya drinks tea"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"salience": math.nan},
        {"salience": 2.0},
        {"content": ""},
        {"content": "<private>x</private>"},
        {"metadata": {"x": math.inf}},
    ],
    ids=str,
)
async def test_an_update_that_says_nothing_or_nonsense_is_refused(
    changes: dict[str, Any], service: Application
) -> None:
    before = (await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks"))).memory

    with pytest.raises(InvalidError):
        await service.call(PERSON, "update", api.UpdateRequest(ref="drinks", **changes))

    assert (await get(service, "drinks")).memory == before


async def test_an_equal_memory_of_the_same_scope_is_not_stored_twice(service: Application) -> None:
    drafts = [
        MemoryDraft(content="Maya drinks tea"),
        MemoryDraft(content="  maya DRINKS\u00a0tea "),
        MemoryDraft(content="Maya drinks tea", scope=Scope.PROJECT, resource_id="p"),
        MemoryDraft(content="Maya drinks tea", scope=Scope.PROJECT, resource_id="q"),
        MemoryDraft(content="Maya drinks tea", name="drinks"),
    ]

    entries = [await service.call(PERSON, "add", draft) for draft in drafts]

    assert [entry.created for entry in entries] == [True, False, True, True, False]
    assert entries[4].memory.id == entries[0].memory.id
    assert entries[4].memory.name == "drinks"
    assert len(await listed(service)) == 3


async def test_equal_memories_added_at_the_same_moment_are_one(service: Application) -> None:
    entries = await asyncio.gather(
        *(service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea")) for _ in range(20))
    )

    assert sum(entry.created for entry in entries) == 1
    assert len({entry.memory.id for entry in entries}) == 1
