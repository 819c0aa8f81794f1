"""Which files of instructions for agents were imported."""

from __future__ import annotations

import json

from scrubjay.store.sqlite import Fetch

Sections = dict[str, str]
"""The key of each place in a file, and the hash of what stands there."""


class InstructionQueries:
    """Files of instructions that were imported on this device."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def files(self) -> list[tuple[str, str]]:
        """Return the path of each file, and the project it was imported for: "" where it is for all."""
        rows = self._fetch("select path, project from instruction_file order by path, project")
        return [(str(path), str(project)) for path, project in rows]

    def sections(self, path: str, project: str) -> Sections | None:
        """Return what stood in a file when it was read last; None for one that was never imported."""
        found = self._fetch("select sections from instruction_file where path = ?1 and project = ?2", (path, project))
        return {str(key): str(value) for key, value in json.loads(found[0][0]).items()} if found else None
