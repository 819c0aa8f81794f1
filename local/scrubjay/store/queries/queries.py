"""All reads of the store, by area, over one connection: inside a write as well as in a snapshot of a reader."""

from __future__ import annotations

from typing import Any

from scrubjay.store.queries.agents import AgentQueries
from scrubjay.store.queries.audit import AuditQueries
from scrubjay.store.queries.causes import CauseQueries
from scrubjay.store.queries.compactions import CompactionQueries
from scrubjay.store.queries.conflicts import ConflictQueries
from scrubjay.store.queries.consolidation import ConsolidationQueries
from scrubjay.store.queries.digests import DigestQueries
from scrubjay.store.queries.documents import DocumentQueries
from scrubjay.store.queries.embed_queue import EmbedQueueQueries
from scrubjay.store.queries.events import EventQueries
from scrubjay.store.queries.feedback import FeedbackQueries
from scrubjay.store.queries.grips import GripQueries
from scrubjay.store.queries.handed import HandedQueries
from scrubjay.store.queries.instructions import InstructionQueries
from scrubjay.store.queries.layers import LayerQueries
from scrubjay.store.queries.members import MemberQueries
from scrubjay.store.queries.memories import MemoryQueries
from scrubjay.store.queries.names import NameQueries
from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.queries.relearning import RelearningQueries
from scrubjay.store.queries.replication import ReplicationQueries
from scrubjay.store.queries.review import ReviewQueries
from scrubjay.store.queries.routes import RouteQueries
from scrubjay.store.queries.snapshots import SnapshotQueries
from scrubjay.store.queries.stats import StatsQueries
from scrubjay.store.queries.surfacing import SurfacingQueries
from scrubjay.store.queries.teams import TeamQueries
from scrubjay.store.queries.toc import TocQueries
from scrubjay.store.queries.tombstones import TombstoneQueries
from scrubjay.store.queries.unremembered import UnrememberedQueries
from scrubjay.store.queries.vaults import VaultQueries
from scrubjay.store.queries.writer_calls import WriterCallQueries
from scrubjay.store.sqlite import fetching


class Queries:
    """Reads over the driver's own connection, in its thread: plain functions, each of which sees what came before."""

    def __init__(self, connection: Any) -> None:
        self.fetch = fetch = fetching(connection)
        """Return the rows of any query. For parts of the store, and for tests that look into its tables."""
        self.events = EventQueries(fetch)
        self.agents = AgentQueries(fetch)
        self.compactions = CompactionQueries(fetch)
        self.memories = MemoryQueries(fetch)
        self.names = NameQueries(fetch)
        self.grips = GripQueries(fetch)
        self.handed = HandedQueries(fetch)
        self.ops = OpLogQueries(fetch)
        self.causes = CauseQueries(fetch)
        self.conflicts = ConflictQueries(fetch, self.ops)
        self.consolidation = ConsolidationQueries(fetch, self.grips)
        self.members = MemberQueries(fetch)
        self.documents = DocumentQueries(fetch, self.grips, self.members)
        self.embed_queue = EmbedQueueQueries(fetch)
        self.relearning = RelearningQueries(fetch, self.ops)
        self.routes = RouteQueries(fetch)
        self.snapshots = SnapshotQueries(fetch)
        self.stats = StatsQueries(fetch)
        self.digests = DigestQueries(fetch)
        self.replication = ReplicationQueries(fetch)
        self.teams = TeamQueries(fetch)
        self.toc = TocQueries(fetch)
        self.tombstones = TombstoneQueries(fetch)
        self.feedback = FeedbackQueries(fetch)
        self.layers = LayerQueries(fetch)
        self.surfacing = SurfacingQueries(fetch)
        self.instructions = InstructionQueries(fetch)
        self.unremembered = UnrememberedQueries(fetch)
        self.writer_calls = WriterCallQueries(fetch)
        self.vaults = VaultQueries(fetch)
        self.review = ReviewQueries(fetch)
        self.audit = AuditQueries(fetch)

    def meta(self, key: str) -> str | None:
        """Return a setting of the file itself, None when it was never set."""
        found = self.fetch("select value from meta where key = ?", (key,))
        return str(found[0][0]) if found else None
