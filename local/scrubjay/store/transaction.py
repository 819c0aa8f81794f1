"""What can be done inside one transaction, by area: every change appends its op, and the projections follow from ops.

Everything here runs in the thread of the connection that may write, so it is plain, not async: one hop between threads
a group of transactions, instead of one a statement.
"""

from __future__ import annotations

from scrubjay.store.incarnation import Incarnation
from scrubjay.store.op_ingest import OpIngest
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections import full_text
from scrubjay.store.projections.projections import Projections
from scrubjay.store.superseded import Superseded
from scrubjay.store.write_context import WriteContext
from scrubjay.store.writes.accesses import Accesses
from scrubjay.store.writes.events import EventWrites
from scrubjay.store.writes.feedback import FeedbackWrites
from scrubjay.store.writes.forgetting import Forgetting
from scrubjay.store.writes.handed import Handed
from scrubjay.store.writes.instructions import InstructionWrites
from scrubjay.store.writes.jobs import JobHistory
from scrubjay.store.writes.memories import MemoryWrites
from scrubjay.store.writes.receipts import Receipts
from scrubjay.store.writes.replication import ReplicationWrites
from scrubjay.store.writes.surfacing import SurfacingWrites
from scrubjay.store.writes.teams import TeamWrites
from scrubjay.store.writes.toc import TocWrites
from scrubjay.store.writes.unconfirmed import Unconfirmed
from scrubjay.store.writes.unremembered import UnrememberedWrites
from scrubjay.store.writes.vaults import VaultWrites
from scrubjay.store.writes.vectors import Vectors
from scrubjay.store.writes.writer_calls import WriterCallWrites


class Transaction:
    """The writes of one submission. Lives until its work function returns.

    `queries` reads with what the transaction has written so far; `now` is the one time of all its writes.
    """

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self.queries = context.queries
        self.now = context.now
        self.new_id = context.new_id
        self.set_meta = context.set_meta
        self.projections = projections = Projections(context)
        log = OpLog(context)
        self.note_cause = log.note
        self.events = EventWrites(context, log, projections.events)
        self.superseded = superseded = Superseded(context)
        self.memories = MemoryWrites(context, log, projections.memories, superseded)
        self.forget = Forgetting(context, log, projections.erasure, projections.events)
        self.vectors = Vectors(context, projections.queue, projections.contents)
        self.accesses = Accesses(context, log, projections.memories)
        self.handed = Handed(context)
        self.feedback = FeedbackWrites(context)
        self.surfacing = SurfacingWrites(context)
        self.instructions = InstructionWrites(context)
        self.unremembered = UnrememberedWrites(context)
        self.vaults = VaultWrites(context)
        self.jobs = JobHistory(context)
        self.writer_calls = WriterCallWrites(context)
        self.ingest = OpIngest(context, log, projections, superseded)
        self.unconfirmed = Unconfirmed(context, self.ingest, projections)
        self.incarnation = Incarnation(context, projections)
        self.replication = ReplicationWrites(context)
        self.receipts = Receipts(context)
        self.teams = TeamWrites(context)
        self.toc = TocWrites(context, projections.contents)

    def tidy(self) -> None:
        """Let SQLite renew its statistics where they have gone stale, and merge a little of the full text."""
        self._context.run("pragma optimize")
        full_text.merge(self._context)
