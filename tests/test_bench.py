"""The benchmarks as a program: their texts and arithmetic, the page they write, and the limits that CI holds to."""

from __future__ import annotations

import json
import os
import re
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.settings import DEFAULT_MODEL
from scrubjay_bench import cli, gate, report
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.figures import Figure, Rounds, percentile
from scrubjay_bench.floors import BareTable
from scrubjay_io.sqlite import driver
from scrubjay_shared.errors import InvalidError

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or ROOT / ".models").resolve()
real = pytest.mark.skipif(not (REAL / DEFAULT_MODEL).is_dir(), reason="needs the model: make test pulls it")
FIGURE = Figure(
    name="append.batched",
    meaning="100 events a request",
    unit="events/s",
    value=2_345.0,
    low=2_000.0,
    high=2_500.0,
    rounds=5,
    samples=2_000,
    floor="floor.insert",
    ratio=9.87,
    goal=2_000,
)
MACHINE = {
    "cores": 2, "processor": "a processor", "memory_gb": 8, "file_system": "ext4", "system": "Linux 6", "python": "3.11"
}  # fmt: skip


def parsed(block: str) -> dict[str, tuple[str, ...]]:
    """Return the cells of every row of a block, by the name of its figure."""
    rows = [line.strip("| ").split(" | ") for line in block.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): tuple(cell.strip() for cell in cells[1:]) for cells in rows}


def baseline() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "bench" / "baseline.json").read_text(encoding="utf-8"))
    return found


# The page


def test_the_figures_of_the_page_are_those_of_the_baseline() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    block = report.BEGIN + page.partition(report.BEGIN)[2].partition(report.END)[0] + report.END

    sections = baseline()["sections"]
    assert report.block(sections) == block
    rows = parsed(block)
    figures = [figure for section in sections.values() for figure in report.figures_of(section)]
    assert set(rows) == {figure.name for figure in figures}
    for figure in figures:
        assert rows[figure.name][1] == f"{report.number(figure.value)} {figure.unit}"


FEWER = {
    "event-loop": 1,
    "import-growth": 1,
    "terminal": 1,
    "scale-": 3,
    "cloud": 3,
    "toc": 1,
    "bootstrap-1m": 1,
    "bootstrap-": 3,
}
"""Rounds of sections that take minutes each, by how their names begin; the first that fits counts."""


def test_every_section_was_measured_in_five_rounds_and_what_takes_minutes_in_fewer() -> None:
    sections = baseline()["sections"]
    least = {
        title: next((count for begin, count in FEWER.items() if name.startswith(begin)), 5)
        for name, (title, _) in cli.SECTIONS.items()
    }

    few = [
        figure.name
        for title, section in sections.items()
        if title != cli.SECTIONS["quality"][0]  # the same store gives the same hits
        for figure in report.figures_of(section)
        if figure.unit != "bytes"  # a file has one size
        if not figure.name.startswith("visible.")  # of the edits of all rounds together
        if figure.rounds < least[title]
    ]

    assert set(sections) == {title for title, _ in cli.SECTIONS.values()}
    assert few == []


def test_every_figure_that_names_a_floor_has_it_beside_it() -> None:
    for section in baseline()["sections"].values():
        figures = report.figures_of(section)

        assert {figure.floor for figure in figures if figure.floor} <= {figure.name for figure in figures}


def test_a_page_gets_new_figures_and_keeps_its_words() -> None:
    sections = {"Appending": report.section_of([FIGURE], MACHINE, (0.5, 1.5))}
    page = f"# Words\n\n{report.BEGIN}\n\nold\n\n{report.END}\n\nmore words\n"

    renewed = report.replaced(page, sections)

    assert renewed.startswith("# Words\n")
    assert renewed.endswith("\nmore words\n")
    assert "old" not in renewed
    assert report.replaced(renewed, sections) == renewed
    assert parsed(renewed)["append.batched"] == (
        "100 events a request", "2,345 events/s", "2,000 … 2,500", "9.87 × floor.insert", "≥ 2,000 reached"
    )  # fmt: skip


def test_a_page_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(InvalidError, match="no place for figures"):
        report.replaced("# Words only\n", {})


def test_a_section_comes_back_from_json_as_it_went_in() -> None:
    section = json.loads(json.dumps(report.section_of([FIGURE], MACHINE, (0.5, 1.5))))

    assert report.figures_of(section) == [FIGURE]


# The arithmetic


@pytest.mark.parametrize(
    ("unit", "value", "goal", "reached"),
    [
        ("ms", 19.0, 20, True),
        ("ms", 21.0, 20, False),
        ("events/s", 1_999.0, 2_000, False),
        ("events/s", 2_000.0, 2_000, True),
        ("MB", 50.0, None, None),
    ],
)
def test_a_goal_bounds_a_rate_from_below_and_a_cost_from_above(
    unit: str, value: float, goal: float | None, *, reached: bool | None
) -> None:
    figure = replace(FIGURE, unit=unit, value=value, goal=goal)

    assert figure.reached is reached


def test_a_ratio_is_cost_by_cost_of_the_same_round() -> None:
    rounds = Rounds()
    for own, floor in ((10.0, 5.0), (30.0, 10.0), (100.0, 10.0)):  # the third round had a fit of its own
        rounds.add("time", own)
        rounds.add("least", floor)
        rounds.add("rate", 1 / own)
        rounds.add("least_rate", 1 / floor)

    assert rounds.ratio("time", ["least"]) == pytest.approx(3.0)
    assert rounds.ratio("rate", ["least_rate"], rate=True) == pytest.approx(3.0)
    assert rounds.ratio("time", ["least", "least"]) == pytest.approx(1.5)
    assert rounds.figure("time", "", "ms", samples=1, floor="least").ratio == 3.0


def test_latencies_become_percentiles_in_milliseconds() -> None:
    rounds = Rounds()

    rounds.add_latencies("ask", [number / 1000 for number in range(1, 101)], 50, 95)

    assert rounds.values("ask.p50") == [50.0]
    assert rounds.values("ask.p95") == [95.0]


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], percent: int) -> None:
    found = percentile(values, percent)

    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


# The gate


def test_each_check_of_the_gate_has_a_limit_with_a_reason() -> None:
    limits = cli.limits_of(baseline())

    assert set(limits) == set(gate.NAMES)
    for limit in limits.values():
        assert limit.tolerance >= 1 if limit.bound is gate.Bound.AT_MOST else 0.95 <= limit.tolerance <= 1
        assert len(limit.reason) > 20


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"help": {"expected": 2.0, "tolerance": 1.5, "reason": "one of five"}},
        {name: {"expected": "fast"} for name in gate.NAMES},
    ],
    ids=["none", "some", "no numbers"],
)
def test_limits_that_are_not_those_of_the_gate_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        cli.limits_of({"gate": limits})


@pytest.mark.parametrize(
    ("bound", "tolerance", "value", "passed"),
    [
        (gate.Bound.AT_MOST, 1.5, 14.9, True),
        (gate.Bound.AT_MOST, 1.5, 15.0, True),
        (gate.Bound.AT_MOST, 1.5, 15.1, False),
        (gate.Bound.AT_LEAST, 0.5, 5.1, True),
        (gate.Bound.AT_LEAST, 0.5, 5.0, True),
        (gate.Bound.AT_LEAST, 0.5, 4.9, False),
    ],
)
def test_a_value_passes_up_to_the_expected_one_times_its_tolerance(
    bound: gate.Bound, tolerance: float, value: float, *, passed: bool
) -> None:
    limit = gate.Limit(expected=10.0, tolerance=tolerance, reason="", bound=bound)

    assert gate.Verdict(name="help", value=value, limit=limit, tries=1).passed is passed


def test_a_command_line_that_makes_no_sense_is_two_lines_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / DEFAULT_MODEL).mkdir()
    (tmp_path / "limits.json").write_text('{"format": 0}')
    for line, said in (
        (["run", "nonsense"], "no section is called nonsense"),
        (["run", "append", "--rounds", "0"], "less than one round"),
        (["run", "append", "--models", str(tmp_path / "nowhere")], "the model"),
        (["gate", "--baseline", str(tmp_path / "absent.json")], "absent.json is not there"),
        (["gate", "--baseline", str(tmp_path / "limits.json")], "another format"),
    ):
        code = cli.main(line)

        shown = capsys.readouterr().err
        assert code > 1
        assert said in shown
        assert len(shown.splitlines()) == 2


# What is measured on


def test_the_texts_are_the_same_for_a_seed_and_others_for_another() -> None:
    first, again, other = ([texts.statement() for _ in range(50)] for texts in (Corpus(1), Corpus(1), Corpus(2)))

    assert first == again
    assert first != other
    assert len(set(first)) == 50
    assert all(5 <= len(text.split()) <= 40 for text in first)


def test_words_are_as_unevenly_frequent_as_in_english() -> None:
    texts = Corpus(3)
    counts: dict[str, int] = {}
    for _ in range(2_000):
        for word in re.findall(r"\w+", texts.statement().lower()):
            counts[word] = counts.get(word, 0) + 1

    ordered = sorted(counts.values(), reverse=True)

    assert ordered[0] > 50 * statistics.median(ordered)
    assert sum(count == 1 for count in ordered) > len(ordered) / 4


def test_questions_share_their_words_with_the_statements() -> None:
    texts = Corpus(4)
    said = {word for _ in range(2_000) for word in re.findall(r"\w+", texts.statement().lower())}

    asked = [re.findall(r"\w+", texts.question().lower()) for _ in range(100)]

    assert all(len(said & set(words)) >= 3 for words in asked)


def test_events_are_sent_once_each_in_sessions_of_an_afternoon() -> None:
    texts = Corpus(5)

    events = [texts.event(number) for number in range(100)]

    assert len({event["dedupe_key"] for event in events}) == 100
    assert len({event["session_id"] for event in events}) == 3
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)


# The floors do the work they stand for


def test_the_bare_table_keeps_what_was_inserted(tmp_path: Path) -> None:
    texts = Corpus(6)
    bare = BareTable(tmp_path / "bare.db")

    bare.insert([texts.event(number) for number in range(5)])
    bare.close()

    connection = driver.connect(str(tmp_path / "bare.db"))
    assert connection.execute("select count(*), min(length(text)) > 10 from event").fetchall() == [(5, 1)]
    assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    connection.close()


# With the real model


@real
@pytest.mark.slow
def test_a_run_of_one_section_shows_it_and_writes_it_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["run", "quality", "--models", str(REAL), "--json", str(tmp_path / "figures.json")])

    assert code == 0
    written = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    (section,) = written["sections"].values()
    figures = report.figures_of(section)
    assert {figure.name for figure in figures} == {f"sample.top3.{mode}" for mode in ("hybrid", "keyword", "weighted")}
    shown = capsys.readouterr().out
    assert all(figure.name in shown for figure in figures)
    assert all(figure.samples == 8 for figure in figures)
