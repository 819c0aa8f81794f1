"""The one way in: what is sent becomes what may be stored. Checked, valid Unicode, secrets out. Pure; stores nothing.

Every draft says things about itself: its trust, its layer, its kind. How much of that counts depends on the way it
came, a `Source`, which the code that received it passes; nothing inside a draft or a file can choose it. What other
devices send comes as ops and passes `scrubjay.ingest.receipt` instead, which takes secrets out in the same way.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from scrubjay import redaction
from scrubjay.api.access import RESERVED_NAMES, TRUST_CEILING
from scrubjay.api.caller import Caller, Principal
from scrubjay.intervals import marked, told
from scrubjay.policy import MemoryPolicy, RedactPolicy
from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, MAX_MILLIS, Millis
from scrubjay_shared.errors import DeniedError, InvalidError, TooLargeError
from scrubjay_shared.records import (
    TRUST_OF,
    Event,
    EventDraft,
    EventType,
    Json,
    Kind,
    Layer,
    MemoryDraft,
    Role,
    Scope,
    Trust,
    allowed_layer,
    least,
)


class Source(StrEnum):
    """The way by which a draft came: the person's own act, an agent, a file, one that is restored, or a host's hook.

    A transcript is a file in which an agent's own program kept what the person typed to it.
    """

    PERSON = "person"
    AGENT = "agent"
    IMPORT = "import"
    TRANSCRIPT = "transcript"
    RESTORE = "restore"
    HOST = "host"


TRUST_FROM: dict[Source, Trust] = {
    Source.PERSON: TRUST_CEILING[Principal.PERSON],
    Source.AGENT: TRUST_CEILING[Principal.AGENT],
    Source.IMPORT: TRUST_CEILING[Principal.IMPORTER],
    # As the same words come by a hook. Who imports a transcript says that it is theirs; of a chat's export, a note or a
    # history that stands in a repository nobody knows who typed it.
    Source.TRANSCRIPT: TRUST_CEILING[Principal.HOST],
    Source.RESTORE: TRUST_CEILING[Principal.PERSON],
    Source.HOST: TRUST_CEILING[Principal.HOST],
}
"""The most that can be believed of what came by a way, whatever it says of itself."""


def source_of(caller: Caller) -> Source:
    """Return the way by which the drafts of a caller come."""
    if caller.principal is Principal.AGENT:
        return Source.AGENT
    if caller.principal is Principal.HOST:
        return Source.HOST
    return Source.IMPORT if caller.principal is Principal.IMPORTER else Source.PERSON


ROLE_OF: dict[EventType, Role] = {
    EventType.USER_MESSAGE: Role.USER,
    EventType.NOTE: Role.USER,
    EventType.ASSISTANT_MESSAGE: Role.ASSISTANT,
    EventType.ASSISTANT_STOP: Role.ASSISTANT,
    EventType.TOOL_RESULT: Role.TOOL,
}
"""Who speaks in an event whose sender did not say; `system` in the others."""

CALL_IDS = ("tool_use_id", "prompt_id", "turn_id", "call_id")
"""Metadata by which a sender tells two equal payloads apart."""

KEY_PARTS = 4
"""A dedupe key is made of as many names; a longer one is kept as its digest, for it is compared and never read."""

REPEAT_WINDOW_MS = 60_000
"""An equal payload without id or time is the same delivery within a minute, and said again after it."""

NAME_ROOM = 20
"""A name or a topic so many times too long is refused before secrets are taken out: that makes few shorter."""

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


def event(draft: EventDraft, number: int, *, device: str, now: Millis, policy: MemoryPolicy, source: Source) -> Clean:
    """Return a draft as an event. `number` is which of the batch it is, for the error.

    Raises InvalidError or TooLargeError when it cannot be one.
    """
    where = f"event {number}"
    limits = policy.limits
    for key, value in (("agent", draft.agent), ("session_id", draft.session_id)):
        if not value.strip() or len(value) > limits.max_name_chars:
            raise InvalidError(
                f"{where}: {key} must have 1 to {limits.max_name_chars} characters, got {len(value.strip())}",
                hint=f"send the {key} that the agent itself uses",
            )
    if draft.project is not None and len(draft.project) > MAX_PROJECT_CHARS:
        raise InvalidError(
            f"{where}: project must have at most {MAX_PROJECT_CHARS} characters, got {len(draft.project)}",
            hint="name a project by its path or by a short id",
        )
    check_time(f"{where}: ts", draft.ts, latest=MAX_EVENT_MILLIS)
    if not -DAY_MINUTES < draft.utc_offset < DAY_MINUTES:
        raise InvalidError(
            f"{where}: utc_offset must be between {1 - DAY_MINUTES} and {DAY_MINUTES - 1} minutes,"
            f" got {draft.utc_offset}",
            hint="utc_offset is minutes east of UTC: 120 for Berlin in summer, -300 for New York in winter",
        )
    if len(draft.text) > limits.max_text_chars:
        raise TooLargeError(
            f"{where}: a text must have at most {limits.max_text_chars} characters, got {len(draft.text)}",
            hint="send it as several events",
        )
    text = redaction.clean(valid(draft.text), policy.redact)
    kept = metadata(draft.metadata, where, policy)
    role = draft.role or ROLE_OF.get(draft.type, Role.SYSTEM)
    reason = None
    if not text.text.strip() and draft.text.strip():
        reason = "injected" if text.injected_removed else "private"
    elif not text.text.strip() and not kept.value and draft.type in ROLE_OF and draft.type != EventType.ASSISTANT_STOP:
        reason = "empty"
    agent = _repeated(draft.agent, policy.redact)
    session_id = _repeated(draft.session_id, policy.redact)
    # What the person restores stands as it was exported.
    skew = limits.clock_skew_ms if source is not Source.RESTORE else MAX_EVENT_MILLIS
    ts = told(draft.ts, now, skew)
    made = Event(
        id="",
        device=device,
        agent=agent,
        session_id=session_id,
        type=draft.type,
        role=role,
        text=text.text,
        ts=ts,
        dedupe_key=_dedupe_key(
            draft,
            policy,
            agent=agent,
            session_id=session_id,
            metadata=kept.value,
            said=_said(draft, role, text.text, now if draft.ts is None else draft.ts),
        ),
        project=None if draft.project is None else _repeated(draft.project, policy.redact),
        utc_offset=draft.utc_offset,
        trust=least(draft.trust, TRUST_OF[role], TRUST_FROM[source]),
        metadata=marked(kept.value, draft.ts, now, skew),
    )
    redactions = Counter(dict(text.redactions))
    redactions.update(dict(kept.redactions))
    return Clean(event=made, redactions=redactions, reason=reason)


def _dedupe_key(
    draft: EventDraft, policy: MemoryPolicy, *, agent: str, session_id: str, metadata: Json, said: str
) -> str:
    """Return what two deliveries of one event share: the key or the id that its sender gave, else its words and time.

    All but the draft is clean already; `said` stands for the words and the time.
    """
    key = given = valid(draft.dedupe_key or "")
    if not given:
        call = next((str(metadata[name]) for name in CALL_IDS if metadata.get(name)), said)
        key = f"{agent}/{session_id}/{draft.type.value}/{call}"
    elif given != (clean_key := hidden(given, policy.redact)):
        # Two keys that differ only in a secret are still two: what was said tells them apart, not the secret's hash.
        key = f"{clean_key}/{said}"
    return hashlib.sha256(key.encode()).hexdigest() if len(key) > policy.limits.max_name_chars * KEY_PARTS else key


def _said(draft: EventDraft, role: Role, text: str, ts: Millis) -> str:
    """Return what stands for the words of an event and the time they were said at."""
    when = ts // REPEAT_WINDOW_MS if draft.ts is None else ts
    return hashlib.sha256(f"{when}\x1f{role}\x1f{text}".encode()).hexdigest()[:32]


def memory(draft: MemoryDraft, policy: MemoryPolicy, source: Source) -> MemoryDraft:
    """Return a draft that may be stored. Raises InvalidError, TooLargeError or DeniedError.

    A person is refused what may not be; of a file, what it claims beyond its due is lowered: `changes` says what.
    """
    if source in {Source.PERSON, Source.AGENT} and draft.kind is Kind.OBSERVATION:
        why = "an observation is read from what was said, and names its passages: nobody adds one"
        raise InvalidError(why, hint="leave out the kind; or send what was said as events, and it is learned from them")
    draft = _lowered(draft, source)
    check_salience(draft.salience)
    names = [name(policy, given) for given in (draft.name, *draft.aliases) if given is not None]
    if draft.scope is not Scope.USER and not draft.resource_id:
        raise InvalidError(
            f"a memory of scope {draft.scope} needs a resource_id",
            hint=f"give the id of the {draft.scope} that it is for, or leave out the scope",
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
        resource_id=None if draft.resource_id is None else _resource(draft.resource_id, policy),
        topic=None if draft.topic is None else topic(policy, draft.topic),
        metadata=metadata(draft.metadata, "memory", policy).value,
    )


def _lowered(draft: MemoryDraft, source: Source) -> MemoryDraft:
    """Return a draft with no more trust, layer, kind and names than the way it came allows."""
    trust = least(draft.trust, TRUST_FROM[source])
    if source in {Source.PERSON, Source.AGENT}:
        return replace(draft, trust=trust)
    if source is Source.RESTORE:
        return replace(draft, trust=trust, layer=allowed_layer(draft.layer, trust))
    names = [
        given for given in (draft.name, *draft.aliases) if given is not None and not given.startswith(RESERVED_NAMES)
    ]
    return replace(
        draft,
        trust=trust,
        layer=Layer.ARCHIVE,
        # An observation rests on passages that were read here: nobody read anything of a file that only claims so.
        kind=Kind.STORED if draft.kind is Kind.OBSERVATION else draft.kind,
        name=names.pop(0) if draft.name is not None and names and names[0] == draft.name else None,
        aliases=tuple(names),
    )


def changes(draft: MemoryDraft, kept: MemoryDraft) -> Counter[str]:
    """Return what `memory` lowered of a draft, by what it is: trust, layer, kind, names that only a person gives."""
    return Counter(
        {
            "trust": int(kept.trust is not draft.trust),
            "layer": int(kept.layer is not draft.layer),
            "kind": int(kept.kind is not draft.kind),
            "name": len(draft.aliases) + (draft.name is not None) - len(kept.aliases) - (kept.name is not None),
        }
    )


def content(policy: MemoryPolicy, text: str) -> str:
    """Return a memory's content, valid and without secrets. Raises InvalidError when nothing is left."""
    if len(text) > policy.limits.max_text_chars:
        raise TooLargeError(
            f"a memory must have at most {policy.limits.max_text_chars} characters, got {len(text)}",
            hint="scrubjay import reads a long text from a file",
        )
    cleaned = redaction.clean(valid(text), policy.redact).text.strip()
    if not cleaned:
        raise InvalidError(
            "the text is private from beginning to end: nothing of it may be stored"
            if text.strip()
            else "a memory needs content",
            hint="say what is to be remembered, outside of <private> tags",
        )
    return cleaned


def name(policy: MemoryPolicy, text: str) -> str:
    """Return a name, white space plain, secrets out. Raises InvalidError for an empty, long or unprintable one."""
    most = policy.limits.max_name_chars
    short = f"a name must have 1 to {most} characters, got {{}}"
    if len(text) > NAME_ROOM * most:  # redacting megabytes only to refuse them took a second
        raise InvalidError(short.format(len(text)), hint="choose a short name; the content can hold the rest")
    # Twice: as lines, which give away the password of a settings file, and as the one line that is stored, for a line
    # break can keep a password's name apart from its value.
    lines = redaction.clean(valid(text), policy.redact).text
    plain = " ".join(redaction.clean(" ".join(lines.split()), policy.redact).text.split())
    if not plain or len(plain) > most:
        raise InvalidError(short.format(len(plain)), hint="choose a short name; the content can hold the rest")
    if any(unicodedata.category(character) in _UNPRINTABLE for character in plain):
        raise InvalidError("a name must not hold control characters", hint="use letters, digits and punctuation")
    return plain


def identifier(text: str, policy: RedactPolicy) -> str:
    """Return what names an agent, a session, a project or a delivery, valid and without secrets."""
    return hidden(valid(text), policy)


def _repeated(text: str, policy: RedactPolicy) -> str:
    """Return what `identifier` does of an agent, a session or a project, which come with event after event."""
    return _remembered(text, policy) if len(text) <= REMEMBERED_CHARS else identifier(text, policy)


REMEMBERED_CHARS = 256
"""Of an identifier that is kept in memory, longer ones are paths that nobody has."""


@lru_cache(maxsize=1_024)
def _remembered(text: str, policy: RedactPolicy) -> str:
    return identifier(text, policy)


@lru_cache(maxsize=8)
def _by_shape(policy: RedactPolicy) -> RedactPolicy:
    """Return a policy by which randomness alone makes nothing a secret."""
    return replace(policy, token_max_chars=0)


def hidden(text: str, policy: RedactPolicy) -> str:
    """Return an identifier without secrets.

    Such names are random by design, so randomness alone makes none a secret here: 1 in 20 keys of tool results would be
    taken for one. What the shape or an assignment gives away goes; where something is assigned, the text is no plain
    name, and randomness counts.
    """
    by_shape = policy if _ASSIGNED.search(text) else _by_shape(policy)
    cleaned = redaction.clean(text, by_shape).text
    if "/" in cleaned:  # identifiers are put together with it, and a key within a path has no edge of its own
        parts = cleaned.split("/")
        cleaned = "/".join(part if len(part) < SHORTEST_KEY else redaction.clean(part, by_shape).text for part in parts)
    source, colon, rest = cleaned.partition(":")  # as importers make keys: what follows has a line's beginning no more
    if len(rest) >= SHORTEST_KEY:
        cleaned = source + colon + redaction.clean(rest, by_shape).text
    return cleaned if cleaned.strip() or not text.strip() else REMOVED


_ASSIGNED = re.compile(r"=\s*[\w\"']")
"""An assignment within an identifier. Padding of base64 at an end, or before a slash, is not an assignment."""

SHORTEST_KEY = 16
"""Characters of the shortest key that its shape alone gives away: an AWS key id has 20."""

REMOVED = "[REMOVED]"
"""What stands for an identifier that was private from beginning to end: an event must have an agent and a session."""


def _resource(text: str, policy: MemoryPolicy) -> str:
    if len(text) > MAX_PROJECT_CHARS:
        raise InvalidError(
            f"resource_id must have at most {MAX_PROJECT_CHARS} characters, got {len(text)}",
            hint="name a project by its path or by a short id",
        )
    return identifier(text, policy.redact)


def topic(policy: MemoryPolicy, text: str) -> str | None:
    """Return a topic label without secrets, cut to a name's length; None when nothing is left.

    Raises InvalidError when it is many times too long. Cut before its secrets are out, it may end in half a secret.
    """
    longest = NAME_ROOM * policy.limits.max_name_chars
    if len(text) > longest:
        raise InvalidError(
            f"a topic must have at most {longest} characters, got {len(text)}",
            hint="choose a short label; the content can hold the rest",
        )
    cleaned = redaction.clean(valid(text), policy.redact).text.strip()
    return cleaned[: policy.limits.max_name_chars].strip() or None


def check_time(key: str, at: int | None, *, latest: int = MAX_MILLIS) -> None:
    """Raise InvalidError for what is not a UTC time in milliseconds, from 1970 to `latest`."""
    if at is not None and not 0 <= at <= latest:
        raise InvalidError(
            f"{key} must be between 0 and {latest}, got {at}", hint="give a time in milliseconds since 1970, UTC"
        )


def check_salience(salience: float | None) -> None:
    """Raise InvalidError for a salience that is not a number from 0 to 1."""
    if salience is not None and not (math.isfinite(salience) and 0 <= salience <= 1):
        raise InvalidError(f"salience must be from 0 to 1, got {salience}", hint="0.5 is the middle; 1 matters most")


def is_above_import(trust: Trust) -> bool:
    """Say whether a text is trusted more than what a file says."""
    return least(trust, Trust.IMPORT) is not trust


def check_layer(layer: Layer, trust: Trust) -> None:
    """Raise DeniedError for a layer that is always loaded and a text that anybody may have written."""
    if allowed_layer(layer, trust) is not layer:
        raise DeniedError(
            f"the layer {layer} is loaded always, and takes no text that is trusted as {trust}",
            hint="add it in your own words: scrubjay add",
        )


def metadata(given: Json, where: str, policy: MemoryPolicy) -> redaction.CleanedJson:
    """Return metadata without secrets, keys sorted. Raises InvalidError, TooLargeError."""
    if not given:
        return redaction.CleanedJson(value={})
    limits = policy.limits
    most = METADATA_ROOM * limits.max_metadata_bytes
    if _size(given, most) > most:  # before it is cleaned, which takes a second for 8 MB
        raise TooLargeError(
            f"{where}: more than {most} characters of metadata",
            hint=f"at most {limits.max_metadata_bytes} bytes; use the text",
        )
    cleaned = redaction.clean_json(_valid_json(given, where, limits.max_metadata_depth), policy.redact)
    encoded = msgspec.json.encode(cleaned.value, order="deterministic")
    if len(encoded) > limits.max_metadata_bytes:
        raise TooLargeError(
            f"{where}: metadata must have at most {limits.max_metadata_bytes} bytes, got {len(encoded)}",
            hint="put long values into the text",
        )
    # Through JSON and back: keys sorted, so that an op's bytes can be made again from the stored row.
    return redaction.CleanedJson(
        value=msgspec.json.decode(encoded),
        redactions=cleaned.redactions,
        private_removed=cleaned.private_removed,
        injected_removed=cleaned.injected_removed,
    )


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
        raise InvalidError(
            f"{where}: metadata is nested too deeply", hint="use fewer levels, or put the value into the text"
        )
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
    if isinstance(value, int):
        raise InvalidError(f"{where}: metadata holds a whole number beyond 2^63", hint="write it as a string")
    raise InvalidError(
        f"{where}: metadata holds a {type(value).__name__} that JSON cannot say",
        hint="use objects, lists, strings, whole numbers below 2^63, numbers, true, false and null",
    )


def valid(text: str) -> str:
    """Return a text that UTF-8 can carry and SQLite can count: lone surrogates and NULs become U+FFFD, nothing is lost.

    SQLite keeps a NUL, but ends length(), substr() and comparisons at it.
    """
    text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    found: list[str] = []
    start = 0
    while start < len(text):
        end = start + VALID_CHARS
        end += "\ud800" <= text[end - 1 : end] <= "\udbff"  # the two halves of a character may stand there one by one
        found.append(text[start:end].encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        start = end
    return "".join(found)


VALID_CHARS = 65_536
"""Characters looked at in one call into C, while which other threads wait."""
