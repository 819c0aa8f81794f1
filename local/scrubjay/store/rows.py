"""Rows and records: which columns stand for which fields. Knows no connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis, ulid_bytes
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.records import (
    AUTHOR,
    Event,
    EventType,
    Grip,
    Json,
    Kind,
    Layer,
    Memory,
    MemoryType,
    Role,
    Scope,
    Session,
    Trust,
    speaker_of,
)
from scrubjay_shared.text import ASKS, analysed, asks

T = TypeVar("T")
P = ParamSpec("P")

EVENT_COLUMNS = "id, device, agent, session_id, project, ts, utc_offset, type, role, text, metadata, dedupe_key, trust"
MEMORY_COLUMNS = (
    "id, name, content, kind, type, scope, resource_id, layer, salience, confidence, topic, trust, valid_from,"
    " valid_to, superseded_by, created_at, updated_at, content_hash, metadata, archived_at, review"
)
GRIP_COLUMNS = "id, memory_id, event_id_start, event_id_end, span_start, span_end, excerpt, source, created_at"
SESSION_COLUMNS = "id, agent, project, start, case when closed >= last then closed end, title, events"

_AUTHORED = f"instr({{}}.metadata, '\"{AUTHOR}\"') > 0"

AUTHORED_M = _AUTHORED.format("m")
"""Of memory m: whether somebody wrote it who is not the store's person or their agent."""

PUT_AWAY_INTO = (
    "m.archived_at is not null and (m.valid_to is null"
    " or (select a.kind from memory a where a.id = m.superseded_by) = 'archive')"
    f" and (not {AUTHORED_M} or exists (select 1 from memory h where h.id = m.superseded_by"
    " and h.scope = m.scope and h.resource_id is m.resource_id))"
)
"""Of memory m with a successor: whether it was put away into that (merged, compressed). What is outdated has an end.

What somebody outside wrote leads to nothing but what stands where it may show itself, wherever it says that it went.
"""

HAS_MEMBERS = (
    "exists (select 1 from memory x where x.superseded_by = m.id and x.archived_at is not null"
    f" and (not {_AUTHORED.format('x')} or (x.scope = m.scope and x.resource_id is m.resource_id)))"
)
"""Of memory m: whether anything was put away into it."""

LISTED = "layer not in ('identity', 'active') and archived_at is null"
"""Which memories are counted as memories: the lines of the always-loaded layers are counted as keys of those."""

COVERED = (
    "select e.id from event e, event a, event b where a.id = ? and b.id = ? and a.session_id = b.session_id"
    " and e.session_id = a.session_id and (e.ts, e.seq, e.id) between (a.ts, a.seq, a.id) and (b.ts, b.seq, b.id)"
    " and not e.forgotten order by e.ts, e.seq, e.id"
)
"""The events of one session from one to another, inclusive, in order: the same one on every device."""

PLACE = "printf('%015d%019d%s', t.ts, t.seq, t.id)"
"""Where an event t stands among all of its session, as a text."""

ACCESSES = (
    "coalesce(a.total, 0) + (select coalesce(sum(c.total), 0) from counted c where c.memory_id = m.id"
    " and c.device <> (select value from meta where key = 'device')),"
    " nullif(max(coalesce(a.last, 0), (select coalesce(max(c.last), 0) from counted c where c.memory_id = m.id"
    " and c.device <> (select value from meta where key = 'device'))), 0)"
)
"""How often memory m was recalled on all devices, and when last. Of this one, access a is ahead of the log."""

KEPT_OUT = "(n in (select n from unlearned) and device = (select value from meta where key = 'device'))"
"""Which events were stored here without being learned from: nothing is told of them that was not asked for."""

NOT_AGAIN = f"""({KEPT_OUT} or instr(metadata, '"useMemory":false') > 0)"""
"""Which events nothing is to be learned from on any device, as far as this one knows, when sessions are read anew."""

SEARCHED_TYPES = frozenset(
    {
        EventType.USER_MESSAGE,
        EventType.ASSISTANT_MESSAGE,
        EventType.ASSISTANT_STOP,
        EventType.TOOL_RESULT,
        EventType.COMPACTION,
        EventType.NOTE,
    }
)
"""Events that recall can return: those that hold words. Starts and stops only open and close a session."""

EMBEDDED_TYPES = SEARCHED_TYPES - {EventType.TOOL_RESULT}
"""Events that get a vector. Tool output is found by its words; its sense is in the turns around it."""

MAX_INDEXED_CHARS = 20_000
"""How much of one text is tokenized: beyond about 3,000 words a text is a file, and is found by its beginning."""

ENDING_CHARS = 16
"""How much of the end of a text says whether it asks (`text.asks`)."""

MAX_EMBEDDED_CHARS = 4_000
"""How much of one text is given to the model, whose window is 512 tokens."""


_TEXT, _INT, _REAL = (str,), (int,), (float, int)
_MAYBE_TEXT, _MAYBE_INT = (str, type(None)), (int, type(None))
_Types = tuple[tuple[type, ...], ...]

_EVENT: _Types = (*[_TEXT] * 4, _MAYBE_TEXT, _INT, _INT, *[_TEXT] * 6)
_MEMORY: _Types = (
    *(_TEXT, _MAYBE_TEXT, *[_TEXT] * 4, _MAYBE_TEXT, _TEXT, _REAL, _REAL, _MAYBE_TEXT, _TEXT),
    *(_MAYBE_INT, _MAYBE_INT, _MAYBE_TEXT, _INT, _INT, _TEXT, _TEXT, _MAYBE_INT, _MAYBE_TEXT, _MAYBE_INT, _MAYBE_INT),
)
_GRIP: _Types = (*[_TEXT] * 4, _INT, _INT, _TEXT, _TEXT, _INT)
_SESSION: _Types = (_TEXT, _TEXT, _MAYBE_TEXT, _INT, _MAYBE_INT, _TEXT, _INT)
_EVENT_DOC: _Types = (*[_TEXT] * 3, _INT, _INT, *[_TEXT] * 4, _MAYBE_TEXT, _MAYBE_TEXT)
_MEMORY_DOC: _Types = (
    *(*[_TEXT] * 5, _REAL, _INT, _INT, _TEXT, _MAYBE_TEXT, _MAYBE_TEXT, _MAYBE_INT, _MAYBE_INT, _INT, _MAYBE_TEXT),
    *(_MAYBE_INT, _INT),
)

DAMAGED_HINT = "scrubjay doctor --deep says what is damaged, and what brings it back"


def _reads(
    what: str, types: _Types
) -> Callable[[Callable[Concatenate[tuple[Any, ...], P], T]], Callable[Concatenate[tuple[Any, ...], P], T]]:
    """Have a function that reads a row refuse a damaged one: the one place where that becomes a CorruptError."""

    def wrap(read: Callable[Concatenate[tuple[Any, ...], P], T]) -> Callable[Concatenate[tuple[Any, ...], P], T]:
        @wraps(read)
        def checked(row: tuple[Any, ...], /, *args: P.args, **named: P.kwargs) -> T:
            try:
                for value, allowed in zip(row, types, strict=False):
                    if type(value) not in allowed:
                        raise TypeError  # noqa: TRY301 - it is what the reading below would come to
                return read(row, *args, **named)
            except (ValueError, TypeError, LookupError, ArithmeticError, msgspec.MsgspecError, RecursionError) as error:
                raise CorruptError(f"{what} in the store is damaged", hint=DAMAGED_HINT) from error

        return checked

    return wrap


def beginning(columns: str, text: str, chars: int | None) -> str:
    """Return columns with only the first `chars` characters of the column `text`, or below zero the last; None all."""
    if chars is None:
        return columns
    part = f"substr({text}, 1, {chars})" if chars >= 0 else f"substr({text}, {chars})"
    return ", ".join(part if column.strip() == text else column.strip() for column in columns.split(","))


def placeholders(columns: str) -> str:
    """Return as many question marks as there are columns."""
    return ", ".join("?" * (columns.count(",") + 1))


def prefixed(columns: str, table: str) -> str:
    """Return columns as those of a table or its alias."""
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


def array(values: Iterable[Any]) -> str:
    """Return values as the JSON array that `json_each` reads: one parameter for any number of ids."""
    return msgspec.json.encode(list(values)).decode()


def array_of(text: str) -> list[str]:
    """Return the texts of a JSON array that a query aggregated."""
    return msgspec.json.decode(text, type=list[str])


def event_row(event: Event) -> tuple[Any, ...]:
    """Return the values of an event in the order of `EVENT_COLUMNS`."""
    return (
        event.id,
        event.device,
        event.agent,
        event.session_id,
        event.project,
        event.ts,
        event.utc_offset,
        event.type.value,
        event.role.value,
        event.text,
        json(event.metadata),
        event.dedupe_key,
        event.trust.value,
    )


def received_row(device: str, event_id: str, body: dict[int, Any]) -> tuple[Any, ...]:
    """Return the values of the event that the body of an op of `device` appends, in the order of `EVENT_COLUMNS`.

    The body is one of which `ops.problem` says nothing; `event_id` is its first value as a text.
    """
    metadata = body.get(12)
    return (
        event_id,
        device,
        body[2],
        body[3],
        body.get(9),
        body[7],
        body.get(10, 0),
        body[4],
        body[5],
        body[6],
        json(metadata) if metadata else "{}",
        body[8],
        ops.trust_word(body),
    )


def event_body(row: Sequence[Any]) -> dict[int, Any]:
    """Return what `ops.event_body` does of the event of a row of `EVENT_COLUMNS`."""
    event_id, _, agent, session_id, project, ts, offset, event_type, role, text, metadata, key, trust = row
    body = {1: ulid_bytes(event_id), 2: agent, 3: session_id, 4: event_type, 5: role, 6: text, 7: ts, 8: key}
    if project is not None:
        body[9] = project
    if offset:
        body[10] = offset
    body[11] = trust
    if metadata != "{}":
        body[12] = unjson(metadata)
    return body


@_reads("an event", _EVENT)
def event_of(row: tuple[Any, ...]) -> Event:
    """Return the event of a row of `EVENT_COLUMNS`."""
    return Event(
        id=row[0],
        device=row[1],
        agent=row[2],
        session_id=row[3],
        project=row[4],
        ts=Millis(row[5]),
        utc_offset=row[6],
        type=EventType(row[7]),
        role=Role(row[8]),
        text=row[9],
        metadata=unjson(row[10]),
        dedupe_key=row[11],
        trust=Trust(row[12]),
    )


def memory_row(memory: Memory) -> tuple[Any, ...]:
    """Return the values of a memory in the order of `MEMORY_COLUMNS`."""
    return (
        memory.id,
        memory.name,
        memory.content,
        memory.kind.value,
        memory.type.value,
        memory.scope.value,
        memory.resource_id,
        memory.layer.value,
        memory.salience,
        memory.confidence,
        memory.topic,
        memory.trust.value,
        memory.valid_from,
        memory.valid_to,
        memory.superseded_by,
        memory.created_at,
        memory.updated_at,
        memory.content_hash,
        json(memory.metadata),
        memory.archived_at,
        memory.review,
    )


@_reads("a memory", _MEMORY)
def memory_of(row: tuple[Any, ...]) -> Memory:
    """Return the memory of a row of `MEMORY_COLUMNS`, then `total, last` of its accesses (both may be None)."""
    return Memory(
        id=row[0],
        name=row[1],
        content=row[2],
        kind=Kind(row[3]),
        type=MemoryType(row[4]),
        scope=Scope(row[5]),
        resource_id=row[6],
        layer=Layer(row[7]),
        salience=row[8],
        confidence=row[9],
        topic=row[10],
        trust=Trust(row[11]),
        valid_from=_millis(row[12]),
        valid_to=_millis(row[13]),
        superseded_by=row[14],
        created_at=Millis(row[15]),
        updated_at=Millis(row[16]),
        content_hash=row[17],
        metadata=unjson(row[18]),
        archived_at=_millis(row[19]),
        review=row[20],
        access_count=row[21] or 0,
        accessed_at=_millis(row[22]),
    )


@_reads("a memory", (_TEXT, _REAL))
def confidence_of(row: tuple[Any, ...]) -> tuple[str, float]:
    """Return the id and the confidence of a row of both."""
    return row[0], float(row[1])


def grip_row(grip: Grip) -> tuple[Any, ...]:
    """Return the values of a grip in the order of `GRIP_COLUMNS`."""
    return (
        grip.id,
        grip.memory_id,
        grip.event_id_start,
        grip.event_id_end,
        grip.span_start,
        grip.span_end,
        grip.excerpt,
        grip.source,
        grip.created_at,
    )


@_reads("a citation", _GRIP)
def grip_of(row: tuple[Any, ...]) -> Grip:
    """Return the grip of a row of `GRIP_COLUMNS`."""
    return Grip(
        id=row[0],
        memory_id=row[1],
        event_id_start=row[2],
        event_id_end=row[3],
        span_start=row[4],
        span_end=row[5],
        excerpt=row[6],
        source=row[7],
        created_at=Millis(row[8]),
    )


@_reads("a session", _SESSION)
def session_of(row: tuple[Any, ...]) -> Session:
    """Return the session of a row of `SESSION_COLUMNS`."""
    return Session(
        id=row[0], agent=row[1], project=row[2], start=Millis(row[3]), end=_millis(row[4]), title=row[5], events=row[6]
    )


def event_tokens(event: Event) -> str:
    """Return the tokens an event is found by, joined by spaces; "" for one that recall never returns."""
    return _tokens(event.type.value, event.speaker, event.text)


def _tokens(event_type: str, speaker: str, text: str) -> str:
    if event_type not in SEARCHED or not text:
        return ""
    return _tokens_of(speaker, text[:MAX_INDEXED_CHARS], text[-ENDING_CHARS:])


def _tokens_of(speaker: str, beginning: str, end: str) -> str:
    tokens = analysed(f"[{speaker}] {beginning}")
    return f"{tokens} {ASKS}".lstrip() if asks(end) else tokens


SEARCHED = frozenset(kind.value for kind in SEARCHED_TYPES)


def memory_tokens(memory: Memory) -> str:
    """Return the tokens a memory is found by: those of its content and its name, not of its aliases."""
    return analysed(f"{memory.content[:MAX_INDEXED_CHARS]}\n{memory.name or ''}")


def event_words(event: Event) -> str:
    """Return the text an event is embedded as, of all its text or of the beginning."""
    return f"[{event.speaker}] {event.text[:MAX_EMBEDDED_CHARS]}"


@_reads("an event", _EVENT)
def event_doc(row: tuple[Any, ...], seq: int) -> EventDoc | None:
    """Return the event of a row of `EVENT_COLUMNS` as the index holds it; None for one that recall never returns."""
    speaker = _speaker(row[10], row[8])
    return doc_of_made(row, seq, speaker, _tokens(row[7], speaker, row[9]))


def received_words(row: Sequence[Any], metadata: Json | None) -> tuple[str, str]:
    """Return the speaker of a row that `received_row` made of a body with this metadata, and its tokens."""
    speaker = speaker_of(metadata, row[8]) if metadata else row[8]
    return speaker, _tokens(row[7], speaker, row[9])


def doc_of_made(row: Sequence[Any], seq: int, speaker: str, tokens: str) -> EventDoc | None:
    """Return what `event_doc` does of a row that was just made, with what `received_words` gives of it.

    Its place in the session is its time, then its op's place in the log.
    """
    if not tokens:
        return None
    event_id, _, agent, session_id, project, ts, _, event_type, *_ = row
    order = (ts << 20) + (seq & 0xFFFFF)
    return EventDoc(event_id, session_id, agent, ts, order, speaker, event_type, tokens, project)


def _speaker(metadata: str, role: str) -> str:
    return speaker_of(unjson(metadata), role) if '"speaker"' in metadata else role


def memory_doc(
    memory: Memory, tokens: str, sources: tuple[str, ...], *, holder: Memory | None = None, has_members: bool = False
) -> MemoryDoc:
    """Return a memory as the index holds it, with the events its grips cover.

    One that was put away into another (`holder`) is for whom that is for, and as current as that is.
    """
    shown = memory if holder is None else holder
    return MemoryDoc(
        id=memory.id,
        scope=shown.scope.value,
        resource_id=shown.resource_id,
        type=memory.type.value,
        kind=memory.kind.value,
        layer=shown.layer.value,
        topic=memory.topic,
        salience=memory.salience,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        superseded=shown.superseded_by is not None,
        archived_at=memory.archived_at,
        is_member=holder is not None,
        has_members=has_members,
        agent=_text(memory.metadata.get("agent")),
        session_id=_text(memory.metadata.get("session_id")),
        project=_text(memory.metadata.get("project")),
        tokens=tokens,
        sources=() if has_members else sources,
    )


EVENT_DOC_COLUMNS = (
    "e.id, e.session_id, e.agent, e.ts, (e.ts << 20) + (e.seq & 0xFFFFF), e.role, e.type,"
    f" substr(e.text, 1, {MAX_INDEXED_CHARS}), substr(e.text, -{ENDING_CHARS}), e.project,"
    " iif(e.metadata = '{}', null, e.metadata)"
)
"""What an `EventDoc` is made of, from event e: both ends of its text in place of the tokens."""


@_reads("an event", _EVENT_DOC)
def event_doc_of(row: tuple[Any, ...]) -> EventDoc | None:
    """Return the event of a row of `EVENT_DOC_COLUMNS` of a type that recall returns; None when no token remains.

    No record is built for each of a million events.
    """
    event_id, session_id, agent, ts, order, speaker, event_type, beginning, end, project, metadata, *_ = row
    if metadata is not None and '"speaker"' in metadata:
        speaker = speaker_of(unjson(metadata), speaker)
    if not (tokens := _tokens_of(speaker, beginning, end)):
        return None
    return EventDoc(event_id, session_id, agent, ts, order, speaker, event_type, tokens, project)


DOC_COLUMNS = (
    "m.id, m.scope, m.type, m.kind, m.layer, m.salience, m.created_at, m.updated_at, f.c0, m.resource_id,"
    " m.topic, m.valid_from, m.valid_to, m.superseded_by is not null, iif(m.metadata = '{}', null, m.metadata),"
    f" m.archived_at, m.kind = 'archive' and {HAS_MEMBERS}"
)
"""The fields of a `MemoryDoc`, but the metadata for where it was learned, from memory m and memory_fts_content f."""


@_reads("a memory", _MEMORY_DOC)
def memory_doc_of(row: tuple[Any, ...], sources: tuple[str, ...]) -> MemoryDoc:
    """Return the memory of a row of `DOC_COLUMNS`, as the index holds it."""
    where = {} if row[14] is None else unjson(row[14])
    learned = map(_text, map(where.get, ("session_id", "project", "agent")))
    own = () if row[16] else sources  # those of an archive's members lead to these
    return MemoryDoc._make((*row[:10], *learned, *row[10:13], bool(row[13]), row[15], False, bool(row[16]), own))


def parent_of(name: str) -> str | None:
    """Return the name whose second, third, … holder would show as `name`: `a` for `a~2`."""
    stem, tilde, number = name.rpartition("~")
    return stem if tilde and number.isascii() and number.isdigit() and number[0] != "0" and number != "1" else None


def json(value: Json) -> str:
    """Return a JSON object as stored."""
    return msgspec.json.encode(value, order="deterministic").decode()


def unjson(text: str) -> Json:
    """Return the object of stored JSON. Raises CorruptError."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise CorruptError("metadata in the store is damaged", hint=DAMAGED_HINT) from error
    if not isinstance(value, dict):
        raise CorruptError("metadata in the store is damaged", hint=DAMAGED_HINT)
    return value


def _millis(value: int | None) -> Millis | None:
    return None if value is None else Millis(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
