"""Who sees what, and who may touch it: what a caller cannot see does not exist for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.api.operations import OPERATIONS
from scrubjay.service.application import Application
from scrubjay_shared.errors import DeniedError, NotFoundError
from scrubjay_shared.records import MemoryDraft, Scope
from service_calls import get, ingest, listed, recalled, said

pytestmark = pytest.mark.anyio


async def scoped(service: Application) -> None:
    for content, scope, resource in (
        ("zebra of the person", Scope.USER, None),
        ("zebra of project one", Scope.PROJECT, "one"),
        ("zebra of project two", Scope.PROJECT, "two"),
        ("zebra of session s1", Scope.SESSION, "s1"),
    ):
        await service.call(PERSON, "add", MemoryDraft(content=content, name=content, scope=scope, resource_id=resource))
    await ingest(
        service,
        said("zebra event one", project="one", session="e1"),
        said("zebra event two", project="two", session="e2"),
    )


@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        ({}, {"person", "one", "two", "s1"}),
        ({"project": "one"}, {"person", "one"}),
        ({"project": "two"}, {"person", "two"}),
        ({"project": "one", "session_id": "s1"}, {"person", "one", "s1"}),
        ({"session_id": "s1"}, {"person", "s1"}),
        ({"project": "three", "session_id": "s9"}, {"person"}),
    ],
    ids=["the person", "one", "two", "one in s1", "s1", "a stranger"],
)
async def test_a_project_sees_its_own_the_persons_and_nobody_elses(
    caller: dict[str, str], seen: set[str], service: Application
) -> None:
    await scoped(service)
    names = {"zebra of the person", "zebra of project one", "zebra of project two", "zebra of session s1"}

    in_list = {text.split()[-1] for text in await listed(service, **caller)}
    in_recall = {text.split()[-1] for text in await recalled(service, "zebra", kinds=("memory",), limit=50, **caller)}
    by_name = set()
    for name in names:
        for operation in ("get", "why"):
            try:
                await service.call(PERSON, operation, api.RefRequest(ref=name, **caller))
                by_name.add(name.split()[-1])
            except NotFoundError:
                pass

    assert in_list == in_recall == by_name == seen


async def test_another_projects_events_are_not_recalled(service: Application) -> None:
    await scoped(service)

    found = await recalled(service, "zebra event", kinds=("event",), project="one")

    assert found == ["zebra event one"]


async def test_a_caller_may_narrow_its_scope_and_not_widen_it(service: Application) -> None:
    await scoped(service)

    assert await recalled(service, "zebra", kinds=("memory",), project="one", scope=Scope.PROJECT) == [
        "zebra of project one"
    ]
    with pytest.raises(DeniedError):
        await recalled(service, "zebra", project="one", resource_id="two")


async def test_a_foreign_memory_cannot_be_changed_by_a_caller_who_cannot_see_it(service: Application) -> None:
    await scoped(service)

    with pytest.raises(NotFoundError):
        await service.call(
            PERSON, "update", api.UpdateRequest(ref="zebra of project two", content="mine now", project="one")
        )


REFS: dict[str, Callable[[Application, str, dict[str, str]], Any]] = {
    "get": lambda service, ref, who: service.call(PERSON, "get", api.RefRequest(ref=ref, **who)),
    "why": lambda service, ref, who: service.call(PERSON, "why", api.RefRequest(ref=ref, **who)),
    "update": lambda service, ref, who: service.call(
        PERSON, "update", api.UpdateRequest(ref=ref, content="Other words.", **who)
    ),
    "rename": lambda service, ref, who: service.call(
        PERSON, "rename", api.RenameRequest(ref=ref, name=f"other {ref}", **who)
    ),
    "alias": lambda service, ref, who: service.call(
        PERSON, "alias", api.AliasRequest(ref=ref, alias=f"more {ref}", **who)
    ),
    "supersede": lambda service, ref, who: service.call(
        PERSON, "supersede", api.SupersedeRequest(ref=ref, content=f"Later words of {ref}.", **who)
    ),
    "resolve": lambda service, ref, who: service.call(
        PERSON, "resolve", api.ResolveRequest(ref=ref, field="content", **who)
    ),
    "forget": lambda service, ref, who: service.call(PERSON, "forget", api.ForgetRequest(ref=ref, **who)),
}
"""Every operation that takes a reference, as somebody calls it."""


def test_the_table_of_references_has_every_operation_that_takes_one() -> None:
    assert set(REFS) == {
        name for name, operation in OPERATIONS.items() if "ref" in operation.request.__dataclass_fields__
    }
    assert all(
        {"project", "session_id"} <= operation.request.__dataclass_fields__.keys()
        for operation in OPERATIONS.values()
        if "ref" in operation.request.__dataclass_fields__
    )


CALLERS: list[tuple[dict[str, str], dict[str, Any], bool]] = [
    ({"project": "own"}, {"scope": Scope.PROJECT, "resource_id": "own"}, True),
    ({"project": "own"}, {"scope": Scope.PROJECT, "resource_id": "other"}, False),
    ({"project": "own"}, {"scope": Scope.SESSION, "resource_id": "own session"}, False),
    ({"project": "own"}, {}, True),
    ({"session_id": "own"}, {"scope": Scope.SESSION, "resource_id": "own"}, True),
    ({"session_id": "own"}, {"scope": Scope.PROJECT, "resource_id": "other"}, False),
    ({"session_id": "own"}, {}, True),
    ({}, {"scope": Scope.PROJECT, "resource_id": "other"}, True),
]
"""Who asks, whose memory it is, and whether the one sees the other."""


@pytest.mark.parametrize("operation", REFS)
async def test_a_caller_touches_what_it_may_see_and_the_rest_does_not_exist_for_it(
    service: Application, operation: str
) -> None:
    for number, (who, whose, seen) in enumerate(CALLERS):
        entry = await service.call(
            PERSON, "add", MemoryDraft(content=f"Zebra {number} has stripes", name=f"zebra {number}", **whose)
        )

        for ref in (entry.memory.id, f"zebra {number}"):
            try:
                await REFS[operation](service, ref, who)
                found = True
            except NotFoundError as error:
                # "No such conflict": the memory was found, a conflict about it was not.
                found = {f"there is no memory '{ref}'": False}.get(
                    error.message, "has no such conflict" in error.message
                )
            assert found is seen, (who, whose)
            if operation == "forget" and seen:
                break

        if not seen:
            assert await get(service, entry.memory.id) == replace(entry, created=False)


async def test_a_caller_forgets_events_that_it_may_see(service: Application) -> None:
    own = {"project": "own"}
    for number, (who, where, seen) in enumerate(
        (
            (own, own, True),
            (own, {"project": "other"}, False),
            (own, {}, True),
            (own | {"session_id": "s1"}, {"project": "other"}, True),
            ({"session_id": "s2"}, {"project": "other"}, False),
            ({}, {"project": "other"}, True),
        )
    ):
        (event_id,) = (await ingest(service, said(f"Zebra {number} left.", **where))).ids

        if seen:
            assert (await service.call(PERSON, "forget", api.ForgetRequest(ref=event_id, **who))).events == (event_id,)
        else:
            with pytest.raises(NotFoundError, match=f"no memory '{event_id}'"):
                await service.call(PERSON, "forget", api.ForgetRequest(ref=event_id, **who))
    assert [event.text for event in (await service.call(PERSON, "events", api.EventsRequest())).events] == [
        "Zebra 1 left.",
        "Zebra 4 left.",
    ]


async def test_why_shows_a_caller_no_event_of_another_project(service: Application) -> None:
    await ingest(service, said("I prefer tea to coffee in the morning.", project="one"))
    await service.call(PERSON, "settle", api.SettleRequest())
    (entry,) = (await service.call(PERSON, "list", api.ListRequest())).entries
    await service.call(PERSON, "update", api.UpdateRequest(ref=entry.memory.id, salience=0.9))
    shown = {
        project: [
            len(source.events)
            for source in (
                await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id, project=project))
            ).sources
        ]
        for project in ("one", "two", None)
    }

    assert entry.memory.scope is Scope.USER
    assert shown == {"one": [1], "two": [0], None: [1]}
