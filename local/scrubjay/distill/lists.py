"""Lists in which a person lays down how things are or are to be: "Ground rules:", "Our stack:", and their items.

An item is short and often has no verb, so that nothing in it tells that it holds; the line that leads in to the list
does. A list of tasks is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.distill.prose import Span
from scrubjay.distill.scope import PLACE

_RULES = (
    r"rules?|conventions?|guidelines?|constraints?|principles?|standards?|policy|policies|preferences?|"
    r"style(?: guide)?|what i care about|things i care about|dos and don'?ts|how (?:we|i) work|please (?:always|never)"
)
_NAMED = (
    r"stack|tech(?:nolog(?:y|ies))?(?: stack)?|setup|environment|infrastructure|architecture|glossary|terms|"
    r"definitions|roles|team"
)
_FACTS = (
    r"context|background|facts?|(?:a few |some |the )?things (?:about|to know|to remember)|keep in mind|remember|"
    r"good to know|fyi|for (?:your )?(?:reference|information|context)|about (?:the|this|our) (?:project|app|repo)"
)
_LEAD = re.compile(
    rf"(?:.{{0,60}}\b)?(?:(?P<rules>{_RULES})|(?P<named>{_NAMED})|{_FACTS})\b[^:\n]{{0,60}}:\s*$",
    re.IGNORECASE | re.DOTALL,
)
_OF_TASKS = re.compile(
    r"\b(?:to-?dos?|tasks?|plan|steps?|today|tomorrow|next|fix(?:es)?|issues?|bugs?|problems?|errors?|failures?|changes|"
    r"questions?|outputs?|logs?|examples?|update|implement|add|create|remove|check|review|missing|wrong)\b",
    re.IGNORECASE,
)
_MARKER = re.compile(r"[ \t]*(?:[-*\u2022\u2013]|\(?\d{1,2}[.)])[ \t]+(?:\[[ x]\] )?")
_KEYED = re.compile(r"[A-Z][\w /-]{1,30}: \S")


@dataclass(frozen=True, slots=True)
class Listed:
    """What leads in to an item: whether it is a list of rules, of what it is where that names things, and of where.

    `here`: it is said to be of this project.
    """

    rules: bool
    label: str
    here: bool


def laid_down(text: str, found: Sequence[Span]) -> dict[int, Listed]:
    r"""Return which sentences are items of such a list, by their place, with what leads in to them.

    >>> from scrubjay.distill.prose import sentences
    >>> text = "Our stack:\n- Postgres 16\n- Clerk for auth\n\nfix the header"
    >>> [listed.label for listed in laid_down(text, list(sentences(text))).values()]
    ['Stack', 'Stack']
    """
    items: dict[int, Listed] = {}
    under: Listed | None = None
    for n, one in enumerate(found):
        said = text[one.start : one.end]
        line = text.rfind("\n", 0, one.start) + 1
        begins = text[line : one.start].strip() == "" or _MARKER.fullmatch(text, line, one.start) is not None
        gap = text[found[n - 1].end : one.start] if n else ""
        follows = begins and "\n" in gap and (gap.count("\n") == 1 or n - 1 not in items)
        if under is not None and follows and (_MARKER.match(text, line) or _KEYED.match(said)):
            items[n] = under
            continue
        lead = _LEAD.match(said) if said.rstrip().endswith(":") and not _OF_TASKS.search(said) else None
        under = None if lead is None else _listed(lead)
    return items


def _listed(lead: re.Match[str]) -> Listed:
    here = PLACE.search(lead[0].lower()) is not None
    return Listed(rules=lead["rules"] is not None, label=(lead["named"] or "").capitalize(), here=here)


def is_keyed(item: str) -> bool:
    """Say whether an item names itself what it is about: "Deadline: 1 March"."""
    return _KEYED.match(item) is not None
