"""The table of contents without a store: segments tile what they are cut from, passages are places, periods a calendar."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrubjay.policy import TocPolicy
from scrubjay.toc import periods, rollup
from scrubjay.toc.extraction import Outline, outline
from scrubjay.toc.periods import Level, Node
from scrubjay.toc.segmentation import Turn, cut, settled
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.errors import InvalidError, NotFoundError

POLICY = TocPolicy(max_events=9, max_chars=400, min_events=2, window=2, reach=4)
MINUTE = 60_000
TALK = (
    "How do we refresh JWT tokens without forcing logout?",
    "We implemented a sliding window refresh for the JWT tokens.",
    "Caroline, thanks!",
    "The migration to PostgreSQL failed because of the exclusion constraints.\n\n```\nselect 1;\n```\nWhy?",
    "東京に引っ越しました。新しい家は駅から近いです。",
    "",
    "ok",
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Turn]:
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 1, MINUTE, 29 * MINUTE, 31 * MINUTE, 9 * 60 * MINUTE]),
                st.sampled_from([0, 0, 0, 0, 120, -300]),
                st.sampled_from(["", "", "", "p"]),
                st.sampled_from(TALK),
                st.booleans(),
                st.sampled_from([None, 0, 1, 2]),
            ),
            max_size=40,
        )
    )
    ts = draw(st.integers(0, 10**12))
    turns = []
    for n, (gap, offset, project, words, person, topic) in enumerate(steps):
        ts += gap
        turns.append(
            Turn(
                id=ulid(Millis(ts), n.to_bytes(10, "big")),
                ts=Millis(ts),
                seq=n,
                utc_offset=offset,
                project=project,
                agent=f"agent {n % 2}",
                said=words,
                by_person=person,
                vector=None if topic is None else np.eye(3, dtype=np.float32)[topic],
            )
        )
    return turns


@given(sessions())
def test_segments_tile_a_session_and_hold_one_project_one_day_and_no_gap(turns: list[Turn]) -> None:
    pieces = cut(turns, POLICY)

    assert list(chain.from_iterable(pieces)) == turns
    for piece in pieces:
        assert piece
        assert len({(turn.project, turn.day) for turn in piece}) == 1
        assert len(piece) <= POLICY.max_events
        assert sum(len(turn.said) for turn in piece) <= max(POLICY.max_chars, len(piece[0].said))
        assert all(b.ts - a.ts <= POLICY.gap_ms for a, b in pairwise(piece))


@given(sessions(), st.data())
def test_a_session_that_grew_is_cut_from_a_cut_that_stands_as_if_it_were_cut_whole(
    turns: list[Turn], data: st.DataObject
) -> None:
    known = data.draw(st.integers(0, len(turns)))
    starts = [0]
    for piece in cut(turns[:known], POLICY):
        starts.append(starts[-1] + len(piece))
    from_ = max((start for start in starts if settled(known, start, POLICY)), default=0)

    before = [piece for piece in cut(turns[:known], POLICY) if piece[0].place < (turns[from_:] or turns)[0].place]
    again = cut(turns[from_:], POLICY)

    assert [list(piece) for piece in (*(before if from_ else []), *again)] == [list(p) for p in cut(turns, POLICY)]


def test_another_topic_begins_a_segment_where_the_person_takes_it_up() -> None:
    def turn(n: int, topic: int, *, by_person: bool) -> Turn:
        return Turn(
            id=ulid(Millis(n), bytes(10)), ts=Millis(n * MINUTE), seq=n, utc_offset=0, project="", agent="a",
            said="words", by_person=by_person, vector=np.eye(2, dtype=np.float32)[topic],
        )  # fmt: skip

    turns = [turn(n, int(n >= 6), by_person=n % 2 == 0) for n in range(12)]

    assert [len(piece) for piece in cut(turns, POLICY)] == [6, 6]
    assert [len(piece) for piece in cut([turn(n, 0, by_person=n % 2 == 0) for n in range(8)], POLICY)] == [8]
    late = [turn(n, int(n >= 6), by_person=n == 7) for n in range(12)]
    assert next(len(piece) for piece in cut(late, POLICY)) != 6, "not where the agent goes on"


@given(sessions().filter(bool))
def test_what_an_outline_quotes_are_places_in_what_was_said(turns: list[Turn]) -> None:
    by_id = {turn.id: turn for turn in turns}
    found = [outline(piece, POLICY, opens=n == 0) for n, piece in enumerate(cut(turns, POLICY))]

    for each in (*found, rollup.merged(found, POLICY)):
        for passage in (*each.passages, *((each.title,) if each.title is not None else ())):
            words = by_id[passage.event_id].said[passage.start : passage.end]
            assert words == words.strip()
            assert 0 < len(words) == passage.end - passage.start <= POLICY.max_passage_chars
    whole = rollup.merged(found, POLICY)
    assert (whole.events, whole.segments, whole.sessions) == (len(turns), len(found), 1)
    assert whole.agents == tuple(sorted({turn.agent for turn in turns}))


def test_an_outline_names_what_was_talked_of_and_leaves_out_what_says_nothing() -> None:
    lines = [
        ("Hey, how are you?", True),
        ("How do we refresh JWT tokens without forcing a logout?", True),
        ("Let me think about that.", False),
        ("We decided to refresh JWT tokens in a sliding window of 15 minutes.", False),
        ("Great, thanks a lot!", True),
    ]
    turns = [
        Turn(id=ulid(Millis(n), bytes(10)), ts=Millis(n), seq=n, utc_offset=0, project="", agent="a", said=words,
             by_person=person)
        for n, (words, person) in enumerate(lines)
    ]  # fmt: skip

    found = outline(turns, TocPolicy(), opens=True)

    assert [(one.event_id, one.start, one.end) for one in rollup.chosen(found, 2, TocPolicy())] == [
        (turns[1].id, 0, len(lines[1][0])),
        (turns[3].id, 0, len(lines[3][0])),
    ]
    assert found.title is not None
    assert found.title.event_id == turns[1].id
    assert {"jwt", "tokens", "refresh"} <= {one.word for one in found.keywords[:5]}
    assert not {"great", "think", "thanks"} & {one.word for one in found.keywords}


def test_who_is_spoken_to_is_not_what_it_is_about() -> None:
    said = "Thanks, Mel! The pottery class in Lisbon begins on Monday, Melanie."
    turn = Turn(id=ulid(Millis(0), bytes(10)), ts=Millis(0), seq=0, utc_offset=0, project="", agent="a", said=said,
                by_person=True, speaker="Melanie")  # fmt: skip

    assert {one.word for one in outline([turn], TocPolicy(), opens=True).keywords} == {
        "pottery", "class", "lisbon", "monday",
    }  # fmt: skip


def test_a_period_takes_passages_of_many_segments_before_more_of_one() -> None:
    def said(segment: str, n: int, weight: float) -> Outline:
        passage = (f"{segment}{n}", 0, 9, Millis(n), weight, (f"{segment}{n}",), segment)
        return Outline(Millis(n), Millis(n), 1, 1, 0, ("a",))._replace(passages=(rollup.Passage(*passage),))

    loud = [said("loud", n, 1.0) for n in range(5)]
    quiet = [said(f"quiet {n}", n, 0.5) for n in range(5)]

    found = rollup.chosen(rollup.merged([*loud, *quiet], TocPolicy(kept_bullets=9)), 5, TocPolicy())

    assert len({one.segment for one in found}) >= 4


days = st.dates(date(1970, 1, 1), date(2248, 1, 1))


@given(days)
def test_a_day_lies_in_the_periods_that_hold_it(day: date) -> None:
    keys = periods.keys_of(day.isoformat())

    for level, key in keys.items():
        first, last = periods.days_of(level, key)
        assert first <= day <= last
        assert periods.parse(periods.node_id(level, key)) == Node(level, key)
    week, month, year = keys[Level.WEEK], keys[Level.MONTH], keys[Level.YEAR]
    assert keys[Level.DAY] in periods.child_keys(Level.WEEK, week)[1]
    assert week in periods.child_keys(Level.MONTH, month)[1]
    assert month in periods.child_keys(Level.YEAR, year)[1]
    assert Node(Level.MONTH, month) in periods.parents(Level.WEEK, week)
    assert periods.parents(Level.DAY, keys[Level.DAY]) == (Node(Level.WEEK, week),)


@given(days, st.integers(0, 900))
@example(date(2026, 1, 1), 364)
@settings(max_examples=50)
def test_the_fewest_nodes_cover_exactly_some_days(first: date, more: int) -> None:
    last = first + timedelta(days=more)

    covered: list[date] = []
    for node in periods.covering(first, last):
        start, end = periods.days_of(node.level, node.key)
        covered += [start + timedelta(days=n) for n in range((end - start).days + 1)]

    assert covered == [first + timedelta(days=n) for n in range(more + 1)]


@pytest.mark.parametrize(
    ("level", "key", "title"),
    [
        (Level.ROOT, "", "Everything"),
        (Level.YEAR, "2026", "2026"),
        (Level.MONTH, "2026-11", "November 2026"),
        (Level.WEEK, "2026-W53", "Week 53: 28 December 2026–3 January 2027"),
        (Level.WEEK, "2026-W18", "Week 18: 27 April–3 May 2026"),
        (Level.DAY, "2024-02-29", "Thursday, 29 February 2024"),
    ],
)
def test_a_period_is_called_as_people_call_it(level: Level, key: str, title: str) -> None:
    assert periods.title(level, key) == title


@pytest.mark.parametrize(
    "wrong",
    [
        "", "toc:", "toc:year:", "toc:year:26", "toc:month:2026-13", "toc:week:2026-W54", "toc:day:2026-02-29",
        "toc:segment:x", "toc:root:", "year:2026", "toc:day:2026-11-21 ", "toc:year:0000", "toc:day:٢٠٢٦-١١-٢١", "toc:year:٢٠٢٦",
    ],
)  # fmt: skip
def test_what_names_no_node_is_refused_with_what_to_do(wrong: str) -> None:
    with pytest.raises((InvalidError, NotFoundError), match=r"is not a node|the calendar has no") as refused:
        periods.parse(wrong)

    assert "scrubjay toc" in refused.value.hint


@given(st.text(max_size=60))
def test_no_text_is_taken_for_a_passage_that_is_none(text: str) -> None:
    found = periods.parse_grip(text)

    assert found is None or periods.grip_id(*found).casefold() == text.casefold()
