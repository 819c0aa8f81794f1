"""Stores filled with labelled sessions or LoCoMo, and asked as an agent asks: by `memory_search` and `memory_get`.

The tools are called as an agent's server calls them, with their defaults, so that what a reader is shown is what an
agent would be. Each id that a search shows is opened as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.settings import NO_MODEL
from scrubjay.transports.mcp.tools import Answer, ToolContext, arguments
from scrubjay.transports.mcp.toolsets import TOOLSETS
from scrubjay_bench import daemons, devmem, locomo
from scrubjay_bench.answers import Asked
from scrubjay_bench.conversations import Conversation
from scrubjay_bench.devmem import Project
from scrubjay_bench.devmem_asking import AGENT, BATCH, STORE, Clock, added, said, settled
from scrubjay_bench.progress import steps
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, EventType, Role

SEARCH, GET = "memory_search", "memory_get"
SHOWN_ID = re.compile(r"\b[me]_[0-9A-HJKMNP-TV-Z]{10,26}\b")
STRATA = {category: number == 3 for number, category in locomo.CATEGORIES.items() if number < 5}
"""The categories of LoCoMo that have an answer, and whether their share would leave too few questions of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one store holds: the labelled sessions of a project, or a conversation; and when it is asked."""

    name: str
    talk: Project | Conversation

    @property
    def asked(self) -> Millis:
        """When the questions are asked."""
        return self.talk.asked if isinstance(self.talk, Project) else self.talk.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Groups and the questions about them. `strata` are the categories that are drawn each by its share, if any."""

    name: str
    sha256: str
    groups: tuple[Group, ...]
    questions: tuple[Asked, ...]
    strata: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the questions are asked. `given` are arguments of the search by question, beside the question itself."""

    material: Material
    questions: Sequence[Asked]
    is_gold: bool
    models_dir: Path
    model: str
    reranker: str = NO_MODEL
    scratch: Path | None = None
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """What a reader sees of one question: what the search showed, and what each id in it opens to."""

    asked: Asked
    shown: str
    opened: Mapping[str, str]


def of_sessions(folder: Path, only: Sequence[str] = ()) -> Material:
    """Read labelled sessions. A question that several projects could answer is asked of the first."""
    data = devmem.load(folder, only)
    questions: dict[str, Asked] = {}
    for project in data.projects:
        for one in project.questions:
            answer = (one.answer or " ".join(one.memories) or "?") if one.evidence else ""
            asked = Asked(
                qid="", id=one.id, group=project.name, question=one.question, category=one.category, answer=answer
            )
            questions.setdefault(one.id, asked)
    return Material(
        name=data.name,
        sha256=data.sha256,
        groups=tuple(Group(name=project.name, talk=project) for project in data.projects),
        questions=tuple(questions.values()),
    )


def of_locomo(path: Path) -> Material:
    """Read LoCoMo. Its adversarial questions ask of the wrong person: nothing answers them."""
    data = locomo.load(path)
    return Material(
        name=data.name,
        sha256=data.sha256,
        groups=tuple(Group(name=one.name, talk=one) for one in data.conversations),
        questions=tuple(
            Asked(
                qid="",
                id=f"{conversation.name}:{place}",
                group=conversation.name,
                question=one.text,
                category=one.category,
                answer="" if one.category == locomo.CATEGORIES[5] else one.answer or "?",
            )
            for conversation in data.conversations
            for place, one in enumerate(conversation.questions)
        ),
        strata=STRATA,
    )


def packets(run: Run) -> Iterator[Packet]:
    """Yield what a reader sees of each question, store by store. Raises UnavailableError when not all is learned."""
    with steps(len(run.questions)) as progress:
        for group in run.material.groups:
            mine = [one for one in run.questions if one.group == group.name]
            if mine:
                progress.say(group.name)
                for packet in asyncio.run(_of_group(run, group, mine)):
                    yield packet
                    progress.step()


async def _of_group(run: Run, group: Group, questions: Sequence[Asked]) -> list[Packet]:
    # The same ids and times on every run: the same code shows the same.
    seed = hashlib.sha256(f"{run.material.sha256} {group.name}".encode()).hexdigest()
    clock = Clock(group.asked)
    with daemons.scratch(run.scratch) as folder:
        service = await Application.open(
            folder / STORE,
            models_dir=run.models_dir,
            model=run.model,
            reranker=run.reranker,
            now=lambda: clock.at,
            entropy=random.Random(seed).randbytes,
        )
        try:
            for job in ("consolidate", "prune"):  # a night that begins meanwhile would put away what was learned
                await service.call(PERSON, "pause_job", api.JobRequest(name=job))
            await _fill(service, group, clock, is_gold=run.is_gold)
            await settled(service, group.name)
            project = group.name if isinstance(group.talk, Project) else None
            context = _context(service, project, clock)
            return [await _packet(context, one, run.given.get(one.qid, {})) for one in questions]
        finally:
            await service.close()


async def _fill(service: Application, group: Group, clock: Clock, *, is_gold: bool) -> None:
    if isinstance(group.talk, Project):
        await said(service, group.talk.turns, group.talk.times, learn=not is_gold)
        if is_gold:
            await added(service, group.talk.labels, clock)
        return
    if is_gold:
        raise InvalidError("LoCoMo has no labelled memories", hint="leave --gold out")
    turns = group.talk.turns
    for start in range(0, len(turns), BATCH):
        drafts = tuple(
            EventDraft(
                agent="bench",
                session_id=f"{group.name}/{turn.session}",
                type=EventType.USER_MESSAGE,
                role=Role.USER,
                text=turn.text,
                ts=turn.ts,
                metadata={"speaker": turn.speaker},
                dedupe_key=f"{group.name}:{turn.id}",
            )
            for turn in turns[start : start + BATCH]
        )
        await service.call(PERSON, "ingest", api.IngestRequest(events=drafts))


def _context(service: Application, project: str | None, clock: Clock) -> ToolContext:
    """Return what a tool acts with, as an agent that works in the project."""
    caller = Caller(principal=Principal.AGENT, agent=AGENT, project=project)

    async def operation(name: str, request: Any) -> Any:
        return await service.call(caller, name, request)

    return ToolContext(caller=caller, operation=operation, now=clock.at, utc_offset=0, policy=DEFAULT)


async def _packet(context: ToolContext, asked: Asked, given: Mapping[str, Any]) -> Packet:
    shown = await _called(context, SEARCH, {"query": asked.question, **given})
    ids = list(dict.fromkeys(SHOWN_ID.findall(shown)))
    return Packet(asked=asked, shown=shown, opened={id_: await _called(context, GET, {"ids": [id_]}) for id_ in ids})


async def _called(context: ToolContext, name: str, given: Mapping[str, Any]) -> str:
    tool = TOOLSETS[""].by_name[name]
    answer = await tool.run(context, arguments(tool, given))
    return answer.text if isinstance(answer, Answer) else answer
