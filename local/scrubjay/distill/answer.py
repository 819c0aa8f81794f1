"""An observer's answer becomes observations: those that the turns support, each in the scope that it may have.

Nothing that the answer claims of itself counts. The place is found in the turns, trust is the least of the turns that
the fact needs, what nobody spoke stays in its session, and what a person pasted says nothing of the person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scrubjay.distill.directives import Directive, parse_directives
from scrubjay.distill.observe import PROMOTED, Observation, directed, observation, was_said
from scrubjay.distill.observer_prompt import NOTHING, Question
from scrubjay.distill.pasted import own_words
from scrubjay.distill.scope import EVERYWHERE, PLACE
from scrubjay.distill.support import Place, Said, Support, Turns
from scrubjay.policy import DistillPolicy, ObserverPolicy
from scrubjay_shared.records import TRUST_ORDER, Event, Memory, Role, Scope, Trust, content_hash, least

SOURCE = "observer/1"
"""The reader's name and version, for `Grip.source`. Raised when places are looked for in another way."""

THOUGHT = re.compile(r"\A.{0,200000}</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
"""What some models write before they answer."""


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
class Answered:
    """What an answer promotes, in its order, and what was counted under the names of the specification.

    `is_unusable`: it says something, and none of it is a directive. Then it is no answer of an observer.
    """

    promoted: tuple[Promoted, ...]
    counts: Mapping[str, int]
    is_unusable: bool


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
    if said.strip("`.\n ").upper() in {NOTHING, ""}:
        return Answered(promoted=(), counts={}, is_unusable=False)
    directives = parse_directives(said, asked.memories)
    counted: Counter[str] = Counter(
        dropped_untagged_facts=directives.dropped_untagged, malformed_facts=directives.malformed
    )
    turns = Turns([_said(event, at in asked.fresh) for at, event in enumerate(asked.events)], policy.support)
    kept: dict[tuple[str, Scope, str | None], Promoted] = {}
    for directive in directives.observed[: policy.max_facts]:
        if len(directive.content) > policy.fact_chars:
            counted["malformed_facts"] += 1
            continue
        support = turns.support(directive.content, [number - 1 for number in directive.turns])
        if support is None:
            counted["unsupported_facts"] += 1
            continue
        made = _promoted(directive, support, asked, distill_policy, user_id)
        key = (content_hash(made.observation.content), made.observation.scope, made.observation.resource_id)
        counted["duplicates" if key in kept else PROMOTED[made.observation.scope]] += 1
        kept.setdefault(key, made)
    return Answered(
        promoted=tuple(kept.values()),
        counts={name: count for name, count in counted.items() if count},
        is_unusable=not directives.observed,
    )


def _said(event: Event, fresh: bool) -> Said:  # noqa: FBT001  # one call, in a list
    return Said(text=event.text, ts=event.ts, trust=event.trust, spoken=was_said(event), fresh=fresh)


def _promoted(
    directive: Directive, support: Support, asked: Question, policy: DistillPolicy, user_id: str | None
) -> Promoted:
    events = [asked.events[place.turn] for place in support.places]
    pasted = any(_is_pasted(event, place) for event, place in zip(events, support.places, strict=True))
    trust = least(support.trust, Trust.IMPORT) if pasted else support.trust
    scope = _scope(directive, events[0], trust)
    places = [
        replace(
            observation(event, directed(directive, event, place.start, place.end, policy), scope, user_id, policy),
            topic=directive.topic,
            trust=trust,
        )
        for event, place in zip(events, support.places, strict=True)
    ]
    return Promoted(
        observation=places[0],
        source=SOURCE,
        also=tuple(places[1:]),
        supersedes=asked.memories.get(directive.supersedes or ""),
    )


def _scope(directive: Directive, event: Event, trust: Trust) -> Scope:
    """Return the scope that a fact may have: that of its directive, or a narrower one.

    What nobody spoke holds in its session. What is only said of this place, or stands in what a file or a paste says,
    is no preference of the person everywhere.
    """
    if trust is Trust.UNTRUSTED:
        return Scope.SESSION
    low = directive.content.lower()
    here = bool(PLACE.search(low)) and not EVERYWHERE.search(low)
    believed = TRUST_ORDER.index(trust) >= TRUST_ORDER.index(Trust.AGENT)
    scope = Scope.PROJECT if directive.scope is Scope.USER and (here or not believed) else directive.scope
    return Scope.SESSION if scope is Scope.PROJECT and event.project is None else scope


def _is_pasted(event: Event, place: Place) -> bool:
    """Say whether most of a place was not written by the person whose turn it is."""
    if event.role is not Role.USER:
        return False
    own = sum(max(0, min(span.end, place.end) - max(span.start, place.start)) for span in own_words(event.text))
    return 2 * own < place.end - place.start
