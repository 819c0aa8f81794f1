"""Every read of the store, once: by area, synchronous, over whichever connection the caller has."""

from scrubjay.store.queries.events import EventFilter
from scrubjay.store.queries.memories import MemoryFilter
from scrubjay.store.queries.queries import Queries

__all__ = ["EventFilter", "MemoryFilter", "Queries"]
