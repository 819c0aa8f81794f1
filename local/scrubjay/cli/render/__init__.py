"""Results as people read them: short ids, local days, no banner. Decides nothing, and fetches nothing.

An area is imported when something of it is shown: what draws on terminals must not delay programs, which read JSON.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrubjay.cli.render import (
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
    )
else:
    from scrubjay.cli.lazy import LazyModule

    (
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
    ) = (
        LazyModule(f"{__name__}.{area}")
        for area in (
            "agents",
            "audit",
            "compaction",
            "conflicts",
            "consolidation",
            "costs",
            "events",
            "forgets",
            "history",
            "hits",
            "layers",
            "layout",
            "learning",
            "memories",
            "review",
            "route",
            "setup",
            "state",
            "toc",
            "transfer",
            "vaults",
            "verification",
        )
    )

from scrubjay.cli.render import words

__all__ = [
    "agents",
    "audit",
    "compaction",
    "conflicts",
    "consolidation",
    "events",
    "forgets",
    "history",
    "hits",
    "layers",
    "layout",
    "learning",
    "memories",
    "review",
    "route",
    "setup",
    "state",
    "toc",
    "transfer",
    "vaults",
    "verification",
    "words",
]
