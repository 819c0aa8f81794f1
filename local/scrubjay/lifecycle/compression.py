"""Archives of old detail: which memories become one, and in what words, so that no specific is lost. Pure.

An archive quotes its members whole, those that stand for most first, until it has its share of their tokens. Of the
others it holds the places: what was read from events still says there what it said. A memory whose specifics no place
of its own says is quoted in any case, or stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scrubjay.lifecycle.specifics import lost, specifics
from scrubjay.policy.consolidating import ConsolidationPolicy
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.records import Memory
from scrubjay_shared.text import estimate_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A memory that may be compressed: what its sources say (`excerpts`), and how much it stands for."""

    memory: Memory
    excerpts: tuple[str, ...] = ()
    standing: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What some memories become: an archive of so many words, under an id that every device gives it."""

    id: str
    content: str
    members: tuple[str, ...]
    created_at: Millis

    @property
    def words(self) -> str:
        """What it says of its members: all but the line that says how many these are, and of when."""
        return self.content.partition("\n")[2]


def is_kept(memory: Memory, excerpts: Sequence[str], words: str) -> bool:
    """Say whether every specific of a memory is in an archive's words or in what its own sources say."""
    return not lost(specifics(memory.content), [words, *excerpts])


def adds_nothing(content: str, sources: Iterable[str]) -> bool:
    """Say whether a text names nothing that none of its sources says: no number, no name, no place of its own."""
    return not lost(specifics(content), sources)


def compressed(details: Sequence[Detail], policy: ConsolidationPolicy) -> Archive | None:
    """Return the archive of some memories of one place and time; None where there is none that is shorter by enough.

    Members that cannot be kept in the room are left out, those that stand for least first.
    """
    left = sorted(details, key=_order)
    while len(left) >= policy.min_members:
        total = sum(estimate_tokens(one.memory.content) for one in left)
        quoted = [one for one in left if lost(specifics(one.memory.content), one.excerpts)]
        if _tokens(left, quoted) <= policy.quoted_share * total:
            return _archive(left, _filled(left, quoted, policy.archive_share * total))
        if not quoted:
            return None
        longest = min(quoted, key=lambda one: (-estimate_tokens(one.memory.content), one.standing, one.memory.id))
        left = [one for one in left if one is not longest]
    return None


def worded(details: Sequence[Detail], words: str, policy: ConsolidationPolicy) -> Archive | None:
    """Return the archive of some memories in a writer's words; None where these lose or add something."""
    members = sorted(details, key=_order)
    content = _rendered(members, [words.strip()])
    said = [text for one in members for text in (one.memory.content, *one.excerpts)]
    room = policy.writer_share * sum(estimate_tokens(one.memory.content) for one in members)
    if not words.strip() or estimate_tokens(content) > room or not adds_nothing(words, said):
        return None
    if not all(is_kept(one.memory, (), words) for one in members):  # the sources do not excuse a writer
        return None
    return _archive(members, [words.strip()])


def _filled(left: Sequence[Detail], quoted: Sequence[Detail], room: float) -> list[str]:
    """Return the lines of an archive, in the order of time: the quoted, and of the others what there is room for."""
    shown = list(quoted)
    for one in sorted(left, key=lambda one: (-one.standing, *_order(one))):
        if one not in shown and _tokens(left, [*shown, one]) <= room:
            shown.append(one)
    return _lines(sorted(shown, key=_order))


def _lines(shown: Iterable[Detail]) -> list[str]:
    return [f"- {' '.join(one.memory.content.split())}" for one in shown]


def _tokens(members: Sequence[Detail], shown: Sequence[Detail]) -> int:
    return estimate_tokens(_rendered(members, _lines(shown)))


def _rendered(members: Sequence[Detail], lines: Sequence[str]) -> str:
    first, last = (_day(at) for at in (members[0].memory.created_at, members[-1].memory.created_at))
    days = first if first == last else f"{first} to {last}"
    return "\n".join([f"{len(members)} memories, {days}:", *lines])


def _archive(members: Sequence[Detail], lines: Sequence[str]) -> Archive:
    ids = tuple(one.memory.id for one in members)
    created_at = max(one.memory.created_at for one in members)
    entropy = hashlib.sha256("\n".join(["consolidation", *sorted(ids)]).encode()).digest()[:10]
    return Archive(id=ulid(created_at, entropy), content=_rendered(members, lines), members=ids, created_at=created_at)


def _order(one: Detail) -> tuple[int, str]:
    return one.memory.created_at, one.memory.id


def _day(at: Millis) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"
