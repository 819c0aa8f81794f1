"""Keeping the garbage collector out while a file is read or everything is made again.

It walks over all live objects, which takes 100 ms and more with the records of a large file or of a whole store, and no
other thread runs meanwhile. Such records hold no cycles, and are freed when nobody refers to them any more. What does
hold a cycle waits until the work is done.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_working = 0
"""How many pieces of work go on that the collector is kept out of."""


@contextmanager
def uncollected(*, keep: bool = False) -> Iterator[None]:
    """Have the collector rest until this, and all other work that began meanwhile, has ended.

    With `keep`, it never looks at what is there at the end: records that live on after they were read. They go like any
    others, but a cycle among them stays.
    """
    global _working  # noqa: PLW0603 - the collector is the process's, and so is the count
    with _lock:
        _working += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _working -= 1
            if keep:
                gc.freeze()
            if not _working:
                gc.enable()
