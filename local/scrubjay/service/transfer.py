"""Records of an export become records of this store, as what its reader makes of them: an import, or a restore.

An import is somebody's file. Every record goes through `intake` as any other draft, gets an id of its own, made of the
one in the file (so that a second import adds nothing, and no file can speak of what is here already), and keeps a grip
only where the events say what the grip says they do. A restore is the person's act: ids, trust and layers stay as they
stand in the file; secrets, limits and grips are looked at all the same.

A restore of a file that holds the log takes the log in, as sync takes in the logs of other devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.importers import export_format
from scrubjay.ingest import intake
from scrubjay.ingest.intake import Source
from scrubjay.intervals import marked, told
from scrubjay.lifecycle.replacement import closes_circle
from scrubjay.lifecycle.trust import risks_of, waiting
from scrubjay.policy import DEFAULT, TYPE_SALIENCE, MemoryPolicy
from scrubjay.service.events import without_forgotten
from scrubjay.store import MemoryWrite, Statement, Transaction, minted
from scrubjay.store.queries.replication import LEFT
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, DeniedError, InvalidError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventDraft, Grip, Kind, MemoryDraft, Scope, content_hash

AT_ONCE = 500
"""Ops of a log taken in by one transaction: some hundredths of a second, so that others get their turn."""


@dataclass(slots=True)
class Tally:
    """What became of the records of a file so far. `there` has the id here of each event, by its id in the file."""

    events: int = 0
    memories: int = 0
    duplicates: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    there: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A memory of a file that may be stored: cleaned, with its grips that hold no secret, and what was lowered."""

    kept: export_format.MemoryRecord
    draft: MemoryDraft
    grips: tuple[Grip, ...]
    changed: Counter[str]
    review: str | None = None


# --- records ----------------------------------------------------------------------------------------------------------


def events_of(
    events: Iterable[Event], tally: Tally, *, source: Source, device: str, now: Millis, policy: MemoryPolicy
) -> list[tuple[str, Event]]:
    """Return events of a file that may be stored, each with its id in the file; the others are counted."""
    ready: list[tuple[str, Event]] = []
    for place, event in enumerate(events):
        draft = EventDraft(
            agent=event.agent,
            session_id=event.session_id,
            type=event.type,
            text=event.text,
            role=event.role,
            project=event.project,
            ts=event.ts,
            utc_offset=event.utc_offset,
            trust=event.trust,
            metadata=event.metadata,
            dedupe_key=event.dedupe_key,
        )
        try:
            clean = intake.event(draft, place, device=device, now=now, policy=policy, source=source)
        except InvalidError:
            tally.skipped["refused"] += 1
            continue
        if clean.reason is not None:
            tally.skipped[clean.reason] += 1
            continue
        tally.redactions += clean.redactions
        tally.changed["trust"] += clean.event.trust is not event.trust
        own = minted(event.id) if source is Source.IMPORT else event.id
        ready.append((event.id, replace(clean.event, id=own)))
    return ready


def append_events(tx: Transaction, ready: Sequence[tuple[str, Event]]) -> tuple[dict[str, str], int, int]:
    """Store events that are not there yet.

    Returns their ids here, by their ids in the file, how many are new, and how many were forgotten as they stand there.
    """
    known = tx.queries.events.known([event for _, event in ready])
    known |= tx.queries.events.known([replace(event, id=given) for given, event in ready])
    there: dict[str, str] = {}
    fresh: list[Event] = []
    for given, event in ready:
        if event.dedupe_key not in known:
            known[event.dedupe_key] = event.id
            fresh.append(event)
        there[given] = known[event.dedupe_key]
    left = without_forgotten(tx, fresh, imported=True) if tx.queries.tombstones.any_words() else fresh
    kept = {event.id for event in left}
    gone = {event.id for event in fresh if event.id not in kept}
    # They were distilled where they were said: what that gave stands in the file.
    tx.events.append(left, learn=False)
    return {given: here for given, here in there.items() if here not in gone}, len(left), len(gone)


def memories_of(
    records: Iterable[export_format.MemoryRecord], tally: Tally, *, source: Source, policy: MemoryPolicy
) -> list[Ready]:
    """Return the memories of a file that may be stored; the others are counted."""
    ready: list[Ready] = []
    for kept in records:
        memory = kept.memory
        draft = MemoryDraft(
            content=memory.content,
            name=memory.name,
            aliases=kept.aliases,
            kind=memory.kind,
            type=memory.type,
            scope=memory.scope,
            resource_id=memory.resource_id,
            layer=memory.layer,
            salience=memory.salience,
            topic=memory.topic,
            trust=memory.trust,
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
            created_at=memory.created_at,
            metadata=memory.metadata,
        )
        try:
            cleaned = intake.memory(draft, policy, source)
        except (InvalidError, DeniedError):
            tally.skipped["refused"] += 1
            continue
        grips = tuple(grip for grip in kept.grips if _is_clean(grip, policy))
        tally.skipped["source_not_found"] += len(kept.grips) - len(grips)
        review = memory.review
        if source is Source.IMPORT:
            risks = risks_of(
                cleaned.content, trust=cleaned.trust, scope=cleaned.scope, kind=cleaned.kind, policy=policy.review
            )
            review = waiting(risks)
        changed = intake.changes(draft, cleaned)
        ready.append(Ready(kept=kept, draft=cleaned, grips=grips, changed=changed, review=review))
    return ready


def _is_clean(grip: Grip, policy: MemoryPolicy) -> bool:
    """Say whether a grip's own texts may be stored. No event holds a secret, so none holds an excerpt with one."""
    try:
        return (
            intake.name(policy, grip.source) == grip.source
            and bool(grip.excerpt)
            and intake.content(policy, grip.excerpt) == grip.excerpt.strip()
        )
    except InvalidError:
        return False


def write_memories(
    tx: Transaction, group: Sequence[Ready], *, source: Source, there: Mapping[str, str]
) -> tuple[int, Counter[str], Counter[str]]:
    """Write memories of a file. Returns how many are new, what was left out, and what was lowered, by reason."""
    skipped: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    ids = {ready.kept.memory.id: minted(ready.kept.memory.id) for ready in group}
    gone, known = tx.queries.ops.forgotten([*ids, *ids.values()]), tx.queries.memories.existing([*ids, *ids.values()])
    taken = tx.queries.names.holders([name for ready in group for name in _names(ready.draft)])
    writes: list[MemoryWrite] = []
    superseded: dict[str, str] = {}

    def successor_of(memory_id: str) -> str | None:
        return superseded.get(memory_id) or tx.queries.memories.successor(memory_id)

    for ready in group:
        given = ready.kept.memory.id
        here = ids[given] if source is Source.IMPORT else given
        if given in gone or here in gone:
            skipped["forgotten"] += 1
            continue
        if given in known or here in known:
            continue
        known.add(here)
        names = _names(ready.draft)
        free = tuple(dict.fromkeys(name for name in names if taken.setdefault(name, here) == here))
        if set(names) - set(free):
            skipped["name_taken"] += 1
        grips = tuple(grip for one in ready.grips if tx.queries.grips.holds(grip := _moved(one, here, there, source)))
        skipped["source_not_found"] += len(ready.grips) - len(grips)
        draft, lowered = ready.draft, ready.changed.copy()
        if (
            ready.kept.memory.kind is Kind.OBSERVATION
        ):  # it is one as far as the passages that it was read from are here
            draft = replace(draft, kind=Kind.OBSERVATION if grips else Kind.STORED)
            lowered["kind"] = int(not grips)
        draft = replace(draft, name=draft.name if draft.name in free else None)
        [text] = tx.forget.left_of([statement_of(draft)])
        if text is None or (grips and text != draft.content):
            skipped["forgotten"] += 1
            continue
        skipped["forgotten"] += text != draft.content
        draft = replace(draft, content=text)
        successor = _successor(tx, ready.kept.memory.superseded_by, source)
        if successor is not None and closes_circle(here, successor, successor_of):
            successor = None
            lowered["superseded_by"] += 1
        elif successor is not None:
            superseded[here] = successor
        changed += lowered
        fields = fields_of(draft, tx.now) | present(
            {
                Field.CONFIDENCE: ready.kept.memory.confidence,
                Field.SUPERSEDED_BY: successor,
                Field.REVIEW: ready.review,
            }
        )
        writes.append(MemoryWrite(memory_id=here, fields=fields, grips=grips, names=free))
    tx.memories.write(writes)
    return len(writes), +skipped, +changed


def statement_of(draft: MemoryDraft) -> Statement:
    """Return what a draft says, to be compared with what was forgotten."""
    return Statement(text=draft.content, project=draft.resource_id if draft.scope is Scope.PROJECT else None)


def _names(draft: MemoryDraft) -> list[str]:
    return [name for name in (draft.name, *draft.aliases) if name is not None]


def _moved(grip: Grip, memory_id: str, there: Mapping[str, str], source: Source) -> Grip:
    """Return a grip as that of a memory here, on the events as they are known here."""
    return replace(
        grip,
        id=minted(grip.id) if source is Source.IMPORT else grip.id,
        memory_id=memory_id,
        event_id_start=there.get(grip.event_id_start, grip.event_id_start),
        event_id_end=there.get(grip.event_id_end, grip.event_id_end),
    )


def _successor(tx: Transaction, given: str | None, source: Source) -> str | None:
    """Return the id here of the memory that took another's place; None for what is no id."""
    if given is None:
        return None
    try:
        own = minted(given)
    except ValueError:
        return None
    return given if source is Source.RESTORE or tx.queries.memories.existing([given]) else own


# --- the log ----------------------------------------------------------------------------------------------------------


def takes_log(tx: Transaction) -> bool:
    """Say whether this store may take in a log as it stands: it replicates with no account, and never did.

    An account would never hear of ops that it has not and that are not this device's own. A store that enters its first
    account makes all that it holds its own (`Transaction.adopt`), and so what was restored goes there too.
    """
    return tx.queries.replication.state() is None and tx.queries.replication.left() in {None, b""}


def runs(lines: Iterable[export_format.Line]) -> Iterator[tuple[str, list[tuple[int, bytes | None]]]]:
    """Yield the ops of a file in runs of one device."""
    run: list[tuple[int, bytes | None]] = []
    device = ""
    for line in lines:
        logged = line.logged()
        if logged is None:
            continue
        if run and (logged.device != device or len(run) == AT_ONCE):
            yield device, run
            run = []
        device = logged.device
        run.append((logged.seq, logged.data))
    if run:
        yield device, run


def restore_run(tx: Transaction, device: str, run: Sequence[tuple[int, bytes | None]], *, own: bool) -> Counter[str]:
    """Take in a run of a log; `own` says that it is this device's. Returns what of it was left out, by reason."""
    held = tx.queries.ops.ids_at(device, [seq for seq, _ in run])
    other = sum(data is not None and seq in held and _op_id(data) not in {held[seq], None} for seq, data in run)
    received = tx.ingest.receive(device, run)
    if not own:
        tx.set_meta(LEFT, "")
    return Counter({"another_op": other, "not_understood": received.quarantined})


def _op_id(data: bytes) -> bytes | None:
    try:
        return ops.read(data, device="", seq=0)[2]
    except CorruptError:
        return None


def forget_copies(tx: Transaction, records: Sequence[export_format.Line], *, events: bool) -> None:
    """Forget what an earlier import of the same memories (and events) made, now that they are restored themselves.

    A copy that says something else by now is the person's, and stays.
    """
    said = {minted(line.memory.memory.id): line.memory.memory.content for line in records if line.memory is not None}
    hashes = {memory_id: content_hash(content) for memory_id, content in said.items()}
    for memory_id, found in tx.queries.memories.content_hashes(hashes).items():
        if found == hashes[memory_id]:
            tx.forget.memory(memory_id)
    copies = [minted(line.event.id) for line in records if events and line.event is not None]
    for event_id in tx.queries.events.existing(copies):
        tx.forget.event(event_id)


def _texts(ids: Iterable[str]) -> str:
    return "[" + ",".join(f'"{one}"' for one in ids) + "]"


# --- registers --------------------------------------------------------------------------------------------------------


def fields_of(draft: MemoryDraft, now: Millis) -> dict[Field, Any]:
    """Return the registers of a new memory. Absent ones show their default."""
    skew = DEFAULT.limits.clock_skew_ms
    salience = TYPE_SALIENCE[draft.type] if draft.salience is None else float(draft.salience)
    return present(
        {
            Field.CONTENT: draft.content,
            Field.KIND: draft.kind.value,
            Field.TYPE: draft.type.value,
            Field.SCOPE: draft.scope.value,
            Field.RESOURCE_ID: draft.resource_id,
            Field.LAYER: draft.layer.value,
            Field.SALIENCE: salience,
            Field.TOPIC: draft.topic,
            Field.TRUST: draft.trust.value,
            Field.VALID_FROM: draft.valid_from,
            Field.VALID_TO: draft.valid_to,
            Field.CREATED_AT: told(draft.created_at, now, skew),
            Field.METADATA: marked(draft.metadata, draft.created_at, now, skew) or None,
            Field.NAME: draft.name,
        }
    )


def present(fields: Mapping[Field, Any]) -> dict[Field, Any]:
    """Return the registers that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
