"""An op that changes hands: what it says of stamps of its own device, it says of the new one's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from scrubjay_shared.ops.bodies import entity_of
from scrubjay_shared.ops.schema import ALSO, BASES, CLAIMED, SEEN, OpType
from scrubjay_shared.records import Op


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
