"""An "it" that opens a sentence is resolved where it has one reading, and else left alone."""

from __future__ import annotations

import pytest

from scrubjay.distill import distill
from scrubjay.distill.reference import taken_up
from scrubjay_shared.records import Event, EventType, Role


def learned(text: str, role: Role = Role.USER, project: str | None = None) -> list[tuple[str, str]]:
    kind = EventType.USER_MESSAGE if role is Role.USER else EventType.ASSISTANT_MESSAGE
    event = Event(
        id="e0001", device="d", agent="test", session_id="s1", type=kind, role=role, text=text,
        ts=1_700_000_000_000, dedupe_key="1", project=project,
    )  # fmt: skip
    return [(o.content, o.excerpt) for o in distill([event], user_id="user_1").observations]


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ("The ingest service is written in Rust", "It runs on port 8080", "The ingest service runs on port 8080"),
        ("The deploy script lives in ops/deploy.sh", "It needs a token", "The deploy script needs a token"),
        ("fence is the geofence service", "It's written in Go", "Fence is written in Go"),
        ("We have a staging cluster in Frankfurt", "It runs on Nomad", "The staging cluster runs on Nomad"),
        ("The workers are small", "They need 4 GB each", "The workers need 4 GB each"),
        ("Our API is public", "Its tokens expire after a day", "Our API's tokens expire after a day"),
        ("`make gen` is slow", "It needs 4 GB", "`make gen` needs 4 GB"),
    ],
)
def test_a_pronoun_takes_up_the_only_thing_named(before: str, text: str, expected: str) -> None:
    assert taken_up(text, before) == expected


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("The ingest service is behind the proxy", "It runs on port 8080"),
        ("The ingest service talks to billing", "It runs on port 8080"),
        ("The api and the worker are in Rust", "They need 4 GB"),
        ("The workers are small", "It needs 4 GB"),
        ("It is written in Rust", "It runs on port 8080"),
        ("We are late", "It runs on port 8080"),
        ("Thanks a lot", "It runs on port 8080"),
        ("The ingest service is written in Rust", "We run it on port 8080"),
        ("The ingest service is written in Rust", "It and the proxy need 4 GB"),
        ("The problem is in the parser", "It is expecting a list"),
        ("The issue is old", "It is using port 8080"),
        ("", "It runs on port 8080"),
    ],
)
def test_a_pronoun_of_more_than_one_reading_is_left_alone(before: str, text: str) -> None:
    assert taken_up(text, before) is None


@pytest.mark.parametrize(("role", "project"), [(Role.USER, None), (Role.ASSISTANT, None)])
def test_the_grip_of_a_resolved_sentence_covers_what_it_points_at(role: Role, project: str | None) -> None:
    text = "The ingest service is written in Rust. It runs on port 8080."

    assert ("The ingest service runs on port 8080.", text.rstrip()) in learned(text, role, project)


def test_another_paragraph_is_not_pointed_at() -> None:
    text = "The ingest service is written in Rust.\n\nIt runs on port 8080."

    assert [content for content, _ in learned(text)] == ["The ingest service is written in Rust."]
