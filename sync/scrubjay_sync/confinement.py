"""What a limited device may say, wherever its ops are read: the rights that the account log gives it. Pure.

A limited device holds the keys of some scopes and runs without a person. Its ops are taken as an agent's, never as the
person's; what it forgets is forgotten by its id, and no words are refused elsewhere because of it; nothing of it stands
among what is always loaded as who the person is; and the names that it gives are names of its scope, so that none can
take the place of another. Which things it may speak of is for the store to say, which knows where they live. All of it
depends on the op and the log alone, so that every device reads the same.
"""

from __future__ import annotations

from typing import Any

from scrubjay_shared import ops
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.ops.schema import CLAIMED, EMPTIED, FIELDS
from scrubjay_shared.records import Layer, ReviewState, Trust, least, review_state

MOST_TRUST = Trust.AGENT
MOST_LAYER = Layer.ACTIVE
NOT_ACCEPTED = f"{ReviewState.WAITING.value} limited"
"""What stands in place of its "accepted": a device without a person reviews nothing."""
_EVENT_TRUST = 11


def confined(data: bytes, *, device: str, seq: int, scope: str) -> bytes | None:
    """Return an op of a limited device as it may be taken in: the same bytes where it keeps to its rights.

    `scope` is the name of the scope of its lane. None for what cannot be judged: an op that this version does not read
    might say anything to a later one.
    """
    try:
        wire = ops.read(data, device=device, seq=seq)
    except CorruptError:
        return None
    kind, version, op_id, hlc, body = wire
    if ops.problem(ops.op_of(wire, device=device, seq=seq)):
        return None
    changed = dict(body)
    if kind == OpType.EVENT:
        changed[_EVENT_TRUST] = least(ops.trust_of(body), MOST_TRUST).value
    elif kind == OpType.MEMORY:
        changed[FIELDS] = _fields(body[FIELDS], scope, spoke=Field.CONTENT in body.get(EMPTIED, ()))
    elif kind == OpType.FORGET:
        changed = ops.of_id_alone(body)
    elif kind in {OpType.CLAIM, OpType.UNCLAIM}:
        changed[CLAIMED] = _name(body[CLAIMED], scope)
    return data if changed == body else ops.encode_wire((kind, version, op_id, hlc, changed))


def about(data: bytes, *, device: str, seq: int) -> str:
    """Return the id of what an op is about: of a grip that is forgotten, the memory where it says so."""
    op = ops.decode(data, device=device, seq=seq)
    return ops.owner_of(op) or ops.entity_of(op)


def named_by(data: bytes, *, device: str, seq: int) -> str:
    """Return the id that an op names first: of a grip that is forgotten, the grip's, wherever it says that it is of."""
    return ops.entity_of(ops.decode(data, device=device, seq=seq))


def _fields(said: dict[int, Any], scope: str, *, spoke: bool) -> dict[int, Any]:
    fields = dict(said)
    if Field.TRUST in fields or Field.CONTENT in fields or spoke:
        # Who says nothing of trust would say the most.
        value = fields.get(Field.TRUST, Trust.USER.value)
        known = Trust(value) if value in Trust._value2member_map_ else Trust.UNTRUSTED
        fields[int(Field.TRUST)] = least(known, MOST_TRUST).value
    if review_state(fields.get(Field.REVIEW)) is ReviewState.ACCEPTED:
        fields[int(Field.REVIEW)] = NOT_ACCEPTED
    if fields.get(Field.LAYER) == Layer.IDENTITY.value:
        fields[int(Field.LAYER)] = MOST_LAYER.value
    if fields.get(Field.NAME) is not None:
        fields[int(Field.NAME)] = _name(fields[Field.NAME], scope)
    return fields


def _name(name: str, scope: str) -> str:
    prefix = f"{scope}/"
    return name if name.startswith(prefix) else prefix + name
