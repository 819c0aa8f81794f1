"""Import: a file's bytes become events and memories, or an export is put back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from scrubjay import api, importers, redaction
from scrubjay.api.caller import IMPORTER, Caller
from scrubjay.importers import agent_folder, export_format, reconcile
from scrubjay.importers.parsing import SourceFormat, as_utf8, decoded, in_order
from scrubjay.ingest import intake
from scrubjay.ingest.twins import grown, twins
from scrubjay.lifecycle.trust import risks_of, waiting
from scrubjay.policy import MemoryPolicy
from scrubjay.service import transfer
from scrubjay.service.account_stores import AccountStores
from scrubjay.service.events import Events, skipped_of
from scrubjay.service.memories import Memories
from scrubjay.service.project_names import ProjectNames
from scrubjay.service.threads import kept_from_collector
from scrubjay.store import Cause, MemoryWrite, Queries, Sections, Store, Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import (
    Event,
    EventDraft,
    EventType,
    Kind,
    MemoryDraft,
    ReviewState,
    Scope,
    Trust,
    content_hash,
    review_state,
)

NAMED_CHARS = 80
"""Of a text that was taken back: one line of a terminal."""
LOOKED_CHARS = 4_000
"""Of such a text that secrets are looked for in, before it is cut."""
MOST_NAMED = 100
"""Such texts of one file that are named."""


class Imports:
    """Takes files into one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        events: Events,
        memories: Memories,
        project_names: ProjectNames,
        accounts: Callable[[], AccountStores | None],
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._events = events
        self._memories = memories
        self._project_names = project_names
        self._accounts = accounts
        self._wake = wake
        self._now = now

    async def load(self, _: Caller, request: api.ImportRequest) -> api.ImportResponse:
        """Take in a file's bytes. Importing the same again adds nothing; a note that was edited is updated.

        What a file says of itself counts for no more than an import. An export that the person restores is their own
        act: its layers and its trust count as they stand in it.
        """
        if request.format in {None, export_format.FORMAT} and await asyncio.to_thread(
            export_format.is_export, request.data
        ):
            return await self._import_export(request)
        if request.restore:
            raise InvalidError(
                f"{request.name} is not a scrubjay export, and only an export can be restored",
                hint="import it without --restore; scrubjay restore puts back a backup",
            )
        cause = self._cause(request)
        parsed = await asyncio.to_thread(kept_from_collector, partial(_parsed, request, self._policy))
        skipped: Counter[str] = Counter(dict(parsed.skipped))
        changed: Counter[str] = Counter()
        if request.dry_run:
            return api.ImportResponse(
                format=parsed.format.value,
                events=len(parsed.events),
                memories=len(parsed.memories),
                duplicates=0,
                skipped=skipped_of(skipped),
                taken_back=_beginnings(parsed.taken_back, self._policy),
            )
        own = await self._own(parsed.events)
        skipped["of_another_account"] += len(parsed.events) - len(own)
        latest = self._now() + self._policy.limits.clock_skew_ms
        parsed = replace(parsed, events=await self._project_names.events(in_order(own, latest)))
        events = memories = duplicates = 0
        redactions: Counter[str] = Counter()
        caught = await self._caught(parsed)
        told = await self._told(parsed)
        keys = {draft.dedupe_key for draft in parsed.events}
        source = intake.Source.TRANSCRIPT if parsed.format in importers.TYPED else intake.Source.IMPORT
        for drafted in batches(parsed.events, self._policy.work.import_events):
            batch = await self._under_earlier_keys(drafted, parsed.earlier_keys)
            cleaned = await asyncio.to_thread(self._events.cleaned, batch, source, self._now())
            wanted = [one for one in cleaned if isinstance(one, intake.Clean)]
            skipped["refused"] += len(cleaned) - len(wanted)
            if caught:
                wanted = _under_keys_of_twins(wanted, caught)
            if told:
                wanted = [_without_told(one, told, keys) for one in wanted]
            answer = await self._events.append(wanted, learn=True, cause=cause)
            events += answer.accepted
            duplicates += answer.duplicates
            redactions.update(answer.redactions)
            skipped.update({line.reason: line.count for line in answer.skipped})
        for drafts in batches(parsed.memories, self._policy.work.import_memories):
            plan, created, said, lowered = await self._import_notes(drafts, cause)
            memories += created + plan.updated
            duplicates += plan.same + len(plan.fresh) - created
            skipped.update(said)
            changed.update(lowered)
        if _is_instructions(request):
            await self._end_sections(request, parsed.memories, cause)
        return api.ImportResponse(
            format=parsed.format.value,
            events=events,
            memories=memories,
            duplicates=duplicates,
            redactions=dict(sorted(redactions.items())),
            renamed=skipped.pop("renamed", 0),
            aliases_taken=skipped.pop("aliases_taken", 0),
            skipped=skipped_of(skipped),
            changed=skipped_of(changed),
            cause=cause.id,
            taken_back=_beginnings(parsed.taken_back, self._policy),
        )

    async def follow(self, path: Path, project: str | None) -> int:
        """Take over what changed in a file of instructions since it was read last. Returns how many of its sections.

        What stands there as before is left as it is here: whatever was forgotten or archived meanwhile stays so.
        Nothing is taken over where the file belongs to another account by now. Raises OSError where it cannot be read,
        InvalidError where it holds no text.
        """
        accounts = self._accounts()
        if accounts is not None and await accounts.is_elsewhere(project or str(path.parent)):
            return 0
        data = await asyncio.to_thread(_read, path, self._policy.limits.max_import_bytes)
        request = api.ImportRequest(
            name=path.name, data=data, format=SourceFormat.MARKDOWN.value, project=project, place=str(path)
        )
        parsed = await asyncio.to_thread(_parsed, request, self._policy)
        before = await self._store.read(lambda q: q.instructions.sections(str(path), project or "")) or {}
        now = _sections(parsed.memories)
        fresh = [draft for draft in parsed.memories if before.get(key := _key(draft)) != now[key]]
        if now == before:
            return 0
        cause = self._cause(request)
        for drafts in batches(fresh, self._policy.work.import_memories):
            await self._import_notes(drafts, cause)
        return len(fresh) + await self._end_sections(request, parsed.memories, cause)

    async def _end_sections(self, request: api.ImportRequest, drafts: Sequence[MemoryDraft], cause: Cause) -> int:
        """Archive what a file of instructions no longer says, and note what it says. Returns how many places are gone.

        Nothing is lost: `undo` of the import brings it back.
        """
        path, project, now = str(request.place), request.project or "", _sections(drafts)
        before = await self._store.read(lambda q: q.instructions.sections(path, project)) or {}
        gone = sorted(before.keys() - now.keys())

        def write(tx: Transaction) -> None:
            held = tx.queries.memories.from_sources(gone) if gone else []
            below = [one for one in held if one.archived_at is None and not intake.is_above_import(one.trust)]
            ended, moved = reconcile.departed(below, frozenset(gone))
            writes = [MemoryWrite(memory_id=one, fields={Field.ARCHIVED_AT: int(tx.now)}) for one in ended]
            writes += [MemoryWrite(memory_id=one.memory_id, fields={Field.METADATA: one.metadata}) for one in moved]
            if writes:
                tx.memories.write(writes)
            tx.instructions.note(path, project, now)

        if now != before:
            await self._store.write(write, cause=cause)
        return len(gone)

    async def _own(self, drafts: tuple[EventDraft, ...]) -> tuple[EventDraft, ...]:
        """Return the drafts without those whose project belongs to another account than this store's."""
        accounts = self._accounts()
        strangers = frozenset[str]() if accounts is None else await accounts.strangers(drafts)
        return tuple(draft for draft in drafts if draft.project not in strangers) if strangers else drafts

    def _cause(self, request: api.ImportRequest) -> Cause:
        """Return what this file is written for: the import that its request names, or a new one.

        The cause that a request names need not be in the store: nothing of the files before this one may have been new.
        """
        kind = "restore" if request.restore else "import"
        label = intake.identifier(request.label or request.name, self._policy.redact)
        if request.cause is None:
            return self._store.new_cause(kind, label=label)
        if not ops.is_cause(request.cause) or not request.cause.startswith(f"{kind}:"):
            raise InvalidError(
                f"{request.cause[:60]!r} is not the cause of {'a restore' if request.restore else 'an import'}",
                hint="send the `cause` of the response to the first file, or none",
            )
        return Cause(id=request.cause, label=label)

    async def _import_notes(
        self, drafts: Sequence[MemoryDraft], cause: Cause
    ) -> tuple[reconcile.Plan, int, Counter[str], Counter[str]]:
        """Store the notes of a file. Returns what was decided, how many are new, what is to be said, and was lowered.

        A file puts nothing into a memory that is trusted more than a file.
        """
        said: Counter[str] = Counter()
        lowered: Counter[str] = Counter()

        def clean() -> tuple[list[MemoryDraft], set[str]]:
            cleaned: list[MemoryDraft] = []
            for draft in drafts:
                try:
                    cleaned.append(intake.memory(draft, self._policy, intake.Source.IMPORT))
                except InvalidError:
                    said["refused" if draft.content.strip() else "empty"] += 1
                else:
                    lowered.update(intake.changes(draft, cleaned[-1]))
            return cleaned, {content_hash(draft.content) for draft in cleaned}

        cleaned, hashes = await asyncio.to_thread(clean)
        cleaned, forgotten = await self._remembered(cleaned)
        said["forgotten"] += forgotten
        known = await self._store.read(
            lambda q: q.memories.from_sources([draft.metadata["source_key"] for draft in cleaned])
        )
        hashes -= {memory.content_hash for memory in known}
        equal = await self._store.read(lambda q: q.memories.with_content(hashes)) if hashes else ()
        below = [[memory for memory in found if not intake.is_above_import(memory.trust)] for found in (known, equal)]
        plan = await asyncio.to_thread(reconcile.planned, cleaned, *below)
        said["rewritten_here"] += plan.rewritten
        candidates = [name for draft in plan.fresh for name in (*reconcile.names_for(draft), *draft.aliases)]
        candidates += [name for _, names in plan.named for name in names]
        taken = set(await self._store.read(lambda q: q.names.holders(candidates)))
        fresh: list[MemoryDraft] = []
        for draft in plan.fresh:
            named, renamed, lost = reconcile.with_free_names(draft, taken)
            fresh.append(named)
            said["renamed"] += renamed
            said["aliases_taken"] += lost
        reviews = await asyncio.to_thread(self._reviews, plan)
        back = [
            memory.id
            for memory in known
            if memory.archived_at is not None
            and (memory.id in reviews or review_state(memory.review) is not ReviewState.REJECTED)
        ]
        changed = _note_writes(plan, taken, back, reviews)
        if changed:
            await self._store.write(lambda tx: tx.memories.write(changed), cause=cause)
            self._wake("embed")
        added = await self._memories.add_all(IMPORTER, fresh, cause=cause) if fresh else []
        return plan, sum(1 for one in added if one.created), said, lowered

    async def _remembered(self, drafts: Sequence[MemoryDraft]) -> tuple[list[MemoryDraft], int]:
        """Return drafts without what was forgotten for good, and of how many something was left out."""
        if not await self._store.read(lambda q: q.tombstones.any_words()):
            return list(drafts), 0
        said = [transfer.statement_of(draft) for draft in drafts]
        left = await self._store.write(lambda tx: tx.forget.left_of(said))
        kept = [replace(draft, content=text) for draft, text in zip(drafts, left, strict=True) if text is not None]
        return kept, sum(1 for draft, text in zip(drafts, left, strict=True) if text != draft.content)

    def _reviews(self, plan: reconcile.Plan) -> dict[str, str | None]:
        """Return the review of each memory whose words a file changed."""
        return {
            change.memory_id: waiting(
                risks_of(
                    change.content,
                    trust=Trust.IMPORT,
                    scope=Scope.PROJECT,
                    kind=Kind.NOTE,
                    policy=self._policy.review,
                )
            )
            for change in plan.changes
            if change.content is not None
        }

    async def _under_earlier_keys(
        self, drafts: tuple[EventDraft, ...], earlier: Mapping[str, str]
    ) -> tuple[EventDraft, ...]:
        """Return the drafts, those under the key of an earlier version that are here under it for the same project."""
        if not earlier:
            return drafts
        keys = [earlier.get(draft.dedupe_key or "", "") for draft in drafts]
        here = await self._store.read(lambda q: q.events.deduped(keys))
        return tuple(
            replace(draft, dedupe_key=key) if (key, draft.project) in here else draft
            for draft, key in zip(drafts, keys, strict=True)
        )

    async def _caught(self, parsed: importers.Parsed) -> Caught:
        """Return what the store has of a transcript's sessions by another way, by agent and session.

        Hooks may have delivered the same turns under keys of their own.
        """
        found: Caught = {}
        prefix = parsed.keys_begin or f"{parsed.format}:"
        if parsed.format in importers.TRANSCRIPTS:
            for session in sorted({draft.session_id for draft in parsed.events}):
                for event, erased in await self._store.read(partial(_caught_in, session=session, prefix=prefix)):
                    found.setdefault((event.agent, event.session_id), []).append((event, erased))
        return found

    async def _told(self, parsed: importers.Parsed) -> Told:
        """Return what agents said in a file's sessions as an earlier reading stored it."""
        found: Told = {}
        prefix = f"{parsed.format}:"
        for session in sorted({draft.session_id for draft in parsed.events}):
            answers = await self._store.read(partial(_told_in, session=session, prefix=prefix))
            for place, event in enumerate(answers):
                for which in (event.ts, event.dedupe_key.partition("+")[0]):
                    found.setdefault((event.agent, event.session_id, which), {})[place] = event
        return found

    async def _import_export(self, request: api.ImportRequest) -> api.ImportResponse:
        reading = partial(export_format.read, intake.valid(request.name), request.data)
        file = await asyncio.to_thread(kept_from_collector, reading)
        tally = transfer.Tally(skipped=Counter(bad_line=file.bad))
        cause = self._cause(request)
        if request.dry_run:
            tally.events = sum(line.event is not None for line in file.lines)
            tally.memories = sum(line.memory is not None for line in file.lines)
        elif request.restore and file.version > 1 and await self._store.write(transfer.takes_log):
            await self._restore_log(file, tally, cause)
        else:
            source = intake.Source.RESTORE if request.restore else intake.Source.IMPORT
            await self._import_records(file, tally, source, cause)
        self._wake("embed")
        return api.ImportResponse(
            format=export_format.FORMAT,
            events=tally.events,
            memories=tally.memories,
            duplicates=tally.duplicates,
            redactions=dict(sorted(tally.redactions.items())),
            skipped=skipped_of(tally.skipped),
            changed=skipped_of(tally.changed),
            cause=None if request.dry_run else cause.id,
        )

    async def _import_records(
        self, file: export_format.Export, tally: transfer.Tally, source: intake.Source, cause: Cause
    ) -> None:
        """Store the events and memories of an export, one by one as drafts."""
        size = self._policy.work.import_events  # memories too: a record that is restored is compared with nothing
        for batch in batches([line.event for line in file.lines if line.event is not None], size):
            ready = await asyncio.to_thread(
                transfer.events_of,
                batch,
                tally,
                source=source,
                device=self._store.device,
                now=self._now(),
                policy=self._policy,
            )
            there, new, forgotten = await self._store.write(partial(transfer.append_events, ready=ready), cause=cause)
            tally.there.update(there)
            tally.events += new
            tally.duplicates += len(ready) - new - forgotten
            tally.skipped["forgotten"] += forgotten
        if source is intake.Source.RESTORE:
            await self._store.write(partial(transfer.forget_copies, records=file.lines, events=False), cause=cause)
        for group in batches([line.memory for line in file.lines if line.memory is not None], size):
            memories = await asyncio.to_thread(transfer.memories_of, group, tally, source=source, policy=self._policy)
            writing = partial(transfer.write_memories, group=memories, source=source, there=tally.there)
            new, skipped, changed = await self._store.write(writing, cause=cause)
            tally.memories += new
            tally.duplicates += len(memories) - new - skipped["forgotten"]
            tally.skipped += skipped
            tally.changed += changed

    async def _restore_log(self, file: export_format.Export, tally: transfer.Tally, cause: Cause) -> None:
        """Take in the log of an export, as sync takes in those of other devices: its ops keep the causes they name."""
        before = await self._store.read(lambda q: q.stats.counts())
        await self._store.write(partial(transfer.forget_copies, records=file.lines, events=True), cause=cause)
        for device, run in transfer.runs(file.lines):
            taking = partial(transfer.restore_run, device=device, run=run, own=device == self._store.device)
            tally.skipped += await self._store.write(taking)
        after = await self._store.read(lambda q: q.stats.counts())
        tally.events = max(after["events"] - before["events"], 0)
        kinds = ("memories", "identity_keys", "active_keys")
        tally.memories = max(sum(after[kind] - before[kind] for kind in kinds), 0)
        records = sum(line.event is not None or line.memory is not None for line in file.lines)
        tally.duplicates = max(records - tally.events - tally.memories, 0)


def _is_instructions(request: api.ImportRequest) -> bool:
    """Say whether a file is one in which people instruct agents, on this machine: it is looked at again."""
    place = Path(request.place or "")
    return place.name in agent_folder.INSTRUCTION_FILES and place.is_absolute()


def _beginnings(said: Sequence[str], policy: MemoryPolicy) -> tuple[str, ...]:
    """Return how some texts begin, without secrets: enough for the one who said them to know which are meant."""
    found = (" ".join(redaction.clean(text[:LOOKED_CHARS], policy.redact).text.split()) for text in said[:MOST_NAMED])
    return tuple(text if len(text) <= NAMED_CHARS else f"{text[: NAMED_CHARS - 1].rstrip()}…" for text in found if text)


def _read(path: Path, most: int) -> bytes:
    """Return a file's bytes. Raises OSError, TooLargeError."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLargeError(f"{path.name} is larger than {most >> 20} MiB", hint="cut it into several files")
    return data


def _key(draft: MemoryDraft) -> str:
    return str(draft.metadata["source_key"])


def _sections(drafts: Iterable[MemoryDraft]) -> Sections:
    """Return what stands in a file: the key of each place, and the hash of its words."""
    return {_key(draft): content_hash(draft.content) for draft in drafts}


def _parsed(request: api.ImportRequest, policy: MemoryPolicy) -> importers.Parsed:
    """Return what a file holds. Of notes, what must not be stored is taken out before they are cut into sections.

    A private passage, or a key of several lines, may run over a heading: no section by itself would show it.
    """
    name = intake.identifier(request.name, policy.redact)  # before it is cut into folders: "//" shows a password
    place = None if request.place is None else intake.identifier(request.place, policy.redact)
    parse = partial(importers.parse, name, only=request.only, project=request.project, place=place)
    parsed = parse(data=request.data, format=request.format)
    if parsed.format not in {importers.SourceFormat.MARKDOWN, importers.SourceFormat.TEXT}:
        return parsed
    text = decoded(as_utf8(name, request.data, whole=True), errors="replace")
    cleaned = redaction.clean(text, policy.redact).text
    if not cleaned.strip():
        return replace(parsed, events=(), memories=(), skipped=(("private", 1),))
    return parsed if cleaned == text else parse(data=cleaned.encode("utf-8"), format=parsed.format.value)


Caught = dict[tuple[str, str], list[tuple[Event, bool]]]
"""Events that did not come from a transcript, by agent and session, and whether words of each were erased."""


def _caught_in(queries: Queries, *, session: str, prefix: str) -> list[tuple[Event, bool]]:
    return queries.events.told_otherwise(session, prefix)


Told = dict[tuple[str, str, Millis | str], dict[int, Event]]
"""Answers of agents, by the order in which they were stored: those of an agent, a session and a time, and those of an
agent, a session and the key that they began under."""


def _without_told(one: intake.Clean, told: Told, keys: Container[str | None]) -> intake.Clean:
    """Return an event; an answer without what is stored of it already."""
    if one.event.type is not EventType.ASSISTANT_MESSAGE:
        return one
    agent, session, key = one.event.agent, one.event.session_id, one.event.dedupe_key
    parts = told.get((agent, session, key.partition("+")[0]), {}) | told.get((agent, session, one.event.ts), {})
    return replace(one, event=grown(one.event, [parts[place] for place in sorted(parts)], keys)) if parts else one


def _told_in(queries: Queries, *, session: str, prefix: str) -> list[Event]:
    return queries.events.answers_told(session, prefix)


def _under_keys_of_twins(cleaned: Sequence[intake.Clean], caught: Caught) -> list[intake.Clean]:
    """Return the events, those that are in the store by another way under the key they have there.

    A stored event that was found is taken out of `caught`: it is one event's twin and no other's.
    """
    under = list(cleaned)
    by_session: dict[tuple[str, str], list[int]] = {}
    for index, one in enumerate(cleaned):
        by_session.setdefault((one.event.agent, one.event.session_id), []).append(index)
    for session, indexes in by_session.items():
        there = caught.get(session, [])
        pairs = twins([cleaned[index].event for index in indexes], there) if there else {}
        for place, twin in pairs.items():
            one = cleaned[indexes[place]]
            under[indexes[place]] = replace(one, event=replace(one.event, dedupe_key=twin.dedupe_key))
        taken = {twin.id for twin in pairs.values()}
        caught[session] = [pair for pair in there if pair[0].id not in taken]
    return under


def _note_writes(
    plan: reconcile.Plan, taken: set[str], archived: Sequence[str], reviews: Mapping[str, str | None]
) -> list[MemoryWrite]:
    """Return the writes to memories that an import found there already. Names that are free go to them.

    Those that were archived come back: somebody imports them again. `reviews` are those of changed words.
    """
    writes: dict[str, MemoryWrite] = {}
    for change in plan.changes:
        fields: dict[Field, Any] = {Field.METADATA: change.metadata}
        if change.content is not None:
            fields |= {Field.CONTENT: change.content, Field.REVIEW: reviews[change.memory_id]}
        writes[change.memory_id] = MemoryWrite(memory_id=change.memory_id, fields=fields)
    for memory_id in archived:
        earlier = writes.get(memory_id, MemoryWrite(memory_id=memory_id, fields={}))
        writes[memory_id] = replace(earlier, fields={**earlier.fields, Field.ARCHIVED_AT: None})
    for memory_id, names in plan.named:
        free = tuple(name for name in names if name not in taken)
        taken.update(free)
        if free:
            earlier = writes.get(memory_id, MemoryWrite(memory_id=memory_id, fields={}))
            writes[memory_id] = replace(earlier, names=(*earlier.names, *free))
    return list(writes.values())


def batches(items: Sequence[Any], size: int) -> Iterable[tuple[Any, ...]]:
    """Return items in batches of at most `size`."""
    return (tuple(items[at : at + size]) for at in range(0, len(items), size))
