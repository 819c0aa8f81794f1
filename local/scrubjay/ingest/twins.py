"""Which events of a transcript the store has already, because a hook delivered them. Pure: events in, pairs out.

A hook and a transcript tell the same turn with ids of their own, if any. What they share is the session, who spoke, the
words after secrets were taken out, and within seconds the time; for the output of a tool, the id of its call where the
host has one. An event has one twin at most, so that a person who says "yes" twice has said it twice.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from scrubjay_shared.records import Event, EventType

TWIN_WINDOW_MS = 120_000
"""How far apart a hook and a transcript put one turn: hooks run while the host writes, and a busy machine is slow."""

ERASED_WINDOW_MS = 10_000
"""The same for an event whose words were forgotten since: its time is all there is to know it by."""

HEAD_CHARS = 400
"""Characters by which outputs of tools are compared: a hook's are cut in the middle where they are long."""

CALL = "call_id"
TURNS = ("turn_id", "prompt_id")

SAME = {EventType.ASSISTANT_STOP: EventType.ASSISTANT_MESSAGE}
"""Types that tell the same: a stop carries the last words of the agent."""


def twins(fresh: Sequence[Event], stored: Iterable[tuple[Event, bool]]) -> dict[int, Event]:
    """Return, by index into `fresh`, the stored event that tells the same. All are of one agent and one session.

    `stored` says of each whether words of it were erased: then it is known by its time, for what a person forgot must
    not come back with a transcript.
    """
    calls: dict[str, list[Event]] = defaultdict(list)
    words: dict[tuple[EventType, str], list[Event]] = defaultdict(list)
    erased: dict[EventType, list[Event]] = defaultdict(list)
    for event, is_erased in stored:
        words[_words(event)].append(event)
        if call := event.metadata.get(CALL):
            calls[str(call)].append(event)
        if is_erased:
            erased[_type(event)].append(event)
    found: dict[int, Event] = {}
    taken: set[str] = set()
    for index, event in enumerate(fresh):
        call = event.metadata.get(CALL)
        near = [other for other in calls.get(str(call), []) if call and other.type is event.type]
        near += _near(event, words.get(_words(event), []), TWIN_WINDOW_MS)
        near = [other for other in near if other.id not in taken] or [
            other for other in _near(event, erased.get(_type(event), []), ERASED_WINDOW_MS) if other.id not in taken
        ]
        if near:
            twin = min(near, key=lambda other: (abs(other.ts - event.ts), other.id))
            found[index] = twin
            taken.add(twin.id)
    return found


def grown(event: Event, told: Sequence[Event], keys: Container[str | None]) -> Event:
    """Return an answer without what is stored of it: it was read before while it was still being written.

    `told` are answers of its session that came from the same kind of file, as they were stored; `keys` those that the
    file has now. What was added to an answer of a known key has that key with an ending. An answer that is stored whole
    comes back under a key that is known.
    """
    rest, last = event.text, None
    for other in told:
        same = f"{other.dedupe_key}+".startswith(f"{event.dedupe_key}+")
        part = same or (other.ts == event.ts and other.dedupe_key not in keys)
        if part and other.text and rest.startswith(other.text):
            rest, last = rest[len(other.text) :].lstrip(), other
    if last is None:
        return event
    if not rest:
        return replace(event, dedupe_key=last.dedupe_key)
    if any(other.dedupe_key == event.dedupe_key for other in told):
        digest = hashlib.sha256(rest.encode(errors="replace")).hexdigest()[:8]
        return replace(event, text=rest, dedupe_key=f"{event.dedupe_key}+{digest}")
    return replace(event, text=rest)


def _near(event: Event, others: Iterable[Event], window: int) -> list[Event]:
    return [other for other in others if _may_be(event, other) and abs(other.ts - event.ts) <= window]


def _type(event: Event) -> EventType:
    return SAME.get(event.type, event.type)


def _words(event: Event) -> tuple[EventType, str]:
    if event.type is EventType.COMPACTION:  # a transcript puts words of its own around the summary
        return event.type, "summary" if event.text else ""
    text = event.text if event.type is not EventType.TOOL_RESULT else event.text[:HEAD_CHARS]
    return _type(event), " ".join(text.split())


def _may_be(event: Event, other: Event) -> bool:
    """Say whether no id tells two events apart that say the same."""
    for name in (CALL, *TURNS):
        mine, others = event.metadata.get(name), other.metadata.get(name)
        if mine and others and mine != others:
            return False
    return True
