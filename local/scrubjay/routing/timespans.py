"""Times in a question that bound what it asks about: "last Tuesday", "in March", "since the 5th", "the past two weeks".

`dates` reads days, weeks, months and years; here they become bounds by the words around them, and what a person means
by "lately" is added. Only times that have begun bound anything: nothing was said in a time to come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from scrubjay.dates import DAY_MS, EPOCH, MONTH_OF, SENTENCE_REACH, WEEKDAYS, DateMention, find_dates
from scrubjay_shared.clock import Millis

RECENT_DAYS = 14
"""What "recently" and "lately" reach back: people seldom mean more than two weeks."""

LONGEST_DAYS = 999 * 365
"""The furthest that anything reaches back: a question asked earlier than that in the calendar names no such time."""

UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
COUNTS = {"a": 1, "an": 1, "one": 1, "couple": 2, "two": 2, "three": 3, "few": 3, "several": 4, "four": 4, "five": 5,
          "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Timespan:
    """A time in UTC milliseconds, `until` excluded; None is without a bound. `words` are those that name it."""

    since: Millis | None
    until: Millis | None
    words: str

    def holds(self, at: int) -> bool:
        """Say whether a moment lies in it."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def days(self, utc_offset: int) -> tuple[date, date] | None:
        """Return its first and its last civil day, None where it has no beginning or no end."""
        if self.since is None or self.until is None or self.until <= self.since:
            return None
        first, last = (
            date.fromordinal((at + utc_offset * 60_000) // DAY_MS + EPOCH) for at in (self.since, self.until - 1)
        )
        return first, last


def _pattern(words: str, *, case: bool = False) -> re.Pattern[str]:
    return re.compile(words, re.NOFLAG if case else re.IGNORECASE)


_NUMBER = r"(?:\d{1,3}|couple(?: of)?|two|three|few|several|four|five|six|seven|eight|nine|ten|twelve)"
_UNIT = r"(?:day|week|month|year)"
_BEFORE = _pattern(r"\b(since|after|before|until|till|up to|prior to|following)\s+(?:about\s+|around\s+|the\s+)?$")
_BETWEEN = _pattern(r"^\s*(?:and|to|until|till|through|[-–])\s+(?:in\s+|on\s+|the\s+)?$")
_OPENS = _pattern(r"\b(?:between|from)\s+(?:the\s+)?$")

Days = tuple[int, int]
"""Civil days counted from 1970: the first, and the first that is no longer meant."""

Reader = Callable[[re.Match[str], date], Days]


def _rolling(match: re.Match[str], today: date) -> Days:
    last = today.toordinal() - EPOCH
    return last - _count(match["n"]) * UNIT_DAYS[match["unit"].lower()], last + 1


def _same_day(_: re.Match[str], today: date) -> Days:
    return today.toordinal() - EPOCH, today.toordinal() - EPOCH + 1


def _recently(_: re.Match[str], today: date) -> Days:
    return today.toordinal() - EPOCH - RECENT_DAYS, today.toordinal() - EPOCH + 1


def _past_weekday(match: re.Match[str], today: date) -> Days:
    back = (today.weekday() - WEEKDAYS.index(match["day"].lower())) % 7 or 7
    day = today.toordinal() - EPOCH - back
    return day, day + 1


def _past_month(match: re.Match[str], today: date) -> Days:
    """Read a month's name as the latest such month that has begun."""
    month = MONTH_OF[match["m"].lower()]
    first = date(today.year - (month > today.month), month, 1)
    after = (first + timedelta(days=32)).replace(day=1)
    return first.toordinal() - EPOCH, after.toordinal() - EPOCH


READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (
        _pattern(
            rf"\b(?:the|these|this|my|our) (?:last|past|previous) (?:(?P<n>{_NUMBER}|an?|one) )?(?P<unit>{_UNIT})s?\b"
            r"(?! (?:of|before)\b)"
        ),
        _rolling,
    ),
    (_pattern(rf"\b(?:last|past|previous) (?P<n>{_NUMBER}) (?P<unit>{_UNIT})s\b"), _rolling),
    (_pattern(r"\b(?:earlier today|so far today|just now|a moment ago|\w+ (?:hour|minute)s? ago)\b"), _same_day),
    (_pattern(r"\b(?:recently|lately|of late|these days|in recent (?:days|weeks))\b"), _recently),
    (
        _pattern(
            r"(?<!every )(?<!each )(?<!next )(?<!by )\b(?P<day>(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b(?!s)"
        ),
        _past_weekday,
    ),
    (
        _pattern(
            r"\b(?:of|around|early|late|mid|back in|the|our|my|mid-)\s+(?P<m>January|February|March|April|June|July|"
            r"August|September|October|November|December)\b(?!\s+(?:\d|on\b))",
            case=True,
        ),
        _past_month,
    ),
)
"""What `dates` leaves alone, because in prose it may mean something else: in a question it bounds what is asked."""


def timespans(question: str, now: Millis, utc_offset: int = 0) -> tuple[Timespan, ...]:
    """Return the times that bound a question, in their order. `now` and the offset in minutes are the person's."""
    text = question.strip()[: 4 * SENTENCE_REACH]
    asked = text if text.endswith(("?", ".", "!")) else f"{text}?"
    mentions = [mention for mention in find_dates(asked, now, utc_offset) if mention.start < now]
    found = _bounded(asked, mentions, now)
    taken = [(mention.span_start, mention.span_end) for mention in mentions]
    days = (now + utc_offset * 60_000) // DAY_MS + EPOCH
    if not LONGEST_DAYS < days <= date.max.toordinal():
        return tuple(span for _, span in found)
    today = date.fromordinal(days)
    for pattern, read in READERS:
        for match in pattern.finditer(asked):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            first, after = read(match, today)
            since, until = (Millis(max(day * DAY_MS - utc_offset * 60_000, 0)) for day in (first, after))
            found.append((match.start(), Timespan(since=since, until=until, words=match.group().strip())))
            taken.append(match.span())
    return tuple(span for _, span in sorted(found, key=lambda entry: entry[0]))


def _bounded(text: str, mentions: Sequence[DateMention], now: Millis) -> list[tuple[int, Timespan]]:
    """Return the spans that some dates mean with the words before and between them, each with its place."""
    found: list[tuple[int, Timespan]] = []
    skip = False
    for at, mention in enumerate(mentions):
        following = mentions[at + 1] if at + 1 < len(mentions) else None
        if skip:
            skip = False
            continue
        before = text[: mention.span_start]
        between = "" if following is None else text[mention.span_end : following.span_start]
        if following is not None and _BETWEEN.match(between) and (_OPENS.search(before) or "to" in between):
            words = text[mention.span_start : following.span_end]
            found.append((mention.span_start, Timespan(since=mention.start, until=following.end, words=words)))
            skip = True
            continue
        since, until = _of(_BEFORE.search(before), mention, now)
        words = text[mention.span_start : mention.span_end]
        if since is None or since < now:
            found.append((mention.span_start, Timespan(since=since, until=until, words=words)))
    return found


def _of(word: re.Match[str] | None, mention: DateMention, now: Millis) -> tuple[Millis | None, Millis | None]:
    match word and word[1].lower():
        case "since":
            return mention.start, Millis(now + DAY_MS)
        case "after" | "following":
            return mention.end, Millis(now + DAY_MS)
        case "before" | "prior to":
            return None, mention.start
        case "until" | "till" | "up to":
            return None, mention.end
        case _:
            return mention.start, mention.end


def _count(word: str | None) -> int:
    if word is None:
        return 1
    plain = word.lower().split()[0]
    return COUNTS.get(plain) or int(plain)
