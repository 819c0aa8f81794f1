"""What agents and people write into a vault by name rather than by editor, and what they ask it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from scrubjay import api, redaction
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.jobs.consolidation_run import Wording
from scrubjay.policy import MemoryPolicy
from scrubjay.service import transfer
from scrubjay.service.vaults.state import known_of
from scrubjay.service.vaults.vaults import Vaults, agent_of
from scrubjay.store import Cause, MemoryWrite, Queries, Store, Transaction
from scrubjay.vault import condense, social, worded
from scrubjay.vault.condense import Finding, Told
from scrubjay.vault.layout import TYPE_IN, VaultFile, file_of, resource_of, scope_in
from scrubjay.vault.rendering import heading_text
from scrubjay.vault.sections import Section, in_sections, ranked
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, ScrubjayError, TooLargeError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Memory, MemoryDraft, Trust, least
from scrubjay_shared.text import estimate_tokens

log = logging.getLogger(__name__)


class Entries:
    """The entries of vaults: remembered, recalled, compacted, reflected on."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        vaults: Vaults,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
        wording: Callable[[], Wording | None] = lambda: None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._vaults = vaults
        self._wake = wake
        self._now = now
        self._wording = wording
        """Gives what asks the Writer, where the person has set one."""

    async def remember(self, caller: Caller, request: api.VaultRememberRequest) -> api.VaultRememberResponse:
        """Append to episodic.md, to a source in social.md, or write working.md anew. Equal words are written once.

        Raises NotFoundError for an agent without a vault, InvalidError for what no file takes.
        """
        row = await self._vaults.row(agent_of(caller, request.agent))
        most = self._policy.vault.entry_chars
        if max(len(request.text), len(request.section or ""), len(request.source or "")) > most:
            raise TooLargeError(
                f"an entry must have at most {most} characters",
                hint="scrubjay import reads a long text from a file; here, keep what matters of it",
            )
        file = _file_of(request)
        section = self._section_of(request, file)
        draft = self._draft(row.agent, file, section, social.claimed(request.text, request.claim))
        cleaned = await asyncio.to_thread(intake.memory, draft, self._policy, intake.source_of(caller))
        tokens = estimate_tokens(cleaned.content)
        if file is VaultFile.WORKING and tokens > self._policy.vault.working_tokens:
            raise InvalidError(
                f"working memory takes at most {self._policy.vault.working_tokens} tokens, got {tokens}",
                hint="keep what is needed now; without working it goes to episodic.md",
            )

        def work(tx: Transaction) -> tuple[str, bool]:
            held = [one for one in _current(tx.queries.vaults.memories(resource_of(row.agent))) if file_of(one) is file]
            same = next((one for one in held if (one.topic, one.content) == (cleaned.topic, cleaned.content)), None)
            if same is not None:
                return same.id, False
            earlier = held[-1] if file is VaultFile.WORKING and held else None
            if request.claim is not None:
                open_claims = [one for one in held if one.topic == cleaned.topic]
                said = {cleaned.content, request.text.strip()}
                earlier = next((one for one in open_claims if one.content in said), None)
            if earlier is None:
                memory_id = tx.new_id(None)
                fields: dict[Field, Any] = transfer.fields_of(cleaned, tx.now)
            else:
                memory_id = earlier.id
                trust = least(earlier.trust, cleaned.trust)
                fields = {Field.CONTENT: cleaned.content, Field.TRUST: trust.value}
            tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields)])
            return memory_id, True

        memory_id, wrote = await self._store.write(work, cause=self._cause(row.agent, file))
        if wrote:
            self._wake("embed")
        await self._vaults.merge(row, file)
        return api.VaultRememberResponse(id=memory_id, agent=row.agent, file=file.file_name, section=section)

    def _cause(self, agent: str, file: VaultFile) -> Cause:
        return self._store.new_cause("vault", label=f"{agent} {file.file_name}")

    def _section_of(self, request: api.VaultRememberRequest, file: VaultFile) -> str:
        if file is VaultFile.WORKING:
            return ""
        today = time.strftime("%Y-%m-%d", time.localtime(self._now() / 1000))
        given = request.source if file is VaultFile.SOCIAL else request.section
        section = heading_text(today if given is None else given, self._policy.vault.heading_chars)
        if not section:
            raise InvalidError("the section has no name that a heading can say", hint="use letters and digits")
        return section

    def _draft(self, agent: str, file: VaultFile, section: str, text: str) -> MemoryDraft:
        return MemoryDraft(
            content=text,
            kind=Kind.NOTE,
            type=TYPE_IN[file],
            scope=scope_in(file),
            resource_id=resource_of(agent),
            topic=section or None,
            metadata={"source": file.file_name},
        )

    async def recall(self, caller: Caller, request: api.VaultRecallRequest) -> api.VaultRecallResponse:
        """Return the sections of an agent's files that share words with a question, best first. Writes nothing."""
        row = await self._vaults.row(agent_of(caller, request.agent))
        if not 1 <= request.limit <= self._policy.work.recalled_hits:
            raise InvalidError(
                f"limit must be between 1 and {self._policy.work.recalled_hits}, got {request.limit}",
                hint="ask for fewer sections, or leave the limit out",
            )
        if len(request.query) > self._policy.limits.max_query_chars:
            raise TooLargeError(
                f"a question must have at most {self._policy.limits.max_query_chars} characters",
                hint="ask for what you want to know in a few sentences",
            )
        memories = await self._store.read(partial(_in_order, agent=row.agent))

        def work() -> tuple[Section, ...]:
            return ranked(in_sections(memories), request.query, self._policy, by_source=request.by_source)

        found = await asyncio.to_thread(work)
        return api.VaultRecallResponse(agent=row.agent, sections=tuple(map(_shown, found[: request.limit])))

    async def compact(self, caller: Caller, request: api.VaultCondenseRequest) -> api.VaultCondenseResponse:
        """Carry what episodic.md says outright or again and again over to semantic.md, word for word.

        A Writer that is set words it instead, as far as the entries say it. An entry of which every sentence is in
        semantic.md is archived, but for the latest sections. Nothing is lost: `undo` brings it back.
        """
        return await self._condense(caller, request, VaultFile.SEMANTIC)

    async def reflect(self, caller: Caller, request: api.VaultCondenseRequest) -> api.VaultCondenseResponse:
        """Carry what an agent says of its own ways over to self.md: word for word, or as a Writer words it."""
        return await self._condense(caller, request, VaultFile.SELF)

    def _found(self, told: Sequence[Told], present: Sequence[str], file: VaultFile) -> tuple[Finding, ...]:
        if file is VaultFile.SELF:
            return condense.patterns(told, present)
        return condense.knowledge(told, present, self._policy)

    async def _worded(
        self, told: Sequence[Told], present: Sequence[str], file: VaultFile
    ) -> tuple[worded.Asked, tuple[Finding, ...]] | None:
        """Return what was asked of the Writer, and what counts of its answer; None where it is not to be had."""
        of_oneself = file is VaultFile.SELF
        ask = partial(worded.asked, told, present, self._policy, of_oneself=of_oneself)
        wording = self._wording()
        question = None if wording is None else await asyncio.to_thread(ask)
        if wording is None or question is None:
            return None
        try:
            answer = await wording(question.system, question.text, self._policy.vault.answer_tokens)
        except ScrubjayError as error:
            log.info("vault goes on without a writer reason=%s", error.code)
            return None

        def read() -> tuple[Finding, ...] | None:
            clean = redaction.clean(intake.valid(answer), self._policy.redact).text
            return worded.read(clean, question, present, self._policy, of_oneself=of_oneself)

        findings = await asyncio.to_thread(read)
        return None if findings is None else (question, findings)

    async def _condense(
        self, caller: Caller, request: api.VaultCondenseRequest, file: VaultFile
    ) -> api.VaultCondenseResponse:
        row = await self._vaults.row(agent_of(caller, request.agent))
        memories = await self._store.read(partial(_in_order, agent=row.agent))
        told, present = _told(memories), _texts(memories, file)
        findings = await asyncio.to_thread(self._found, told, present, file)
        said = None if request.dry_run else await self._worded(told, present, file)
        by_writer: tuple[Finding, ...] = ()
        shown: tuple[str, ...] = ()
        if said is not None:
            by_writer, shown = said[1], tuple(one.id for one in said[0].entries)
            cited = {source for one in by_writer for source in one.sources}
            findings = (*by_writer, *(one for one in findings if cited.isdisjoint(one.sources)))
        gone: tuple[str, ...] = ()
        if file is VaultFile.SEMANTIC:
            carried = [*present, *(one.text for one in findings)]
            gone = await asyncio.to_thread(condense.spent, told, carried, self._policy.vault.kept_sections)
        read = {one.id: one for one in memories}
        # A Writer's words may follow from any entry that it was shown.
        rests = [{*one.sources, *(shown if one in by_writer else ())} for one in findings]

        def clean() -> list[MemoryDraft]:
            source = intake.source_of(caller)
            return [
                replace(
                    intake.memory(self._draft(row.agent, file, one.section, one.text), self._policy, source),
                    trust=least(Trust.AGENT, *(read[each].trust for each in on)),
                    metadata={"source": file.file_name, "read_from": list(one.sources)},
                )
                for one, on in zip(findings, rests, strict=True)
            ]

        drafts = await asyncio.to_thread(clean)
        written = [
            api.VaultCondensed(file=file.file_name, section=one.section, text=one.text, sources=one.sources)
            for one in findings
        ]
        if request.dry_run or not (drafts or gone):
            return api.VaultCondenseResponse(agent=row.agent, written=tuple(written), archived=gone)
        cause = self._cause(row.agent, file)

        def work(tx: Transaction) -> tuple[tuple[str, ...], list[int]]:
            there = tx.queries.memories.by_id(list(read))
            same = {one for one, now in there.items() if now.content_hash == read[one].content_hash}
            # What was forgotten or changed meanwhile, while a Writer was asked, is told on by nothing.
            kept = [at for at, on in enumerate(rests) if same.issuperset(on)]
            still = [one for one in gone if one in same and there[one].archived_at is None]
            if len(kept) < len(drafts):
                still = []  # what carries their sentences may be missing
            for one in still:
                access.check_forget(caller, there[one])
            made = [
                MemoryWrite(memory_id=tx.new_id(None), fields=transfer.fields_of(drafts[at], tx.now)) for at in kept
            ]
            away = [MemoryWrite(memory_id=one, fields={Field.ARCHIVED_AT: int(tx.now)}) for one in still]
            tx.memories.write([*made, *away])
            return tuple(still), kept

        archived, kept = await self._vaults.written(
            row, (file, VaultFile.EPISODIC), lambda: self._store.write(work, cause=cause)
        )
        self._wake("embed")
        return api.VaultCondenseResponse(
            agent=row.agent,
            written=tuple(written[at] for at in kept),
            archived=archived,
            cause=cause.id,
            worded=sum(findings[at] in by_writer for at in kept),
        )


def _file_of(request: api.VaultRememberRequest) -> VaultFile:
    if request.working and request.source is not None:
        raise InvalidError("working memory has no sources", hint="leave out --working, or the source")
    if request.claim is not None and request.source is None:
        raise InvalidError("a claim is somebody's", hint="name who said it: --source NAME")
    if request.working:
        return VaultFile.WORKING
    return VaultFile.EPISODIC if request.source is None else VaultFile.SOCIAL


def _current(memories: Sequence[Memory]) -> list[Memory]:
    return [one for one in memories if one.archived_at is None and one.superseded_by is None]


def _in_order(queries: Queries, agent: str) -> list[Memory]:
    """Return the memories of a vault as they follow each other in its files; what is in none yet comes last."""
    files = queries.vaults.files(agent)
    places = {one.memory_id: place for file in files.values() for place, one in enumerate(known_of(file))}
    return sorted(
        _current(queries.vaults.memories(resource_of(agent))), key=lambda one: places.get(one.id, len(places))
    )


def _told(memories: Sequence[Memory]) -> list[Told]:
    return [
        Told(id=one.id, section=one.topic or "", text=one.content)
        for one in memories
        if file_of(one) is VaultFile.EPISODIC
    ]


def _texts(memories: Sequence[Memory], file: VaultFile) -> list[str]:
    return [one.content for one in memories if file_of(one) is file]


def _shown(section: Section) -> api.VaultSection:
    return api.VaultSection(
        file=section.file.file_name,
        section=section.name,
        score=section.score,
        entries=tuple(
            api.VaultEntry(id=memory.id, text=memory.content, score=score, created_at=memory.created_at)
            for memory, score in zip(section.memories, section.scores, strict=True)
        ),
        confirmed=section.record.confirmed,
        contradicted=section.record.contradicted,
    )
