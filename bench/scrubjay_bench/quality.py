"""Whether the right line comes back: the questions of the shipped sample, among the first three hits.

A small check against breakage, not a measure of quality: that is `scrubjay bench locomo`, or your own chats.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_bench import daemons
from scrubjay_bench.figures import Figure
from scrubjay_bench.plan import Plan
from scrubjay_shared.records import EventDraft

FIRST = 3
SETTLE_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many questions were asked, and those whose lines were not among the first hits."""

    asked: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """Percent of the questions that were answered."""
        return 100 * (self.asked - len(self.missed)) / self.asked


def measure(plan: Plan) -> list[Figure]:
    """Ask in every mode. The same store gives the same hits, so that once is enough."""
    found = asyncio.run(_asked(plan, tuple(api.Mode)))
    return [
        Figure(
            name=f"sample.top{FIRST}.{mode.value}",
            meaning=f"questions of the shipped sample with a right line among the first {FIRST}, mode {mode.value}",
            unit="%",
            value=round(each.share, 1),
            low=round(each.share, 1),
            high=round(each.share, 1),
            rounds=1,
            samples=each.asked,
        )
        for mode, each in found.items()
    ]


def asked(plan: Plan) -> Found:
    """Ask in the default mode."""
    return asyncio.run(_asked(plan, (api.Mode.HYBRID,)))[api.Mode.HYBRID]


async def _asked(plan: Plan, modes: tuple[api.Mode, ...]) -> dict[api.Mode, Found]:
    samples = resources.files("scrubjay") / "samples"
    lines = (samples / "conversation.jsonl").read_bytes().splitlines()
    questions = json.loads((samples / "questions.json").read_bytes())
    with daemons.scratch(plan.scratch) as folder:
        service = await Application.open(Path(folder) / "memory.db", models_dir=plan.models_dir, model=plan.model)
        try:
            drafts = tuple(msgspec.json.decode(line, type=EventDraft) for line in lines)
            ids = (await service.call(PERSON, "ingest", api.IngestRequest(events=drafts))).ids
            await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
            found = {}
            for mode in modes:
                missed = []
                for question in questions:
                    right = {ids[line - 1] for line in question["lines"]}
                    answer = await service.call(
                        PERSON, "recall", api.RecallRequest(query=question["question"], limit=FIRST, mode=mode)
                    )
                    shown = {hit.id for hit in answer.hits} | {s.event_id for hit in answer.hits for s in hit.sources}
                    if not right & shown:
                        missed.append(question["question"])
                found[mode] = Found(asked=len(questions), missed=tuple(missed))
            return found
        finally:
            await service.close()
