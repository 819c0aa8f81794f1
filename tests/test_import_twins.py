"""A turn that a hook delivered and a transcript tells again is stored once, whichever ids the two give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.importers import parse
from scrubjay.ingest.twins import ERASED_WINDOW_MS, TWIN_WINDOW_MS, twins
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventDraft, EventType, Role, Trust
from service_calls import ingest

FIXTURES = Path(__file__).parent / "fixtures"
ROLLOUT = (FIXTURES / "codex_rollout.jsonl").read_bytes()
START = 1_795_165_200_000


def event(text: str, at: int = 0, kind: EventType = EventType.USER_MESSAGE, **metadata: Any) -> Event:
    return Event(
        id=f"{kind.value}-{text}-{at}-{metadata}",
        device="d",
        agent="codex",
        session_id="s",
        type=kind,
        role=Role.USER,
        text=text,
        ts=Millis(START + at),
        dedupe_key="k",
        project=None,
        utc_offset=0,
        trust=Trust.USER,
        metadata=metadata,
    )


def hooked(text: str, ts: int, kind: EventType = EventType.USER_MESSAGE, **more: Any) -> EventDraft:
    session = parse("rollout.jsonl", ROLLOUT).events[0].session_id
    fields: dict[str, Any] = {"agent": "codex", "session_id": session, "type": kind, "text": text, "ts": Millis(ts)}
    return EventDraft(**(fields | more))


async def imported(service: Application, data: bytes = ROLLOUT) -> api.ImportResponse:
    return await service.call(PERSON, "import", api.ImportRequest(name="rollout.jsonl", data=data))


@pytest.mark.anyio
async def test_what_hooks_delivered_is_not_stored_again_from_the_transcript(service: Application) -> None:
    prompt, result, answer, later, last = parse("rollout.jsonl", ROLLOUT).events
    await ingest(
        service,
        hooked(prompt.text, (prompt.ts or 0) - 900),
        hooked("exec_command: other words", result.ts or 0, EventType.TOOL_RESULT, metadata=dict(result.metadata)),
        hooked(f"{answer.text}\n", (answer.ts or 0) + 40, EventType.ASSISTANT_STOP),
    )

    first = await imported(service)
    again = await imported(service)
    stored = (await service.call(PERSON, "events", api.EventsRequest(session_id=prompt.session_id))).events

    assert (first.events, first.duplicates) == (2, 3)
    assert (again.events, again.duplicates) == (0, 5)
    assert [each.text for each in stored if each.type is EventType.USER_MESSAGE] == [prompt.text, later.text]
    assert stored[-1].text == last.text


@pytest.mark.anyio
async def test_what_was_forgotten_does_not_come_back_with_a_transcript(service: Application) -> None:
    prompt = parse("rollout.jsonl", ROLLOUT).events[0]
    delivered = await ingest(service, hooked(prompt.text, prompt.ts or 0))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=delivered.ids[0]))

    answer = await imported(service)
    stored = (await service.call(PERSON, "events", api.EventsRequest(session_id=prompt.session_id))).events

    assert answer.duplicates == 1
    assert prompt.text not in [each.text for each in stored]


@pytest.mark.parametrize(
    ("fresh", "stored", "is_twin"),
    [
        (event("yes"), event("yes", 5_000), True),
        (event("yes"), event(" yes\n", 5_000), True),
        (event("yes"), event("no"), False),
        (event("yes"), event("yes", TWIN_WINDOW_MS + 1), False),
        (event("yes", turn_id="a"), event("yes", turn_id="b"), False),
        (event("yes", turn_id="a"), event("yes"), True),
        (event("yes"), event("yes", kind=EventType.ASSISTANT_MESSAGE), False),
        (event("done", kind=EventType.ASSISTANT_MESSAGE), event("done", kind=EventType.ASSISTANT_STOP), True),
        (
            event("$ ls\na", kind=EventType.TOOL_RESULT, call_id="c1"),
            event("a", 9_000_000, EventType.TOOL_RESULT, call_id="c1"),
            True,
        ),
        (
            event("a", kind=EventType.TOOL_RESULT, call_id="c1"),
            event("a", kind=EventType.TOOL_RESULT, call_id="c2"),
            False,
        ),
    ],
)
def test_twins_share_their_call_or_their_words_and_time(fresh: Event, stored: Event, *, is_twin: bool) -> None:
    assert (twins([fresh], [(stored, False)]) == {0: stored}) is is_twin


def test_an_erased_event_is_known_by_its_time_alone() -> None:
    assert twins([event("secret")], [(event("", ERASED_WINDOW_MS), True)])
    assert not twins([event("secret")], [(event("", ERASED_WINDOW_MS + 1), True)])
    assert not twins([event("secret")], [(event("", 0), False)])


@given(
    st.lists(st.sampled_from(["yes", "no", "go on"]), max_size=12),
    st.lists(st.sampled_from(["yes", "no", "go on"]), max_size=12),
)
def test_each_stored_event_is_the_twin_of_one_at_most(fresh: list[str], stored: list[str]) -> None:
    mine = [event(text, at * 1_000) for at, text in enumerate(fresh)]
    others = [event(text, at * 1_000 + 300) for at, text in enumerate(stored)]
    found = twins(mine, [(each, False) for each in others])

    assert len({twin.id for twin in found.values()}) == len(found)
    for word in ("yes", "no", "go on"):
        assert sum(mine[index].text == word for index in found) == min(fresh.count(word), stored.count(word))
