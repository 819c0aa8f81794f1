"""Periods from what they consist of: outlines merged, and what is shown of the result. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.policy import TocPolicy
from scrubjay.toc.extraction import Keyword, Outline, Passage, distinct

SAME_SEGMENT = 0.6
"""What each passage that was chosen of a segment leaves of the weight of the others: a week is not its longest hour."""

OFF_TOPIC = 0.7
"""What is left of the weight of a passage that shares no word with the keywords of its period."""


def merged(outlines: Sequence[Outline], policy: TocPolicy) -> Outline:
    """Return the outline of a period that consists of some parts, at least one, in order."""
    if len(outlines) == 1:
        return outlines[0]._replace(title=None)
    keywords = _added(outlines)
    return Outline(
        start=min(one.start for one in outlines),
        end=max(one.end for one in outlines),
        events=sum(one.events for one in outlines),
        segments=sum(one.segments for one in outlines),
        sessions=sum(one.sessions for one in outlines),
        agents=tuple(sorted({agent for one in outlines for agent in one.agents})),
        passages=tuple(
            _chosen([each for one in outlines for each in one.passages], keywords, policy.kept_bullets, policy)
        ),
        keywords=tuple(keywords[: policy.kept_keywords]),
    )


def _added(outlines: Sequence[Outline]) -> list[Keyword]:
    weights: dict[str, float] = {}
    shown: dict[str, tuple[float, str]] = {}
    for one in outlines:
        for keyword in one.keywords:
            weights[keyword.stem] = weights.get(keyword.stem, 0.0) + keyword.weight
            shown[keyword.stem] = max(shown.get(keyword.stem, (0.0, "")), (keyword.weight, keyword.word))
    added = [Keyword(stem, shown[stem][1], round(weight, 4)) for stem, weight in weights.items()]
    return sorted(added, key=lambda one: (-one.weight, one.stem))


def chosen(found: Outline, count: int, policy: TocPolicy) -> list[Passage]:
    """Return the passages of an outline that tell most, of as many segments as may be, in the order of its own."""
    return _chosen(found.passages, found.keywords, count, policy)


def _chosen(passages: Sequence[Passage], keywords: Sequence[Keyword], count: int, policy: TocPolicy) -> list[Passage]:
    topics = {one.stem for one in keywords[: policy.kept_keywords]}
    lowered: list[Passage] = []
    told: dict[str, int] = {}
    for passage in sorted(passages, key=lambda each: (-each.weight, each.ts, each.event_id, each.start)):
        times = told.get(passage.segment, 0)
        told[passage.segment] = times + 1
        share = len(topics.intersection(passage.stems)) / max(len(passage.stems), 1)
        weight = passage.weight * SAME_SEGMENT**times * (OFF_TOPIC + (1 - OFF_TOPIC) * share)
        lowered.append(passage._replace(weight=round(weight, 4)))
    kept = {one[:3] for one in distinct(lowered, count, policy)}
    return sorted((one for one in passages if one[:3] in kept), key=lambda one: (one.ts, one.event_id, one.start))


def summary(found: Outline, policy: TocPolicy) -> str:
    """Return what a period was about, in a line.

    >>> summary(Outline(start=0, end=0, events=9, segments=2, sessions=1, agents=()), TocPolicy())
    '1 conversation, 9 events'
    """
    parts = [counted(found.sessions, "conversation")] if found.sessions else []
    text = ", ".join([*parts, counted(found.events, "event")])
    topics = ", ".join(one.word for one in found.keywords[: policy.keywords - 3])
    return f"{text}: {topics}" if topics else text


def counted(number: int, what: str) -> str:
    """Return a number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
