"""Aider's chat history, `.aider.chat.history.md`: `#### ` before each line a person types, `> ` before a tool's.

Both end in two blanks, by which they are told from an agent's headings and quotations, if nobody has cut them off.
`# aider chat started at TIME` begins a session, without a zone: the time is taken as UTC. All else is the agent's. Of
aider's own commands those that ask something are what the person says; the others (`/add`, `!ls`) are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, digest, millis, prose, rows
from scrubjay.importers.talk import Session, spoken
from scrubjay_shared.records import EventDraft, EventType, Role

MARK = b"# aider chat started at "
STARTED = re.compile(r"# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*")
BREAK = "  "
"""What aider ends a line of its own with."""

TYPED = re.compile(r"(?m)^#### .*  $")
BLANK = "<blank>"
"""What aider writes where somebody sent nothing."""

ASKS = re.compile(r"/(?:ask|code|architect|context|chat-mode \w+)\s+(?=\S)")
"""A command that is followed by what the person says."""

COMMAND = re.compile(r"(?:/[a-z][a-z-]*(?:\s|$)|!)")


def parse_aider(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a history. Raises InvalidError when it is not UTF-8 text; what is not said is counted in `skipped`."""
    skipped: Counter[str] = Counter()
    events: list[EventDraft] = []
    times: Counter[tuple[str, str, str]] = Counter()
    session, began, last = Session(agent="aider", id="aider", project=project), None, ""
    for who, words in _said(prose(name, data)):
        if who == "started":
            began = millis(words)
            session, last = Session(agent="aider", id=f"aider-{words}", project=project), ""
            continue
        text = words if who == "agent" else _typed(words, skipped)
        if not (text := clean(spoken(text))):
            continue
        if who == "person" and " ".join(text.split()) == last:
            skipped["repeated"] += 1  # the editor of the architect's mode is given the plan as if it were typed
            continue
        kind, role = (
            (EventType.USER_MESSAGE, Role.USER) if who == "person" else (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT)
        )
        last = " ".join(text.split()) if who == "agent" else ""
        times[session.id, role.value, text] += 1
        key = digest(session.id, role.value, text, str(times[session.id, role.value, text]))
        events.append(session.event(kind, role, text, ts=began, key=key))
    return Parsed(format=SourceFormat.AIDER, events=tuple(events), skipped=counted(skipped))


def _said(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands together: who it is of ("started", "person", "agent"), and the words."""
    ending = BREAK if TYPED.search(text) else ""
    for who, lines in groupby(rows(text), key=lambda line: _who(line, ending)):
        if who in {"person", "agent"}:
            yield who, "\n".join(line[5:].rstrip() if who == "person" else line for line in lines).strip()
        elif who == "started":
            for line in lines:
                yield who, line[len(MARK) :].strip().replace(" ", "T") + "Z"


def _who(line: str, ending: str) -> str:
    if line.startswith("####") and line[4:5] in {" ", ""} and line.endswith(ending):
        return "person"
    if line.startswith(">") and line.endswith(ending):
        return "tool"
    if line.startswith("#") and STARTED.fullmatch(line):
        return "started"
    return "agent"


def _typed(words: str, skipped: Counter[str]) -> str:
    """Return what a person says in what they typed; "" for a command of the tool."""
    asked = ASKS.match(words)
    if asked:
        return words[asked.end() :]
    if words == BLANK or COMMAND.match(words):
        skipped["command"] += 1
        return ""
    return words
