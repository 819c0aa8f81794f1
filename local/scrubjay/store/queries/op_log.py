"""Reading the op log: what it says of an entity, where it ends, what it must send, what it could not apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.ops.schema import FIELDS
from scrubjay_shared.records import Op, Scope

_ENDS = (
    "with recursive known(device) as (select min(device) from op union all"
    " select (select min(op.device) from op where op.device > known.device) from known where known.device is not null)"
    " select op.device, op.seq, op.op_id, op.hlc from known join op on op.device = known.device"
    " and op.seq = (select max(last.seq) from op last where last.device = known.device)"
)
"""The last op of each device: (device, seq, op id, hlc). Plain `distinct` and `max(hlc)` would read the whole log."""

ERASED = 0
"""The type of an op that was erased before it came here: all that is known of it is its place."""

_ERASING = frozenset({OpType.FORGET, OpType.BLANK})

_EVENT = int(OpType.EVENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Up to where a copy of the store speaks.

    `ends` is the last op (seq, op id) of each device, `received` how many of its ops were received by then: gaps may be
    filled later. `events` is the arrival number of the last event, `rewritten` how often earlier ones were changed.
    """

    ends: Mapping[str, tuple[int, bytes]]
    events: int
    received: Mapping[str, int] = field(default_factory=dict)
    rewritten: int = 0


class Outgoing(NamedTuple):
    """One op as sync sends it. `data` are its encoded bytes, None when it was erased.

    `entity` is what decides the scope: the op's own, but the memory's for what is about a grip. `project` is the
    project that entity was first written with: of an event its own, of a memory in scope project its resource id; None
    for everything else, and where it is no longer known (the entity was erased). A tuple, because a million of them are
    made when a store is first sent.
    """

    seq: int
    type: int
    entity: str
    data: bytes | None
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """An op of another device that this version could not apply, and why."""

    device: str
    seq: int
    why: str


class OpLogQueries:
    """The ops of this device and of others."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def of_entity(self, entity: str) -> list[Op]:
        """Return the ops of an entity that were not erased."""
        return [
            ops.decode(body, device=device, seq=seq)
            for device, seq, body in self._fetch(
                "select device, seq, body from op where entity = ? and body is not null", (entity,)
            )
        ]

    def of_entities(self, ids: Iterable[str]) -> dict[str, list[Op]]:
        """Return the ops of some entities that were not erased; an entity without any is absent."""
        return self._of_entities("op where body is not null", ids)

    def whole(self, ids: Iterable[str]) -> dict[str, list[Op]]:
        """Return the ops of some entities that say more than what they had seen; an entity without any is absent.

        They show what all ops of an entity show: what others had seen is emptied when these come.
        """
        return self._of_entities("op indexed by op_whole where body is not null and hollow = 0", ids)

    def _of_entities(self, source: str, ids: Iterable[str]) -> dict[str, list[Op]]:
        found: dict[str, list[Op]] = {}
        for entity, device, seq, body in self._fetch(
            f"select entity, device, seq, body from {source} and entity in (select value from json_each(?))",
            (rows.array(ids),),
        ):
            found.setdefault(entity, []).append(ops.decode(body, device=device, seq=seq))
        return found

    def emptied_at(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the greatest stamp among the writes to some memories that have no value left; others are absent."""
        return {
            str(entity): int(hlc)
            for entity, hlc in self._fetch(
                "select entity, max(hlc) from op indexed by op_hollow where hollow = 1"
                " and entity in (select value from json_each(?)) group by entity",
                (rows.array(ids),),
            )
        }

    def history(self, entity: str) -> list[tuple[Op | None, int, str, int]]:
        """Return what the log says of an entity, oldest first: (op, or None when it was erased; type; device; seq)."""
        return [
            (ops.decode(body, device=device, seq=seq) if body is not None else None, op_type, device, seq)
            for device, seq, op_type, body in self._fetch(
                "select device, seq, type, body from op where entity = ? order by hlc, device, seq", (entity,)
            )
        ]

    def forgotten(self, ids: Iterable[str]) -> set[str]:
        """Return which of some ids have a tombstone."""
        if not self._fetch("select 1 from tombstone limit 1"):
            return set()
        return {
            str(row[0])
            for row in self._fetch(
                "select id from tombstone where id in (select value from json_each(?))", (rows.array(ids),)
            )
        }

    def ends(self) -> dict[str, tuple[int, bytes, Hlc]]:
        """Return the (seq, op id, stamp) of the last op of each device."""
        return {str(device): (int(seq), bytes(op_id), Hlc(hlc)) for device, seq, op_id, hlc in self._fetch(_ENDS)}

    def position(self) -> Position:
        """Return where the log ends."""
        return Position(
            ends={device: (seq, op_id) for device, (seq, op_id, _) in self.ends().items()},
            events=int(self._fetch("select coalesce(max(n), 0) from event")[0][0]),
            received=self._received(),
            rewritten=self._rewritten(),
        )

    def _received(self) -> dict[str, int]:
        return {str(device): int(count) for device, count in self._fetch("select device, ops from heard")}

    def _rewritten(self) -> int:
        found = self._fetch("select value from meta where key = 'rewritten'")
        return int(found[0][0]) if found else 0

    def changed_since(self, position: Position, own: str) -> list[str] | None:
        """Return the ids of memories that ops after a position are about, or that show otherwise because of them.

        None when the log up to there is not the one that the position was taken of (a backup was restored, a gap was
        filled), or when something was erased since. `own` is this device.
        """
        received = self._received()
        if position.rewritten != self._rewritten():
            return None
        for device, (seq, op_id) in position.ends.items():
            if self._fetch("select op_id from op where device = ? and seq = ?", (device, seq)) != [(op_id,)]:
                return None
        found: dict[str, None] = {}
        names: set[str] = set()
        for device in self.ends():
            after = position.ends.get(device, (0, b""))[0]
            new = received.get(device, 0) - position.received.get(device, 0)
            later = self._fetch("select count(*) from op where device = ? and seq > ?", (device, after))
            if new != (0 if device == own else later[0][0]):
                return None
            for entity, op_type in self._fetch(
                "select distinct entity, type from op where device = ? and seq > ? and type <> ?",
                (device, after, OpType.EVENT),
            ):
                if op_type in _ERASING:
                    return None
                found[str(entity)] = None
            for seq, body in self._fetch(
                "select seq, body from op where device = ? and seq > ? and type in (?, ?) and body is not null",
                (device, after, OpType.CLAIM, OpType.UNCLAIM),
            ):
                names.add(ops.name_of(ops.decode(body, device=device, seq=seq)))
        groups = names | {parent for name in names if (parent := rows.parent_of(name)) is not None}
        for (memory_id,) in self._fetch(
            "select memory_id from claim where name in (select value from json_each(?)) union"
            " select memory_id from grip where event_id_start <> event_id_end",
            (rows.array(groups),),
        ):
            found[str(memory_id)] = None
        return list(found)

    def unsent(self, device: str, after_seq: int, limit: int) -> list[Outgoing]:
        """Return up to `limit` of a device's ops after `after_seq`, in order."""
        return self._outgoing("o.device = ? and o.seq > ? order by o.seq limit ?", (device, after_seq, limit))

    def between(self, device: str, low: int, high: int) -> list[Outgoing]:
        """Return the ops of a device from `low` to `high`, both included, in order; those that never came are absent.

        Those that could not be applied here are among them.
        """
        found = self._outgoing("o.device = ? and o.seq between ? and ? order by o.seq", (device, low, high))
        for seq, entity, data in self._fetch(
            "select seq, entity, op from parked where device = ? and seq between ? and ?", (device, low, high)
        ):
            found.append(Outgoing(seq=seq, type=ERASED, entity=entity or "", data=data, project=None))
        return sorted(found, key=lambda one: one.seq)

    def _outgoing(self, where: str, params: Sequence[Any]) -> list[Outgoing]:
        columns = rows.prefixed(rows.EVENT_COLUMNS, "e")
        projects: dict[str, str | None] = {}
        found: list[Outgoing] = []
        for seq, op_type, entity, op_id, hlc, body, device, cause, forgotten, *row in self._fetch(
            f"select o.seq, o.type, o.entity, o.op_id, o.hlc, o.body, o.device, c.id, e.forgotten, {columns}"
            f" from op o left join event e on e.id = o.entity left join cause c on c.n = o.cause where {where}",
            params,
        ):
            about, data, is_event = entity, body, row[0] is not None
            if op_type == _EVENT and body is None and is_event and not forgotten:
                data = ops.encode_event_body(ops.caused(rows.event_body(row), cause), op_id, hlc)
            elif op_type == OpType.FORGET and body is not None:
                about = ops.owner_of(ops.decode(body, device=device, seq=seq)) or entity
            if not is_event and about not in projects:
                projects[about] = self._project_of(about)
            found.append(Outgoing(seq, op_type, about, data, row[4] if is_event else projects[about]))
        return found

    def away(
        self, outgoing: Sequence[Outgoing], placed: Mapping[str, bytes], bound: Mapping[str, bytes]
    ) -> frozenset[int]:
        """Return the places of ops about memories that showed, when these were written, where they do not live.

        That is in no project that is `bound` to the scope in which they are `placed`. A forget says nothing of a place.
        What moves a memory away, without a word, goes where it was: those there learn that it left.
        """
        own = [one for one in outgoing if one.entity in placed and one.type not in _ERASING and one.data is not None]
        logs = self.of_entities({one.entity for one in own})
        roaming = {entity for entity, log in logs.items() if not _stays(log, placed[entity], bound)}
        found: set[int] = set()
        for one in own:
            if one.entity in roaming:
                new = ops.decode(one.data or b"", device="", seq=one.seq)
                is_mute = new.type == OpType.MEMORY and not ops.WORDS & new.body[FIELDS].keys()
                upto = new.hlc - is_mute
                then = ops.view(ops.fold(op for op in logs[one.entity] if op.hlc <= upto)).memories.get(one.entity)
                project = None if then is None or then.scope is not Scope.PROJECT else then.resource_id
                if then is not None and (project is None or bound.get(project) != placed[one.entity]):
                    found.add(one.seq)
        return frozenset(found)

    def _project_of(self, memory_id: str) -> str | None:
        """Return the project that a memory was first written for."""
        state = ops.fold(self.whole([memory_id]).get(memory_id, ()))

        def first(key: Field) -> Any:
            versions = state.registers.get((memory_id, int(key)))
            return versions[min(versions)][0] if versions else None

        project = first(Field.RESOURCE_ID) if first(Field.SCOPE) == Scope.PROJECT else None
        return project if isinstance(project, str) else None

    def op_ids(self, device: str) -> dict[int, bytes]:
        """Return the ids of a device's ops that are held here, by place."""
        rows = self._fetch("select seq, op_id from op where device = ?", (device,))
        return {int(seq): bytes(op_id) for seq, op_id in rows}

    def first_op(self, entity: str, device: str) -> int | None:
        """Return the place of an entity's first op in a device's log; None when another device wrote of it too."""
        rows = self._fetch("select device, min(seq) from op where entity = ? group by device", (entity,))
        return int(rows[0][1]) if len(rows) == 1 and rows[0][0] == device else None

    def writes_of(self, device: str) -> list[tuple[int, str, bytes]]:
        """Return the writes to memories of a device that were not erased: (seq, entity, op)."""
        return [
            (int(seq), str(entity), bytes(body))
            for seq, entity, body in self._fetch(
                "select seq, entity, body from op where device = ? and type = ? and body is not null order by seq",
                (device, int(OpType.MEMORY)),
            )
        ]

    def heard(self) -> list[str]:
        """Return the devices of which ops were received."""
        return sorted(self._received())

    def writers(self, entity: str) -> set[str]:
        """Return the devices that wrote of an entity."""
        return {str(row[0]) for row in self._fetch("select distinct device from op where entity = ?", (entity,))}

    def ids_at(self, device: str, run: Sequence[int]) -> dict[int, bytes]:
        """Return the ids of those ops of a device, among some places, that are held and were not erased."""
        return {
            int(seq): bytes(op_id)
            for seq, op_id in self._fetch(
                "select seq, op_id from op where device = ? and seq in (select value from json_each(?)) and type <> ?",
                (device, rows.array(run), ERASED),
            )
        }

    def quarantined(self) -> list[Quarantined]:
        """Return the ops of other devices that this version could not apply."""
        return [
            Quarantined(device=str(device), seq=int(seq), why=str(why))
            for device, seq, why in self._fetch("select device, seq, why from parked order by device, seq")
        ]


def _stays(log: Sequence[Op], scope: bytes, bound: Mapping[str, bytes]) -> bool:
    """Whether no write to a memory ever put it anywhere but into projects that are bound to a scope."""
    said = [op.body[FIELDS] for op in log if op.type == OpType.MEMORY]
    scopes = {fields[Field.SCOPE] for fields in said if Field.SCOPE in fields}
    projects = {fields[Field.RESOURCE_ID] for fields in said if Field.RESOURCE_ID in fields}
    return scopes == {Scope.PROJECT.value} and all(bound.get(project) == scope for project in projects)
