"""What is kept of a turn of work with an agent: what the selector chooses, as a pattern words it or as it was said.

The patterns were made for talk: of a person's wishes, decisions and goals they are right there too, of facts they are
not ("I ran the tests" is one). So a fact that a pattern reads is kept where the selector agrees; and what the selector
chooses without a pattern stands in its own words. What a person says that is over soon is kept by neither, and what may
be asks the selector for more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from scrubjay.dates import find_dates
from scrubjay.distill.clauses import past_fillers, plain_words
from scrubjay.distill.families import at_work
from scrubjay.distill.kinds import kind_of
from scrubjay.distill.language import is_english
from scrubjay.distill.lists import Listed, is_keyed, laid_down
from scrubjay.distill.passing import has_verb, is_doubtful, is_passing
from scrubjay.distill.pasted import own_words
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.scope import EVERYWHERE, is_personal
from scrubjay.distill.selector import Selector, probabilities
from scrubjay.distill.standing import standing
from scrubjay.distill.thought import SpeechContext, Thought, was_redacted
from scrubjay.distill.wording import as_said, dated, requested, sentence_case, validity, whole
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import MemoryType

OF_WILL = frozenset((MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.GOAL))
_OF_ONESELF = re.compile(r"(?i)\b(?:i|i'm|i've|me|my)\b")
_OF_ONES_LIFE = re.compile(
    r"(?i)\b(?:learn|become|study|get (?:better|good|fluent)|improve my|my (?:career|job|life|skills|health)|speak)\b"
)
"""A goal that somebody has for themselves; what else they want at work, they want of the project."""

_TAKES_UP = re.compile(
    r"(?i)(?:(?:and|but|so|also|then) )?(?:it|it's|its|this|that|that's|these|those|they|they're|their|e\.?g|i\.?e|"
    r"for example|for instance)\b"
)
"""How a sentence opens that is about what was named right before."""
_ORDERS = re.compile(
    r"(?i)(?:(?:and|but|so|also|please) )*(?:never|always|don'?t|do not) (?:ever )?\w+ (?:it|them|those|these|that)\b"
    r"(?!.*\b(?:now|yet|again|today|this time)\b)"
)
"""An order about what was named right before, that holds on: "never raise it"."""

_FORBIDS = re.compile(
    r"(?i)(?:\W|please )*(?:(?:do not|don'?t) (?:touch|change|modify|edit|alter|remove|delete|rewrite|"
    r"rebuild|rename|proceed|stop|create)\b|(?:keep|leave) (?:all|everything|the same|(?:the |all )*(?:existing|"
    r"current|rest|other)|.*\b(?:unchanged|untouched|as is)\b))"
)
_HOLDS_ON = re.compile(
    r"(?i)\b(?:never|always|ever|every|whenever|again|from now on|"
    r"in (?:the )?future|before|when|without|unless|until)\b"
)
"""Of an order not to do something, that it holds on: else it is mostly a limit of the task at hand."""

_FOR_NOW = re.compile(r"(?i)\b(?:for now|right now|this time|at the moment|for the moment|until i \w+)\W*$")
"""An order that ends so is over soon."""
_VERIFIED = re.compile(
    r"(?i)\b(?:root cause (?:was|is)\b|(?:the )?(?:fix|culprit|cause|reason) was\b|turn(?:s|ed) out\b|caused by\b)"
    r"|\broot cause:"
)
"""What an agent says when it has found something out, and not while it still looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What becomes of one sentence: the thoughts that are kept of it (none: refused), and why.

    `chance` is how likely a careful reader would keep it, in [0, 1]. `as_said`: what is kept are its own words, by the
    selector alone.
    """

    sentence: Span
    thoughts: tuple[Thought, ...]
    chance: float
    why: str
    as_said: bool = False


def selected(
    text: str,
    read: tuple[Thought, ...],
    context: SpeechContext,
    policy: DistillPolicy,
    selector: Selector = probabilities,
) -> list[Thought]:
    """Return the thoughts of a turn that are worth keeping, in order; `read` are those that the patterns found."""
    kept = [thought for choice in choices(text, read, context, policy, selector) for thought in choice.thoughts]
    return kept[: policy.max_memories]


def choices(
    text: str,
    read: tuple[Thought, ...],
    context: SpeechContext,
    policy: DistillPolicy,
    selector: Selector = probabilities,
) -> Iterator[Choice]:
    """Yield what becomes of each sentence of a turn, in order; `read` are the thoughts that the patterns found."""
    within = None if context.role_agent else own_words(text)
    found = list(islice(sentences(text, within), policy.max_sentences))
    chances = selector(text, found, by_person=not context.role_agent)
    by_sentence = {_place(found, thought.start): thought for thought in read}
    listed = {} if context.role_agent else laid_down(text, found)
    last: Choice | None = None
    for n, (one, chance) in enumerate(zip(found, chances, strict=True)):
        made = _choice(text, one, chance, context, policy, thought=by_sentence.get(n))
        if was_redacted(text, one):
            made = replace(made, thoughts=(), why="a secret was taken out of its line", as_said=False)
        elif not made.thoughts and n in listed:
            made = _item(text, made, listed[n], context, policy)
        elif last is not None and not was_redacted(text, last.sentence):
            joined = _joined(text, last, made, context, policy)
            if joined is not None:
                last, made = joined
        if last is not None:
            yield last
        last = made
    if last is not None:
        yield last


def _choice(
    text: str, one: Span, chance: float, context: SpeechContext, policy: DistillPolicy, *, thought: Thought | None
) -> Choice:
    """Return what becomes of a sentence by itself; `thought` is what the patterns read in it."""
    refused = _refused(text, one, chance, context, policy)
    if thought is not None and (not refused or _stands(thought, text, chance, context, policy)):
        weighed = _doubted(thought, context, policy) if refused else _weighed(thought, chance)
        if not refused:
            weighed = _whole_of(weighed, text, one, context, policy)
        made = _renamed(weighed, text, context)
        why = f"a pattern: {thought.type.value}" + ("" if refused else ", and the selector agrees")
    elif refused:
        return Choice(sentence=one, thoughts=(), chance=chance, why=refused)
    else:
        said = next(iter(_as_said(text, one, chance, context, policy)), None)
        if said is None:
            return Choice(sentence=one, thoughts=(), chance=chance, why="too short, or not English")
        made, why = said, "the selector chooses it, in its own words"
    if _may_be_news(made, text, chance, context, policy):
        least = policy.min_chance_of_fact
        why = f"how things are now, perhaps: the selector gives it {chance:.2f}, and asks for {least:.2f}"
        return Choice(sentence=one, thoughts=(), chance=chance, why=why)
    return Choice(sentence=one, thoughts=(made,), chance=chance, why=why, as_said=thought is None)


def _may_be_news(made: Thought, text: str, chance: float, context: SpeechContext, policy: DistillPolicy) -> bool:
    """Say whether what a person tells, of other things than themselves, may be so today only."""
    if context.role_agent or made.personal or made.type is not MemoryType.FACT or chance >= policy.min_chance_of_fact:
        return False
    return not (_is_lasting(text[made.start : made.end], policy) or _is_lasting(made.content, policy))


def _is_lasting(said: str, policy: DistillPolicy) -> bool:
    """Say whether a sentence has the form in which people tell how things are for good."""
    plain = plain_words(said, ()).strip(" .")
    return standing(plain.lower(), plain) is not None or at_work(said.lower(), said, policy) is not None


def _whole_of(part: Thought, text: str, one: Span, context: SpeechContext, policy: DistillPolicy) -> Thought:
    """Return a person's sentence of which a pattern reads a part, in its own words: the rest says more of the same.

    "The app is called Mog, it's for gardeners" is more than a name. An order stands by itself.
    """
    is_part = part.end - part.start < policy.least_part * (one.end - one.start)
    if context.role_agent or not is_part or part.type is MemoryType.PREFERENCE:
        return part
    told = next(_as_said(text, one, part.confidence, context, policy), None)
    return part if told is None else replace(told, type=part.type, personal=part.personal)


def _item(text: str, made: Choice, listed: Listed, context: SpeechContext, policy: DistillPolicy) -> Choice:
    """Return what becomes of an item of a list that lays something down, which nothing else keeps."""
    one = made.sentence
    said = whole(plain_words(text[one.start : one.end], context.people))
    if len(said.split()) < policy.min_item_words or len(said) > policy.max_sentence_chars or is_passing(said.lower()):
        return made
    kind = MemoryType.PREFERENCE if listed.rules else kind_of(said, by_person=True)
    if listed.rules:
        content = requested(said, context.speaker)
    elif listed.label and not is_keyed(said) and not has_verb(said.lower()):
        content = f"{listed.label}: {said}"
    else:
        content = said
    thought = Thought(
        content=sentence_case(content),
        type=kind,
        confidence=policy.instruction_confidence,
        start=one.start,
        end=one.end,
        valid_from=None,
        valid_to=None,
        personal=not listed.here and is_personal(said.lower(), kind, asked=listed.rules),
    )
    return replace(made, thoughts=(thought,), why="an item of a list that lays down how things are")


def _joined(
    text: str, last: Choice, made: Choice, context: SpeechContext, policy: DistillPolicy
) -> tuple[Choice, Choice] | None:
    """Return both choices where a person's sentence takes up the one before it, and is told together with it.

    "They respawn after a rest" says nothing by itself. So it brings along the sentence before; and where that is kept
    and it alone would be too doubtful, it goes on with that. None where each sentence stands for itself.
    """
    goes_on = bool(last.thoughts) and not made.thoughts and _may_go_on(text, made, policy)
    if context.role_agent or not (made.as_said or goes_on) or not _takes_up(text, last.sentence, made.sentence, policy):
        return None
    first = last.thoughts or tuple(_as_said(text, last.sentence, made.chance, context, policy))
    then = made.thoughts or tuple(_as_said(text, made.sentence, last.chance, context, policy, least_words=1))
    if not first or not then:
        return None
    kept = first[0] if last.thoughts else then[0]
    willed = next((one.type for one in (kept, *then) if one.type in OF_WILL), kept.type)
    content = f"{first[0].content} {then[0].content}"
    both = replace(kept, content=content, type=willed, start=first[0].start, end=then[0].end)
    why = "it goes on with the sentence before, which is kept" if goes_on else f"{made.why}, with the sentence before"
    if last.thoughts:
        last = replace(last, thoughts=(), why="told together with the next sentence, which takes it up")
    return last, replace(made, thoughts=(both,), why=why)


def _may_go_on(text: str, made: Choice, policy: DistillPolicy) -> bool:
    """Say whether a sentence that is not kept by itself is refused only because it leans on the one before."""
    one = made.sentence
    if one.end - one.start > policy.max_sentence_chars:
        return False
    low = text[one.start : one.end].lower()
    return (policy.min_chance <= made.chance or _ORDERS.match(low) is not None) and not is_passing(low)


def _takes_up(text: str, last: Span, one: Span, policy: DistillPolicy) -> bool:
    """Say whether a sentence opens with a word for what the one right before it, a plain statement, is about."""
    said = text[last.start : last.end].rstrip()
    start = past_fillers(text, one.start, one.end, ())
    return (
        (_TAKES_UP.match(text, start) or _ORDERS.match(text, start)) is not None
        and "\n\n" not in text[last.end : one.start]
        and one.end - last.start <= policy.max_sentence_chars
        and not said.endswith(("?", ":"))
        and len(said.split()) >= policy.min_words
        and _TAKES_UP.match(said) is None
    )


def _refused(text: str, one: Span, chance: float, context: SpeechContext, policy: DistillPolicy) -> str:
    """Return why the selector does not choose a sentence; "" where it does."""
    least = policy.min_chance_of_agent if context.role_agent else policy.min_chance
    if chance < least:
        return f"the selector gives it {chance:.2f}, and asks for {least:.2f}"
    if one.end - one.start > policy.max_sentence_chars:
        return f"longer than {policy.max_sentence_chars} characters"
    if not context.role_agent:
        low = text[one.start : one.end].lower()
        if is_passing(low):
            return "over soon: a failure that is reported, a step for now, or a thought aloud"
        if chance < policy.min_chance_of_doubtful and is_doubtful(low, policy.least_words):
            return f"it may be over soon, and the selector gives it {chance:.2f}"
    return ""


def _stands(thought: Thought, text: str, chance: float, context: SpeechContext, policy: DistillPolicy) -> bool:
    """Say whether a pattern's reading is kept where the selector is less sure."""
    if context.role_agent:
        return thought.type is MemoryType.INSIGHT and bool(_VERIFIED.search(thought.content))
    said = text[thought.start : thought.end]
    is_over = thought.type is MemoryType.PREFERENCE and _FOR_NOW.search(said)
    if said.endswith(":") or is_over or (_FORBIDS.match(said) and not _HOLDS_ON.search(said)):
        return False
    if thought.type is not MemoryType.FACT:
        return True
    if _is_lasting(said, policy):
        return True
    of_things = not _OF_ONESELF.search(said)
    return of_things and chance >= policy.min_chance_of_fact and not is_passing(said.lower())


def _renamed(thought: Thought, text: str, context: SpeechContext) -> Thought:
    """Return what a pattern read under the kind that its cues say, where the pattern's own is often wrong at work.

    What holds for the person everywhere stays what it is: "I am not a native speaker" is not a wish. A decision stays
    one where it is named ("we decided …"); "let's do it step by step" is how somebody wants to be worked with. "I want
    to filter by year" is wanted of the project; "I want to learn Rust" is the person's.
    """
    said = text[thought.start : thought.end]
    own = _OF_ONES_LIFE.search(said) or EVERYWHERE.search(said.lower())
    if thought.personal and thought.type is MemoryType.GOAL and not own:
        thought = replace(thought, personal=False)
    if thought.personal or thought.type in {MemoryType.PREFERENCE, MemoryType.INSIGHT, MemoryType.HOWTO}:
        return thought
    kind = kind_of(said, by_person=not context.role_agent)
    is_decided = thought.type is MemoryType.DECISION and kind is not MemoryType.PREFERENCE
    return thought if is_decided else replace(thought, type=kind)


def _place(found: list[Span], start: int) -> int:
    """Return which sentence a position lies in, -1 for none."""
    return next((n for n, one in enumerate(found) if one.start <= start < one.end), -1)


def _weighed(thought: Thought, chance: float) -> Thought:
    """Return what both read, as sure as the surer; of facts the patterns are too sure in work with agents."""
    sure = max(thought.confidence, chance) if thought.type in OF_WILL else chance
    return replace(thought, confidence=round(sure, 3))


def _doubted(thought: Thought, context: SpeechContext, policy: DistillPolicy) -> Thought:
    """Return what a pattern read and the selector refuses: an agent's is no surer than the selector asks for.

    "The fix was …" is a finding by its form alone, and most of these are steps of one afternoon's work.
    """
    if not context.role_agent:
        return thought
    return replace(thought, confidence=min(thought.confidence, policy.min_chance_of_agent))


def _as_said(
    text: str, one: Span, chance: float, context: SpeechContext, policy: DistillPolicy, *, least_words: int = 0
) -> Iterator[Thought]:
    """Yield a sentence in its own words, without fillers and emphasis, its relative dates made absolute."""
    start = past_fillers(text, one.start, one.end, context.people)
    said = as_said(text, one, context.people)
    least = least_words or policy.min_words
    if len(said.split()) < least or not is_english(text[one.start : one.end]):
        return
    dates = () if context.anchor is None else find_dates(said, context.anchor, context.utc_offset)
    valid_from, valid_to = validity(said, dates)
    yield Thought(
        content=sentence_case(dated(said, dates)),
        type=kind_of(said, by_person=not context.role_agent),
        confidence=round(chance, 3),
        start=start,
        end=one.end,
        valid_from=valid_from,
        valid_to=valid_to,
        personal=False,
    )
