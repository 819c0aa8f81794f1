"""A person's numbered answers to what an agent asked in a numbered list: each is told with its question.

"2. per order" says nothing by itself; with "Discounts: per order or per customer?" it is a decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scrubjay.distill.agreement import EMPHASIS, LEFT_OPEN, MAX_PROPOSAL_CHARS, OF_THE_MOMENT, YES, Agreement
from scrubjay.distill.passing import is_passing

MAX_QUESTION_CHARS = 300
"""Of an item of the agent's list, in which its question and what is suggested are looked for."""

MAX_ANSWER_CHARS = 240
"""A longer answer says what it means itself."""

MAX_ITEMS = 20
"""Of either list."""

ASKED = re.compile(
    r"(?m)^[ \t]*(?:#{1,4} )?(?:\*\*|__)?(?:q(?:uestion)? ?)?(?P<number>\d{1,2})(?:\*\*|__)?[.):](?:\*\*|__)?[ \t]+"
    r"(?P<said>\S.*)$",
    re.IGNORECASE,
)
"""An item of the agent's list."""

ANSWERED = re.compile(
    r"(?m)^[ \t]*(?:re:? |q|ad |for |#|no\.? ?)?(?P<number>\d{1,2}) ?[.):\-\u2013](?!\d)[ \t]*(?P<said>\S.*)$",
    re.IGNORECASE,
)
"""A line of the person's list."""

IN_A_LINE = re.compile(r"(?:^|(?<=[\s,;.]))(?P<number>\d{1,2})[.):] ?(?=\S)")
"""The marks of a list in one line: "1. yes, 2. no"."""

SUGGESTED = re.compile(
    r"(?im)^[ \t]*(?:[-*] )?(?:\*\*)?(?:my )?(?:suggestion|recommendation|suggested|recommended|default)(?:\*\*)?:"
    r"(?:\*\*)?[ \t]*(?P<what>\S.{2,160}?)[. ]*$"
)
"""What the agent would answer itself, below its question."""

SUGGESTION = "Suggested: "
"""What that is told behind, after the question."""

ASKS = re.compile(
    r"\b(?:should|shall|do|does|did|is|are|was|will|would|can|could|must|may|which|what|how|where|who|when|why|or|vs)\b",
    re.IGNORECASE,
)
"""A word of a question. "Add chart descriptions?" is an offer, and a list below it answers nothing."""

NOTHING = re.compile(
    r"(?:ok(?:ay)?|sure|skip|n/?a|tbd|idk|done|thanks|thank you|same|none|any|whatever|it|this|that|see above|later|"
    r"-+|x)\W*$",
    re.IGNORECASE,
)
"""An answer that says nothing, even with its question."""

TO_BE = re.compile(r"\b(?:should|shall|must|do (?:you|we))\b", re.IGNORECASE)
"""A word of a question of how things are to be: its answer is no report."""

OUTSIDE = re.compile(r"\n[ \t]*\n(?! )")
"""Where an item ends: what is below it is not indented."""

CHOICE = re.compile(r"\b(?:or|vs)\b", re.IGNORECASE)
"""A question between things: "yes" chooses none of them."""

MAX_LEAD_WORDS = 8
"""Before the first answer: with more the list is a list of the person's own."""

ELSEWHERE = re.compile(r"(?:covered|answered|see|same as|as in|like)\b.{0,20}\d", re.IGNORECASE)
"""An answer that points to another one."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list: its number, its text, and where that begins and ends."""

    number: int
    said: str
    start: int
    end: int


def numbered_answers(proposal: str, reply: str) -> list[Agreement]:
    """Return what a person's numbered reply decides of what an agent asked in a numbered list, in order."""
    answers = list(_answers(reply))
    if not answers or "?" not in proposal:
        return []
    offset = max(0, len(proposal) - MAX_PROPOSAL_CHARS)
    asked = _asked(proposal[offset:], {one.number for one in answers})
    found = []
    for one in answers:
        question = asked.get(one.number)
        if question is not None and (words := _told(question.said, one.said)):
            found.append(Agreement(words=words, start=offset + question.start, end=one.end))
    return found


def _told(question: str, answer: str) -> str | None:
    """Return an answer with its question; None where it decides nothing that lasts."""
    said = answer.strip(" .!")
    if (
        not said
        or len(said) > MAX_ANSWER_CHARS
        or "?" in said
        or LEFT_OPEN.match(said)
        or ELSEWHERE.match(said)
        or NOTHING.match(said)
        or (YES.match(said) and CHOICE.search(question) and SUGGESTION not in question)
        or OF_THE_MOMENT.search(question)
        or (is_passing(said.lower()) and not TO_BE.search(question))
    ):
        return None
    return f'answered "{said}" to "{question[0].upper()}{question[1:]}"'


def _asked(shown: str, wanted: set[int]) -> dict[int, Item]:
    """Return the questions of the last numbered list that asks what the person answers, by number."""
    items = list(ASKED.finditer(shown))
    lists: list[dict[int, Item]] = []
    last = 0
    for n, item in enumerate(items):
        number = int(item["number"])
        if not lists or number <= last:
            lists.append({})
        last = number
        stop = items[n + 1].start() if n + 1 < len(items) else len(shown)
        question = _question(shown, item.start("said"), min(stop, item.start("said") + MAX_QUESTION_CHARS))
        if question is not None and len(lists[-1]) < MAX_ITEMS:
            lists[-1][number] = Item(number, question, item.start("said"), stop)
    return next((one for one in reversed(lists) if wanted & one.keys()), {})


def _question(shown: str, start: int, stop: int) -> str | None:
    """Return what an item asks, in one line, with what the agent suggests; None where it asks nothing."""
    body = OUTSIDE.split(shown[start:stop], maxsplit=1)[0]
    if "?" not in body:
        return None
    head, _, _ = body.partition("\n")
    asks = head if "?" in head else next(line for line in body.splitlines() if "?" in line).lstrip(" -*\t")
    if asks is not head and head.strip(" *:"):
        asks = f"{head.rstrip(' *:')}: {asks}"
    asks = asks[: asks.rfind("?") + 1]
    suggested = SUGGESTED.search(body)
    plain = EMPHASIS.sub("", asks).strip()
    if suggested is not None:
        plain = f"{plain} {SUGGESTION}{EMPHASIS.sub('', suggested['what']).strip()}"
    return plain if len(plain.split()) >= 2 and ASKS.search(plain) else None


def _answers(reply: str) -> Iterator[Item]:
    """Yield the items of a reply whose numbers ascend: a line each, with what goes on with it, or all in one line."""
    lines = list(ANSWERED.finditer(reply))
    inline = list(IN_A_LINE.finditer(reply)) if len(lines) < 2 else []
    marks = inline if len(inline) > len(lines) else lines
    if not marks or len(reply[: marks[0].start()].split()) > MAX_LEAD_WORDS:
        return
    last = 0
    for n, mark in enumerate(marks[:MAX_ITEMS]):
        number = int(mark["number"])
        if number <= last:
            return
        last = number
        start = mark.start("said") if "said" in mark.re.groupindex else mark.end()
        stop = marks[n + 1].start() if n + 1 < len(marks) else len(reply)
        body = reply[start:stop].split("\n\n", maxsplit=1)[0]
        end = start + len(body.rstrip(" \n\t,;"))
        yield Item(number, " ".join(reply[start:end].split()), start, end)
