"""Noting which plain files of agents' memories are kept, and what they last agreed on with the store."""

from __future__ import annotations

from scrubjay.store.queries.vaults import VaultFileRow, VaultRow
from scrubjay.store.write_context import WriteContext


class VaultWrites:
    """The vaults of this device. They are its own: another has other folders."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def add(self, vault: VaultRow) -> None:
        """Keep the files of an agent in a folder from now on."""
        self._context.run("insert into vault (agent, folder) values (?, ?)", (vault.agent, vault.folder))

    def drop(self, agent: str) -> None:
        """Keep an agent's files no longer. The files and the memories stay."""
        self._context.run("delete from vault where agent = ?", (agent,))
        self._context.run("delete from vault_file where agent = ?", (agent,))

    def note(self, agent: str, file: VaultFileRow) -> None:
        """Note how a file was merged."""
        self._context.run(
            "insert into vault_file (agent, file, known, problem, gone, conflicts) values (?, ?, ?, ?, ?, ?)"
            " on conflict do update set known = excluded.known, problem = excluded.problem, gone = excluded.gone,"
            " conflicts = excluded.conflicts",
            (agent, file.file, file.known, file.problem, file.gone, file.conflicts),
        )
