"""Reading open conflicts: fields of memories whose versions somebody must decide between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay.intervals import LONGEST_DAY_MS
from scrubjay.store import rows
from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.ops import Stamp

_HAPPENED = (
    "m.valid_from is not null and m.valid_to is not null"
    f" and (m.valid_to - m.valid_from <= {LONGEST_DAY_MS} or m.kind = 'observation' and m.valid_to <= m.created_at)"
)
"""Whether the bounds of a memory m that nothing superseded are when something happened: see `intervals.happened`."""

NOTED = "instr(m.metadata, '\"may_supersede\"') > 0"
"""Which memories may have a note that they may take the place of others: in the words of the index `memory_doubt`."""


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
            state = ops.fold(self._log.whole([owner])[owner])
            for _, key in (row for row in keys if row[0] == owner):
                versions = state.registers[owner, key]
                lost = tuple((stamp, versions[stamp][0]) for stamp in ops.to_settle(versions))
                shown = versions[ops.winner(versions)][0]
                found.append(Conflict(memory_id=owner, field=int(key), shown=shown, versions=lost))
        return found

    def questioned(self, key: str, ids: Sequence[str], at: int, *, but: str | None = None) -> dict[str, str]:
        """Return, of some memories, those whose place another may take at a time: the id of the newest such, by theirs.

        `key` is the one of `doubts`; what is noted under `but` too is left out. What was put away into another is told
        still. What ended to hold by that time, was not said yet, or waits for the person's review, questions nothing:
        else an agent could take the person's word out of use by denying it.
        """
        found = self._fetch(
            # Named, since in a large store SQLite takes the index of the time, and reads all memories for each recall.
            "select e.value, m.id from memory m indexed by memory_doubt, json_each(m.metadata, '$.' || ?1) e"
            f" where {NOTED} and json_type(m.metadata, '$.' || ?1) = 'array'"
            f" and (m.superseded_by is null and m.archived_at is null or {rows.PUT_AWAY_INTO})"
            " and (m.review is null or m.review not like 'waiting%')"
            f" and m.created_at <= ?3 and (m.valid_to is null or m.valid_to > ?3 or {_HAPPENED})"
            " and not exists (select 1 from json_each(m.metadata, '$.' || ?4) g where g.value = e.value)"
            " and e.value in (select value from json_each(?2)) order by m.created_at, m.n",
            (key, rows.array(ids), at, but),
        )
        return {str(old): str(new) for old, new in found}

    def replaced_turns(self, ids: Sequence[str], before: int) -> dict[str, str]:
        """Return, of some events of which all that was learned had ended before a time, the memory that holds since.

        That is what took the place of the last of it, or of that again. A turn of which nothing was learned, or
        something holds still or was put away into another memory, is absent.
        """
        read = self._fetch(
            "select e.value, m.superseded_by, m.archived_at is null and m.valid_to < ?2, m.valid_to"
            " from json_each(?1) e"
            " join grip g on g.event_id_start = e.value or g.event_id_end = e.value"
            " join memory m on m.id = g.memory_id order by m.valid_to",
            (rows.array(ids), before),
        )
        holding = {str(event) for event, successor, ended, _ in read if successor is None or not ended}
        found: dict[str, str] = {}
        for event, successor, _, _ in read:
            if event not in holding and (current := self._current(str(successor), before)) is not None:
                found[str(event)] = current
        return found

    def replaced(self, ids: Sequence[str], before: int) -> dict[str, str]:
        """Return, of some memories whose place another took, the one that holds before a time; absent where none does.

        It is what took its place, or the place of that again.
        """
        read = self._fetch(
            "select id, superseded_by from memory"
            " where id in (select value from json_each(?1)) and superseded_by is not null",
            (rows.array(ids),),
        )
        found = ((str(old), self._current(str(successor), before)) for old, successor in read)
        return {old: current for old, current in found if current is not None and current != old}

    def _current(self, memory_id: str, before: int) -> str | None:
        """Return what had taken the place of a memory in the end before a time, itself if nothing; None: none holds."""
        passed: set[str] = set()
        while memory_id not in passed:
            passed.add(memory_id)
            found = self._fetch(
                f"select superseded_by, coalesce(valid_to < ?2, 0) and not (superseded_by is null and {_HAPPENED}),"
                " archived_at is not null from memory m where id = ?1 and created_at < ?2",
                (memory_id, before),
            )
            if not found or (found[0][1] and found[0][0] is None):
                return None
            successor, ended, put_away = found[0]
            if successor is None or not (ended or put_away):
                return memory_id
            memory_id = str(successor)
        return None

    def doubts(self, key: str) -> list[tuple[str, str]]:
        """Return (new, old) of the memories whose metadata say under `key` that they may take the place of others.

        Newest first. Where one of the two was replaced or archived since, nothing is left to decide.
        """
        found = self._fetch(
            "select m.id, o.id from memory m indexed by memory_doubt, json_each(m.metadata, '$.' || ?1) e"
            " join memory o on o.id = e.value"
            f" where {NOTED} and json_type(m.metadata, '$.' || ?1) = 'array'"
            " and m.superseded_by is null and m.archived_at is null and o.superseded_by is null"
            " and o.archived_at is null order by m.created_at desc, m.n desc, o.n",
            (key,),
        )
        return [(str(new), str(old)) for new, old in found]
