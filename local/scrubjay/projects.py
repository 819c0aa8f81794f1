"""What to say of a project that nothing here belongs to: most often its name was mistyped. Pure."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import PurePosixPath

SUGGESTED = 3
"""Names that are suggested: more is a list to read, not a hint."""


def unknown(project: str, known: Collection[str]) -> str:
    """Return what to say of a project that is not among the known ones, with those that may have been meant."""
    found = " or ".join(likely(project, known))
    return f"nothing here belongs to project {project}" + (f"; did you mean {found}?" if found else "")


def likely(project: str, known: Collection[str]) -> list[str]:
    """Return the known projects that may have been meant: those of the same last name, then those spelled alike.

    >>> likely("shop", ["/home/ana/shop", "/home/ana/ship", "harbour"])
    ['/home/ana/shop', '/home/ana/ship']
    """
    last = _last(project)
    same = sorted(name for name in known if _last(name) == last)
    by_last = {_last(name): name for name in sorted(known, reverse=True)}
    folded = {name.casefold(): name for name in sorted(known, reverse=True)}
    alike = [folded[name] for name in get_close_matches(project.casefold(), folded, n=SUGGESTED)]
    alike += [by_last[name] for name in get_close_matches(last, by_last, n=SUGGESTED)]
    return list(dict.fromkeys((*same, *alike)))[:SUGGESTED]


def _last(project: str) -> str:
    return PurePosixPath(project.replace("\\", "/")).name.casefold() or project.casefold()
