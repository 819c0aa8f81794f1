"""What another device sent becomes what may be stored: no secret in any of its texts. Pure; stores nothing.

An honest device took its secrets out before it wrote them down, and of its ops nothing changes here: the same bytes are
kept. What a device does not take out, because it is hostile or because its rules are older, is taken out on receipt.
That is a function of the op alone, so all devices that receive one store the same. How far an op is trusted, and in
which layer a memory shows, is the fold's to say (`scrubjay_shared.ops`).

Of an event's words each secret is masked by as many stars: grips and erasures name passages by their place, and a text
of another length would move these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from scrubjay import redaction
from scrubjay.ingest.intake import hidden
from scrubjay.policy import DEFAULT
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import EventType, Role, Trust

MASK = "*"
"""Stands for each character of a secret. `redact` lets stars be, so what was masked once stays as it is."""

ID_BYTES = 16
"""Bytes of an id, of a device or of an op: too few to look into, and no text."""

DEPTH = 80
"""Levels of an op's body that are looked into: metadata has 64 at most, and stands two levels deep."""

_POLICY = DEFAULT.redact
_AGENT, _SESSION, _TEXT, _KEY, _PROJECT, _METADATA = 2, 3, 6, 8, 9, 12
_IDENTIFIERS = frozenset((_AGENT, _SESSION, _PROJECT))
_TEXTS = frozenset((_TEXT, _KEY))
_TYPE = 4
_CALL = re.compile(r"(?:[0-9a-f]{32}|toolu_[A-Za-z0-9]{24}|[A-Za-z0-9_-]{1,16})\Z")
_PLAIN = re.compile(r"(?:[A-Za-z0-9_-]{0,16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
"""One short word, or a UUID: too little for a key, and no place for a password beside its name."""
_CLOSED = frozenset([*EventType, *Role, *Trust])
_EXCERPT = 7
_FIELDS = 2
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def received(wire: ops.Wire, *, harmless: bool = False) -> ops.Wire:
    """Return what an op says without its secrets: the same object when it holds none.

    Any op may be given, also one that this version cannot apply. `harmless` is what `harmless_words` says of it.
    """
    op_type, version, op_id, hlc, body = wire
    screened = _event(body, harmless=harmless) if op_type == OpType.EVENT else _other(op_type, body)
    return wire if screened is body else (op_type, version, op_id, hlc, screened)


def harmless_words(wires: Sequence[ops.Wire | None]) -> list[bool]:
    """Say of each op whether it is an event whose words hold no secret: of a run of them at once, which is quicker."""
    words = [_words(wire) for wire in wires]
    found = iter(redaction.harmless([text for text in words if text is not None]))
    return [text is not None and next(found) for text in words]


def _words(wire: ops.Wire | None) -> str | None:
    if wire is None or wire[0] != OpType.EVENT:
        return None
    text = wire[4].get(_TEXT)
    return text if type(text) is str else None


def unread(data: bytes) -> bytes:
    """Return bytes that are not an op, without the secrets in them; they are kept for a version that can read them."""
    return _bytes(data)


def masked(text: str) -> str:
    """Return a text of the same length with every secret and every private passage under stars.

    >>> masked("my key is AKIA" + "Q3EGRWZ7XKLM2NPV")
    'my key is ********************'
    """
    cleaned = _clean(text)
    if cleaned == text:
        return text
    for mask in (_masked_between(text, cleaned), _masked_once(text, cleaned)):
        if mask is not None and _clean(mask) == mask:
            return mask
    return MASK * len(text)


def _masked_between(text: str, cleaned: str) -> str | None:
    """Put stars where a marker stands in the cleaned text; None when what is between the markers is not found again."""
    parts: list[str] = []
    at = 0
    kept = _MARKER.split(cleaned)
    for index, piece in enumerate(kept):
        found = text.rfind(piece, at) if index == len(kept) - 1 else text.find(piece, at)
        if found < 0 or (index == 0 and found > 0) or (index == len(kept) - 1 and found + len(piece) != len(text)):
            return None
        parts += [MASK * (found - at), piece]
        at = found + len(piece)
    return "".join(parts)


def _masked_once(text: str, cleaned: str) -> str:
    """Put stars from the first character that changed to the last."""
    head = _alike(text, cleaned)
    tail = min(_alike(text[::-1], cleaned[::-1]), len(text) - head)
    return text[:head] + MASK * (len(text) - head - tail) + text[len(text) - tail :]


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with together."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )


def _event(body: dict[int, Any], *, harmless: bool) -> dict[int, Any]:
    """Return the body of an op that appends an event; the same object when nothing changes. It may be malformed."""
    changed: dict[int, Any] = {}
    for key, value in body.items():  # a million events of a new device come by here
        kind = type(value)
        if kind is int or (kind is bytes and len(value) <= ID_BYTES) or (harmless and key == _TEXT):
            continue
        if kind is str:
            if key in _IDENTIFIERS:
                if _identifier(value) == value:
                    continue
            elif value in _CLOSED and key not in _TEXTS:
                continue
        elif kind is dict and _is_plain(value):
            continue  # nearly all metadata is a few ids
        new = _of_event(key, value, body) if kind is str else _screened(value, DEPTH)
        if new is not value and new != value:
            changed[key] = new
    return {**body, **changed} if changed else body


def _of_event(key: int, value: str, body: dict[int, Any]) -> str:
    if key == _TEXT:
        return masked(value)
    if key in _IDENTIFIERS:
        return _identifier(value)
    if key == _KEY:
        if _PLAIN.match(value):
            return value
        start = f"{body.get(_AGENT)}/{body.get(_SESSION)}/{body.get(_TYPE)}/"
        # As intake makes them: of what is looked at by itself, and a digest or the agent's own id of a call.
        return value if value.startswith(start) and _CALL.match(value, len(start)) else hidden(value, _POLICY)
    return value if value in _CLOSED else _clean(value)


def _other(op_type: int, body: dict[int, Any]) -> dict[int, Any]:
    """Return the body of any other op; the same object when nothing changes."""
    if op_type == OpType.GRIP and type(body.get(_EXCERPT)) is str:
        rest = _screened({key: value for key, value in body.items() if key != _EXCERPT}, DEPTH)
        new = {key: masked(body[key]) if key == _EXCERPT else rest[key] for key in body}
    elif op_type == OpType.MEMORY and type(fields := body.get(_FIELDS)) is dict:
        rest = _screened({key: value for key, value in body.items() if key != _FIELDS}, DEPTH)
        said = {key: _field(key, value) for key, value in fields.items()}
        new = {key: said if key == _FIELDS else rest[key] for key in body}
    else:
        new = _screened(body, DEPTH)
    return body if new == body else new


def _field(key: Any, value: Any) -> Any:
    if key == ops.Field.RESOURCE_ID and type(value) is str:
        return _identifier(value)
    return _screened(value, DEPTH)


def _screened(value: Any, depth: int) -> Any:
    """Return a value of MessagePack without the secrets in its texts; of what is nested too deeply, nothing."""
    if type(value) is str:
        return _clean(value)
    if type(value) is bytes:
        return value if len(value) <= ID_BYTES else _bytes(value)
    if isinstance(value, msgspec.msgpack.Ext):
        return msgspec.msgpack.Ext(value.code, _bytes(bytes(value.data)))
    if isinstance(value, dict | list | tuple):
        return _nested(value, depth) if depth else None
    return value


def _nested(value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Any:
    if not isinstance(value, dict):
        return [_screened(one, depth - 1) for one in value]
    if _is_json(value, depth):
        return _metadata(value)
    return {_screened(key, depth - 1): _screened(one, depth - 1) for key, one in value.items()}


def _is_json(value: Any, depth: int) -> bool:
    """Whether every name of every member is a text, down to a depth."""
    if isinstance(value, dict):
        return depth > 0 and all(type(key) is str and _is_json(one, depth - 1) for key, one in value.items())
    return not isinstance(value, list | tuple) or (depth > 0 and all(_is_json(one, depth - 1) for one in value))


def _metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without secrets: a name such as `password` says of its value what it is."""
    if _is_plain(value):
        return value
    found = redaction.clean_json(value, _POLICY, max_depth=DEPTH)
    cleaned: dict[str, Any] = found.value
    return cleaned if found.redactions or found.private_removed or found.injected_removed else value


def _is_plain(value: dict[Any, Any]) -> bool:
    """Whether metadata is texts too plain to hold a secret, under names that promise none."""
    for name, one in value.items():  # spelled out: this runs a million times when a device joins
        if type(name) is not str or type(one) is not str or not _PLAIN.match(one) or not _is_harmless(name):
            return False
    return True


@lru_cache(maxsize=4_096)
def _is_harmless(name: str) -> bool:
    """Whether a member's name neither holds a secret nor promises that its value is a secret."""
    return bool(redaction.clean_json({name: "Tr0ub4dor&3x"}, _POLICY).value == {name: "Tr0ub4dor&3x"})


def _clean(text: str) -> str:
    """Return a text without its secrets. What a quick look rules out is ruled out here, for all texts of an op."""
    return redaction.clean(text, _POLICY).text


def _bytes(data: bytes) -> bytes:
    """Return bytes without the secrets in them. They are read as UTF-8, as an op writes its texts.

    A byte that is not UTF-8 is kept as it is, between the texts beside it.
    """
    text = data.decode("utf-8", "surrogateescape")
    cleaned = _clean(text)
    return data if cleaned == text else cleaned.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=4_096)
def _identifier(text: str) -> str:
    """Return an agent, a session or a project without secrets; a run of events has few of them, a million times."""
    return hidden(text, _POLICY)
