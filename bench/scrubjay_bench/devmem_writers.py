"""Writers for labelled sessions: the one of the settings, and two that answer with labels.

A Writer that knows the labels measures the way from the prompt to the stored memory: what of the right facts gets lost.
One that answers with the labels of other sessions measures the other half: what of facts that no turn says is refused.
Both read the prompt as a model does, and cite turns by the numbers that stand there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scrubjay.writer.budget import Caps
from scrubjay.writer.budgeted import Chosen
from scrubjay.writer.port import Prompt, Written
from scrubjay_bench.devmem import Label, Project

TURN = re.compile(r"^\[(\d+)\] ([^\n]*):\n((?:  .*\n|\n)*)", re.MULTILINE)
BEFORE = "(before, read already)"
PASTED = re.compile(r"\s*</?pasted>\s*")
NOTHING = "NONE"
HEAD_CHARS = 200
"""By so many characters from its beginning a turn is known: a quotation may stand in several."""


NO_CAPS = Caps(daily=10**12, monthly=10**12)
"""For Writers that cost nothing."""


class Answers(StrEnum):
    """Who answers: the model of the settings, the labels themselves, or those of other sessions."""

    SETTINGS = "settings"
    LABELS = "labels"
    OTHER_LABELS = "other-labels"


@dataclass(kw_only=True)
class LabelWriter:
    """Answers each prompt with the labels that were made for its new turns, each label once. `said` are these.

    With `strangers` it answers with as many labels of other sessions instead, and cites the same turns.
    """

    labels: Sequence[Label]
    turns: Mapping[str, str]
    strangers: bool = False
    said: list[Label] = field(default_factory=list)
    _given: set[str] = field(default_factory=set)

    async def write(self, prompt: Prompt) -> Written:
        """Answer with directives."""
        text = self.answer(prompt.text)
        return Written(text=text, input_tokens=prompt.bytes // 4, output_tokens=len(text) // 4, model="labels")

    def answer(self, text: str) -> str:
        """Return the directives for the turns of a prompt."""
        turns = {
            int(number): _bare(PASTED.sub(" ", said))
            for number, speaker, said in TURN.findall(text)
            if not speaker.endswith(BEFORE)
        }
        parts: list[str] = []
        for label in self.labels:
            quote = _bare(label.quote)
            head = _bare(self.turns[label.turn])[:HEAD_CHARS]
            cited = [number for number, said in turns.items() if quote in said and said.startswith(head)]
            if not cited or label.id in self._given:
                continue
            self._given.add(label.id)
            told = self._stranger(label) if self.strangers else label
            self.said.append(told)
            parts.append(_directive(told, cited[0]))
        return "\n\n".join(parts) or NOTHING

    def _stranger(self, label: Label) -> Label:
        """Return a label of another session of the same project, the same one on every run."""
        others = [other for other in self.labels if other.session != label.session]
        digest = hashlib.sha256(label.id.encode()).digest()
        return others[int.from_bytes(digest[:4], "big") % len(others)] if others else label


def chosen(project: Project, answers: Answers) -> Chosen:
    """Return a Writer that knows the labels of a project."""
    return Chosen(
        writer=LabelWriter(
            labels=project.labels,
            turns={turn.id: turn.text for turn in project.turns},
            strangers=answers is Answers.OTHER_LABELS,
        ),
        name=answers.value,
        model="labels",
        destination="this process",
        leaves=False,
        framing_tokens=0,
    )


def _directive(label: Label, turn: int) -> str:
    fact = " ".join(label.text.split())
    return f"@type {label.type}\n@turns {turn}\n@observe {label.scope}\n{fact}"


def _bare(text: str) -> str:
    return " ".join(text.split())
