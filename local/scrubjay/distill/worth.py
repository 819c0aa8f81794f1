"""How sure a classified is, once the sentence's words are weighed: detail counts for it, loose ends against it."""

from __future__ import annotations

import re

from scrubjay.distill.families import Classification
from scrubjay.distill.lexicon import VAGUE_STEMS
from scrubjay.distill.reference import points_outside, unresolved
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import MemoryType
from scrubjay_shared.text import analyse

_NAMES = re.compile(r"(?<=[\w,;:)] )[A-Z][\w'&-]+|[A-Z]{2,}\w*|`[^`]+`|[\w-]{2,}[/.][a-z]{2,}[\w./-]*")

_NUMBERS = re.compile(
    r"(?<![\w])\d+|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand)\b"
)

DEFINITE = re.compile(
    r"\b(?:love|loved|like|liked|enjoy|enjoyed|into|fan of|likes|obsessed with) (?:all the|the|how the|that|this|"
    r"these|those)\b(?! \w+ (?:of|in|at) )"
)

VAGUE_END = re.compile(
    r"\b(?:some|another|an?|new|lots of|more|many) (?:\w+ ){0,2}(?:events?|people|country|skills?|project|solutions?|"
    r"things?|stuff|places?|goals?|ideas?|opportunit(?:y|ies)|challenges?|changes?|work|progress|fun|breakthrough|book|"
    r"game|movie|song|experience)(?:\W*$| - |,| and (?:they|it)\b| (?:that|which) (?:i|we|really)\b)"
    r"|\b(?:some|one|many|most) of the \w+\b(?! (?:of|at|in|from|on|who|that|for)\b)"
)
CONTRAST = re.compile(r"(?:, (?:and )?not|instead of|rather than|in favou?r of) [\w.+-]+|\u2192|->|\bfrom \S+ to \S+")
"""What sets one thing against another, and an order, say enough in words that are vague in talk: "main", "go", "uv"."""

HEDGE = re.compile(r"\b(?:i kind of|i sort of|somehow|somewhat|i'd say|as usual|whatever|or something|or so|i guess)\b")


def specifics(text: str) -> tuple[int, int]:
    """Return how many distinct stems carry detail, and how many names, numbers and code words there are."""
    stems = {stem for stem in analyse(text) if len(stem) > 2 and stem not in VAGUE_STEMS}
    return len(stems), len(_NAMES.findall(text)) + len(_NUMBERS.findall(text))


def confidence(classified: Classification, text: str, policy: DistillPolicy, *, dated: bool) -> float:
    """Return how sure it is that the sentence is worth keeping and stands on its own, in [0, 1].

    A sentence with too little detail gets 0, whatever it says: its words could be anybody's on any day.
    """
    low = text.lower()
    detail, marks = specifics(text)
    if classified.asked or (classified.type is MemoryType.DECISION and CONTRAST.search(low)):
        detail = max(detail, len(set(analyse(text))))
    anchored = bool(marks) or dated or classified.type is MemoryType.PREFERENCE
    if detail < policy.min_detail and not (detail and anchored):
        return 0.0
    score = classified.confidence
    score += policy.mark_bonus * bool(marks) + policy.date_bonus * dated
    score += policy.detail_bonus * min(detail - policy.min_detail, policy.max_detail_steps)
    score -= policy.thin_penalty * (detail <= policy.min_detail) + policy.hedge_penalty * bool(HEDGE.search(low))
    score -= policy.unresolved_penalty * unresolved(low, text) + policy.pointing_penalty * points_outside(low)
    score -= policy.vague_penalty * bool(VAGUE_END.search(low))
    if classified.type is MemoryType.PREFERENCE and DEFINITE.search(low):
        score -= policy.pointing_penalty
    return round(min(max(score, 0.0), 1.0), 3)
