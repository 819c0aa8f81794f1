"""Times that are missing, turned back or still to come: the file knows the order, and nothing is newer than now."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.importers import export_format, parse
from scrubjay.importers.parsing import in_order
from scrubjay.ingest import intake
from scrubjay.intervals import TOLD, dated
from scrubjay.lifecycle.supersession import NewStatement, Verdict, successions
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.records import (
    Event,
    EventDraft,
    EventType,
    Kind,
    Memory,
    MemoryDraft,
    MemoryType,
    Role,
    Scope,
    Trust,
)

pytestmark = pytest.mark.anyio

DAY = 86_400_000
NOW = Millis(1_795_165_200_000)
FUTURE = Millis(4_070_908_800_000)
"""2099."""


def said(*times: int | None, session: str = "s") -> list[EventDraft]:
    return [
        EventDraft(agent="a", session_id=session, type=EventType.NOTE, text=f"{n}", ts=None if ts is None else Millis(ts))
        for n, ts in enumerate(times)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ((10, None, 30), (10, 10, 30)),
        ((None, None, 30), (30, 30, 30)),
        ((None, None), (None, None)),
        ((10, 5, 30), (10, 10, 30)),  # a clock was set back
        ((10, 30, 20, None), (10, 30, 30, 30)),
        ((10, 99 * DAY, 30), (10, 10, 30)),  # one line is far ahead of those around it
        ((99 * DAY, 10, 30), (10, 10, 30)),
        ((10, 99 * DAY, 99 * DAY), (10, 99 * DAY, 99 * DAY)),  # somebody came back to it
        ((), ()),
    ],
)
def test_the_times_of_a_session_are_in_the_order_of_its_file(
    told: tuple[int | None, ...], kept: tuple[int | None, ...]
) -> None:
    assert tuple(event.ts for event in in_order(said(*told))) == kept


@given(st.lists(st.none() | st.integers(0, 3 * DAY), max_size=12))
def test_no_line_is_earlier_than_the_one_before_and_what_is_in_order_stays(told: list[int | None]) -> None:
    kept = [event.ts for event in in_order(said(*told))]
    known = [ts for ts in kept if ts is not None]

    assert known == sorted(known)
    assert len(known) in (0, len(told))
    assert [event.ts for event in in_order(said(*kept))] == kept
    if None not in told and told == sorted(told):  # type: ignore[type-var] - no None is among them
        assert kept == told


def test_a_session_does_not_take_the_times_of_another() -> None:
    mixed = [said(10)[0], said(500, session="t")[0], said(None)[0]]

    assert [event.ts for event in in_order(mixed)] == [10, 500, 10]


def test_what_lies_in_the_future_takes_the_time_of_its_session_where_that_has_one() -> None:
    assert [event.ts for event in in_order(said(10, FUTURE, FUTURE + 5), NOW)] == [10, 10, 10]
    assert [event.ts for event in in_order(said(FUTURE, FUTURE), NOW)] == [FUTURE, FUTURE]


def test_lines_of_every_format_without_a_time_stay_where_they_stand() -> None:
    def claude(n: int, **more: Any) -> dict[str, Any]:
        return {"type": "user", "uuid": f"u{n}", "parentUuid": f"u{n - 1}", "sessionId": "s", "message": {"content": f"{n}"}, **more}  # fmt: skip

    transcript = [claude(0, timestamp="2026-09-01T10:00:00Z"), claude(1), claude(2, timestamp="soon")]
    gemini = [
        {"sessionId": "s", "projectHash": "h"},
        {"id": "1", "type": "user", "content": "one", "timestamp": "2026-09-01T10:00:00Z"},
        {"id": "2", "type": "gemini", "content": "two"},
    ]
    for rows in (transcript, gemini):
        parsed = parse("s.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
        assert {event.ts for event in parsed.events} == {1_788_256_800_000}


@pytest.mark.parametrize("source", [one for one in intake.Source if one is not intake.Source.RESTORE])
def test_an_event_of_the_future_came_now_by_every_way(source: intake.Source) -> None:
    def kept(ts: int) -> Any:
        draft = EventDraft(agent="a", session_id="s", type=EventType.USER_MESSAGE, text="x", ts=Millis(ts))
        return intake.event(draft, 0, device="d", now=NOW, policy=DEFAULT, source=source).event

    assert (kept(FUTURE).ts, kept(FUTURE).metadata) == (NOW, {TOLD: FUTURE})
    assert (kept(NOW + DAY).ts, kept(NOW + DAY).metadata) == (NOW + DAY, {})
    assert kept(FUTURE).dedupe_key == kept(FUTURE).dedupe_key != kept(FUTURE + 1).dedupe_key


def statement(name: str, words: str, at: int, **metadata: int) -> NewStatement:
    return NewStatement(
        id=name,
        content=words,
        scope=Scope.USER,
        resource_id=None,
        trust=Trust.USER,
        created_at=Millis(at),
        metadata=metadata,
    )


def test_what_has_no_time_replaces_nothing_for_sure_and_is_replaced_by_what_is_said_after_it_came() -> None:
    undated = statement("undated", "The API port is 8080.", 100, told_ts=FUTURE)
    earlier, later = (statement(name, "The API port is 9090.", at) for name, at in (("earlier", 50), ("later", 150)))
    plain = replace(undated, metadata={})

    assert [one.verdict for one in successions(plain, [earlier], DEFAULT.supersession)] == [Verdict.SUPERSEDES]
    assert [one.verdict for one in successions(undated, [earlier], DEFAULT.supersession)] == [Verdict.UNSURE]
    assert [one.verdict for one in successions(earlier, [undated], DEFAULT.supersession)] == [Verdict.UNSURE]
    (found,) = successions(later, [undated], DEFAULT.supersession)
    assert (found.verdict, found.old, found.new) == (Verdict.SUPERSEDES, "undated", "later")


def memory(name: str, at: int) -> Memory:
    return Memory(
        id=name,
        content=f"Always {name}.",
        type=MemoryType.PREFERENCE,
        scope=Scope.PROJECT,
        resource_id="p",
        trust=Trust.USER,
        created_at=Millis(at),
        updated_at=NOW,
        kind=Kind.OBSERVATION,
        salience=0.5,
        content_hash=name,
    )


def test_a_memory_of_the_future_that_a_store_holds_already_is_of_when_it_was_written_down() -> None:
    of_tomorrow, of_today = memory("use 8080", FUTURE), memory("use 9090", NOW - DAY)

    assert dated(of_tomorrow, DAY).created_at == NOW
    assert dated(of_today, DAY) is of_today


async def test_a_fact_of_the_future_does_not_take_the_place_of_one_of_yesterday(service: Application) -> None:
    """Whichever came first: nobody knows when it was said, so the person is asked."""
    for number, years in enumerate(((2099, 2026), (2026, 2099))):
        project = f"p{number}"
        for year, port in zip(years, ("8080", "9090"), strict=True):
            row = {
                "type": "user",
                "uuid": f"u{project}{year}",
                "parentUuid": None,
                "sessionId": f"s{project}{year}",
                "timestamp": f"{year}-01-01T10:00:00Z",
                "message": {"content": f"Remember: the API port is {port}."},
            }
            data = json.dumps(row).encode()
            await service.call(PERSON, "import", api.ImportRequest(name="s.jsonl", data=data, project=project))
            await service.call(PERSON, "settle", api.SettleRequest())
        entries = (await service.call(PERSON, "list", api.ListRequest(project=project))).entries
        assert {entry.memory.superseded_by for entry in entries if entry.memory.resource_id == project} == {None}


async def test_a_memory_that_says_it_was_made_in_the_future_is_of_today(service: Application) -> None:
    entry = await service.call(
        Caller(principal=Principal.PERSON), "add", MemoryDraft(content="Use tabs.", created_at=FUTURE)
    )

    assert entry.memory.created_at < FUTURE
    assert entry.memory.metadata[TOLD] == FUTURE


@pytest.mark.parametrize("restored", [False, True])
async def test_the_audit_counts_what_a_store_holds_of_the_future(restored: bool, service: Application) -> None:  # noqa: FBT001 - drawn
    """A restore puts back what was exported as it was: so did a store of an earlier version."""
    event = Event(
        id=ulid(FUTURE, b"0123456789"),
        device="0" * 32,
        agent="a",
        session_id="s",
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text="The API port is 8080.",
        ts=FUTURE,
        dedupe_key="k",
    )
    if restored:
        data = export_format.header("s", NOW, version=1) + export_format.line(event)
        await service.call(PERSON, "import", api.ImportRequest(name="x", data=data, restore=True))
    counts = {"future": 0, "future_event": int(restored)}

    found = await service.call(PERSON, "audit", api.Nothing())

    assert {one.kind: one.count for one in found.findings if one.kind.startswith("future")} == counts
