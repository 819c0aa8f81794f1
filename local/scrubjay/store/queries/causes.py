"""Reading by cause: which runs and requests there were, and what each of them did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scrubjay.store import rows, sqlite
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

MIN_PREFIX = 6
"""Characters of a cause's ULID that may stand for it, as of a memory's id."""

_OF_MEMORIES = (OpType.MEMORY, OpType.CLAIM, OpType.UNCLAIM, OpType.GRIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """A cause as it is known here, `at` a time: `label` is empty where it came from another device."""

    n: int
    id: str
    label: str
    at: Millis


class CauseQueries:
    """The causes of ops."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def resolve(self, ref: str) -> CauseRow:
        """Return the cause that `ref` names: its id, or the beginning of it, with its kind or without.

        Raises NotFoundError, or ConflictError when a beginning fits several.
        """
        kind, colon, place = ref.strip().rpartition(":")
        low = place.upper()
        found = (
            self._fetch(
                "select n, id, label, at from cause where (?1 = '' or substr(id, 1, instr(id, ':') - 1) = ?1)"
                " and substr(id, instr(id, ':') + 1, length(?2)) = ?2 limit 2",
                (kind.lower() if colon else "", low),
            )
            if len(low) >= MIN_PREFIX and low.isalnum()
            else []
        )
        if len(found) > 1:
            raise ConflictError(f"several causes begin with {ref[:60]}", hint="give more characters of it")
        if not found:
            raise NotFoundError(f"there is no cause {ref[:60]!r}", hint="scrubjay history lists what there is")
        return _row(found[0])

    def page(
        self, *, kind: str | None, after: tuple[int, int] | None, limit: int
    ) -> tuple[list[CauseRow], tuple[int, int] | None]:
        """Return a page of causes, newest first, and where the next one starts."""
        at, n = (None, None) if after is None else after
        found = self._fetch(
            "select n, id, label, at from cause where (?1 is null or (at, n) < (?1, ?2))"
            " and (?3 is null or substr(id, 1, instr(id, ':') - 1) = ?3) order by at desc, n desc limit ?4",
            (at, n, kind, limit + 1),
        )
        shown = [_row(row) for row in found[:limit]]
        return shown, (shown[-1].at, shown[-1].n) if len(found) > limit else None

    def counts(self, causes: Sequence[int]) -> dict[int, dict[int, int]]:
        """Return how many ops of each type each of some causes has, by its arrival number."""
        counts: dict[int, dict[int, int]] = {}
        for cause, op_type, count in self._fetch(
            "select cause, type, count(*) from op where cause in (select value from json_each(?)) group by cause, type",
            (rows.array(causes),),
        ):
            counts.setdefault(cause, {})[op_type] = count
        return counts

    def ops(self, cause: int, *, after: int, limit: int) -> tuple[list[tuple[str, int, Op | None]], int | None]:
        """Return what a cause wrote, a page in the order of its times: (entity, type, the op unless it was erased).

        Of an event there is no op: its row says it. Comes with how many there were until the next page.
        """
        found = self._fetch(
            "select entity, type, body, device, seq from op where cause = ? order by hlc, device, seq limit ? offset ?",
            (cause, limit + 1, after),
        )
        page = [
            (str(entity), int(op_type), None if body is None else ops.decode(body, device=device, seq=seq))
            for entity, op_type, body, device, seq in found[:limit]
        ]
        return page, after + limit if len(found) > limit else None

    def memories(self, cause: int) -> list[str]:
        """Return the ids of the memories that a cause wrote to, those that were forgotten since left out."""
        return [
            str(row[0])
            for row in self._fetch(
                "select distinct entity from op where cause = ? and type in (select value from json_each(?))"
                " and body is not null and entity not in (select id from tombstone) order by entity",
                (cause, rows.array(map(int, _OF_MEMORIES))),
            )
        ]

    def forgotten(self, cause: int) -> int:
        """Return how much of what a cause wrote to, or forgot itself, was forgotten."""
        return int(
            self._fetch(
                "select count(distinct entity) from op where cause = ? and entity in (select id from tombstone)"
                " and entity not in (select id from tombstone_key)",
                (cause,),
            )[0][0]
        )

    def labels(self, causes: Iterable[str]) -> dict[str, str]:
        """Return what some causes were about; those of other devices are absent."""
        return {
            str(cause): str(label)
            for cause, label in self._fetch(
                "select id, label from cause where label <> '' and id in (select value from json_each(?))",
                (rows.array(causes),),
            )
        }


def _row(row: sqlite.Row) -> CauseRow:
    return CauseRow(n=row[0], id=row[1], label=row[2], at=Millis(row[3]))
