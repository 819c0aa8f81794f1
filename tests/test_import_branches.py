"""What nobody took back is read, whatever a transcript's lines hang on; what the person took back is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.importers import Parsed, parse
from scrubjay.importers.talk import open_branch
from scrubjay.service.application import Application
from scrubjay_shared.records import Role

pytestmark = pytest.mark.anyio


class Transcript:
    """A transcript of Claude Code while it is written."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def row(self, kind: str, parent: str | None, **more: Any) -> str:
        number = len(self.rows)
        self.rows.append(
            {
                "type": kind,
                "uuid": f"u{number}",
                "parentUuid": parent,
                "isSidechain": False,
                "sessionId": "s",
                "timestamp": f"2026-09-01T10:{number // 60 % 60:02}:{number % 60:02}Z",
                **more,
            }
        )
        return f"u{number}"

    def person(self, text: str, parent: str | None, **more: Any) -> str:
        return self.row("user", parent, message={"role": "user", "content": text}, **more)

    def agent(self, text: str, parent: str | None) -> str:
        content = [{"type": "text", "text": text}]
        return self.row(
            "assistant", parent, message={"id": f"m{len(self.rows)}", "role": "assistant", "content": content}
        )

    def turn(self, text: str, parent: str | None) -> str:
        return self.agent(f"Done: {text}", self.person(text, parent))

    def copied(self, uuids: Sequence[str]) -> None:
        self.rows += [next(row for row in self.rows if row["uuid"] == uuid) for uuid in uuids]

    def compacted(self, follows: str | None, **kept: str) -> str:
        about = {"trigger": "auto", **({"preservedSegment": kept} if kept else {})}
        boundary = self.row(
            "system", None, subtype="compact_boundary", logicalParentUuid=follows, compactMetadata=about
        )
        return self.person("Summary.", boundary, isCompactSummary=True)

    def ancestors(self, uuid: str | None) -> list[str]:
        by_uuid = {row["uuid"]: row for row in self.rows}
        found: list[str] = []
        while uuid in by_uuid:
            found.append(uuid)
            uuid = by_uuid[uuid]["parentUuid"]
        return found[::-1]

    def parsed(self) -> Parsed:
        return parse("s.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows).encode())


def typed(parsed: Parsed) -> list[str]:
    return [event.text for event in parsed.events if event.role is Role.USER]


def test_a_second_compaction_in_one_process_loses_nothing() -> None:
    file = Transcript()
    first = file.turn("one", None)
    last = file.turn("two", first)
    summary = file.compacted(last)
    file.turn("four", file.turn("three", summary))
    file.copied(file.ancestors(last)[:3])
    hook = file.row("system", file.ancestors(last)[2], subtype="stop_hook_summary")
    file.turn("five", file.compacted(hook))

    assert typed(file.parsed()) == ["one", "two", "three", "four", "five"]
    assert "branch" not in dict(file.parsed().skipped)


def test_what_goes_on_from_the_lines_that_a_compaction_kept_takes_nothing_back() -> None:
    file = Transcript()
    tail = file.turn("two", file.turn("one", None))
    for number in range(3):  # each compaction names the same lines, and the next prompt hangs on the last of them
        file.compacted(file.rows[-1]["uuid"], headUuid=file.ancestors(tail)[-2], tailUuid=tail)
        file.turn(f"after {number}", tail)

    assert typed(file.parsed()) == ["one", "two", "after 0", "after 1", "after 2"]


def test_a_hook_row_before_the_prompt_that_it_belongs_to_loses_nothing() -> None:
    file = Transcript()
    first = file.turn("one", None)
    file.row("attachment", "late", attachment={"type": "hook_success"})
    file.person("two", first, uuid="late")
    file.agent("Done.", "u2")

    assert typed(file.parsed()) == ["one", "two"]


def test_two_terminals_in_one_session_are_both_read() -> None:
    file = Transcript()
    start = file.turn("start", None)
    left = file.turn("left", start)
    file.turn("right", start)
    file.turn("left again", left)

    assert typed(file.parsed()) == ["start", "left", "right", "left again"]


@pytest.mark.parametrize("between", ["", "hook", "compaction", "copy", "first"])
def test_what_the_person_took_back_is_left_out_and_named(between: str) -> None:
    file = Transcript()
    start = file.row("system", None, subtype="session") if between == "first" else file.turn("start", None)
    gone = file.turn("use red", start)
    if between == "compaction":
        gone = file.compacted(gone)
    gone = file.turn("and blue", gone)
    if between == "copy":
        file.copied(file.ancestors(gone))
    if between == "hook":
        start = file.row("system", start, subtype="hook")
    file.turn("use green", start)
    parsed = file.parsed()

    assert typed(parsed) == [*(["start"] if between != "first" else []), "use green"]
    assert parsed.taken_back == ("use red", "and blue")
    assert dict(parsed.skipped)["branch"] >= 4


def test_of_three_prompts_at_one_place_the_last_stays() -> None:
    file = Transcript()
    start = file.turn("start", None)
    for text in ("one", "two", "three"):
        file.turn(text, start)

    assert typed(file.parsed()) == ["start", "three"]


class Terminals:
    """Terminals that write one transcript side by side, each from the end of another, and take nothing back."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.file = Transcript()
        self.said: list[str] = []
        self.tips = [self.turn(None)]

    def turn(self, tip: str | None) -> str:
        self.said.append(f"turn {len(self.said)}")
        if self.draw(st.booleans()):  # a hook's row stands before the prompt that it belongs to
            name = f"late{len(self.said)}"
            self.file.row("attachment", name, attachment={"type": "hook_success"})
            self.file.person(self.said[-1], tip, uuid=name)
            tip = name
        else:
            tip = self.file.person(self.said[-1], tip)
        if self.draw(st.booleans()):
            self.file.row("user", tip, isSidechain=True, message={"role": "user", "content": "Look it up."})
        tip = self.file.agent("Done.", tip)
        self.file.row("system", tip, subtype="stop_hook_summary")
        return self.file.row("system", tip, subtype="turn_duration") if self.draw(st.booleans()) else tip

    def step(self, what: str) -> None:
        which = self.draw(st.integers(0, len(self.tips) - 1))
        tip, follows = self.tips[which], None
        if what == "resume":
            self.tips.append(self.turn(tip))
            return
        if what == "compact":
            follows = self.file.compacted(self.draw(st.sampled_from((tip, None, "gone"))))
        elif what == "replay":
            above = self.file.ancestors(tip)
            self.file.copied(above[self.draw(st.integers(0, len(above) - 1)) :])
            follows = self.file.compacted(self.file.row("system", self.file.rows[-1]["uuid"], subtype="stop_hook"))
        elif what == "keep":
            self.file.compacted(tip, headUuid=tip, tailUuid=tip)
        self.tips[which] = self.turn(follows or tip)


@st.composite
def side_by_side(draw: st.DrawFn) -> Terminals:
    terminals = Terminals(draw)
    for what in draw(st.lists(st.sampled_from(("turn", "resume", "compact", "replay", "keep")), max_size=8)):
        terminals.step(what)
    for tip in terminals.tips:  # each goes on after the others began
        terminals.turn(tip)
    # Of two terminals nobody knows which of them a line goes on whose parent is lost.
    lost = draw(st.sets(st.integers(0, len(terminals.file.rows) - 1), max_size=3 if len(terminals.tips) == 1 else 0))
    rows = terminals.file.rows
    terminals.file.rows = [row for n, row in enumerate(rows) if n not in lost or "turn " in json.dumps(row)]
    return terminals


@settings(deadline=None)
@given(terminals=side_by_side())
def test_without_a_rewind_no_turn_is_lost(terminals: Terminals) -> None:
    assert sorted(set(typed(terminals.file.parsed())), key=terminals.said.index) == terminals.said


@pytest.mark.parametrize(
    ("parents", "last", "kept"),
    [
        ({"a": "", "b": "a", "c": "b"}, "c", "abc"),
        ({"a": "", "b": "a", "c": "a"}, "b", "ab"),  # the branch that was left open, not the newest
        ({"a": "", "b": "a", "c": "a"}, "", "ac"),
        ({"a": "", "b": "a", "c": "b", "d": "c"}, "b", "abcd"),  # named, but it goes on
        ({"a": "", "b": "a", "d": "lost", "e": "d"}, "e", "abde"),  # one between is missing
        ({"a": "root", "b": "a", "c": "root", "d": "c"}, "d", "cd"),  # two beginnings of one talk
        ({"a": "b", "b": "a", "c": ""}, "c", "abc"),  # a circle
        ({"a": "a"}, "a", "a"),
        ({}, "x", ""),
    ],
)
def test_the_open_branch_of_a_tree_leaves_out_only_what_has_a_rival_on_it(
    parents: dict[str, str], last: str, kept: str
) -> None:
    assert "".join(open_branch(parents, last, lambda _: 0)) == kept


@given(
    parents=st.lists(st.integers(-1, 30), max_size=30),
    last=st.integers(0, 30),
)
def test_a_message_is_left_out_only_where_another_answers_the_same(parents: list[int], last: int) -> None:
    named = {str(n): str(parent) if parent >= 0 else "" for n, parent in enumerate(parents)}
    kept = open_branch(named, str(last), lambda _: 0)
    answers = [parent for parent in named.values() if parent]

    assert len(kept) == len(set(kept))
    if len(answers) == len(set(answers)) and all(int(parent) < int(n) for n, parent in named.items() if parent):
        assert sorted(kept) == sorted(named)


def test_a_chatgpt_export_whose_open_end_goes_on_and_that_lost_a_message_is_read_whole() -> None:
    def node(key: str, parent: str, text: str) -> dict[str, Any]:
        message = {"id": key, "author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}}
        return {"id": key, "parent": parent, "children": [], "message": message}

    nodes = {"a": node("a", "", "one"), "c": node("c", "lost", "two"), "d": node("d", "c", "three")}
    talk = [{"id": "t", "create_time": 1_795_165_200, "current_node": "c", "mapping": nodes}]
    parsed = parse("conversations.json", json.dumps(talk).encode())

    assert typed(parsed) == ["one", "two", "three"]
    assert parsed.taken_back == ()


def test_what_geminis_model_is_given_after_a_compaction_takes_nothing_back_and_doubles_nothing() -> None:
    def said(key: str, text: str, kind: str = "user") -> dict[str, Any]:
        return {"id": key, "timestamp": "2026-11-20T09:00:00Z", "type": kind, "content": text}

    rows = [
        {"sessionId": "s", "projectHash": "h"},
        said("1", "one"),
        said("2", "First.", "gemini"),
        said("3", "two"),
        {"$set": {"messages": [said("8", "<state_snapshot>x</state_snapshot>"), said("9", "two")]}},
        said("10", "three"),
        said("11", "four"),
        {"$rewindTo": "11"},
    ]
    parsed = parse("s.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    torn = parse(
        "s.jsonl",
        json.dumps(rows[0]).encode() + b'\n{"id":\n' + json.dumps(rows[1]).encode() + b'\n{"$rewindTo":"x"}\n',
    )

    assert typed(parsed) == ["one", "two", "three"]
    assert parsed.taken_back == ("four",)
    assert typed(torn) == ["one"]  # the line that cannot be read may have held what the rewind names


def test_of_a_message_of_opencode_that_was_reverted_from_a_part_on_the_rest_stays() -> None:
    def message(key: str, *parts: str) -> dict[str, Any]:
        found = [{"id": f"{key}{n}", "type": "text", "text": text} for n, text in enumerate(parts)]
        return {"info": {"id": key, "role": "user", "time": {"created": 1_795_165_200_000}}, "parts": found}

    revert = {"messageID": "msg_2", "partID": "msg_21"}
    info = {"id": "ses_1", "directory": "/x", "revert": revert}
    session = {
        "info": info,
        "messages": [message("msg_1", "one"), message("msg_2", "two", "three"), message("msg_3", "four")],
    }
    parsed = parse("s.json", json.dumps(session).encode())

    assert typed(parsed) == ["one", "two"]
    assert parsed.taken_back == ("three", "four")


async def test_an_import_names_what_was_taken_back_without_its_secrets(service: Application) -> None:
    file = Transcript()
    start = file.turn("start", None)
    file.turn("my key is AKIA" + "Q3EGRWZ7XKLM2NPV", start)
    file.turn("never mind", start)
    data = "".join(json.dumps(row) + "\n" for row in file.rows).encode()

    for dry_run in (True, False):
        answer = await service.call(PERSON, "import", api.ImportRequest(name="s.jsonl", data=data, dry_run=dry_run))

        assert isinstance(answer, api.ImportResponse)
        assert [text.startswith("my key is [REDACTED") for text in answer.taken_back] == [True]
