"""The cause of an op: the run, request or plan that it was written by. It groups ops, and never changes what they say.

It stands in the body under the key 0, which no type of op uses for a field. A reader that does not know it reads the
body without it and keeps the bytes (docs/protocol.md, 5.3). What is not well formed there counts as no cause, and the
op applies as it would without: here as in a version that knows no causes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scrubjay_shared.ops.schema import CAUSE
from scrubjay_shared.records import Op

_CAUSE = re.compile(r"[a-z][a-z_]{0,31}:[0-7][0-9A-HJKMNP-TV-Z]{25}")


def is_cause(value: object) -> bool:
    """Whether this is a cause as a text: what kind of thing wrote, a colon, and a ULID.

    >>> is_cause("import:01KXK2Y3A8M3N5P9R2T4V6W8Y0"), is_cause("import")
    (True, False)
    """
    return type(value) is str and _CAUSE.fullmatch(value) is not None


def cause_in(body: Mapping[int, Any]) -> str | None:
    """Return the cause that a body of an op names; None where it names none."""
    value = body.get(CAUSE)
    return value if is_cause(value) else None


def cause_of(op: Op) -> str | None:
    """Return what wrote an op, None where it does not say. Any op may be given, also one that does not apply."""
    return cause_in(op.body)


def caused(body: dict[int, Any], cause: str | None) -> dict[int, Any]:
    """Return a body that names its cause: the same object where there is none to name."""
    return body if cause is None else {**{key: value for key, value in body.items() if key != CAUSE}, CAUSE: cause}
