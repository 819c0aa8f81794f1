"""One text read sentence by sentence into thoughts: typed, weighed, worded, each with its span."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from scrubjay.dates import find_dates
from scrubjay.distill.clauses import before_comment, is_quotation, parts, past_fillers, plain_words
from scrubjay.distill.families import classify
from scrubjay.distill.language import is_english
from scrubjay.distill.pasted import own_words
from scrubjay.distill.person import Speaker, tidied
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.reference import TAKES_UP, taken_up
from scrubjay.distill.scope import is_personal
from scrubjay.distill.subject import with_subject
from scrubjay.distill.wording import dated, in_company, is_grammatical, requested, sentence_case, validity, worded
from scrubjay.distill.worth import confidence
from scrubjay.policy import DistillPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import MemoryType

LEAD = re.compile(r"(?i)(?:no|never|always|only|not) [\w' -]+[.!]*$")
"""An exclamation that names what the next sentence is about: "No peanuts! I'm allergic."."""

TASTE = re.compile(
    r"[\w.+-]+ ?(?:\u2192|->) ?[\w.+-]+|(?:[Dd]on't|[Nn]ever|[Aa]lways) \w+ \w+$|[Uu]se \w+,? not \w+$|I (?:prefer|"
    r"hate|love|like|dislike|use|avoid|detest) \S+$|[Nn]o [a-z]{2,}s? (?:in|on) \S+$"
)

TO_LISTENER = re.compile(r"\b(?:you|your|yours|you're|you've|you'll|you'd|yourself)\b")
NO_PERSON = re.compile(
    r"(?<!\band )(?<!\bor )\bI(?: \w+ly)? (?:is|are|has|does|i|isn't|I)\b|\bI'(?:m|ve|d|ll) (?:is|are|has|was|were|"
    r"am|does|can|will)\b|"
    r"\b[Mm]y (?:be|is|are|was|I|we|the|an?)\b"
)
"""An "I" that counts, an "im" that names a library: the sentence is not about anybody."""

ROLES = frozenset(("the user", "the assistant"))
"""Who speaks where nobody has a name."""

CONTEXT_CHARS = 240
"""What was said before, as far back as "we" looks for its company: two or three sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechContext:
    """What is known about a text besides its words. `anchor` is when it was said, None when that is not known.

    `people` are the names that may be called out. `role_agent`: an assistant without a name speaks. `named_talk`: two
    or more named people talk with each other.
    """

    speaker: Speaker
    people: tuple[str, ...] = ()
    role_agent: bool = False
    named_talk: bool = False
    anchor: Millis | None = None
    utc_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """One sentence, or a part of one: `start` and `end` are its span in the text it was read from.

    `personal`: it holds for the speaker in every project.
    """

    content: str
    type: MemoryType
    confidence: float
    start: int
    end: int
    valid_from: Millis | None
    valid_to: Millis | None
    personal: bool


_LASTING = frozenset({MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.INSIGHT, MemoryType.HOWTO})
"""What holds on from when it came about."""
_CAME_ABOUT = re.compile(
    r"(?i)\b(?:(?!need|feed|speed|embed)[a-z]{2,}ed|went|took|made|did|gave|got|began|chose|wrote|built)\b"
)


def ends(thought: Thought, said_at: Millis) -> Millis | None:
    """Return when a thought ceases to hold; None where it came about by the time it was said, and lasts.

    What was chosen last week is in force this week. Of a fact the bounds are when it happened.
    """
    start, end = thought.valid_from, thought.valid_to
    if thought.type not in _LASTING or start is None or end is None:
        return end
    came_about = end <= said_at or (start <= said_at and _CAME_ABOUT.search(thought.content) is not None)
    return None if came_about else end


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """The thoughts of a text that are sure enough, in order. `cut_off`: a cap ended it early."""

    thoughts: tuple[Thought, ...]
    sentences: int
    cut_off: bool
    below_confidence: int


def read(text: str, context: SpeechContext, policy: DistillPolicy) -> ParsedText:
    """Read a text, up to `policy.max_sentences` sentences or `policy.max_memories` thoughts.

    An agent wrote what it says. What a person says may hold what others wrote, and that says nothing of the person.
    """
    kept: list[Thought] = []
    seen = weak = 0
    cut_off = False
    before = ""
    lead: Span | None = None
    last: Span | None = None
    for sentence in sentences(text, within=None if context.role_agent else own_words(text)):
        if seen >= policy.max_sentences or len(kept) >= policy.max_memories:
            cut_off = True
            break
        seen += 1
        said = text[sentence.start : sentence.end]
        if len(said) <= policy.max_sentence_chars and not was_redacted(text, sentence):
            thought = _Reader(text, before, last, context, policy).best_part(sentence.start, sentence.end)
            if thought is not None and thought.confidence >= policy.min_confidence:
                kept.append(
                    thought if lead is None or "\n" in text[lead.end : sentence.start] else _led(text, thought, lead)
                )
            elif thought is not None:
                weak += 1
        lead = sentence if len(said.split()) < policy.min_words and LEAD.match(said) else None
        last = sentence
        before = f"{before} {said[-CONTEXT_CHARS:]}"[-CONTEXT_CHARS:]
    return ParsedText(thoughts=tuple(kept), sentences=seen, cut_off=cut_off, below_confidence=weak)


def was_redacted(text: str, one: Span) -> bool:
    """Say whether a secret was taken out of a line that a sentence stands in: what is left of it tells nothing."""
    stop = text.find("\n", one.end)
    return text.find("[REDACTED:", text.rfind("\n", 0, one.start) + 1, len(text) if stop < 0 else stop) >= 0


def _led(text: str, thought: Thought, lead: Span) -> Thought:
    """Return a preference together with the exclamation before it."""
    if thought.type is not MemoryType.PREFERENCE:
        return thought
    exclaimed = sentence_case(tidied(text[lead.start : lead.end]))
    return replace(thought, content=f"{exclaimed} {thought.content}", start=lead.start)


@dataclass(frozen=True, slots=True)
class _Reader:
    """What one sentence is read with: its text, what was said before it, who says it to whom."""

    text: str
    before: str
    last: Span | None
    context: SpeechContext
    policy: DistillPolicy

    def best_part(self, start: int, end: int) -> Thought | None:
        """Return the thought of the first clause that is sure enough, else of the first that says anything."""
        start = past_fillers(self.text, start, end, self.context.people)
        if is_quotation(self.text[start:end]):
            return None
        weak: Thought | None = None
        for begin, stop in parts(self.text, start, end):
            thought = self.thought(past_fillers(self.text, begin, stop, self.context.people), stop)
            if begin == start and not self.context.named_talk and (thought is None or thought.confidence == 0):
                thought = self._after_last(begin, stop) or thought
            if thought is not None and thought.confidence >= self.policy.min_confidence:
                return thought
            weak = weak or thought
        return weak

    def _after_last(self, start: int, end: int) -> Thought | None:
        """Return the thought of a clause that takes up the subject of the sentence right before it, which it covers."""
        last = self.last
        if last is None or "\n\n" in self.text[last.end : start] or not TAKES_UP.match(self.text, start):
            return None
        whole = taken_up(self._plain(start, end), self._plain(last.start, last.end))
        thought = None if whole is None else self.thought(start, end, whole)
        return None if thought is None else replace(thought, start=last.start)

    def _plain(self, start: int, end: int) -> str:
        return tidied(plain_words(self.text[start:end], self.context.people)).strip(" .!,;:\u2014-(")

    def thought(self, start: int, end: int, plain: str | None = None) -> Thought | None:
        """Return the thought of one clause, None when it says nothing. `plain`: its words where they were resolved."""
        end = before_comment(self.text, start, end)
        said = self.text[start:end]
        plain = plain or self._plain(start, end)
        speaker = self.context.speaker
        if plain and speaker.name is not None and not self.context.role_agent:
            plain = with_subject(plain, opening=not self.before, known=speaker.name not in ROLES)
        if "?" in said or not self._says_enough(plain) or NO_PERSON.search(plain):
            return None
        talk = self.context.named_talk
        classified = classify(plain, self.policy, role_agent=self.context.role_agent, named_talk=talk)
        low = plain.lower()
        if classified is None or (speaker.name is not None and not classified.asked and TO_LISTENER.search(low)):
            return None
        if not is_english(said):
            return None
        anchor = self.context.anchor
        dates = () if anchor is None else find_dates(plain, anchor, self.context.utc_offset)
        valid_from, valid_to = validity(plain, dates)
        content = worded(plain, dates, in_company(speaker, plain, self.before) if talk else speaker)
        if classified.asked:
            content = requested(content, speaker)
        if not is_grammatical(content, speaker):
            content = dated(plain, dates)
        return Thought(
            content=sentence_case(content),
            type=classified.type,
            confidence=confidence(classified, plain, self.policy, dated=bool(dates)),
            start=start,
            end=start + len(said.rstrip()),
            valid_from=valid_from,
            valid_to=valid_to,
            personal=is_personal(low, classified.type, asked=classified.asked),
        )

    def _says_enough(self, plain: str) -> bool:
        """Say whether a sentence has words enough, and not too many: "I hate ORMs" says all there is, to an agent."""
        count = len(plain.split())
        if count >= self.policy.min_words or self.context.named_talk:
            return self.policy.min_words <= count <= self.policy.max_words
        return TASTE.match(plain) is not None
