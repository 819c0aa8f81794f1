"""What may be stored: every shape of bad input is a clear refusal or a text from which nothing else was lost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted_secrets import every_surrounding
from scrubjay import redaction
from scrubjay.ingest import intake
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import MAX_EVENT_MILLIS, MAX_MILLIS, Millis
from scrubjay_shared.errors import DeniedError, InvalidError, ScrubjayError, TooLargeError
from scrubjay_shared.records import Event, EventDraft, EventType, Layer, MemoryDraft, Role, Scope, Trust

NOW = Millis(1_800_000_000_000)
LIMITS = DEFAULT.limits
TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


def draft(text: str = "hello", **more: Any) -> EventDraft:
    fields: dict[str, Any] = {"agent": "a", "session_id": "s", "type": EventType.USER_MESSAGE, "text": text}
    return EventDraft(**(fields | more))


def clean(given_draft: EventDraft, now: Millis = NOW) -> intake.Clean:
    return intake.event(given_draft, 3, device="d", now=now, policy=DEFAULT, source=intake.Source.PERSON)


def made(text: str = "hello", **more: Any) -> Event:
    return clean(draft(text, **more)).event


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"agent": ""}, InvalidError),
        ({"agent": " \n"}, InvalidError),
        ({"agent": "a" * (LIMITS.max_name_chars + 1)}, InvalidError),
        ({"session_id": ""}, InvalidError),
        ({"session_id": "s" * (LIMITS.max_name_chars + 1)}, InvalidError),
        ({"project": "p" * (intake.MAX_PROJECT_CHARS + 1)}, InvalidError),
        ({"ts": -1}, InvalidError),
        ({"ts": MAX_EVENT_MILLIS + 1}, InvalidError),
        ({"ts": 1 << 80}, InvalidError),
        ({"utc_offset": 24 * 60}, InvalidError),
        ({"utc_offset": -24 * 60}, InvalidError),
        ({"text": "x" * (LIMITS.max_text_chars + 1)}, TooLargeError),
        ({"metadata": {"x": math.nan}}, InvalidError),
        ({"metadata": {"x": math.inf}}, InvalidError),
        ({"metadata": {"x": 1 << 70}}, InvalidError),
        ({"metadata": {"x": b"bytes"}}, InvalidError),
        ({"metadata": nested(LIMITS.max_metadata_depth + 1)}, InvalidError),
        ({"metadata": nested(5_000)}, InvalidError),
        ({"metadata": {"x": ["word"] * 20_000}}, TooLargeError),
    ],
    ids=lambda value: str(*value)[:30] if isinstance(value, dict) else value.__name__,
)
def test_what_cannot_be_an_event_is_refused_with_its_place(changes: dict[str, Any], kind: type[ScrubjayError]) -> None:
    with pytest.raises(kind, match="event 3") as refused:
        clean(draft(**changes))

    assert refused.value.hint
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("cut \ud83d off", "cut \ufffd off"),
        ("\ude00 \ud83d\ude00", "\ufffd 😀"),
        ("nul \0 inside", "nul \ufffd inside"),
        ("bell \x07 escape \x1b[31m", "bell \x07 escape \x1b[31m"),
        ("\ufeffwith a mark", "\ufeffwith a mark"),
        ("東京 ภาษาไทย العربية 🦜", "東京 ภาษาไทย العربية 🦜"),
        ("  kept as it is\r\n", "  kept as it is\r\n"),
    ],
)
def test_a_strange_text_is_kept_but_for_what_cannot_be_stored(text: str, stored: str) -> None:
    event = made(text, metadata={text: [text]}, session_id=f"s{text}", dedupe_key=f"k{text}")

    assert event.text == stored
    assert event.metadata == {stored: [stored]}
    assert (event.session_id, event.dedupe_key) == (f"s{stored}", f"k{stored}")


@given(st.text(max_size=200))
def test_what_is_made_valid_is_as_long_and_stays_as_it_is(text: str) -> None:
    once = intake.valid(text)

    once.encode()
    assert "\0" not in once
    assert intake.valid(once) == once


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n\t", "empty"),
        ("<private>my pin is 1234</private>", "private"),
        (" <private>a</private> \n <private>b</private> ", "private"),
        ('<memory source="scrubjay" id="x">- Maya drinks tea</memory>', "injected"),
    ],
)
def test_an_event_of_which_nothing_is_left_is_skipped_with_its_reason(text: str, reason: str) -> None:
    assert clean(draft(text)).reason == reason


@pytest.mark.parametrize("event_type", [EventType.SESSION_START, EventType.SESSION_END, EventType.ASSISTANT_STOP])
def test_an_event_that_needs_no_words_is_not_skipped(event_type: EventType) -> None:
    assert clean(draft("", type=event_type)).reason is None


def test_private_passages_and_our_own_words_leave_the_rest() -> None:
    text = 'My cat <private>Mog, pin 1234</private> sleeps. <memory source="scrubjay" id="1">old</memory> Good night.'

    event = made(text)

    assert "Mog" not in event.text
    assert "old" not in event.text
    assert "sleeps." in event.text
    assert "Good night." in event.text


def test_secrets_are_taken_out_of_text_and_metadata_and_counted() -> None:
    cleaned = clean(draft(f"use {TOKEN} please", metadata={"env": {"deep": [f"token {TOKEN}"]}, TOKEN: 1}))

    assert TOKEN not in repr(cleaned.event)
    assert "[REDACTED:" in cleaned.event.text
    assert sum(cleaned.redactions.values()) >= 2


@pytest.mark.parametrize(
    ("event_type", "role"),
    [
        (EventType.USER_MESSAGE, Role.USER),
        (EventType.NOTE, Role.USER),
        (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT),
        (EventType.ASSISTANT_STOP, Role.ASSISTANT),
        (EventType.TOOL_RESULT, Role.TOOL),
        (EventType.SESSION_START, Role.SYSTEM),
    ],
)
def test_a_role_follows_from_the_type_unless_it_is_given(event_type: EventType, role: Role) -> None:
    assert made("x", type=event_type).role == role
    assert made("x", type=event_type, role=Role.SYSTEM).role == Role.SYSTEM


@pytest.mark.parametrize(
    ("claimed", "role", "trusted"),
    [
        (Trust.USER, Role.USER, Trust.USER),
        (Trust.USER, Role.TOOL, Trust.UNTRUSTED),
        (Trust.USER, Role.ASSISTANT, Trust.AGENT),
        (Trust.UNTRUSTED, Role.USER, Trust.UNTRUSTED),
        (Trust.IMPORT, Role.ASSISTANT, Trust.IMPORT),
    ],
)
def test_nobody_is_trusted_beyond_the_role_they_speak_in(claimed: Trust, role: Role, trusted: Trust) -> None:
    assert made("x", trust=claimed, role=role).trust == trusted


# --- one delivery, one event --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {}, True),
        ({"text": "b"}, {"text": "c"}, False),
        ({"session_id": "s1"}, {"session_id": "s2"}, False),
        ({"agent": "a1"}, {"agent": "a2"}, False),
        ({"type": EventType.USER_MESSAGE}, {"type": EventType.NOTE}, False),
        ({"ts": NOW}, {"ts": NOW + 1}, False),
        ({"role": Role.USER}, {"role": Role.SYSTEM}, False),
        ({"metadata": {"tool_use_id": "t1"}}, {"metadata": {"tool_use_id": "t2"}}, False),
        ({"metadata": {"tool_use_id": "t1"}}, {"metadata": {"tool_use_id": "t1"}, "text": "cut sho"}, True),
        ({"dedupe_key": "k"}, {"dedupe_key": "k", "text": "other", "session_id": "s9"}, True),
    ],
    ids=str,
)
def test_a_delivery_is_told_from_another_by_who_said_what_when(
    one: dict[str, Any], other: dict[str, Any], *, same: bool
) -> None:
    assert (made(**one).dedupe_key == made(**other).dedupe_key) is same


@pytest.mark.parametrize(("later_ms", "same"), [(100, True), (intake.REPEAT_WINDOW_MS, False)])
def test_the_same_words_without_a_time_are_said_again_a_minute_later(later_ms: int, *, same: bool) -> None:
    start = Millis(NOW - NOW % intake.REPEAT_WINDOW_MS)
    one, other = clean(draft("ok"), start), clean(draft("ok"), Millis(start + later_ms))

    assert (one.event.dedupe_key == other.event.dedupe_key) is same


def test_an_endless_key_is_kept_as_its_digest() -> None:
    one, other = made(dedupe_key="k" * 1_000_000), made(dedupe_key="k" * 999_999 + "l")

    assert len(one.dedupe_key) == 64
    assert one.dedupe_key != other.dedupe_key


# --- memories -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"content": ""}, InvalidError),
        ({"content": " \n "}, InvalidError),
        ({"content": "<private>all of it</private>"}, InvalidError),
        ({"content": "x" * (LIMITS.max_text_chars + 1)}, TooLargeError),
        ({"name": ""}, InvalidError),
        ({"name": " \t"}, InvalidError),
        ({"name": "bell\x07"}, InvalidError),
        ({"name": "n" * (LIMITS.max_name_chars + 1)}, InvalidError),
        ({"aliases": ("ok", "")}, InvalidError),
        ({"salience": math.nan}, InvalidError),
        ({"salience": math.inf}, InvalidError),
        ({"salience": -0.01}, InvalidError),
        ({"salience": 1.01}, InvalidError),
        ({"scope": Scope.PROJECT}, InvalidError),
        ({"scope": Scope.SESSION, "resource_id": ""}, InvalidError),
        ({"valid_from": -1}, InvalidError),
        ({"valid_to": MAX_MILLIS + 1}, InvalidError),
        ({"created_at": 1 << 63}, InvalidError),
        ({"metadata": {"x": math.nan}}, InvalidError),
        ({"layer": Layer.IDENTITY, "trust": Trust.UNTRUSTED}, DeniedError),
        ({"layer": Layer.ACTIVE, "trust": Trust.IMPORT}, DeniedError),
    ],
    ids=lambda value: str(*list(value)[:1]) if isinstance(value, dict) else value.__name__,
)
def test_what_cannot_be_a_memory_is_refused(changes: dict[str, Any], kind: type[ScrubjayError]) -> None:
    fields: dict[str, Any] = {"content": "Maya drinks tea"}

    with pytest.raises(kind) as refused:
        intake.memory(MemoryDraft(**(fields | changes)), DEFAULT, intake.Source.PERSON)

    assert refused.value.hint


def test_a_memory_is_stored_without_secrets_and_with_plain_names() -> None:
    given_draft = MemoryDraft(
        content=f" The token is {TOKEN} \n", name="  two   words ", aliases=("also\tthis",), topic="t\ud800"
    )

    cleaned = intake.memory(given_draft, DEFAULT, intake.Source.PERSON)

    assert TOKEN not in cleaned.content
    assert (cleaned.name, cleaned.aliases, cleaned.topic) == ("two words", ("also this",), "t\ufffd")


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        ),
        max_size=4,
    )
)
def test_metadata_that_was_cleaned_is_cleaned_to_itself_with_its_keys_in_order(given_json: dict[str, Any]) -> None:
    once = intake.metadata(given_json, "memory", DEFAULT).value

    again = intake.metadata(once, "memory", DEFAULT).value

    assert again == once
    assert list(once) == sorted(once)


def test_counts_of_redactions_are_by_kind() -> None:
    assert isinstance(clean(draft("nothing secret")).redactions, Counter)
    assert clean(draft("nothing secret, my API key is in the vault")).redactions == Counter()


def test_names_aliases_and_topics_hold_no_secrets() -> None:
    key = "AKIA" + "Q3EGRWZ7XKLM2NPV"
    draft = MemoryDraft(content="words", name=f"key {key}", aliases=(f"also {key}",), topic=f"keys {key}")

    kept = intake.memory(draft, DEFAULT, intake.Source.PERSON)

    assert key not in f"{kept.name}{kept.aliases}{kept.topic}"
    assert kept.name == "key [REDACTED:aws-access-key-id]"


def test_a_name_of_several_lines_hides_what_its_lines_give_away() -> None:
    limits = replace(DEFAULT.limits, max_name_chars=1_000)
    known = [one for one in every_surrounding() if one.secret not in redaction.clean(one.text).text]

    named = [(one, intake.name(replace(DEFAULT, limits=limits), one.text)) for one in known]

    assert len(known) > 100
    assert [one for one, name in named if one.secret in name] == []


def test_no_half_of_a_key_is_stored_of_a_topic_that_is_too_long() -> None:
    key = "AKIA" + "Q3EGRWZ7XKLM2NPV"
    hidden = "<private>" + "x " * 1970 + "</private> "
    longest = DEFAULT.limits.max_name_chars * intake.NAME_ROOM

    with pytest.raises(InvalidError, match="a topic must have at most 4000 characters, got"):
        intake.topic(DEFAULT, hidden + "y" * (longest - len(hidden) - 11) + " " + key)

    assert intake.topic(DEFAULT, "y" * longest) == "y" * DEFAULT.limits.max_name_chars
