"""The nouns of scrubjay, as frozen values. Time is UTC milliseconds, ids are ULIDs, text is valid Unicode."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scrubjay_shared.clock import Hlc, Millis

Json = dict[str, Any]


def content_hash(text: str) -> str:
    """Return what two equal memories share: SHA-256 (hex) of the text, NFKC, case-folded, white space collapsed."""
    digest = hashlib.sha256()
    start = 0
    between = ""
    while start < len(text):
        space = _SPACE.search(text, start + _FOLDED_CHARS)
        end = len(text) if space is None else space.start()  # nothing is composed with the white space after it
        folded = " ".join(unicodedata.normalize("NFKC", text[start:end]).casefold().split())
        if folded:
            digest.update((between + folded).encode("utf-8", "surrogatepass"))
            between = " "
        start = end
    return digest.hexdigest()


_SPACE = re.compile(r"\s")
_FOLDED_CHARS = 262_144
"""Characters folded at a time: other threads wait while C code runs, and 8 MB at once took a quarter of a second."""


def speaker_of(metadata: Json, role: str) -> str:
    """Return the name of who speaks in an event: `metadata["speaker"]` where that is one, else the role."""
    name = metadata.get("speaker")
    return name if isinstance(name, str) and name else role


class EventType(StrEnum):
    """What an agent did. Unknown hook events never become an Event."""

    SESSION_START = "session_start"
    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_RESULT = "tool_result"
    ASSISTANT_STOP = "assistant_stop"
    SUBAGENT_START = "subagent_start"
    SUBAGENT_STOP = "subagent_stop"
    COMPACTION = "compaction"
    SESSION_END = "session_end"
    NOTE = "note"


class Role(StrEnum):
    """Who is speaking, as agents name it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Trust(StrEnum):
    """How far a text may be believed, weakest first. What is derived has the least trust of its sources."""

    UNTRUSTED = "untrusted"
    IMPORT = "import"
    AGENT = "agent"
    USER = "user"


TRUST_ORDER: tuple[Trust, ...] = tuple(Trust)

TRUST_OF: dict[Role, Trust] = {
    Role.USER: Trust.USER,
    Role.ASSISTANT: Trust.AGENT,
    Role.TOOL: Trust.UNTRUSTED,
    Role.SYSTEM: Trust.AGENT,
}
"""The most that can be believed of what a role says: tool output may hold anybody's words."""


def least(first: Trust, *others: Trust) -> Trust:
    """Return the least of some trusts.

    >>> least(Trust.USER, Trust.IMPORT).value
    'import'
    """
    return min(first, *others, key=TRUST_ORDER.index) if others else first


class Kind(StrEnum):
    """How a memory came to be: written deliberately, a compacted prefix, added by a tool, or distilled."""

    NOTE = "note"
    ARCHIVE = "archive"
    STORED = "stored"
    OBSERVATION = "observation"


class MemoryType(StrEnum):
    """What a memory says. Its initial salience is `policy.TYPE_SALIENCE`."""

    DECISION = "decision"
    PREFERENCE = "preference"
    INSIGHT = "insight"
    GOAL = "goal"
    FACT = "fact"
    HOWTO = "howto"
    LONG_TERM = "long_term"
    DAILY = "daily"
    BELIEF = "belief"
    SELF = "self"
    SOCIAL = "social"


class Scope(StrEnum):
    """Who a memory is for, narrowest first: this session, this project (`proj_*`), this person (`user_*`)."""

    SESSION = "session"
    PROJECT = "project"
    USER = "user"


class Layer(StrEnum):
    """When a memory is loaded: always (identity, active), predicted for now (surfaced), or on search (archive)."""

    IDENTITY = "identity"
    ACTIVE = "active"
    SURFACED = "surfaced"
    ARCHIVE = "archive"


ALWAYS_LOADED = frozenset({Layer.IDENTITY, Layer.ACTIVE})

AUTHOR = "scrubjay:author"
"""The metadata of a memory or an event that says who wrote it, where that is not the store's person or agent."""


class ReviewState(StrEnum):
    """What a person is asked about a memory, or said of it.

    What waits is neither handed to an agent unasked nor promoted. What is disputed holds until somebody decides.
    """

    WAITING = "waiting"
    DISPUTED = "disputed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


def review_state(review: str | None) -> ReviewState | None:
    """Return the state that a memory's review begins with; one that only a newer version knows counts as waiting.

    >>> review_state("waiting override fetch").value, review_state("later on").value, review_state(None)
    ('waiting', 'waiting', None)
    """
    if not review:
        return None
    said = review.split(maxsplit=1)[0] if review.strip() else ""
    return ReviewState(said) if said in ReviewState._value2member_map_ else ReviewState.WAITING


def allowed_layer(layer: Layer, trust: Trust) -> Layer:
    """Return the layer in which a memory may stand: what is always loaded is trusted at least as an agent's own words.

    >>> allowed_layer(Layer.IDENTITY, Trust.IMPORT).value
    'archive'
    """
    always = layer in ALWAYS_LOADED
    return Layer.ARCHIVE if always and TRUST_ORDER.index(trust) < TRUST_ORDER.index(Trust.AGENT) else layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a session. Immutable; only `forget` erases its text.

    `dedupe_key` makes delivery idempotent. `utc_offset` is minutes east of UTC, because "Tuesday" is the person's.
    `metadata["speaker"]`, when present, is the speaker's name in a conversation between people.
    """

    id: str
    device: str
    agent: str
    session_id: str
    type: EventType
    role: Role
    text: str
    ts: Millis
    dedupe_key: str
    project: str | None = None
    utc_offset: int = 0
    trust: Trust = Trust.USER
    metadata: Json = field(default_factory=dict)

    @property
    def speaker(self) -> str:
        """The name that stands before the text in a document: the speaker's if known, else the role's."""
        return speaker_of(self.metadata, self.role.value)


def author_of(thing: Memory | Event) -> str | None:
    """Return who wrote a memory or an event: None where that is the store's person or their agent."""
    author = thing.metadata.get(AUTHOR)
    return author if isinstance(author, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run of events of one agent. Derived: from its first event to `session_end`, or to the last event seen."""

    id: str
    agent: str
    project: str | None
    start: Millis
    end: Millis | None
    title: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing worth knowing, in words that stand alone. `salience` and `confidence` are in [0, 1].

    `name` is None for a memory that was never named. `valid_from`/`valid_to` bound when it held, where the text says.
    One with an `archived_at` was put away at that time: it is kept, read by its id, and neither recalled nor listed.
    `review` is a `ReviewState` and the reasons for it, between spaces; None for a memory that nobody need look at.
    """

    id: str
    content: str
    kind: Kind
    type: MemoryType
    scope: Scope
    salience: float
    created_at: Millis
    updated_at: Millis
    content_hash: str
    name: str | None = None
    resource_id: str | None = None
    layer: Layer = Layer.ARCHIVE
    confidence: float = 1.0
    topic: str | None = None
    trust: Trust = Trust.USER
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    superseded_by: str | None = None
    archived_at: Millis | None = None
    review: str | None = None
    accessed_at: Millis | None = None
    access_count: int = 0
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name that resolves to a memory. It adds no search tokens: aliases are resolution, not search."""

    name: str
    memory_id: str
    created_at: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """Provenance: the place in the events that a memory was read from.

    The events from `event_id_start` to `event_id_end` of one session, in order, joined by a newline, hold `excerpt` at
    `[span_start:span_end]` (characters). `source` names the extractor and its version.
    """

    id: str
    memory_id: str
    event_id_start: str
    event_id_end: str
    span_start: int
    span_end: int
    excerpt: str
    source: str
    created_at: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class TocNode:
    """One entry of the table of contents by time. Derived: can always be rebuilt from events."""

    id: str
    title: str
    summary: str
    start: Millis
    end: Millis
    bullets: tuple[str, ...] = ()
    grip_ids: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One change to something that is not derived, appended in the transaction of that change.

    `seq` counts the ops of `device` from 1 without gaps. `type` is an `ops.OpType` value, `body` its fields.
    """

    device: str
    seq: int
    op_id: bytes
    hlc: Hlc
    type: int
    body: dict[int, Any]
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event as a client sends it, before redaction, an id, and the device's stamp.

    None means "not known": `ts` becomes the time of receipt, `role` follows from `type`, `dedupe_key` from the payload.
    """

    agent: str
    session_id: str
    type: EventType
    text: str = ""
    role: Role | None = None
    project: str | None = None
    ts: Millis | None = None
    utc_offset: int = 0
    trust: Trust = Trust.USER
    metadata: Json = field(default_factory=dict)
    dedupe_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """A memory as a client or an import sends it. None means "let policy decide" (salience, created_at) or "none"."""

    content: str
    name: str | None = None
    aliases: tuple[str, ...] = ()
    kind: Kind = Kind.STORED
    type: MemoryType = MemoryType.FACT
    scope: Scope = Scope.USER
    resource_id: str | None = None
    layer: Layer = Layer.ARCHIVE
    salience: float | None = None
    topic: str | None = None
    trust: Trust = Trust.USER
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    created_at: Millis | None = None
    metadata: Json = field(default_factory=dict)
