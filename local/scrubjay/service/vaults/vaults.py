"""Vaults: made, merged, and let go; looked at by a job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from scrubjay import api
from scrubjay.api.caller import Caller, Principal
from scrubjay.policy import MemoryPolicy
from scrubjay.service.vaults.merging import Merging, Outcome
from scrubjay.service.vaults.state import state_of
from scrubjay.store import Queries, Store, Transaction, VaultRow
from scrubjay.vault import files
from scrubjay.vault.files import Stamp
from scrubjay.vault.layout import VaultFile, resource_of
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError, UnavailableError

T = TypeVar("T")


class Vaults:
    """The vaults of one store. `watch` is called once there is one: the job that looks at files is needed from then."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, *, wake: Callable[[str], None], watch: Callable[[], None]
    ) -> None:
        self._store = store
        self._policy = policy
        self._watch = watch
        self._merging = Merging(store, policy, wake=wake)
        self._locks: dict[str, asyncio.Lock] = {}
        self._stamps: dict[tuple[str, str], Stamp] = {}
        self._glimpsed: dict[tuple[str, str], Stamp] = {}
        self._signature = ""
        self._commits = -1

    async def start(self) -> None:
        """Have the files looked at where there are any."""
        if await self._store.read(lambda q: q.vaults.all()):
            self._watch()

    async def vaults(self, _: Caller, request: api.VaultsRequest) -> api.VaultsResponse:
        """Return the vaults and how their files are, as they were merged last."""

        def read(queries: Queries) -> tuple[api.Vault, ...]:
            chosen = [row for row in queries.vaults.all() if request.agent in {None, row.agent}]
            return tuple(_shown(row, queries) for row in chosen)

        found = await self._store.read(read)
        if request.agent is not None and not found:
            raise no_vault(request.agent)
        return api.VaultsResponse(vaults=found)

    async def init(self, caller: Caller, request: api.VaultInitRequest) -> api.VaultsResponse:
        """Keep an agent's memory in a folder from now on. What stands in its files is taken in.

        Raises InvalidError for a folder that cannot be one, ConflictError where the agent or the folder has a vault.
        """
        resource_of(request.agent)
        folder = Path(request.folder)
        if not folder.is_absolute():
            raise InvalidError(
                f"{request.folder!r} is not an absolute path",
                hint="give the path from the root of the disk, as /home/…",
            )
        folder = await asyncio.to_thread(_made, folder)
        if folder.is_relative_to(self._store.path.parent.resolve()):  # of no length
            raise InvalidError(
                f"{folder} is inside scrubjay's own folder", hint="choose a folder of your own, as ~/vaults/zara"
            )

        def write(tx: Transaction) -> None:
            for row in tx.queries.vaults.all():
                if row.agent == request.agent:
                    raise ConflictError(
                        f"{row.agent} has a vault in {row.folder}", hint=f"scrubjay vault stop {row.agent} lets it go"
                    )
                if row.folder == str(folder):
                    raise ConflictError(
                        f"{folder} is the vault of {row.agent}", hint="choose another folder: each agent has its own"
                    )
            tx.vaults.add(VaultRow(agent=request.agent, folder=str(folder)))

        await self._store.write(write)
        self._watch()
        return await self.sync(caller, api.VaultSyncRequest(agent=request.agent))

    async def stop(self, _: Caller, request: api.VaultStopRequest) -> api.VaultsResponse:
        """Keep an agent's files no longer. The files and the memories stay. Raises NotFoundError."""
        row = await self.row(request.agent)
        async with self._lock(row.agent):
            await self._store.write(lambda tx: tx.vaults.drop(row.agent))
        return await self.vaults(_, api.VaultsRequest())

    async def sync(self, caller: Caller, request: api.VaultSyncRequest) -> api.VaultsResponse:
        """Merge files and store now. Raises NotFoundError for an agent without a vault."""
        if request.confirm and request.put_back:
            raise InvalidError(
                "confirm and put_back exclude each other", hint="archive what is gone, or write it there again"
            )
        rows = await self._store.read(lambda q: q.vaults.all())
        chosen = [row for row in rows if request.agent in {None, row.agent}]
        if request.agent is not None and not chosen:
            raise no_vault(request.agent)
        for row in chosen:
            for file in VaultFile:
                picked = request.file in {None, file.value}
                await self.merge(row, file, confirmed=request.confirm and picked, put_back=request.put_back and picked)
        return await self.vaults(caller, api.VaultsRequest(agent=request.agent))

    async def merge(
        self, row: VaultRow, file: VaultFile, *, confirmed: bool = False, put_back: bool = False
    ) -> Outcome:
        """Bring a file and the store together, after whatever is doing so already."""
        async with self._lock(row.agent):
            return await self._merge(row, file, confirmed=confirmed, put_back=put_back)

    async def written(self, row: VaultRow, changed: Sequence[VaultFile], write: Callable[[], Awaitable[T]]) -> T:
        """Write to the store and bring files after it, before anybody else merges them. Returns what `write` does.

        A heading goes with the last entry below it that goes.
        """
        async with self._lock(row.agent):
            done = await write()
            for file in changed:
                await self._merge(row, file, drops_headings=True)
        return done

    async def _merge(
        self,
        row: VaultRow,
        file: VaultFile,
        *,
        confirmed: bool = False,
        put_back: bool = False,
        drops_headings: bool = False,
    ) -> Outcome:
        merge = partial(
            self._merging.merge,
            row,
            file,
            confirmed=confirmed,
            put_back=put_back,
            drops_headings=drops_headings,
        )
        outcome = await merge()
        if outcome.again:  # somebody wrote the file in that moment
            outcome = await merge()
        if outcome.again:
            self._stamps.pop((row.agent, file.value), None)
        else:
            self._stamps[row.agent, file.value] = outcome.stamp
        return outcome

    async def row(self, agent: str) -> VaultRow:
        """Return an agent's vault. Raises NotFoundError."""
        rows = await self._store.read(lambda q: q.vaults.all())
        found = next((row for row in rows if row.agent == agent), None)
        if found is None:
            raise no_vault(agent)
        return found

    async def changed(self) -> list[tuple[VaultRow, VaultFile]]:
        """Return the files that differ from what was merged, or may because a memory of theirs was changed.

        Costs a call of `stat` for each file, and a look at the vaults' memories where something was committed.
        """
        rows = await self._store.read(lambda q: q.vaults.all())
        if not rows:
            return []
        everything = [(row, file) for row in rows for file in VaultFile]
        if self._store.commits != self._commits:
            commits = self._store.commits
            signature = await self._store.read(lambda q: q.vaults.signature())
            if signature != self._signature:
                return everything
            self._commits = commits
        paths = [Path(row.folder, file.file_name) for row, file in everything]
        stamps = await asyncio.to_thread(lambda: [files.stamp(path) for path in paths])
        now = self._store.clock() * 1_000_000
        found = []
        for (row, file), stamp in zip(everything, stamps, strict=True):
            key = (row.agent, file.value)
            if self._stamps.get(key) == stamp:
                continue
            settled = now - stamp[0] >= self._policy.vault.settle_ms * 1_000_000 or self._glimpsed.get(key) == stamp
            self._glimpsed[key] = stamp
            if settled:
                found.append((row, file))
        return found

    async def follow(self) -> int:
        """Merge what changed. Returns how many memories were written."""
        waiting = await self.changed()
        signature = await self._store.read(lambda q: q.vaults.signature())
        written = 0
        for row, file in waiting:
            written += (await self.merge(row, file)).changed
        if written == 0:
            self._signature = signature
        return written

    async def problems(self) -> list[str]:
        """Return what `status` is to say of the files."""
        found = await self._store.read(lambda q: [(row, q.vaults.files(row.agent)) for row in q.vaults.all()])
        return [f"vault of {row.agent}: {one.problem}" for row, each in found for one in each.values() if one.problem]

    def _lock(self, agent: str) -> asyncio.Lock:
        return self._locks.setdefault(agent, asyncio.Lock())


def agent_of(caller: Caller, asked: str | None) -> str:
    """Return whose vault a caller means: an agent's is its own, the person names one.

    Raises DeniedError for another agent's, NotFoundError where none is named.
    """
    if caller.principal is not Principal.AGENT:
        if asked is None:
            raise NotFoundError("no agent is named, so no vault is meant", hint="say whose you mean: --agent NAME")
        return asked
    if caller.agent is None:
        raise DeniedError("this agent gave no name, so it has no vault", hint="ask the person to connect it by name")
    if asked is not None and asked != caller.agent:
        raise DeniedError(f"{asked[:80]!r} is not the caller's own vault", hint="leave out the agent")
    return caller.agent


def no_vault(agent: str) -> NotFoundError:
    """Return the error for an agent without a vault."""
    return NotFoundError(
        f"{agent[:80]} has no vault", hint=f"scrubjay vault init FOLDER --agent {agent[:80]} makes one"
    )


def _shown(row: VaultRow, queries: Queries) -> api.Vault:
    found = queries.vaults.files(row.agent)
    return api.Vault(
        agent=row.agent, folder=row.folder, files=tuple(state_of(file, found.get(file.value)) for file in VaultFile)
    )


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UnavailableError(
            f"the folder {folder} cannot be made ({os.strerror(error.errno or 0)})", hint="choose another folder"
        ) from error
    return folder.resolve()
