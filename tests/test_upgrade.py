"""A store that a released version wrote: today's code reads all of it, says the same, and takes over its processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hook_process import prompt
from releases import RELEASED, Release

EVENTS = [
    {
        "agent": "codex",
        "session_id": f"s{n % 3}",
        "type": "user_message",
        "text": f"We decided to paint boat {n} blue in the harbour of Oslo, because tar is too slow.",
        "ts": 1_790_000_000_000 + n * 60_000,
        "project": "quay" if n % 2 else None,
    }
    for n in range(24)
]
ASKED = (
    ("audit",),
    ("list", "--limit", "100"),
    ("recall", "which colour has the boat?", "--limit", "5"),
    ("recall", "ferry", "--limit", "5"),
    ("get", "drinks"),
    ("get", "tea"),
    ("why", "drinks"),
    ("events", "--limit", "100"),
    ("sessions",),
    ("context",),
    ("history",),
)
TOLD_ANEW = frozenset(
    (
        *("accessed_at", "access_count", "counts", "elapsed_ms", "embed", "rank", "read", "rerank", "stages", "scope"),
        "now",
    )
)
"""What is another with every answer: times, and what asking itself counts."""
FOUND = ("id", "kind", "type", "text", "name", "superseded_by")
"""What a recalled hit is. How much of its turn is shown beside it is each version's own."""


def filled(release: Release, folder: Path, *then: tuple[str, ...]) -> list[Any]:
    """Let a release write a store with something of everything; return its answers to what it is asked then."""
    events = folder / "events.jsonl"
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    made = (
        ("init", "--no-model"),
        ("ingest", str(events), "--wait"),
        ("add", "Maya drinks tea", "--name", "drinks", "--alias", "tea"),
        *(("add", f"the ferry number {n} leaves at six", "--name", f"ferry-{n}") for n in range(4)),
        ("update", "drinks", "Maya drinks green tea"),
        ("forget", "ferry-3"),
    )
    return release.answers(*made, *then)[len(made) :]


def said_again(before: Any, after: Any, path: str = "") -> list[str]:
    """Return where an answer of today does not say what the same question got before. Answers may grow."""
    if isinstance(before, dict) and "hits" in before:
        before, after = ([{key: hit[key] for key in FOUND} for hit in answer["hits"]] for answer in (before, after))
    if isinstance(before, dict):
        return [
            one
            for key, value in before.items()
            if key not in TOLD_ANEW
            for one in (said_again(value, after[key], f"{path}/{key}") if key in after else [f"{path}/{key} is gone"])
        ]
    if isinstance(before, list):
        if path.endswith("/findings"):  # one of each kind: there may be more kinds by now
            return said_again({one["kind"]: one for one in before}, {one["kind"]: one for one in after}, path)
        if len(before) != len(after):
            return [f"{path}: {len(before)} before, {len(after)} now"]
        return [one for at, each in enumerate(before) for one in said_again(each, after[at], f"{path}/{at}")]
    return [] if before == after else [f"{path}: {before!r} before, {after!r} now"]


@pytest.mark.slow
@pytest.mark.parametrize("version", RELEASED)
def test_a_store_of_a_released_version_says_the_same_today(version: str, tmp_path: Path) -> None:
    release = Release(version, tmp_path)
    before = filled(release, tmp_path, *ASKED)

    *after, doctor, verified = release.answers_now(*ASKED, ("doctor", "--deep"), ("verify",))

    assert said_again(before, after) == []
    assert after[0]["state"] == before[0]["state"]
    assert [check for check in doctor["checks"] if check["state"] == "fail"] == []
    assert verified["sound"]


@pytest.mark.slow
@pytest.mark.parametrize("version", RELEASED)
def test_the_daemon_and_the_hooks_of_a_released_version_are_taken_over(version: str, tmp_path: Path) -> None:
    release = Release(version, tmp_path)
    filled(release, tmp_path)
    release.run("scrubjay.cli", "daemon", "start")
    try:
        payload = json.dumps(prompt("old", "I always write the tests first."))
        release.run("scrubjay_hook", "claude-code", "UserPromptSubmit", stdin=payload)
        (before,) = release.answers_now(("events", "--in-session", "old"))
        release.answers_now(("daemon", "restart"))

        release.run("scrubjay_hook", "claude-code", "UserPromptSubmit", stdin=payload.replace("first", "last"))
        after, status = release.answers_now(("events", "--in-session", "old"), ("daemon", "status"))
    finally:
        release.answers_now(("daemon", "stop"))

    assert [event["text"] for event in before["events"]] == ["I always write the tests first."]
    assert sorted(event["text"] for event in after["events"]) == [
        "I always write the tests first.",
        "I always write the tests last.",
    ]
    assert status["state"] == "running"
