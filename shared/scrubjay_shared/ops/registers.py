"""One register of a memory: which of its versions shows, and which are open conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrubjay_shared.ops.stamps import Stamp

Version = tuple[Any, tuple[Stamp, ...]]
"""A value of a register, and the stamps of the versions that its writer had seen: first the one it replaced."""


def winner(versions: Mapping[Stamp, Version]) -> Stamp:
    """Return the stamp of the version that a register shows: the greatest."""
    return max(versions)


def _ancestors(versions: Mapping[Stamp, Version], stamp: Stamp) -> set[Stamp]:
    """Return a version and all that its writer knew of, directly or through what that one knew."""
    found: set[Stamp] = set()
    left = [stamp]
    while left:
        at = left.pop()
        if at in versions and at not in found:
            found.add(at)
            left += versions[at][1]
    return found


def open_conflicts(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the stamps that the shown version never saw: no ancestors of it through what each writer had seen."""
    return tuple(sorted(set(versions) - _ancestors(versions, winner(versions))))


def unseen(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts that their own side did not replace knowingly: of ten edits made offline, the last one.

    A write that has seen these has seen all.
    """
    still_open = open_conflicts(versions)
    replaced = {seen for stamp in still_open for seen in versions[stamp][1] if seen < stamp}
    return tuple(stamp for stamp in still_open if stamp not in replaced)


def to_settle(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts that somebody must decide: the `unseen` that say something else than what is shown."""
    shown = versions[winner(versions)][0]
    return tuple(stamp for stamp in unseen(versions) if versions[stamp][0] != shown)
