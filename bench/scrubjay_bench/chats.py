"""Anybody's own conversations: a folder with `turns.jsonl` and `questions.jsonl`.

A line of turns: `{"conversation", "session", "id", "speaker", "time", "text"}`, in the order said; `time` is ISO 8601,
UTC where it has no offset. A line of questions: `{"conversation", "question", "evidence": [turn ids], "category"}`.
Names, sessions, ids and categories may be strings or numbers; ids are unique within a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrubjay_bench.conversations import Conversation, DataSet, Question, Turn, digest
from scrubjay_shared.clock import MAX_EVENT_MILLIS, Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

TURNS, QUESTIONS = "turns.jsonl", "questions.jsonl"
UNNAMED = "uncategorised"
HINT = "docs/retrieval-format.md describes both files"


def load(folder: Path) -> DataSet:
    """Read both files. Raises NotFoundError for a missing one, InvalidError naming the file and the line."""
    turns: dict[str, dict[str, Turn]] = {}
    for where, line in _lines(folder / TURNS):
        turn = _turn(where, line)
        said = turns.setdefault(_name(where, line, "conversation"), {})
        if turn.id in said:
            raise InvalidError(f"{where}: the id {turn.id} stands there twice", hint="one id a turn of a conversation")
        said[turn.id] = turn
    questions: dict[str, list[Question]] = {}
    for where, line in _lines(folder / QUESTIONS):
        name = _name(where, line, "conversation")
        if name not in turns:
            raise InvalidError(f"{where}: no turn is of conversation {name}", hint=HINT)
        questions.setdefault(name, []).append(_question(where, line))
    if not questions:
        raise InvalidError(f"{QUESTIONS}: no question in it", hint=HINT)
    return DataSet(
        name="Chats",
        sha256=digest(folder / TURNS, folder / QUESTIONS),
        conversations=tuple(
            Conversation(name=name, turns=tuple(said.values()), questions=tuple(questions.get(name, ())))
            for name, said in turns.items()
        ),
    )


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path.name} is not in the folder", hint=HINT) from None
    for number, row in enumerate(rows, start=1):
        if row.strip():
            where = f"{path.name}, line {number}"
            try:
                line = json.loads(row)
            except ValueError as error:
                raise InvalidError(f"{where}: not JSON", hint=HINT) from error
            if not isinstance(line, dict):
                raise InvalidError(f"{where}: not an object", hint=HINT)
            yield where, line


def _turn(where: str, line: dict[str, Any]) -> Turn:
    text = line.get("text")
    if not isinstance(text, str):
        raise InvalidError(f"{where}: text is not a string", hint=HINT)
    ts, utc_offset = _time(where, line.get("time"))
    return Turn(
        id=_name(where, line, "id"),
        session=_name(where, line, "session"),
        speaker=_name(where, line, "speaker"),
        text=text,
        ts=ts,
        utc_offset=utc_offset,
    )


def _question(where: str, line: dict[str, Any]) -> Question:
    text, evidence = line.get("question"), line.get("evidence")
    if not isinstance(text, str) or not text.strip():
        raise InvalidError(f"{where}: no question in it", hint=HINT)
    if not isinstance(evidence, list):
        raise InvalidError(f"{where}: evidence is not a list of turn ids", hint=HINT)
    named = line.get("category") not in {None, ""}
    return Question(
        text=text,
        evidence=frozenset(str(_plain(where, id_, "evidence")) for id_ in evidence),
        category=_name(where, line, "category") if named else UNNAMED,
    )


def _name(where: str, line: dict[str, Any], key: str) -> str:
    name = str(_plain(where, line.get(key), key))
    if not name.strip():
        raise InvalidError(f"{where}: {key} is empty", hint=HINT)
    return name


def _plain(where: str, value: Any, key: str) -> str | int | float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    raise InvalidError(f"{where}: {key} is neither a string nor a number", hint=HINT)


def _time(where: str, value: Any) -> tuple[Millis, int]:
    """Return UTC milliseconds, and the minutes east of UTC that the text gives."""
    try:
        when = datetime.fromisoformat(value)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
        ts = round(when.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(f"{where}: time is not ISO 8601", hint="as in 2024-05-08T13:56:00+02:00") from error
    if not 0 <= ts <= MAX_EVENT_MILLIS:
        raise InvalidError(f"{where}: time is before 1970 or too far off", hint=HINT)
    offset = when.utcoffset()
    return Millis(ts), 0 if offset is None else round(offset.total_seconds() / 60)
