"""Every weight, threshold and size, with its unit and its reason. Pure values; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay.policy.asking import AskPolicy
from scrubjay.policy.consolidating import ConsolidationPolicy
from scrubjay.policy.intake import LimitPolicy, RedactPolicy
from scrubjay.policy.layers import LayersPolicy
from scrubjay.policy.learning import TYPE_SALIENCE, CompactionPolicy, DistillPolicy, SupersessionPolicy, TocPolicy
from scrubjay.policy.observing import ObserverPolicy, SupportPolicy
from scrubjay.policy.recalling import (
    HandingPolicy,
    RecallPolicy,
    RecallWeights,
    RelevancePolicy,
    RoutingPolicy,
    ShowingPolicy,
    weighted,
)
from scrubjay.policy.running import (
    ConnectionPolicy,
    DaemonPolicy,
    ModelPolicy,
    NightPolicy,
    TracePolicy,
    UndoPolicy,
    WorkPolicy,
)
from scrubjay.policy.succeeding import SucceedingPolicy
from scrubjay.policy.surfacing import SurfacingPolicy
from scrubjay.policy.trusting import AuditPolicy, FeedbackPolicy, ReviewMode, ReviewPolicy
from scrubjay.policy.vault import VaultPolicy
from scrubjay.policy.working import AgentWorkPolicy
from scrubjay.policy.writing import WriterPolicy

__all__ = [
    "DEFAULT",
    "TYPE_SALIENCE",
    "AgentWorkPolicy",
    "AskPolicy",
    "AuditPolicy",
    "CompactionPolicy",
    "ConnectionPolicy",
    "ConsolidationPolicy",
    "DaemonPolicy",
    "DistillPolicy",
    "FeedbackPolicy",
    "HandingPolicy",
    "LayersPolicy",
    "LimitPolicy",
    "MemoryPolicy",
    "ModelPolicy",
    "NightPolicy",
    "ObserverPolicy",
    "RecallPolicy",
    "RecallWeights",
    "RedactPolicy",
    "RelevancePolicy",
    "ReviewMode",
    "ReviewPolicy",
    "RoutingPolicy",
    "ShowingPolicy",
    "SucceedingPolicy",
    "SupersessionPolicy",
    "SupportPolicy",
    "SurfacingPolicy",
    "TocPolicy",
    "TracePolicy",
    "UndoPolicy",
    "VaultPolicy",
    "WorkPolicy",
    "WriterPolicy",
    "weighted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """All of it. A caller who wants other numbers builds another policy; there is no global."""

    recall: RecallPolicy = field(default_factory=RecallPolicy)
    distill: DistillPolicy = field(default_factory=DistillPolicy)
    supersession: SupersessionPolicy = field(default_factory=SupersessionPolicy)
    succeeding: SucceedingPolicy = field(default_factory=SucceedingPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    consolidation: ConsolidationPolicy = field(default_factory=ConsolidationPolicy)
    routing: RoutingPolicy = field(default_factory=RoutingPolicy)
    redact: RedactPolicy = field(default_factory=RedactPolicy)
    limits: LimitPolicy = field(default_factory=LimitPolicy)
    toc: TocPolicy = field(default_factory=TocPolicy)
    handing: HandingPolicy = field(default_factory=HandingPolicy)
    layers: LayersPolicy = field(default_factory=LayersPolicy)
    surfacing: SurfacingPolicy = field(default_factory=SurfacingPolicy)
    connection: ConnectionPolicy = field(default_factory=ConnectionPolicy)
    daemon: DaemonPolicy = field(default_factory=DaemonPolicy)
    work: WorkPolicy = field(default_factory=WorkPolicy)
    night: NightPolicy = field(default_factory=NightPolicy)
    trace: TracePolicy = field(default_factory=TracePolicy)
    undo: UndoPolicy = field(default_factory=UndoPolicy)
    models: ModelPolicy = field(default_factory=ModelPolicy)
    writer: WriterPolicy = field(default_factory=WriterPolicy)
    ask: AskPolicy = field(default_factory=AskPolicy)
    observer: ObserverPolicy = field(default_factory=ObserverPolicy)
    vault: VaultPolicy = field(default_factory=VaultPolicy)
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    feedback: FeedbackPolicy = field(default_factory=FeedbackPolicy)
    audit: AuditPolicy = field(default_factory=AuditPolicy)


DEFAULT = MemoryPolicy()
