"""Whether a later sentence gives a thing another value, version or place than an earlier one. Pure.

Each judgement says that the later one replaces the earlier (True), that it may (False), or nothing (None), where both
may hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from scrubjay.lifecycle.readings import (
    BE_WORDS,
    DEFINITE,
    USE_WORDS,
    Reading,
    functional,
    is_past,
    kind_of,
    telling,
)
from scrubjay.policy import SupersessionPolicy

_RELATING = frozenset({"for", "in", "on", "at", "of", "with", "by", "from", "to", "during", "per", "under", "over"})
"""What a value may be told of: "3 for payments"."""
_OF_ANOTHER = frozenset({"for", "of", "per", "during", "in"})
"""Of these, words after which it is told of another thing; "on db-2" only says more of the same."""
_JOINED = frozenset(
    {"due", "written", "built", "kept", "cut", "sent", "held", "run", "made", "done", "set", "behind", "via", "through"}
    | {"into", "onto", "as", "like", "without"}
)
_LEAST_JOINED = 5
"""Letters from which a word in -ed says how something is told of a thing: "hosted", not "red"."""
_STATES = frozenset(
    {"down", "up", "empty", "full", "slow", "fast", "happy", "broken", "ready", "done", "fine", "ok", "okay", "stable"}
    | {"live", "gone", "dead", "better", "worse", "busy", "available", "fixed", "merged", "running", "working"}
    | {"online", "offline", "complete", "finished", "stuck", "blocked", "fire", "hold", "vacation", "sick"}
)
"""How something is for a while, which is no other value of what it is."""
_LOCATES = re.compile(
    r"\b(?:(?:is|are|was|were) )?(?P<verb>runs?|lives?|sits?|goes|go|hosted|deployed|stored|kept|located|published|"
    r"sent|tracked) (?P<place>on|in|at|to)\b|\b(?:is|are)(?: (?P<at>on|in|at|to))?(?= )"
)
"""Words that say where something is."""


@dataclass(frozen=True, slots=True)
class _Located:
    """A reading in which a thing "is" where it runs, lives or is stored, and by which verb and word of place it did."""

    reading: Reading
    verb: str
    place: str

    def is_comparable(self, other: _Located) -> bool:
        """Say whether both tell where a thing is in the same sense, as "runs on" and "is on" do."""
        same_verb = self.verb == other.verb or not (self.verb and other.verb)
        return same_verb and (self.place == other.place or not (self.place and other.place))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Two sentences that differ in one run of words: what stands before it and after it, and what each has there."""

    prefix: tuple[str, ...]
    suffix: tuple[str, ...]
    olds: tuple[str, ...]
    news: tuple[str, ...]

    @property
    def has_two_places(self) -> bool:
        """Whether both values are told of something, each of another: "3 for payments" and "5 for mails"."""
        return all(_OF_ANOTHER & {word.lower() for word in value[1:-1]} for value in (self.olds, self.news))

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


def later_value(before: Reading, after: Reading, policy: SupersessionPolicy) -> bool | None:
    """Judge whether one is the other with another value in the place of one that a thing has once."""
    if before.denied or after.denied:
        return None
    frame = _frame(before, after, policy)
    if frame is None or frame.has_two_places:
        return None
    sure = _value_in_frame(frame, before, after)
    return False if sure is None and _may_be_value(frame, after) else sure


def later_place(before: Reading, after: Reading, policy: SupersessionPolicy) -> bool | None:
    """Judge whether a thing is said to be elsewhere now, in whatever words each says that it is there.

    "Our CI runs on CircleCI" and "CI is on GitHub Actions now" say what CI is on.
    """
    if before.denied or after.denied or not (after.now or after.changes):
        return None
    was, now = _located(before), _located(after)
    if was is None or now is None or not (was.verb or was.place) or not was.is_comparable(now):
        return None
    frame = _frame(was.reading, now.reading, policy)
    if frame is None or frame.has_two_places or not frame.prefix or frame.prefix[-1] not in BE_WORDS:
        return False if _is_of_namesake(was.reading, now.reading) else None
    if not frame.is_alike:
        return None
    sure = _value_of_being(frame, after, definite=before.definite or after.definite)
    return sure and (bool(was.verb) or kind_of(frame.news) != "word")


def _is_of_namesake(was: Reading, now: Reading) -> bool:
    """Say whether one names the thing by fewer words: "the team standup is at 9:30", "the standup moved to 10:00"."""
    if min(was.holder, now.holder) < 1:
        return False
    old, new = was.words[: was.holder], now.words[: now.holder]
    olds, news = was.shown[was.holder + 1 :], now.shown[now.holder + 1 :]
    fewer, more = sorted((was.subject, now.subject), key=len)
    alike = kind_of(olds) == kind_of(news) != "word" and olds != news and max(len(olds), len(news)) <= _PLACE_WORDS
    return old[-1] == new[-1] and bool(fewer) and fewer < more and alike


_PLACE_WORDS = 2
"""Words of a place or time, at most."""


def later_version(before: Reading, after: Reading) -> bool | None:
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
        return said <= after.stems and len(numbers) == _OLD_AND_NEW
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
        return _value_of_being(frame, after, definite=before.definite or after.definite)
    if frame.prefix[-1] in USE_WORDS:
        return _value_of_use(frame, after)
    return _value_further_on(frame, after)


def _may_be_value(frame: _Frame, after: Reading) -> bool:
    """Say whether a value may replace another by signs alone: it is bounded in time or new, or the thing is one."""
    if not (after.bounded or (frame.prefix and (after.now or after.definite))):
        return False
    around = (*frame.prefix, *frame.suffix)
    if _one_holds_other(frame) or is_past(around) or not telling(" ".join(around)):
        return False
    if not (after.bounded or _is_of_one_kind(frame)):
        return False
    if (BE_WORDS | USE_WORDS) & {word.lower() for word in (*frame.olds, *frame.news)}:
        return False  # another thing is told of
    named = frame.is_alike and kind_of(frame.news) != "word" and _unit(frame.olds) == _unit(frame.news)
    of_being = bool(frame.prefix) and frame.prefix[-1] in BE_WORDS
    now = after.now and (kind_of(frame.olds) == kind_of(frame.news) or of_being)
    return after.bounded or now or (named and after.definite)


def _unit(value: tuple[str, ...]) -> frozenset[str]:
    """Return what a number counts; nothing for a value that is none."""
    return telling(" ".join(word for word in value if kind_of((word,)) == "word"))


def _has_one_role(frame: _Frame, after: Reading) -> bool:
    """Say whether the value is all that stands before "is the …": a role that one has at a time."""
    role = bool(frame.suffix) and frame.suffix[0] in BE_WORDS and bool(telling(" ".join(frame.suffix[1:])))
    one = role and any(f" {frame.suffix[0]} {word} " in f" {after.text.lower()} " for word in DEFINITE)
    return one and frame.is_alike and kind_of(frame.news) != "word"


def _value_of_relation(frame: _Frame, before: Reading, after: Reading) -> bool | None:
    if not (before.subject or frame.suffix):
        return (after.now and frame.is_alike) or None  # an order: "answer in German"
    # More words in the old value say something besides, which may still hold.
    return bool(before.subject) and not _one_holds_other(frame) and len(frame.olds) <= len(frame.news) + 1


def _value_of_being(frame: _Frame, after: Reading, *, definite: bool) -> bool | None:
    if not telling(" ".join(frame.prefix)) or not _is_of_one_kind(frame):
        return None
    kind = kind_of(frame.news)
    if frame.is_alike and (kind == "number" or (kind == "name" and definite)):
        return True
    if after.now and definite and frame.is_alike:
        return True
    return False if (frame.is_alike and kind == "name") or after.now else None


def _is_of_one_kind(frame: _Frame) -> bool:
    """Say whether both values answer one question about the thing.

    "In Frankfurt" and "down" do not, nor "written in Markdown" and "in the wiki", nor "9:30" and "room 4".
    """
    (old, was), (new, now) = (_relation(value) for value in (frame.olds, frame.news))
    olds, news = ({word.lower() for word in value} for value in (frame.olds, frame.news))
    if news & _STATES and "to" not in news and not olds & _STATES:
        return False
    further_on = bool(new) and set(new) <= olds and _RELATING.issuperset(old)  # "at 9:00 in room 4", "in room 5"
    if kind_of(frame.olds) == kind_of(frame.news) == "number":
        return (old == new or {old, new} == {(), ("at",)} or further_on) and _measure(was) == _measure(now)
    return old == new or further_on


def _measure(value: tuple[str, ...]) -> frozenset[str]:
    """Return what a number measures: of times, sizes and sums only that it is one of these."""
    value = tuple(word for word in value if word.lower() not in _OF_THE_CLOCK)
    units = {word.lower().removesuffix("s") for word in value}
    return next((measured for measured in _MEASURES if units & measured), _unit(value))


_OF_THE_CLOCK = frozenset({"o'clock", "am", "pm"})
"""What may stand behind a time of day, and measures nothing."""
_MEASURES = tuple(
    frozenset(units.split())
    for units in (
        "ms msec second sec minute min hour day week month year",
        "b kb mb gb tb kib mib gib byte",
        "euro eur dollar usd cent pound",
    )
)


def _relation(value: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words with which a value says how it is one, as "written in" does, and the rest."""
    at = next((n for n, word in enumerate(value) if not _is_relation(word.lower())), len(value))
    return tuple(word.lower() for word in value[:at]), value[at:]


def _value_of_use(frame: _Frame, after: Reading) -> bool | None:
    purpose = bool(telling(" ".join(frame.suffix)))
    if not (purpose or after.now):
        return None
    return purpose and (after.now or frame.suffix[0] == "as")


def _value_further_on(frame: _Frame, after: Reading) -> bool | None:
    if (BE_WORDS | USE_WORDS) & {word.lower() for word in (*frame.olds, *frame.news)}:
        return None  # another thing is told of
    numbers = kind_of(frame.news) == kind_of(frame.olds) == "number"
    holds = bool(BE_WORDS & set(frame.prefix)) or (after.now and not is_past(frame.prefix))
    if not (numbers and holds and telling(" ".join(frame.prefix))):
        return None
    return after.now or after.definite


def _one_holds_other(frame: _Frame) -> bool:
    """Say whether one value holds the other: more of the same is no other value."""
    one, other = {word.lower() for word in frame.olds}, {word.lower() for word in frame.news}
    return one <= other or other <= one


def _located(reading: Reading) -> _Located | None:
    """Return a reading as one that says where a thing is; None where it does not."""
    found = _LOCATES.search(" ".join(reading.words))
    if found is None:
        return None
    at, cut = len(found.string[: found.start()].split()), len(found[0].split())
    words = (*reading.words[:at], "is", *reading.words[at + cut :])
    plain = replace(reading, words=words, shown=(*reading.shown[:at], "is", *reading.shown[at + cut :]), holder=at)
    verb = (found["verb"] or "").removesuffix("s").removesuffix("e")
    return _Located(plain, verb, found["place"] or found["at"] or "")


def _is_relation(word: str) -> bool:
    """Say whether a word in lower case says how a value is one of a thing: "in", "due", "hosted"."""
    return word in _RELATING | _JOINED or (word.endswith("ed") and len(word) >= _LEAST_JOINED)
