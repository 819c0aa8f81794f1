"""What a store that was put aside has forgotten, and the backup in its place has not: read from both files."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from scrubjay.store.sqlite import translated
from scrubjay_io.sqlite import driver, reader, side_files
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

_ERASING = (int(OpType.FORGET), int(OpType.BLANK))


def forgotten_since(kept: Path, restored: Path) -> tuple[Op, ...]:
    """Return the ops by which this device erased something in `kept`, in their order, that `restored` does not hold.

    They hold ids, places and keyed digests, and no words. What other devices forgot comes again by sync. Raises
    CorruptError where a file cannot be read.
    """
    there = {op.op_id for op in _erasures(restored)}
    return tuple(op for op in _erasures(kept) if op.op_id not in there)


def _erasures(path: Path) -> Sequence[Op]:
    # A reader of a file without a log leaves one behind, unless it knows that nobody else writes there.
    alone = not any(each.exists() for each in side_files(path))
    at = f"{path.absolute().as_uri()}?immutable=1"
    with translated(path), contextlib.closing(driver.connect(at, uri=True) if alone else reader(path)) as file:
        found = file.execute(
            "select device, seq, body from op where type in (?, ?) and body is not null"
            " and device = (select value from meta where key = 'device') order by seq",
            _ERASING,
        ).fetchall()
    return [ops.decode(bytes(body), device=device, seq=seq) for device, seq, body in found]
