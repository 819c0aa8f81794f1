"""What would be learned from a text, sentence by sentence, and why: the decisions of `observe` with their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scrubjay.distill.pasted import own_words
from scrubjay.distill.person import Speaker
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.reading import EXPLICIT_WORDS, Reader, Turn, chosen
from scrubjay.distill.thought import SpeechContext, Thought, read
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of the sentence at `[start:end]` of a text: the thoughts that are kept (none: refused), and why.

    `chance` is what the reader gives it, in [0, 1]; None where it was not asked, because the text is of no project.
    """

    start: int
    end: int
    thoughts: tuple[Thought, ...]
    why: str
    chance: float | None = None


def explained(
    event: Event, user_name: str | None, policy: DistillPolicy, reader: Reader = EXPLICIT_WORDS
) -> list[Verdict]:
    """Return the verdict on each sentence of what the person says by itself, and on what is not theirs, in order.

    In a project the reader decides, where there is none the patterns. Of a long text the first `policy.max_read`, by
    patterns `policy.max_sentences`, are read.
    """
    text = event.text
    context = SpeechContext(speaker=Speaker(name=user_name or "the user"), anchor=event.ts, utc_offset=event.utc_offset)
    own = own_words(text)
    if event.project is not None:
        found = [
            Verdict(
                start=one.sentence.start, end=one.sentence.end, thoughts=one.thoughts, why=one.why, chance=one.chance
            )
            for one in chosen(Turn(text=text), context, policy, reader)
        ]
    else:
        found = list(_by_patterns(text, own, context, policy))
    found += _pasted(text, own)
    return sorted(found, key=lambda verdict: verdict.start)


def _by_patterns(text: str, own: tuple[Span, ...], context: SpeechContext, policy: DistillPolicy) -> Iterator[Verdict]:
    """Yield the verdicts where patterns decide."""
    thoughts = read(text, context, policy).thoughts
    weak = read(text, context, replace(policy, min_confidence=0.0)).thoughts
    for n, one in enumerate(sentences(text, own)):
        if n == policy.max_sentences:
            return
        kept = tuple(thought for thought in thoughts if one.start <= _at(thought) < one.end)
        unsure = [thought for thought in weak if one.start <= _at(thought) < one.end]
        if kept:
            why = f"a pattern: {kept[0].type.value}"
        elif unsure:
            why = (
                f"a pattern: {unsure[0].type.value}, but only {unsure[0].confidence:.2f} sure"
                f" where {policy.min_confidence:.2f} are asked for"
            )
        else:
            why = "no pattern knows it as a decision, preference, insight, goal or fact"
        yield Verdict(start=one.start, end=one.end, thoughts=kept, why=why)


def _at(thought: Thought) -> int:
    """Return a place in the sentence that a thought is of: its last one, where it covers the sentence before too."""
    return max(thought.start, thought.end - 1)


def _pasted(text: str, own: tuple[Span, ...]) -> Iterator[Verdict]:
    """Yield the passages that are not the person's own words, which nothing is learned from."""
    at = 0
    for one in (*own, Span(start=len(text), end=len(text))):
        passage = text[at : one.start]
        if any(char.isalnum() for char in passage):
            start = at + len(passage) - len(passage.lstrip())
            yield Verdict(
                start=start, end=at + len(passage.rstrip()), thoughts=(), why="pasted or quoted: not your own words"
            )
        at = one.end
