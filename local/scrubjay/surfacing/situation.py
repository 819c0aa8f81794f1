"""What a person and an agent are at: the words, paths and names of it, and how alike two such situations are. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType
from scrubjay_shared.text import query_tokens

# Each begins where a word does: else a long run without a slash is read again from each of its letters.
_PATH = re.compile(r"(?<![\w.@~-])[\w.@~-]*(?:[/\\][\w.@~-]+)+|(?<![\w-])[\w-]+\.[a-z]{1,5}\b")
_NAME = re.compile(r"\b(?:[a-z0-9]+_[a-z0-9_]+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b")
_AGENTS = frozenset({EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP})
_DAY_SHARE, _HOUR_SHARE, _BRANCH_SHARE, _PATH_SHARE = 0.05, 0.05, 0.2, 0.2
"""What of two situations' likeness is the weekday, the time of day, the branch and the paths; the rest is the words."""
_NEAR_HOURS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What somebody is at. `questions` are what recall is asked of it; `hour` and `weekday` are local."""

    questions: tuple[str, ...] = ()
    words: frozenset[str] = field(default_factory=frozenset)
    paths: frozenset[str] = field(default_factory=frozenset)
    branch: str | None = None
    hour: int | None = None
    weekday: int | None = None


def paths_of(text: str) -> frozenset[str]:
    """Return the files and the identifiers that a text names, lower case; of a path, its last part too.

    >>> sorted(paths_of("see src/cart/store.py and parse_line"))
    ['parse_line', 'src/cart/store.py', 'store.py']
    """
    found: set[str] = set()
    for match in _PATH.finditer(text):
        path = match.group().strip(".").replace("\\", "/").lower()
        found |= {path, path.rpartition("/")[2]}
    found |= {match.group().lower() for match in _NAME.finditer(text)}
    return frozenset(found - {""})


def situation(turns: Sequence[Event], *, now: Millis, utc_offset: int, chars: int) -> Situation:
    """Return what a session is at, from its last turns, newest first.

    The question is its last prompts together; what the agent said last where nobody asked anything.
    """
    prompts = [turn.text for turn in turns if turn.type is EventType.USER_MESSAGE and turn.text.strip()]
    answers = [turn.text for turn in turns if turn.type in _AGENTS and turn.text.strip()]
    question = _joined(prompts or answers[:1], chars)
    said = "\n".join([*prompts, *answers[:1]])
    local = datetime.fromtimestamp(now / 1000, tz=UTC).astimezone(timezone(timedelta(minutes=utc_offset)))
    return Situation(
        questions=(question,) if question else (),
        words=frozenset(query_tokens(said)),
        paths=paths_of(said),
        branch=next((branch for turn in turns if (branch := branch_of(turn)) is not None), None),
        hour=local.hour,
        weekday=local.weekday(),
    )


def branch_of(event: Event) -> str | None:
    """Return the branch that was checked out where an event comes from, None where that is not known."""
    branch = event.metadata.get("git_branch")
    return branch if isinstance(branch, str) and branch else None


def likeness(one: Situation, other: Situation) -> float:
    """Return how alike two situations are, in [0, 1]: most by their words, a little by paths, branch and time."""
    found = (1 - _DAY_SHARE - _HOUR_SHARE - _BRANCH_SHARE - _PATH_SHARE) * _shared(one.words, other.words)
    found += _PATH_SHARE * _shared(one.paths, other.paths)
    if one.branch is not None and one.branch == other.branch:
        found += _BRANCH_SHARE
    if one.weekday is not None and one.weekday == other.weekday:
        found += _DAY_SHARE
    if one.hour is not None and other.hour is not None:
        apart = abs(one.hour - other.hour)
        found += _HOUR_SHARE * (min(apart, 24 - apart) <= _NEAR_HOURS)
    return found


def _shared(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of the smaller set's words that the other has too."""
    smaller = min(len(one), len(other))
    return len(set(one) & set(other)) / smaller if smaller else 0.0


def _joined(texts: Sequence[str], chars: int) -> str:
    """Return as much of some texts, the first first, as fits, in their order of time: they come newest first."""
    kept: list[str] = []
    for text in texts:
        plain = " ".join(text.split())
        room = chars - sum(len(one) + 1 for one in kept)
        if room <= 0:
            break
        kept.append(plain[:room])
    return "\n".join(reversed(kept))
