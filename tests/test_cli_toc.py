"""The table of contents over the command line, and through `Memory`."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay import Memory
from scrubjay.cli import times
from scrubjay.cli.render.toc import building
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

TALK = [
    ("2026-01-12T09:00:00+00:00", "user", "How do we refresh JWT tokens without forcing a logout?"),
    ("2026-01-12T09:01:00+00:00", "assistant", "We implemented a sliding window refresh for the JWT tokens."),
    ("2026-01-12T09:02:00+00:00", "user", "And what about the race condition when two tabs refresh at once?"),
    ("2026-02-03T09:02:00+00:00", "user", "We moved the billing tables to PostgreSQL 17."),
]


def lines() -> bytes:
    return b"\n".join(
        json.dumps({
            "agent": "crow", "session_id": at[:10], "type": f"{who}_message", "text": text,
            "ts": int(datetime.fromisoformat(at).timestamp() * 1000),
        }).encode()
        for at, who, text in TALK
    )  # fmt: skip


def test_people_walk_from_a_year_to_the_words_that_were_said(shell: Shell) -> None:
    shell.json("ingest", "--wait", stdin=lines())

    _, year, _ = shell.run("toc", "2026", "--text")
    assert "January 2026  toc:month:2026-01" in year
    assert "up: toc" in year
    _, day, _ = shell.run("toc", "2026-01-12", "--text")
    assert day.startswith("Monday, 12 January 2026\ntoc:day:2026-01-12\n1 conversation, 3 events: ")
    assert "by crow" in day
    assert "• How do we refresh JWT tokens without forcing a logout?" in day
    assert "after: toc:day:2026-02-03" in day

    segment = shell.json("toc", "2026-01-12")["children"][0]
    _, shown, _ = shell.run("toc", segment["id"], "--text")
    assert "session 2026-01-12" in " ".join(shown.split())
    _, grip, _ = shell.run("grip", "expand", segment["grip_ids"][0], "--before", "0", "--after", "1", "--text")
    assert "user: How do we refresh JWT tokens without forcing a logout?" in grip
    assert "sliding window" in grip
    assert segment["id"] in grip


def test_the_short_id_that_recall_prints_of_an_event_leads_to_its_whole_text_and_forgets_it(shell: Shell) -> None:
    shell.json("ingest", "--wait", stdin=lines())
    _, said, _ = shell.run("recall", "sliding window refresh", "--kind", "event", "-n", "1", "--text")
    short = next(word for word in said.split() if len(word) == 16 and word.startswith("01"))

    shown = shell.json("grip", "expand", short, "--before", "1", "--after", "0")
    assert shown["excerpt"] == TALK[1][2]
    assert [event["text"] for event in shown["events"]] == [TALK[0][2], TALK[1][2]]
    assert shell.json("grip", "expand", shown["id"])["excerpt"] == TALK[1][2]
    code, error = shell.error("get", short)
    assert (code, error["message"]) == (3, f"{short} is an event, not a memory")
    assert error["hint"].startswith(f"scrubjay grip expand {short}")

    assert shown["event_id_start"] in shell.json("forget", short)["events"]
    assert shell.error("grip", "expand", short)[0] == 3


def test_a_period_is_shown_by_either_name_of_its_bounds(shell: Shell) -> None:
    shell.json("ingest", "--wait", stdin=lines())

    new = shell.json("timeline", "--from", "2026-01-01", "--to", "2026-01-31", "--level", "day")
    old = shell.json("timeline", "--since", "2026-01-01", "--until", "2026-01-31", "--level", "day")
    events = shell.json("events", "--from", "2026-02-01")["events"]

    assert new == old
    assert [node["id"] for node in new["nodes"]] == ["toc:day:2026-01-12"]
    assert [event["text"] for event in events] == [TALK[3][2]]
    assert shell.run("timeline", "--from", "2020-01-01", "--to", "2020-02-01", "--text")[1].strip() == (
        "nothing was said in that time"
    )


def test_an_empty_store_and_what_is_not_there_are_said(shell: Shell) -> None:
    assert shell.run("toc", "--text")[1].strip() == "nothing was said yet"
    assert shell.error("toc", "2020")[0] == 3
    code, error = shell.error("grip", "expand", "grip:nothing")
    assert (code, "scrubjay toc" in error["hint"]) == (3, True)


def test_a_time_in_words_is_the_node_of_that_time() -> None:
    now = times.local(Millis(1_768_208_400_000), 0)  # Monday, 12 January 2026, 09:00 UTC

    assert [
        times.node(words, now) for words in ("today", "yesterday", "last week", "2026-W03", "May 2025", "2024")
    ] == [
        "toc:day:2026-01-12",
        "toc:day:2026-01-11",
        "toc:week:2026-W02",
        "toc:week:2026-W03",
        "toc:month:2025-05",
        "toc:year:2024",
    ]
    with pytest.raises(InvalidError, match="is not a time"):
        times.node("the other day or so", now)


def test_people_are_told_what_is_not_in_it_yet() -> None:
    assert building(0) == ()
    assert building(2)[0].startswith("2 sessions changed")


def test_programs_walk_through_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.ingest(
            [{"agent": "crow", "session_id": "s", "type": "user_message", "text": TALK[3][2], "ts": 1_768_208_400_000}]
        )
        memory.settle()

        root = memory.toc()
        day = memory.toc("toc:day:2026-01-12")
        line = memory.timeline(level="segment")
        grip = memory.expand(day.node.grip_ids[0], before=0)

    assert root.node.children == ("toc:year:2026",)
    assert [node.id for node in line.nodes] == list(day.node.children)
    assert grip.excerpt == TALK[3][2]
