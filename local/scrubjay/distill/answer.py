"""An observer's answer becomes observations: those that the turns support, each in the scope that it may have.

Nothing that the answer claims of itself counts. The place is found in the turns, trust is the least of the turns that
the fact needs, what nobody spoke stays in its session, and what a person pasted says nothing of the person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.distill.directives import Directive, from_json, parse_directives
from scrubjay.distill.observe import PROMOTED, Observation, directed, observation, was_said
from scrubjay.distill.observer_prompt import NOTHING, Question
from scrubjay.distill.pasted import own_words
from scrubjay.distill.scope import EVERYWHERE, PLACE
from scrubjay.distill.support import Place, Said, Turns
from scrubjay.policy import DistillPolicy, ObserverPolicy
from scrubjay_shared.records import TRUST_ORDER, Event, Memory, Role, Scope, Trust, content_hash, least
from scrubjay_shared.text import analyse

SOURCE = "observer/1"
"""The reader's name and version, for `Grip.source`. Raised when places are looked for in another way."""

THOUGHT = re.compile(r"\A.{0,200000}</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
"""What some models write before they answer."""

NUMBER = re.compile(r"\d+")
NONE_ALONE = re.compile(rf"^[ \t`*\"]*{NOTHING}[`*\".]*[ \t]*$", re.IGNORECASE | re.MULTILINE)
NONE = re.compile(rf"[\s`*\"]*{NOTHING}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """What the author of a fact may write: as what its words are believed at most, and of which projects; None is all.

    The Writer has no bound of its own: its words are believed as the turns that they need.
    """

    trust: Trust = Trust.USER
    projects: frozenset[str] | None = None


ANYBODY = Within()


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """A fact that is to be stored, and which reader found it.

    `also` are its other places, beside the observation's own; `supersedes` is the memory whose place it takes, as its
    author says.
    """

    observation: Observation
    source: str
    also: tuple[Observation, ...] = ()
    supersedes: Memory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Titled:
    """What turns were about, in a few words and in a sentence; "" where the observer's do not count."""

    title: str = ""
    summary: str = ""


UNTITLED = Titled()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an answer promotes, in its order, and what was counted under the names of the specification.

    `is_unusable`: it says something, and none of it is a directive. Then it is no answer of an observer. `titled` is
    what it calls the turns.
    """

    promoted: tuple[Promoted, ...]
    counts: Mapping[str, int]
    is_unusable: bool
    titled: Titled = UNTITLED


def read_answer(
    answer: str,
    asked: Question,
    *,
    policy: ObserverPolicy,
    distill_policy: DistillPolicy,
    user_id: str | None = None,
) -> Answered:
    """Return what an answer promotes of what it was asked about."""
    said = THOUGHT.sub("", answer, count=1).strip()
    listed = from_json(said)
    directives = parse_directives(said if listed is None else listed, asked.memories)
    titled = _titled(directives.told, asked, policy)
    dropped = sum(bool(words) for words in directives.told.values()) - (bool(titled.title) + bool(titled.summary))
    none = len(NONE_ALONE.findall(said))
    if not directives.observed and not directives.malformed and (listed == "" or NONE.match(said) or none):
        counts = {"dropped_titles": dropped} if dropped else {}
        return Answered(promoted=(), counts=counts, is_unusable=False, titled=titled)
    is_unusable = not directives.observed and not directives.told
    counted: Counter[str] = Counter(
        dropped_titles=dropped,
        dropped_untagged_facts=max(directives.dropped_untagged - none, 0),
        malformed_facts=max(directives.malformed, int(is_unusable)),
        unknown_types=directives.unknown_types,
    )
    turns = turns_of(asked.events, asked.fresh, policy)
    kept: dict[tuple[str, Scope, str | None], Promoted] = {}
    for directive in directives.observed[: policy.max_facts]:
        if len(directive.content) > policy.fact_chars:
            counted["malformed_facts"] += 1
            continue
        made = promoted(directive, turns, asked.events, distill_policy, user_id=user_id)
        if made is None:
            counted["unsupported_facts"] += 1
            continue
        made = replace(made, supersedes=asked.memories.get(directive.supersedes or ""))
        key = (content_hash(made.observation.content), made.observation.scope, made.observation.resource_id)
        counted["duplicates" if key in kept else PROMOTED[made.observation.scope]] += 1
        kept.setdefault(key, made)
    return Answered(
        promoted=tuple(kept.values()),
        counts={name: count for name, count in counted.items() if count},
        is_unusable=is_unusable,
        titled=titled,
    )


def _titled(given: Mapping[str, str], asked: Question, policy: ObserverPolicy) -> Titled:
    """Return what an observer calls the turns, as far as these say it.

    Half of its words were spoken in the new turns, and every number in some turn. The others are its own: none comes
    from a paste, a tool or a memory, which nobody here said, and which may be forgotten by itself. Turns of several
    projects have no name that each of them may see.
    """
    spoken = [at for at, event in enumerate(asked.events) if was_said(event)]
    words = {at: _own_text(asked.events[at]) for at in spoken}
    said = {at: set(analyse(text)) for at, text in words.items()}
    fresh = set[str]().union(*(stems for at, stems in said.items() if at in asked.fresh))
    own = set[str]().union(*said.values())
    strange = {stem for event in asked.events for stem in analyse(event.text)}
    strange |= {stem for memory in asked.memories.values() for stem in analyse(memory.content)}
    numbers = {number for text in words.values() for number in NUMBER.findall(text)}
    is_of_one = len({asked.events[at].project for at in spoken if at in asked.fresh}) == 1

    def checked(text: str, chars: int) -> str:
        line = " ".join(text.split())
        stems = set(analyse(line))
        is_said = len(stems & fresh) >= policy.told_floor * len(stems) and stems.isdisjoint(strange - own)
        is_said &= numbers.issuperset(NUMBER.findall(line))
        return line if stems and is_said and is_of_one and len(line) <= chars else ""

    return Titled(
        title=checked(given.get("title", ""), policy.title_chars),
        summary=checked(given.get("summary", ""), policy.summary_chars),
    )


def _own_text(event: Event) -> str:
    """Return what the author of a turn wrote of it: of a person's, not what was pasted."""
    if event.role is not Role.USER:
        return event.text
    return "\n".join(event.text[span.start : span.end] for span in own_words(event.text))


def turns_of(events: Sequence[Event], fresh: Collection[int], policy: ObserverPolicy) -> Turns:
    """Return events as the turns that facts are looked for in; `fresh` are the places of those that are not context."""
    said = [
        Said(text=event.text, ts=event.ts, trust=event.trust, spoken=was_said(event), fresh=at in fresh)
        for at, event in enumerate(events)
    ]
    return Turns(said, policy.support)


def promoted(
    directive: Directive,
    turns: Turns,
    events: Sequence[Event],
    policy: DistillPolicy,
    *,
    user_id: str | None = None,
    within: Within = ANYBODY,
) -> Promoted | None:
    """Return what a directive promotes, None where no turn of `events` supports it."""
    support = turns.support(directive.content, [number - 1 for number in directive.turns])
    if support is None:
        return None
    found = [events[place.turn] for place in support.places]
    pasted = any(_is_pasted(event, place) for event, place in zip(found, support.places, strict=True))
    beside = [place for place in support.beside if not _is_pasted(events[place.turn], place)]
    trust = least(support.trust, within.trust, *((Trust.IMPORT,) if pasted else ()))
    scope = _scope(directive, found[0], trust, within)
    places = [
        replace(
            observation(event, directed(directive, event, place.start, place.end, policy), scope, user_id, policy),
            topic=directive.topic,
            trust=trust,
        )
        for place in (*support.places, *beside)
        for event in (events[place.turn],)
    ]
    return Promoted(observation=places[0], source=SOURCE, also=tuple(places[1:]))


def _scope(directive: Directive, event: Event, trust: Trust, within: Within) -> Scope:
    """Return the scope that a fact may have: that of its directive, or a narrower one.

    What nobody spoke holds in its session. What is only said of this place, or stands in what a file or a paste says,
    is no preference of the person everywhere. What holds in a project that its author may not write into holds in its
    session.
    """
    if trust is Trust.UNTRUSTED:
        return Scope.SESSION
    low = directive.content.lower()
    here = bool(PLACE.search(low)) and not EVERYWHERE.search(low)
    believed = TRUST_ORDER.index(trust) >= TRUST_ORDER.index(Trust.AGENT)
    scope = Scope.PROJECT if directive.scope is Scope.USER and (here or not believed) else directive.scope
    placed = event.project is not None and (within.projects is None or event.project in within.projects)
    return Scope.SESSION if scope is Scope.PROJECT and not placed else scope


def _is_pasted(event: Event, place: Place) -> bool:
    """Say whether most of a place was not written by the person whose turn it is."""
    if event.role is not Role.USER:
        return False
    own = sum(max(0, min(span.end, place.end) - max(span.start, place.start)) for span in own_words(event.text))
    return 2 * own < place.end - place.start
