"""Reading names: canonical ones, aliases, and who shows under another name than they claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Alias


class NameQueries:
    """Which memory a name resolves to, and which names a memory has."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def holders(self, names: Iterable[str]) -> dict[str, str]:
        """Return which memory each of some names resolves to."""
        return {
            row[0]: row[1]
            for row in self._fetch(
                "select name, memory_id from name where name in (select value from json_each(?))", (rows.array(names),)
            )
        }

    def aliases(self, ids: Sequence[str]) -> dict[str, tuple[Alias, ...]]:
        """Return the names, other than the canonical one, that resolve to each of some memories."""
        found: dict[str, list[Alias]] = {}
        for name, memory_id, created_at in self._fetch(
            "select name, memory_id, created_at from name"
            " where not canonical and memory_id in (select value from json_each(?)) order by created_at, name",
            (rows.array(ids),),
        ):
            found.setdefault(memory_id, []).append(Alias(name=name, memory_id=memory_id, created_at=Millis(created_at)))
        return {memory_id: tuple(names) for memory_id, names in found.items()}

    def clashes(self) -> list[tuple[str, str, str]]:
        """Return the memories that are shown under another name, because a memory of another device had theirs first.

        Each as the name that it shows, the name that it was given, and its id. One that was renamed since is left out.
        """
        return [
            (row[0], row[1], row[2])
            for row in self._fetch(
                "select name, claimed, memory_id from name where canonical and name <> claimed order by name"
            )
        ]
