"""What the Python interface has to look after a memory: `Memory.review` and `Memory.vault`. They hold no logic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from scrubjay import api
from scrubjay.api.vault import VaultFileName
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import ReviewState

Call = Callable[[str, Any], Any]
"""Runs an operation of `scrubjay.api.operations` by its name."""


class Review:
    """What waits for the person, and what the person says of it. An agent's `Memory` may not: DeniedError."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def list(
        self, state: ReviewState | str | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> api.ReviewResponse:
        """Return a page of memories in a state, newest first; without one, what waits and what is disputed."""
        request = api.ReviewRequest(state=None if state is None else _state(state), limit=limit, cursor=cursor)
        answer: api.ReviewResponse = self._call("review", request)
        return answer

    def accept(self, *refs: str, every: bool = False) -> api.DecideResponse:
        """Say that memories hold, by their ids or all that wait; `undo` takes it back. Raises NotFoundError."""
        return self._decided(refs, accept=True, every=every)

    def reject(self, *refs: str, every: bool = False) -> api.DecideResponse:
        """Say that memories do not hold: they are put away, and not learned again from the same words."""
        return self._decided(refs, accept=False, every=every)

    def _decided(self, refs: tuple[str, ...], *, accept: bool, every: bool) -> api.DecideResponse:
        answer: api.DecideResponse = self._call("decide", api.DecideRequest(accept=accept, refs=refs, every=every))
        return answer


class Vault:
    """Agents' memories as plain files. A `Memory` of an agent is that agent and names none; the person names one."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def list(self, agent: str | None = None) -> tuple[api.Vault, ...]:
        """Return the vaults of this device, or an agent's: where its files are, and how each is."""
        return self._vaults("vaults", api.VaultsRequest(agent=agent))

    def init(self, agent: str, folder: str | Path) -> tuple[api.Vault, ...]:
        """Keep an agent's memory as files in a folder, and take in what stands there."""
        return self._vaults("vault_init", api.VaultInitRequest(agent=agent, folder=str(Path(folder).absolute())))

    def sync(
        self,
        agent: str | None = None,
        file: VaultFileName | None = None,
        *,
        confirm: bool = False,
        put_back: bool = False,
    ) -> tuple[api.Vault, ...]:
        """Merge files and store now; `confirm` archives what is gone from the files, `put_back` writes it again."""
        request = api.VaultSyncRequest(agent=agent, file=file, confirm=confirm, put_back=put_back)
        return self._vaults("vault_sync", request)

    def stop(self, agent: str) -> tuple[api.Vault, ...]:
        """Keep an agent's files no longer. The files and the memories stay."""
        return self._vaults("vault_stop", api.VaultStopRequest(agent=agent))

    def remember(
        self,
        text: str,
        *,
        agent: str | None = None,
        section: str | None = None,
        working: bool = False,
        source: str | None = None,
        claim: Literal["confirmed", "contradicted"] | None = None,
    ) -> api.VaultRememberResponse:
        """Append to episodic.md, to a `source` in social.md, or write working.md anew: see `VaultRememberRequest`."""
        request = api.VaultRememberRequest(
            text=text, agent=agent, section=section, working=working, source=source, claim=claim
        )
        answer: api.VaultRememberResponse = self._call("vault_remember", request)
        return answer

    def recall(
        self, query: str, *, agent: str | None = None, limit: int = 5, by_source: bool = False
    ) -> api.VaultRecallResponse:
        """Return the sections of an agent's files that share words with a question, best first."""
        request = api.VaultRecallRequest(query=query, agent=agent, limit=limit, by_source=by_source)
        answer: api.VaultRecallResponse = self._call("vault_recall", request)
        return answer

    def compact(self, agent: str | None = None, *, dry_run: bool = False) -> api.VaultCondenseResponse:
        """Carry what episodic.md says again and again over to semantic.md. `undo` of its cause takes it back."""
        return self._condensed("vault_compact", agent, dry_run=dry_run)

    def reflect(self, agent: str | None = None, *, dry_run: bool = False) -> api.VaultCondenseResponse:
        """Carry what an agent says of its own ways over to self.md."""
        return self._condensed("vault_reflect", agent, dry_run=dry_run)

    def _condensed(self, name: str, agent: str | None, *, dry_run: bool) -> api.VaultCondenseResponse:
        answer: api.VaultCondenseResponse = self._call(name, api.VaultCondenseRequest(agent=agent, dry_run=dry_run))
        return answer

    def _vaults(self, name: str, request: Any) -> tuple[api.Vault, ...]:
        answer: api.VaultsResponse = self._call(name, request)
        return answer.vaults


def _state(state: str) -> ReviewState:
    try:
        return ReviewState(state)
    except ValueError:
        allowed = ", ".join(member.value for member in ReviewState)
        raise InvalidError(f"{state!r} is not a state of review", hint=f"allowed: {allowed}") from None
