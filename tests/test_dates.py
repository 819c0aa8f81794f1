"""Dates in prose: what is one, on which days, and what is none."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.dates import Grain, find_dates
from scrubjay_shared.clock import MAX_MILLIS, Millis

DAY_MS = 86_400_000


def at(text: str) -> Millis:
    return Millis(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))


MONDAY = at("2023-05-08T13:56")


def phrases(text: str, anchor: Millis = MONDAY, utc_offset: int = 0) -> list[tuple[str, str]]:
    return [(text[m.span_start : m.span_end], m.phrase) for m in find_dates(text, anchor, utc_offset)]


@pytest.mark.parametrize(
    ("text", "words", "phrase"),
    [
        ("I went to a choir rehearsal yesterday and it was good", "yesterday", "7 May 2023"),
        ("the day before yesterday it rained", "the day before yesterday", "6 May 2023"),
        ("we ate there last night", "last night", "7 May 2023"),
        ("I start tonight", "tonight", "8 May 2023"),
        ("I called her this morning", "this morning", "8 May 2023"),
        ("I'll know tomorrow", "tomorrow", "9 May 2023"),
        ("I sold the boat last year!", "last year", "2022"),
        ("we met last week", "last week", "the week of 1 May 2023"),
        ("we met the week before last", "the week before last", "the week of 24 April 2023"),
        ("last weekend was fun", "last weekend", "the weekend of 6 May 2023"),
        ("it opens next month", "next month", "June 2023"),
        ("we met last Friday", "last Friday", "5 May 2023"),
        ("I joined last Tues.", "last Tues", "2 May 2023"),
        ("see you next Friday", "next Friday", "19 May 2023"),
        ("the show is this Friday", "this Friday", "12 May 2023"),
        ("we met on Tuesday", "Tuesday", "2 May 2023"),
        ("I have a meeting on Tuesday", "Tuesday", "9 May 2023"),
        ("we're off to the sea on Friday", "Friday", "12 May 2023"),
        ("I was there on the 7th.", "the 7th", "7 May 2023"),
        ("she can't do the 10th, she works", "the 10th", "10 May 2023"),
        ("I promised a beta by June 1st", "June 1st", "1 June 2023"),
        ("he told me he moved in June", "June", "June 2022"),
        ("the season opens in June", "June", "June 2023"),
        ("what did I do in June?", "June", "June 2022"),
        ("What happened on March 3rd?", "March 3rd", "3 March 2023"),
        ("she turns 60 on the 3rd of October", "the 3rd of October", "3 October 2023"),
        ("I bought it two weeks ago", "two weeks ago", "the week of 24 April 2023"),
        ("I moved 10 years ago", "10 years ago", "2013"),
        ("it broke a few days ago", "a few days ago", "a few days before 8 May 2023"),
        ("I saw him the other day", "the other day", "a few days before 8 May 2023"),
        ("I'll be back in 3 days", "in 3 days", "11 May 2023"),
        ("last summer we sailed", "last summer", "summer 2022"),
        ("we met last December", "last December", "December 2022"),
        ("born 7 May 1990 in Rome", "7 May 1990", "7 May 1990"),
        ("on May 7th, 2023", "May 7th, 2023", "7 May 2023"),
        ("on Monday, 8 May 2023", "Monday, 8 May 2023", "8 May 2023"),
        ("released 2023-05-07", "2023-05-07", "7 May 2023"),
        ("at 2023-05-07T10:00:00Z it failed", "2023-05-07", "7 May 2023"),
        ("due 25/12/2023", "25/12/2023", "25 December 2023"),
        ("due 12/25/2023", "12/25/2023", "25 December 2023"),
        ("due 5/5/2023", "5/5/2023", "5 May 2023"),
        ("in May 2023 we moved", "May 2023", "May 2023"),
        ("in summer 2022", "summer 2022", "summer 2022"),
        ("I've lived here since 2016", "2016", "2016"),
    ],
)
def test_a_date_is_found_with_its_span_and_named_without_its_anchor(text: str, words: str, phrase: str) -> None:
    assert phrases(text) == [(words, phrase)]


@pytest.mark.parametrize(
    "text",
    [
        "I may go, may I?",
        "we march on, and march 5 km",
        "wait a second, the second one is mine",
        "April is my sister and June's house is big",
        "I finished it in 3 days",
        "for the last year I slept badly",
        "the last week of school",
        "on the 7th floor",
        "due 5/7/2023",
        "2048 tokens in 2048 files",
        "in 2048 tokens",
        "logs/2023-05-07.log",
        "id 2023-05-07-abc1",
        "31 February 2023",
        "version 2023.05",
        "on Fridays we dance",
        "Friday is my favourite day",
        "",
    ],
)
def test_ordinary_words_and_ambiguous_numbers_are_no_dates(text: str) -> None:
    assert phrases(text) == []


def test_a_day_is_the_persons_own_day() -> None:
    late = at("2023-05-08T23:30")

    in_stockholm = find_dates("I ran today", late, 120)[0]
    in_utc = find_dates("I ran today", late, 0)[0]

    assert in_stockholm.phrase == "9 May 2023"
    assert in_stockholm.start == at("2023-05-08T22:00")
    assert in_utc.phrase == "8 May 2023"


def test_a_mention_lasts_as_long_as_its_words_say() -> None:
    day, week, month, year = (
        find_dates(text, MONDAY)[0] for text in ("yesterday", "last week", "next month", "last year")
    )

    assert [m.grain for m in (day, week, month, year)] == [Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.YEAR]
    assert [(m.end - m.start) // DAY_MS for m in (day, week, month, year)] == [1, 7, 30, 365]


def test_the_longer_of_two_overlapping_readings_is_kept() -> None:
    found = phrases("on 7 May 2023, in May 2023 and in 2023")

    assert found == [("7 May 2023", "7 May 2023"), ("May 2023", "May 2023"), ("2023", "2023")]


@pytest.mark.parametrize("anchor", [Millis(0), Millis(-(10**17)), Millis(MAX_MILLIS), Millis(10**18)])
def test_an_anchor_at_or_beyond_the_calendars_ends_is_no_error(anchor: Millis) -> None:
    assert isinstance(find_dates("last year, tomorrow, ten years ago, next month", anchor), tuple)


SCRAPS = st.sampled_from(
    [
        "yesterday",
        "last",
        "next",
        "this",
        "Friday",
        "week",
        "weekend",
        "month",
        "year",
        "May",
        "7",
        "7th",
        "2023",
        "2023-05-07",
        ",",
        ".",
        "?",
        "on",
        "in",
        "ago",
        "two",
        "a",
        "few",
        "the",
    ]
)


@given(st.lists(SCRAPS, max_size=14).map(" ".join) | st.text(max_size=80), st.integers(-720, 840))
def test_mentions_are_ordered_disjoint_and_not_empty(text: str, utc_offset: int) -> None:
    found = find_dates(text, MONDAY, utc_offset)

    assert all(0 <= m.span_start < m.span_end <= len(text) and m.start < m.end and m.phrase for m in found)
    assert all(a.span_end <= b.span_start for a, b in itertools.pairwise(found))


@given(st.integers(min_value=-(10**12), max_value=10**13))
def test_a_phrase_read_again_means_the_same_days(anchor: int) -> None:
    said = find_dates("yesterday", Millis(anchor))[0]

    again = find_dates(f"on {said.phrase}", Millis(0)) if said.phrase[-4:].startswith(("19", "20")) else ()

    assert [(m.start, m.end) for m in again] in ([(said.start, said.end)], [])
