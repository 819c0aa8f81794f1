"""The job that keeps imported instructions current: people edit CLAUDE.md or AGENTS.md, and the memories follow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)

Stamp = tuple[int, int]
"""A file's time of change in nanoseconds, and its size in bytes."""


class Instructions:
    """Looks at the files of instructions that were imported, and has those that changed read again with `follow`.

    A file that is not there is passed over: it may be on another branch, or on a disk that comes back.
    """

    name = "instructions"

    def __init__(self, store: Store, policy: WorkPolicy, follow: Callable[[Path, str | None], Awaitable[int]]) -> None:
        self._store = store
        self._policy = policy
        self._follow = follow
        self._seen: dict[tuple[str, str], Stamp] = {}

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps: nobody announces that a person edits a file."""
        return Trigger(seconds=self._policy.sweep_seconds)

    async def due(self) -> bool:
        """Say whether a file changed since it was looked at. Costs a call of `stat` for each that was imported."""
        return bool(await self._changed())

    async def pending(self) -> int:
        """Return how many files changed."""
        return len(await self._changed())

    async def run(self) -> int:
        """Read the files that changed. Returns how many sections did. One that cannot be read does not stop the rest.

        Raises ScrubjayError for the first that could not be read; it is tried again once it changes.
        """
        sections = 0
        failed: ScrubjayError | None = None
        for (path, project), stamp in (await self._changed()).items():
            self._seen[path, project] = stamp
            try:
                sections += await self._follow(Path(path), project or None)
            except OSError as error:
                log.warning("instructions: a file cannot be read error=%s", type(error).__name__)
            except ScrubjayError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return sections

    async def _changed(self) -> dict[tuple[str, str], Stamp]:
        files = await self._store.read(lambda q: q.instructions.files())
        if not files:
            return {}
        stamps = await asyncio.to_thread(lambda: {file: stamp(Path(file[0])) for file in files})
        return {file: found for file, found in stamps.items() if found is not None and self._seen.get(file) != found}


def stamp(path: Path) -> Stamp | None:
    """Return what is different once a file was written; None where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
