"""What is measured of a statement before it is said whether it is worth telling unasked. Plain numbers, no model.

Its words alone, not its place in a turn: so a memory is measured alike whoever wrote it down, and however it came to be
learned. No word of any project is among them: what tells a rule from an order of the moment is mostly its form.
"""

from __future__ import annotations

import math
import re
from functools import cache

CUES = {
    "adopts": r"\b(?:we|let'?s|i)(?:'ll| will)? (?:use|go with|keep|stick (?:to|with)|stay with|support|call|treat|"
    r"host|run|deploy|ship|store)\b",
    "agrees": r"^(?:ok(?:ay)?|yes|yeah|yep|no|nope|great|good|nice|perfect|thanks|cool|alright|sure|right)\b",
    "allows": r"\b(?:may|might|could|maybe|perhaps|possibly|probably|likely|seems?)\b",
    "all": r"\b(?:all|every|each|any|both|everything|everywhere|anything)\b",
    "because": r"\b(?:because|so that|since|due to|otherwise|therefore|the reason|in order to|that's why|cause)\b",
    "compares": r"\b(?:than|better|best|faster|slower|simpler|more|less|same|either)\b",
    "decides": r"\b(?:decided|decision|agreed|chose|chosen|settled|approach|strategy|architecture|design)\b",
    "demands": r"\b(?:must|has to|have to|needs? to|should(?:n'?t)?|shall|supposed to|ought|required?)\b",
    "done": r"\b(?:done|completed?|pass(?:ed|es|ing)?|success\w*|works?|working|added|removed|changed|updated|created|"
    r"moved|fixed)\b",
    "durable": r"\b(?:always|never|in general|from now on|whenever|as a rule|by default|standard|conventions?|policy|"
    r"going forward|in (?:the )?future|consistent\w*|at all times)\b",
    "fails": r"\b(?:bug|issues?|problem|errors?|exception|fail\w*|broken|broke|wrong|crash\w*|warning|missing)\b",
    "found_out": r"\b(?:turns out|root cause|found (?:out|that)|discovered|learned|caused by|actually)\b",
    "if": r"\b(?:if|when|unless|before|after|until)\b",
    "imperative": r"^(?:(?:and|then|also|now|please|pls|so|but|next|first|just) )*(?:add|remove|make|change|show|put|"
    r"create|move|fix|set|rename|display|write|update|implement|include|run|commit|build|delete|replace|check|test|"
    r"generate|refactor|extract|copy|read|look|find|give|provide|review|improve|continue|apply|install|merge|push)\b",
    "instead": r"\binstead\b|\brather than\b|\bno longer\b|\breplac\w*\b|\bin favou?r\b|\bnot .{1,40} but\b",
    "is": r"\b(?:is|are|has|have|means|contains|returns|requires|supports|lives|runs|uses|consists?)\b",
    "keeps": r"^(?:(?:and|also|please|but) )*(?:use|keep|do(?:n'?t| not)|avoid|prefer|follow|ensure|never|always|"
    r"only)\b",
    "likes": r"\b(?:prefer|like|love|hate|rather|want|care about|value|focus|priority)\b",
    "looks": r"\b(?:buttons?|icons?|colou?rs?|width|height|padding|margin|header|footer|sidebar|columns?|rows?|fonts?|"
    r"pixels?|px|tooltip|modal|dropdown|cards?|tabs?|page|screen|layout|left|right|top|bottom|align\w*|centered)\b",
    "not": r"\b(?:not|no|never|none|without|don'?t|doesn'?t|isn'?t|aren'?t|won'?t|cannot|can'?t|avoid|stop)\b",
    "now": r"\b(?:now|again|still|currently|yet|at the moment|for now|just|today|first|next|step)\b",
    "of_me": r"\b(?:i|i'm|i've|i'd|i'll|me|my)\b",
    "of_us": r"\b(?:we|we'll|we're|us|our|let'?s)\b",
    "of_you": r"\b(?:you|your)\b",
    "only": r"\bonly\b",
    "past": r"\b(?:was|were|had|did)\b",
    "plans": r"\b(?:plans?|goals?|todo|later|eventually|phase|roadmap|backlog|mvp|release|milestone|version)\b",
    "please": r"\b(?:please|pls|can you|could you|would you|go ahead)\b",
    "points": r"\b(?:it|this|that|these|those|they|them)\b",
    "points_first": r"^(?:(?:and|but|so|also) )?(?:this|that|these|those|it|they|here|there)\b",
    "question": r"\?",
    "question_first": r"^(?:what|why|how|where|which|who|is|are|does|do(?!n)|did|can|could|would|should|will|has)\b",
    "quantity": r"\b\d",
    "remembers": r"\b(?:remember|note|important|keep in mind|rules?|make sure|guidelines?|principles?|"
    r"best practices?)\b",
    "supposes": r"\bi (?:think|guess|believe|assume|suppose|feel|wonder|was thinking)\b",
    "tests": r"\btests?\b|\bcoverage\b|\bcommits?\b|\bbranch(?:es)?\b|\bpull requests?\b|\bci\b",
    "users": r"\b(?:users?|customers?|clients?|people|team|everyone|developers?)\b",
    "would": r"\bwould\b",
}
"""Groups of words, each a feature: 1 where one of them stands in the statement. Matched in lower case."""

FORMS = {
    "code": r"`[^`]{1,200}`",
    "paths": r"(?:[\w.-]{1,60}/)[\w./-]{1,200}|\b[\w-]{1,60}\.(?:[a-z]{1,4}|json|toml|yaml|html)\b",
    "identifiers": r"\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+\b|\w+\(\)",
    "names": r"(?<=[a-z,] )[A-Z][a-z]+",
    "acronyms": r"\b[A-Z]{2,}\b",
    "commas": r",",
}
"""What is counted in a statement, as the logarithm of the count."""

OUTRIGHT = re.compile(
    r"^(?:(?:and|also|so|please|ok(?:ay)?|the user asked:) )*(?:"
    r"(?:i|the user)(?:'d| would| really| still| do(?:es)?)* (?:prefers?|likes?|loves?|hates?|dislikes?|never wants?)\b"
    r"|(?:we|i)(?:'ve| have| had)? (?:decided|agreed|settled|chose)\b"
    r"|(?:never|always)\b"
    r"|(?:the )?(?:new )?(?:rule|convention|decision|policy)(?: is| from .{1,30})?:)"
    r"|\b(?:from now on|as a rule|going forward|at all times)\b",
    re.IGNORECASE,
)
"""How people say outright that something is a rule, a wish that lasts, or a decision."""
_FOR_NOW = re.compile(r"\b(?:for now|right now|this time|at the moment|yet|today)\b|\?\s*$", re.IGNORECASE)

LOOKED_CHARS = 1_000
"""Of a statement: nothing longer is told."""

FEATURES = ("words", "word_chars", "ends_stop", "ends_colon", *FORMS, *CUES)
"""The names of what is measured, in its order."""

_ASKED = re.compile(r"^The user asked: ")
_OF_USER = re.compile(
    r"^The user (?:really |still |also )?(prefer|like|want|love|hate|need|think|use|work|know|live)s\b"
)
"""How the distiller words what a person says of themselves."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
    """Return the patterns of forms and of cues; they are read when they are first asked for, not as a daemon starts."""
    return tuple(map(re.compile, FORMS.values())), tuple(map(re.compile, CUES.values()))


def features(text: str) -> list[float]:
    """Return what is measured of a statement, in the order of `FEATURES`."""
    said = " ".join(text[:LOOKED_CHARS].split())
    said = _OF_USER.sub(r"I \1", _ASKED.sub("", said))
    low = said.lower()
    words = said.split()
    forms, cues = _patterns()
    return [
        math.log1p(len(words)),
        sum(map(len, words)) / max(1, len(words)),
        float(said.endswith(".")),
        float(said.endswith(":")),
        *(math.log1p(len(pattern.findall(said))) for pattern in forms),
        *(float(pattern.search(low) is not None) for pattern in cues),
    ]


def is_outright(text: str) -> bool:
    """Say whether a statement says outright that it is a rule, a wish that lasts, or a decision.

    >>> is_outright("The user asked: never rebase."), is_outright("Never mind for now."), is_outright("Add a button.")
    (True, False, False)
    """
    said = text[:LOOKED_CHARS].strip()
    return OUTRIGHT.search(said) is not None and _FOR_NOW.search(said) is None
