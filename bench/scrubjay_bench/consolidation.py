"""Consolidation over simulated months: recall, tokens and specifics before and after it, and whether undo is exact.

A conversation is said to a store of its own and learned from. Then nobody says anything for some months, and the job
runs at the end of each until it finds nothing more. What is asked is asked at the same moment before and after. A hit
counts as the turns that it shows: its own, or those that it quotes; not all that an archive was read from.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.lifecycle.specifics import lost, specifics
from scrubjay.service.application import Application
from scrubjay.store import Queries
from scrubjay_bench import daemons, devmem, locomo
from scrubjay_bench.conversations import DAY_MS, Conversation
from scrubjay_bench.progress import steps
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Role
from scrubjay_shared.text import estimate_tokens

MONTHS = 6  # after the last turn: the oldest details are then a year old, and decisions have faded too
MONTH_MS = 30 * DAY_MS
RUNS = 40  # nights in a month at most: each touches a fifth of what is left
BATCH = 500
SETTLE_MS = 3_600_000
ASKED_CHARS = 1_000
DEPTH = 10
"""Hits asked for."""
KINDS: Mapping[str, tuple[str, ...]] = {
    "turns": ("event",),
    "memories": ("memory",),
    "both": ("memory", "event"),
}
"""What is asked for: turns as in protocol P2, memories and both as in P4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What one store is filled with and asked: events under the ids of their turns, questions with their evidence."""

    name: str
    drafts: tuple[EventDraft, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]
    asked: Millis


def talks(
    locomo_file: Path | None, devmem_folder: Path | None, only: Iterable[str], sessions: int | None
) -> list[Talk]:
    """Return what is measured. With `sessions`, so many first ones of each, and the questions that these answer."""
    found: list[Talk] = []
    if locomo_file is not None:
        found += [_of_locomo(one) for one in locomo.load(locomo_file).conversations]
    if devmem_folder is not None:
        found += [_of_devmem(one) for one in devmem.load(devmem_folder).projects if one.turns]
    names = set(only)
    return [_cut(one, sessions) for one in found if not names or one.name in names]


def _of_locomo(one: Conversation) -> Talk:
    return Talk(
        name=one.name,
        drafts=tuple(
            EventDraft(
                agent="bench",
                session_id=f"{one.name}/{turn.session}",
                type=EventType.USER_MESSAGE,
                role=Role.USER,
                text=turn.text,
                ts=turn.ts,
                metadata={"speaker": turn.speaker},
                dedupe_key=turn.id,
            )
            for turn in one.turns
        ),
        questions=tuple((each.text, each.evidence) for each in one.questions if each.evidence and not each.left_out),
        asked=one.end,
    )


def _of_devmem(one: devmem.Project) -> Talk:
    return Talk(
        name=one.name,
        drafts=tuple(
            EventDraft(
                agent="bench",
                session_id=turn.session,
                type=turn.event_type,
                role=turn.role,
                text=turn.text,
                project=turn.project,
                ts=ts,
                trust=turn.trust,
                dedupe_key=turn.id,
            )
            for turn, ts in zip(one.turns, one.times, strict=True)
        ),
        questions=tuple((each.question, frozenset(each.evidence)) for each in one.questions if each.evidence),
        asked=one.asked,
    )


def _cut(talk: Talk, sessions: int | None) -> Talk:
    if sessions is None:
        return talk
    kept = set(list(dict.fromkeys(draft.session_id for draft in talk.drafts))[:sessions])
    drafts = tuple(draft for draft in talk.drafts if draft.session_id in kept)
    said = {draft.dedupe_key for draft in drafts}
    questions = tuple((text, evidence) for text, evidence in talk.questions if evidence <= said)
    return Talk(name=talk.name, drafts=drafts, questions=questions, asked=talk.asked)


class _Clock:
    """A clock that is moved by months."""

    def __init__(self, at: Millis) -> None:
        self.at = at

    def __call__(self) -> Millis:
        return self.at


def measured(talks: Sequence[Talk], *, models_dir: Path, model: str, scratch: Path | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each talk. Raises what the service raises."""
    with steps(len(talks)) as progress:
        for talk in talks:
            progress.say(f"{talk.name}: {len(talk.drafts):,} turns, {len(talk.questions):,} questions")
            yield asyncio.run(_measured(talk, models_dir, model, scratch))
            progress.step()


async def _measured(talk: Talk, models_dir: Path, model: str, scratch: Path | None) -> dict[str, Any]:
    clock = _Clock(talk.asked)
    seed = hashlib.sha256(talk.name.encode()).hexdigest()
    with daemons.scratch(scratch) as folder:
        service = await Application.open(
            Path(folder) / "memory.db",
            models_dir=models_dir,
            model=model,
            now=clock,
            entropy=random.Random(seed).randbytes,
        )
        try:
            for job in ("consolidate", "prune"):  # a run is made when it is called
                await service.call(PERSON, "pause_job", api.JobRequest(name=job))
            turn_of = await _said(service, talk)
            before = await _state(service, talk, turn_of)
            held, digest = await service.store.read(_current), await service.store.read(_digest)
            runs = await _months(service, clock, talk.asked)
            clock.at = talk.asked
            after = await _state(service, talk, turn_of)
            wanted, kept = await service.store.read(lambda q: _survival(q, held))
            told = await _told(service, held)
            for run in reversed(runs):
                await service.call(PERSON, "undo", api.UndoRequest(cause=str(run.cause)))
            exact = await service.store.read(_digest) == digest
        finally:
            await service.close()
    return {
        "name": talk.name,
        "turns": len(talk.drafts),
        "questions": len(talk.questions),
        "runs": len(runs),
        "before": before,
        "after": after,
        "specifics": wanted,
        "survival": kept / wanted if wanted else 1.0,
        "told": told / wanted if wanted else 1.0,
        "undo_exact": exact,
    }


async def _said(service: Application, talk: Talk) -> dict[str, str]:
    turn_of: dict[str, str] = {}
    for start in range(0, len(talk.drafts), BATCH):
        batch = talk.drafts[start : start + BATCH]
        answer = await service.call(PERSON, "ingest", api.IngestRequest(events=batch))
        turn_of |= {event: str(draft.dedupe_key) for event, draft in zip(answer.ids, batch, strict=True) if event}
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
    return turn_of


async def _months(service: Application, clock: _Clock, start: Millis) -> list[api.ConsolidateResponse]:
    """Run the nights of some months; return the runs that changed something."""
    runs: list[api.ConsolidateResponse] = []
    for month in range(1, MONTHS + 1):
        clock.at = Millis(start + month * MONTH_MS)
        for _ in range(RUNS):
            run = await service.call(PERSON, "consolidate", api.ConsolidateRequest())
            if run.cause is None:
                break
            runs.append(run)
            await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
    return runs


async def _state(service: Application, talk: Talk, turn_of: Mapping[str, str]) -> dict[str, Any]:
    """Return what is current, and what is found by asking: recall by what is asked for, and what an answer costs."""
    current = await service.store.read(_current)
    found: dict[str, Any] = {
        "memories": len(current),
        "memory_tokens": sum(estimate_tokens(content) for content in current.values()),
        "recall": {},
    }
    tokens: list[int] = []
    for name, kinds in KINDS.items():
        total = 0.0
        for question, evidence in talk.questions:
            request = api.RecallRequest(query=question, kinds=kinds, limit=DEPTH)
            answer = await service.call(PERSON, "recall", request)
            shown = {turn_of.get(hit.id) for hit in answer.hits}
            shown |= {turn_of.get(quote.event_id) for hit in answer.hits for quote in hit.read_from}
            total += len(evidence & shown) / len(evidence)
            if name == "memories":
                tokens.append(answer.tokens)
        found["recall"][name] = total / max(len(talk.questions), 1)
    found["answer_tokens"] = sum(tokens) / max(len(tokens), 1)
    return found


def _current(queries: Queries) -> dict[str, str]:
    """Return what recall reads unless it is asked about an earlier time: id and words of each current memory."""
    rows = queries.fetch(
        "select id, content from memory where superseded_by is null and archived_at is null and layer = 'archive'"
    )
    return {str(row[0]): str(row[1]) for row in rows}


def _digest(queries: Queries) -> str:
    """Return a digest of all that is shown of memories, but for when it was written."""
    rows = queries.fetch(
        "select id, content, kind, type, name, scope, resource_id, layer, salience, topic, trust, valid_from, valid_to,"
        " superseded_by, metadata from memory where archived_at is null order by id"
    )
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _survival(queries: Queries, held: Mapping[str, str]) -> tuple[int, int]:
    """Return how many specifics the memories had that were current, and how many are where they lead to now.

    That is what took a memory in, and what the sources say with the day on which it was said.
    """
    wanted = kept = 0
    for memory_id, content in held.items():
        at = memory_id
        while (into := queries.memories.successor(at)) is not None and queries.memories.get(at).archived_at is not None:
            at = into
        texts = list(queries.consolidation.sources([at]).get(at, ()))
        if queries.memories.get(at).archived_at is None:
            texts.append(queries.memories.get(at).content)
        there = specifics(content)
        wanted += len(there)
        kept += len(there) - len(lost(there, texts))
    return wanted, kept


async def _told(service: Application, held: Mapping[str, str]) -> int:
    """Return how many specifics an answer tells of the memories that were current, each asked for by its own words."""
    told = 0
    for content in held.values():
        request = api.RecallRequest(query=content[:ASKED_CHARS], kinds=("memory",), limit=DEPTH)
        answer = await service.call(PERSON, "recall", request)
        there = specifics(content)
        told += len(there) - len(lost(there, [hit.text for hit in answer.hits]))
    return told


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as people read them."""
    head = (
        "store", "turns", "questions", "memories", "tokens", "share", "answer",
        "turns R@10", "memories R@10", "both R@10", "specifics", "told", "undo",
    )  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for row in [*rows, _together(rows)] if len(rows) > 1 else rows:
        before, after = row["before"], row["after"]
        cells = [row["name"], f"{row['turns']:,}", f"{row['questions']:,}"]
        cells += [f"{before[name]:,} → {after[name]:,}" for name in ("memories", "memory_tokens")]
        cells += [f"{after['memory_tokens'] / max(before['memory_tokens'], 1):.2f}"]
        cells += [" → ".join(_answer(each["answer_tokens"]) for each in (before, after))]
        cells += [_recalls(before, after, name) for name in KINDS]
        cells += [f"{row['survival']:.4f} of {row['specifics']:,}", f"{row['told']:.4f}"]
        cells += ["exact" if row["undo_exact"] else "differs"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _together(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all rows as one: sums, and means over all questions; of specifics, over all specifics."""

    def mean(value: Callable[[Mapping[str, Any]], float], weight: str) -> float:
        weights = [float(row[weight]) for row in rows]
        return sum(value(row) * each for row, each in zip(rows, weights, strict=True)) / max(sum(weights), 1.0)

    unsaid = any(row["after"]["answer_tokens"] is None for row in rows)

    def state(when: str) -> dict[str, Any]:
        return {
            **{name: sum(row[when][name] for row in rows) for name in ("memories", "memory_tokens")},
            "answer_tokens": None if unsaid else mean(lambda row: row[when]["answer_tokens"], "questions"),
            "recall": {kind: mean(partial(_recall_of, when, kind), "questions") for kind in KINDS},
        }

    return {
        "name": "all",
        **{name: sum(row[name] for row in rows) for name in ("turns", "questions", "runs", "specifics")},
        "before": state("before"),
        "after": state("after"),
        "survival": mean(lambda row: row["survival"], "specifics"),
        "told": mean(lambda row: row["told"], "specifics"),
        "undo_exact": all(row["undo_exact"] for row in rows),
    }


def _recall_of(when: str, kind: str, row: Mapping[str, Any]) -> float:
    return float(row[when]["recall"][kind])


def _answer(tokens: float | None) -> str:
    return "–" if tokens is None else f"{tokens:,.0f}"


_Format = Callable[[float], str]


def _recalls(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    shown: _Format = "{:.3f}".format
    return " → ".join(shown(each["recall"][name]) for each in (before, after))
