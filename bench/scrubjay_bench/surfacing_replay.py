"""Sessions said again in the order of their time, and what each was told ahead of what it needed.

Before a session begins, and again once its first prompt was said, each way says what it would tell within a budget of
tokens: recency the last turns of the project; recall what answers the first prompt, or where there is none yet the last
words of the session before; surfacing what it predicts. The store holds nothing that was said later, and its clock
stands at the moment. Every line is cut and counted as in the text that agents are handed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.policy import DEFAULT
from scrubjay.retrieval import handing
from scrubjay.service.application import Application
from scrubjay_bench import daemons
from scrubjay_bench.progress import steps
from scrubjay_bench.surfacing import KINDS, Need, Person, Replayed, Said, start_of
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType
from scrubjay_shared.text import estimate_tokens

BUDGET = 1_000  # tokens
CONSIDERED = 100  # hits of recall: more than fit
BEFORE, PROMPTED = "before", "prompted"
MOMENTS = (BEFORE, PROMPTED)
RECENCY, RECALL, SURFACING, SURE = "recency", "recall", "surfacing", "surfacing above its floor"
WAYS = (RECENCY, RECALL, SURFACING, SURE)
FLOORS = (0.0, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)
"""Probabilities that a floor is tried at, and that bands of reliability end at."""
STORE = "memory.db"
_SPOKEN = frozenset({EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One thing that was predicted: how probable it was, its tokens, and whether it says something that was needed."""

    probability: float
    tokens: int
    is_needed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one way gave one session at one moment: the share of each kind of need that it holds, and its tokens.

    `predicted` is all that surfacing predicted, the most probable first; empty for other ways.
    """

    person: str
    set_name: str
    moment: str
    way: str
    shares: Mapping[str, float]
    tokens: int
    predicted: tuple[Judged, ...] = ()


@dataclass(slots=True)
class _Line:
    """One thing that may be told: what it costs, and the turns that it says."""

    text: str
    turns: frozenset[str]
    probability: float = 0.0

    @property
    def tokens(self) -> int:
        """What the line costs, cut as agents are handed it."""
        return estimate_tokens(" ".join(self.text.split())[: DEFAULT.handing.line_chars]) + 1


@dataclass(slots=True)
class _Replay:
    """One person's store while it fills."""

    service: Application
    person: Person
    now: list[Millis]
    turn_of: dict[str, str] = field(default_factory=dict)

    async def say(self, turns: Sequence[Said]) -> None:
        """Ingest turns, learn from them and embed them."""
        if not turns:
            return
        self.now[0] = Millis(max(self.now[0], *(turn.draft.ts or 0 for turn in turns)) + 1)
        for start in range(0, len(turns), 200):
            batch = turns[start : start + 200]
            request = api.IngestRequest(events=tuple(turn.draft for turn in batch))
            answer = await self.service.call(PERSON, "ingest", request)
            self.turn_of |= {event: turn.id for event, turn in zip(answer.ids, batch, strict=True) if event}
        await self.service.distill.run()
        await self.service.embed.run()

    async def recalled(self, query: str, session: str | None) -> list[_Line]:
        """Return what recall says, without what may not be told."""
        caller = Caller(principal=Principal.AGENT, project=self._project, session_id=session)
        request = api.RecallRequest(
            query=query[: DEFAULT.limits.max_query_chars],
            limit=CONSIDERED,
            max_tokens=DEFAULT.limits.recall_tokens,
            rerank=False,
        )
        answer: api.RecallResponse = await self.service.call(caller, "recall", request)
        return [
            _Line(hit.text, self._turns([hit.id, *(quote.event_id for quote in hit.read_from)]))
            for hit in answer.hits
            if handing.tells(hit, session_id=session, now=self.now[0])
        ]

    async def surfaced(self, session: str | None) -> tuple[list[_Line], float]:
        """Return what surfacing predicts, what it would tell first in front, and where its floor is."""
        surfacing = self.service.surfacing
        found = await surfacing.predict(self._project, session)
        stats = await surfacing.stats()
        lines = []
        for one in found:
            if one.kind == "event":
                [event] = (await self.service.store.read(lambda q, ref=one.ref: q.events.by_id([ref]))).values()  # type: ignore[misc]
                lines.append(_Line(event.text, self._turns([one.ref]), one.probability))
            else:
                why = await self.service.call(PERSON, "why", api.RefRequest(ref=one.ref))
                sources = [event.id for source in why.sources for event in source.events]
                lines.append(_Line(why.entry.memory.content, self._turns(sources), one.probability))
        return lines, stats.floor

    @property
    def _project(self) -> str:
        return self.person.sessions[0].turns[0].draft.project or ""

    def _turns(self, events: Iterable[str]) -> frozenset[str]:
        return frozenset(self.turn_of[event] for event in events if event in self.turn_of)


def replayed(people: Sequence[Person], *, models_dir: Path, model: str, scratch: Path | None) -> Iterator[list[Given]]:
    """Yield what the sessions of each person were given."""
    with steps(sum(len(person.sessions) for person in people)) as progress:
        for person in people:
            progress.say(f"{person.set_name}: {person.name}")
            yield asyncio.run(_person(person, models_dir, model, scratch))
            progress.step(len(person.sessions))


async def _person(person: Person, models_dir: Path, model: str, scratch: Path | None) -> list[Given]:
    now = [start_of(person.sessions[0])]
    with daemons.scratch(scratch) as folder:
        service = await Application.open(
            Path(folder) / STORE,
            models_dir=models_dir,
            model=model,
            now=lambda: now[0],
            entropy=random.Random(person.name).randbytes,
        )
        try:
            return [one async for one in _sessions(_Replay(service, person, now))]
        finally:
            await service.close()


async def _sessions(replay: _Replay) -> AsyncIterator[Given]:
    said: list[Said] = []
    for session in replay.person.sessions:
        replay.now[0] = max(replay.now[0], start_of(session))
        first = next((at for at, turn in enumerate(session.turns) if turn.draft.type is EventType.USER_MESSAGE), None)
        is_asked = bool(said) and any(session.needs.values())
        if is_asked:
            query = "\n".join(turn.draft.text for turn in said[-3:] if turn.draft.type in _SPOKEN)
            for given in await _moment(replay, session, BEFORE, query, said):
                yield given
        opening = 0 if first is None else first + 1
        await replay.say(session.turns[:opening])
        if is_asked and first is not None:
            query = session.turns[first].draft.text
            for given in await _moment(replay, session, PROMPTED, query, said):
                yield given
        await replay.say(session.turns[opening:])
        said += session.turns


async def _moment(replay: _Replay, session: Replayed, moment: str, query: str, said: Sequence[Said]) -> list[Given]:
    id_ = session.id if moment == PROMPTED else None
    recent = [_Line(turn.draft.text, frozenset((turn.id,))) for turn in said[::-1] if turn.draft.type in _SPOKEN]
    surfaced, floor = await replay.surfaced(id_)
    ways = {
        RECENCY: recent,
        RECALL: await replay.recalled(query, id_),
        SURFACING: surfaced,
        SURE: [line for line in surfaced if line.probability >= floor],
    }
    found = []
    for way, lines in ways.items():
        turns, tokens = fitting(lines)
        shares = {kind: share(needs, turns) for kind, needs in session.needs.items() if needs}
        found.append(
            Given(
                person=replay.person.name,
                set_name=replay.person.set_name,
                moment=moment,
                way=way,
                shares=shares,
                tokens=tokens,
                predicted=judged(lines, session.needs) if way == SURFACING else (),
            )
        )
    return found


def judged(lines: Iterable[_Line], needs: Mapping[str, Iterable[Need]]) -> tuple[Judged, ...]:
    """Return of each line whether it says something of what was needed, for whatever reason."""
    turns = frozenset(turn for kind in needs.values() for need in kind for turn in need)
    return tuple(
        Judged(probability=line.probability, tokens=line.tokens, is_needed=bool(line.turns & turns)) for line in lines
    )


def fitting(lines: Iterable[_Line], budget: int = BUDGET) -> tuple[frozenset[str], int]:
    """Return the turns that lines hold which fit a budget together, in their order, and their tokens."""
    found: set[str] = set()
    spent = 0
    for line in lines:
        if spent + line.tokens > budget:
            continue
        spent += line.tokens
        found |= line.turns
    return frozenset(found), spent


def share(needs: Iterable[Need], turns: frozenset[str]) -> float:
    """Return the share of needs of which some turn is there."""
    held = [bool(need & turns) for need in needs]
    return sum(held) / len(held)


def rows(given: Sequence[Given]) -> list[dict[str, object]]:
    """Return a row for each set, moment, kind of need and way: the median and mean over people of their mean shares."""
    found: list[dict[str, object]] = []
    for set_name in dict.fromkeys(one.set_name for one in given):
        for moment in MOMENTS:
            for kind in KINDS:
                for way in WAYS:
                    mine = [
                        one
                        for one in given
                        if (one.set_name, one.moment, one.way) == (set_name, moment, way) and kind in one.shares
                    ]
                    by_person: dict[str, list[float]] = {}
                    for one in mine:
                        by_person.setdefault(one.person, []).append(one.shares[kind])
                    if mine:
                        means = [mean(shares) for shares in by_person.values()]
                        found.append(
                            {
                                "set": set_name,
                                "moment": moment,
                                "need": kind,
                                "way": way,
                                "people": len(means),
                                "sessions": len(mine),
                                "median": median(means),
                                "mean": mean(means),
                                "tokens": round(mean(one.tokens for one in mine)),
                            }
                        )
    return found


def floors(given: Sequence[Given]) -> list[dict[str, object]]:
    """Return a row for each set, moment and floor: what is told above it within the budget, and how much was needed."""
    found: list[dict[str, object]] = []
    for set_name, moment, mine in _predicted(given):
        for floor in FLOORS:
            told = [line for one in mine for line in _above(one.predicted, floor)]
            tokens, needed = sum(line.tokens for line in told), sum(line.is_needed for line in told)
            found.append(
                {
                    "set": set_name,
                    "moment": moment,
                    "floor": floor,
                    "lines": len(told) / len(mine),
                    "tokens": round(tokens / len(mine)),
                    "needed": needed / len(told) if told else None,
                    "tokens_per_needed": round(tokens / needed) if needed else None,
                }
            )
    return found


def reliability(given: Sequence[Given]) -> list[dict[str, object]]:
    """Return a row for each set, moment and band of probability: what was predicted on average, and what was needed."""
    found: list[dict[str, object]] = []
    for set_name, moment, mine in _predicted(given):
        lines = [line for one in mine for line in one.predicted]
        for low, high in pairwise((*FLOORS, 1.0)):
            band = [line for line in lines if low <= line.probability < high]
            if band:
                found.append(
                    {
                        "set": set_name,
                        "moment": moment,
                        "from": low,
                        "to": high,
                        "things": len(band),
                        "predicted": mean(line.probability for line in band),
                        "needed": mean(line.is_needed for line in band),
                    }
                )
    return found


def _predicted(given: Sequence[Given]) -> Iterator[tuple[str, str, list[Given]]]:
    for set_name in dict.fromkeys(one.set_name for one in given):
        for moment in MOMENTS:
            mine = [one for one in given if (one.set_name, one.moment, one.way) == (set_name, moment, SURFACING)]
            if mine:
                yield set_name, moment, mine


def _above(lines: Iterable[Judged], floor: float) -> list[Judged]:
    told: list[Judged] = []
    for line in lines:
        if line.probability >= floor and sum(one.tokens for one in told) + line.tokens <= BUDGET:
            told.append(line)
    return told
