"""Reading grips: where a memory is anchored in events, and which events and passages that covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Grip

_UNDER = (
    "with recursive under(owner, id) as (select value, value from json_each(?) union"
    " select u.owner, m.id from under u join memory m on m.superseded_by = u.id"
    f" where {rows.PUT_AWAY_INTO})"
)
"""Some memories with those that were put away into them, directly or through others."""

_OF_OWNERS = (
    f"{_UNDER} select u.owner, {rows.prefixed(rows.GRIP_COLUMNS, 'g')} from under u join grip g on g.memory_id = u.id"
    " order by g.created_at, g.id"
)


class GripQueries:
    """The grips of memories and of events."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def of_memories(self, ids: Sequence[str]) -> dict[str, tuple[Grip, ...]]:
        """Return the grips of some memories and of those put away into them, in the order of their making."""
        if not ids:
            return {}
        found: dict[str, list[Grip]] = {}
        for owner, *row in self._fetch(_OF_OWNERS, (rows.array(ids),)):
            found.setdefault(owner, []).append(rows.grip_of(tuple(row)))
        return {memory_id: tuple(grips) for memory_id, grips in found.items()}

    def by_id(self, grip_id: str) -> Grip | None:
        """Return a grip of a memory, None when there is none of that id."""
        found = self._fetch(f"select {rows.GRIP_COLUMNS} from grip where id = ?", (grip_id,))
        return rows.grip_of(found[0]) if found else None

    def of_memory(self, memory_id: str) -> list[Grip]:
        """Return the grips of a memory."""
        return [
            rows.grip_of(row)
            for row in self._fetch(
                f"select {rows.GRIP_COLUMNS} from grip where memory_id = ? order by id", (memory_id,)
            )
        ]

    def anchored(self, grips: Mapping[str, Sequence[Grip]]) -> set[str]:
        """Return which of some grips, by memory, are there already or were forgotten."""
        ids = [grip.id for found in grips.values() for grip in found]
        return {
            str(row[0])
            for row in self._fetch(
                "select id from grip where id in (select value from json_each(?1)) union"
                " select id from tombstone where id in (select value from json_each(?1))",
                (rows.array(ids),),
            )
        }

    def sources(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the events that the grips cover of some memories and of those put away into them, in their order."""
        found: dict[str, dict[str, None]] = {}
        for owner, *row in self._fetch(_OF_OWNERS, (rows.array(ids),)):
            found.setdefault(owner, {}).update(dict.fromkeys(self.covered(rows.grip_of(tuple(row)))))
        return {memory_id: tuple(covered) for memory_id, covered in found.items()}

    def covered(self, grip: Grip) -> list[str]:
        """Return the events that a grip covers, in order."""
        if grip.event_id_start == grip.event_id_end:
            return [grip.event_id_start]
        return [row[0] for row in self._fetch(rows.COVERED, (grip.event_id_start, grip.event_id_end))]

    def learned_of(self, events: Iterable[str]) -> dict[str, str]:
        """Return what was learned of some events and nothing else, and holds, with the event that ends its place."""
        found = self._fetch(
            "select g.memory_id, g.event_id_end from grip g join memory m on m.id = g.memory_id"
            " and m.kind = 'observation' and m.valid_to is null and m.superseded_by is null"
            " where g.event_id_end in (select value from json_each(?1)) and not exists (select 1 from grip h"
            "  where h.memory_id = g.memory_id and h.event_id_end not in (select value from json_each(?1)))",
            (rows.array(events),),
        )
        return {str(memory_id): str(event_id) for memory_id, event_id in found}

    def passages(self, grips: Iterable[Grip]) -> dict[str, list[tuple[int, int]]]:
        """Return the spans of each event's own text that some grips cover."""
        found: dict[str, list[tuple[int, int]]] = {}
        for grip in grips:
            if grip.event_id_start == grip.event_id_end:  # whether it has come here yet or not
                if grip.span_start < grip.span_end:
                    found.setdefault(grip.event_id_start, []).append((grip.span_start, grip.span_end))
                continue
            at = 0
            for event_id in self.covered(grip):
                length = len(self._fetch("select text from event where id = ?", (event_id,))[0][0])
                start, end = max(grip.span_start - at, 0), min(grip.span_end - at, length)
                if start < end:
                    found.setdefault(event_id, []).append((start, end))
                at += length + 1  # the newline between two events
        return found

    def holds(self, grip: Grip) -> bool:
        """Say whether the events of a grip say its excerpt at its place, and not only the grip."""
        texts = [self._fetch("select text from event where id = ?", (event_id,)) for event_id in self.covered(grip)]
        said = "\n".join(found[0][0] for found in texts if found)
        return bool(grip.excerpt) and said[grip.span_start : grip.span_end] == grip.excerpt

    def over(self, event_id: str, spans: Sequence[tuple[int, int]] | None) -> list[Grip]:
        """Return the grips that cover any of some spans of an event's text; of all of it when `spans` is None."""
        found = self._fetch(
            f"select {rows.prefixed(rows.GRIP_COLUMNS, 'g')} from grip g join event a on a.id = g.event_id_start"
            " join event b on b.id = g.event_id_end and b.session_id = a.session_id"
            " join event e on e.id = ? and e.session_id = a.session_id"
            " and (e.ts, e.seq, e.id) between (a.ts, a.seq, a.id) and (b.ts, b.seq, b.id)",
            (event_id,),
        )
        return [
            grip
            for grip in map(rows.grip_of, found)
            if spans is None
            or any(
                start < high and low < end
                for low, high in self.passages([grip]).get(event_id, ())
                for start, end in spans
            )
        ]
