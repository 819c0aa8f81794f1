"""What an observer would be asked about sessions, by the sizes of their events alone. Pure: no text, and no Writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from scrubjay.policy import ObserverPolicy
from scrubjay.store.queries.events import EventSize
from scrubjay_shared.records import EventType

SAID = frozenset((EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP))
LABEL_CHARS = 16
"""What names a turn in a prompt: its number, its speaker, and the indent of its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How often an observer would be asked, and the characters of all prompts together."""

    calls: int
    chars: int


def outlook(events: Sequence[EventSize], policy: ObserverPolicy, *, instruction_chars: int) -> Outlook:
    """Return what reading some events as they came would ask; they are in the order of sessions and times.

    Of the memories that each prompt shows, as many are counted as it has room for: a store in use has them.
    """
    prompts = [
        chars
        for _, session in groupby(events, key=lambda event: event.session_id)
        for chars in _prompts([*session], policy)
    ]
    memories = policy.memories * policy.memory_chars // 2
    return Outlook(calls=len(prompts), chars=sum(prompts) + len(prompts) * (instruction_chars + memories))


def _prompts(session: Sequence[EventSize], policy: ObserverPolicy) -> list[int]:
    """Return the characters of turns in each prompt about a session, as `observer_prompt` fills it."""
    room = policy.prompt_chars - policy.memories * policy.memory_chars // 2
    prompts: list[int] = []
    before = new = 0
    for event, following in pairwise([*session, None]):
        if event is None:
            continue
        if event.type in SAID and event.chars:
            new += min(event.chars, policy.turn_chars) + LABEL_CHARS
        if new and (new >= policy.new_chars or _is_read_after(event, following, policy)):
            said = min(new, room)
            prompts.append(said + min(before, policy.context_chars, room - said))
            before, new = before + new, 0
    return prompts


def _is_read_after(event: EventSize, following: EventSize | None, policy: ObserverPolicy) -> bool:
    """Say whether the observer reads a session after this event: it has ended, or nothing more came for long."""
    if following is None:
        return True
    quiet_seconds = policy.quiet_seconds if event.type is EventType.SESSION_END else policy.wait_seconds
    return following.ts - event.ts >= quiet_seconds * 1000
