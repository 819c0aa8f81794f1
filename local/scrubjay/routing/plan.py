"""Which layers a question is routed through, in which order, and what of it is looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.api.route import Intent
from scrubjay_shared.text import query_tokens

MEMORIES, HYBRID, VECTOR, KEYWORD, CONTENTS, EVENTS = "memories", "hybrid", "vector", "keyword", "contents", "events"
LAYERS = (MEMORIES, HYBRID, VECTOR, KEYWORD, CONTENTS, EVENTS)
"""All layers, from the one that knows most to the last resort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The layers of one intent: `first` are all asked, then those of `fallback` one by one until enough was found."""

    first: tuple[str, ...]
    fallback: tuple[str, ...]
    answers: bool
    """Whether the hits of recall are part of the answer, or the pointers alone are."""


COURSES: dict[Intent, Course] = {
    Intent.ANSWER: Course(first=(MEMORIES, HYBRID), fallback=(KEYWORD, EVENTS), answers=True),
    Intent.LOCATE: Course(first=(HYBRID, KEYWORD, VECTOR), fallback=(MEMORIES, EVENTS), answers=False),
    Intent.EXPLORE: Course(first=(HYBRID, VECTOR, KEYWORD), fallback=(CONTENTS, EVENTS), answers=False),
    Intent.TIME_BOXED: Course(first=(MEMORIES, HYBRID, KEYWORD), fallback=(CONTENTS, EVENTS), answers=True),
}

PLAIN: dict[Intent, Course] = {
    intent: Course(first=(CONTENTS,), fallback=(EVENTS,), answers=False)
    for intent in (Intent.EXPLORE, Intent.TIME_BOXED)
}
"""Where a question names no subject: what there is, or what there is of a time."""

_COMMON = frozenset(
    query_tokens(
        "happen happened talk talked talking discuss discussed conversation session chat say said do did done work"
        " worked working thing things something anything everything topic topics subject main show find tell give list"
        " overview summary summarise summarize recap history today week month year day last past decide decided"
        " decision learn learned change changed go going new together please remember came come up"
    )
)
"""Words that ask, and name no subject."""


def subject(question: str, times: tuple[str, ...]) -> str:
    """Return what is left of a question without the words that ask, and those that name a time; "" if nothing is."""
    rest = question
    for words in times:
        rest = rest.replace(words, " ")
    rest = re.sub(r"\b(?:in|on|at|since|before|after|between|and|during|from|until)\s*(?=[?,.!]|$)", " ", rest)
    return rest.strip() if set(query_tokens(rest)) - _COMMON else ""


def course(intent: Intent, about: str) -> Course:
    """Return the layers for an intent, and a subject that may be ""."""
    return COURSES[intent] if about or intent not in PLAIN else PLAIN[intent]
