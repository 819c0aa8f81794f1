"""Undoing any run gives back what held before it, whatever the run wrote, and however often."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite, Transaction
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import MemoryDraft

pytestmark = pytest.mark.anyio

MORE = DEFAULT.undo.kept_versions * 2
MEMORIES, NAMES = 3, ("gate", "harbour", "berth")


async def state_of(service: Application) -> str:
    found: api.AuditResponse = await service.call(PERSON, "audit", api.Nothing())
    return found.state


values = st.one_of(
    st.tuples(st.just(Field.CONTENT), st.sampled_from(["The gate is red.", "The gate is blue.", "The gate is shut."])),
    st.tuples(st.just(Field.TOPIC), st.sampled_from(["gates", "boats", None])),
    st.tuples(st.just(Field.SALIENCE), st.sampled_from([0.1, 0.5, 0.9])),
    st.tuples(st.just(Field.METADATA), st.sampled_from([{}, {"n": 1}, {"n": 2}, {"may_supersede": ["x"]}])),
    st.tuples(st.just(Field.ARCHIVED_AT), st.sampled_from([None, 1_800_000_000_000])),
)
writes = st.tuples(
    st.integers(0, MEMORIES),  # the last is one that the run makes
    st.dictionaries(values.map(lambda one: one[0]), st.none(), max_size=0) | st.lists(values, max_size=3).map(dict),
    st.sampled_from((*NAMES, None, None)),
    st.sampled_from((*NAMES, None, None)),
)


def write_of(tx: Transaction, ids: list[str], step: tuple[int, dict[Field, Any], str | None, str | None]) -> None:
    """Do one write of a run, as far as names are free."""
    place, fields, name, unnamed = step
    if place == len(ids):
        ids.append(tx.new_id())
        fields = {Field.CONTENT: "A run made this.", Field.CREATED_AT: int(tx.now)} | fields
    holder = {} if name is None else tx.queries.names.holders([name])
    names = (name,) if name is not None and holder.get(name, ids[place]) == ids[place] and name != unnamed else ()
    write = MemoryWrite(memory_id=ids[place], fields=fields, names=names, unnamed=() if unnamed is None else (unnamed,))
    tx.memories.write([write])


async def undone(steps: list[Any], before: list[Any], kind: str) -> tuple[str, str, api.UndoResponse]:
    """Return the state before a run of some steps and after it was undone; `before` was written one by one earlier."""
    with tempfile.TemporaryDirectory() as folder:
        service = await Application.open(Path(folder) / "memory.db", models_dir=Path(folder), model="none")
        try:
            ids = [
                (await service.call(PERSON, "add", MemoryDraft(content=f"Gate {n}."))).memory.id
                for n in range(MEMORIES)
            ]
            for step in before:
                if step[0] < MEMORIES:
                    await service.store.write(
                        lambda tx, step=step: write_of(tx, ids, step),  # type: ignore[misc]
                        cause=service.store.new_cause("update"),
                    )
            first = await state_of(service)
            cause = service.store.new_cause(kind)
            for step in steps:
                await service.store.write(lambda tx, step=step: write_of(tx, ids, step), cause=cause)  # type: ignore[misc]
            try:
                answer: api.UndoResponse = await service.call(PERSON, "undo", api.UndoRequest(cause=cause.id))
            except NotFoundError:  # a run that wrote nothing
                answer = api.UndoResponse(cause=cause.id, undo=None)
            return first, await state_of(service), answer
        finally:
            await service.close()


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(writes, max_size=MORE * 2),
    st.lists(writes, max_size=4),
    st.sampled_from(["consolidate", "import", "update", "vault"]),
)
def test_undoing_a_run_of_any_writes_gives_the_state_of_before(steps: list[Any], before: list[Any], kind: str) -> None:
    first, last, answer = asyncio.run(undone(steps, before, kind))

    assert last == first
    assert answer.kept == ()


@pytest.mark.parametrize("field", [Field.METADATA, Field.CONTENT, Field.SALIENCE, Field.TOPIC])
async def test_a_run_that_writes_a_field_more_often_than_versions_are_kept_is_undone_whole(field: Field) -> None:
    many: dict[Field, Any] = {
        Field.METADATA: lambda n: {"n": n},
        Field.CONTENT: lambda n: f"Gate number {n}.",
        Field.SALIENCE: lambda n: n / 100,
        Field.TOPIC: lambda n: f"topic {n}",
    }
    steps = [(0, {field: many[field](n)}, None, None) for n in range(MORE)]

    first, last, answer = await undone(steps, [(0, {field: many[field](99)}, "gate", None)], "consolidate")

    assert last == first
    assert answer.kept == ()


async def test_a_name_that_a_run_moved_to_another_memory_comes_back() -> None:
    steps = [(1, {}, None, "gate"), (0, {}, "gate", None)]

    first, last, _ = await undone(steps, [(1, {}, "gate", None)], "vault")

    assert last == first


async def test_a_name_that_a_run_gave_and_took_again_does_not_come_with_its_undoing() -> None:
    steps = [(0, {}, "harbour", None), (0, {}, None, "harbour"), (0, {}, "berth", "gate")]

    first, last, _ = await undone(steps, [(0, {}, "gate", None)], "import")

    assert last == first
