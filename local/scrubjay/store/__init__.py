"""The SQLite file: schema, migrations, transactions, full text, vectors. All SQL of the product is in this package."""

from scrubjay.store.causes import FORGET, KEEPING_COPIES, Cause
from scrubjay.store.changes import Changes
from scrubjay.store.contents import SessionPlace, StoredPeriod, StoredSegment
from scrubjay.store.copies import copied, held_in, still_held_in, superfluous
from scrubjay.store.damage import Damage, Remedy
from scrubjay.store.damage import find as find_damage
from scrubjay.store.embed_queue import FIRST, Place, Waiting
from scrubjay.store.file import (
    automatic_copies,
    check,
    copies,
    is_derived,
    last_events_in,
    meta_of,
    migrations,
    next_nightly_copy,
    nightly_copies,
    refused_in,
    restore,
    scratch_folder,
    take_over,
)
from scrubjay.store.forgotten_since import forgotten_since
from scrubjay.store.index_file import drop_index, save_index, saved_index
from scrubjay.store.lock import Held, Holder, StoreInUseError, gone, holder, identity, replaced
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
from scrubjay.store.queries.tombstones import UNSWEPT, Forget, Statement, Sweep, Whole
from scrubjay.store.queries.tombstones import Held as HeldWords
from scrubjay.store.queries.vaults import VaultFileRow, VaultRow
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
    "FORGET",
    "KEEPING_COPIES",
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
    "Sections",
    "Seen",
    "SessionPlace",
    "Snapshot",
    "Statement",
    "Store",
    "StoreInUseError",
    "StoredPeriod",
    "StoredSegment",
    "Sweep",
    "TocStep",
    "Transaction",
    "VaultFileRow",
    "VaultRow",
    "Waiting",
    "Whole",
    "automatic_copies",
    "check",
    "copied",
    "copies",
    "drop_index",
    "find_damage",
    "forgotten_since",
    "gone",
    "held_in",
    "holder",
    "identity",
    "is_derived",
    "last_events_in",
    "meta_of",
    "migrations",
    "next_nightly_copy",
    "nightly_copies",
    "perturb",
    "refused_in",
    "replaced",
    "restore",
    "save_index",
    "saved_index",
    "scratch_folder",
    "sqlite_version",
    "still_held_in",
    "superfluous",
    "take_over",
    "verify",
]
