"""`bench surfacing`: what a session needed is what labels say, and only earlier turns are counted and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay_bench import surfacing, surfacing_cli, surfacing_replay
from scrubjay_bench.surfacing import LINKED, OVERLAP, Person, people
from scrubjay_bench.surfacing_replay import PROMPTED, RECENCY, SURFACING, fitting, replayed, rows, share

ROOT = Path(__file__).resolve().parents[1]
TURNS = (
    ("s1", "user_message", "We decided to lock the carts table before each migration in store.py."),
    ("s1", "assistant_message", "The carts table is locked in store.py now, and the migration runs."),
    ("s2", "user_message", "The office plants need water on Mondays, in the kitchen as well."),
    ("s2", "assistant_message", "I noted the plants of the office and of the kitchen."),
    ("s3", "user_message", "The migration in store.py stops at the carts table, why?"),
    ("s3", "assistant_message", "The lock of the carts table is gone; from now on it is taken in migrate.py."),
)


def written(folder: Path) -> Path:
    """Write a set of one person with three sessions, whose third goes back to the first."""

    def lines(name: str, *found: dict[str, object]) -> None:
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")

    def label(number: int, turn: int, text: str, **more: object) -> dict[str, object]:
        session, _, quote = TURNS[turn]
        ids: dict[str, object] = {"id": f"A-m{number}", "session": session, "turn": f"{session}:{turn}", "quote": quote}
        return ids | {"text": text, "type": "decision", "scope": "project", "importance": 3} | more

    lines(
        "sessions.jsonl",
        *(
            {
                "project": "shop",
                "session": session,
                "id": f"{session}:{n}",
                "type": kind,
                "time": f"2026-01-0{session[1]}T10:0{n}:00Z",
                "text": text,
            }
            for n, (session, kind, text) in enumerate(TURNS)
        ),
    )
    lines(
        "memories.jsonl",
        label(1, 0, "Carts are locked before a migration."),
        label(2, 2, "Plants get water on Mondays."),
        label(3, 5, "Carts are locked in migrate.py before a migration.", supersedes="A-m1"),
    )
    lines("not.jsonl")
    lines("questions.jsonl", {"id": "A-q1", "question": "Where?", "category": "update", "evidence": ["s3:5"]})
    return folder


@pytest.fixture
def person(tmp_path: Path) -> Person:
    [found], _ = people(written(tmp_path), None)
    return found


def test_a_session_needs_what_is_linked_with_it_and_what_shares_rare_words(person: Person) -> None:
    first, second, third = person.sessions
    before = frozenset({"s1:0"})

    assert first.needs == second.needs == {LINKED: frozenset(), OVERLAP: frozenset()}
    assert third.needs == {LINKED: frozenset({before}), OVERLAP: frozenset({before})}


def test_sessions_are_said_again_and_what_they_were_told_is_of_earlier_ones(person: Person, tmp_path: Path) -> None:
    [given_] = replayed([person], models_dir=tmp_path, model="none", scratch=None)
    found = {(row["moment"], row["need"], row["way"]): row["median"] for row in rows(given_)}

    assert {one.person for one in given_} == {"shop"}
    assert found[PROMPTED, LINKED, SURFACING] == found[PROMPTED, LINKED, RECENCY] == 1.0, "all of it fits"
    assert all(one.tokens <= surfacing_replay.BUDGET for one in given_)


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(0, 60))
def test_what_is_told_fits_its_budget_and_more_budget_holds_no_less(texts: list[str], budget: int) -> None:
    lines = [surfacing_replay._Line(text, frozenset({str(n)})) for n, text in enumerate(texts)]

    turns, tokens = fitting(lines, budget)

    assert tokens <= budget
    assert turns <= {str(n) for n in range(len(texts))}
    assert fitting(lines, 10_000)[0] == {str(n) for n in range(len(texts))}


def test_a_need_is_met_by_any_of_its_turns() -> None:
    needs = [frozenset({"a", "b"}), frozenset({"c"})]

    assert share(needs, frozenset({"b"})) == 0.5
    assert share(needs, frozenset({"a", "b", "c"})) == 1.0


def test_floors_count_what_is_told_above_them_and_bands_what_was_right() -> None:
    predicted = tuple(
        surfacing_replay.Judged(probability=probability, tokens=tokens, is_needed=is_needed)
        for probability, tokens, is_needed in ((0.1, 40, True), (0.09, 20, False), (0.01, 990, True))
    )
    given_ = surfacing_replay.Given(
        person="ana", set_name="set", moment=PROMPTED, way=SURFACING, shares={LINKED: 1.0}, tokens=60,
        predicted=predicted,
    )  # fmt: skip

    by_floor = {row["floor"]: row for row in surfacing_replay.floors([given_])}
    bands = {row["from"]: row for row in surfacing_replay.reliability([given_])}

    assert by_floor[0.0] | {"floor": 0.08} == by_floor[0.08], "what does not fit the budget is told under no floor"
    assert by_floor[0.08] == {
        "set": "set", "moment": PROMPTED, "floor": 0.08, "lines": 2, "tokens": 60, "needed": 0.5,
        "tokens_per_needed": 60,
    }  # fmt: skip
    assert (by_floor[0.12]["lines"], by_floor[0.12]["needed"], by_floor[0.12]["tokens_per_needed"]) == (0, None, None)
    assert {low: (row["things"], row["needed"]) for low, row in bands.items()} == {0.0: (1, 1), 0.08: (2, 0.5)}
    assert "| set | prompted | 0.08 | 2.0 | 60 | 0.500 | 60 |" in surfacing_cli.floor_table([by_floor[0.08]])
    assert "| set | prompted | 0.08–0.12 | 2 | 0.095 | 0.500 |" in surfacing_cli.reliability_table([bands[0.08]])


def test_the_page_says_what_was_measured() -> None:
    measured = json.loads((ROOT / "bench" / "surfacing.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert page.count(surfacing_cli.BEGIN) == page.count(surfacing_cli.END) == 1, "the next run finds its place"
    assert surfacing_cli.table(measured["rows"]) in page
    assert surfacing_cli.floor_table(measured["floors"]) in page
    assert surfacing_cli.reliability_table(measured["reliability"]) in page
    assert {row["set"] for row in measured["rows"]} == {"devmem", "LoCoMo"}
    assert surfacing.KINDS == ("linked", "overlap")
