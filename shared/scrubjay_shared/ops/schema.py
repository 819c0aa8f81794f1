"""The numbers of an op's wire format: types, registers, counters, the keys of bodies. None is ever used again.

Types and fields are only ever added (docs/protocol.md, 5): an older reader keeps what it does not know.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

Wire = tuple[int, int, bytes, int, dict[int, Any]]
"""What the bytes of an op say: (type, version, op id, hlc, body). Its device and seq stand outside them."""

VERSION = 1
"""Of the body of every type so far. One of another version says something that this one would misread."""


class OpType(IntEnum):
    """What an op says. Numbers are wire format: never reused."""

    EVENT = 1
    MEMORY = 2
    FORGET = 3
    CLAIM = 4
    UNCLAIM = 5
    COUNT = 6
    GRIP = 7
    BLANK = 8


class Field(IntEnum):
    """The registers of a memory. Numbers are wire format: never reused."""

    CONTENT = 1
    KIND = 2
    TYPE = 3
    SCOPE = 4
    RESOURCE_ID = 5
    LAYER = 6
    SALIENCE = 7
    CONFIDENCE = 8
    TOPIC = 9
    TRUST = 10
    VALID_FROM = 11
    VALID_TO = 12
    SUPERSEDED_BY = 13
    CREATED_AT = 14
    METADATA = 15
    NAME = 16
    ARCHIVED_AT = 17
    REVIEW = 18


ABSENT: dict[Field, Any] = {
    Field.KIND: "stored",
    Field.TYPE: "fact",
    Field.SCOPE: "user",
    Field.RESOURCE_ID: None,
    Field.LAYER: "archive",
    Field.SALIENCE: 0.0,
    Field.CONFIDENCE: 1.0,
    Field.TOPIC: None,
    Field.TRUST: "user",
    Field.VALID_FROM: None,
    Field.VALID_TO: None,
    Field.SUPERSEDED_BY: None,
    Field.METADATA: {},
    Field.NAME: None,
    Field.ARCHIVED_AT: None,
    Field.REVIEW: None,
}
"""What a register says that nobody wrote. A memory without content or time of creation does not show at all."""


WORDS = frozenset({Field.CONTENT, Field.TOPIC, Field.METADATA, Field.NAME})
"""The registers that hold what somebody said: what stood there before is erased wherever it is kept."""

LASTING = frozenset({Field.SCOPE, Field.RESOURCE_ID, Field.TRUST, Field.CREATED_AT})
"""The registers of which more than the shown version counts: the first says where a memory lives and who made it, the
least how far it is trusted. None of their values is ever emptied."""


class Counter(IntEnum):
    """The counters of a memory."""

    ACCESS = 1


# Keys of bodies, by op type. 0 is always the op's cause, 1 the entity it is about.
CAUSE = 0
ENTITY = 1
FIELDS, BASES, ALSO, EMPTIED, BOUNDS = 2, 3, 4, 5, 6
"""Of a write to a memory; `BOUNDS` is what a receiver notes of it (`outside.Bounds`) and no writer says."""
OWNER = 2
VALUE_KEY, VALUES, VALUE_PROJECT, NEW_KEY, LIFTED = 3, 4, 5, 6, 7
"""Of a forget: what is left of the words (`ForgottenWords`), a key for it, and that it is refused no more."""
CLAIMED = 2
SEEN = 3
COUNTER, TOTAL, LAST = 2, 3, 4
SPANS = 2
