"""The verbs of scrubjay as data: each one's request, answer and route. Every door reads this table; none adds to it.

A reference (`ref`) is a memory's id, an unambiguous prefix of at least 6 characters of it, its name, or any alias.
Times are UTC milliseconds. `project` and `session_id` say who is asking: without either the caller is the person at
the keyboard, who sees everything; else it sees the person's memories, that project's, and its session's, and events of
that project, of its session, or of none. To whoever asks, what it may not see does not exist: no verb reads or changes
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import (
    Event,
    EventDraft,
    Grip,
    Json,
    Kind,
    Layer,
    Memory,
    MemoryDraft,
    MemoryType,
    Scope,
    Session,
)


class Mode(StrEnum):
    """How recall ranks: the hand-set hybrid, pure BM25, or cosine plus weighted token overlap with a topic filter."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Why something was not taken, and how often."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """A batch of events. `learn` false stores them without distilling (the request-level off switch)."""

    events: tuple[EventDraft, ...]
    learn: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestAnswer:
    """What became of a batch: durable when this is returned. `ids` stand in the order of the drafts.

    An id of an event that was already there is that event's; "" stands where the draft was skipped.
    """

    accepted: int
    duplicates: int
    ids: tuple[str, ...]
    redactions: dict[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory with the names that resolve to it. `created` is false when an equal memory was already there."""

    memory: Memory
    aliases: tuple[str, ...] = ()
    created: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRequest:
    """One memory, addressed by id, prefix, name or alias."""

    ref: str
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """A page of memories, newest first. `cursor` is the last answer's `next`."""

    limit: int = 50
    cursor: str | None = None
    type: MemoryType | None = None
    kind: Kind | None = None
    layer: Layer | None = None
    scope: Scope | None = None
    project: str | None = None
    session_id: str | None = None
    since: Millis | None = None
    until: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAnswer:
    """A page of entries and the cursor of the next, None at the end. A page of large texts ends before its limit.

    `notes` say when nothing belongs to `project`.
    """

    entries: tuple[Entry, ...]
    next: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """New values for a memory's fields; None leaves a field as it is (`Write` of the entry model is `content`)."""

    ref: str
    content: str | None = None
    type: MemoryType | None = None
    salience: float | None = None
    topic: str | None = None
    layer: Layer | None = None
    metadata: Json | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest:
    """A new canonical name. The old one stays as an alias, so that nothing that used it breaks."""

    ref: str
    name: str
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRequest:
    """Bind one more name to a memory, or with `remove` take it away."""

    ref: str
    alias: str
    remove: bool = False
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """Erase a memory or an event. `keep_sources` leaves the words in the events that the memory was read from."""

    ref: str
    keep_sources: bool = False
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetAnswer:
    """What is gone: memories and events by id. `sources` counts the passages blanked out of events.

    `copies` are files beside the store, made before, that may still hold the words: backups, and stores that a restore
    put aside. Nothing but the person deletes those.
    """

    forgotten: tuple[str, ...]
    events: tuple[str, ...] = ()
    sources: int = 0
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A grip with the events it points at. Of a long event the text stands to the end of the passage, or further."""

    grip: Grip
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One op that touched a memory: when, on which device, what kind, and which fields."""

    ts: Millis
    device: str
    seq: int
    change: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an imported text stands: its file (the whole path, where that is known) and the headings above it."""

    file: str
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a memory came to be, when, and on which device; `here` says whether that is the one that answers.

    `how` is "learned" (read from what was said: see `sources`), "imported" (from `places`) or "added"; `by` is how far
    who added it is trusted: "user" is the person, "agent" a program that acts for them.
    """

    how: str
    by: str
    ts: Millis
    device: str
    here: bool
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyAnswer:
    """Why a memory is believed: where it came from, the passages it was read from, and what happened to it since."""

    entry: Entry
    sources: tuple[Source, ...]
    history: tuple[Change, ...]
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsRequest:
    """Which memories' conflicts: all that who asks may see."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What another device wrote into a field, at what time by its own clock. `version` is what `resolve` takes."""

    version: str
    ts: Millis
    device: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A field that devices wrote without having seen each other's: the value that is shown, and the others.

    `field` is its name, or its number where a newer version wrote it.
    """

    memory_id: str
    name: str | None
    field: str
    shown: Any
    others: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsAnswer:
    """The open conflicts, by memory and field."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveRequest:
    """Which version of a memory's field is right: None is the one that is shown. Closed on every device, for good."""

    ref: str
    field: str
    version: str | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A question, and what may answer it.

    `since`/`until` bound the time of the candidates; dates in the question itself only favour candidates near them.
    `kinds` is any of "memory" and "event". `neighbours` asks for that many events on either side of each hit.
    `max_tokens` bounds the whole answer's texts and is never exceeded. `min_salience` applies to memories.
    `scope` narrows; a scope wider than the caller's, or another project's `resource_id`, is refused. `rerank` false
    leaves the reranking model out of mode hybrid; true or not, it takes part only where it is installed and in use.
    """

    query: str
    limit: int = 10
    mode: Mode = Mode.HYBRID
    project: str | None = None
    session_id: str | None = None
    scope: Scope | None = None
    resource_id: str | None = None
    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    types: tuple[MemoryType, ...] = ()
    kinds: tuple[str, ...] = ("memory", "event")
    min_salience: float = 0.0
    max_tokens: int | None = None
    neighbours: int = 0
    rerank: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A line of evidence: who said it, when, and the words (the grip's excerpt, or the event's text)."""

    event_id: str
    session_id: str
    ts: Millis
    utc_offset: int
    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer. `parts` add up to `score`. `truncated` is true when its text was cut, to the budget or as too long.

    `kind` is "memory" or "event"; for an event, `text` is its text and `type` its event type.
    """

    id: str
    kind: str
    text: str
    score: float
    ts: Millis
    type: str
    parts: dict[str, float] = field(default_factory=dict)
    name: str | None = None
    scope: str | None = None
    resource_id: str | None = None
    salience: float | None = None
    trust: str | None = None
    superseded_by: str | None = None
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    sources: tuple[Quote, ...] = ()
    neighbours: tuple[Quote, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAnswer:
    """Hits, best first. `mode` is what was really done.

    `notes` say what was missing: no model, texts not embedded yet, a project that nothing belongs to.
    `tokens` estimates what the texts cost a model's context; `left_out` counts hits the budget had no room for.
    `stages_ms` splits `elapsed_ms`: "embed" (the question's vector), "rank", "rerank" (0 where no model took part) and
    "read" (the texts of the hits); what is left is checking and counting.
    """

    hits: tuple[Hit, ...]
    mode: str
    tokens: int
    elapsed_ms: float
    left_out: int = 0
    notes: tuple[str, ...] = ()
    stages_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRequest:
    """One line of the identity or active layer: a key and its value; an empty value removes it."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """Who wants the startup context."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """What an agent loads at its start: identity and active layer as text. `cut` names what did not fit.

    `notes` say when nothing belongs to the project that was named.
    """

    text: str
    tokens: int
    identity: dict[str, str]
    active: dict[str, str]
    cut: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRequest:
    """A page of events in time order, optionally of one session."""

    session_id: str | None = None
    project: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsAnswer:
    """A page of events and the cursor of the next, None at the end. A page of large texts ends before its limit.

    `notes` say when nothing belongs to `project`.
    """

    events: tuple[Event, ...]
    next: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsAnswer:
    """All sessions, newest first."""

    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """A file's bytes, its name, and optionally its format and the one conversation wanted.

    `place` says which file it is, whatever way it was named: its absolute path. An edited file updates the notes of its
    own place; without one, files of the same name for the same project are taken for one file.

    With `restore`, the file is the person's own export and is put back: layers and trust as they stand in it.
    """

    name: str
    data: bytes
    format: str | None = None
    only: str | None = None
    project: str | None = None
    dry_run: bool = False
    place: str | None = None
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer:
    """What an import took and what it skipped, by reason. Importing the same again adds nothing.

    `memories` counts new notes and updated ones. `renamed` counts notes whose name another memory has: theirs is longer
    by the file's path; `aliases_taken` counts aliases that belong to another memory and were left out.

    `changed` counts what records said of themselves and were not believed: `trust`, `layer`, `kind`, and `name` for
    those of always loaded lines.
    """

    format: str
    events: int
    memories: int
    duplicates: int
    redactions: dict[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    renamed: int = 0
    aliases_taken: int = 0
    changed: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsAnswer:
    """Counts and sizes of the store. `refused` texts are those that the model refused to embed."""

    memories: int
    events: int
    sessions: int
    aliases: int
    grips: int
    ops: int
    identity_keys: int
    active_keys: int
    by_type: dict[str, int]
    by_kind: dict[str, int]
    file_bytes: int
    schema_version: int
    embedded: int
    to_embed: int
    to_learn: int
    space: str | None
    refused: int = 0
    oldest: Millis | None = None
    newest: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A background job: when it ran, how it went, when it runs next. `running` is true while it holds its lease."""

    name: str
    running: bool
    runs: int
    failures: int
    last_start: Millis | None = None
    last_ms: int | None = None
    last_error: str | None = None
    next_run: Millis | None = None
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """How the daemon is: process, store, models, jobs.

    A model's state is "loaded", "idle" (loaded when it is next needed), "none", "absent" (a reranker that is not
    installed, which is no fault), or the code of the error that it met.
    """

    version: str
    pid: int
    started: Millis
    file: str
    sqlite_version: str
    schema_version: int
    device: str
    model: str
    model_state: str
    reranker: str
    reranker_state: str
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRequest:
    """A file to write on this machine, by its absolute path. `force` replaces a file that is there, but for our own."""

    path: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathAnswer:
    """A file that was written and checked: its path, size and SHA-256."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildRequest:
    """Derive everything again from events and ops; with `vectors`, embed everything again too."""

    vectors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildAnswer:
    """What was derived again, and the digest of the view before and after (equal, unless it was damaged)."""

    memories: int
    events: int
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleRequest:
    """Wait until nothing is left to learn or embed, for at most `timeout_ms`; 0 only looks."""

    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleAnswer:
    """What is still waiting; zeros when all is done."""

    to_learn: int
    to_embed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """The model to embed or rerank with from now on, whichever it does; "none" for lexical recall only.

    With `reranker` the name is that of a reranking model: "none" then means that nothing is reranked.
    """

    name: str
    reranker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """One model: "embedder" or "reranker", whether its files are here and whole, and whether it is in use."""

    name: str
    kind: str
    state: str
    bytes: int
    licence: str
    in_use: bool
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsAnswer:
    """The models, and how far embedding has come in the space in use.

    `refused` texts are found by their words alone. `notes` say where another model is named than the one in use.
    """

    models: tuple[ModelState, ...]
    space: str | None
    embedded: int
    to_embed: int
    refused: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A request without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One verb: the service method's name, its route, its types. Path parameters are fields of the request."""

    name: str
    method: str
    path: str
    request: type[Any]
    answer: type[Any]
    summary: str
    status: int = 200


VERBS: tuple[Verb, ...] = (
    Verb(
        name="ingest",
        method="POST",
        path="/v1/events",
        request=IngestRequest,
        answer=IngestAnswer,
        summary="Append events; durable when answered, learned from in the background.",
        status=202,
    ),
    Verb(
        name="events",
        method="GET",
        path="/v1/events",
        request=EventsRequest,
        answer=EventsAnswer,
        summary="Page through events in time order.",
    ),
    Verb(
        name="sessions",
        method="GET",
        path="/v1/sessions",
        request=Nothing,
        answer=SessionsAnswer,
        summary="All sessions, newest first.",
    ),
    Verb(
        name="add",
        method="POST",
        path="/v1/memories",
        request=MemoryDraft,
        answer=Entry,
        summary="Add a memory; an equal one in the same scope is returned instead of stored twice.",
        status=201,
    ),
    Verb(
        name="list",
        method="GET",
        path="/v1/memories",
        request=ListRequest,
        answer=ListAnswer,
        summary="Page through memories, newest first.",
    ),
    Verb(
        name="get",
        method="GET",
        path="/v1/memories/{ref}",
        request=RefRequest,
        answer=Entry,
        summary="One memory by id, prefix, name or alias.",
    ),
    Verb(
        name="update",
        method="PATCH",
        path="/v1/memories/{ref}",
        request=UpdateRequest,
        answer=Entry,
        summary="Rewrite a memory's content or fields.",
    ),
    Verb(
        name="forget",
        method="DELETE",
        path="/v1/memories/{ref}",
        request=ForgetRequest,
        answer=ForgetAnswer,
        summary="Erase a memory (or an event, by its id) and the words it was read from.",
    ),
    Verb(
        name="rename",
        method="POST",
        path="/v1/memories/{ref}/rename",
        request=RenameRequest,
        answer=Entry,
        summary="Give a memory another canonical name.",
    ),
    Verb(
        name="alias",
        method="POST",
        path="/v1/memories/{ref}/aliases",
        request=AliasRequest,
        answer=Entry,
        summary="Bind or remove an additional name.",
    ),
    Verb(
        name="why",
        method="GET",
        path="/v1/memories/{ref}/why",
        request=RefRequest,
        answer=WhyAnswer,
        summary="The passages a memory was read from, and its history.",
    ),
    Verb(
        name="conflicts",
        method="GET",
        path="/v1/conflicts",
        request=ConflictsRequest,
        answer=ConflictsAnswer,
        summary="Fields that devices wrote without having seen each other's values.",
    ),
    Verb(
        name="resolve",
        method="POST",
        path="/v1/memories/{ref}/resolve",
        request=ResolveRequest,
        answer=Entry,
        summary="Settle a conflict: keep the value that is shown, or another device's.",
    ),
    Verb(
        name="recall",
        method="POST",
        path="/v1/recall",
        request=RecallRequest,
        answer=RecallAnswer,
        summary="Memories and events that answer a question, best first.",
    ),
    Verb(
        name="context",
        method="GET",
        path="/v1/context",
        request=ContextRequest,
        answer=ContextAnswer,
        summary="What an agent loads at its start: identity and active layer.",
    ),
    Verb(
        name="set_identity",
        method="PUT",
        path="/v1/identity/{key}",
        request=SlotRequest,
        answer=ContextAnswer,
        summary="Set one line of the identity layer.",
    ),
    Verb(
        name="set_active",
        method="PUT",
        path="/v1/active/{key}",
        request=SlotRequest,
        answer=ContextAnswer,
        summary="Set one line of the active layer.",
    ),
    Verb(
        name="import_",
        method="POST",
        path="/v1/import",
        request=ImportRequest,
        answer=ImportAnswer,
        summary="Import a file's bytes (base64 in JSON); idempotent.",
    ),
    Verb(
        name="stats", method="GET", path="/v1/stats", request=Nothing, answer=StatsAnswer, summary="Counts and sizes."
    ),
    Verb(
        name="status",
        method="GET",
        path="/v1/status",
        request=Nothing,
        answer=StatusAnswer,
        summary="Process, store, models and jobs.",
    ),
    Verb(
        name="settle",
        method="POST",
        path="/v1/settle",
        request=SettleRequest,
        answer=SettleAnswer,
        summary="Wait until everything received has been learned and embedded.",
    ),
    Verb(
        name="backup",
        method="POST",
        path="/v1/backup",
        request=PathRequest,
        answer=PathAnswer,
        summary="Write a checked copy of the store while it runs.",
    ),
    Verb(
        name="rebuild",
        method="POST",
        path="/v1/rebuild",
        request=RebuildRequest,
        answer=RebuildAnswer,
        summary="Derive everything again from events and ops.",
    ),
    Verb(
        name="models",
        method="GET",
        path="/v1/models",
        request=Nothing,
        answer=ModelsAnswer,
        summary="Embedding and reranking models, and progress.",
    ),
    Verb(
        name="use_model",
        method="POST",
        path="/v1/models/use",
        request=ModelRequest,
        answer=ModelsAnswer,
        summary="Embed or rerank with another model from now on.",
    ),
)
BY_NAME: dict[str, Verb] = {verb.name: verb for verb in VERBS}
