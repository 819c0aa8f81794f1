"""Going on as another device, or as the author of what others wrote: ops change hands, their times and ids stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from scrubjay.store.projections.memories import OF_MEMORIES
from scrubjay.store.projections.projections import Projections
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

_READDRESSED = 64
"""Ops whose bytes are in memory at one time while they change hands: one may be megabytes long."""


class Incarnation:
    """Who this store is in the log."""

    def __init__(self, context: WriteContext, projections: Projections) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._projections = projections

    def renew(self, device: str, after_seq: int) -> int:
        """Go on as another device: own ops after `after_seq` become ops 1, 2, … of `device`. Returns how many.

        The others stay with the device that they were sent as, which this store then treats as any other device. Times
        and op ids stay, so that the same change sent under both is the same change.
        """
        old = self._context.head.device
        mine = [
            (op_type, seq, None if body is None else ops.decode(body, device=old, seq=seq), entity)
            for op_type, seq, body, entity in self._fetch(
                "select type, seq, body, entity from op where device = ? and seq > ? order by seq", (old, after_seq)
            )
        ]
        moved = {stamp for _, _, op, _ in mine if op is not None for stamp in ops.stamps_of(op)}
        acknowledged = self._acknowledged(old, after_seq)
        self._run("update op set device = ?1, seq = seq - ?2 where device = ?3 and seq > ?2", (device, after_seq, old))
        changed = []
        for op_type, seq, op, entity in mine:
            if op is None:
                continue
            new = ops.readdressed(op, device, seq - after_seq, moved)
            if op_type == OpType.COUNT:
                _, total, _ = ops.total_of(op)
                new = ops.counted(new, max(total - acknowledged.get(entity, 0), 0))
            if new.body != op.body:
                changed.append((ops.encode(new), device, new.seq))
        self._run_many("update op set body = ? where device = ? and seq = ?", changed)
        self._run_many(
            "update access set total = max(total - ?, 0) where memory_id = ?",
            [(total, memory_id) for memory_id, total in acknowledged.items()],
        )
        self._run(
            "update event set (device, seq) = (select o.device, o.seq from op o where o.entity = event.id"
            " and o.type = ? order by o.device, o.seq limit 1) where device = ? and seq > ?",
            (int(OpType.EVENT), old, after_seq),
        )
        self._context.set_meta("device", device)
        self._context.note_rewritten()
        head = self._context.head
        head.device, head.seq = device, mine[-1][1] - after_seq if mine else 0
        entities = list(
            dict.fromkeys(entity for op_type, _, op, entity in mine if op is not None and op_type in OF_MEMORIES)
        )
        self._projections.memories.project_again(entities)
        return len(mine)

    def adopt(self, of: Iterable[str] | None = None) -> int:
        """Make every op of every device, or of the devices `of`, this one's own. Returns how many changed hands.

        For an account that does not know them: they go to it as this device's, in the order of their times, under ids
        and times that stay. What they counted becomes this device's count. What is quarantined stays, and is sent by
        whoever can read it. What was said here under a former id is distilled here; what came from others is not.
        """
        own = self._context.head.device
        every = {str(row[0]) for row in self._fetch("select distinct device from op")} - {own}
        if of is None:
            self._run("insert or ignore into unlearned (n) select n from event where device <> ?", (own,))
            return self._take(dict.fromkeys(every, 0), ops.adopted)
        theirs = {bytes.fromhex(one) for one in every & set(of)}
        return self._take(dict.fromkeys(every & set(of), 0), partial(ops.adopted, of=theirs))

    def adopt_rest(self, after: Mapping[str, int]) -> int:
        """Make the ops of some devices this one's own that come after the place given for each. Returns how many.

        For an account that knows these devices, and whose server has their lanes up to there alone. Another machine
        may give it the rest one day: so what changes hands comes just after what it was, and this device's own ops,
        none of which was sent yet, just after that.
        """
        own, ends = self._context.head.device, self._context.queries.ops.ends()
        rest = {device: seq for device, seq in after.items() if device in ends and ends[device][0] > seq}
        rest.pop(own, None)
        if not rest:
            return 0
        moved = {
            (bytes.fromhex(device), *stamp)
            for device, after_seq in (*rest.items(), (own, 0))
            for seq, body in self._fetch(
                "select seq, body from op where device = ? and seq > ? and type in (?, ?) and body is not null",
                (device, after_seq, int(OpType.MEMORY), int(OpType.CLAIM)),
            )
            for stamp in ops.stamps_of(ops.decode(body, device=device, seq=seq))
        }
        head = self._context.head
        latest = max(head.hlc, *(ends[device][2] for device in rest))
        head.hlc = Hlc(min(latest + 1, ops.MAX_HLC))
        return self._take(rest, partial(ops.taken_over, moved=moved))

    def _take(self, after: Mapping[str, int], changed: Callable[[Op, str, int], Op]) -> int:
        """Put the ops of devices after a place of each at the end of the own log, and say all in it as `changed`."""
        own, at = self._context.head.device, 0
        self._run("create temp table leaving (device text primary key, after integer)")
        self._run_many("insert into temp.leaving values (?, ?)", sorted(after.items()))
        self._take_counts(after)
        while found := self._fetch(
            "select device, seq, body from op where device = ? and seq > ? order by seq limit ?",
            (own, at, _READDRESSED),
        ):
            for device, seq, body in found:
                self._readdress((device, seq, body), own, seq, changed)
            at = found[-1][1]
        adopted = self._adopt_others(own, at, changed)
        self._run(
            "update event set (device, seq) = (select o.device, o.seq from op o where o.entity = event.id"
            " and o.type = ? order by o.device, o.seq limit 1) from temp.leaving l"
            " where event.device = l.device and event.seq > l.after",
            (int(OpType.EVENT),),
        )
        self._run("delete from heard where device in (select device from temp.leaving where after = 0)")
        self._run("drop table temp.leaving")
        self._context.note_rewritten()
        self._context.head.seq = at + adopted
        self._projections.project_all(tell=True)
        return adopted

    def _take_counts(self, after: Mapping[str, int]) -> None:
        """Make what the ops that change hands counted this device's count, beside what those that stay say of it."""
        stays = [
            (entity, total, device)
            for device, seq in after.items()
            if seq
            for entity, total in self._acknowledged(device, seq).items()
        ]
        self._run_many("update counted set total = max(total - ?2, 0) where memory_id = ?1 and device = ?3", stays)
        self._run(
            "insert into access (memory_id, total, last, logged)"
            " select memory_id, sum(total), max(last), 0 from counted where device in (select device from temp.leaving)"
            " group by memory_id"
            " on conflict do update set total = total + excluded.total, last = max(last, excluded.last), logged = 0"
        )
        self._run(
            "update op set body = null where type = ?"
            " and exists (select 1 from temp.leaving l where l.device = op.device and l.after < op.seq)",
            (int(OpType.COUNT),),
        )

    def _adopt_others(self, own: str, last: int, changed: Callable[[Op, str, int], Op]) -> int:
        """Put the ops that change hands in this one's log after `last`. Returns how many.

        Their order is written down first, as it is by times that no index follows, and then a page is held at a time.
        """
        self._run("create temp table adopting (place integer primary key, device text, seq integer)")
        self._run(
            "insert into temp.adopting select row_number() over (order by o.hlc, o.device, o.seq), o.device, o.seq"
            " from temp.leaving l join main.op o on o.device = l.device and o.seq > l.after"
        )
        place = 0
        while found := self._fetch(
            "select a.place, o.device, o.seq, o.body from temp.adopting a join main.op o on o.device = a.device"
            " and o.seq = a.seq where a.place > ? order by a.place limit ?",
            (place, _READDRESSED),
        ):
            for at, device, seq, body in found:
                self._readdress((device, seq, body), own, last + at, changed)
            place = found[-1][0]
        self._run("drop table temp.adopting")
        return place

    def _readdress(
        self, found: tuple[str, int, bytes | None], own: str, at: int, changed: Callable[[Op, str, int], Op]
    ) -> None:
        """Put an op (device, seq, body) at place `at` of this device's log, as `changed` says it."""
        device, seq, body = found
        if body is not None:
            op = changed(ops.decode(body, device=device, seq=seq), own, at)
            new = ops.encode(op)
            if device != own or new != body:
                self._run(
                    "update op set device = ?, seq = ?, hlc = ?, body = ? where device = ? and seq = ?",
                    (own, at, op.hlc, new, device, seq),
                )
        elif device != own:
            self._run("update op set device = ?, seq = ? where device = ? and seq = ?", (own, at, device, seq))

    def _acknowledged(self, device: str, upto: int) -> dict[str, int]:
        """Return what a device's log up to a place says of how often it recalled each memory that is still there."""
        found: dict[str, int] = {}
        for entity, seq, body in self._fetch(
            "select entity, seq, body from op where device = ? and seq <= ? and type = ? and body is not null",
            (device, upto, int(OpType.COUNT)),
        ):
            counter, total, _ = ops.total_of(ops.decode(body, device=device, seq=seq))
            if counter == ops.Counter.ACCESS:
                found[entity] = max(found.get(entity, 0), total)
        return found
