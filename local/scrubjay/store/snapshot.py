"""The store as it was at one moment, read from end to end while others write. Reads only.

SQLite gives a read transaction the commits before its first read and none after, without holding up a writer; what is
read is streamed, so that memory does not grow with the store. The log file cannot be cut back meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from scrubjay.store import rows, sqlite
from scrubjay.store.queries.op_log import ERASED
from scrubjay_io.sqlite import Connection
from scrubjay_shared import ops
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Event, Grip, Memory

STEP = 16
"""Rows fetched at a time: a hop between threads each, and texts of 8 MB do not pile up."""

CHUNK = 200
"""Memories whose names and grips are read together."""

_EVENT = int(OpType.EVENT)

_SPEAKS = f"o.device = e.device and o.seq = e.seq and o.entity = e.id and o.type = {_EVENT} and o.body is null"
"""That op o is the one event e says again byte for byte, together with its id and its time."""


class SnapshotEvent(NamedTuple):
    """An event, and the (seq, id, hlc) of the op that it gives again with its cause; None when it does not."""

    event: Event
    stamp: tuple[int, bytes, int] | None
    cause: str | None = None


class Known(NamedTuple):
    """A memory with its other names and its grips."""

    memory: Memory
    aliases: tuple[str, ...]
    grips: tuple[Grip, ...]


class Snapshot:
    """What one read transaction sees. Made by `Store.snapshot`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read_at = time.monotonic()
        self._is_given_up = False

    @property
    def idle_seconds(self) -> float:
        """Since when whoever reads has not asked for more."""
        return time.monotonic() - self._read_at

    async def give_up(self) -> None:
        """End the read under way: something was erased, and who reads does not go on."""
        self._is_given_up = True
        await self._connection.close()

    async def _rows(self, sql: str, params: sqlite.Params = ()) -> AsyncIterator[sqlite.Row]:
        if self._is_given_up:
            raise self._given_up()
        try:
            async with self._connection.execute(sql, params) as cursor:
                cursor.iter_chunk_size = STEP
                async for row in cursor:
                    self._read_at = time.monotonic()
                    yield tuple(row)
        except Exception:  # a closed connection says so in several ways
            if self._is_given_up:
                raise self._given_up() from None
            raise

    @staticmethod
    def _given_up() -> UnavailableError:
        return UnavailableError(
            "the read was ended: it stood still while something in it was forgotten", hint="begin it again"
        )

    async def events(self) -> AsyncIterator[SnapshotEvent]:
        """Yield every event that was not forgotten, in the order of their times."""
        columns = rows.prefixed(rows.EVENT_COLUMNS, "e")
        async for row in self._rows(
            f"select {columns}, o.seq, o.op_id, o.hlc, c.id from event e left join op o on {_SPEAKS}"
            " left join cause c on c.n = o.cause where not e.forgotten order by e.ts, e.seq, e.id"
        ):
            stamp = None if row[13] is None else (int(row[13]), bytes(row[14]), int(row[15]))
            yield SnapshotEvent(rows.event_of(row[:13]), stamp, row[16])

    async def memories(self) -> AsyncIterator[Known]:
        """Yield every memory, oldest first."""
        columns = rows.prefixed(rows.MEMORY_COLUMNS, "m")
        held: list[Memory] = []
        async for row in self._rows(
            f"select {columns}, {rows.ACCESSES} from memory m left join access a on a.memory_id = m.id"
            " order by m.created_at, m.id"
        ):
            held.append(rows.memory_of(row))
            if len(held) == CHUNK:
                for known in await self._known(held):
                    yield known
                held.clear()
        for known in await self._known(held):
            yield known

    async def _known(self, memories: list[Memory]) -> list[Known]:
        ids = rows.array(memory.id for memory in memories)
        aliases: dict[str, list[str]] = {}
        async for name, memory_id in self._rows(
            "select name, memory_id from name where not canonical"
            " and memory_id in (select value from json_each(?)) order by created_at, name",
            (ids,),
        ):
            aliases.setdefault(memory_id, []).append(name)
        grips: dict[str, list[Grip]] = {}
        async for row in self._rows(
            f"select {rows.GRIP_COLUMNS} from grip where memory_id in (select value from json_each(?))"
            " order by created_at, id",
            (ids,),
        ):
            grips.setdefault(row[1], []).append(rows.grip_of(row))
        return [
            Known(memory, tuple(aliases.get(memory.id, ())), tuple(grips.get(memory.id, ()))) for memory in memories
        ]

    async def log(self) -> AsyncIterator[tuple[str, int, bytes | None]]:
        """Yield the ops that no event of `events` gives again: (device, seq, the op's bytes, or None if erased)."""
        columns = rows.prefixed(rows.EVENT_COLUMNS, "e")
        async for device, seq, op_type, op_id, hlc, body, cause, *event in self._rows(
            f"select o.device, o.seq, o.type, o.op_id, o.hlc, o.body, c.id, {columns} from op o"
            f" left join event e on e.id = o.entity and o.type = {_EVENT} and o.body is null and not e.forgotten"
            f" left join cause c on c.n = o.cause"
            f" where e.id is null or not ({_SPEAKS}) order by o.device, o.seq"
        ):
            data = body
            if op_type == _EVENT and body is None and event[0] is not None:
                data = ops.encode_event_body(ops.caused(rows.event_body(event), cause), op_id, hlc)
            yield device, seq, None if op_type == ERASED or data is None else bytes(data)
        async for device, seq, data in self._rows("select device, seq, op from parked order by device, seq"):
            yield device, seq, bytes(data)
