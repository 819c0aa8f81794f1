"""LoCoMo: long conversations between two people, one session per `session_N`, dated in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from scrubjay.importers.parsing import Parsed, SourceFormat, bounded, clean, counted, first, json_value, millis
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType, Json, Role, Trust

AGENT = "locomo"
SESSION = re.compile(r"session_([0-9]{1,6})")
SAID_AT = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)\s*(?P<half>[ap])\.?m\.?\s+on\s+(?P<day>\d{1,2})\s+(?P<month>[a-z]+),?\s+(?P<year>\d{4})",
    re.IGNORECASE | re.ASCII,
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
TURN_MS = 60_000  # turns carry no time of their own; a minute each keeps their order within the session


def parse_locomo(name: str, data: bytes, *, only: str | None, project: str | None) -> Parsed:
    """Read one conversation or a list of them. `only` picks one by its sample id or its number, counted from 1.

    The times are of a place nobody names, so they are taken as UTC. Raises InvalidError for what is not LoCoMo,
    NotFoundError when `only` names no conversation.
    """
    try:
        found = json_value(data)
    except ValueError as e:
        raise InvalidError(f"{name} is not valid JSON", hint="a LoCoMo file is a JSON list of conversations") from e
    samples = found if isinstance(found, list) else [found]
    named = [
        (first(sample, "sample_id") or str(number), conversation(sample))
        for number, sample in enumerate(samples, start=1)
        if isinstance(sample, dict) and conversation(sample)
    ]
    if not named:
        raise InvalidError(f"{name} holds no conversation", hint="a LoCoMo conversation has session_1, session_2, …")
    if only is not None:
        by_id = [pair for pair in named if pair[0] == only]
        by_number = [pair for number, pair in enumerate(named, start=1) if str(number) == only]
        if not (by_id or by_number):
            raise NotFoundError(
                f"{name} has no conversation {only!r}",
                hint=f"it holds {', '.join(sample_id for sample_id, _ in named)}, or give a number from 1",
            )
        named = (by_id or by_number)[:1]
    skipped: Counter[str] = Counter()
    events = tuple(draft for sample_id, talk in named for draft in turns(sample_id, talk, project, skipped))
    return Parsed(format=SourceFormat.LOCOMO, events=events, skipped=counted(skipped))


def conversation(sample: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a sample that holds the sessions, {} where no part does."""
    inner = sample.get("conversation", sample)
    return inner if isinstance(inner, dict) and any(SESSION.fullmatch(key) for key in inner) else {}


def turns(sample_id: str, talk: dict[str, Any], project: str | None, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield the turns, session by session. Both speakers are people, so each turn is a user's message."""
    sessions = sorted((key for key in talk if SESSION.fullmatch(key)), key=lambda key: (int(key[8:]), key))
    seen: set[str] = set()
    for session in sessions:
        spoken = talk[session]
        if not isinstance(spoken, list):
            skipped["bad_session"] += 1
            continue
        start = said_at(talk.get(f"{session}_date_time"))
        for index, turn in enumerate(spoken):
            text = clean(turn.get("text")) if isinstance(turn, dict) else ""
            caption = clean(turn.get("blip_caption")) if isinstance(turn, dict) else ""
            if not (text or caption):
                skipped["empty" if isinstance(turn, dict) else "not_object"] += 1
                continue
            dia_id = clean(turn.get("dia_id"))
            key = f"{AGENT}:{sample_id}:{dia_id or f'{session}:{index}'}"
            if key in seen:
                key = f"{AGENT}:{sample_id}:{session}:{index}:{dia_id}"
            seen.add(key)
            about: Json = {"speaker": clean(turn.get("speaker")), "dia_id": dia_id, "caption": caption}
            yield EventDraft(
                agent=AGENT,
                session_id=f"{AGENT}/{sample_id}/{session}",
                type=EventType.USER_MESSAGE,
                role=Role.USER,
                text=text,
                project=project,
                ts=None if start is None else Millis(start + index * TURN_MS),
                trust=Trust.IMPORT,
                metadata={field: value for field, value in about.items() if value},
                dedupe_key=key,
            )


def said_at(value: Any) -> Millis | None:
    """Return the time of words like "1:56 pm on 8 May, 2023", or of an ISO date; None when it is neither.

    >>> said_at("12:05 am on 1 January, 1970")
    300000
    """
    match = SAID_AT.fullmatch(clean(value))
    if not match:
        return millis(value)
    month = match["month"].lower()
    hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
    try:
        when = datetime(
            int(match["year"]), MONTHS.index(month[:3]) + 1, int(match["day"]), hour, int(match["minute"]), tzinfo=UTC
        )
    except ValueError:
        return None
    return bounded(when.timestamp() * 1000)
