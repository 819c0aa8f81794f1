"""Results as people read them: short ids, local days, no banner. Decides nothing, and fetches nothing.

An area is imported when something of it is shown: what draws on terminals must not delay programs, which read JSON.
"""

from typing import TYPE_CHECKING

from scrubjay.cli.lazy import LazyModule
from scrubjay.cli.render import words as words

if TYPE_CHECKING:
    from scrubjay.cli.render import (  # noqa: F401  # each area by its name, for type checkers
        agents,
        audit,
        compaction,
        conflicts,
        consolidation,
        costs,
        events,
        forgets,
        history,
        hits,
        layers,
        layout,
        learning,
        memories,
        review,
        route,
        setup,
        state,
        toc,
        transfer,
        vaults,
        verification,
        writers,
    )


def __getattr__(area: str) -> LazyModule:
    """Return an area, which is imported when something of it is shown."""
    return LazyModule(f"{__name__}.{area}")
