"""An op that changes hands: what it says of stamps of its own device, it says of the new one's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from scrubjay_shared.clock import Hlc
from scrubjay_shared.ops.bodies import entity_of
from scrubjay_shared.ops.schema import ALSO, BASES, CLAIMED, EMPTIED, FIELDS, SEEN, OpType
from scrubjay_shared.ops.stamps import MAX_HLC
from scrubjay_shared.records import Op

Held = tuple[bytes, str, int | str, int]
"""Who gave a stamp, to which field or name of which entity, and when."""


def readdressed(op: Op, device: str, seq: int, moved: Collection[tuple[str, int | str, int]]) -> Op:
    """Return an op as that of another device. `moved` are the `stamps_of` of the ops that change hands with it.

    What it says of stamps of theirs it says of their new ones. Its id and its own time stay.
    """
    old, new, entity, body = bytes.fromhex(op.device), bytes.fromhex(device), entity_of(op), dict(op.body)

    def at(key: int | str, wire: list[Any]) -> list[Any]:
        return [wire[0], new] if wire[1] == old and (entity, key, wire[0]) in moved else wire

    if op.type == OpType.MEMORY:
        if BASES in body:
            body[BASES] = {key: at(key, wire) for key, wire in body[BASES].items()}
        if ALSO in body:
            body[ALSO] = {key: sorted(at(key, wire) for wire in wires) for key, wires in body[ALSO].items()}
    elif op.type == OpType.UNCLAIM:
        body[SEEN] = sorted(at(body[CLAIMED], wire) for wire in body[SEEN])
    return replace(op, device=device, seq=seq, body=body)


def adopted(op: Op, device: str, seq: int, of: Collection[bytes] | None = None) -> Op:
    """Return an op as that of a device to which all ops go of the devices `of`, or of every device.

    Each stamp in it that is one of theirs is that device's.
    """
    new, body = bytes.fromhex(device), dict(op.body)

    def at(wire: list[Any]) -> list[Any]:
        return [wire[0], new] if of is None or wire[1] in of else wire

    if op.type == OpType.MEMORY:
        if BASES in body:
            body[BASES] = {key: at(wire) for key, wire in body[BASES].items()}
        if ALSO in body:
            body[ALSO] = {key: sorted(at(wire) for wire in wires) for key, wires in body[ALSO].items()}
    elif op.type == OpType.UNCLAIM:
        body[SEEN] = sorted(at(wire) for wire in body[SEEN])
    return replace(op, device=device, seq=seq, body=body)


def taken_over(op: Op, device: str, seq: int, moved: Collection[Held]) -> Op:
    """Return an op as that of a device which goes on with it, while another may give it back as it was one day.

    `moved` are the stamps of all that is taken over, with those of the device's own ops, which nobody else has seen.
    The op comes just after itself and has seen itself, so that both together are no conflict; what it says of others'
    stamps that moved, it says of both.
    """
    entity, body = entity_of(op), dict(op.body)
    old, new = bytes.fromhex(op.device), bytes.fromhex(device)

    def after(key: int | str, wire: list[Any]) -> list[Any]:
        has_moved = (wire[1], entity, key, wire[0]) in moved
        return [min(wire[0] + 1, MAX_HLC), new] if has_moved else wire

    def known(key: int | str, wires: Sequence[list[Any]]) -> list[list[Any]]:
        """Return stamps as they are now, and as others still know them."""
        return sorted(
            [after(key, wire) for wire in wires]
            + [wire for wire in wires if wire[1] != new and after(key, wire) != wire]
        )

    if op.type == OpType.MEMORY:
        bases, also = dict(body.get(BASES, {})), dict(body.get(ALSO, {}))
        for key in [*body[FIELDS], *body.get(EMPTIED, ())]:
            base = bases.get(key)
            seen = known(key, [*also.get(key, ()), *([] if base is None else [base])])
            if base is not None:
                bases[key] = after(key, base)
                seen.remove(bases[key])
            if old != new:
                seen = sorted([*seen, [int(op.hlc), old]])
            if seen:
                also[key] = seen
        body |= {name: said for name, said in ((BASES, bases), (ALSO, also)) if said}
    elif op.type == OpType.UNCLAIM:
        body[SEEN] = known(body[CLAIMED], body[SEEN])
    return replace(op, device=device, seq=seq, hlc=Hlc(min(op.hlc + 1, MAX_HLC)), body=body)
