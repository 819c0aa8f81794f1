"""What a store and its copies hold of each other: of what was forgotten since, and of what the store itself holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scrubjay.store import file, rows, sqlite
from scrubjay.store.causes import REPLACING
from scrubjay.store.moved import KIND, with_replaced
from scrubjay_io.sqlite import driver, reader, side_files
from scrubjay_shared import ops
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

_ERASING = (int(OpType.FORGET), int(OpType.BLANK))


def held_in(copy: Path, erasures: Sequence[Op]) -> list[Op]:
    """Return the ops of some that erased what a copy still holds, and with them the keys that their digests need.

    Raises CorruptError for a copy that cannot be read, also for one of a schema from before there were tombstones.
    """
    of = [ops.entity_of(op) for op in erasures]
    with sqlite.translated(copy), _opened(copy) as connection:
        fetch = sqlite.fetching(connection)
        wanted = rows.array(sorted(set(of)))
        whole = {
            str(row[0])
            for row in fetch(
                "select entity from op where entity in (select value from json_each(?1)) and type <> 3"
                " and body is not null union"
                " select id from event where id in (select value from json_each(?1)) and not forgotten union"
                " select id from memory where id in (select value from json_each(?1)) union"
                " select id from grip where id in (select value from json_each(?1))",
                (wanted,),
            )
        }
        texts = {
            str(row[0]): str(row[1])
            for row in fetch(
                "select id, text from event where id in (select value from json_each(?)) and not forgotten", (wanted,)
            )
        }
        keys = {str(row[0]) for row in fetch("select id from tombstone_key")}

    def holds(op: Op, entity: str) -> bool:
        if op.type == OpType.BLANK:
            return entity in texts and ops.blanked(texts[entity], ops.spans_of(op)) != texts[entity]
        return entity in whole

    found = [holds(op, entity) for op, entity in zip(erasures, of, strict=True)]
    if not any(found):
        return []
    return [
        op
        for op, entity, held in zip(erasures, of, found, strict=True)
        if held or (ops.new_key_of(op) is not None and entity not in keys)
    ]


def still_held_in(copy: Path, erasures: Sequence[Op]) -> bool:
    """Say whether a copy holds anything that some ops erased. One that cannot be read may."""
    try:
        return bool(held_in(copy, erasures))
    except ScrubjayError:
        return True


def copied(source: Path, target: Path) -> None:
    """Copy a store that nobody writes, as `file.copy_to` does."""
    with sqlite.translated(source), _opened(source) as connection:
        file.copy_to(connection, source, target)


def superfluous(store: Path, copies: Iterable[Path], keep: int) -> list[Path]:
    """Return which copies go so that the best `keep` stay: those that share most of the log that the store has now.

    A name or a time says nothing: clocks are set back, and files are renamed. A copy of another store, or one that
    cannot be read, shares nothing.
    """
    shared = {copy: _shared_ops(store, copy) for copy in copies}
    best = sorted(shared, key=lambda copy: (shared[copy], copy.name), reverse=True)
    return best[keep:]


def _shared_ops(store: Path, copy: Path) -> int:
    """Return how many ops a copy and its store have in common; -1 for a copy that cannot be read."""
    try:
        with sqlite.translated(copy), _opened(store) as connection:
            connection.execute("attach ? as copied", (_uri(copy),))
            return int(
                connection.execute(
                    "select count(*) from main.op o join copied.op c on c.device = o.device and c.seq = o.seq"
                    " where c.op_id = o.op_id"
                ).fetchone()[0]
            )
    except ScrubjayError:
        return -1


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
    with (
        sqlite.translated(path),
        contextlib.closing(driver.connect(at, uri=True) if alone else reader(path)) as connection,
    ):
        fetch = sqlite.fetching(connection)
        found = fetch(
            "select o.device, o.seq, o.body from op o left join cause c on c.n = o.cause"
            " where o.type in (?, ?) and o.body is not null"
            f" and {KIND} not in (select value from json_each(?))"
            " and o.device = (select value from meta where key = 'device') order by o.seq",
            (*_ERASING, rows.array(sorted(REPLACING))),
        )
        return with_replaced(fetch, (ops.decode(bytes(body), device=device, seq=seq) for device, seq, body in found))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    file.refuse_foreign(path)
    with contextlib.closing(driver.connect(_uri(path), uri=True, isolation_level=None)) as connection:
        connection.execute("pragma query_only = on")
        yield connection


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"
