"""The SQLite file: schema, migrations, transactions, full text, vectors. All SQL of the product is in this package."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrubjay.store.causes import FORGET, KEEPING_COPIES, Cause
    from scrubjay.store.changes import Changes
    from scrubjay.store.contents import SessionPlace, StoredPeriod, StoredSegment
    from scrubjay.store.damage import Damage, Remedy, remedy_of
    from scrubjay.store.damage import find as find_damage
    from scrubjay.store.definition import is_derived
    from scrubjay.store.embed_queue import FIRST, Place, Waiting
    from scrubjay.store.file import (
        automatic_copies,
        check,
        half_made,
        kept_copies,
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
    from scrubjay.store.holding import copied, forgotten_since, held_in, still_held_in, superfluous
    from scrubjay.store.index_file import drop_index, save_index, saved_index
    from scrubjay.store.lock import Held, Holder, StoreInUseError, gone, holder, identity, log_path, replaced
    from scrubjay.store.moved import minted, moved_key
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
    from scrubjay.store.salvaging import Salvaged, salvage
    from scrubjay.store.snapshot import Snapshot
    from scrubjay.store.store import Store
    from scrubjay.store.transaction import Transaction
    from scrubjay.store.verification import verify
    from scrubjay.store.writes.forgetting import Refusal
    from scrubjay.store.writes.memories import MemoryWrite
    from scrubjay.store.writes.toc import Cut, TocStep
    from scrubjay_io.sqlite import version as sqlite_version

_PLACES = {
    "Cause": ("scrubjay.store.causes", "Cause"),
    "CauseRow": ("scrubjay.store.queries.causes", "CauseRow"),
    "Changes": ("scrubjay.store.changes", "Changes"),
    "Conflict": ("scrubjay.store.queries.conflicts", "Conflict"),
    "Cut": ("scrubjay.store.writes.toc", "Cut"),
    "Damage": ("scrubjay.store.damage", "Damage"),
    "Depth": ("scrubjay.store.perturbation", "Depth"),
    "EventFilter": ("scrubjay.store.queries", "EventFilter"),
    "FIRST": ("scrubjay.store.embed_queue", "FIRST"),
    "FORGET": ("scrubjay.store.causes", "FORGET"),
    "Forget": ("scrubjay.store.queries.tombstones", "Forget"),
    "Held": ("scrubjay.store.lock", "Held"),
    "HeldWords": ("scrubjay.store.queries.tombstones", "Held"),
    "Holder": ("scrubjay.store.lock", "Holder"),
    "JobRun": ("scrubjay.store.queries.stats", "JobRun"),
    "JobStatistics": ("scrubjay.store.queries.stats", "JobStatistics"),
    "KEEPING_COPIES": ("scrubjay.store.causes", "KEEPING_COPIES"),
    "MemoryFilter": ("scrubjay.store.queries", "MemoryFilter"),
    "MemoryWrite": ("scrubjay.store.writes.memories", "MemoryWrite"),
    "Outgoing": ("scrubjay.store.queries.op_log", "Outgoing"),
    "Perturbation": ("scrubjay.store.perturbation", "Perturbation"),
    "PerturbationKind": ("scrubjay.store.perturbation", "Kind"),
    "Place": ("scrubjay.store.embed_queue", "Place"),
    "Position": ("scrubjay.store.queries.op_log", "Position"),
    "Quarantined": ("scrubjay.store.queries.op_log", "Quarantined"),
    "Queries": ("scrubjay.store.queries", "Queries"),
    "Received": ("scrubjay.store.op_ingest", "Received"),
    "Refusal": ("scrubjay.store.writes.forgetting", "Refusal"),
    "Remedy": ("scrubjay.store.damage", "Remedy"),
    "Salvaged": ("scrubjay.store.salvaging", "Salvaged"),
    "Sections": ("scrubjay.store.queries.instructions", "Sections"),
    "Seen": ("scrubjay.store.queries.toc", "Seen"),
    "SessionPlace": ("scrubjay.store.contents", "SessionPlace"),
    "Snapshot": ("scrubjay.store.snapshot", "Snapshot"),
    "Statement": ("scrubjay.store.queries.tombstones", "Statement"),
    "Store": ("scrubjay.store.store", "Store"),
    "StoreInUseError": ("scrubjay.store.lock", "StoreInUseError"),
    "StoredPeriod": ("scrubjay.store.contents", "StoredPeriod"),
    "StoredSegment": ("scrubjay.store.contents", "StoredSegment"),
    "Sweep": ("scrubjay.store.queries.tombstones", "Sweep"),
    "TocStep": ("scrubjay.store.writes.toc", "TocStep"),
    "Transaction": ("scrubjay.store.transaction", "Transaction"),
    "UNSWEPT": ("scrubjay.store.queries.tombstones", "UNSWEPT"),
    "VaultFileRow": ("scrubjay.store.queries.vaults", "VaultFileRow"),
    "VaultRow": ("scrubjay.store.queries.vaults", "VaultRow"),
    "Waiting": ("scrubjay.store.embed_queue", "Waiting"),
    "Whole": ("scrubjay.store.queries.tombstones", "Whole"),
    "automatic_copies": ("scrubjay.store.file", "automatic_copies"),
    "check": ("scrubjay.store.file", "check"),
    "copied": ("scrubjay.store.holding", "copied"),
    "drop_index": ("scrubjay.store.index_file", "drop_index"),
    "find_damage": ("scrubjay.store.damage", "find"),
    "forgotten_since": ("scrubjay.store.holding", "forgotten_since"),
    "gone": ("scrubjay.store.lock", "gone"),
    "half_made": ("scrubjay.store.file", "half_made"),
    "held_in": ("scrubjay.store.holding", "held_in"),
    "holder": ("scrubjay.store.lock", "holder"),
    "identity": ("scrubjay.store.lock", "identity"),
    "kept_copies": ("scrubjay.store.file", "kept_copies"),
    "is_derived": ("scrubjay.store.definition", "is_derived"),
    "last_events_in": ("scrubjay.store.file", "last_events_in"),
    "log_path": ("scrubjay.store.lock", "log_path"),
    "meta_of": ("scrubjay.store.file", "meta_of"),
    "minted": ("scrubjay.store.moved", "minted"),
    "migrations": ("scrubjay.store.file", "migrations"),
    "moved_key": ("scrubjay.store.moved", "moved_key"),
    "next_nightly_copy": ("scrubjay.store.file", "next_nightly_copy"),
    "nightly_copies": ("scrubjay.store.file", "nightly_copies"),
    "perturb": ("scrubjay.store.perturbation", "perturb"),
    "refused_in": ("scrubjay.store.file", "refused_in"),
    "remedy_of": ("scrubjay.store.damage", "remedy_of"),
    "replaced": ("scrubjay.store.lock", "replaced"),
    "restore": ("scrubjay.store.file", "restore"),
    "salvage": ("scrubjay.store.salvaging", "salvage"),
    "save_index": ("scrubjay.store.index_file", "save_index"),
    "saved_index": ("scrubjay.store.index_file", "saved_index"),
    "scratch_folder": ("scrubjay.store.file", "scratch_folder"),
    "sqlite_version": ("scrubjay_io.sqlite", "version"),
    "still_held_in": ("scrubjay.store.holding", "still_held_in"),
    "superfluous": ("scrubjay.store.holding", "superfluous"),
    "take_over": ("scrubjay.store.file", "take_over"),
    "verify": ("scrubjay.store.verification", "verify"),
}
"""The module of each name, and what it is called there."""

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
    "drop_index",
    "find_damage",
    "forgotten_since",
    "gone",
    "half_made",
    "held_in",
    "holder",
    "identity",
    "is_derived",
    "kept_copies",
    "last_events_in",
    "log_path",
    "meta_of",
    "migrations",
    "minted",
    "moved_key",
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
    "scratch_folder",
    "sqlite_version",
    "still_held_in",
    "superfluous",
    "take_over",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command that reads one thing of a store must not load all that can be done to it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, called = _PLACES[name]
    return getattr(import_module(module), called)
