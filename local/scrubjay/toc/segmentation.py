"""Sessions cut into segments: stretches of one project and one day that are about one thing. Pure.

A cut is made where the project, the local day or the time zone's date changes, after a gap, and where a segment has
grown too large; these look at nothing that comes later. A cut at a shift of topic looks at `TocPolicy.reach` turns from
there on, no further. So a session that grows is cut again from one of its last cuts on, with the result that cutting
all of it would have (`settled`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.policy import TocPolicy
from scrubjay.toc.periods import local_day
from scrubjay_shared.clock import Millis

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An event as the table of contents sees it. `said` is its text, "" for what is not quoted: tool output.

    `seq` is the place of its op in its device's log, which orders events of the same millisecond. `speaker` is the name
    of who speaks, where that is known. `vector` has unit length.
    """

    id: str
    ts: Millis
    seq: int
    utc_offset: int
    project: str
    agent: str
    said: str = ""
    by_person: bool = False
    speaker: str = ""
    vector: Any = None

    @property
    def place(self) -> tuple[int, int, str]:
        """Where it stands in its session."""
        return self.ts, self.seq, self.id

    @property
    def day(self) -> str:
        """Its day, where the person was."""
        return local_day(self.ts, self.utc_offset)


def cut(turns: Sequence[Turn], policy: TocPolicy) -> list[Sequence[Turn]]:
    """Return turns of one session, in order, cut into segments; the first turn begins one."""
    days = [turn.day for turn in turns]
    starts: list[int] = []
    chars = 0
    shifts = _Shifts(turns, policy)
    for n, turn in enumerate(turns):
        begins = not starts or _must_cut(turns, days, n, policy)
        if not begins:
            held = n - starts[-1]
            begins = (
                held >= policy.max_events
                or chars + len(turn.said) > policy.max_chars
                or (turn.by_person and held >= policy.min_events and shifts.at(starts[-1], n))
            )
        if begins:
            starts.append(n)
            chars = 0
        chars += len(turn.said)
    return [turns[start:end] for start, end in pairwise([*starts, len(turns)])]


def _must_cut(turns: Sequence[Turn], days: Sequence[str], n: int, policy: TocPolicy) -> bool:
    turn, before = turns[n], turns[n - 1]
    return turn.project != before.project or days[n] != days[n - 1] or turn.ts - before.ts > policy.gap_ms


class _Shifts:
    """Where the topic shifts: what comes next is less like what was said last than turns of the segment are."""

    def __init__(self, turns: Sequence[Turn], policy: TocPolicy) -> None:
        self._policy = policy
        self._turns = turns
        self._places = [n for n, turn in enumerate(turns) if turn.vector is not None]
        self._rank = {n: at for at, n in enumerate(self._places)}
        self._likenesses: dict[tuple[int, int], float] = {}

    def at(self, start: int, n: int) -> bool:
        """Say whether another topic begins at turn n of a segment that begins at `start`. One without a vector: no."""
        at = self._rank.get(n)
        first = bisect_left(self._places, start)
        if at is None or at - first < self._policy.window:
            return False
        # Compared with what is usual in the segment, which differs from one embedding model to the next.
        before = [self._likeness(m, first) for m in range(first + self._policy.window, at)]
        return bool(before) and self._likeness(at, first) < sum(before) / len(before) - self._policy.topic_drop

    def _likeness(self, at: int, first: int) -> float:
        """Return the cosine of the turns before a place (of the segment from `first` on) and those from it on."""
        if (at, first) in self._likenesses:
            return self._likenesses[at, first]
        window = self._policy.window
        seen = bisect_left(self._places, self._places[at] + self._policy.reach)
        before = self._sum(range(max(first, at - window), at))
        after = self._sum(range(at, min(seen, at + window)))
        found = float(before @ after / max(float(np.linalg.norm(before) * np.linalg.norm(after)), 1e-9))
        self._likenesses[at, first] = found
        return found

    def _sum(self, places: range) -> Vector:
        found: Vector = np.sum([self._turns[self._places[at]].vector for at in places], axis=0, dtype=np.float32)
        return found


def settled(count: int, start: int, policy: TocPolicy) -> bool:
    """Say whether a cut at `start` of `count` turns stands, and all before it, whatever follows these turns."""
    return count - start >= policy.reach
