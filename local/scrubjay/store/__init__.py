"""The SQLite file: schema, migrations, transactions, full text, vectors. All SQL of the product is in this package."""

from scrubjay.store.file import check, migrations, restore, snapshots
from scrubjay.store.lock import holder
from scrubjay.store.sqlite import version as sqlite_version
from scrubjay.store.store import Changes, Store
from scrubjay.store.transaction import MemoryWrite, Transaction

__all__ = [
    "Changes",
    "MemoryWrite",
    "Store",
    "Transaction",
    "check",
    "holder",
    "migrations",
    "restore",
    "snapshots",
    "sqlite_version",
]
