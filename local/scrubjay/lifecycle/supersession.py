"""Which earlier memory a new statement takes the place of. Pure: statements in, verdicts out.

Precision comes first. Where two readings are possible the verdict is `unsure`: a person settles it. Nothing replaces
what is trusted more than itself, and nothing reaches beyond its own scope and resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from scrubjay.intervals import TOLD
from scrubjay.lifecycle.readings import Ending, Reading, begun, read, telling
from scrubjay.lifecycle.values import later_place, later_value, later_version
from scrubjay.policy import SupersessionPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import TRUST_ORDER, Json, Scope, Trust


class Verdict(StrEnum):
    """What a new statement does to an earlier one, where it does anything."""

    SUPERSEDES = "supersedes"
    UNSURE = "unsure"


Told = tuple[Verdict, str]
"""A verdict, and a word for its evidence."""


class Statement(Protocol):
    """What is compared: a memory, or one that is not stored yet."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def content(self) -> str:
        """The words."""

    @property
    def scope(self) -> Scope:
        """Who it is for."""

    @property
    def resource_id(self) -> str | None:
        """Which project, person or session."""

    @property
    def trust(self) -> Trust:
        """How far it is believed."""

    @property
    def created_at(self) -> Millis:
        """When it was said."""

    @property
    def valid_from(self) -> Millis | None:
        """When it began to hold, where the words say it."""

    @property
    def metadata(self) -> Json:
        """What is noted of it: among other things that its time is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatement:
    """A statement that is not stored yet."""

    id: str
    content: str
    scope: Scope
    resource_id: str | None
    trust: Trust
    created_at: Millis
    valid_from: Millis | None = None
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """That one statement takes the place of another from a time on, or may. `why` is a word for the evidence."""

    old: str
    new: str
    at: Millis
    verdict: Verdict
    why: str


def successions(
    new: Statement,
    candidates: Iterable[Statement],
    policy: SupersessionPolicy,
) -> list[Succession]:
    """Return what `new` replaces among some memories, and what may replace it: one that was said later is the newer.

    By signs alone a statement makes only the one doubtful that is most like it: of others about the same thing it
    says nothing.
    """
    found: list[Succession] = []
    doubtful: dict[str, list[tuple[float, Succession]]] = {}
    for candidate in candidates:
        if candidate.id == new.id or not is_same_place(new, candidate):
            continue
        old, later = (candidate, new) if candidate.created_at <= new.created_at else (new, candidate)
        told = verdict_of(old.content, later.content, policy)
        if told is None:
            continue
        verdict, why = told
        if TRUST_ORDER.index(later.trust) < TRUST_ORDER.index(old.trust):
            verdict, why = Verdict.UNSURE, TRUST
        elif old.created_at == later.created_at:
            verdict, why = Verdict.UNSURE, "same time"
        elif TOLD in later.metadata:  # it came here later, and may have been said before
            verdict, why = Verdict.UNSURE, "no time"
        at = max(later.created_at, later.valid_from or later.created_at)
        each = Succession(old=old.id, new=later.id, at=at, verdict=verdict, why=why)
        if why in _SIGNS:
            doubtful.setdefault(later.id, []).append((_likeness(old.content, later.content), each))
        else:
            found.append(each)
    for doubts in doubtful.values():
        most = max(like for like, _ in doubts)
        found += [each for like, each in doubts if like == most]
    return found


def _likeness(old: str, new: str) -> float:
    before, after = read(old).stems, read(new).stems
    return len(before & after) / len(before | after) if before | after else 0.0


def stated(new: Statement, old: Statement) -> Succession | None:
    """Return what follows where somebody who is not the person says that `new` takes the place of `old`.

    None where `old` was said later. It is unsure where `old` is trusted more, or stands in another scope or resource.
    """
    if old.id == new.id or old.created_at > new.created_at:
        return None
    verdict, why = Verdict.SUPERSEDES, "stated"
    if not is_same_place(new, old):
        verdict, why = Verdict.UNSURE, "scope"
    elif TRUST_ORDER.index(new.trust) < TRUST_ORDER.index(old.trust):
        verdict, why = Verdict.UNSURE, TRUST
    at = max(new.created_at, new.valid_from or new.created_at)
    return Succession(old=old.id, new=new.id, at=at, verdict=verdict, why=why)


TRUST = "trust"
"""The evidence of a verdict that would be sure, but for who said it."""
CHANGE = "change"
"""The evidence of a verdict by signs alone: a change is told of, and words are shared."""
_SIGNS = frozenset({CHANGE})


def contradicting(found: Iterable[Succession]) -> frozenset[str]:
    """Return the statements that contradict what is trusted more than themselves."""
    return frozenset(each.new for each in found if each.why == TRUST)


def repeated(old: str, new: str, trust: Trust, *, at: Millis) -> Succession:
    """Return that a statement takes the place of the same one, which somebody said who is trusted less."""
    return Succession(old=old, new=new, at=at, verdict=Verdict.SUPERSEDES, why=f"said by the {trust.value}")


def is_same_place(one: Statement, other: Statement) -> bool:
    """Say whether two statements are of one scope and resource: nothing reaches beyond them."""
    return one.scope is other.scope and one.resource_id == other.resource_id


def verdict_of(old: str, new: str, policy: SupersessionPolicy) -> Told | None:
    """Return what a later text does to an earlier one, and on what evidence; None where it does nothing.

    >>> verdict_of("The port is 8080.", "The port is 9090.", SupersessionPolicy())[0].value
    'supersedes'
    """
    if max(len(old), len(new)) > policy.max_chars:
        return None
    before = read(old)
    after = begun(read(new), before)
    told = _judged(before, after, policy)
    if told is None or told[0] is Verdict.UNSURE:
        told = _judged_by_clause(before, after, policy) or told
    if told is None or after.hypothetical or before.hypothetical:
        return None
    if before.core == after.core and before.denied == after.denied:
        return None
    verdict, why = told
    if verdict is Verdict.SUPERSEDES and (after.planned or (after.bounded and not before.bounded)):
        return Verdict.UNSURE, "planned" if after.planned else "bounded"
    return verdict, why


def _judged(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Return the first judgement that is sure, else the first.

    Most pairs only say what holds, both or neither with a denial: then only a value can tell, and little is looked at.
    """
    if after.is_plain and before.denied == after.denied:
        return _told("later value", sure=later_value(before, after, policy))
    unsure: Told | None = None
    for told in (
        _denied(before, after),
        _told("later value", sure=later_value(before, after, policy)),
        _told("later version", sure=later_version(before, after)),
        _told("later place", sure=later_place(before, after, policy)),
        _ended(before, after, policy),
        _nearly_denied(before, after, policy),
        _about_the_same(before, after, policy),
    ):
        if told is not None and told[0] is Verdict.SUPERSEDES:
            return told
        unsure = unsure or told
    return unsure


def _judged_by_clause(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Judge whether one clause of a later sentence gives another value: "Ines left, Paul is the product owner now"."""
    for part in after.clauses_now:
        if later_value(before, part, policy) or later_place(before, part, policy):
            return Verdict.SUPERSEDES, "later value"
    return None


def _told(why: str, *, sure: bool | None) -> Told | None:
    """Return a judgement of a value as a verdict."""
    return None if sure is None else (Verdict.SUPERSEDES if sure else Verdict.UNSURE, why)


def _denied(before: Reading, after: Reading) -> Told | None:
    """Judge whether one is the other with the other polarity."""
    opposite = before.denied != after.denied and bool(after.core) and before.core == after.core
    return (Verdict.SUPERSEDES, "polarity") if opposite else None


def _nearly_denied(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Judge whether one is nearly the other with the other polarity: a part of it may be what is denied."""
    if before.denied == after.denied or not (before.core and after.core):
        return None
    shared = len(before.core & after.core) / len(before.core | after.core)
    return (Verdict.UNSURE, "polarity") if shared >= policy.near_polarity else None


def _ended(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Judge whether something that the earlier statement affirms is said to have ended."""
    best: Told | None = None
    for ending in after.endings:
        told = _ended_by(ending, before, after, policy)
        if told is not None and (best is None or told[0] is Verdict.SUPERSEDES):
            best = told
    return best


def _ended_by(ending: Ending, before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    gone = ending.gone - after.subject or ending.gone
    found = {stem: other for stem in gone for other in before.stems if _is_one_word(stem, other)}
    hit = frozenset(found.values())
    denied = before.denied and not (before.contrast and not hit & before.contrast)
    if not hit or len(found) < policy.gone_share * len(gone) or denied:
        return None
    told_before = ending.new and ending.new <= before.stems and not after.bounded
    if any(earlier.gone & hit for earlier in before.endings) or told_before:
        return None
    rest = {stem for stem in before.stems - hit - before.dated - before.contrast if not stem.isdigit()}
    shared = rest & (after.stems - (ending.new - before.stems))
    further = {stem for stem in after.stems - gone - ending.new - after.dated - before.stems if not stem.isdigit()}
    stands = bool(telling(" ".join(before.words[before.holder :])) & hit) and before.holder >= 0
    subject = before.subject - hit
    same_subject = not subject or bool(subject & after.stems)
    all_found = len(found) == len(gone)
    whole = all_found and len(rest - shared) <= policy.short_stems
    if ending.sure and not ending.new and _opens(before, gone) and _opens(after, gone):
        return Verdict.SUPERSEDES, "ended"  # what it is all about
    if not ending.sure:
        sure = whole and stands and bool(subject & after.subject)
        return (Verdict.SUPERSEDES if sure else Verdict.UNSURE, "denied") if whole and (shared or not rest) else None
    repeats = whole and bool(rest) and not rest - shared
    all_of_it = all_found and not rest and len(gone) >= policy.tying_stems
    if repeats or all_of_it or (whole and stands and same_subject and (shared or not further)):
        part = before.lists and bool(rest - shared if stands else rest)  # of "we use X and Y", Y holds on when X ended
        return (Verdict.UNSURE, "part") if part else (Verdict.SUPERSEDES, "ended")
    tied = len(shared) >= policy.tying_stems or (bool(shared) and (whole or (stands and same_subject)))
    alone = whole and not further and (stands or len(gone) >= policy.tying_stems)
    named = all_found and len(gone) >= policy.naming_stems
    return (Verdict.UNSURE, "ended") if tied or alone or named else None


def _is_one_word(stem: str, other: str) -> bool:
    """Say whether two stems are of one word, or of a verb and its noun: "deliv" and "deliveri"."""
    return stem == other or (
        min(len(stem), len(other)) >= _LEAST_STEM and (stem.startswith(other) or other.startswith(stem))
    )


_LEAST_STEM = 5
"""Letters from which a stem that begins another one is of the same word."""


def _opens(reading: Reading, gone: frozenset[str]) -> bool:
    """Say whether a definite statement begins with just these stems: they are what it is about."""
    return reading.definite and bool(gone) and telling(" ".join(reading.words[: len(gone) + 1])) >= gone


def _about_the_same(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Judge whether a change is told of one thing: which part of the earlier statement it changes, nobody can say."""
    if not (after.changes or after.now) and not any(ending.sure for ending in after.endings):
        return None
    shared = len(before.stems & after.stems)
    smaller = min(len(before.stems), len(after.stems))
    same_opening = bool(_first(before)) and _first(before) == _first(after)
    enough = policy.tying_stems if same_opening else policy.shared_stems
    near = shared >= enough and shared >= policy.shared_share * smaller
    return (Verdict.UNSURE, CHANGE) if near else None


def _first(reading: Reading) -> frozenset[str]:
    """Return the stems of the first word that tells what a statement is about."""
    return next((found for word in reading.words if (found := telling(word))), frozenset())
