"""Sentences of a session become observations: self-contained, dated, typed, each with the span it was read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from scrubjay.dates import find_dates
from scrubjay.distill.agreement import Agreement, agreed
from scrubjay.distill.directives import DIRECTIVE, Directive, parse_directives
from scrubjay.distill.families import classify
from scrubjay.distill.numbered_answers import numbered_answers
from scrubjay.distill.pasted import own_words
from scrubjay.distill.person import Speaker
from scrubjay.distill.prose import sentences
from scrubjay.distill.reading import EXPLICIT_WORDS, Reader, Turn, chosen, takes_back
from scrubjay.distill.salience import initial_salience
from scrubjay.distill.thought import SpeechContext, Thought, ends, read
from scrubjay.distill.wording import dated, sentence_case, validity
from scrubjay.policy import DEFAULT, DistillPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, EventType, MemoryType, Role, Scope, Trust, content_hash, least

SOURCE = EXPLICIT_WORDS.source
"""The patterns' name and version, for `Grip.source`. Raised when they change what they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """A memory read from a bare text: nobody is known, so nothing is renamed or dated. Both scores are in [0, 1]."""

    content: str
    type: MemoryType
    confidence: float
    salience: float
    span_start: int
    span_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A memory read from the events of one session, ready to be stored with its grip.

    The texts of the events from `event_id_start` to `event_id_end`, in order, joined by a newline, hold `excerpt` at
    `[span_start:span_end]`. `trust` is the least of the sources'. `valid_from` (inclusive) and `valid_to` (exclusive)
    bound when it held or happened, where the text says; None where it does not. `resource_id` is the event's project
    for project scope, the session's id for session scope, and the `user_id` given to `distill` for user scope.
    """

    content: str
    type: MemoryType
    salience: float
    confidence: float
    scope: Scope
    resource_id: str | None
    topic: str | None
    valid_from: Millis | None
    valid_to: Millis | None
    trust: Trust
    event_id_start: str
    event_id_end: str
    span_start: int
    span_end: int
    excerpt: str
    source: str = SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What one run read and dropped. The `*_facts` count directives, under the names of the specification.

    `texts_cut_off` counts the events of which only the beginning was read, by the caps of the policy.
    """

    events: int = 0
    sentences: int = 0
    texts_cut_off: int = 0
    below_confidence: int = 0
    duplicates: int = 0
    project_promoted_facts: int = 0
    user_promoted_facts: int = 0
    session_scoped_facts: int = 0
    dropped_untagged_facts: int = 0
    malformed_facts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """The observations of one run, in the order of their events, and what was counted on the way.

    `taken_back` are the events of which the person takes back all that they said, with when they did.
    """

    observations: tuple[Observation, ...] = ()
    taken_back: Mapping[str, Millis] = field(default_factory=dict)
    counters: Counters = Counters()


PROMOTED = {
    Scope.PROJECT: "project_promoted_facts",
    Scope.USER: "user_promoted_facts",
    Scope.SESSION: "session_scoped_facts",
}
"""The counter of each scope."""

SAID = frozenset((EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP, EventType.NOTE))
"""The events somebody spoke in. What a tool printed is nobody's preference."""


def extract_memories(text: str, min_confidence: float = 0.5) -> list[ExtractedMemory]:
    """Return what a bare text says that is worth keeping, in order.

    Raises InvalidError when `min_confidence` is not a number in [0, 1].
    """
    if not 0 <= min_confidence <= 1:
        raise InvalidError(
            f"min_confidence must be between 0 and 1, got {min_confidence}",
            hint="0.5 is the default, 0 keeps every reading",
        )
    policy = replace(DEFAULT.distill, min_confidence=min_confidence)
    return [
        ExtractedMemory(
            content=thought.content,
            type=thought.type,
            confidence=thought.confidence,
            salience=initial_salience(thought.type, thought.confidence, policy),
            span_start=thought.start,
            span_end=thought.end,
        )
        for thought in read(text, SpeechContext(speaker=Speaker(name=None)), policy).thoughts
    ]


def distill(
    events: Sequence[Event],
    new: Collection[str] | None = None,
    *,
    policy: DistillPolicy = DEFAULT.distill,
    user_name: str | None = None,
    assistant_name: str | None = None,
    user_id: str | None = None,
    reader: Reader = EXPLICIT_WORDS,
) -> Distilled:
    """Return the observations of the events whose id is in `new` (None: all). `events` are one session's, in order.

    The other events are context only. A speaker named in an event's metadata wins over `user_name` and
    `assistant_name`, which name the two roles; `user_id` is the resource of user-scoped observations. An event that
    holds an `@observe` line is an observer's output and is read by its directives alone. What a person says at work is
    the `reader`'s, of agents only what is agreed to is kept there; talk is read by patterns.
    """
    cast = _Cast(events, user_name, assistant_name)
    counted: Counter[str] = Counter()
    kept: dict[tuple[str, Scope, str | None], Observation] = {}
    asked: Event | None = None
    taken_back: dict[str, Millis] = {}
    for before, event in zip((None, *events), events, strict=False):
        if event.role is Role.USER and was_said(event):
            is_new = new is None or event.id in new
            soon = asked is not None and event.ts - asked.ts <= policy.taken_back_ms
            if asked is not None and is_new and soon and _takes_back(event.text, answers=before is not asked):
                taken_back[asked.id] = event.ts
            asked = event
        if not was_said(event) or (new is not None and event.id not in new):
            continue
        counted["events"] += 1
        context = cast.context(event)
        if DIRECTIVE.search(event.text):
            made = _promoted(event, user_id, policy, counted)
        else:
            if not _is_at_work(event, context):
                made = _observed(event, context, user_id, policy, counted)
            elif event.role is Role.USER:
                agents = before is not None and before.role is Role.ASSISTANT and was_said(before)
                said = before if agents else None
                made = _chosen(event, said, context, user_id, policy, counted=counted, reader=reader)
            else:
                made = []  # of what agents say at work a Writer alone tells what is worth keeping
            agreed_to = _agreed(before, event, context, user_id, policy)
            made = [one for one in made if not any(_tells(other, one, event) for other in agreed_to)] + agreed_to
        for one in made:
            key = (content_hash(one.content), one.scope, one.resource_id)
            counted["duplicates"] += key in kept
            kept.setdefault(key, one)
    made = [one for one in kept.values() if one.event_id_end not in taken_back]
    return Distilled(observations=tuple(made), taken_back=taken_back, counters=Counters(**counted))


def _takes_back(text: str, *, answers: bool) -> bool:
    """Say whether a person's turn opens with taking back the one before: "ah no. sorry, wrong window"."""
    opening = islice(sentences(text, own_words(text)), 2)
    return any(takes_back(text[one.start : one.end], answers=answers) for one in opening)


class _Cast:
    """Who takes part in a session, and so whom "I" and "you" mean in each event."""

    def __init__(self, events: Sequence[Event], user_name: str | None, assistant_name: str | None) -> None:
        self._roles = {Role.USER: user_name or "the user", Role.ASSISTANT: assistant_name or "the assistant"}
        spoken = [event for event in events if was_said(event)]
        self._names = tuple(dict.fromkeys(self._name(event) for event in spoken))
        self._people = tuple(dict.fromkeys(event.speaker for event in spoken if _is_named(event)))

    def context(self, event: Event) -> SpeechContext:
        name = self._name(event)
        others = [other for other in self._names if other != name]
        return SpeechContext(
            speaker=Speaker(name=name, other=others[0] if len(others) == 1 else None),
            people=self._people,
            role_agent=event.role is Role.ASSISTANT and not _is_named(event),
            named_talk=len(self._people) > 1,
            anchor=event.ts,
            utc_offset=event.utc_offset,
        )

    def _name(self, event: Event) -> str:
        return event.speaker if _is_named(event) else self._roles.get(event.role, self._roles[Role.USER])


def was_said(event: Event) -> bool:
    """Say whether somebody in the session spoke. A paragraph of a file is nobody's word: "I" in it is not the person.

    Such a paragraph is a note that is trusted no more than an import, whatever role an earlier version gave it.
    """
    return event.type in SAID and not (event.type is EventType.NOTE and event.trust in {Trust.IMPORT, Trust.UNTRUSTED})


def _is_named(event: Event) -> bool:
    return event.speaker != event.role.value


def _is_at_work(event: Event, context: SpeechContext) -> bool:
    return event.project is not None and not context.named_talk and not _is_named(event)


def _observed(
    event: Event, context: SpeechContext, user_id: str | None, policy: DistillPolicy, counted: Counter[str]
) -> list[Observation]:
    """Read what somebody said by the patterns."""
    parsed = read(event.text, context, policy)
    counted["sentences"] += parsed.sentences
    counted["texts_cut_off"] += parsed.cut_off
    counted["below_confidence"] += parsed.below_confidence
    return [observation(event, thought, _scope(event, thought), user_id, policy) for thought in parsed.thoughts]


def _chosen(
    event: Event,
    before: Event | None,
    context: SpeechContext,
    user_id: str | None,
    policy: DistillPolicy,
    *,
    counted: Counter[str],
    reader: Reader,
) -> list[Observation]:
    """Read by the reader what a person says at work; `before` is what the agent said right before it."""
    said = "" if before is None else before.text
    made = []
    for choice in chosen(Turn(text=event.text, before=said), context, policy, reader):
        counted["sentences"] += 1
        for thought in choice.thoughts:
            placed = replace(thought, start=max(0, thought.start))
            one = observation(event, placed, _scope(event, thought), user_id, policy)
            one = replace(one, source=reader.source)
            if before is not None and thought.start < 0:
                start, end = len(said) + 1 + thought.start, len(said) + 1 + thought.end
                excerpt = f"{said}\n{event.text}"[start:end]
                trust = least(before.trust, event.trust)  # a part of the words is the agent's
                one = replace(
                    one, event_id_start=before.id, span_start=start, span_end=end, excerpt=excerpt, trust=trust
                )
            made.append(one)
    return made[: policy.max_memories]


def _tells(answer: Observation, one: Observation, event: Event) -> bool:
    """Say whether an answer with what was asked tells what was read from the answer alone."""
    said = one.excerpt.strip(" .!")
    if one.event_id_start == answer.event_id_start != event.id:
        return True  # the reader told it with what was asked too
    return said.lower() in answer.content.lower() or said == event.text.strip(" .!")


def _agreed(
    before: Event | None, event: Event, context: SpeechContext, user_id: str | None, policy: DistillPolicy
) -> list[Observation]:
    """Read a person's answer to what the agent proposed right before it. The grip covers both."""
    if before is None or before.role is not Role.ASSISTANT or event.role is not Role.USER or not was_said(before):
        return []
    if context.named_talk:
        return []
    at_work = event.project is not None
    found = numbered_answers(before.text, event.text) if at_work else []
    if not found and (one := agreed(before.text, event.text, at_work=at_work)) is not None:
        found = [one]
    made = []
    for one in found:
        thought = _answer(before, one, context, policy)
        answered = observation(event, thought, _scope(event, thought), user_id, policy)
        excerpt = f"{before.text}\n{event.text}"[thought.start : thought.end]
        trust = least(before.trust, event.trust)  # the words are the agent's, whoever said yes to them
        made.append(replace(answered, event_id_start=before.id, excerpt=excerpt, trust=trust))
    return made


def _answer(before: Event, found: Agreement, context: SpeechContext, policy: DistillPolicy) -> Thought:
    """Return what a person's answer decides as a thought in the text of both turns."""
    return Thought(
        content=sentence_case(f"{context.speaker.name} {found.words}"),
        type=MemoryType.DECISION,
        confidence=policy.agreement_confidence,
        start=found.start,
        end=len(before.text) + 1 + found.end,
        valid_from=None,
        valid_to=None,
        personal=False,
    )


def _promoted(event: Event, user_id: str | None, policy: DistillPolicy, counted: Counter[str]) -> list[Observation]:
    """Read an observer's output strictly. A text that is not trusted promotes nothing: its tags count as malformed."""
    directives = parse_directives(event.text)
    counted["dropped_untagged_facts"] += directives.dropped_untagged
    counted["malformed_facts"] += directives.malformed
    if event.trust is Trust.UNTRUSTED:
        counted["malformed_facts"] += len(directives.observed)
        return []
    made: list[Observation] = []
    for said in directives.observed:
        scope = Scope.SESSION if said.scope is Scope.PROJECT and event.project is None else said.scope
        counted[PROMOTED[scope]] += 1
        thought = directed(said, event, said.span_start, said.span_end, policy)
        # An observer is a model: what it concludes is never the person's word, wherever the directive stands.
        trust = least(event.trust, Trust.AGENT)
        made.append(replace(observation(event, thought, scope, user_id, policy), topic=said.topic, trust=trust))
    return made


def directed(said: Directive, event: Event, start: int, end: int, policy: DistillPolicy) -> Thought:
    """Return what a directive promotes as a thought at `[start:end]` of an event: typed, and with dates for "today"."""
    classified = classify(said.content, policy, role_agent=False, named_talk=False)
    dates = find_dates(said.content, event.ts, event.utc_offset)
    valid_from, valid_to = validity(said.content, dates)
    return Thought(
        content=dated(said.content, dates),
        type=said.type or (classified.type if classified else MemoryType.FACT),
        confidence=policy.directive_confidence,
        start=start,
        end=end,
        valid_from=valid_from,
        valid_to=valid_to,
        personal=False,
    )


def _scope(event: Event, thought: Thought) -> Scope:
    """Return for whom a sentence counts: what one says of oneself for the person, the rest for the project."""
    if event.trust is Trust.UNTRUSTED:
        return Scope.SESSION
    return Scope.USER if event.project is None or thought.personal else Scope.PROJECT


def observation(
    event: Event, thought: Thought, scope: Scope, user_id: str | None, policy: DistillPolicy
) -> Observation:
    """Return a thought of an event as an observation of a scope."""
    resources = {Scope.USER: user_id, Scope.PROJECT: event.project, Scope.SESSION: event.session_id}
    return Observation(
        content=thought.content,
        type=thought.type,
        salience=initial_salience(thought.type, thought.confidence, policy),
        confidence=thought.confidence,
        scope=scope,
        resource_id=resources[scope],
        topic=None,
        valid_from=thought.valid_from,
        valid_to=ends(thought, event.ts),
        trust=event.trust,
        event_id_start=event.id,
        event_id_end=event.id,
        span_start=thought.start,
        span_end=thought.end,
        excerpt=event.text[thought.start : thought.end],
    )
