"""The outline of a segment: which passages tell most of it, and its keywords. Picks words that are there. Pure.

A passage is a place in an event's text. It is weighed by words of its own segment alone, so that an outline depends on
nothing else in the store, and the same events always give the same one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from scrubjay.distill.chatter import is_chatter
from scrubjay.distill.pasted import own_words
from scrubjay.distill.prose import Span, sentences
from scrubjay.policy import TocPolicy
from scrubjay.toc.common_words import COMMON_STEMS
from scrubjay.toc.segmentation import Turn
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops.blanks import BLANK_CHARACTER
from scrubjay_shared.text import analyse

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_TELLING = re.compile(
    r"\b(?:decid|chose|choose|agreed|fixed|implement|added|switch|migrat|deploy|releas|because|instead|plan to|"
    r"planned|will|must|prefer|never|always|deadline|bought|moved|started|finished|won|lost|born|died|married|"
    r"visited|learned|joined|root cause|turned out)",
    re.IGNORECASE,
)
"""Words with which people tell what was done, decided or planned."""

_MAX_NAME_CHARS = 12
_KEPT_WORDS = 8_192  # looked up once: a conversation has a third of these
_NUMBERED = re.compile(r"\d")


class Passage(NamedTuple):
    """`text[start:end]` of an event, how much it tells (0 and more), its stems, and the segment that it is in."""

    event_id: str
    start: int
    end: int
    ts: Millis
    weight: float
    stems: tuple[str, ...]
    segment: str = ""


class Keyword(NamedTuple):
    """A stem, the word that is shown for it, and how much of the segment or period it stands for."""

    stem: str
    word: str
    weight: float


class Outline(NamedTuple):
    """What is kept of a segment or a period. Passages and keywords stand in the order of their weight.

    `sessions` counts those that begin in it. `title` is the passage that a segment is called by; None where nothing was
    said in it, and for a period.
    """

    start: Millis
    end: Millis
    events: int
    segments: int
    sessions: int
    agents: tuple[str, ...]
    passages: tuple[Passage, ...] = ()
    keywords: tuple[Keyword, ...] = ()
    title: Passage | None = None


@dataclass(slots=True)
class _Read:
    """The sentences of a segment, and how often its stems come."""

    sentences: list[tuple[Turn, Span, tuple[str, ...]]] = field(default_factory=list)
    stems: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    words: dict[str, Counter[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)


def outline(turns: Sequence[Turn], policy: TocPolicy, *, opens: bool) -> Outline:
    """Return the outline of a segment. `opens` says that its session begins with it."""
    segment = turns[0].id
    read = _Read(speakers={stem for turn in turns for stem in analyse(turn.speaker)})
    for turn in turns:
        if turn.said:
            _read(turn, policy, read)
    weighed = [_weighed(turn, span, stems, read, segment) for turn, span, stems in read.sentences]
    chosen = distinct(weighed, policy.kept_bullets, policy)
    return Outline(
        start=turns[0].ts,
        end=turns[-1].ts,
        events=len(turns),
        segments=1,
        sessions=int(opens),
        agents=tuple(sorted({turn.agent for turn in turns})),
        passages=tuple(chosen),
        keywords=_keywords(read, policy),
        title=_title(weighed, turns) or (chosen[0] if chosen else None),
    )


def _read(turn: Turn, policy: TocPolicy, into: _Read) -> None:
    text = turn.said[: policy.said_chars].replace(BLANK_CHARACTER, "\n")  # what was erased is no part of a line
    within = own_words(text) if turn.by_person else None
    heard: set[str] = set()
    for span in sentences(text, within):
        stems: list[str] = []
        for found in _WORD.finditer(text, span.start, span.end):
            if _is_spoken_to(text, found):
                continue
            for stem, word in _stems(found[0]):
                if stem in into.speakers:
                    continue
                stems.append(stem)
                into.words.setdefault(stem, Counter())[word] += 1
                if found.start() > span.start and (found[0][0].isupper() or _NUMBERED.search(found[0])):
                    into.names.add(stem)
        into.stems.update(stems)
        heard.update(stems)
        kept = _fitting(text, span, policy)
        if (
            kept is not None
            and len(stems) >= policy.min_words - 1
            and len(text[kept.start : kept.end].split()) >= (policy.min_words)
        ):
            into.sentences.append((turn, kept, tuple(dict.fromkeys(stems))))
    into.turns.update(heard)


def _is_spoken_to(text: str, word: re.Match[str]) -> bool:
    """Say whether a word is the name by which somebody is spoken to: "Thanks, Mel!", "Mel, look at this"."""
    if not word[0][0].isupper() or len(word[0]) > _MAX_NAME_CHARS:
        return False
    before, after = text[max(0, word.start() - 2) : word.start()], text[word.end() : word.end() + 1]
    return (not before or before[-1] == "\n" or before[0] in ",.!?") and after in {",", "!"}


def _fitting(text: str, span: Span, policy: TocPolicy) -> Span | None:
    """Return a sentence, cut after a word where it is too long for a passage."""
    if span.end - span.start <= policy.max_passage_chars:
        return span
    cut = text.rfind(" ", span.start + 1, span.start + policy.max_passage_chars)
    return Span(span.start, cut) if cut > span.start else None


@lru_cache(maxsize=_KEPT_WORDS)
def _stems(word: str) -> tuple[tuple[str, str], ...]:
    """Return the stems of a word that may name a topic, each with what is shown for it."""
    found = analyse(word)
    return tuple(
        (stem, word.casefold().removesuffix("'s").removesuffix("’s") if len(found) == 1 else stem)
        for stem in found
        if stem not in COMMON_STEMS and not stem.isdigit() and (len(stem) > 2 or not stem.isascii())
    )


def _weighed(turn: Turn, span: Span, stems: tuple[str, ...], read: _Read, segment: str) -> Passage:
    said = turn.said[span.start : span.end]
    weight = sum(math.log1p(read.stems[stem]) * (1.5 if stem in read.names else 1.0) for stem in stems)
    weight /= math.sqrt(len(stems) + 4)  # a long sentence holds more words, and tells less by each
    if said.endswith("?"):
        weight *= 0.8  # what was asked is what it was about, less sure than what was said of it
    elif is_chatter(said.lower()):
        weight *= 0.4
    if _TELLING.search(said):
        weight *= 1.3
    if not turn.by_person:
        weight *= 0.85  # what the person said is what the person looks for
    if said.endswith((":", "…", "...")):
        weight *= 0.5  # it leads to something that is not in it
    return Passage(turn.id, span.start, span.end, turn.ts, round(weight, 4), stems, segment)


def distinct(passages: Iterable[Passage], count: int, policy: TocPolicy) -> list[Passage]:
    """Return the passages that tell most, none that says again what a weightier one does."""
    chosen: list[Passage] = []
    for one in sorted(passages, key=lambda each: (-each.weight, each.ts, each.event_id, each.start)):
        stems = set(one.stems)
        if all(_alike(stems, other.stems) < policy.same_passage for other in chosen):
            chosen.append(one)
            if len(chosen) == count:
                break
    return chosen


def _alike(stems: set[str], others: Sequence[str]) -> float:
    either = stems.union(others)
    return len(stems.intersection(others)) / len(either) if either else 1.0


def _title(weighed: Sequence[Passage], turns: Sequence[Turn]) -> Passage | None:
    """Return the weightiest of the first sentences of the person: what a stretch of talk began with is its subject."""
    persons = {turn.id for turn in turns if turn.by_person}
    first = [one for one in weighed if one.event_id in persons][:4]
    return max(first, key=lambda one: one.weight) if first else None


def _keywords(read: _Read, policy: TocPolicy) -> tuple[Keyword, ...]:
    found = [
        Keyword(
            stem,
            min(read.words[stem].items(), key=lambda pair: (-pair[1], pair[0]))[0],
            round(math.log1p(times) * (1 + math.log(read.turns[stem])) * (1.5 if stem in read.names else 1.0), 4),
        )
        for stem, times in read.stems.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.weight, one.stem))[: policy.kept_keywords // 2])
