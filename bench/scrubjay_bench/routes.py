"""Sixty questions routed: is the intent right, is the right day among the first three places, and what does it cost.

The questions are ours and stand in `bench/route/questions.jsonl` with the days on which their answers were said; the
conversations are LoCoMo's and those of a folder of labelled coding sessions, and are read where they lie. Each source
is asked some days after its last word. Plain recall is asked the same, and its hits' days are its places.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_bench import daemons, devmem, locomo
from scrubjay_bench.conversations import digest
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType

QUESTIONS = Path(__file__).resolve().parents[1] / "route" / "questions.jsonl"
FIRST = 3
BATCH = 1_000
SETTLE_MS = 3_600_000
ASKED = {"conv-26": "2023-10-25", "conv-43": "2024-01-15", "spec": "2026-07-10"}
"""The day on which each source is asked: the first that is not a weekend after its last word, or nearly so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, what it is after, and the days on which what answers it was said (any of them is right)."""

    id: str
    source: str
    intent: api.Intent
    question: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of one question: the days of the first places, by routing and by plain recall, and their tokens."""

    question: Question
    intent: api.Intent
    routed: tuple[str, ...]
    recalled: tuple[str, ...]
    route_tokens: int
    recall_tokens: int
    route_ms: float

    @property
    def right(self) -> dict[str, bool]:
        """What was right."""
        wanted = {*self.question.places}
        return {
            "intent": self.intent is self.question.intent,
            "route": bool(wanted & {*self.routed[:FIRST]}),
            "route_first": bool(wanted & {*self.routed[:1]}),
            "recall": bool(wanted & {*self.recalled[:FIRST]}),
            "recall_first": bool(wanted & {*self.recalled[:1]}),
        }


def questions(path: Path = QUESTIONS) -> list[Question]:
    """Read the questions. Raises InvalidError naming the line that is none."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(msgspec.json.decode(line, type=Question))
        except msgspec.MsgspecError as error:
            raise InvalidError(f"{path.name}, line {number}: {error}", hint="git checkout bench/route") from error
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Where the data, the models and the scratch folder are."""

    locomo: Path
    devmem: Path
    models_dir: Path
    model: str
    reranker: str
    scratch: Path | None = None

    @property
    def sha256(self) -> str:
        """The digest of the data and the questions."""
        return digest(self.locomo, self.devmem / devmem.SESSIONS, QUESTIONS)


def drafts(run: Run, source: str) -> list[EventDraft]:
    """Return what was said in a source, as it is sent. Raises NotFoundError for one that the data does not have."""
    if source == "spec":
        (project,) = devmem.load(run.devmem, [source]).projects
        return [
            EventDraft(
                agent="claude-code",
                session_id=turn.session,
                type=turn.event_type,
                role=turn.role,
                text=turn.text,
                project=turn.project,
                ts=at,
                trust=turn.trust,
                dedupe_key=turn.id,
            )
            for turn, at in zip(project.turns, project.times, strict=True)
        ]
    for talk in locomo.load(run.locomo).conversations:
        if talk.name == source:
            return [
                EventDraft(
                    agent="locomo",
                    session_id=f"{talk.name}/{turn.session}",
                    type=EventType.USER_MESSAGE,
                    text=turn.text,
                    ts=turn.ts,
                    metadata={"speaker": turn.speaker},
                    dedupe_key=f"{talk.name}/{turn.id}",
                )
                for turn in talk.turns
            ]
    raise NotFoundError(f"the data has no {source}", hint="give the files that docs/benchmarks.md names")


async def _asked(run: Run, folder: Path, source: str, of: Sequence[Question]) -> list[Asked]:
    day = datetime.fromisoformat(ASKED[source]).replace(hour=12, tzinfo=UTC)
    now = Millis(int(day.timestamp() * 1000))
    service = await Application.open(
        folder / f"{source}.db", models_dir=run.models_dir, model=run.model, reranker=run.reranker, now=lambda: now
    )
    try:
        said = drafts(run, source)
        for at in range(0, len(said), BATCH):
            await service.call(PERSON, "ingest", api.IngestRequest(events=tuple(said[at : at + BATCH])))
        await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
        found = []
        for question in of:
            routed: api.RouteResponse = await service.call(PERSON, "route", api.RouteRequest(query=question.question))
            recalled: api.RecallResponse = await service.call(
                PERSON, "recall", api.RecallRequest(query=question.question)
            )
            found.append(
                Asked(
                    question=question,
                    intent=routed.intent,
                    routed=tuple(pointer.day for pointer in routed.pointers if pointer.level in {"segment", "day"}),
                    recalled=tuple(_days(recalled.hits)),
                    route_tokens=routed.tokens,
                    recall_tokens=recalled.tokens,
                    route_ms=routed.elapsed_ms,
                )
            )
        return found
    finally:
        await service.close()


def _days(hits: Iterable[api.Hit]) -> list[str]:
    """Return the days of hits, each once, in their order."""
    times = [at for hit in hits for at in ([hit.ts] if hit.kind == "event" else [one.ts for one in hit.sources])]
    return list(dict.fromkeys(datetime.fromtimestamp(at / 1000, UTC).date().isoformat() for at in times))


def measured(run: Run) -> list[Asked]:
    """Ask every question. Takes some minutes, most of them for embedding."""
    found: list[Asked] = []
    asked = questions()
    with daemons.scratch(run.scratch) as folder:
        for source in ASKED:
            of = [question for question in asked if question.source == source]
            found += asyncio.run(_asked(run, folder, source, of))
    return found


def rows(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Return a row for each intent and one for all: shares of what was right, and mean tokens."""
    groups = [(intent.value, [one for one in asked if one.question.intent is intent]) for intent in api.Intent]
    return [_row(name, of) for name, of in [*groups, ("all", list(asked))]]


def _row(name: str, of: Sequence[Asked]) -> dict[str, Any]:
    count = max(len(of), 1)
    shares = {
        kind: round(sum(one.right[kind] for one in of) / count, 3)
        for kind in ("intent", "route", "route_first", "recall", "recall_first")
    }
    return {
        "intent_of": name,
        "questions": len(of),
        **shares,
        "route_tokens": round(sum(one.route_tokens for one in of) / count),
        "recall_tokens": round(sum(one.recall_tokens for one in of) / count),
        "route_ms": round(sorted(one.route_ms for one in of)[len(of) // 2], 1) if of else None,
    }


HEADINGS = ("after", "questions", "intent right", f"place in first {FIRST}", "place first", f"recall: in first {FIRST}",
            "recall: first", "tokens", "recall: tokens", "p50 ms")  # fmt: skip
BEGIN = "<!-- route:begin, written by `scrubjay bench route --docs` -->"
END = "<!-- route:end -->"


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|" + "--:|" * (len(HEADINGS) - 1)]
    for row in found:
        cells = [
            row["intent_of"].replace("_", "-"),
            str(row["questions"]),
            *(f"{row[kind]:.0%}" for kind in ("intent", "route", "route_first", "recall", "recall_first")),
            f"{row['route_tokens']:,}",
            f"{row['recall_tokens']:,}",
            "" if row["route_ms"] is None else f"{row['route_ms']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def block(found: Mapping[str, Any]) -> str:
    """Return what stands in the page of figures."""
    return f"{BEGIN}\n\n{table(found['rows'])}\n\n{END}"


def details(asked: Sequence[Asked]) -> str:
    """Return every question with what became of it, a JSON object a line."""
    return "".join(
        json.dumps(
            {
                "id": one.question.id,
                "intent": one.intent.value,
                "right": one.right,
                "routed": one.routed[:FIRST],
                "recalled": one.recalled[:FIRST],
            }
        )
        + "\n"
        for one in asked
    )
