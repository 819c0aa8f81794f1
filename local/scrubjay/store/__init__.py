"""The SQLite file: schema, migrations, transactions, full text, vectors. All SQL of the product is in this package."""

from scrubjay.store.causes import Cause
from scrubjay.store.changes import Changes
from scrubjay.store.contents import SessionPlace, StoredPeriod, StoredSegment
from scrubjay.store.damage import Damage, Remedy, remedy_of
from scrubjay.store.damage import find as find_damage
from scrubjay.store.definition import is_derived
from scrubjay.store.embed_queue import FIRST, Place, Waiting
from scrubjay.store.file import (
    check,
    copies,
    half_made,
    last_events_in,
    meta_of,
    migrations,
    next_nightly_copy,
    nightly_copies,
    refused_in,
    restore,
    snapshots,
)
from scrubjay.store.forgotten_since import forgotten_since
from scrubjay.store.index_file import drop_index, save_index, saved_index
from scrubjay.store.lock import Held, Holder, StoreInUseError, gone, holder, identity, log_path, replaced
from scrubjay.store.op_ingest import Received
from scrubjay.store.perturbation import Depth, Perturbation, perturb
from scrubjay.store.perturbation import Kind as PerturbationKind
from scrubjay.store.queries import EventFilter, MemoryFilter, Queries
from scrubjay.store.queries.causes import CauseRow
from scrubjay.store.queries.conflicts import Conflict
from scrubjay.store.queries.instructions import Sections
from scrubjay.store.queries.op_log import Outgoing, Position, Quarantined
from scrubjay.store.queries.stats import JobRun, JobStatistics
from scrubjay.store.queries.toc import Seen
from scrubjay.store.queries.tombstones import UNSWEPT, Forget, Statement
from scrubjay.store.queries.tombstones import Held as HeldWords
from scrubjay.store.queries.vaults import VaultFileRow, VaultRow
from scrubjay.store.salvaging import Salvaged, salvage
from scrubjay.store.snapshot import Snapshot
from scrubjay.store.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay.store.verification import verify
from scrubjay.store.writes.forgetting import Refusal
from scrubjay.store.writes.memories import MemoryWrite
from scrubjay.store.writes.toc import Cut, TocStep
from scrubjay_io.sqlite import version as sqlite_version

__all__ = [
    "FIRST",
    "UNSWEPT",
    "Cause",
    "CauseRow",
    "Changes",
    "Conflict",
    "Cut",
    "Damage",
    "Depth",
    "EventFilter",
    "Forget",
    "Held",
    "HeldWords",
    "Holder",
    "JobRun",
    "JobStatistics",
    "MemoryFilter",
    "MemoryWrite",
    "Outgoing",
    "Perturbation",
    "PerturbationKind",
    "Place",
    "Position",
    "Quarantined",
    "Queries",
    "Received",
    "Refusal",
    "Remedy",
    "Salvaged",
    "Sections",
    "Seen",
    "SessionPlace",
    "Snapshot",
    "Statement",
    "Store",
    "StoreInUseError",
    "StoredPeriod",
    "StoredSegment",
    "TocStep",
    "Transaction",
    "VaultFileRow",
    "VaultRow",
    "Waiting",
    "check",
    "copies",
    "drop_index",
    "find_damage",
    "forgotten_since",
    "gone",
    "half_made",
    "holder",
    "identity",
    "is_derived",
    "last_events_in",
    "log_path",
    "meta_of",
    "migrations",
    "next_nightly_copy",
    "nightly_copies",
    "perturb",
    "refused_in",
    "remedy_of",
    "replaced",
    "restore",
    "salvage",
    "save_index",
    "saved_index",
    "snapshots",
    "sqlite_version",
    "verify",
]
