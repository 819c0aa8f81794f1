"""Whether a reader answers right from what one search shows: which questions, what a judge sees, what is counted. Pure.

Neither a reader nor a judge is here: both are models or people. They read and write JSON lines, so that anybody with a
model can repeat a figure. A judge sees a question, the right answer and somebody's answer, in an order that is drawn,
and nothing of which configuration it comes from.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrubjay_shared.errors import InvalidError

READER = """\
# For the reader

Each question of `packets/` stands above what one search of the memory showed for it. Answer each from that alone, in a
sentence or two. Before you answer you may open up to three ids of a question: `opened.jsonl` has what the memory shows
for each. Where nothing there answers it, say "not known"; do not guess, and use nothing of another question.

Write one line a question into `answers.jsonl`, in this folder:

    {"qid": "Q001", "answer": "In March, because of the licence.", "opened": ["m_…"]}
"""

JUDGE = """\
# For the judge

Each line of `sheet.jsonl` has a question, the right answer and somebody's answer. Answers of several configurations are
mixed; nobody tells you which is which. `right` is the lenient mark: the same fact, however it is worded; a date may be
written otherwise; of a list half is enough. `strict` wants all of it. Where the right answer is that nothing is known,
only a refusal is right.

Write one line for each into `marks.jsonl`, in this folder:

    {"judged": "J001", "right": true, "strict": false}
"""

NOT_KNOWN = "(not known: what was said does not answer this)"
"""The right answer to a question that nothing answers, as the judge sees it."""

Z = 1.96  # of the normal distribution: 95 percent
LEAST = 20
"""Questions of a category, where it has as many: of fewer a share says nothing."""

UNANSWERABLE_OF = 5
"""One question that nothing answers to so many others, of a data set that has more of them than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as it is put. `group` is the conversation or project whose store is asked; `qid` says no more.

    `answer` is the right one, "" for a question that nothing answers.
    """

    qid: str
    id: str
    group: str
    question: str
    category: str
    answer: str

    @property
    def is_answerable(self) -> bool:
        """Whether anything that was said answers it."""
        return bool(self.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a judge said of one answer."""

    judged: str
    right: bool
    strict: bool


def drawn(questions: Sequence[Asked], count: int, seed: int, *, strata: Mapping[str, bool]) -> list[Asked]:
    """Return so many questions with an answer, and some without, in an order that is drawn; named Q001 and so on.

    With `strata`, categories in the order in which they are drawn, each has its share, but `LEAST` where it is true of
    it that its share is too small; and there is one question without an answer for five others. Else all are taken.
    """
    rng = random.Random(seed)
    known = [one for one in questions if one.is_answerable]
    unknown = [one for one in questions if not one.is_answerable]
    if strata:
        of_category = {category: [one for one in known if one.category == category] for category in strata}
        sizes = _sizes({category: len(there) for category, there in of_category.items()}, count, strata)
        chosen = [one for category, there in of_category.items() for one in rng.sample(there, sizes[category])]
        chosen += rng.sample(unknown, min(len(unknown), count // UNANSWERABLE_OF))
    else:
        chosen = rng.sample(known, min(len(known), count)) + unknown
    rng.shuffle(chosen)
    width = max(3, len(str(len(chosen))))
    return [replace(one, qid=f"Q{number:0{width}}") for number, one in enumerate(chosen, start=1)]


def _sizes(there: Mapping[str, int], count: int, strata: Mapping[str, bool]) -> dict[str, int]:
    """Return how many questions of each category are taken: what rounding leaves goes to the largest."""
    sizes = {category: min(LEAST, there[category], count) for category, is_small in strata.items() if is_small}
    rest = {category: there[category] for category, is_small in strata.items() if not is_small}
    left, total = max(count - sum(sizes.values()), 0), max(sum(rest.values()), 1)
    sizes |= {category: min(size, round(left * size / total)) for category, size in rest.items()}
    if rest:
        largest = max(rest, key=lambda category: rest[category])
        sizes[largest] = min(rest[largest], max(sizes[largest] + count - sum(sizes.values()), 0))
    return sizes


def sheet(
    asked: Mapping[str, Sequence[Asked]], answers: Mapping[str, Mapping[str, str]], seed: int
) -> tuple[list[dict[str, str]], dict[str, tuple[str, str]]]:
    """Return what the judge sees, in an order that is drawn, and whose each line is: configuration and question.

    Raises InvalidError where an answer is missing or is of no question.
    """
    lines = [(name, one, answers[name].get(one.qid)) for name, questions in sorted(asked.items()) for one in questions]
    for name, questions in sorted(asked.items()):
        if odd := answers[name].keys() - {one.qid for one in questions}:
            raise InvalidError(
                f"{name}: an answer to {min(odd)[:40]!r}, which is no question", hint="packets/ has the questions"
            )
    if missing := [(name, one.qid) for name, one, answer in lines if answer is None]:
        name, qid = missing[0]
        raise InvalidError(
            f"{name}: {len(missing)} questions have no answer, the first is {qid}",
            hint='answer "not known" where it is so',
        )
    random.Random(seed).shuffle(lines)
    width = max(3, len(str(len(lines))))
    names = [f"J{number:0{width}}" for number in range(1, len(lines) + 1)]
    shown = [
        {"judged": judged, "question": one.question, "right_answer": one.answer or NOT_KNOWN, "answer": answer or ""}
        for judged, (_, one, answer) in zip(names, lines, strict=True)
    ]
    return shown, {judged: (name, one.qid) for judged, (name, one, _) in zip(names, lines, strict=True)}


def rows(
    asked: Mapping[str, Sequence[Asked]], whose: Mapping[str, tuple[str, str]], marks: Iterable[Mark]
) -> list[dict[str, Any]]:
    """Return a row a configuration: shares right with their intervals, by category, and of what nothing answers.

    Raises InvalidError where a mark is missing, or is of no line of the sheet.
    """
    given = {whose[mark.judged]: mark for mark in marks if mark.judged in whose}
    if missing := sorted(judged for judged, of in whose.items() if of not in given):
        raise InvalidError(
            f"{len(missing)} answers have no mark, the first is {missing[0]}", hint="judge.md says how to mark"
        )
    found = []
    for name, questions in sorted(asked.items()):
        marked = [(one, given[name, one.qid]) for one in questions]
        known = [(one, mark) for one, mark in marked if one.is_answerable]
        unknown = [mark for one, mark in marked if not one.is_answerable]
        categories = sorted({one.category for one, _ in known})
        found.append(
            {
                "configuration": name,
                "lenient": _share([mark.right for _, mark in known]),
                "strict": _share([mark.right and mark.strict for _, mark in known]),
                "unanswerable": _share([mark.right for mark in unknown]),
                "by_category": {
                    category: _share([mark.right for one, mark in known if one.category == category])
                    for category in categories
                },
            }
        )
    return found


def _share(right: Sequence[bool]) -> dict[str, Any]:
    number, total = sum(right), len(right)
    low, high = wilson(number, total)
    return {"right": number, "of": total, "share": number / total if total else None, "low": low, "high": high}


def wilson(number: int, total: int) -> tuple[float, float]:
    """Return the 95% interval of a share after Wilson, which also holds for few and for shares near 0 and 1.

    >>> [round(end, 3) for end in wilson(24, 40)]
    [0.446, 0.737]
    """
    if not total:
        return 0.0, 1.0
    share, square = number / total, Z * Z
    middle = share + square / (2 * total)
    half = Z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return max(0.0, (middle - half) / (1 + square / total)), min(1.0, (middle + half) / (1 + square / total))
