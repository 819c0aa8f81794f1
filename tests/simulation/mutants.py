"""How a bug is planted: a real function is replaced for a while. A bug that no law catches is a hole in the laws."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A planted bug: `sites` are (owner, attribute, replacement made from the original).

    What a package offers is replaced wherever a module of that package has it by its name.

    `faults` are those of the histories in which it is looked for; none means that each history has its own. `first` is
    the seed to begin with: one that has shown it before, so that every run does not search for it anew.
    """

    name: str
    faults: frozenset[str] = frozenset()
    first: int = 0
    sites: tuple[tuple[Any, str, Callable[[Any], Any]], ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the bug in the code until the block ends."""
        with ExitStack() as undo:
            for place, attribute, replacement in self.sites:
                owner = next((one for one in getattr(place, "__mro__", ()) if attribute in one.__dict__), place)
                original = owner.__dict__[attribute]
                inner = original.__func__ if isinstance(original, staticmethod | classmethod) else original
                made = replacement(inner)
                for one in looked_up_in(owner, original):
                    setattr(one, attribute, type(original)(made) if inner is not original else made)
                    undo.callback(setattr, one, attribute, original)
            yield


def looked_up_in(owner: Any, original: Any) -> list[Any]:
    """Return the owner of a function, and the modules of a package that have it by the same name."""
    if not hasattr(owner, "__path__"):
        return [owner]
    name = original.__name__
    inside = f"{owner.__name__}."
    found = [one for key, one in sys.modules.items() if key.startswith(inside) and one.__dict__.get(name) is original]
    return [owner, *found]


def mutant(
    name: str,
    *sites: tuple[Any, str, Callable[[Any], Any]],
    faults: frozenset[str] = frozenset(),
    first: int = 0,
) -> Mutant:
    """Return a planted bug of one or more places."""
    return Mutant(name=name, sites=sites, faults=faults, first=first)
