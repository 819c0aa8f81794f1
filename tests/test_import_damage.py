"""Transcripts that crashes and second writers damaged: one damaged place costs what it touches, and no more."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.importers import detect, parse
from scrubjay.importers.parsing import JOINED_CHARS, json_objects
from scrubjay.importers.shapes import format_of
from scrubjay_shared.errors import InvalidError

SESSION = "11111111-2222-4333-8444-555555555555"
WORDS = ["The queue is RabbitMQ.", "Sessions last 12 hours.", "Ports {8080} and [9090].", 'She said "no", twice.']


def claude(text: str, number: int) -> dict[str, Any]:
    return {
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": SESSION,
        "type": "user",
        "uuid": f"u{number}",
        "timestamp": f"2026-09-01T10:{number:02}:00Z",
        "message": {"role": "user", "content": text},
        "toolUse": [{"type": "text", "n": {"a": [1, 2]}}],
    }


def codex(text: str, number: int) -> dict[str, Any]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"timestamp": f"2026-09-01T10:{number:02}:00Z", "type": "response_item", "payload": item}


def copilot(text: str, number: int) -> dict[str, Any]:
    return {"type": "user.message", "data": {"content": text}, "id": f"e{number}", "timestamp": "2026-09-01T10:00:00Z"}


def gemini(text: str, number: int) -> dict[str, Any]:
    return {"id": f"m{number}", "type": "user", "content": [{"text": text}], "timestamp": "2026-09-01T10:00:00Z"}


def graph(text: str, number: int) -> dict[str, Any]:
    return {"type": "entity", "name": f"E{number}", "entityType": "thing", "observations": [text]}


HOSTS = {"claude-code": claude, "codex": codex, "copilot": copilot, "gemini": gemini, "mcp-memory": graph}


def lines_of(host: str, texts: list[str]) -> list[bytes]:
    return [json.dumps(HOSTS[host](text, number)).encode() + b"\n" for number, text in enumerate(texts)]


def read(host: str, data: bytes) -> list[str]:
    parsed = parse("session.jsonl", data, host)
    facts = [memory.content.split(": ", 1) for memory in parsed.memories]
    return [event.text for event in parsed.events] + [fact[1] for fact in facts if len(fact) > 1]


def lost(host: str, data: bytes) -> dict[str, int]:
    kept = ("bad_json", "lost_block", "torn_line", "not_object")
    return {reason: count for reason, count in parse("session.jsonl", data, host).skipped if reason in kept}


NULS = b"\0" * 9_000
BLOCKS = {
    "head": lambda rows: NULS + b"".join(rows),
    "middle": lambda rows: rows[0] + NULS + b"".join(rows[1:]),
    "tail": lambda rows: b"".join(rows) + NULS,
    "everywhere": lambda rows: NULS.join([b"", *rows, b""]),
    "few": lambda rows: b"\0\0\0".join([b"", *rows, b""]),
}


@pytest.mark.parametrize("place", BLOCKS)
@pytest.mark.parametrize("host", HOSTS)
def test_nul_bytes_between_records_cost_no_record_and_are_counted(host: str, place: str) -> None:
    data = BLOCKS[place](lines_of(host, WORDS))

    assert read(host, data) == WORDS
    assert set(lost(host, data)) == {"lost_block"}


@pytest.mark.parametrize("host", HOSTS)
def test_records_in_one_list_are_all_read(host: str) -> None:
    rows = [row.strip() for row in lines_of(host, WORDS)]

    for data in (b"[" + b",".join(rows) + b"]", b"[\n" + b",\n".join(rows) + b"\n]\n"):
        assert (read(host, data), lost(host, data)) == (WORDS, {})


@pytest.mark.parametrize("host", HOSTS)
def test_records_that_share_a_line_are_all_read(host: str) -> None:
    rows = [row.strip() for row in lines_of(host, WORDS)]

    for between in (b"", b" ", b",", b"\0" * 4096):
        assert read(host, between.join(rows) + b"\n") == WORDS
    assert lost(host, b"".join(rows)) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_a_torn_record_before_a_whole_one_costs_itself_alone_wherever_it_was_torn(host: str) -> None:
    rows = lines_of(host, WORDS[:3])

    for at in range(1, len(rows[1]) - 2):
        data = rows[0] + rows[1][:at] + rows[1] + rows[2]
        assert read(host, data) == WORDS[:3], rows[1][:at]
        assert lost(host, data) == {"bad_json": 1}


@pytest.mark.parametrize("host", HOSTS)
def test_a_line_feed_or_tab_within_a_string_is_part_of_it(host: str) -> None:
    said = "one\ntwo\t\n\n{}\n[1]\nseven"
    rows = lines_of(host, [WORDS[0], said, WORDS[1]])
    data = rows[0] + rows[1].replace(b"\\n", b"\n").replace(b"\\t", b"\t") + rows[2]

    assert read(host, data) == [WORDS[0], said, WORDS[1]]
    assert lost(host, data) == {}


def test_a_torn_line_is_not_joined_with_the_records_behind_it() -> None:
    rows = lines_of("claude-code", WORDS)
    data = rows[0] + rows[1][:60] + b"\n" + rows[2] + rows[3]

    assert read("claude-code", data) == [WORDS[0], WORDS[2], WORDS[3]]
    assert lost("claude-code", data) == {"bad_json": 1}
    assert lost("claude-code", rows[0] + rows[1][:60]) == {"torn_line": 1}


def test_a_block_amid_two_records_does_not_make_one_of_their_halves() -> None:
    rows = lines_of("claude-code", WORDS)
    head, tail = rows[1][: rows[1].index(b"hours")], rows[2][rows[2].index(b"8080") :]
    data = rows[0] + head + NULS + tail + rows[3]

    assert read("claude-code", data) == [WORDS[0], WORDS[3]]
    assert lost("claude-code", data) == {"bad_json": 2, "lost_block": 1}


@settings(max_examples=150, deadline=None)
@given(
    host=st.sampled_from(sorted(HOSTS)),
    texts=st.lists(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).map(lambda text: f"w{text}w"),
        min_size=3, max_size=6, unique=True,
    ),
    at=st.floats(0, 1),
    kind=st.sampled_from(["nul", "feed", "torn", "dropped"]),
    size=st.integers(1, 9_000),
    ascii_=st.booleans(),
)  # fmt: skip
def test_one_damaged_place_leaves_every_record_that_it_does_not_touch(
    host: str, texts: list[str], at: float, kind: str, size: int, *, ascii_: bool
) -> None:
    rows = [
        json.dumps(HOSTS[host](text, number), ensure_ascii=ascii_).encode() + b"\n" for number, text in enumerate(texts)
    ]
    data = b"".join(rows)
    place = min(int(at * len(data)), len(data) - 1)
    ends = [len(b"".join(rows[: number + 1])) for number in range(len(rows))]
    touched = {next(number for number, end in enumerate(ends) if place < end)}
    match kind:
        case "nul":
            damaged = data[:place] + b"\0" * size + data[place:]
            touched = set() if place in {0, *ends} else touched
        case "feed":
            damaged = data[:place] + b"\n" + data[place:]
        case "torn":
            damaged = data[:place] + data[data.index(b"\n", place) + 1 :]
        case _:
            place = ends[min(touched)] - 1
            damaged = data[:place] + data[place + 1 :]
            touched = set()

    found = read(host, damaged)

    untouched = [text.strip() for number, text in enumerate(texts) if number not in touched]
    assert [text for text in found if text in untouched] == untouched


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_file_is_shows_though_its_first_record_is_damaged(host: str) -> None:
    rows = lines_of(host, WORDS)

    for at in range(1, len(rows[0])):
        for damaged in (rows[0][:at], rows[0][:at] + b"\n", rows[0][at:], NULS + rows[0][at:], rows[0][:at] + NULS):
            assert detect("session.jsonl", damaged + b"".join(rows[1:])).value == host, damaged


BINARIES = {
    "nothing but NULs": b"\0" * 5_000,
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40,
    "UTF-16 without a mark": "".join(row.decode() for row in lines_of("claude-code", WORDS)).encode("utf-16-le"),
}


@pytest.mark.parametrize("named", [None, "claude-code", "codex", "mcp-memory"])
@pytest.mark.parametrize("data", BINARIES.values(), ids=BINARIES)
def test_a_file_that_is_binary_is_refused_all_the_same(data: bytes, named: str | None) -> None:
    with pytest.raises(InvalidError, match="is a binary file"):
        parse("session.jsonl", data, named)


HARD = {
    "torn beginnings": b'{"a' * 30_000,
    "open objects": b'{"a":' * 30_000,
    "open strings": b'{"a":"b\n' * 5_000,
    "line feeds in a string": b'{"a":"' + b"x\n" * 30_000,
    "quotes without an end": b'{"a":"' + b'x"\n' * 20_000,
    "nested ones before a torn end": b'{"a":[' + b'{"b":1},' * 20_000,
    "backslashes": b'{"a":"' + b"\\" * 100_001 + b'{"b":1}',
    "brackets": b"[" * 100_000,
    "NUL bytes everywhere": (b"\0{" + b"x" * 30) * 30_000,
    "one line feed too many": b'{"a":"' + b"x" * (JOINED_CHARS // 4) + b'\n"}',
}


@pytest.mark.parametrize("data", HARD.values(), ids=HARD)
def test_damage_without_end_is_read_in_linear_time(data: bytes) -> None:
    start = time.process_time()
    list(json_objects(data, Counter()))
    format_of(data, is_json=True)

    assert time.process_time() - start < 5
