"""Keeping the garbage collector out while a file is read or everything is made again.

It walks over all live objects, which takes 100 ms and more with the records of a large file or of a whole store, and no
other thread runs meanwhile. Such records hold no cycles, and are freed when nobody refers to them any more. What does
hold a cycle waits until the work is done.

The collector is the whole process's. So this is done where the process is scrubjay's own, as the daemon says (`own`);
in the process of another program, that program says when the collector runs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_is_ours = False
_working = 0
"""How many pieces of work go on that the collector is kept out of."""
_was_on = True


def own(*, ours: bool = True) -> None:
    """Say that this process is scrubjay's own, and its collector with it."""
    global _is_ours  # noqa: PLW0603 - there is one process
    _is_ours = ours


def keep() -> None:
    """Have the collector never look again at what is there now: modules and models, which stay."""
    if _is_ours:
        gc.freeze()


@contextmanager
def uncollected(*, kept: bool = False) -> Iterator[None]:
    """Have the collector rest until this, and all other work that began meanwhile, has ended.

    With `kept`, it never looks at what is there at the end: records that live on after they were read. They go like any
    others, but a cycle among them stays.
    """
    global _working, _was_on  # noqa: PLW0603 - the collector is the process's, and so is the count
    if not _is_ours:
        yield
        return
    with _lock:
        if not _working:
            _was_on = gc.isenabled()
        _working += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _working -= 1
            if kept:
                keep()
            if not _working and _was_on:
                gc.enable()
