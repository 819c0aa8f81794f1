"""Which plain files of agents' memories there are, and which memories stand in them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Memory

_OF_VAULTS = "m.resource_id >= 'vault:' and m.resource_id < 'vault;'"
"""As the index says it, so that it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRow:
    """An agent's vault: the folder that its files are in."""

    agent: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultFileRow:
    """One file of a vault as it was merged last. `known` is JSON and the reader's own."""

    file: str
    known: str
    problem: str = ""
    gone: int = 0
    conflicts: int = 0


class VaultQueries:
    """The vaults of this device, and their memories."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def all(self) -> list[VaultRow]:
        """Return the vaults by agent."""
        return [
            VaultRow(agent=agent, folder=folder)
            for agent, folder in self._fetch("select agent, folder from vault order by agent", ())
        ]

    def files(self, agent: str) -> dict[str, VaultFileRow]:
        """Return how each file of a vault was merged last."""
        found = self._fetch(
            "select file, known, problem, gone, conflicts from vault_file where agent = ? order by file", (agent,)
        )
        return {
            row[0]: VaultFileRow(file=row[0], known=row[1], problem=row[2], gone=row[3], conflicts=row[4])
            for row in found
        }

    def memories(self, resource_id: str) -> list[Memory]:
        """Return the memories of a vault in the order they were made, those that were archived too."""
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
            f" where {_OF_VAULTS} and m.resource_id = ? order by m.created_at, m.id",
            (resource_id,),
        )
        return [rows.memory_of(row) for row in found]

    def signature(self) -> str:
        """Return what is different once a memory of any vault was changed."""
        found = self._fetch(
            "select m.id, m.content_hash, m.topic, m.type, m.scope, m.archived_at, m.superseded_by, m.resource_id"
            f" from memory m where {_OF_VAULTS} order by m.id",
            (),
        )
        return hashlib.sha256(repr([tuple(row) for row in found]).encode("utf-8", "surrogatepass")).hexdigest()
