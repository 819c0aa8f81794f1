"""Reading open conflicts: fields of memories whose versions somebody must decide between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.ops import Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A field of a memory, the value it shows, and those by stamp that lost without having been seen."""

    memory_id: str
    field: int
    shown: Any
    versions: tuple[tuple[Stamp, Any], ...]


class ConflictQueries:
    """Open conflicts of fields."""

    def __init__(self, fetch: Fetch, log: OpLogQueries) -> None:
        self._fetch = fetch
        self._log = log

    def open(self, memory_id: str | None = None) -> list[Conflict]:
        """Return the fields whose open conflicts somebody must decide, of all memories or one, by memory and field."""
        keys = self._fetch(
            "select distinct memory_id, field from conflict join memory on memory.id = memory_id"
            " where ?1 is null or memory_id = ?1"
            " order by memory_id, field",
            (memory_id,),
        )
        found: list[Conflict] = []
        for owner in dict.fromkeys(str(row[0]) for row in keys):
            state = ops.fold(self._log.of_entity(owner))
            for _, key in (row for row in keys if row[0] == owner):
                versions = state.registers[owner, key]
                lost = tuple((stamp, versions[stamp][0]) for stamp in ops.to_settle(versions))
                shown = versions[ops.winner(versions)][0]
                found.append(Conflict(memory_id=owner, field=int(key), shown=shown, versions=lost))
        return found
