"""Which earlier memory a new statement takes the place of. Pure: statements in, verdicts out.

Precision comes first. Where two readings are possible the verdict is `unsure`: a person settles it. Nothing replaces
what is trusted more than itself, and nothing reaches beyond its own scope and resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from scrubjay.lifecycle.readings import (
    BE_WORDS,
    DEFINITE,
    USE_WORDS,
    Ending,
    Reading,
    begun,
    functional,
    is_past,
    kind_of,
    read,
    telling,
)
from scrubjay.policy import SupersessionPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import TRUST_ORDER, Scope, Trust


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
        if candidate.id == new.id or not _same_place(new, candidate):
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
    if not _same_place(new, old):
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


def _same_place(one: Statement, other: Statement) -> bool:
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
    if after.hypothetical or before.hypothetical or (before.core == after.core and before.denied == after.denied):
        return None
    told = (
        _denied(before, after)
        or _later_value(before, after, policy)
        or _later_version(before, after)
        or _ended(before, after, policy)
        or _nearly_denied(before, after, policy)
        or _about_the_same(before, after, policy)
    )
    if told is None:
        return None
    verdict, why = told
    if verdict is Verdict.SUPERSEDES and (after.planned or (after.bounded and not before.bounded)):
        return Verdict.UNSURE, "planned" if after.planned else "bounded"
    return verdict, why


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


@dataclass(frozen=True, slots=True)
class _Frame:
    """Two sentences that differ in one run of words: what stands before it and after it, and what each has there."""

    prefix: tuple[str, ...]
    suffix: tuple[str, ...]
    olds: tuple[str, ...]
    news: tuple[str, ...]

    @property
    def is_alike(self) -> bool:
        """Whether both have the same kind of value, and neither is the other with more words."""
        return kind_of(self.olds) == kind_of(self.news) and not _one_holds_other(self)


def _frame(before: Reading, after: Reading, policy: SupersessionPolicy) -> _Frame | None:
    a, b = before.words, after.words
    shorter = min(len(a), len(b))
    start = next((n for n in range(shorter) if a[n] != b[n]), shorter)
    end = next((n for n in range(shorter - start) if a[-1 - n] != b[-1 - n]), shorter - start)
    olds, news = before.shown[start : len(a) - end], after.shown[start : len(b) - end]
    if not (0 < len(olds) <= policy.value_words and 0 < len(news) <= policy.value_words):
        return None
    return _Frame(a[:start], a[len(a) - end :], olds, news)


def _later_value(before: Reading, after: Reading, policy: SupersessionPolicy) -> Told | None:
    """Judge whether one is the other with another value in the place of one that a thing has once."""
    if before.denied or after.denied:
        return None
    frame = _frame(before, after, policy)
    if frame is None:
        return None
    sure = _value_in_frame(frame, before, after)
    if sure is None and _may_be_value(frame, after):
        sure = False
    return None if sure is None else (Verdict.SUPERSEDES if sure else Verdict.UNSURE, "later value")


def _later_version(before: Reading, after: Reading) -> Told | None:
    """Judge whether something that the earlier statement names with a version is said to have another one now.

    Where the earlier one says where it is so, the later one must say it of there.
    """
    if not (after.raised or after.now or after.changes) or before.denied or after.denied:
        return None
    was, now = dict(before.versions), dict(after.versions)
    for name in was.keys() & now.keys():
        numbers = {number for other, number in (*before.versions, *after.versions) if other == name}
        versions = " ".join(f"{number} v{number}" for number in numbers)
        rest = before.stems - telling(f"{name} version runs {versions}") - before.dated
        said = {stem for stem in rest if not stem.isdigit()}
        if was[name] == now[name] or (said and not said & after.stems):
            continue
        sure = said <= after.stems and len(numbers) == _OLD_AND_NEW
        return (Verdict.SUPERSEDES if sure else Verdict.UNSURE), "later version"
    return None


_OLD_AND_NEW = 2
"""Versions that two statements name of a thing of which one is the other's successor."""


def _value_in_frame(frame: _Frame, before: Reading, after: Reading) -> bool | None:
    """Say whether a value replaces (True), may (False), or both may hold (None)."""
    if not frame.prefix:
        return _has_one_role(frame, after) or None
    if functional(frame.prefix) or functional(frame.prefix[:-1]):
        return _value_of_relation(frame, before, after)
    if frame.prefix[-1] in BE_WORDS:
        return _value_of_being(frame, after)
    if frame.prefix[-1] in USE_WORDS:
        return _value_of_use(frame, after)
    return _value_further_on(frame, after)


def _may_be_value(frame: _Frame, after: Reading) -> bool:
    """Say whether a value may replace another by signs alone: it is bounded in time or new, or the thing is one."""
    around = (*frame.prefix, *frame.suffix)
    if _one_holds_other(frame) or is_past(around) or not telling(" ".join(around)):
        return False
    if (BE_WORDS | USE_WORDS) & {word.lower() for word in (*frame.olds, *frame.news)}:
        return False  # another thing is told of
    named = frame.is_alike and kind_of(frame.news) != "word" and _unit(frame.olds) == _unit(frame.news)
    return after.bounded or (bool(frame.prefix) and (after.now or (named and after.definite)))


def _unit(value: tuple[str, ...]) -> frozenset[str]:
    """Return what a number counts; nothing for a value that is none."""
    return telling(" ".join(word for word in value if kind_of((word,)) == "word"))


def _has_one_role(frame: _Frame, after: Reading) -> bool:
    """Say whether the value is all that stands before "is the …": a role that one has at a time."""
    role = bool(frame.suffix) and frame.suffix[0] in BE_WORDS and bool(telling(" ".join(frame.suffix[1:])))
    one = role and any(f" {frame.suffix[0]} {word} " in f" {after.text.lower()} " for word in DEFINITE)
    return one and frame.is_alike and kind_of(frame.news) != "word"


# Each of these says whether the value replaces (True), may (False), or both may hold (None).


def _value_of_relation(frame: _Frame, before: Reading, after: Reading) -> bool | None:
    if not (before.subject or frame.suffix):
        return (after.now and frame.is_alike) or None  # an order: "answer in German"
    # More words in the old value say something besides, which may still hold.
    return bool(before.subject) and not _one_holds_other(frame) and len(frame.olds) <= len(frame.news) + 1


def _value_of_being(frame: _Frame, after: Reading) -> bool | None:
    if not telling(" ".join(frame.prefix)):
        return None
    kind = kind_of(frame.news)
    if frame.is_alike and (kind == "number" or (kind == "name" and after.definite)):
        return True
    if after.now and after.definite and not _one_holds_other(frame):
        return True
    return False if (frame.is_alike and kind == "name") or after.now else None


def _value_of_use(frame: _Frame, after: Reading) -> bool | None:
    purpose = bool(telling(" ".join(frame.suffix)))
    if not (purpose or after.now):
        return None
    return purpose and (after.now or frame.suffix[0] == "as")


def _value_further_on(frame: _Frame, after: Reading) -> bool | None:
    numbers = kind_of(frame.news) == kind_of(frame.olds) == "number"
    holds = bool(BE_WORDS & set(frame.prefix)) or (after.now and not is_past(frame.prefix))
    if not (numbers and holds and telling(" ".join(frame.prefix))):
        return None
    return after.now or after.definite


def _one_holds_other(frame: _Frame) -> bool:
    """Say whether one value holds the other: more of the same is no other value."""
    one, other = {word.lower() for word in frame.olds}, {word.lower() for word in frame.news}
    return one <= other or other <= one


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
    if repeats or (whole and stands and same_subject and (shared or not further)):
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
