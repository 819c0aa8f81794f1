"""Everything of plain files, composed: the operations by name, and the job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from scrubjay.api.caller import Caller
from scrubjay.jobs.consolidation_run import Wording
from scrubjay.jobs.registry import Job
from scrubjay.jobs.vault import Vault
from scrubjay.policy import MemoryPolicy
from scrubjay.service.vaults.entries import Entries
from scrubjay.service.vaults.vaults import Vaults
from scrubjay.store import Store
from scrubjay_shared.clock import Millis


class PlainFiles:
    """The vaults of one store. `add_job` takes the job that looks at the files, once there are any.

    `wording` gives what asks the Writer, where the person has set one.
    """

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        wake: Callable[[str], None],
        add_job: Callable[[Job], None],
        now: Callable[[], Millis],
        wording: Callable[[], Wording | None] = lambda: None,
    ) -> None:
        self._add_job = add_job
        self._watched = False
        self.vaults = Vaults(store, policy, wake=wake, watch=self._watch)
        self.entries = Entries(store, policy, vaults=self.vaults, wake=wake, now=now, wording=wording)
        self.job = Vault(policy.vault, self.vaults.changed, self.vaults.follow)

    def _watch(self) -> None:
        if not self._watched:
            self._watched = True
            self._add_job(self.job)

    @property
    def handlers(self) -> Mapping[str, Callable[[Caller, Any], Awaitable[Any]]]:
        """The handlers of its operations, by name."""
        return {
            "vaults": self.vaults.vaults,
            "vault_init": self.vaults.init,
            "vault_sync": self.vaults.sync,
            "vault_stop": self.vaults.stop,
            "vault_remember": self.entries.remember,
            "vault_recall": self.entries.recall,
            "vault_compact": self.entries.compact,
            "vault_reflect": self.entries.reflect,
        }
