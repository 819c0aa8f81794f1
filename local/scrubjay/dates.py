"""Dates in English prose, with their spans, on the person's calendar. Precision over recall: "may" is not a month.

A mention is found only when its words leave no other reading: a bare "Friday" without a tense, "5/7/2023", or a month's
name without a day, a year or a preposition are left alone. Weeks begin on Monday; seasons are the northern ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from scrubjay_shared.clock import Millis

DAY_MS = 86_400_000
EPOCH = date(1970, 1, 1).toordinal()
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MONTH_OF = {name.lower(): n for n, name in enumerate(MONTHS, 1)} | {
    name[:3].lower(): n for n, name in enumerate(MONTHS, 1)
}
MONTH_OF["sept"] = 9
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
COUNTS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COUNT_OF = {word: n for n, word in enumerate(COUNTS, 1)} | {"an": 1, "one": 1}
SENTENCE_REACH = 300
"""Characters on each side of a mention that are read for its verb: longer than almost every English sentence."""


class Grain(StrEnum):
    """How wide a mention is. `VAGUE` is a period whose ends nobody named ("a few days ago")."""

    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    SEASON = "season"
    YEAR = "year"
    VAGUE = "vague"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """Words that mean a time. `start` is inclusive, `end` exclusive, both UTC; `text[span]` is the words.

    `phrase` says the same without an anchor: "7 May 2023", "the week of 1 May 2023", "June 2023", "2022".
    `relative` is true when the words need the anchor to be understood ("yesterday", "last May").
    """

    span_start: int
    span_end: int
    start: Millis
    end: Millis
    phrase: str
    relative: bool
    grain: Grain


@dataclass(frozen=True, slots=True)
class Period:
    """Civil days from `first` up to, not including, `after`, and their name."""

    first: date
    after: date
    phrase: str
    grain: Grain


@dataclass(frozen=True, slots=True)
class SpeechTime:
    """The circumstances of a text: the civil day it was said on, and the tense of its undated verbs.

    `tense` is -1 for the past, 1 for the future, 0 when the words do not tell.
    """

    today: date
    tense: int


Interpreter = Callable[[re.Match[str], SpeechTime], Period | None]


# Regular expressions. Month names count in lower case only where nothing else could stand.
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_LONG_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tues?|wed|thurs?|fri|sat|sun)"
_SEASON = r"(?:spring|summer|autumn|fall|winter)"
_YEAR = r"(?:19|20)\d\d"
_COUNT = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[1-9]\d{0,2})"
_VAGUE = r"(?:(?:a |the )?(?:last |past )?(?:few|couple(?: of)?)|several|some)"
_UNIT = r"(?:day|week(?:end)?|month|year)"
_PART = r"(?: (?:early )?(?:morning|afternoon|evening|night))?"
# "last Friday", but not "for the last week", "the last week of school", or "the last year I lived there"
_FREE = r"(?<!\bthe )(?<!\bmy )(?<!\bour )(?<!\bhis )(?<!\bher )"

HINT = re.compile(
    rf"\d{{4}}|\d[/-]\d|\d(?:st|nd|rd|th)\b|\b(?:yesterday|today|tonight|tomorrow|ago|back|next|last|this|past|other|"
    rf"before last|in|on|by|since|{_MONTH})\b",
    re.IGNORECASE,
)
PAST = re.compile(
    r"\b(?:did|didn't|was|were|wasn't|weren't|had|went|got|saw|came|took|made|met|left|told|said|bought|"
    r"found|felt|gave|ran|"
    r"began|became|won|lost|held|spent|wrote|read|drove|flew|ate|grew|kept|thought|heard|paid|sold|sent|spoke|taught|"
    r"built|broke|chose|fell|led|put|set|since|ago|\w{2,}ed)\b",
    re.IGNORECASE,
)
FUTURE = re.compile(
    r"\b(?:can|can't|will|won't|going to|gonna|shall|plan(?:s|ning)? (?:to|on|a)|hop(?:e|ing) to|upcoming|due|deadline|"
    r"(?:have|has|there's) an? |is on|are on|is in|are in|starts?|begins?|ends?|turns?|expires?|runs out|"
    r"finish(?:es)?|leaves?|arrives?|opens?|launch(?:es)?|(?:off|away|back) (?:to|from|on|in|until))\b|"
    r"'ll\b|\b\w+ing (?:on|in)\b",
    re.IGNORECASE,
)


def find_dates(text: str, anchor: Millis, utc_offset: int = 0) -> tuple[DateMention, ...]:
    """Return the dates in `text`, in order and not overlapping.

    `anchor` is when it was said (or now, for a question); `utc_offset` is the person's minutes east of UTC then. Days
    outside the years 1 to 9999 do not exist here; an anchor outside them finds nothing.
    """
    if not HINT.search(text):
        return ()
    days = (anchor + utc_offset * 60_000) // DAY_MS + EPOCH
    if not date.min.toordinal() <= days <= date.max.toordinal():
        return ()
    today = date.fromordinal(days)
    found = sorted(_mentions(text, today, utc_offset), key=lambda m: (m.span_start, -m.span_end))
    kept: list[DateMention] = []
    for mention in found:
        if kept and mention.span_start < kept[-1].span_end:
            if mention.span_end - mention.span_start > kept[-1].span_end - kept[-1].span_start:
                kept[-1] = mention
        else:
            kept.append(mention)
    return tuple(kept)


def _mentions(text: str, today: date, utc_offset: int) -> Iterator[DateMention]:
    for pattern, interpret, relative in RULES:
        for match in pattern.finditer(text):
            start, end = match.span("date") if "date" in pattern.groupindex else match.span()
            try:
                period = interpret(match, SpeechTime(today, _tense(text, start, end)))
            except (ValueError, OverflowError):  # 31 February, or beyond the calendar's ends
                continue
            if period is not None:
                yield DateMention(
                    span_start=start,
                    span_end=end,
                    start=_millis(period.first, utc_offset),
                    end=_millis(period.after, utc_offset),
                    phrase=period.phrase,
                    relative=relative,
                    grain=period.grain,
                )


def _tense(text: str, start: int, end: int) -> int:
    """Return the tense of the sentence around a span: the last one before it, else the first after it.

    A deadline lies ahead whatever the verb; a question without a tense looks back.
    """
    before = re.split(r"[.!?;\n]", text[max(0, start - SENTENCE_REACH) : start])[-1]
    tail = re.match(r"[^.!?;\n]*", text[end : end + SENTENCE_REACH])
    after = tail.group() if tail else ""
    if re.search(r"(?i)\b(?:by|until|till|due)\s+$", before):
        return 1
    asked = text[end + len(after) : end + len(after) + 1] == "?"
    for piece, side in ((before, -1), (after, 0)):
        past, future = ([m.start() for m in pattern.finditer(piece)] for pattern in (PAST, FUTURE))
        if past or future:
            nearest = max if side else min
            return -1 if nearest(past or future) == nearest(past + future) and past else 1
    return -1 if asked else 0


def _millis(day: date, utc_offset: int) -> Millis:
    return Millis((day.toordinal() - EPOCH) * DAY_MS - utc_offset * 60_000)


def _day_name(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _day(day: date) -> Period:
    return Period(day, day + timedelta(days=1), _day_name(day), Grain.DAY)


def _week(day: date) -> Period:
    monday = day - timedelta(days=day.weekday())
    return Period(monday, monday + timedelta(days=7), f"the week of {_day_name(monday)}", Grain.WEEK)


def _weekend(day: date) -> Period:
    saturday = day + timedelta(days=5 - day.weekday())
    return Period(saturday, saturday + timedelta(days=2), f"the weekend of {_day_name(saturday)}", Grain.WEEKEND)


def _month(index: int) -> Period:
    """Return the period of the month `index` counted as `year * 12 + month - 1`."""
    first, after = (date(i // 12, i % 12 + 1, 1) for i in (index, index + 1))
    return Period(first, after, f"{MONTHS[first.month - 1]} {first.year}", Grain.MONTH)


def _year(year: int) -> Period:
    return Period(date(year, 1, 1), date(year + 1, 1, 1), str(year), Grain.YEAR)


def _season(name: str, year: int) -> Period:
    index = year * 12 + SEASONS[name] - 1
    return Period(_month(index).first, _month(index + 3).first, f"{name} {year}", Grain.SEASON)


def _weekday(name: str) -> int:
    return next(n for n, day in enumerate(WEEKDAYS) if day[:3] == name[:3].lower())


def _count(word: str) -> int:
    return COUNT_OF.get(word.lower()) or int(word)


def _stepped(unit: str, steps: int, today: date) -> Period:
    """Return the calendar unit that lies `steps` units from today's."""
    match unit:
        case "day":
            return _day(today + timedelta(days=steps))
        case "week":
            return _week(today + timedelta(weeks=steps))
        case "weekend":
            return _weekend(today + timedelta(weeks=steps))
        case "month":
            return _month(today.year * 12 + today.month - 1 + steps)
        case _:
            return _year(today.year + steps)


def _iso(match: re.Match[str], _: SpeechTime) -> Period:
    return _day(date(int(match["y"]), int(match["m"]), int(match["d"])))


def _slashed(match: re.Match[str], _: SpeechTime) -> Period | None:
    """Read d/m/y or m/d/y where only one of the two is a date."""
    a, b, year = int(match["a"]), int(match["b"]), int(match["y"])
    if a == b:
        return _day(date(year, a, b))
    if a > 12 >= b:
        return _day(date(year, b, a))
    if b > 12 >= a:
        return _day(date(year, a, b))
    return None


def _full(match: re.Match[str], _: SpeechTime) -> Period:
    return _day(date(int(match["y"]), MONTH_OF[match["m"].lower()], int(match["d"])))


def _month_year(match: re.Match[str], _: SpeechTime) -> Period:
    return _month(int(match["y"]) * 12 + MONTH_OF[match["m"].lower()] - 1)


def _day_month(match: re.Match[str], said: SpeechTime) -> Period | None:
    if said.tense == 0:
        return None
    day = date(said.today.year, MONTH_OF[match["m"].lower()], int(match["d"]))
    if said.tense < 0 and day > said.today:
        day = day.replace(year=day.year - 1)
    elif said.tense > 0 and day < said.today:
        day = day.replace(year=day.year + 1)
    return _day(day)


def _day_of_month(match: re.Match[str], said: SpeechTime) -> Period | None:
    if said.tense == 0:
        return None
    index = said.today.year * 12 + said.today.month - 1
    if (int(match["d"]) - said.today.day) * said.tense < 0:
        index += said.tense
    return _day(_month(index).first.replace(day=int(match["d"])))


def _in_month(match: re.Match[str], said: SpeechTime) -> Period | None:
    return _near_month(MONTH_OF[match["m"].lower()], said, said.tense) if said.tense else None


def _near_month(month: int, said: SpeechTime, direction: int) -> Period:
    """Return the nearest such month in that direction (-1 past, 1 future); this month counts."""
    year = said.today.year
    if (month - said.today.month) * direction < 0:
        year += direction
    return _month(year * 12 + month - 1)


def _plain_day(match: re.Match[str], said: SpeechTime) -> Period:
    word = " ".join(match["word"].lower().split())
    steps = {
        "yesterday": -1,
        "last night": -1,
        "the day before yesterday": -2,
        "tomorrow": 1,
        "the day after tomorrow": 2,
    }
    return _day(
        said.today + timedelta(days=next((n for w, n in steps.items() if word == w or word.startswith(w + " ")), 0))
    )


def _which_unit(match: re.Match[str], said: SpeechTime) -> Period:
    unit = match["unit"].lower()
    return _stepped(unit, {"last": -1, "past": -1, "this": 0, "next": 1}[match["which"].lower()], said.today)


def _before_last(match: re.Match[str], said: SpeechTime) -> Period:
    return _stepped(match["unit"].lower(), -2, said.today)


def _which_weekday(match: re.Match[str], said: SpeechTime) -> Period:
    """Read "last Friday" as the latest one before today, "next Friday" as next week's, "this Friday" as the nearest."""
    ahead = (_weekday(match["day"]) - said.today.weekday()) % 7
    match match["which"].lower():
        case "last" | "past":
            return _day(said.today + timedelta(days=ahead - 7))
        case "next":
            return _day(said.today + timedelta(days=_weekday(match["day"]) - said.today.weekday() + 7))
        case _:
            return _day(said.today + timedelta(days=ahead - 7 if said.tense < 0 and ahead else ahead))


def _on_weekday(match: re.Match[str], said: SpeechTime) -> Period | None:
    ahead = (_weekday(match["day"]) - said.today.weekday()) % 7
    if said.tense == 0:
        return None
    return _day(said.today + timedelta(days=ahead if said.tense > 0 else ahead - 7))


def _which_month(match: re.Match[str], said: SpeechTime) -> Period:
    month, today = MONTH_OF[match["m"].lower()], said.today
    match match["which"].lower():
        case "last" | "past":
            return _month((today.year - (month >= today.month)) * 12 + month - 1)
        case "next":
            return _month((today.year + (month <= today.month)) * 12 + month - 1)
        case _:
            return _month(today.year * 12 + month - 1)


def _which_season(match: re.Match[str], said: SpeechTime) -> Period:
    name, today = match["season"].lower(), said.today
    this = _season(name, today.year)
    match match["which"].lower():
        case "last" | "past":
            return this if this.after <= today else _season(name, today.year - 1)
        case "next":
            return this if this.first > today else _season(name, today.year + 1)
        case _:
            return this


def _season_year(match: re.Match[str], _: SpeechTime) -> Period:
    return _season(match["season"].lower(), int(match["y"]))


def _bare_year(match: re.Match[str], _: SpeechTime) -> Period:
    return _year(int(match["y"]))


def _ago(match: re.Match[str], said: SpeechTime) -> Period:
    return _stepped(match["unit"].lower(), -_count(match["n"]), said.today)


def _vaguely_ago(match: re.Match[str], said: SpeechTime) -> Period:
    """Read "a few weeks ago" as some time in the ten units before: whoever says it has not counted."""
    unit = match["unit"].lower()
    few = "a couple of" if "couple" in match["n"].lower() else "a few"
    first = _stepped(unit, -10 if few == "a few" else -4, said.today).first
    name = str(said.today.year) if unit == "year" else _day_name(said.today)
    return Period(first, said.today, f"{few} {unit}s before {name}", Grain.VAGUE)


def _other_day(_: re.Match[str], said: SpeechTime) -> Period:
    phrase = f"a few days before {_day_name(said.today)}"
    return Period(said.today - timedelta(days=10), said.today, phrase, Grain.VAGUE)


def _in_units(match: re.Match[str], said: SpeechTime) -> Period | None:
    """Read "in three days" as a time to come, unless the verb is past: then it is how long something took."""
    return _stepped(match["unit"].lower(), _count(match["n"]), said.today) if said.tense > 0 else None


def _rule(
    pattern: str, interpret: Interpreter, *, relative: bool, case: bool = False
) -> tuple[re.Pattern[str], Interpreter, bool]:
    return re.compile(pattern, re.NOFLAG if case else re.IGNORECASE), interpret, relative


_ORDINAL = r"(?P<d>[0-3]?\d)(?:st|nd|rd|th)?"
_DAY_BEFORE = rf"(?:\b(?:{_WEEKDAY}|mon|tue|wed|thu|fri|sat|sun)\.?,? )?(?:\bthe )?"
_EDGE = r"(?<![\w./:-])"
_STOP = r"(?![\w/:-]|\.\w)"
_CAP_MONTH = (
    r"(?P<m>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|"
    r"Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)

RULES: tuple[tuple[re.Pattern[str], Interpreter, bool], ...] = (
    _rule(rf"{_EDGE}(?P<y>{_YEAR})[-/](?P<m>[01]?\d)[-/](?P<d>[0-3]?\d)(?![\w/-]|\.\w)", _iso, relative=False),
    _rule(rf"{_EDGE}(?P<y>{_YEAR})-(?P<m>[01]\d)-(?P<d>[0-3]\d)(?=T\d\d:)", _iso, relative=False),
    _rule(rf"{_EDGE}(?P<a>[0-3]?\d)[/.](?P<b>[0-3]?\d)[/.](?P<y>{_YEAR}){_STOP}", _slashed, relative=False),
    _rule(rf"{_DAY_BEFORE}\b{_ORDINAL}(?: of)? (?P<m>{_MONTH})\.?,? (?P<y>{_YEAR})\b", _full, relative=False),
    _rule(rf"{_DAY_BEFORE}\b(?P<m>{_MONTH})\.? (?:the )?{_ORDINAL},? (?P<y>{_YEAR})\b", _full, relative=False),
    _rule(rf"(?<!\d )\b(?P<m>{_MONTH})\.?,?(?: of)? (?P<y>{_YEAR})\b", _month_year, relative=False),
    _rule(
        rf"{_DAY_BEFORE}\b{_CAP_MONTH}\.? (?:the )?{_ORDINAL}\b(?!\s*(?:\d|[%:/]))",
        _day_month,
        relative=True,
        case=True,
    ),
    _rule(
        rf"{_DAY_BEFORE}\b(?P<d>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? {_CAP_MONTH}\b", _day_month, relative=True, case=True
    ),
    _rule(
        r"\b(?:on|by|from|until|till|since|before|after|do|make) (?P<date>the (?P<d>[0-3]?\d)(?:st|nd|rd|"
        r"th))(?=\s*(?:$|[.,;!?)]|at\b|for\b|and\b|with\b|to\b|until\b|in the\b))",
        _day_of_month,
        relative=True,
    ),
    _rule(
        r"\b(?:in|since|until|by|during|from|through) (?:early |late |"
        rf"mid-? ?)?(?P<date>(?P<m>{_LONG_MONTH}))\b(?!'s|\s+\d|\s+I\b)",
        _in_month,
        relative=True,
    ),
    _rule(
        r"\b(?P<word>the day before yesterday|the day after tomorrow|yesterday|tomorrow)" + _PART + r"\b",
        _plain_day,
        relative=True,
    ),
    _rule(r"\b(?P<word>today|tonight|last night|this (?:morning|afternoon|evening))\b", _plain_day, relative=True),
    _rule(
        rf"{_FREE}\b(?P<which>last|this|next|past) (?P<unit>{_UNIT})\b(?! (?:of|before)\b)", _which_unit, relative=True
    ),
    _rule(r"\b(?:the )?(?P<unit>week(?:end)?|month|year) before last\b", _before_last, relative=True),
    _rule(rf"\b(?P<which>last|this|next|past) (?P<day>{_SHORT_WEEKDAY}){_PART}\b", _which_weekday, relative=True),
    _rule(
        rf"\b(?:on|by|until|since|before|after) (?P<date>(?P<day>{_WEEKDAY}){_PART})\b(?!'s)",
        _on_weekday,
        relative=True,
    ),
    _rule(rf"\b(?P<which>last|this|next|past) (?P<m>{_LONG_MONTH})\b", _which_month, relative=True),
    _rule(rf"{_FREE}\b(?P<which>last|this|next|past) (?P<season>{_SEASON})\b", _which_season, relative=True),
    _rule(rf"\b(?P<season>{_SEASON})(?: of|,)? (?P<y>{_YEAR})\b", _season_year, relative=False),
    _rule(
        r"\b(?:in|since|during|by|until|before|after|from|of|around|year|early|late|mid|"
        rf"to) (?P<date>(?P<y>{_YEAR}))(?![\w%:/-]|[.,]\d|\s*(?:px|ms|kb|mb|gb|tokens?|lines?|rows?|files?|"
        r"users?|items?|people|times|dollars|degrees)\b)",
        _bare_year,
        relative=False,
    ),
    _rule(rf"\b(?P<n>{_COUNT}) (?P<unit>{_UNIT})s? ago\b", _ago, relative=True),
    _rule(rf"\b(?P<n>{_VAGUE}) (?P<unit>{_UNIT})s (?:ago|back)\b", _vaguely_ago, relative=True),
    _rule(r"\bthe other (?:day|night|evening)\b", _other_day, relative=True),
    _rule(rf"\b(?P<date>in (?P<n>{_COUNT}) (?P<unit>day|week|month|year)s?)\b(?! of\b)", _in_units, relative=True),
)
