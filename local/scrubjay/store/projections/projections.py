"""How the tables follow from the ops: every projection is registered here, whoever wrote the op.

Ops come in any order: a name before its memory, the erasure of an event before the event. So every projection is a
function of the set of ops: of those about one entity where that suffices, of all the claims to a name where it does
not. Only arrival numbers (`n`) depend on the order, and no reader sees them.
"""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.store import rows, tables
from scrubjay.store.embed_queue import EmbedQueue
from scrubjay.store.file import PROJECTED
from scrubjay.store.projections import full_text
from scrubjay.store.projections.contents import Contents
from scrubjay.store.projections.erasure import Erasure
from scrubjay.store.projections.events import Events
from scrubjay.store.projections.memories import Memories
from scrubjay.store.projections.names import Names
from scrubjay.store.projections.sessions import Sessions
from scrubjay.store.write_context import WriteContext


class Projections:
    """The projections of one transaction, each over the ones that it needs."""

    def __init__(
        self,
        context: WriteContext,
        *,
        empty_full_text: Callable[[WriteContext], None] = full_text.make_anew,
    ) -> None:
        self._context = context
        self._empty_full_text = empty_full_text
        self.queue = EmbedQueue(context.connection)
        self.sessions = Sessions(context)
        self.names = Names(context)
        self.memories = Memories(context, self.names, self.queue)
        self.contents = Contents(context)
        self.events = Events(context, self.sessions, self.memories, self.queue, self.contents)
        self.erasure = Erasure(context, self.events, self.memories)

    def rebuild(self, *, vectors: bool) -> tuple[int, int]:
        """Make every projection again from events and ops. Returns (memories, events), counted as `stats` does.

        With `vectors`, drops them all too, to be embedded again; else keeps those whose text has not changed.

        Whoever keeps a copy of it all is told nothing, and must make that again too: it would replace each document.
        """
        self._context.run("reindex")
        if vectors:
            self._context.run("delete from embedding")
        self.project_all(tell=False)
        self.queue.refill(self.queue.space)
        events = self._context.queries.fetch("select count(*) from event where not forgotten")[0][0]
        memories = self._context.queries.fetch(f"select count(*) from memory where {rows.LISTED}")[0][0]
        return memories, events

    def project_all(self, *, tell: bool) -> None:
        """Make tombstones, sessions, memories and all that hangs on them again, and note that this version did it.

        `tell` is whether an index must learn of it.
        """
        self.erasure.remake()
        self._empty_full_text(self._context)
        for table in tables.REMADE:
            self._context.run(f"delete from {table}")
        self.sessions.project([row[0] for row in self._context.queries.fetch("select distinct session_id from event")])
        self.memories.project_all(tell=tell)
        self.contents.empty()
        self._context.set_meta("projected", PROJECTED)
