"""What a run or a request changed can be said, and taken back; what was archived or superseded comes back by an op."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite, Queries
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import EventDraft, EventType, Layer, MemoryDraft

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
FIXTURES = Path(__file__).parent / "fixtures"
NOTES = b"# Drinks\n\nI prefer green tea in the morning.\n\n# Places\n\nWe meet in the old harbour on Fridays.\n"


async def add(service: Application, content: str, **more: Any) -> str:
    return (await service.call(PERSON, "add", MemoryDraft(content=content, **more))).memory.id


async def load(service: Application, name: str = "notes.md", data: bytes = NOTES, **more: Any) -> api.ImportResponse:
    return await service.call(PERSON, "import", api.ImportRequest(name=name, data=data, **more))


async def listed(service: Application, **more: Any) -> set[str]:
    return {entry.memory.content for entry in (await service.call(PERSON, "list", api.ListRequest(**more))).entries}


async def causes(service: Application, kind: str | None = None) -> list[api.Cause]:
    return list((await service.call(PERSON, "history", api.HistoryRequest(kind=kind))).causes)


async def last(service: Application, kind: str) -> api.Cause:
    return (await causes(service, kind))[0]


async def undo(service: Application, cause: str, *, dry_run: bool = False) -> api.UndoResponse:
    return await service.call(PERSON, "undo", api.UndoRequest(cause=cause, dry_run=dry_run))


async def get(service: Application, ref: str) -> Any:
    return (await service.call(PERSON, "get", api.RefRequest(ref=ref))).memory


async def found(service: Application, query: str) -> set[str]:
    await service.indexed()
    return {
        hit.id for hit in (await service.call(PERSON, "recall", api.RecallRequest(query=query, kinds=("memory",)))).hits
    }


# --- what changed ---------------------------------------------------------------------------------------------------


async def test_every_write_names_the_run_or_request_that_it_was_made_for(service: Application) -> None:
    first = await add(service, "tea", name="drink")
    await service.call(PERSON, "update", api.UpdateRequest(ref=first, content="green tea"))
    await service.call(PERSON, "rename", api.RenameRequest(ref=first, name="beverage"))
    await service.call(PERSON, "alias", api.AliasRequest(ref=first, alias="cup"))
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Maya"))
    await load(service)
    said = EventDraft(agent="x", session_id="s", type=EventType.USER_MESSAGE, text="I prefer oat milk in my coffee.")
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.call(PERSON, "forget", api.ForgetRequest(ref=first))

    kinds = [cause.kind for cause in await causes(service)]
    unnamed = await service.store.read(lambda q: q.fetch("select distinct type from op where cause is null"))

    assert sorted(kinds) == sorted(["add", "update", "rename", "alias", "set_identity", "import", "distill", "forget"])
    assert unnamed == [(ops.OpType.EVENT,)]  # what an agent sends as it happens: the event says whose it is


async def test_why_says_by_which_import_of_which_file(service: Application) -> None:
    await load(service)
    cause = await last(service, "import")
    memory = next(iter((await service.call(PERSON, "list", api.ListRequest())).entries)).memory

    history = (await service.call(PERSON, "why", api.RefRequest(ref=memory.id))).history

    assert {(change.cause, change.label) for change in history} == {(cause.id, "notes.md")}


async def test_the_history_of_a_cause_says_what_it_did_to_what(service: Application) -> None:
    memory_id = await add(service, "tea", name="drink")

    answer = await service.call(PERSON, "history", api.HistoryRequest(cause=(await last(service, "add")).id))

    assert [cause.changes for cause in answer.causes] == [{"name": 1, "write": 1}]
    assert {(change.id, change.change) for change in answer.changes} == {(memory_id, "write"), (memory_id, "name")}
    assert "content" in next(change.fields for change in answer.changes if change.change == "write")


async def test_history_comes_in_pages_newest_first(service: Application) -> None:
    for n in range(5):
        await add(service, f"memory {n}")
    pages, cursor = [], None
    while True:
        answer = await service.call(PERSON, "history", api.HistoryRequest(limit=2, cursor=cursor))
        pages.append([cause.id for cause in answer.causes])
        cursor = answer.next
        if cursor is None:
            break

    assert [len(page) for page in pages] == [2, 2, 1]
    together = [cause for page in pages for cause in page]
    assert together == [cause.id for cause in await causes(service)]
    assert len(set(together)) == 5


async def test_a_cause_answers_to_its_beginning_and_to_no_other(service: Application) -> None:
    await add(service, "tea")
    cause = (await last(service, "add")).id

    for ref in (cause, cause[len("add:") :], cause[:-3], cause.lower()):
        assert (await undo(service, ref, dry_run=True)).cause == cause
    for ref in ("import" + cause[3:], "nothing", cause[len("add:") :][:5], "%", ""):
        with pytest.raises(NotFoundError):
            await undo(service, ref)


async def test_a_beginning_of_several_causes_is_refused(service: Application) -> None:
    for n in range(40):
        await add(service, f"memory {n}")
    both = (await last(service, "add")).id[len("add:") :]

    with pytest.raises(ConflictError):
        await undo(service, both[:6], dry_run=True)


# --- taking it back -------------------------------------------------------------------------------------------------


async def test_undoing_an_import_archives_its_notes_and_undoing_that_brings_them_back(service: Application) -> None:
    kept = await add(service, "mine")
    await load(service)
    before = await listed(service)

    answer = await undo(service, (await last(service, "import")).id)

    assert len(answer.archived) == 2
    assert await listed(service) == {"mine"}
    assert len(await listed(service, archived=True)) == 2
    assert await found(service, "green tea harbour mine") <= {kept}
    assert answer.undo is not None
    back = await undo(service, answer.undo)
    assert set(back.restored) == set(answer.archived)
    assert await listed(service) == before
    assert set(answer.archived) <= await found(service, "green tea old harbour")


async def test_importing_again_what_was_undone_brings_it_back(service: Application) -> None:
    await load(service)
    before = await listed(service)
    await undo(service, (await last(service, "import")).id)

    await load(service)

    assert await listed(service) == before


async def test_a_dry_run_says_the_same_and_changes_nothing(service: Application) -> None:
    await load(service)
    cause, before = (await last(service, "import")).id, await service.store.read(lambda q: q.digests.state())

    plan = await undo(service, cause, dry_run=True)

    assert await service.store.read(lambda q: q.digests.state()) == before
    assert [one.kind for one in await causes(service)] == ["import"]
    done = await undo(service, cause)
    assert (plan.archived, plan.undo) == (done.archived, None)


async def test_undoing_an_update_gives_the_old_words_back_unless_they_were_changed_again(service: Application) -> None:
    memory_id = await add(service, "tea")
    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, content="green tea", topic="drinks"))
    update = (await last(service, "update")).id

    assert (await undo(service, update)).reverted == (memory_id,)
    memory = await get(service, memory_id)
    assert (memory.content, memory.topic) == ("tea", None)

    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, content="coffee"))
    second = (await last(service, "update")).id
    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, content="water"))
    answer = await undo(service, second)
    assert (answer.undo, answer.kept) == (None, (api.Kept(id=memory_id, fields=("content",)),))
    assert (await get(service, memory_id)).content == "water"


async def test_what_was_forgotten_stays_forgotten_whatever_is_undone(service: Application) -> None:
    memory_id = await add(service, "tea", name="drink")
    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, content="green tea"))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=memory_id))

    for kind in ("forget", "update", "add"):
        answer = await undo(service, (await last(service, kind)).id)
        assert (answer.undo, answer.forgotten) == (None, 1)
    with pytest.raises(NotFoundError):
        await get(service, memory_id)


async def test_events_stay_when_what_brought_them_is_undone(service: Application) -> None:
    said = EventDraft(agent="x", session_id="s", type=EventType.USER_MESSAGE, text="I prefer oat milk in my coffee.")
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))
    await service.call(PERSON, "settle", api.SettleRequest())

    answer = await undo(service, (await last(service, "distill")).id)

    assert len(answer.archived) == 1
    assert len((await service.call(PERSON, "events", api.EventsRequest())).events) == 1
    assert await listed(service) == set()


async def test_a_name_that_undoing_set_free_goes_to_the_next_and_is_not_taken_back_from_it(
    service: Application,
) -> None:
    first = await add(service, "tea", name="drink")
    answer = await undo(service, (await last(service, "add")).id)
    second = await add(service, "coffee", name="drink")

    assert answer.undo is not None
    assert (await undo(service, answer.undo)).restored == (first,)

    assert (await get(service, "drink")).id == second
    assert (await get(service, first)).name is None


async def test_undoing_makes_what_a_rebuild_and_another_opening_show(opened: Opener) -> None:
    async with opened() as service:
        await load(service)
        await undo(service, (await last(service, "import")).id)
        view = await service.store.read(lambda q: q.digests.view())
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert rebuilt.before == rebuilt.after == view
    async with opened() as service:
        assert await listed(service) == set()
        assert await found(service, "green tea old harbour") == set()
        assert [cause.kind for cause in await causes(service)] == ["undo", "import"]


async def test_an_export_that_is_restored_keeps_every_cause(opened: Opener, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(opened(tmp_path / "one" / "memory.db"))
        other = await stack.enter_async_context(opened(tmp_path / "other" / "memory.db"))
        await load(one)
        await load(one, "talk.jsonl", (FIXTURES / "claude_code.jsonl").read_bytes())
        await undo(one, (await last(one, "import")).id)
        exported = b"".join([line async for line in one.stream(PERSON, "export", api.Nothing())])

        await load(other, "all.ndjson", exported, restore=True)

        assert [(cause.id, cause.changes) for cause in await causes(other)] == [
            (cause.id, cause.changes) for cause in await causes(one)
        ]
        assert await other.store.read(_log) == await one.store.read(_log)


def _log(queries: Queries) -> list[tuple[str, int, bytes | None]]:
    """Return every op as it would be sent."""
    devices = [row[0] for row in queries.fetch("select distinct device from op order by 1")]
    return [(device, op.seq, op.data) for device in devices for op in queries.ops.between(device, 1, 1_000_000)]


# --- fields beside import -------------------------------------------------------------------------------------------


async def test_a_superseded_memory_comes_last_is_in_no_context_and_comes_back(service: Application) -> None:
    old = await add(service, "The door code is kept in the green drawer", name="old")
    new = await add(service, "The door code is kept in the safe since spring")

    await service.call(PERSON, "update", api.UpdateRequest(ref="old", superseded_by=new[:12]))

    await service.indexed()
    hits = (
        await service.call(PERSON, "recall", api.RecallRequest(query="door code green drawer", kinds=("memory",)))
    ).hits
    assert [(hit.id, hit.superseded_by) for hit in hits] == [(new, None), (old, new)]
    await service.call(PERSON, "update", api.UpdateRequest(ref="old", clear=("superseded_by",)))
    assert (await get(service, "old")).superseded_by is None


async def test_no_memory_is_superseded_by_itself_or_in_a_circle(service: Application) -> None:
    one, two, three = [await add(service, f"memory {n}") for n in range(3)]
    await service.call(PERSON, "update", api.UpdateRequest(ref=one, superseded_by=two))
    await service.call(PERSON, "update", api.UpdateRequest(ref=two, superseded_by=three))

    for ref in (one, two, three):
        with pytest.raises(InvalidError, match="superseded by"):
            await service.call(PERSON, "update", api.UpdateRequest(ref=three, superseded_by=ref))
    with pytest.raises(NotFoundError):
        await service.call(PERSON, "update", api.UpdateRequest(ref=three, superseded_by="01AAAAAAAAAAAAAAAAAAAAAAAA"))
    assert (await get(service, three)).superseded_by is None


async def test_undoing_closes_no_circle_of_successors(service: Application) -> None:
    one, two = [await add(service, f"memory {n}") for n in range(2)]
    await service.call(PERSON, "update", api.UpdateRequest(ref=one, superseded_by=two))
    await service.call(PERSON, "update", api.UpdateRequest(ref=one, clear=("superseded_by",)))
    cleared = await last(service, "update")
    await service.call(PERSON, "update", api.UpdateRequest(ref=two, superseded_by=one))

    planned, undone = await undo(service, cleared.id, dry_run=True), await undo(service, cleared.id)

    assert [(kept.id, kept.fields) for kept in undone.kept] == [(one, ("superseded_by",))]
    assert planned.kept == undone.kept
    assert undone.reverted == ()
    assert [(await get(service, ref)).superseded_by for ref in (one, two)] == [None, one]


async def test_a_circle_that_two_devices_made_is_shown_explained_and_opened(service: Application) -> None:
    one, two = [await add(service, f"the tea is green {n}") for n in range(2)]
    for ref, successor in ((one, two), (two, one)):  # each half as another device may have written it, unchecked
        write = MemoryWrite(memory_id=ref, fields={Field.SUPERSEDED_BY: successor})
        await service.store.write(lambda tx, write=write: tx.memories.write([write]))  # type: ignore[misc]

    why = await service.call(PERSON, "why", api.RefRequest(ref=one))
    assert why.entry.memory.superseded_by == two
    assert await found(service, "green tea") == {one, two}
    three = await add(service, "memory 3")
    await service.call(PERSON, "update", api.UpdateRequest(ref=three, superseded_by=one))
    await service.call(PERSON, "update", api.UpdateRequest(ref=one, clear=("superseded_by",)))
    assert (await get(service, two)).superseded_by == one


async def test_an_import_of_a_circle_of_successors_leaves_one_of_them_open_and_says_so(
    service: Application, opened: Opener, tmp_path: Path
) -> None:
    one, two = [await add(service, f"the tea is green {n}") for n in range(2)]
    for ref, successor in ((one, two), (two, one)):
        write = MemoryWrite(memory_id=ref, fields={Field.SUPERSEDED_BY: successor})
        await service.store.write(lambda tx, write=write: tx.memories.write([write]))  # type: ignore[misc]
    lines = [line async for line in service.stream(PERSON, "export", api.Nothing())]

    async with opened(path=tmp_path / "other.db") as other:
        response = await load(other, "export.jsonl", b"".join(lines))

        entries = (await other.call(PERSON, "list", api.ListRequest())).entries
        assert sorted(entry.memory.superseded_by is None for entry in entries) == [False, True]
        assert ("superseded_by", 1) in [(each.reason, each.count) for each in response.changed]


async def test_when_a_memory_held_is_checked_against_what_is_there(service: Application) -> None:
    memory_id = await add(service, "we met in Oslo", valid_from=Millis(1_000))
    with pytest.raises(InvalidError, match="valid_from"):
        await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, valid_to=Millis(999)))

    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, valid_to=Millis(1_000)))
    with pytest.raises(InvalidError, match="valid_from"):
        await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, valid_from=Millis(1_001)))

    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, clear=("valid_from", "valid_to")))
    memory = await get(service, memory_id)
    assert (memory.valid_from, memory.valid_to) == (None, None)


async def test_a_field_that_cannot_be_cleared_is_refused(service: Application) -> None:
    memory_id = await add(service, "tea")

    with pytest.raises(InvalidError, match="content"):
        await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, clear=("content",)))


async def test_an_archived_memory_is_read_by_its_id_and_nowhere_else_until_it_comes_back(service: Application) -> None:
    memory_id = await add(service, "green tea", name="drink")
    line = (await service.call(PERSON, "set_active", api.SlotRequest(key="task", value="paint the boat"))).active
    assert line == {"task": "paint the boat"}

    await service.call(PERSON, "update", api.UpdateRequest(ref="drink", archived=True))
    await service.call(PERSON, "update", api.UpdateRequest(ref="active/task", archived=True))

    assert (await get(service, memory_id)).archived_at is not None
    assert (await found(service, "green tea"), await found(service, "drink"), await listed(service)) == (
        set(), set(), set(),
    )  # fmt: skip
    assert (await service.call(PERSON, "context", api.ContextRequest())).active == {}
    assert (await service.call(PERSON, "stats", api.Nothing())).memories == 0
    assert await add(service, "green tea") != memory_id

    await service.call(PERSON, "update", api.UpdateRequest(ref=memory_id, archived=False))

    assert memory_id in await found(service, "green tea")
    assert "green tea" in await listed(service, layer=Layer.ARCHIVE)
