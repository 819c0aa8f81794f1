"""The log beside a store (`-wal`), read as bytes: whether SQLite will take all of it into the file, and its pages.

SQLite stops at the first frame that fails its check sum, as it must: a crash leaves a torn tail. It cannot tell that
from a bit that flipped in the middle, behind which acknowledged writes follow: it drops those without a word. But each
frame's sum starts from the one that stands in the frame before, so that frames behind a bad one still prove themselves.
The format is that of sqlite.org/fileformat.html, "The Write-Ahead Log".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

_HEADER = 32
_FRAME = 24
_MAGIC = (0x377F0682, 0x377F0683)  # the last bit: whether sums are of big-endian words


class Tail(Enum):
    """How a log ends."""

    WHOLE = "whole"
    """Everything in it will be read. What a crash tore off at the end was never acknowledged."""
    DOUBTFUL = "doubtful"
    """Its last transaction is not whole, though parts of it behind the bad one are: a power failure leaves that too."""
    DAMAGED = "damaged"
    """A transaction that was complete is not whole, and others come after it: they would be dropped."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One page in a log: its number, where its bytes begin, and how many pages the file has after it.

    That is 0 but in the last frame of a transaction.
    """

    page: int
    start: int
    pages: int


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds.

    `frames` are those up to the last commit, good and bad; SQLite reads the first `read` of them.
    """

    page_size: int
    tail: Tail
    frames: tuple[Frame, ...]
    read: int

    @property
    def dropped(self) -> int:
        """How many transactions SQLite would drop."""
        return sum(frame.pages > 0 for frame in self.frames[self.read :])


def read_log(store: Path) -> Log | None:
    """Return what the log of a store holds; None where there is none, or it is empty. Raises OSError."""
    try:
        data = store.with_name(f"{store.name}-wal").read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < _HEADER + _FRAME:
        return None
    head = np.frombuffer(data[:_HEADER], ">u4")
    page_size = int(head[2])
    if page_size < 512 or page_size > 65_536 or page_size & (page_size - 1):  # damaged: ours are of SQLite's own size
        page_size = 4_096
    size = _FRAME + page_size
    count = (len(data) - _HEADER) // size
    if count == 0:
        return None
    rows = np.frombuffer(data, np.uint8, count * size, _HEADER).reshape(count, size)
    fields = rows[:, :_FRAME].copy().view(">u4").astype(np.uint32)
    kind = int(head[0]) if int(head[0]) in _MAGIC else _MAGIC[0]
    words = np.ascontiguousarray(np.concatenate([rows[:, :8], rows[:, _FRAME:]], axis=1)).view(
        ">u4" if kind & 1 else "<u4"
    )
    stored = fields[:, 4:6]
    begins = np.concatenate([head[6:8].astype(np.uint32).reshape(1, 2), stored[:-1]])
    proven = (_sums(words.astype(np.uint32), begins) == stored).all(axis=1)
    first = np.frombuffer(data[: _HEADER - 8], ">u4" if kind & 1 else "<u4").astype(np.uint32)
    header_holds = bool(
        int(head[0]) in _MAGIC and (_sums(first.reshape(1, -1), np.zeros((1, 2), np.uint32))[0] == head[6:8]).all()
    )
    salts = head[4:6].astype(np.uint32) if header_holds else fields[0, 2:4]
    ours = (fields[:, 2:4] == salts).all(axis=1) & (fields[:, 0] > 0)
    good = ours & proven
    stopped = int(np.argmin(good)) if header_holds and not good.all() else count if header_holds else 0
    commits = [at for at in range(count) if ours[at] and fields[at, 1]]
    upto = max((at for at in commits if at < stopped), default=-1) + 1
    """SQLite reads up to the last commit before the bad frame."""
    behind = [at for at in range(stopped, count) if good[at] and at > 0]
    tail = Tail.WHOLE
    if behind:
        completed = [at for at in commits if at >= stopped]
        tail = Tail.DAMAGED if completed and behind[-1] > completed[0] else Tail.DOUBTFUL
    last = max((at for at in commits if not behind or at <= behind[-1]), default=-1) + 1
    frames = tuple(
        Frame(int(fields[at, 0]), _HEADER + at * size + _FRAME, int(fields[at, 1]))
        for at in range(last if tail is not Tail.WHOLE else upto)
        if ours[at] or tail is not Tail.WHOLE
    )
    return Log(page_size, tail, frames, upto)


def _sums(words: Any, begins: Any) -> Any:
    """Return SQLite's check sum of each row of 32-bit words, from where each begins. All at once: it is linear.

    One step is s' = s + t + x, t' = t + y + s' for two words x, y.
    """
    steps = words.shape[1] // 2
    weights = np.empty(
        (steps, 2, 2), np.uint32
    )  # what a step adds to the end: the powers of its matrix, last step first
    power = np.eye(2, dtype=np.uint32)
    step = np.array([[1, 1], [1, 2]], np.uint32)
    for at in range(steps - 1, -1, -1):
        weights[at] = power
        power = step @ power
    x, y = words[:, 0::2], words[:, 1::2]
    added = (x, x + y)
    return np.stack(
        [
            (added[0] * weights[:, row, 0]).sum(axis=1, dtype=np.uint32)
            + (added[1] * weights[:, row, 1]).sum(axis=1, dtype=np.uint32)
            + (begins * power[row]).sum(axis=1, dtype=np.uint32)
            for row in (0, 1)
        ],
        axis=1,
    )
