"""One register of a memory: which of its versions shows, which are open conflicts, and which say nothing any more.

A version is superseded once another one names it as seen and comes after it. That never ends: an op is never unsaid. So
the value of a superseded version can be emptied at any time, on any device, as long as the op keeps its stamp and what
it has seen. What shows, and what is in conflict, is the same with it and without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrubjay_shared.clock import REACH
from scrubjay_shared.ops.stamps import Stamp

Version = tuple[Any, tuple[Stamp, ...]]
"""A value of a register, and the stamps of the versions that its writer had seen: first the one it replaced."""


def supersedes(stamp: Stamp, seen: Stamp) -> bool:
    """Say whether a write comes after a version that it names as seen.

    As on a clock face: it does by the greater stamp, and by the lesser where the other is at least `REACH` ahead. So no
    stamp is so great that an edit could not come after it; and never does each of two writes come after the other.
    """
    ahead = stamp[0] - seen[0]
    return 0 < ahead < REACH or ahead <= -REACH or (ahead == 0 and stamp[1] > seen[1])


def heads(versions: Mapping[Stamp, Version]) -> set[Stamp]:
    """Return the versions that no other supersedes; all of them where each supersedes another, in a circle."""
    named = {seen for stamp, (_, given) in versions.items() for seen in given if supersedes(stamp, seen)}
    return set(versions) - named or set(versions)


def winner(versions: Mapping[Stamp, Version]) -> Stamp:
    """Return the stamp of the version that a register shows: the greatest that no other supersedes."""
    return max(heads(versions))


def unseen(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts: what is not superseded and does not show. Of ten edits made offline, the last one.

    A write that has seen these has seen all.
    """
    found = heads(versions)
    return tuple(sorted(found - {max(found)}))


def out_of_reach(versions: Mapping[Stamp, Version], clock: int) -> tuple[Stamp, ...]:
    """Return the open conflicts that a write by a clock cannot stand above: it must name them, or they would show."""
    return tuple(stamp for stamp in unseen(versions) if stamp[0] - clock >= REACH)


def to_settle(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts that somebody must decide: the `unseen` that say something else than what is shown."""
    shown = versions[winner(versions)][0]
    return tuple(stamp for stamp in unseen(versions) if versions[stamp][0] != shown)
