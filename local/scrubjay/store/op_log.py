"""Appending to the op log: stamps, places and the bytes of what this device writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scrubjay.store import checksums, row_inserts
from scrubjay.store.causes import Cause, Causes
from scrubjay.store.received import OP_VALUES
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, field_stamp, millis_of, tick, uuid7
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

_EVENT = int(OpType.EVENT)


class OpLog:
    """The log of all devices; this one's grows at its head."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._causes = Causes(context.queries.fetch, context.run)

    def make(self, op_type: OpType, body: dict[int, Any], replaced: Iterable[ops.Stamp] = ()) -> Op:
        """Make the next op of this device. `replaced` are the stamps of the values that it replaces."""
        head = self._context.head
        head.hlc = now = tick(head.hlc, self._context.now)
        head.seq += 1
        return Op(
            device=head.device,
            seq=head.seq,
            # The time of the device clock, not of a stamp that had to be above another one: after a restart the clock
            # is read from here, and a floor must not move it.
            op_id=uuid7(millis_of(now), self._context.entropy(10)),
            hlc=field_stamp(now, *(Hlc(hlc) for hlc, _ in replaced)),
            type=int(op_type),
            body=body if self._context.cause is None else ops.caused(body, self._context.cause.id),
        )

    @property
    def next_hlc(self) -> Hlc:
        """Where the clock of this device would stand if it made an op now."""
        return tick(self._context.head.hlc, self._context.now)

    def unmake(self, op: Op) -> None:
        """Give back the place of the op that was made last, and was not appended. The clock keeps what it has risen."""
        assert op.seq == self._context.head.seq  # noqa: S101 - nothing was made since
        self._context.head.seq -= 1

    def append(self, written: Sequence[Op]) -> None:
        """Append ops of this device, as `make` made them. Raises InvalidError for one that no device would apply."""
        for op in written:
            if why := ops.problem(op):
                raise InvalidError(
                    f"this change cannot be written: {why}", hint="check this machine's clock; nothing was changed"
                )
        number = self._cause_here() if written else None
        self.add(
            [
                (
                    op.device,
                    op.seq,
                    op.op_id,
                    op.hlc,
                    op.type,
                    ops.entity_of(op),
                    ops.encode(op),
                    number,
                    0,
                )
                for op in written
            ]
        )

    def append_events(self, ids: Sequence[str]) -> list[int]:
        """Append an op for each of some events, whose rows say all that its body would. Returns their places."""
        head, now, entropy = self._context.head, self._context.now, self._context.entropy
        logged: list[tuple[Any, ...]] = []
        number = self._cause_here() if ids else None
        for event_id in ids:
            head.hlc = stamp = tick(head.hlc, now)
            head.seq += 1
            logged.append(
                (head.device, head.seq, uuid7(millis_of(stamp), entropy(10)), stamp, _EVENT, event_id, None, number, 0)
            )
        self.add(logged)
        return [row[1] for row in logged]

    def add(self, logged: Sequence[tuple[Any, ...]]) -> None:
        """Add rows of ops: (device, seq, op id, stamp, type, entity, body, number of the cause, hollow).

        The body and the cause may be None.
        """
        self._context.run_many(
            "insert into op (device, seq, op_id, hlc, type, entity, body, cause, hollow, crc)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            checksums.all_summed(logged),
        )

    def add_ready(self, device: str, logged: Sequence[Any]) -> None:
        """Add ops of a device that append events, whose rows say all of them: the values of `Ready.ops`."""
        into = "op (device, seq, op_id, hlc, entity, crc, type, body, cause, hollow)"
        row = f"(?1, ?, ?, ?, ?, ?, {_EVENT}, null, null, 0)"
        row_inserts.insert(self._context.connection, into, row, logged, width=OP_VALUES, shared=(device,))

    def note(self, cause: Cause) -> None:
        """Note a cause that has its first op still to write, so that history tells of it."""
        self._causes.number(cause.id, cause.label)

    def _cause_here(self) -> int | None:
        """Return the number of the cause that is written for."""
        cause = self._context.cause
        return None if cause is None else self._causes.number(cause.id, cause.label)

    def cause_number(self, cause: str | None) -> int | None:
        """Return the number of a cause that came with an op of another device."""
        return self._causes.number(cause)

    def rolled_back(self) -> None:
        """Note that what was appended since a savepoint is gone."""
        self._causes.forget_numbers()
