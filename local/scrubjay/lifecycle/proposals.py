"""What a person is at, as lines that are proposed for the active layer. Pure.

Open goals, the last decisions of a project, and what its last session did not finish.

A goal is open while it holds: nothing took its place, it has no end in the past, and it was not put away. A session
ended unfinished where the person asked something that was not answered any more, or the agent's last answer says what
is left. What the person dismissed is not proposed again for the same reason. What patterns read less surely than is
usual for its kind is left to recall: of such decisions most are remarks of the moment, and who is shown them stops
reading proposals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scrubjay.intervals import over, said_at
from scrubjay.policy import TYPE_SALIENCE, LayersPolicy
from scrubjay_shared.clock import DAY_MINUTES, Millis
from scrubjay_shared.records import TRUST_ORDER, Event, EventType, Layer, Memory, MemoryType, Scope, Trust
from scrubjay_shared.text import asks, query_tokens

DISMISSED = "active_dismissed"
"""In the metadata of a memory: why it was proposed when the person dismissed it."""

LEFT_OFF = "left_off"
"""In the metadata of a memory that was made of a session's end: the event that said it."""

_DAY_MS = DAY_MINUTES * 60_000
_AGENTS = frozenset({EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP})
_TAGGED = re.compile(r"\s*<[A-Za-z][\w-]*>")
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s|$)[^\n.!?]*)*[.!?]?")
_LEFT = re.compile(
    r"\b(?:next steps?|next,|remaining|remains|still (?:to|need|open|fail|missing|broken|left)\w*|left to do|to-?do"
    r"|not yet|unfinished|follow-?up|wip|pending|open questions?|shall i|should i|would you like|do you want me to"
    r"|n\u00e4chste schritte?|noch (?:offen|nicht|zu)|soll ich|bleibt)\b",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^\W*(?:(?:and|so|then|for) )?(?:next (?:time|session|up)|tomorrow|n\u00e4chstes mal)\b"
    r"|\b(?:next (?:time|session)|tomorrow|n\u00e4chstes mal)\W*$",
    re.IGNORECASE,
)
"""What is named for another day."""
_FEW = 2
"""Telling words of a clause that asks for nothing: "dinner time", "looks good"."""
_CLAUSE = re.compile(r"[^,;.!\n]+")
_LEAVES = re.compile(
    r"\b(?:(?:thanks|thank you)(?: so much)? for\b.*|thanks?|thx|ty|cheers|bye|gotta (?:go|run)|good ?night"
    r"|see (?:you|ya)|talk (?:soon|later)|danke|tsch\u00fcss)\b",
    re.IGNORECASE,
)


class Reason(StrEnum):
    """Why a line is proposed: an open goal, a decision of late, or what the last session did not finish."""

    GOAL = "goal"
    DECISION = "decision"
    LEFT_OFF = "left_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """Where a session ended: the words of an event, at `[start:end)` of its text."""

    event: Event
    start: int
    end: int

    @property
    def text(self) -> str:
        """The words."""
        return self.event.text[self.start : self.end]


def proposed(
    memories: Iterable[Memory], policy: LayersPolicy, *, project: str | None, now: Millis
) -> list[tuple[Reason, Memory]]:
    """Return the memories that are proposed, and why: open goals first, of these the salient; then late decisions.

    Goals are the person's or the project's, decisions the project's.
    """
    mine = [memory for memory in memories if memory.scope is Scope.USER or memory.resource_id == project]
    open_ = [memory for memory in mine if _may_be_active(memory, now)]
    goals = [one for one in open_ if _is_due(one, Reason.GOAL, policy, now)]
    decisions = [one for one in open_ if one.scope is Scope.PROJECT and _is_due(one, Reason.DECISION, policy, now)]
    goals.sort(key=lambda one: (-one.salience, -one.created_at, one.id))
    decisions.sort(key=lambda one: (-one.created_at, one.id))
    found = [(Reason.GOAL, one) for one in goals[: policy.goals]]
    return found + [(Reason.DECISION, one) for one in decisions[: policy.decisions]]


def holds(memory: Memory, now: Millis) -> bool:
    """Say whether a memory still holds: nothing took its place, it did not end, and it was not put away."""
    return (
        memory.superseded_by is None
        and memory.archived_at is None
        and not over(memory.valid_from, memory.valid_to, said_at(memory), now)
    )


def unfinished(turns: Sequence[Event], policy: LayersPolicy, *, now: Millis) -> Unfinished | None:
    """Return where a session was left, None where it was finished; `turns` are its last, newest first.

    What nobody vouches for, and what is too long ago, was left for good. Who takes leave leaves nothing open with that;
    what one of the last turns names for next time comes before what the last one asks.
    """
    spoken = [turn for turn in turns if turn.text.strip() and (turn.type in _AGENTS or _is_prompt(turn))]
    if not spoken or now - spoken[0].ts > policy.left_off_days * _DAY_MS or not _is_believed(spoken[0].trust):
        return None
    for turn in spoken[: policy.end_turns]:
        found = _line(turn, [one for one in _sentences(turn) if _names_next(one.group())][-policy.sentences :], policy)
        if found is not None and _is_believed(turn.trust):
            return found
        if _is_prompt(turn) and not _takes_leave(turn):  # whoever goes on working may have done it
            break
    last = next((turn for turn in spoken if not _takes_leave(turn)), None)
    if last is None or not _is_believed(last.trust):
        return None
    sentences = _sentences(last)
    if not _is_prompt(last):
        sentences = [match for match in sentences if _LEFT.search(match.group())][-policy.sentences :]
    return _line(last, sentences, policy)


def _sentences(turn: Event) -> list[re.Match[str]]:
    return [match for match in _SENTENCE.finditer(turn.text) if match.group().strip()]


def _names_next(sentence: str) -> bool:
    """Say whether a sentence names what comes next.

    >>> _names_next("next time: ramp/soak editor"), _names_next("See you tomorrow!")
    (True, False)
    """
    return _NEXT.search(sentence) is not None and query_tokens(_LEAVES.sub("", _NEXT.sub("", sentence))) != []


def _takes_leave(turn: Event) -> bool:
    """Say whether a person only thanks, or says goodbye: one clause does, and none says more beside it."""
    clauses = [_LEAVES.subn("", clause) for clause in _CLAUSE.findall(turn.text)]
    return (
        _is_prompt(turn)
        and not asks(turn.text)
        and any(count for _, count in clauses)
        and all(len(query_tokens(rest)) <= _FEW for rest, _ in clauses)
    )


def _line(last: Event, sentences: Sequence[re.Match[str]], policy: LayersPolicy) -> Unfinished | None:
    for count in range(len(sentences), 0, -1):  # whole sentences, from the first: as many as make one line
        found = _trimmed(last, sentences[0].start(), sentences[count - 1].end())
        if found.end - found.start <= policy.line_chars and "\n" not in found.text:
            return found
    return None


def says_more(end: Unfinished, told: Iterable[tuple[int, int]]) -> bool:
    """Say whether the end of a session says anything outside of some passages of its event, as [start, end)."""
    read = {at for start, stop in told for at in range(start, stop)}
    return any(end.event.text[at].isalnum() and at not in read for at in range(end.start, end.end))


def _trimmed(event: Event, start: int, end: int) -> Unfinished:
    text = event.text[start:end]
    return Unfinished(event=event, start=start + len(text) - len(text.lstrip()), end=start + len(text.rstrip()))


def _is_prompt(turn: Event) -> bool:
    """Say whether a person said a turn: one that begins with a tag was written by a program in the person's name."""
    return turn.type is EventType.USER_MESSAGE and _TAGGED.match(turn.text) is None


def _is_due(memory: Memory, reason: Reason, policy: LayersPolicy, now: Millis) -> bool:
    goal = reason is Reason.GOAL
    kind, days = (MemoryType.GOAL, policy.goal_days) if goal else (MemoryType.DECISION, policy.decision_days)
    return (
        memory.type is kind
        and memory.salience >= TYPE_SALIENCE[kind]
        and not asks(memory.content)
        and now - memory.created_at <= days * _DAY_MS
        and len(memory.content) <= policy.line_chars
        and reason.value not in _dismissed(memory)
    )


def _dismissed(memory: Memory) -> Collection[str]:
    """Return the reasons for which a memory was dismissed."""
    found = memory.metadata.get(DISMISSED)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _may_be_active(memory: Memory, now: Millis) -> bool:
    return holds(memory, now) and memory.layer in {Layer.ARCHIVE, Layer.SURFACED} and _is_believed(memory.trust)


def _is_believed(trust: Trust) -> bool:
    """Say whether words may be loaded always: they are trusted at least as an agent's own."""
    return TRUST_ORDER.index(trust) >= TRUST_ORDER.index(Trust.AGENT)
