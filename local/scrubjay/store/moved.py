"""What was erased only because it stands elsewhere now: moved to another project, or restored under its own id.

Where a copy of before still has it, it is to stay there: the copy does not hold what took its place. Once that is
forgotten too, the copy's own goes with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from scrubjay.store import rows
from scrubjay.store.causes import REPLACING
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis, ulid, ulid_bytes
from scrubjay_shared.records import Op

KIND = "substr(coalesce(c.id, ''), 1, instr(coalesce(c.id, ''), ':') - 1)"
"""Of an op `o` joined to its cause `c`: the cause's kind, "" where it has none."""
_MOVED = "moved:"


def moved_key(event_id: str) -> str:
    """Return the key under which an event is stored again in another project."""
    return f"{_MOVED}{event_id}"


def minted(record_id: str) -> str:
    """Return the id under which an import stores a record of a file: the same each time, and none that is in use."""
    given = ulid_bytes(record_id)
    return ulid(Millis(int.from_bytes(given[:6], "big")), hashlib.sha256(b"import\x1f" + given).digest()[:10])


def with_replaced(fetch: Fetch, erasures: Iterable[Op]) -> list[Op]:
    """Return some erasures, and after each the same of what the erased had taken the place of."""
    found = list(erasures)
    if not found:
        return found
    replaced = {
        str(row[0])
        for row in fetch(
            "select o.entity from op o indexed by op_erases join cause c on c.n = o.cause where o.type in (3, 8)"
            f" and {KIND} in (select value from json_each(?))",
            (rows.array(sorted(REPLACING)),),
        )
    }
    if not replaced:
        return found
    moved = {
        str(row[0]): str(row[1]).removeprefix(_MOVED)
        for row in fetch(
            "select id, dedupe_key from event where dedupe_key >= ? and dedupe_key < ?",
            (_MOVED, f"{_MOVED}\U0010ffff"),
        )
    }

    def before(entity: str) -> list[str]:
        names = [entity]
        for name in names:
            for one in (moved.get(name), minted(name)):
                if one in replaced and one not in names:  # else a draft said so of itself
                    names.append(one)
        return names[1:]

    return [one for op in found for one in (op, *_about(op, before(ops.entity_of(op))))]


def _about(op: Op, entities: Iterable[str]) -> Iterator[Op]:
    for entity in entities:
        yield replace(op, body={**ops.of_id_alone(op.body), ops.ENTITY: ulid_bytes(entity)})
