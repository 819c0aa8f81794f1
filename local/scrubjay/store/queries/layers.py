"""What is proposed for the active layer: which project one is at, and which ends of sessions were decided on."""

from __future__ import annotations

from scrubjay.store.sqlite import Fetch


class LayerQueries:
    """Reads for the layers that are always loaded."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def last_project(self) -> str | None:
        """Return the project in which something was said last, None where nothing was said in any."""
        found = self._fetch("select project from session where project is not null order by last desc, id limit 1")
        return str(found[0][0]) if found else None

    def decided(self, event_id: str, key: str) -> bool:
        """Say whether a memory that was not put away stands for an event under a key of its metadata."""
        found = self._fetch(
            "select 1 from grip g join memory m on m.id = g.memory_id where g.event_id_start = ?1"
            " and m.archived_at is null and json_extract(m.metadata, '$.' || ?2) = ?1 limit 1",
            (event_id, key),
        )
        return bool(found)
