"""Stores filled for a question to be asked of: through the public operations of a real service, one a conversation.

Made once and kept by what went into them: the texts as the product analyses them, the tables, the embedding space, and
for what was distilled the distiller. A kept store is a closed file that nobody opens; `opened` works on a copy, since
recall counts what it shows.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from scrubjay import api, dates, store
from scrubjay.api.caller import PERSON
from scrubjay.distill import observe
from scrubjay.importers import export_format
from scrubjay.ingest import intake
from scrubjay.models import catalog
from scrubjay.policy import DEFAULT, TYPE_SALIENCE, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import NO_MODEL
from scrubjay.store import rows
from scrubjay_bench import daemons
from scrubjay_bench.conversations import Conversation, Fact, Turn
from scrubjay_shared import text
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.records import EventDraft, EventType, Grip, Kind, Memory, MemoryType, Role, Scope, content_hash

AGENT = "bench"
SOURCE = "bench/1"
BATCH = 500  # drafts in a request
SETTLE_MS = 3_600_000  # for one conversation: 700 texts take ten seconds, on a machine at work ten times that
SHOWN = 100_000  # hits of one answer; some baselines score every document, the product shows 100
FORMAT = 1  # raised when this module fills otherwise than before: kept stores of older ones are then made again
STORE, DOCUMENTS = "memory.db", "documents.json"
TYPE_OF = {Role.USER: EventType.USER_MESSAGE, Role.ASSISTANT: EventType.ASSISTANT_MESSAGE}

Say = Callable[[str], None]


class Filling(StrEnum):
    """What a store holds of a conversation: raw turns, shipped facts, both with grips, or turns and what is learned."""

    TURNS = "turns"
    FACTS = "facts"
    LINKED = "linked"
    LEARNED = "learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What stands in a store, by the ids it has there.

    `turns` names the turn that an event is; `covers` the turns that a memory was read from, none where that is not
    known. `texts` are the texts as they are searched. `bytes` is the size of the closed file, `turn_tokens` and
    `memory_tokens` what the texts would cost a model's context.
    """

    turns: dict[str, str]
    covers: dict[str, tuple[str, ...]]
    texts: dict[str, str]
    bytes: int
    turn_tokens: int
    memory_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A closed store and what it holds."""

    path: Path
    documents: Documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Where stores are kept, the embedding model they are made with, and the reranking model they are asked with.

    Either model may be "none".
    """

    folder: Path
    models_dir: Path
    model: str
    reranker: str = NO_MODEL

    def filled(self, conversation: Conversation, filling: Filling, say: Say = lambda _: None) -> Filled:
        """Return a store with this content, made unless it is there. Raises UnavailableError without the model."""
        folder = self.folder / self.name(conversation, filling)
        if not (folder / DOCUMENTS).exists():
            base = self.filled(conversation, Filling.TURNS, say) if filling is Filling.LINKED else None
            say(f"filling {conversation.name} ({filling.value})")
            partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            documents = asyncio.run(_fill(partial / STORE, conversation, filling, base, self))
            (partial / DOCUMENTS).write_bytes(msgspec.json.encode(documents))
            if folder.exists():  # somebody else was quicker
                shutil.rmtree(partial)
            else:
                partial.rename(folder)
        documents = msgspec.json.decode((folder / DOCUMENTS).read_bytes(), type=Documents)
        return Filled(path=folder / STORE, documents=documents)

    def name(self, conversation: Conversation, filling: Filling) -> str:
        """Return the name of the folder: it changes with everything that changes what is in the store."""
        digest = hashlib.sha256(f"{FORMAT} {self.space}".encode())
        for migration in sorted((Path(str(store.__file__)).parent / "migrations").glob("*.sql")):
            digest.update(migration.read_bytes())
        if filling is not Filling.FACTS:
            for turn in conversation.turns:
                draft = _draft(conversation, turn)
                stored = intake.event(
                    draft, 0, device="", now=conversation.end, policy=DEFAULT, source=intake.Source.PERSON
                ).event
                digest.update(repr((stored, rows.event_tokens(stored), rows.event_words(stored))).encode())
        if filling in {Filling.FACTS, Filling.LINKED}:
            for place, fact in enumerate(conversation.facts):
                memory = _memory(conversation, place, fact)
                digest.update(repr((fact, memory, rows.memory_tokens(memory))).encode())
        if filling is Filling.LEARNED:
            digest.update(json.dumps(asdict(DEFAULT.distill), sort_keys=True).encode())
            for module in (*sorted(Path(str(observe.__file__)).parent.glob("*.py")), Path(str(dates.__file__))):
                digest.update(module.read_bytes())
        plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in conversation.name)[:40]
        return f"{plain}-{filling.value}-{digest.hexdigest()[:16]}"

    @property
    def space(self) -> str:
        """The embedding space, or the name of a model that runs elsewhere."""
        return catalog.EMBEDDERS[self.model].space if self.model in catalog.EMBEDDERS else self.model

    @asynccontextmanager
    async def opened(
        self, filled: Filled, now: Callable[[], Millis], scratch: Path | None
    ) -> AsyncIterator[Application]:
        """Yield a service on a copy of the store; its `policy` may be replaced between questions."""
        with daemons.scratch(scratch) as folder:
            path = folder / STORE
            shutil.copyfile(filled.path, path)
            service = await Application.open(
                path,
                models_dir=self.models_dir,
                model=self.model,
                reranker=self.reranker,
                policy=policy_of(DEFAULT),
                now=now,
            )
            try:
                yield service
            finally:
                await service.close()


def policy_of(policy: MemoryPolicy) -> MemoryPolicy:
    """Return a policy that shows as many hits as are asked for: recall at 50, and formulas over every document."""
    return replace(policy, work=replace(policy.work, recalled_hits=SHOWN))


async def _fill(
    path: Path, conversation: Conversation, filling: Filling, base: Filled | None, keeper: Keeper
) -> Documents:
    if base is not None:
        shutil.copyfile(base.path, path)
    # The same ids and times on every filling: a store that is made again is the same store.
    draw = random.Random(f"{conversation.name} {filling.value}")
    now = conversation.end
    service = await Application.open(
        path, models_dir=keeper.models_dir, model=keeper.model, now=lambda: now, entropy=draw.randbytes
    )
    try:
        turns = {} if base is None else dict(base.documents.turns)
        covers: dict[str, tuple[str, ...]] = {}
        if filling in {Filling.TURNS, Filling.LEARNED}:
            turns = await _say(service, conversation, learn=filling is Filling.LEARNED)
        if filling in {Filling.FACTS, Filling.LINKED}:
            covers = await _state(service, conversation, {turn: event for event, turn in turns.items()})
        settled = await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
        stats = await service.call(PERSON, "stats", api.Nothing())
        bare = keeper.model != NO_MODEL and not stats.embedded and stats.events + stats.memories > 0
        if settled.to_learn or settled.to_embed or bare:
            raise UnavailableError(
                f"{conversation.name}: {settled.to_learn} events not distilled, {settled.to_embed} texts not embedded",
                hint="scrubjay models list says whether the model is whole",
            )
        memories, grips = await _exported(service)
        if filling is Filling.LEARNED:
            covers = _covered(conversation, turns, memories, grips)
    finally:
        await service.close()
    return _documents(conversation, turns, covers, memories, path)


async def _say(service: Application, conversation: Conversation, *, learn: bool) -> dict[str, str]:
    """Send the turns as an agent would. Returns the turn of each event; one that says nothing becomes none."""
    turns: dict[str, str] = {}
    for start in range(0, len(conversation.turns), BATCH):
        batch = conversation.turns[start : start + BATCH]
        drafts = tuple(_draft(conversation, turn) for turn in batch)
        answer = await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=learn))
        turns |= {event: turn.id for event, turn in zip(answer.ids, batch, strict=True) if event}
    return turns


def _draft(conversation: Conversation, turn: Turn) -> EventDraft:
    return EventDraft(
        agent=AGENT,
        session_id=session_id(conversation, turn.session),
        type=TYPE_OF[turn.role],
        role=turn.role,
        text=turn.text,
        ts=turn.ts,
        utc_offset=turn.utc_offset,
        metadata={"speaker": turn.speaker},
        dedupe_key=f"{AGENT}:{conversation.name}:{turn.id}",
    )


async def _state(
    service: Application, conversation: Conversation, events: dict[str, str]
) -> dict[str, tuple[str, ...]]:
    """Import the shipped facts as an export would hold them, with a grip on their turn where that is stored too."""
    turns = {turn.id: turn for turn in conversation.turns}
    lines = [export_format.header("bench", conversation.end, version=1)]
    covers: dict[str, tuple[str, ...]] = {}
    for place, fact in enumerate(conversation.facts):
        memory = _memory(conversation, place, fact)
        event = None if fact.source is None else events.get(fact.source)
        grips: tuple[Grip, ...] = ()
        if event is not None and fact.source is not None:
            said = turns[fact.source].text
            grips = (
                Grip(
                    id=_id(fact.ts, conversation.name, "grip", place),
                    memory_id=memory.id,
                    event_id_start=event,
                    event_id_end=event,
                    span_start=0,
                    span_end=len(said),
                    excerpt=said,
                    source=SOURCE,
                    created_at=fact.ts,
                ),
            )
        covers[memory.id] = () if fact.source is None else (fact.source,)
        lines.append(export_format.line(export_format.MemoryRecord(memory=memory, grips=grips)))
    request = api.ImportRequest(name="facts.jsonl", data=b"".join(lines), restore=True)
    answer = await service.call(PERSON, "import", request)
    if answer.memories != len(conversation.facts):
        raise UnavailableError(
            f"{conversation.name}: {answer.memories} of {len(conversation.facts)} facts were taken in",
            hint="remove the folder of kept stores and run again",
        )
    return covers


def _memory(conversation: Conversation, place: int, fact: Fact) -> Memory:
    return Memory(
        id=_id(fact.ts, conversation.name, "fact", place),
        content=fact.document,
        kind=Kind.OBSERVATION,
        type=MemoryType.FACT,
        scope=Scope.USER,
        salience=TYPE_SALIENCE[MemoryType.FACT],
        created_at=fact.ts,
        updated_at=fact.ts,
        content_hash=content_hash(fact.document),
        metadata={"agent": AGENT, "session_id": session_id(conversation, fact.session)},
    )


def session_id(conversation: Conversation, session: str) -> str:
    """Return the session's name in the store; long ones by their digest, for names have a limit there."""
    name = f"{AGENT}/{conversation.name}/{session}"
    return name if len(name) <= 100 else f"{AGENT}/{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _id(ts: Millis, *parts: object) -> str:
    return ulid(ts, hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:10])


async def _exported(service: Application) -> tuple[list[Memory], list[Grip]]:
    """Read the memories back the way anyone can: from an export."""
    data = b"".join([line async for line in service.stream(PERSON, "export", api.Nothing())])
    kept = [line.memory for line in export_format.read("export", data).lines if line.memory is not None]
    return [one.memory for one in kept], [grip for one in kept for grip in one.grips]


def _covered(
    conversation: Conversation, turns: dict[str, str], memories: Iterable[Memory], grips: Iterable[Grip]
) -> dict[str, tuple[str, ...]]:
    """Return the turns under each memory's grips; a grip that spans several turns covers each of them."""
    place = {turn.id: at for at, turn in enumerate(conversation.turns)}
    found: dict[str, dict[str, None]] = {memory.id: {} for memory in memories}
    for grip in grips:
        first, last = turns.get(grip.event_id_start), turns.get(grip.event_id_end)
        if first is not None and last is not None:
            between = conversation.turns[place[first] : place[last] + 1]
            session = conversation.turns[place[first]].session
            found[grip.memory_id] |= dict.fromkeys(turn.id for turn in between if turn.session == session)
    return {memory: tuple(covered) for memory, covered in found.items()}


def _documents(
    conversation: Conversation,
    turns: dict[str, str],
    covers: dict[str, tuple[str, ...]],
    memories: Sequence[Memory],
    path: Path,
) -> Documents:
    said = {turn.id: turn for turn in conversation.turns}
    texts = {event: said[turn].document for event, turn in turns.items()}
    texts |= {memory.id: memory.content for memory in memories}
    return Documents(
        turns=turns,
        covers=covers,
        texts=texts,
        bytes=path.stat().st_size,
        turn_tokens=sum(text.estimate_tokens(turn.text) for turn in conversation.turns),
        memory_tokens=sum(text.estimate_tokens(memory.content) for memory in memories),
    )
