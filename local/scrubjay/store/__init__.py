"""The SQLite file: schema, migrations, transactions, full text, vectors. All SQL of the product is in this package."""

from scrubjay.store.damage import Damage, Remedy
from scrubjay.store.damage import find as find_damage
from scrubjay.store.embed_queue import FIRST, Place, Waiting
from scrubjay.store.file import check, copies, is_derived, meta_of, migrations, refused_in, restore, snapshots
from scrubjay.store.index_file import drop_index, save_index, saved_index
from scrubjay.store.lock import Held, Holder, StoreInUseError, gone, holder, identity, replaced
from scrubjay.store.peers import Outgoing, Received
from scrubjay.store.snapshot import Snapshot
from scrubjay.store.store import Changes, Disputed, Parked, Store
from scrubjay.store.transaction import MemoryWrite, Position, Transaction
from scrubjay_io.sqlite import version as sqlite_version

__all__ = [
    "FIRST",
    "Changes",
    "Damage",
    "Disputed",
    "Held",
    "Holder",
    "MemoryWrite",
    "Outgoing",
    "Parked",
    "Place",
    "Position",
    "Received",
    "Remedy",
    "Snapshot",
    "Store",
    "StoreInUseError",
    "Transaction",
    "Waiting",
    "check",
    "copies",
    "drop_index",
    "find_damage",
    "gone",
    "holder",
    "identity",
    "is_derived",
    "meta_of",
    "migrations",
    "refused_in",
    "replaced",
    "restore",
    "save_index",
    "saved_index",
    "snapshots",
    "sqlite_version",
]
