"""The export format: what goes out comes back the same, and a bad line costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.importers import export_format
from scrubjay.service.application import Application
from scrubjay.store import minted
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import (
    Event,
    EventDraft,
    EventType,
    Grip,
    Kind,
    Memory,
    MemoryDraft,
    MemoryType,
    Role,
    Scope,
    content_hash,
)

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = Millis(1_800_000_000_000)
IDS = tuple("01M4R1QQHYFZ11W4G73CQMT87" + last for last in "0123456789")
EVENT = Event(
    id=IDS[0],
    device="aa" * 16,
    agent="test",
    session_id="s",
    type=EventType.USER_MESSAGE,
    role=Role.USER,
    text="I prefer tea.",
    ts=NOW,
    dedupe_key="k",
)
MEMORY = Memory(
    id=IDS[1],
    content="Maya prefers tea",
    kind=Kind.OBSERVATION,
    type=MemoryType.PREFERENCE,
    scope=Scope.USER,
    salience=0.7,
    created_at=NOW,
    updated_at=NOW,
    content_hash=content_hash("Maya prefers tea"),
)
GRIP = Grip(
    id=IDS[2],
    memory_id=IDS[1],
    event_id_start=IDS[0],
    event_id_end=IDS[0],
    span_start=0,
    span_end=13,
    excerpt="I prefer tea.",
    source="patterns/1",
    created_at=NOW,
)
KEPT = export_format.MemoryRecord(memory=MEMORY, aliases=("tea",), grips=(GRIP,))


def export_of(*records: Event | export_format.MemoryRecord | export_format.OpRecord) -> bytes:
    return export_format.header("s", NOW, version=1) + b"".join(export_format.line(record) for record in records)


async def exported(service: Application) -> bytes:
    return b"".join([line async for line in service.stream(PERSON, "export", api.Nothing())])


async def shown(service: Application) -> dict[str, Any]:
    """Everything of a store that an export must carry."""
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries
    ids = [entry.memory.id for entry in entries]
    return {
        "events": (await service.call(PERSON, "events", api.EventsRequest(limit=500))).events,
        "sessions": (await service.call(PERSON, "sessions", api.Nothing())).sessions,
        "memories": {
            entry.memory.id: replace(entry.memory, updated_at=NOW, access_count=0, accessed_at=None)
            for entry in entries
        },
        "aliases": {entry.memory.id: entry.aliases for entry in entries},
        "grips": await service.store.read(lambda q: q.grips.of_memories(ids)),
        "context": await service.call(PERSON, "context", api.ContextRequest()),
    }


async def fill(service: Application, conversation: tuple[EventDraft, ...]) -> None:
    await service.call(PERSON, "ingest", api.IngestRequest(events=conversation))
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea", "🍵")))
    await service.call(
        PERSON,
        "add",
        MemoryDraft(
            content="The beta is due",
            scope=Scope.PROJECT,
            resource_id="berthly",
            salience=0.31,
            valid_to=NOW,
            metadata={"z": 1, "a": ["x"]},
        ),
    )
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Jay"))
    await service.call(PERSON, "rename", api.RenameRequest(ref="drinks", name="hot drinks"))


def test_a_record_goes_out_and_comes_back_the_same() -> None:
    op = export_format.OpRecord(device="ab" * 16, seq=7, data=b"bytes")

    found = export_format.read("x", export_of(EVENT, KEPT, op))

    assert found.lines == (export_format.Line(event=EVENT), export_format.Line(memory=KEPT), export_format.Line(op=op))


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"not json\n", b'{"other": 1}\n', b'{"scrubjay_export": 3}\n', b"[1]\n", b"\xff\xfe\n", b"5\n"],
)
def test_what_is_no_export_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidError) as refused:
        export_format.read("x", data)

    assert refused.value.hint


def changed(record: Event | Memory | Grip, **fields: Any) -> bytes:
    """Return a line whose record holds something that ours never does."""
    if isinstance(record, Grip):
        body = msgspec.to_builtins(export_format.Line(memory=KEPT))
        body["memory"]["grips"] = [body["memory"]["grips"][0] | fields]
    elif isinstance(record, Event):
        body = msgspec.to_builtins(export_format.Line(event=record))
        body["event"] |= fields
    else:
        body = msgspec.to_builtins(export_format.Line(memory=KEPT))
        body["memory"]["memory"] |= fields
    return msgspec.json.encode(body) + b"\n"


BAD_LINES = {
    "no json": b"{\n",
    "not utf-8": b'{"event": "\xff"}\n',
    "neither": b"{}\n",
    "a list": b"[]\n",
    "another type": changed(EVENT, type="dream"),
    "an id that is none": changed(EVENT, id="1"),
    "a time beyond time": changed(EVENT, ts=1 << 60),
    "a negative time": changed(EVENT, ts=-5),
    "an offset beyond a day": changed(EVENT, utc_offset=5_000),
    "no session": changed(EVENT, session_id=""),
    "a nul": changed(EVENT, text="a\0b"),
    "a memory with an id that is none": changed(MEMORY, id="x" * 26),
    "no content": changed(MEMORY, content=""),
    "a salience beyond one": changed(MEMORY, salience=7.5),
    "a confidence below zero": changed(MEMORY, confidence=-1),
    "a memory of no time": changed(MEMORY, created_at=1 << 62),
    "a grip of another memory": changed(GRIP, memory_id=IDS[5]),
    "a grip on no event": changed(GRIP, event_id_start="nowhere"),
    "a span that ends before it begins": changed(GRIP, span_start=9, span_end=2),
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
async def test_a_bad_line_costs_only_itself(line: bytes, service: Application) -> None:
    data = (
        export_format.header("s", NOW)
        + line
        + b"\n"
        + export_format.line(replace(EVENT, id=IDS[7]))
        + export_format.line(KEPT)
    )

    answer = await service.call(PERSON, "import", api.ImportRequest(name="x.jsonl", data=data))

    assert (answer.events, answer.memories) == (1, 1)
    assert api.Skipped(reason="bad_line", count=1) in answer.skipped


async def everything(service: Application) -> dict[str, Any]:
    """What a store is, as far as a copy of it must be the same: all that it shows, and its history."""
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries
    return {
        "digest": await service.store.write(lambda tx: tx.queries.digests.view()),
        "events": (await service.call(PERSON, "events", api.EventsRequest(limit=500))).events,
        "sessions": (await service.call(PERSON, "sessions", api.Nothing())).sessions,
        "memories": {entry.memory.id: entry for entry in entries},
        "history": {
            entry.memory.id: (await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))).history
            for entry in entries
        },
        "context": await service.call(PERSON, "context", api.ContextRequest()),
        "conflicts": (await service.call(PERSON, "conflicts", api.ConflictsRequest())).conflicts,
    }


async def test_a_restored_export_makes_an_equal_store_and_twice_makes_it_no_other(
    opened: Opener, service: Application, conversation: tuple[EventDraft, ...], tmp_path: Path
) -> None:
    await fill(service, conversation)
    await service.call(
        PERSON,
        "forget",
        api.ForgetRequest(ref=(await service.call(PERSON, "add", MemoryDraft(content="soon gone"))).memory.id),
    )
    await service.call(PERSON, "recall", api.RecallRequest(query="what does Maya drink?"))
    data = await exported(service)
    expected = await everything(service)
    stats = await service.call(PERSON, "stats", api.Nothing())

    async with opened(tmp_path / "other" / "memory.db") as other:
        first = await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        again = await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        found = await everything(other)
        settled = await other.call(PERSON, "settle", api.SettleRequest())
        assert settled.to_learn == 0
        assert (await everything(other)) == found  # what was distilled is not distilled again
        rebuilt = await other.call(PERSON, "rebuild", api.RebuildRequest())
        assert rebuilt.before == rebuilt.after

    assert found == expected
    assert any(entry.memory.access_count for entry in found["memories"].values())
    assert (first.events, first.memories) == (stats.events, stats.memories + stats.identity_keys + stats.active_keys)
    assert (again.events, again.memories) == (0, 0)
    assert again.duplicates == first.events + first.memories
    assert (first.skipped, first.changed) == ((), ())


async def test_an_export_without_a_log_is_restored_too(
    opened: Opener, service: Application, conversation: tuple[EventDraft, ...], tmp_path: Path
) -> None:
    await fill(service, conversation)
    expected = await shown(service)
    older = [
        export_format.line(line.event or line.memory)
        for line in export_format.read("x", await exported(service)).lines
        if line.event or line.memory
    ]
    data = export_format.header("s", NOW, version=1) + b"".join(older)

    async with opened(tmp_path / "other" / "memory.db") as other:
        first = await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        again = await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        found = await shown(other)
        device = other.store.device

    # An event belongs to the device whose log it stands in.
    assert found | {"events": ()} == expected | {"events": ()}
    assert found["events"] == tuple(replace(event, device=device) for event in expected["events"])
    assert (first.events, first.memories) == (len(conversation), len(expected["memories"]))
    assert (again.events, again.memories) == (0, 0)


async def test_an_export_of_what_was_restored_is_the_same_export(
    opened: Opener, service: Application, conversation: tuple[EventDraft, ...], tmp_path: Path
) -> None:
    await fill(service, conversation)
    data = await exported(service)

    async with opened(tmp_path / "other" / "memory.db") as other:
        await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        again = await exported(other)

    assert again.splitlines()[1:] == data.splitlines()[1:]


async def test_what_was_restored_goes_to_the_first_account_that_the_store_enters(
    opened: Opener, service: Application, tmp_path: Path
) -> None:
    added = await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea"))
    data = await exported(service)

    async with opened(tmp_path / "other" / "memory.db") as other:
        await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        assert (
            await other.store.read(lambda q: q.replication.left()) == b""
        )  # so that entering an account adopts what is here
        await other.store.write(lambda tx: tx.incarnation.adopt())
        sent = await other.store.write(lambda tx: tx.queries.ops.unsent(other.store.device, 0, 100))

    assert added.memory.id in {one.entity for one in sent}


async def test_a_store_that_replicates_restores_as_its_own_writes(
    opened: Opener, service: Application, tmp_path: Path
) -> None:
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Jay"))
    data = await exported(service)

    async with opened(tmp_path / "other" / "memory.db") as other:
        await other.store.write(lambda tx: tx.replication.begin(b"a" * 16))
        answer = await other.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
        sent = await other.store.write(lambda tx: tx.queries.ops.unsent(other.store.device, 0, 100))
        lines = (await other.call(PERSON, "context", api.ContextRequest())).identity

    assert answer.memories == 1
    assert [one.data is not None for one in sent] == [True, True]
    assert "Jay" in str(lines)


async def test_an_export_shows_one_moment_however_long_it_takes(
    service: Application, conversation: tuple[EventDraft, ...]
) -> None:
    await fill(service, conversation)
    stats = await service.call(PERSON, "stats", api.Nothing())
    lines = service.stream(PERSON, "export", api.Nothing())
    first = [await anext(lines), await anext(lines)]

    await service.call(PERSON, "add", MemoryDraft(content="written meanwhile"))  # nobody waits for the export
    for entry in (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries:
        await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id, keep_sources=True))
    data = b"".join(first + [line async for line in lines])

    found = export_format.read("x", data)
    memories = [line.memory for line in found.lines if line.memory is not None]
    events = {line.event.id for line in found.lines if line.event is not None}
    assert len(memories) == stats.memories + stats.identity_keys + stats.active_keys
    assert all(grip.event_id_start in events for kept in memories for grip in kept.grips)
    assert b"written meanwhile" not in data


async def test_a_dry_run_takes_nothing(service: Application) -> None:
    answer = await service.call(
        PERSON, "import", api.ImportRequest(name="x", data=export_of(EVENT, KEPT), dry_run=True)
    )

    assert (answer.events, answer.memories) == (1, 1)
    assert (await service.call(PERSON, "stats", api.Nothing())).ops == 0


async def test_a_memory_keeps_its_source_when_the_event_was_here_under_another_id(service: Application) -> None:
    draft = EventDraft(
        agent="test", session_id="s", type=EventType.USER_MESSAGE, text=EVENT.text, ts=NOW, dedupe_key="k"
    )
    (here,) = (await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,), learn=False))).ids

    await service.call(PERSON, "import", api.ImportRequest(name="x", data=export_of(EVENT, KEPT)))

    memory_id = minted(MEMORY.id)
    why = await service.call(PERSON, "why", api.RefRequest(ref=memory_id))
    assert [event.id for event in why.sources[0].events] == [here]
    assert (await service.call(PERSON, "forget", api.ForgetRequest(ref=memory_id))).sources == 1


@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize(
    "grip",
    [
        replace(GRIP, excerpt="I prefer gin."),
        replace(GRIP, span_start=2),
        replace(GRIP, span_start=5, span_end=5, excerpt=""),
        replace(GRIP, event_id_start=IDS[8], event_id_end=IDS[8]),
        replace(GRIP, source="patterns\0/1"),
    ],
    ids=["other words", "another place", "no words", "an event that never came", "a source that is none"],
)
async def test_a_source_that_does_not_say_so_is_no_source(grip: Grip, *, restore: bool, service: Application) -> None:
    data = export_of(EVENT, replace(KEPT, grips=(grip,)))

    answer = await service.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=restore))

    why = await service.call(PERSON, "why", api.RefRequest(ref=MEMORY.id if restore else minted(MEMORY.id)))
    assert why.sources == ()
    assert api.Skipped(reason="source_not_found", count=1) in answer.skipped


async def test_an_id_that_is_here_already_is_not_taken_in_twice(service: Application) -> None:
    await service.call(PERSON, "import", api.ImportRequest(name="x", data=export_of(EVENT)))

    answer = await service.call(
        PERSON, "import", api.ImportRequest(name="x", data=export_of(replace(EVENT, dedupe_key="other")))
    )

    assert (answer.events, answer.duplicates) == (0, 1)


async def test_a_forgotten_memory_does_not_come_back_with_an_old_export(service: Application) -> None:
    await service.call(PERSON, "import", api.ImportRequest(name="x", data=export_of(EVENT, KEPT)))
    data = await exported(service)
    await service.call(PERSON, "forget", api.ForgetRequest(ref=minted(MEMORY.id)))

    answer = await service.call(PERSON, "import", api.ImportRequest(name="x", data=data))

    assert (answer.events, answer.memories) == (0, 0)
    assert api.Skipped(reason="forgotten", count=1) in answer.skipped


async def test_a_name_that_is_taken_is_left_out_and_said(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="something else", name="tea"))

    answer = await service.call(PERSON, "import", api.ImportRequest(name="x", data=export_of(EVENT, KEPT)))

    assert answer.memories == 1
    assert api.Skipped(reason="name_taken", count=1) in answer.skipped
    assert (await service.call(PERSON, "get", api.RefRequest(ref="tea"))).memory.content == "something else"
