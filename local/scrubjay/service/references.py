"""What a caller means by a reference, and what it may see: the memory behind a name, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scrubjay import api, projects
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.index.index import Index
from scrubjay.ingest import intake
from scrubjay.store import Store
from scrubjay_shared.errors import NotFoundError


class References:
    """Resolves references of one store. `index` returns the index in use, `folders` which are of which project."""

    def __init__(
        self, store: Store, index: Callable[[], Index], folders: Callable[[], Iterable[tuple[str, str]]]
    ) -> None:
        self._store = store
        self._index = index
        self._folders = folders

    async def resolve(self, ref: str, seen: View) -> str:
        """Return the id of the memory that a caller means. Raises NotFoundError for one that it may not see."""
        ref = intake.valid(ref)
        try:
            memory_id = await self._store.read(lambda q: q.memories.resolve(ref))
        except NotFoundError:
            if await self.event(ref, seen) is None:
                raise
            raise NotFoundError(
                f"{ref[:60]} is an event, not a memory",
                hint=f"scrubjay grip expand {ref[:60]} shows it in what was said around it",
            ) from None
        if seen.is_bounded:
            memory = (await self._store.read(lambda q: q.memories.by_id([memory_id], chars=0))).get(memory_id)
            if memory is None or not seen.shows(memory):
                raise access.not_found(ref)
        return memory_id

    async def event(self, ref: str, seen: View) -> str | None:
        """Return the id of the event that a caller means by an id or its beginning; None for one it may not see."""
        event_id = await self._store.read(lambda q: q.events.resolve(ref))
        if event_id is None:
            return None
        found = (await self._store.read(lambda q: q.events.by_id([event_id], chars=0))).get(event_id)
        return event_id if found is not None and seen.shows_event(found) else None

    def is_known(self, project: str) -> bool:
        """Say whether anything that can be found is stored under this project."""
        names = self._index().names
        return names.projects.find(project) >= 0 or names.resources.find(project) >= 0

    async def notes_on(self, project: str | None) -> tuple[str, ...]:
        """Return what is to be said of a project that nothing belongs to; nothing when it is known or not named."""
        if project is None:
            return ()
        if self.is_known(project):
            return ()
        known = await self._store.read(lambda q: q.stats.projects())
        if project in known:
            return ()
        # The name of a commit is like no other: its folders are what somebody means by it.
        folders = {folder for folder, of in self._folders() if of.startswith(projects.FIRST_COMMIT) and of in known}
        return (projects.unknown(project, known | folders),)

    async def entry(self, memory_id: str, *, created: bool = False, lifted: bool = False) -> api.Entry:
        """Return a memory with its names."""
        memory = await self._store.read(lambda q: q.memories.get(memory_id))
        names = (await self._store.read(lambda q: q.names.aliases([memory_id]))).get(memory_id, ())
        aliases = tuple(alias.name for alias in names)
        return api.Entry(memory=memory, aliases=aliases, created=created, lifted=lifted)
