"""The store as a whole: exported, backed up, and derived again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from scrubjay import api, destination
from scrubjay.api.caller import Caller
from scrubjay.garbage import uncollected
from scrubjay.importers import export_format
from scrubjay.service.threads import off_loop
from scrubjay.store import Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError


class Archives:
    """Copies of one store. `ours` are files away from it that no copy may be written onto."""

    def __init__(
        self,
        store: Store,
        *,
        flush_accesses: Callable[[], Awaitable[int]],
        rebuilding: Callable[[], AbstractAsyncContextManager[None]],
        load_index: Callable[[], Awaitable[None]],
        build_contents: Callable[[], Awaitable[int]],
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._flush_accesses = flush_accesses
        self._rebuilding = rebuilding
        self._load_index = load_index
        self._build_contents = build_contents
        self._wake = wake
        self._now = now
        self.ours: tuple[Path, ...] = ()

    async def export(self, _caller: Caller, _: api.Nothing) -> AsyncGenerator[bytes, None]:
        """Yield the lines of an export: everything that is not derived, as it is at the first line."""
        await self._flush_accesses()
        await self._store.write(lambda tx: tx.accesses.log_all())
        async with self._store.snapshot() as snapshot:
            yield export_format.header(self._store.store_id, self._now())
            async for event, stamp, cause in snapshot.events():
                told = None if stamp is None else export_format.Stamp(seq=stamp[0], op_id=stamp[1], hlc=stamp[2])
                yield await off_loop(len(event.text), partial(export_format.line, event, told, cause))
            async for memory, aliases, grips in snapshot.memories():
                kept = export_format.MemoryRecord(memory=memory, aliases=aliases, grips=grips)
                yield await off_loop(len(memory.content), partial(export_format.line, kept))
            async for device, seq, data in snapshot.log():
                logged = export_format.OpRecord(device=device, seq=seq, data=data)
                yield await off_loop(len(data or b""), partial(export_format.line, logged))

    async def backup(self, _: Caller, request: api.PathRequest) -> api.PathResponse:
        """Write a checked copy of the store to an absolute path, while it runs.

        Raises InvalidError for a file of the store itself, ConflictError for another that is there, unless `force`.
        """
        target = Path(request.path)
        if not target.is_absolute():
            raise InvalidError(
                f"{request.path!r} is not an absolute path", hint="give the path from the root of the disk, as /home/…"
            )
        check = partial(destination.check, force=request.force, ours=self.ours)
        target = await asyncio.to_thread(check, target, self._store.path)
        size, digest = await self._store.backup(target, force=request.force)
        return api.PathResponse(path=str(target), bytes=size, sha256=digest)

    async def rebuild(self, _: Caller, request: api.RebuildRequest) -> api.RebuildResponse:
        """Make everything derived again, from events and ops alone."""

        def work(tx: Transaction) -> tuple[int, int, str, str]:
            before = tx.queries.digests.view()
            memories, events = tx.projections.rebuild(vectors=request.vectors)
            return memories, events, before, tx.queries.digests.view()

        async with self._rebuilding():
            with uncollected():
                memories, events, before, after = await self._store.write(work)
                await self._load_index()
            await self._build_contents()  # in steps, between which others write
        self._wake("embed")
        return api.RebuildResponse(memories=memories, events=events, before=before, after=after)
