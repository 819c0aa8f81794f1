"""What a question is after, in which time, and where its answer stands: rules, by tables."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.api import Intent
from scrubjay.policy import RoutingPolicy
from scrubjay.routing import plan, pointers
from scrubjay.routing.intent import classify
from scrubjay.routing.pointers import Placed
from scrubjay.routing.timespans import Timespan, timespans
from scrubjay_shared.clock import Millis

NOW = Millis(int(datetime(2026, 11, 23, 15, tzinfo=UTC).timestamp() * 1000))  # a Monday
DAY = 86_400_000
POLICY = RoutingPolicy()

QUESTIONS = {
    Intent.ANSWER: (
        "Why did we drop Redis?",
        "which database did we choose",
        "When did Caroline move to Oslo?",
        "Where does Ana live?",
        "what is the plan for next month?",
        "What does the retry helper do?",
        "How many workers does the queue have?",
        "May I push to main?",
        "wann haben wir das besprochen?",
        "the port of the staging server",
        "",
    ),
    Intent.LOCATE: (
        "Where did we discuss the login page?",
        "when did Melanie mention the pottery class?",
        "find the conversation about the orange zebra",
        "Which session fixed the flaky test?",
        "Did we ever talk about gRPC?",
        "Who suggested SQLite?",
        "What were the exact words of the refusal?",
        "show me where the cache was decided",
        "When was the last time we talked about fees?",
        "In which conversation did I ask for dark mode?",
        "Where is the config file of the importer?",
        "on what day did you propose the new schema?",
    ),
    Intent.EXPLORE: (
        "Give me an overview of the sync work",
        "What topics came up?",
        "What have we been working on?",
        "Tell me about Ana's adoption plans",
        "How has the design of the cache evolved?",
        "catch me up on the installer",
        "Summarise the discussion of prices",
        "What do we know about the flaky test?",
        "the history of the login page",
        "Where did we leave off?",
    ),
    Intent.TIME_BOXED: (
        "What were we talking about last week?",
        "what happened on 7 May 2026?",
        "What did we decide last Tuesday?",
        "In March, what did Caroline say about pottery?",
        "since October, what changed in the installer?",
        "What was decided in the past two weeks?",
        "What did we learn recently about tokens?",
        "Which port did the server have before the 5th of October?",
        "Summarise yesterday",
        "what was done on Friday",
    ),
}


@pytest.mark.parametrize(
    ("intent", "question"), [(intent, question) for intent, found in QUESTIONS.items() for question in found]
)
def test_a_question_is_read_as_what_it_is_after(intent: Intent, question: str) -> None:
    times = tuple(span.words for span in timespans(question, NOW))

    reading = classify(question, times=times)

    assert reading.intent is intent, reading.reasons
    assert 0.5 <= reading.confidence <= 1
    assert all(reading.reasons)


TIMES: dict[str, list[tuple[str | None, str | None]]] = {
    "what did we do last Tuesday?": [("2026-11-17", "2026-11-18")],
    "what did we do Tuesday": [("2026-11-17", "2026-11-18")],
    "what happened on Monday?": [("2026-11-16", "2026-11-17")],
    "what was said in March?": [("2026-03-01", "2026-04-01")],
    "the March release": [("2026-03-01", "2026-04-01")],
    "the early December talk": [("2025-12-01", "2026-01-01")],
    "in the last 3 days": [("2026-11-20", "2026-11-24")],
    "the past month": [("2026-10-24", "2026-11-24")],
    "last week": [("2026-11-16", "2026-11-23")],
    "what is new lately": [("2026-11-09", "2026-11-24")],
    "two hours ago": [("2026-11-23", "2026-11-24")],
    "between 3 May 2026 and 9 May 2026": [("2026-05-03", "2026-05-10")],
    "from 2026-05-03 to 2026-05-09 please": [("2026-05-03", "2026-05-10")],
    "what changed since 2026-10-01?": [("2026-10-01", "2026-11-24")],
    "what changed after 2026-10-01?": [("2026-10-02", "2026-11-24")],
    "what was there before 2026-10-01?": [(None, "2026-10-01")],
    "what do we plan for next week?": [],
    "why did we drop Redis?": [],
    "every Monday we meet": [],
    "": [],
}


@pytest.mark.parametrize("question", TIMES)
def test_times_in_a_question_bound_it(question: str) -> None:
    def day(at: Millis | None) -> str | None:
        if at is None:
            return None
        return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()

    assert [(day(span.since), day(span.until)) for span in timespans(question, NOW)] == TIMES[question]


@given(st.text(max_size=200), st.integers(0, (1 << 43) - 1), st.integers(-1439, 1439))
def test_any_text_is_read_at_any_time(question: str, now: int, utc_offset: int) -> None:
    found = timespans(question, Millis(now), utc_offset)
    reading = classify(question, times=tuple(span.words for span in found))

    assert reading.intent in Intent
    for span in found:
        assert span.since is not None or span.until is not None
        days = span.days(utc_offset)
        assert days is None or days[0] <= days[1]


def test_a_day_is_the_persons() -> None:
    [span] = timespans("yesterday", NOW, 600)  # in Sydney it is the 24th already

    assert span.days(600) == (date(2026, 11, 23), date(2026, 11, 23))


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("what happened last week?", ""),
        ("what were we talking about?", ""),
        ("What did we decide last week about fees?", "What did we decide   about fees?"),
        ("which topics came up in March?", ""),
        ("Summarise the pottery class", "Summarise the pottery class"),
    ],
)
def test_a_question_without_a_subject_asks_for_what_there_is(question: str, about: str) -> None:
    words = tuple(span.words for span in timespans(question, NOW))

    assert plan.subject(question, words) == about


@pytest.mark.parametrize("intent", Intent)
def test_every_course_ends_with_the_last_resort(intent: Intent) -> None:
    for about in ("fees", ""):
        course = plan.course(intent, about)
        assert {*course.first, *course.fallback} <= {*plan.LAYERS}
        assert course.fallback[-1] == plan.EVENTS
        assert not {*course.first} & {*course.fallback}


def placed(day: int, session: str = "s", segment: str | None = None) -> Placed:
    at = int(NOW) - (30 - day) * DAY
    shown = (datetime.fromtimestamp(at / 1000, UTC)).date().isoformat()
    return Placed(ts=at, day=shown, session_id=session, agent="a", segment=segment)


def test_a_talk_of_which_several_turns_were_found_comes_before_one_with_a_single_better_turn() -> None:
    at = {"a": placed(1, segment="one"), "b": placed(2, segment="two"), "c": placed(2, segment="two")}

    best, other = pointers.spots({"hybrid": ["a", "b", "c"]}, at, (), POLICY)

    assert (best.segment, best.events) == ("two", ("b", "c"))
    assert other.segment == "one"
    assert best.layers == other.layers == ("hybrid",)


def test_what_two_layers_found_comes_before_what_one_did() -> None:
    at = {"a": placed(1), "b": placed(2)}

    best, _ = pointers.spots({"hybrid": ["a", "b"], "memories": ["b"]}, at, (), POLICY)

    assert best.events == ("b",)
    assert best.layers == ("hybrid", "memories")


@pytest.mark.parametrize(("days", "worth"), [(-30, 0.1), (-1, 0.43), (0, 1.0), (1, 0.5), (8, 0.25), (40, 0.1)])
def test_a_talk_outside_of_the_time_counts_less(days: int, worth: float) -> None:
    span = Timespan(since=Millis(NOW), until=Millis(NOW + DAY), words="today")

    assert pointers.nearness(NOW + days * DAY, [span], POLICY) == pytest.approx(worth, abs=0.01)
    assert pointers.nearness(NOW + days * DAY, [], POLICY) == 1.0


@given(
    st.dictionaries(
        st.sampled_from(["hybrid", "keyword", "vector", "memories"]),
        st.lists(st.sampled_from("abcdefgh"), unique=True),
        max_size=4,
    ),
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 3), st.sampled_from(["s", "t"]))),
)
def test_every_talk_is_named_once_and_holds_only_what_was_found(
    found: dict[str, list[str]], where: dict[str, tuple[int, str]]
) -> None:
    at = {event: placed(day, session, segment=f"{day}{session}") for event, (day, session) in where.items()}

    spots = pointers.spots(found, at, (), POLICY)

    known = {event for events in found.values() for event in events} & at.keys()
    assert {event for spot in spots for event in spot.events} == known
    assert len({(spot.day, spot.session_id) for spot in spots}) == len(spots)
    assert [spot.score for spot in spots] == sorted((spot.score for spot in spots), reverse=True)


def test_the_days_of_an_open_time_are_not_named() -> None:
    assert Timespan(since=None, until=Millis(NOW), words="").days(0) is None
    assert Timespan(since=Millis(NOW), until=Millis(NOW), words="").days(0) is None
    whole = Timespan(since=Millis(NOW), until=Millis(NOW + DAY), words="")
    assert whole.days(0) == (date(2026, 11, 23), date(2026, 11, 23) + timedelta(days=1))
