"""What an agent is handed at each start of a session, held against labels: how much of it a reader would have kept.

The sessions of a project come in their order. Before the third and each later one the startup context is asked for.
A handed memory is worth it when it matches a label of importance 2 or 3 of an earlier session, by the rule of
`devmem_scores`; covered are the labels of importance 3 of earlier sessions that hold beyond their session and that no
label of those replaces. With labelled memories nothing is learned, and each session's labels are added after it.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay import __version__, api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_bench import daemons, retrieval
from scrubjay_bench.devmem import Label, Project, Sessions
from scrubjay_bench.devmem_asking import ALL, LEARNING, STORE, Clock, Memories, added, said, settled
from scrubjay_bench.devmem_scores import IMPORTANT, MATCHES, Learned, close
from scrubjay_bench.figures import load, machine
from scrubjay_bench.progress import steps

NEW = 2
"""Sessions of a project before anything is asked for: of less there is little to hand over."""

MUST = 3
"""The importance of what must be remembered."""

LETTERS_A_TOKEN = 4  # as in the figures of earlier reviews, which this is compared with
CODE = (*LEARNING, "scrubjay/service/context.py", "scrubjay/service/handing.py", "scrubjay/lifecycle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be measured, and with what."""

    data: Sessions
    memories: Memories
    models_dir: Path
    model: str
    scratch: Path | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """What all rows share, as it stands in JSON."""
        return {
            "data": {"name": self.data.name, "sha256": self.data.sha256},
            "model": retrieval.model_facts(self.model),
            "scrubjay": __version__,
            "code": retrieval.code(CODE),
            "machine": machine(self.scratch or self.models_dir),
            "load": load(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A memory that was handed over: its words, the labels that it matches, and whether one of them is important."""

    section: str
    text: str
    labels: tuple[str, ...]
    worth: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One session's start: its lines of memories, how many lines in all, and their cost; what of it had to be there."""

    session: str
    lines: tuple[Line, ...]
    items: int
    tokens: int
    wanted: frozenset[str]

    @property
    def covered(self) -> frozenset[str]:
        """The labels that had to be there and are."""
        return self.wanted & {label for line in self.lines for label in line.labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What the agents of one project were handed."""

    project: str
    starts: tuple[Start, ...]

    def details(self) -> list[dict[str, Any]]:
        """Return every line with its words: for whoever may read the sessions."""
        return [
            {
                "session": start.session,
                "lines": [
                    {"section": line.section, "text": line.text, "labels": line.labels, "worth": line.worth}
                    for line in start.lines
                ],
                "missed": sorted(start.wanted - start.covered),
            }
            for start in self.starts
        ]


def measured(run: Run) -> Iterator[Handed]:
    """Yield what each project's agents were handed. Raises UnavailableError when not all could be learned."""
    with steps(len(run.data.projects)) as progress:
        for project in run.data.projects:
            progress.say(f"{project.name}: {len(project.turns):,} turns")
            yield asyncio.run(_handed(run, project))
            progress.step()


def rows(found: Sequence[Handed], memories: Memories) -> list[dict[str, Any]]:
    """Return a row a project, and one over the starts of all."""
    named = [(one.project, one.starts) for one in found]
    if len(found) > 1:
        named.append((ALL, tuple(start for one in found for start in one.starts)))
    return [{"project": name, "from": memories.value, **_row(starts)} for name, starts in named]


def _row(starts: Sequence[Start]) -> dict[str, Any]:
    lines = [line for start in starts for line in start.lines]
    wanted = sum(len(start.wanted) for start in starts)
    return {
        "starts": len(starts),
        "lines": sum(start.items for start in starts),
        "memories": len(lines),
        "right": sum(line.worth for line in lines) / len(lines) if lines else None,
        "covered_3": sum(len(start.covered) for start in starts) / wanted if wanted else None,
        "wanted_3": wanted,
        "tokens_median": statistics.median(start.tokens for start in starts) if starts else 0,
        "empty": sum(start.items == 0 for start in starts),
    }


async def _handed(run: Run, project: Project) -> Handed:
    # The same ids and times on every run: the same code gives the same figures.
    seed = hashlib.sha256(f"{run.data.sha256} {project.name}".encode()).hexdigest()
    is_labelled = run.memories is Memories.LABELLED
    clock = Clock(project.asked)
    sessions = list(dict.fromkeys(turn.session for turn in project.turns))
    turn_of: dict[str, str] = {}
    given: dict[str, str] = {}
    starts: list[Start] = []
    with daemons.scratch(run.scratch) as folder:
        service = await Application.open(
            folder / STORE,
            models_dir=run.models_dir,
            model=run.model,
            now=lambda: clock.at,
            entropy=random.Random(seed).randbytes,
        )
        try:
            for job in ("consolidate", "prune"):  # a night that begins meanwhile would put away what was learned
                await service.call(PERSON, "pause_job", api.JobRequest(name=job))
            for place, session in enumerate(sessions):
                if place >= NEW:
                    earlier = [label for label in project.labels if label.session in sessions[:place]]
                    starts.append(await _start(service, project.name, session, earlier, turn_of=turn_of, given=given))
                at = [n for n, turn in enumerate(project.turns) if turn.session == session]
                turns, times = [project.turns[n] for n in at], [project.times[n] for n in at]
                turn_of |= await said(service, turns, times, learn=not is_labelled)
                if is_labelled:
                    labels = [label for label in project.labels if label.session == session]
                    given |= await added(service, labels, clock, project=project.name)
                await settled(service, project.name)
        finally:
            await service.close()
    return Handed(project=project.name, starts=tuple(starts))


async def _start(
    service: Application,
    project: str,
    session: str,
    earlier: Sequence[Label],
    *,
    turn_of: Mapping[str, str],
    given: Mapping[str, str],
) -> Start:
    """Ask for the startup context of a session, and hold its memories against the labels of earlier ones."""
    answer = await service.call(PERSON, "context", api.ContextRequest(project=project))
    lines = []
    for item in answer.items:
        if item.kind != "memory":
            continue
        if item.ref in given:
            matches = [label for label in earlier if label.id == given[item.ref]]
        else:
            read = await _read(service, item, turn_of)
            matches = [label for label in earlier if read.turns & label.turns and close(read, label) >= MATCHES]
        worth = any(label.importance in IMPORTANT for label in matches)
        labels = tuple(label.id for label in matches)
        lines.append(Line(section=item.section.value, text=item.text, labels=labels, worth=worth))
    gone = {label.supersedes for label in earlier}
    return Start(
        session=session,
        lines=tuple(lines),
        items=len(answer.items),
        tokens=len(answer.handed) // LETTERS_A_TOKEN,
        wanted=frozenset(
            label.id
            for label in earlier
            if label.importance == MUST and label.scope != "session" and label.id not in gone
        ),
    )


async def _read(service: Application, item: api.ContextItem, turn_of: Mapping[str, str]) -> Learned:
    """Return a handed memory in the words of its line, with the turns and the words that it was read from."""
    why = await service.call(PERSON, "why", api.RefRequest(ref=item.ref))
    turns = {turn_of.get(event.id) for source in why.sources for event in source.events}
    return Learned(
        id=item.ref,
        content=item.text,
        type=why.entry.memory.type.value,
        scope=why.entry.memory.scope.value,
        trust=item.trust,
        turns=frozenset(turn for turn in turns if turn is not None),
        excerpt=" ".join(source.grip.excerpt for source in why.sources),
    )
