"""Cursor's exported chats: `_Exported on TIME from Cursor (VERSION)_`, then `**User**` and `**Cursor**` above messages.

A rule stands between two messages, and rules may stand within them: only one with a speaker right below it ends one.
Nothing tells when something was said; it was not after the export, whose time is written as the person's system writes
it and read where it can be.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta, timezone

from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, digest, millis, path_of, prose
from scrubjay.importers.talk import Session, spoken
from scrubjay.importers.typed import typed
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Role

MARK = re.compile(rb"\s*(?:#[^\n]{0,400}\n\s*){0,4}_Exported on [^\n]{1,100} from Cursor\b")
EXPORTED = re.compile(
    r"_Exported on (?:(?P<month>[1-9]|1[0-2])/(?P<day>[1-9]|[12]\d|3[01])/(?P<year>\d{4})"
    r"|(?P<iso>\d{4})[/-](?P<iso_month>\d\d?)[/-](?P<iso_day>\d\d?)) at (?:GMT\S* )?"
    r"(?P<time>\d{1,2}:\d\d:\d\d)(?: ?(?P<half>AM|PM))?"
)
ZONE = re.compile(r"\bGMT(?P<hours>[+-]\d{1,2})(?::(?P<minutes>\d\d))?")
SPEAKER = re.compile(r"(?:\A|\n)---[ \t]*\n\s{0,4}\*\*(?P<who>User|Cursor)\*\*[ \t]*(?=\n|\Z)")


def parse_cursor(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a chat. Raises InvalidError when it is not UTF-8 text; what is not said is counted in `skipped`."""
    text = prose(name, data)
    first, *rest = SPEAKER.split(text)
    title = next((row.lstrip("# ").strip() for row in first.splitlines() if row.startswith("#")), path_of(name).stem)
    skipped: Counter[str] = Counter()
    said: list[tuple[str, str]] = []
    for who, body in zip(rest[::2], rest[1::2], strict=True):
        words = clean(spoken(body.strip().removesuffix("---")))
        words = clean(typed(words)) if who == "User" else words
        skipped["empty"] += not words
        said += [(who, words)] if words else []
    # A talk that went on is exported again under its title, and begins as it did.
    session = Session(agent="cursor", id=f"cursor-{digest(title, *said[0][:2] if said else ())[:16]}", project=project)
    when = exported(first)
    times: Counter[tuple[str, str]] = Counter()
    events: list[EventDraft] = []
    for who, words in said:
        is_person = who == "User"
        kind, role = (EventType.USER_MESSAGE, Role.USER) if is_person else (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT)
        times[who, words] += 1
        events.append(
            session.event(kind, role, words, ts=when, key=digest(session.id, who, words, str(times[who, words])))
        )
    return Parsed(format=SourceFormat.CURSOR, events=tuple(events), skipped=counted(skipped))


def exported(head: str) -> Millis | None:
    """Return when a chat was exported, where it is written with month, day and year, or the year first."""
    found = EXPORTED.search(head)
    if not found:
        return None
    year, month, day = (
        int(found[here] or found[iso]) for here, iso in (("year", "iso"), ("month", "iso_month"), ("day", "iso_day"))
    )
    hour, minute, second = map(int, found["time"].split(":"))
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "PM" else 0)
    zone = ZONE.search(head)
    hours, minutes = (int(zone["hours"]), int(zone["minutes"] or 0)) if zone else (0, 0)
    east = timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes)
    try:
        return millis(datetime(year, month, day, hour, minute, second, tzinfo=timezone(east)).isoformat())
    except ValueError:
        return None
