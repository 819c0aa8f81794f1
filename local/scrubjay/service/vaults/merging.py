"""One file of a vault and the store are brought together: read, merged, written on both sides, noted.

The store follows the file in one transaction, which notes what both agree on; then the file follows the store, and that
is noted too. A crash between the two leaves the file behind, and the next look brings it on. A file that somebody
writes meanwhile is left to them and merged at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay.service import transfer
from scrubjay.service.vaults.state import (
    Taken,
    known_after,
    known_before,
    known_of,
    row_of,
    stored_of,
)
from scrubjay.store import MemoryWrite, Queries, Statement, Store, Transaction, VaultFileRow, VaultRow
from scrubjay.vault import files, working
from scrubjay.vault.files import Content, Stamp
from scrubjay.vault.layout import TITLES, TYPE_IN, VaultFile, file_of, resource_of, scope_in
from scrubjay.vault.markdown import Document, parse
from scrubjay.vault.matching import Known
from scrubjay.vault.merge import Merge, Stored, merged
from scrubjay.vault.rendering import Placed, render
from scrubjay_shared.errors import ConflictError, InvalidError, ScrubjayError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Memory, MemoryDraft, Trust
from scrubjay_shared.text import estimate_tokens

FILE_TRUST = Trust.AGENT
"""How far a text of a file is trusted: the file is the person's, but an agent edits it with its own tools unseen."""

FORGOTTEN = "these words were forgotten for good; scrubjay add brings them back"
TRIES = 5
"""Times that a merge begins anew because the store changed under it: each takes some milliseconds."""


@dataclass(slots=True)
class Outcome:
    """What came of merging a file. `changed` counts memories written; `stamp` is the file's when it was read last."""

    row: VaultFileRow
    stamp: Stamp
    changed: int = 0
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """A merge with everything that its transaction needs. `drafts` and `texts` were cleaned."""

    memories: Sequence[Memory]
    known: tuple[Known, ...]
    merge: Merge
    stored: dict[str, Stored]
    drafts: dict[int, MemoryDraft] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    rendered: tuple[str, tuple[Placed, ...]] | None = None


class _MovedError(Exception):
    """The store changed between the plan and its transaction."""


class Merging:
    """Merges files of vaults with one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, wake: Callable[[str], None]) -> None:
        self._store = store
        self._policy = policy
        self._wake = wake

    async def merge(
        self,
        vault: VaultRow,
        file: VaultFile,
        *,
        confirmed: bool = False,
        put_back: bool = False,
        drops_headings: bool = False,
    ) -> Outcome:
        """Bring a file and the store together. Says in its row why it could not; raises only what the store raises.

        With `drops_headings`, a heading goes with the last entry below it that the store takes out.
        """
        path = Path(vault.folder, file.file_name)
        content = Content(data=None, stamp=files.ABSENT)
        try:
            content = await asyncio.to_thread(files.read, path, self._policy.vault.max_file_bytes)
            text = files.decoded(path, content.data or b"")
            document = await asyncio.to_thread(working.read if file is VaultFile.WORKING else parse, text)
            await asyncio.to_thread(self._check_working, file, document)
        except files.BusyError as error:
            noted = await self._noted(vault, file, error.message, files.ABSENT)
            return replace(noted, again=True)
        except ScrubjayError as error:
            stamp = await asyncio.to_thread(files.stamp, path)
            problem = f"{error.message}: {error.hint}" if error.hint else error.message
            return await self._noted(vault, file, problem, stamp)
        for _ in range(TRIES):
            plan = await self._planned(
                vault,
                file,
                content,
                document,
                confirmed=confirmed,
                put_back=put_back,
                drops_headings=drops_headings,
            )
            try:
                return await self._carry_out(vault, file, content, document, plan)
            except _MovedError:
                continue
        raise ConflictError(
            f"the memories of {vault.agent} change faster than {file.file_name} is merged",
            hint="it is tried again by itself; scrubjay vault sync does it now",
        )

    def _check_working(self, file: VaultFile, document: Document) -> None:
        most = self._policy.vault.working_tokens
        if file is VaultFile.WORKING:
            tokens = sum(estimate_tokens(entry.text) for entry in document.entries if not entry.is_kept)
            if tokens > most:
                raise InvalidError(
                    f"working.md has {tokens} tokens, and at most {most} are worked with",
                    hint="shorten it: until then what was there before counts, and nothing is written into it",
                )

    async def _noted(self, vault: VaultRow, file: VaultFile, problem: str, stamp: Stamp) -> Outcome:
        """Note why a file was not merged; what was agreed on stays."""

        def write(tx: Transaction) -> VaultFileRow:
            before = tx.queries.vaults.files(vault.agent).get(file.value)
            row = row_of(
                file,
                known_of(before),
                problem=problem,
                gone=0 if before is None else before.gone,
                conflicts=0 if before is None else before.conflicts,
            )
            if row != before:
                tx.vaults.note(vault.agent, row)
            return row

        return Outcome(row=await self._store.write(write), stamp=stamp)

    async def _planned(
        self,
        vault: VaultRow,
        file: VaultFile,
        content: Content,
        document: Document,
        *,
        confirmed: bool,
        put_back: bool,
        drops_headings: bool,
    ) -> _Plan:
        resource = resource_of(vault.agent)

        def read(queries: Queries) -> tuple[list[Memory], VaultFileRow | None]:
            return queries.vaults.memories(resource), queries.vaults.files(vault.agent).get(file.value)

        memories, row = await self._store.read(read)

        def work() -> _Plan:
            known = known_of(row)
            stored = stored_of(memories, file, {memory.id: file_of(memory) for memory in memories})
            merge = merged(
                known,
                document.entries,
                stored,
                self._policy.vault,
                is_there=content.data is not None,
                confirmed=confirmed,
                put_back=put_back,
                is_whole=file is VaultFile.WORKING,
            )
            plan = _Plan(memories=memories, known=known, merge=merge, stored=stored)
            self._clean(plan, vault, file)
            base = document
            if content.data is None and file is not VaultFile.WORKING:
                base = parse(f"# {TITLES[file]}\n")
            edits = replace(merge.edits, drops_headings=drops_headings)
            shown = working.render(base, edits) if file is VaultFile.WORKING else render(base, edits)
            return _Plan(
                memories=memories,
                known=known,
                merge=merge,
                stored=stored,
                drafts=plan.drafts,
                texts=plan.texts,
                refused=plan.refused,
                rendered=shown,
            )

        return await asyncio.to_thread(work)

    def _clean(self, plan: _Plan, vault: VaultRow, file: VaultFile) -> None:
        """Take secrets out of what the store is to take, and note what it must refuse."""
        for new in plan.merge.new:
            draft = MemoryDraft(
                content=new.text,
                kind=Kind.NOTE,
                type=TYPE_IN[file],
                scope=scope_in(file),
                resource_id=resource_of(vault.agent),
                topic=new.section[: self._policy.vault.heading_chars] or None,
                trust=FILE_TRUST,
                metadata={"source": file.file_name},
            )
            try:
                plan.drafts[new.place] = intake.memory(draft, self._policy, intake.Source.AGENT)
            except ScrubjayError as error:
                plan.refused[new.place] = error.message
        for change in plan.merge.changed:
            if change.text is not None:
                try:
                    plan.texts[change.memory_id] = intake.content(self._policy, change.text)
                except ScrubjayError as error:
                    place = next(at for at, one in plan.merge.ids.items() if one == change.memory_id)
                    plan.refused[place] = error.message

    async def _carry_out(
        self, vault: VaultRow, file: VaultFile, content: Content, document: Document, plan: _Plan
    ) -> Outcome:
        merge, path = plan.merge, Path(vault.folder, file.file_name)
        cause = self._store.new_cause("vault", label=f"{vault.agent} {file.file_name}")
        taken, stored, row = await self._store.write(partial(self._write, vault, file, document, plan), cause=cause)
        changed = len(plan.drafts) + len(merge.changed) + len(merge.archived)
        if plan.drafts or plan.texts:
            self._wake("embed")
        gone = _problem_of_gone(file, merge)
        if plan.rendered is None:
            problem = f"{file.file_name} takes no change from the store: close the code or comment open there"
            return await self._noted(vault, file, problem, content.stamp)
        text, placed = plan.rendered
        data = text.encode()
        if len(data) > self._policy.vault.max_file_bytes:
            problem = f"{file.file_name} would have {len(data):,} bytes, too many to be read again: shorten entries"
            return await self._noted(vault, file, problem, content.stamp)
        waits = content.data is None and bool(merge.gone)
        if waits or data == content.data:
            return Outcome(row=row, stamp=content.stamp, changed=changed)
        try:
            stamp = await asyncio.to_thread(files.write, path, data, over=content.data)
        except ScrubjayError as error:
            return await self._noted(vault, file, error.message, content.stamp)
        if stamp is None:
            return Outcome(row=row, stamp=files.ABSENT, changed=changed, again=True)
        known = known_after(placed, plan.known, merge, taken, stored)
        row = row_of(file, known, problem=gone, gone=len(merge.gone), conflicts=merge.conflicts)
        await self._store.write(lambda tx: tx.vaults.note(vault.agent, row))
        return Outcome(row=row, stamp=stamp, changed=changed)

    def _write(
        self, vault: VaultRow, file: VaultFile, document: Document, plan: _Plan, tx: Transaction
    ) -> tuple[Taken, dict[str, Stored], VaultFileRow]:
        """Have the store follow the file, and note what both agree on. Raises _MovedError where the store changed."""
        queries, merge = tx.queries.vaults, plan.merge
        before = queries.files(vault.agent).get(file.value)
        if known_of(before) != plan.known or queries.memories(resource_of(vault.agent)) != plan.memories:
            raise _MovedError
        ids = dict(merge.ids)
        refused = dict(merge.refused) | plan.refused
        stored = dict(plan.stored)
        writes: list[MemoryWrite] = []
        for place, draft in plan.drafts.items():
            if tx.forget.left_of([transfer.statement_of(draft)]) != [draft.content]:
                refused[place] = FORGOTTEN
                continue
            ids[place] = tx.new_id(draft.created_at)
            writes.append(MemoryWrite(memory_id=ids[place], fields=transfer.fields_of(draft, tx.now)))
            stored[ids[place]] = Stored(content=draft.content, topic=draft.topic or "")
        for change in merge.changed:
            fields = self._fields(plan, file, change.memory_id)
            said = fields.get(Field.CONTENT)
            if said is not None and tx.forget.left_of([Statement(text=said)]) != [said]:
                refused[next(at for at, one in ids.items() if one == change.memory_id)] = FORGOTTEN
                continue
            old = stored[change.memory_id]
            stored[change.memory_id] = Stored(
                content=fields.get(Field.CONTENT, old.content), topic=fields.get(Field.TOPIC, old.topic) or ""
            )
            if fields:
                writes.append(MemoryWrite(memory_id=change.memory_id, fields=fields, settles=True))
        writes += [
            MemoryWrite(memory_id=memory_id, fields={Field.ARCHIVED_AT: int(tx.now)}) for memory_id in merge.archived
        ]
        if writes:
            tx.memories.write(writes)
        taken = Taken(ids=ids, refused=refused)
        known = known_before(plan.known, document.entries, merge, taken, stored)
        problem = _problem_of_gone(file, merge)
        row = row_of(file, known, problem=problem, gone=len(merge.gone), conflicts=merge.conflicts)
        if row != before:
            tx.vaults.note(vault.agent, row)
        return taken, stored, row

    def _fields(self, plan: _Plan, file: VaultFile, memory_id: str) -> dict[Field, Any]:
        """Return what the file says of a memory. Its trust falls to that of a file where the words are the file's."""
        change = next(one for one in plan.merge.changed if one.memory_id == memory_id)
        fields: dict[Field, Any] = {}
        if memory_id in plan.texts:
            fields |= {Field.CONTENT: plan.texts[memory_id], Field.TRUST: FILE_TRUST.value}
        if change.section is not None:
            topic = intake.topic(self._policy, change.section[: self._policy.vault.heading_chars])
            fields[Field.TOPIC] = topic
        if change.revives:
            fields |= {
                Field.ARCHIVED_AT: None,
                Field.SUPERSEDED_BY: None,
                Field.TYPE: TYPE_IN[file].value,
                Field.SCOPE: scope_in(file).value,
            }
        return fields


def _problem_of_gone(file: VaultFile, merge: Merge) -> str:
    count = len(merge.gone)
    return (
        f"{count} {'entry is' if count == 1 else 'entries are'} gone from {file.file_name} at once: scrubjay vault"
        " confirm archives what is gone, and with --put-back writes it there again"
        if count
        else ""
    )
