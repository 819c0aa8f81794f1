"""Sentences of a session become observations: self-contained, dated, typed, each with the span it was read from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from scrubjay.dates import DateMention, Grain, find_dates
from scrubjay.distill.directives import DIRECTIVE, parse_directives
from scrubjay.distill.families import Reading, classify
from scrubjay.distill.person import KIN, Speaker, named, tidied
from scrubjay.distill.prose import Sentence, sentences
from scrubjay.distill.sameness import content_hash
from scrubjay.distill.subject import with_subject
from scrubjay.distill.worth import confidence as weighed
from scrubjay.policy import DEFAULT, DistillPolicy
from scrubjay.salience import initial_salience
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import TRUST_ORDER, Event, EventType, MemoryType, Role, Scope, Trust

SOURCE = "patterns/1"
"""The extractor's name and version, for `Grip.source`. Raised when the patterns change what they say."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What one run read and dropped. The `*_facts` count directives, under the names of the specification."""

    events: int = 0
    sentences: int = 0
    sentences_over_cap: int = 0
    below_confidence: int = 0
    duplicates: int = 0
    project_promoted_facts: int = 0
    user_promoted_facts: int = 0
    session_scoped_facts: int = 0
    dropped_untagged_facts: int = 0
    malformed_facts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """The observations of one run, in the order of their events, and what was counted on the way."""

    observations: tuple[Observation, ...] = ()
    counters: Counters = Counters()


PROMOTED = {
    Scope.PROJECT: "project_promoted_facts",
    Scope.USER: "user_promoted_facts",
    Scope.SESSION: "session_scoped_facts",
}
"""The counter of each scope."""

SAID = frozenset((EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP, EventType.NOTE))
"""The events somebody spoke in. What a tool printed is nobody's preference."""

FILLER = re.compile(
    r"(?:(?:yeah|yea|yes|yep|yup|no|nope|nah|oh|ooh|ah|aw|aww|wow|woah|whoa|well|so|hey|hi|hello|hm+|um+|"
    r"uh|ugh|ok|okay|right|sure|sure thing|haha\w*|lol|man|dude|"
    r"totally|absolutely|definitely|exactly|indeed|certainly|of course|true|cool|nice|great|awesome|"
    r"perfect|better|good|classic|agreed|btw|by the way|anyway|also|and|but|plus|(?:speaking|"
    r"talking) of(?=,)|i forgot to mention(?: that)?|(?:speaking|talking) of [\w' ]{2,30}(?=,)|"
    r"on the other hand|on another note|on a side note|on top of that|in other news|other than that|"
    r"since (?:we|you) last (?:spoke|talked|chatted|met)|after all|believe it or not|one more thing|"
    r"another thing|one thing|long story short|"
    r"honestly|actually|basically|to be honest|tbh|fyi|as for me|for me|for sure|guess what|i mean|"
    r"you know|you know what|well done|good question|"
    r"thanks|thank you|thanks for asking|thanks so much|woohoo|yay|hooray|omg|oops|wait|wait really|then|"
    r"last|next|fine|exciting news|good news|big news|crazy news|same here|same)"
    r"(?:,? (?:there|again|so much|too|then|man|dude|buddy|bro))?(?=\s*[,.!:;\u2014-]|\s+(?:i|i'm|i've|im|"
    r"ive|we|we're|my|our|and|but|so|the)\b)\s*(?:[,.!:;\u2014]|-(?=\s))*\s*)+",
    re.IGNORECASE,
)
DASH = re.compile(
    r"\s+[-\u2013\u2014]+\s+|(?<=\w)\u2014(?=\w)|(?<=\w)- (?=\w)|;\s+|\s*\((?=[^()]{0,200}\))|:\s+(?=[A-Za-z])"
)
COMMENT = re.compile(
    r"(?:it|it's|its|that|that's|this|so|such|what a|the best|definitely|really|totally|can't|but (?:it|"
    r"it's|that)|and (?:it|it's|that)|just|love|loved|amazing|awesome|super|very|pretty|quite|always|"
    r"they|they're|he|he's|she|she's|there|now|nothing|never|feels?|felt|makes?|made|gives?|gave|gotta|"
    r"not|how|no|great|truly|worth|everyone|everything|you|your|like|hope|hopefully|sounds|seems|best|"
    r"check|maybe|i'm so|i can't|i was so|i think|i guess|thanks|one of the)\b",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"(?:(?:, (?:(?:and|but|so) )?| (?:and|but|so) )(?:it|it's|that|that's|they|they're|he|he's|she|"
    r"she's)\b(?:'s|'re| was| were| is| are| felt| feels| made| makes| gives| gave| has been| had been|"
    r" really| truly| always)\b[^,]*"
    r"|,? (?:lol|haha|btw|though|too|as well|tho|ffs|please|you know|and all|right now|for sure|no joke))+[.!]*$",
    re.IGNORECASE,
)
CONJUNCTION = re.compile(
    r"(?i)^(?:(?:and|but|so|plus|or|yet|because|also|then|in fact|best of all|for now|not a problem|"
    r"on my end|as usual|of course|overall|luckily|fortunately|unfortunately|sadly|honestly)\b,?\s+)+"
)
MAX_BREAKS = 3
"""Dashes and the like after which a sentence is no longer taken apart: it is a list or a log."""

VOCATIVE_MIN = 3
"""Letters from which a shortened name is taken for its owner ("Mel" for Melanie)."""

PREPOSITION = re.compile(
    r"(?i)\b(?:on|in|at|since|from|until|till|by|for|of|during|before|after|around|about|over|through|to|"
    r"between|and|than)\s+(?:the\s+)?$"
)
TITLE_WORDS = 5
"""Quotation marks around no more words than this hold a title, not what somebody else said."""

QUOTED = re.compile(r'["\u201c][^"\u201d]{8,400}["\u201d]')
LEAD = re.compile(r"(?i)(?:no|never|always|only|not) [\w' -]+[.!]*$")
REMINDER = re.compile(r"(?i)(?:please )?remind \S+(?: (?:that|to|about|of))? ")
PLACED = re.compile(
    r"\b(?:here|in this (?:repo|project|repository|codebase|app)|this (?:repo|project|repository|codebase|app))\b"
)


def extract_memories(text: str, min_confidence: float = 0.5) -> list[ExtractedMemory]:
    """Return what a bare text says that is worth keeping, in order.

    Raises InvalidError when `min_confidence` is not a number in [0, 1].
    """
    if not 0 <= min_confidence <= 1:
        raise InvalidError("min_confidence is not in [0, 1]", hint="0.5 is the default, 0 keeps every reading")
    policy = DEFAULT.distill
    found, _ = _read(text, _Setting(speaker=Speaker(name=None)), replace(policy, min_confidence=min_confidence))
    return [
        ExtractedMemory(
            content=thought.content,
            type=thought.type,
            confidence=thought.confidence,
            salience=initial_salience(thought.type, thought.confidence, policy),
            span_start=thought.start,
            span_end=thought.end,
        )
        for thought in found
    ]


def distill(
    events: Sequence[Event],
    new: Collection[str] | None = None,
    *,
    policy: DistillPolicy = DEFAULT.distill,
    user_name: str | None = None,
    assistant_name: str | None = None,
    user_id: str | None = None,
) -> Distilled:
    """Return the observations of the events whose id is in `new` (None: all). `events` are one session's, in order.

    The other events are context only. A speaker named in an event's metadata wins over `user_name` and
    `assistant_name`, which name the two roles; `user_id` is the resource of user-scoped observations.
    """
    cast = _Cast(events, user_name, assistant_name)
    counted: dict[str, int] = dict.fromkeys(Counters.__slots__, 0)
    kept: list[Observation] = []
    hashes: set[tuple[str, Scope, str | None]] = set()
    for event in events:
        if event.type not in SAID or (new is not None and event.id not in new):
            continue
        counted["events"] += 1
        if DIRECTIVE.search(event.text):
            made = _promoted(event, user_id, policy, counted)
        else:
            found, tally = _read(event.text, cast.setting(event), policy)
            for key, value in tally.items():
                counted[key] += value
            made = [_observation(event, thought, user_id, policy) for thought in found]
        for observation in made:
            said = (content_hash(observation.content), observation.scope, observation.resource_id)
            if said in hashes:
                counted["duplicates"] += 1
            else:
                hashes.add(said)
                kept.append(observation)
    return Distilled(observations=tuple(kept), counters=Counters(**counted))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What is known about a text besides its words. `anchor` None: when it was said is not known."""

    speaker: Speaker
    people: tuple[str, ...] = ()
    role_agent: bool = False
    named_talk: bool = False
    anchor: Millis | None = None
    utc_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thought:
    """One sentence, or a part of one, that is kept: `start` and `end` are its span in the text."""

    content: str
    type: MemoryType
    confidence: float
    start: int
    end: int
    valid_from: Millis | None
    valid_to: Millis | None
    plural: bool
    personal: bool
    placed: bool


class _Cast:
    """Who takes part in a session, and so whom "I" and "you" mean in each event."""

    def __init__(self, events: Sequence[Event], user_name: str | None, assistant_name: str | None) -> None:
        self.roles = {Role.USER: user_name or "the user", Role.ASSISTANT: assistant_name or "the assistant"}
        spoken = [event for event in events if event.type in SAID]
        self.names = tuple(dict.fromkeys(self._name(event) for event in spoken))
        self.people = tuple(dict.fromkeys(event.speaker for event in spoken if _is_named(event)))

    def _name(self, event: Event) -> str:
        return event.speaker if _is_named(event) else self.roles.get(event.role, "the user")

    def setting(self, event: Event) -> _Setting:
        name = self._name(event)
        others = [other for other in self.names if other != name]
        return _Setting(
            speaker=Speaker(name=name, other=others[0] if len(others) == 1 else None),
            people=self.people,
            role_agent=event.role is Role.ASSISTANT and not _is_named(event),
            named_talk=len(self.people) >= 2,
            anchor=event.ts,
            utc_offset=event.utc_offset,
        )


def _is_named(event: Event) -> bool:
    return event.speaker != event.role.value


def _read(text: str, setting: _Setting, policy: DistillPolicy) -> tuple[list[_Thought], dict[str, int]]:
    kept: list[_Thought] = []
    tally = {"sentences": 0, "sentences_over_cap": 0, "below_confidence": 0}
    before = ""
    lead: Sentence | None = None
    for sentence in sentences(text):
        if tally["sentences"] >= policy.max_sentences or len(kept) >= policy.max_memories:
            tally["sentences_over_cap"] += 1
            continue
        tally["sentences"] += 1
        said = text[sentence.start : sentence.end]
        if len(said) <= policy.max_sentence_chars:
            thought = _best_part(text, sentence, before, setting, policy)
            if thought is not None and thought.confidence >= policy.min_confidence:
                kept.append(_led(text, thought, lead) if lead else thought)
            elif thought is not None:
                tally["below_confidence"] += 1
        lead = sentence if len(said.split()) < policy.min_words and LEAD.match(said) else None
        before = (before + " " + said)[-240:]
    return kept, tally


def _led(text: str, thought: _Thought, lead: Sentence) -> _Thought:
    """Return a preference with the exclamation before it, which names what it is about ("No peanuts! I'm allergic")."""
    if thought.type is not MemoryType.PREFERENCE:
        return thought
    exclaimed = tidied(text[lead.start : lead.end])
    content = f"{exclaimed[0].upper()}{exclaimed[1:]} {thought.content}"
    return replace(thought, content=content, start=lead.start)


def _best_part(text: str, sentence: Sentence, before: str, setting: _Setting, policy: DistillPolicy) -> _Thought | None:
    """Return the reading of the sentence: of all of it, or of the first part of it that stands alone."""
    start = _past_fillers(text, sentence.start, sentence.end, setting.people)
    if _mostly_quoted(text[start : sentence.end]):
        return None
    weak: _Thought | None = None
    for begin, end in _parts(text, start, sentence.end):
        thought = _thought(text, _past_fillers(text, begin, end, setting.people), end, before, setting, policy)
        if thought is not None and thought.confidence >= policy.min_confidence:
            return thought
        weak = weak or thought
    return weak


def _past_fillers(text: str, start: int, end: int, people: tuple[str, ...]) -> int:
    """Return where the sentence begins after "Yeah," "Thanks, Mel!" "By the way," and the like."""
    for _ in range(4):
        filler = FILLER.match(text, start, end)
        moved = filler.end() if filler else start
        name = re.match(
            r"(?:(?:[Hh]ey|[Hh]i|[Yy]es|[Yy]eah|[Yy]ep|[Oo]h|[Ww]ow|[Tt]hanks|[Ss]ure|[Nn]o|[Ww]ell|"
            r"[Ss]o) )?([A-Z][a-z]+)[,!.]\s+",
            text[moved : moved + 40],
        )
        if name and _is_someone(name[1], people):
            moved += name.end()
        if moved == start:
            break
        start = moved
    return start


def _is_someone(word: str, people: tuple[str, ...]) -> bool:
    return any(word == p or (len(word) >= VOCATIVE_MIN and p.lower().startswith(word.lower())) for p in people)


def _mostly_quoted(said: str) -> bool:
    quoted = sum(len(m[0]) for m in QUOTED.finditer(said) if len(m[0].split()) > TITLE_WORDS)
    return 2 * quoted > len(said)


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the stretches to try, best first: all of it, then what stands before each break, then what stands between.

    A break before a comment ("- it was so good") ends the first stretches: the comment says nothing of its own.
    """
    end = start + len(text[start:end].rstrip())
    breaks = list(DASH.finditer(text, start, end))[:MAX_BREAKS]
    comment = next((cut for cut in breaks if COMMENT.match(text, cut.end(), end)), None)
    heads = [cut.start() for cut in reversed(breaks) if comment is None or cut.start() <= comment.start()]
    parts = [(start, head) for head in ([end, *heads] if comment is None else heads)]
    edges = [cut.end() for cut in breaks]
    return parts + list(zip(edges, [*(cut.start() for cut in breaks[1:]), end], strict=False))


def _thought(text: str, start: int, end: int, before: str, setting: _Setting, policy: DistillPolicy) -> _Thought | None:
    tail = TAIL.search(text, start, end)
    if tail is not None and tail.start() - start >= 20:
        end = tail.start()
    said = _without_vocative(text[start:end], setting.people)
    said = FILLER.sub("", CONJUNCTION.sub("", said), count=1) if CONJUNCTION.match(said) else said
    plain = tidied(said).rstrip(" .!,;:\u2014-(")
    if plain and setting.speaker.name is not None and not setting.role_agent:
        plain = with_subject(plain, opening=not before)
    count = len(plain.split())
    if "?" in said or not policy.min_words <= count <= policy.max_words:
        return None
    low = plain.lower()
    reading = classify(plain, policy, role_agent=setting.role_agent, named_talk=setting.named_talk)
    if reading is None or (setting.speaker.name is not None and _speaks_to_listener(low, reading)):
        return None
    dates = () if setting.anchor is None else find_dates(plain, setting.anchor, setting.utc_offset)
    confidence = weighed(reading, plain, policy, dated=bool(dates))
    valid_from, valid_to = _validity(plain, dates)
    return _Thought(
        content=_content(plain, dates, reading, before, setting),
        type=reading.type,
        confidence=confidence,
        start=start,
        end=start + len(text[start:end].rstrip()),
        valid_from=valid_from,
        valid_to=valid_to,
        plural=bool(re.search(r"\b(?:we|our|us|we're|we've)\b", low)),
        personal=bool(re.match(r"(?:i|i'm|i've|i'd|my)\b", low)) or reading.asked,
        placed=bool(PLACED.search(low)),
    )


def _speaks_to_listener(low: str, reading: Reading) -> bool:
    return not reading.asked and bool(re.search(r"\b(?:you|your|yours|you're|you've|you'll|you'd|yourself)\b", low))


def _without_vocative(said: str, people: tuple[str, ...]) -> str:
    last = re.search(r",\s*([A-Z][a-z]+)\s*[.!?]*$", said)
    return said[: last.start()] if last and _is_someone(last[1], people) else said


def _validity(plain: str, dates: tuple[DateMention, ...]) -> tuple[Millis | None, Millis | None]:
    """Return the bounds of what is said, where exactly one date in it says them."""
    if len(dates) != 1:
        return None, None
    date = dates[0]
    lead = re.search(
        r"(?i)\b(since|from|starting|until|till|by|before|after)\s+(?:the\s+|late\s+|early\s+|end of\s+)*$",
        plain[: date.span_start],
    )
    match lead[1].lower() if lead else "":
        case "since" | "from" | "starting" | "after":
            return date.start, None
        case "until" | "till" | "by" | "before":
            return None, date.end
        case _:
            return date.start, date.end


def _content(plain: str, dates: tuple[DateMention, ...], reading: Reading, before: str, setting: _Setting) -> str:
    text = _dated(plain, dates)
    speaker = setting.speaker
    if speaker.name is not None:
        kin = re.search(rf"(?i)\b(?:my|the|our|some|few) (?:\w+ )?({KIN})\b", before + " " + plain)
        company = (f"their {kin[1].lower()}" if kin else "others") if setting.named_talk else None
        text = named(text, replace(speaker, company=company))
    if reading.asked and speaker.name is not None:
        reminder = REMINDER.match(text)
        text = (
            f"Reminder for {speaker.name}: {text[reminder.end() :]}"
            if reminder
            else f"{speaker.name} asked: {text[0].lower()}{text[1:]}"
        )
    return text[0].upper() + text[1:] + "."


def _dated(text: str, dates: tuple[DateMention, ...]) -> str:
    """Return the text with each relative date replaced by the date it means, with the preposition that goes with it."""
    out: list[str] = []
    position = 0
    for date in dates:
        if not date.relative:
            continue
        lead, follow = text[position : date.span_start], text[date.span_end :]
        bare = (
            PREPOSITION.search(text[: date.span_start])
            or follow.startswith("'s")
            or re.match(r" (?:was|is|has been)\b", follow)
        )
        phrase = (
            date.phrase
            if bare
            else {Grain.VAGUE: "", Grain.DAY: "on ", Grain.WEEKEND: "on "}.get(date.grain, "in ") + date.phrase
        )
        out += [lead, phrase if date.span_start else phrase[0].upper() + phrase[1:]]
        position = date.span_end
    return "".join([*out, text[position:]])


def _observation(event: Event, thought: _Thought, user_id: str | None, policy: DistillPolicy) -> Observation:
    scope, resource = _scope(event, thought, user_id)
    return Observation(
        content=thought.content,
        type=thought.type,
        salience=initial_salience(thought.type, thought.confidence, policy),
        confidence=thought.confidence,
        scope=scope,
        resource_id=resource,
        topic=None,
        valid_from=thought.valid_from,
        valid_to=thought.valid_to,
        trust=event.trust,
        event_id_start=event.id,
        event_id_end=event.id,
        span_start=thought.start,
        span_end=thought.end,
        excerpt=event.text[thought.start : thought.end],
    )


def _scope(event: Event, thought: _Thought, user_id: str | None) -> tuple[Scope, str | None]:
    """Return for whom a sentence counts: what one says of oneself for the person, the rest for the project."""
    if event.trust is Trust.UNTRUSTED:
        return Scope.SESSION, event.session_id
    if event.project is None or (thought.personal and not thought.plural and not thought.placed):
        return Scope.USER, user_id
    return Scope.PROJECT, event.project


def _promoted(event: Event, user_id: str | None, policy: DistillPolicy, counted: dict[str, int]) -> list[Observation]:
    """Read an observer's output strictly. A text that is not trusted promotes nothing: its tags count as malformed."""
    read = parse_directives(event.text)
    counted["dropped_untagged_facts"] += read.dropped_untagged
    counted["malformed_facts"] += read.malformed
    if event.trust is Trust.UNTRUSTED:
        counted["malformed_facts"] += len(read.observed)
        return []
    made: list[Observation] = []
    for said in read.observed:
        scope = Scope.SESSION if said.scope is Scope.PROJECT and event.project is None else said.scope
        counted[PROMOTED[scope]] += 1
        reading = classify(said.content, policy, role_agent=False, named_talk=False)
        kind = reading.type if reading else MemoryType.FACT
        dates = find_dates(said.content, event.ts, event.utc_offset)
        valid_from, valid_to = _validity(said.content, dates)
        made.append(
            Observation(
                content=_dated(said.content, dates),
                type=kind,
                salience=initial_salience(kind, policy.directive_confidence, policy),
                confidence=policy.directive_confidence,
                scope=scope,
                resource_id={Scope.USER: user_id, Scope.PROJECT: event.project}.get(scope, event.session_id),
                topic=said.topic,
                valid_from=valid_from,
                valid_to=valid_to,
                trust=event.trust,
                event_id_start=event.id,
                event_id_end=event.id,
                span_start=said.span_start,
                span_end=said.span_end,
                excerpt=event.text[said.span_start : said.span_end],
            )
        )
    return made
