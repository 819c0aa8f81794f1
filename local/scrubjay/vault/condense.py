"""What an agent's events add up to, read from them word for word: no sentence is made up, and none is reworded. Pure.

A sentence is knowledge where several sections say it, or where it says a decision, an insight, a preference or a goal
outright. A sentence is the agent's about itself where it begins with "I" or "my" and says what usually holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.distill.families import classify
from scrubjay.distill.prose import sentences
from scrubjay.policy import MemoryPolicy
from scrubjay_shared.records import MemoryType, content_hash

SECTIONS: dict[MemoryType, str] = {
    MemoryType.DECISION: "Decisions",
    MemoryType.INSIGHT: "Insights",
    MemoryType.PREFERENCE: "Preferences",
    MemoryType.GOAL: "Goals",
}
OFTEN = "Seen often"
PATTERNS = "Patterns"

_OWN = re.compile(r"(?:i|i'm|i've|my)\b", re.IGNORECASE)
_USUAL = re.compile(
    r"\b(?:tend|often|usually|always|never|rarely|seldom|prefer|like to|keep|again|every time|twice|wrong|mistakes?"
    r"|successful|better|best|good at|bad at|should have)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An entry of episodic.md: its memory's id, its section, its text."""

    id: str
    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence to be carried over: under which heading, and the memories that say it."""

    section: str
    text: str
    sources: tuple[str, ...]


def _said(told: Sequence[Told]) -> dict[str, tuple[str, list[Told]]]:
    """Return each sentence as it was said first, and who says it, by its words."""
    found: dict[str, tuple[str, list[Told]]] = {}
    for one in told:
        for span in sentences(one.text):
            text = one.text[span.start : span.end].strip().lstrip("-+* ").strip()
            if text:
                found.setdefault(content_hash(text.rstrip(".!")), (text, []))[1].append(one)
    return found


def knowledge(told: Sequence[Told], present: Sequence[str], policy: MemoryPolicy) -> tuple[Finding, ...]:
    """Return the knowledge in some events that is not `present` already, in the order it was said first."""
    here = {content_hash(text.rstrip(".!")) for text in present}
    found: list[Finding] = []
    for key, (text, tellers) in _said(told).items():
        if key in here:
            continue
        kind = classify(text, policy.distill, role_agent=False, named_talk=False)
        section = SECTIONS.get(kind.type) if kind is not None and not kind.asked else None
        if section is None and len({one.section for one in tellers}) >= policy.vault.repeated:
            section = OFTEN
        if section is not None:
            found.append(Finding(section=section, text=text, sources=tuple(dict.fromkeys(one.id for one in tellers))))
    return tuple(found)


def patterns(told: Sequence[Told], present: Sequence[str]) -> tuple[Finding, ...]:
    """Return what an agent says of its own ways that is not `present` already."""
    here = {content_hash(text.rstrip(".!")) for text in present}
    return tuple(
        Finding(section=PATTERNS, text=text, sources=tuple(dict.fromkeys(one.id for one in tellers)))
        for key, (text, tellers) in _said(told).items()
        if key not in here and _OWN.match(text) and _USUAL.search(text)
    )


def spent(told: Sequence[Told], carried: Sequence[str], kept_sections: int) -> tuple[str, ...]:
    """Return the memories of which every sentence is among `carried`, but for those of the latest sections."""
    latest = set(list(dict.fromkeys(one.section for one in told))[-kept_sections:]) if kept_sections else set()
    held = {content_hash(text.rstrip(".!")) for text in carried}
    gone = []
    for one in told:
        said = list(_said([one]))
        if one.section not in latest and said and held.issuperset(said):
            gone.append(one.id)
    return tuple(gone)
