"""What sessions needed of earlier ones, as the people say who labelled them; for `scrubjay bench surfacing`.

Nothing here asks scrubjay anything. A session needs an earlier turn for one of two reasons. `linked`: a label or a
question is answered by turns of several sessions, or one replaces another; then the last of these sessions needs what
the earlier ones said. `overlap`: what was labelled in the session shares two rare words with what was labelled in an
earlier one; it is of the same thing, so that was of use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrubjay_bench import devmem, locomo
from scrubjay_bench.conversations import Conversation
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Role
from scrubjay_shared.text import query_tokens

LINKED, OVERLAP = "linked", "overlap"
KINDS = (LINKED, OVERLAP)
RARE_SHARE = 0.02  # of the labelled texts of one person that may have a word for it to be rare
RARE_COUNT = 3  # and in so few it is rare however few texts there are: the pair itself, and one more
RARE_WORDS = 2  # that two texts must share: one is often a name
IMPORTANCE = 2  # of a label that counts: what is nice to have was needed by nobody
ADVERSARIAL = locomo.CATEGORIES[5]

Need = frozenset[str]
"""Turns that say the same thing: any of them is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One turn: its id, and the event as an agent's plug-in sends it."""

    id: str
    draft: EventDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One session: its turns in order, and what of earlier sessions it needs, by the reason."""

    id: str
    turns: tuple[Said, ...]
    needs: Mapping[str, frozenset[Need]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The sessions of one person in one project, in the order of their time."""

    set_name: str
    name: str
    sessions: tuple[Replayed, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """Something that was labelled: its words, the turns that say it, and the place of its session."""

    text: str
    turns: frozenset[str]
    place: int


def people(devmem_folder: Path | None, locomo_file: Path | None) -> tuple[list[Person], dict[str, str]]:
    """Return the people of the sets that are given, and the SHA-256 of each set. Raises what their readers raise."""
    found: list[Person] = []
    digests: dict[str, str] = {}
    if devmem_folder is not None:
        sessions = devmem.load(devmem_folder)
        digests[sessions.name] = sessions.sha256
        found += [_developer(sessions.name, project) for project in sessions.projects]
    if locomo_file is not None:
        data = locomo.load(locomo_file)
        digests[data.name] = data.sha256
        found += [_talker(data.name, one) for one in data.conversations]
    return found, digests


def _developer(set_name: str, project: devmem.Project) -> Person:
    order = list(dict.fromkeys(turn.session for turn in project.turns))
    place = {turn.id: order.index(turn.session) for turn in project.turns}
    labels = {label.id: label for label in project.labels}
    linked: list[tuple[frozenset[str], ...]] = []
    for label in project.labels:
        linked.append(tuple(frozenset((turn,)) for turn in label.turns))
        if (old := labels.get(label.supersedes or "")) is not None:
            linked.append((old.turns, frozenset((label.turn,))))
    for question in project.questions:
        turns = {*question.evidence, *question.stale} & place.keys()
        linked.append(tuple(frozenset((turn,)) for turn in turns))
    texts = [
        _Text(label.text, label.turns, min(place[turn] for turn in label.turns))
        for label in project.labels
        if label.importance >= IMPORTANCE
    ]
    needs = _needs(len(order), place, linked, texts)
    drafts = {
        turn.id: EventDraft(
            agent="claude-code",
            session_id=turn.session,
            type=turn.event_type,
            role=turn.role,
            text=turn.text,
            project=turn.project,
            ts=ts,
            trust=turn.trust,
            dedupe_key=turn.id,
        )
        for turn, ts in zip(project.turns, project.times, strict=True)
    }
    return Person(set_name=set_name, name=project.name, sessions=_sessions(order, drafts, needs))


def _talker(set_name: str, talk: Conversation) -> Person:
    order = list(dict.fromkeys(turn.session for turn in talk.turns))
    place = {turn.id: order.index(turn.session) for turn in talk.turns}
    words = {turn.id: turn.text for turn in talk.turns}
    questions = [one for one in talk.questions if one.category != ADVERSARIAL]
    linked = [tuple(frozenset((turn,)) for turn in one.evidence if turn in place) for one in questions]
    evidence = sorted({turn for one in questions for turn in one.evidence if turn in place})
    texts = [_Text(words[turn], frozenset((turn,)), place[turn]) for turn in evidence]
    needs = _needs(len(order), place, linked, texts)
    drafts = {
        turn.id: EventDraft(
            agent="talk",
            session_id=f"{talk.name}-{turn.session}",
            type=EventType.USER_MESSAGE,
            role=Role.USER,
            text=turn.text,
            project=talk.name,
            ts=turn.ts,
            dedupe_key=turn.id,
            metadata={"speaker": turn.speaker},
        )
        for turn in talk.turns
    }
    return Person(
        set_name=set_name, name=talk.name, sessions=_sessions([f"{talk.name}-{one}" for one in order], drafts, needs)
    )


def _sessions(
    order: Sequence[str], drafts: Mapping[str, EventDraft], needs: Sequence[Mapping[str, frozenset[Need]]]
) -> tuple[Replayed, ...]:
    turns: dict[str, list[Said]] = {session: [] for session in order}
    for id_, draft in drafts.items():
        turns[draft.session_id].append(Said(id=id_, draft=draft))
    return tuple(Replayed(id=session, turns=tuple(turns[session]), needs=needs[at]) for at, session in enumerate(order))


def _needs(
    count: int,
    place: Mapping[str, int],
    linked: Iterable[tuple[frozenset[str], ...]],
    texts: Sequence[_Text],
) -> list[dict[str, frozenset[Need]]]:
    """Return what each session needs: `linked` are things that belong together, `texts` what was labelled."""
    found: list[dict[str, set[Need]]] = [{kind: set() for kind in KINDS} for _ in range(count)]
    for things in linked:
        if things:
            last = max(min(place[turn] for turn in turns) for turns in things)
            found[last][LINKED] |= {turns for turns in things if max(place[turn] for turn in turns) < last}
    frequency = Counter(word for one in texts for word in set(query_tokens(one.text)))
    most = max(RARE_COUNT, RARE_SHARE * len(texts))
    rare = [{word for word in query_tokens(one.text) if frequency[word] <= most} for one in texts]
    for later, its in zip(texts, rare, strict=True):
        for earlier, others in zip(texts, rare, strict=True):
            is_before = max(place[turn] for turn in earlier.turns) < later.place
            if is_before and len(its & others) >= RARE_WORDS:
                found[later.place][OVERLAP].add(earlier.turns)
    return [{kind: frozenset(needs) for kind, needs in one.items()} for one in found]


def start_of(session: Replayed) -> Millis:
    """Return when a session began."""
    return Millis(session.turns[0].draft.ts or 0)
