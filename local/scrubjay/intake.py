"""What callers send becomes what may be stored: checked, valid Unicode, secrets out. Pure; stores nothing."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from scrubjay import redact
from scrubjay.policy import MemoryPolicy
from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, MAX_MILLIS, Millis
from scrubjay_shared.errors import DeniedError, InvalidError, TooLargeError
from scrubjay_shared.records import (
    TRUST_ORDER,
    Event,
    EventDraft,
    EventType,
    Json,
    Layer,
    MemoryDraft,
    Role,
    Scope,
    Trust,
)

ROLE_OF: dict[EventType, Role] = {
    EventType.USER_MESSAGE: Role.USER,
    EventType.NOTE: Role.USER,
    EventType.ASSISTANT_MESSAGE: Role.ASSISTANT,
    EventType.ASSISTANT_STOP: Role.ASSISTANT,
    EventType.TOOL_RESULT: Role.TOOL,
}
"""Who speaks in an event whose sender did not say; `system` in the others."""

TRUST_OF: dict[Role, Trust] = {
    Role.USER: Trust.USER,
    Role.ASSISTANT: Trust.AGENT,
    Role.TOOL: Trust.UNTRUSTED,
    Role.SYSTEM: Trust.AGENT,
}
"""The most that can be believed of what a role says: tool output may hold anybody's words."""

CALL_IDS = ("tool_use_id", "prompt_id", "turn_id", "call_id")
"""Metadata by which a sender tells two equal payloads apart."""

KEY_PARTS = 4
"""A dedupe key is made of as many names; a longer one is kept as its digest, for it is compared and never read."""

REPEAT_WINDOW_MS = 60_000
"""An equal payload without id or time is the same delivery within a minute, and said again after it."""

NAME_ROOM = 20
"""A name so many times too long is refused, and a topic cut, before secrets are taken out: that makes few shorter."""

METADATA_ROOM = 3
"""Of metadata that is so many times too large, nothing is cleaned: it is refused as it came."""

MAX_PROJECT_CHARS = 4_096
"""A project is named by a path at the longest."""


_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that a name may not hold: they show nothing, or change what is shown beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean:
    """An event ready to be stored but for its id, how many secrets were taken out by kind, and why not to store it.

    `reason` is None for an event to store; "private", "injected" or "empty" for one of which nothing is left.
    """

    event: Event
    redactions: Counter[str]
    reason: str | None = None


def event(draft: EventDraft, place: int, *, device: str, now: Millis, policy: MemoryPolicy) -> Clean:
    """Return a draft as an event. `place` is its number in the batch, for the error.

    Raises InvalidError or TooLargeError when it cannot be one.
    """
    where = f"event {place}"
    limits = policy.limits
    for key, value in (("agent", draft.agent), ("session_id", draft.session_id)):
        if not value.strip() or len(value) > limits.max_name_chars:
            raise InvalidError(f"{where}: {key} is empty or too long", hint=f"1 to {limits.max_name_chars} characters")
    if draft.project is not None and len(draft.project) > MAX_PROJECT_CHARS:
        raise InvalidError(f"{where}: project is too long", hint=f"at most {MAX_PROJECT_CHARS} characters")
    check_time(f"{where}: ts", draft.ts, latest=MAX_EVENT_MILLIS)
    if not -DAY_MINUTES < draft.utc_offset < DAY_MINUTES:
        raise InvalidError(f"{where}: utc_offset {draft.utc_offset} is not one", hint="minutes east of UTC")
    if len(draft.text) > limits.max_text_chars:
        raise TooLargeError(f"{where}: a text of {len(draft.text)} characters", hint=f"at most {limits.max_text_chars}")
    text = redact.clean(valid(draft.text), policy.redact)
    kept = metadata(draft.metadata, where, policy)
    role = draft.role or ROLE_OF.get(draft.type, Role.SYSTEM)
    reason = None
    if not text.text.strip() and draft.text.strip():
        reason = "injected" if text.injected_removed else "private"
    elif not text.text.strip() and not kept.value and draft.type in ROLE_OF and draft.type != EventType.ASSISTANT_STOP:
        reason = "empty"
    made = Event(
        id="",
        device=device,
        agent=valid(draft.agent),
        session_id=valid(draft.session_id),
        type=draft.type,
        role=role,
        text=text.text,
        ts=now if draft.ts is None else draft.ts,
        dedupe_key="",
        project=None if draft.project is None else valid(draft.project),
        utc_offset=draft.utc_offset,
        trust=min(draft.trust, TRUST_OF[role], key=TRUST_ORDER.index),
        metadata=kept.value,
    )
    key = valid(draft.dedupe_key) if draft.dedupe_key else _dedupe_key(made, timed=draft.ts is not None)
    if len(key) > limits.max_name_chars * KEY_PARTS:
        key = hashlib.sha256(key.encode()).hexdigest()
    return Clean(
        event=replace(made, dedupe_key=key),
        redactions=Counter(dict(text.redactions)) + Counter(dict(kept.redactions)),
        reason=reason,
    )


def _dedupe_key(made: Event, *, timed: bool) -> str:
    """Return what two deliveries of one event share: the sender's id of it, else its words and time."""
    call = next((str(made.metadata[key]) for key in CALL_IDS if made.metadata.get(key)), None)
    if call is None:
        when = made.ts if timed else made.ts // REPEAT_WINDOW_MS
        call = hashlib.sha256(f"{when}\x1f{made.role}\x1f{made.text}".encode()).hexdigest()[:32]
    return f"{made.agent}/{made.session_id}/{made.type.value}/{call}"


def memory(draft: MemoryDraft, policy: MemoryPolicy) -> MemoryDraft:
    """Return a draft that may be stored. Raises InvalidError, TooLargeError or DeniedError."""
    check_salience(draft.salience)
    names = [name(policy, given) for given in (draft.name, *draft.aliases) if given is not None]
    if draft.scope is not Scope.USER and not draft.resource_id:
        raise InvalidError(
            f"a memory of scope {draft.scope} needs a resource_id", hint="the id of the project or the session"
        )
    for key, at in (
        ("valid_from", draft.valid_from),
        ("valid_to", draft.valid_to),
        ("created_at", draft.created_at),
    ):
        check_time(key, at)
    check_layer(draft.layer, draft.trust)
    return replace(
        draft,
        content=content(policy, draft.content),
        name=names.pop(0) if draft.name is not None else None,
        aliases=tuple(names),
        resource_id=None if draft.resource_id is None else valid(draft.resource_id),
        topic=None if draft.topic is None else topic(policy, draft.topic),
        metadata=metadata(draft.metadata, "memory", policy).value,
    )


def content(policy: MemoryPolicy, text: str) -> str:
    """Return a memory's content, valid and without secrets. Raises InvalidError when nothing is left."""
    if len(text) > policy.limits.max_text_chars:
        raise TooLargeError(
            f"a memory of {len(text)} characters",
            hint=f"at most {policy.limits.max_text_chars}; scrubjay import reads files",
        )
    cleaned = redact.clean(valid(text), policy.redact).text.strip()
    if not cleaned:
        raise InvalidError(
            "nothing is left of a private text" if text.strip() else "a memory without content",
            hint="say what is to be remembered",
        )
    return cleaned


def name(policy: MemoryPolicy, text: str) -> str:
    """Return a name, white space plain, secrets out. Raises InvalidError for an empty, long or unprintable one."""
    if len(text) > NAME_ROOM * policy.limits.max_name_chars:  # redacting megabytes only to refuse them took a second
        raise InvalidError("a name is empty or too long", hint=f"1 to {policy.limits.max_name_chars} characters")
    plain = " ".join(redact.clean(valid(text), policy.redact).text.split())
    if not plain or len(plain) > policy.limits.max_name_chars:
        raise InvalidError("a name is empty or too long", hint=f"1 to {policy.limits.max_name_chars} characters")
    if any(unicodedata.category(character) in _UNPRINTABLE for character in plain):
        raise InvalidError("a name holds control characters", hint="use letters, digits and punctuation")
    return plain


def topic(policy: MemoryPolicy, text: str) -> str | None:
    """Return a topic label, cut to a name's length and without secrets; None when nothing is left."""
    longest = NAME_ROOM * policy.limits.max_name_chars
    return redact.clean(valid(text[:longest]), policy.redact).text.strip()[: policy.limits.max_name_chars] or None


def check_time(key: str, at: int | None, *, latest: int = MAX_MILLIS) -> None:
    """Raise InvalidError for what is no UTC time in milliseconds, from 1970 to `latest`."""
    if at is not None and not 0 <= at <= latest:
        raise InvalidError(f"{key} {at} is not a time", hint="UTC milliseconds since 1970")


def check_salience(salience: float | None) -> None:
    """Raise InvalidError for a salience that is no number from 0 to 1."""
    if salience is not None and not (math.isfinite(salience) and 0 <= salience <= 1):
        raise InvalidError(f"salience {salience} is out of range", hint="a number from 0 to 1")


def check_layer(layer: Layer, trust: Trust) -> None:
    """Raise DeniedError for a layer that is always loaded and a text that anybody may have written."""
    if layer in {Layer.IDENTITY, Layer.ACTIVE} and TRUST_ORDER.index(trust) < TRUST_ORDER.index(Trust.AGENT):
        raise DeniedError(f"a text trusted as {trust} cannot be loaded always", hint="add it in your own words")


def metadata(given: Json, where: str, policy: MemoryPolicy) -> redact.CleanedJson:
    """Return metadata without secrets, keys sorted. Raises InvalidError for what is no JSON, TooLargeError."""
    if not given:
        return redact.CleanedJson(value={})
    limits = policy.limits
    most = METADATA_ROOM * limits.max_metadata_bytes
    if _size(given, most) > most:  # before it is cleaned, which takes a second for 8 MB
        raise TooLargeError(
            f"{where}: more than {most} characters of metadata",
            hint=f"at most {limits.max_metadata_bytes} bytes; use the text",
        )
    cleaned = redact.clean_json(_valid_json(given, where, limits.max_metadata_depth), policy.redact)
    encoded = msgspec.json.encode(cleaned.value, order="deterministic")
    if len(encoded) > limits.max_metadata_bytes:
        raise TooLargeError(
            f"{where}: {len(encoded)} bytes of metadata", hint=f"at most {limits.max_metadata_bytes}; use the text"
        )
    # Through JSON and back: keys sorted, so that an op's bytes can be made again from the stored row.
    return replace(cleaned, value=msgspec.json.decode(encoded))


def _size(value: Any, most: int) -> int:
    """Return how many characters and values a JSON value has, or something above `most` where it has more."""
    size = 0
    left = [value]
    while left and size <= most:
        one = left.pop()
        size += len(one) if isinstance(one, str) else 1
        if isinstance(one, dict):
            left += [*one, *one.values()] if len(one) <= most else [" " * (most + 1)]
        elif isinstance(one, list | tuple):
            left += one if len(one) <= most else [" " * (most + 1)]
    return size


def _valid_json(value: Any, where: str, depth: int) -> Any:
    if depth < 0:
        raise InvalidError(f"{where}: metadata is nested too deeply", hint="flatten it, or use the text")
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, dict):
        return {valid(str(key)): _valid_json(inner, where, depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_valid_json(inner, where, depth - 1) for inner in value]
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise InvalidError(f"{where}: metadata holds something JSON cannot say", hint="objects, lists, strings, numbers")


def valid(text: str) -> str:
    """Return a text that UTF-8 can carry and SQLite can count: lone surrogates and NULs become U+FFFD, nothing is lost.

    SQLite keeps a NUL, but ends length(), substr() and comparisons at it.
    """
    text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
