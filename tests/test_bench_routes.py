"""The sixty questions of `bench route`, how they are scored, and that what the page says is what was measured."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from scrubjay.api import Intent
from scrubjay_bench import routes, routes_cli
from scrubjay_bench.routes import Asked, Question
from scrubjay_shared.errors import InvalidError

ROOT = Path(__file__).resolve().parents[1]
INTENT_RIGHT, PLACE_RIGHT = 0.9, 0.8


def test_there_are_fifteen_questions_of_each_intent_and_each_names_its_days() -> None:
    found = routes.questions()

    assert Counter(question.intent for question in found) == dict.fromkeys(Intent, 15)
    assert len({question.id for question in found}) == len({question.question for question in found}) == 60
    for question in found:
        assert question.source in routes.ASKED
        assert question.places
        for place in question.places:
            assert date.fromisoformat(place) < date.fromisoformat(routes.ASKED[question.source])


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "a"}\n', encoding="utf-8")

    with pytest.raises(InvalidError, match="line 1"):
        routes.questions(path)


def asked(intent: Intent, routed: tuple[str, ...], recalled: tuple[str, ...]) -> Asked:
    question = Question(id="q", source="spec", intent=Intent.LOCATE, question="Where?", places=("2026-01-02",))
    return Asked(
        question=question,
        intent=intent,
        routed=routed,
        recalled=recalled,
        route_tokens=100,
        recall_tokens=400,
        route_ms=5.0,
    )


def test_the_right_day_counts_among_the_first_three_places() -> None:
    right, wrong = "2026-01-02", "2026-01-03"
    first = asked(Intent.LOCATE, (right,), (wrong, wrong, wrong, right))
    third = asked(Intent.ANSWER, (wrong, "2026-01-04", right), (right,))
    fourth = asked(Intent.LOCATE, (wrong, "2026-01-04", "2026-01-05", right), ())

    found = {row["intent_of"]: row for row in routes.rows([first, third, fourth])}

    assert found["locate"] == found["all"] | {"intent_of": "locate"}
    assert found["all"]["questions"] == 3
    shares = {name: found["all"][name] for name in ("intent", "route", "route_first", "recall", "recall_first")}
    assert shares == {"intent": 0.667, "route": 0.667, "route_first": 0.333, "recall": 0.333, "recall_first": 0.333}
    assert (found["all"]["route_tokens"], found["all"]["recall_tokens"]) == (100, 400)
    assert found["explore"]["questions"] == 0


def test_the_page_says_what_was_measured_and_the_goals_are_reached() -> None:
    found = json.loads(routes_cli.FIGURES.read_text(encoding="utf-8"))

    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert routes.block(found) in page
    [all_] = [row for row in found["rows"] if row["intent_of"] == "all"]
    assert all_["questions"] == 60
    assert all_["intent"] >= INTENT_RIGHT
    assert all_["route"] >= PLACE_RIGHT
