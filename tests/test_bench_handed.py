"""What sessions are handed at their start: what is asked when, what is worth it, what had to be there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrubjay.settings import NO_MODEL
from scrubjay_bench import cli, devmem, handed
from scrubjay_bench.devmem_asking import ALL, Memories
from scrubjay_bench.handed import Handed, Line, Run, Start
from scrubjay_shared.errors import InvalidError, NotFoundError

OWN = Path(__file__).parent.parent / "bench" / "handed"

SAID = {
    1: "We decided to keep all logs for ninety days.",
    2: "From now on tests run on every push, never only at night.",
    3: "Make the button green.",
    4: "We keep all logs for thirty days now, the disk is full.",
    5: "thanks",
}


def label(number: int, quote: str, **more: Any) -> dict[str, Any]:
    turn = f"one-{number:02}:0"
    fields = {"id": f"A-m{number}", "session": f"one-{number:02}", "turn": turn, "quote": quote, "evidence": [turn]}
    return fields | {"text": quote, "type": "decision", "scope": "project", "importance": 3} | more


LABELS = [
    label(1, "keep all logs for ninety days"),
    label(2, "tests run on every push", importance=2),
    label(3, "the button green", scope="session"),
    label(4, "keep all logs for thirty days", supersedes="A-m1"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five sessions of a turn each, the last of which nobody labelled; two of them mixed into each other."""
    turns = [
        {"project": "one", "session": f"one-{n:02}", "id": f"one-{n:02}:0", "type": "user_message", "text": text}
        | {"time": f"2026-02-0{n} 10:00"}
        for n, text in SAID.items()
    ]
    late = turns[0] | {"id": "one-01:1", "text": "ok", "time": "2026-02-01T10:05:00Z"}
    (tmp_path / "sessions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*turns[:2], late, *turns[2:]]))
    (tmp_path / "memories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in LABELS))
    return tmp_path


def run(folder: Path, memories: Memories, tmp_path: Path) -> Run:
    return Run(data=devmem.labelled(folder), memories=memories, models_dir=tmp_path, model=NO_MODEL)


def test_sessions_that_nobody_labelled_are_left_out_and_turns_of_a_session_stand_together(folder: Path) -> None:
    [project] = devmem.labelled(folder).projects

    assert [turn.id for turn in project.turns] == ["one-01:0", "one-01:1", "one-02:0", "one-03:0", "one-04:0"]
    assert list(project.times) == sorted(project.times)
    with pytest.raises(InvalidError, match="no project is called two"):
        devmem.labelled(folder, ["two"])
    with pytest.raises(NotFoundError, match=r"sessions\.jsonl"):
        devmem.labelled(folder / "absent")


def test_starts_are_asked_from_the_third_session_on_for_what_still_holds_of_earlier_ones(
    folder: Path, tmp_path: Path
) -> None:
    [found] = handed.measured(run(folder, Memories.LABELLED, tmp_path))

    assert [start.session for start in found.starts] == ["one-03", "one-04"]
    assert [start.wanted for start in found.starts] == [{"A-m1"}, {"A-m1"}]
    assert {label for line in found.starts[0].lines for label in line.labels} == {"A-m1", "A-m2"}
    assert all(line.worth for start in found.starts for line in start.lines)
    assert {one["missed"] == [] for one in found.details()} == {True}


def test_what_the_product_learned_is_held_against_the_labels(folder: Path, tmp_path: Path) -> None:
    [found] = handed.measured(run(folder, Memories.LEARNED, tmp_path))
    [again] = handed.measured(run(folder, Memories.LEARNED, tmp_path))

    worth = [line for line in found.starts[0].lines if line.worth]
    assert {label for line in worth for label in line.labels} == {"A-m1", "A-m2"}
    assert found == again, "the same on every run"


def line(*labels: str, worth: bool = True) -> Line:
    return Line(section="rule", text="x", labels=labels, worth=worth)


def test_a_row_counts_lines_labels_and_empty_starts() -> None:
    starts = (
        Start(session="3", lines=(line("m1"), line(worth=False)), items=3, tokens=100, wanted=frozenset({"m1", "m2"})),
        Start(session="4", lines=(line("m1"), line("m2", "m1")), items=2, tokens=300, wanted=frozenset({"m2"})),
    )
    nothing = Start(session="3", lines=(), items=0, tokens=0, wanted=frozenset())

    rows = handed.rows(
        [Handed(project="one", starts=starts), Handed(project="two", starts=(nothing,))], Memories.LEARNED
    )

    assert [row["project"] for row in rows] == ["one", "two", ALL]
    assert rows[0] == {
        "project": "one", "from": "learned", "starts": 2, "lines": 5, "memories": 4, "right": 0.75,
        "covered_3": 2 / 3, "wanted_3": 3, "tokens_median": 200, "empty": 0,
    }  # fmt: skip
    assert (rows[1]["right"], rows[1]["covered_3"], rows[1]["empty"]) == (None, None, 1)
    assert (rows[2]["starts"], rows[2]["tokens_median"]) == (3, 100)


def test_our_own_sessions_are_of_four_people_who_change_their_minds() -> None:
    data = devmem.labelled(OWN)
    labels = {one.id: one for project in data.projects for one in project.labels}

    assert len(data.projects) == 4
    for project in data.projects:
        assert len({turn.session for turn in project.turns}) >= 5
        replaced = [one.supersedes for one in project.labels if one.supersedes]
        assert replaced
        assert all(labels[one].scope == "project" for one in replaced)
    assert {one.importance for one in labels.values()} == {1, 2, 3}
    assert {one.said_by for one in labels.values()} == {"person", "agent"}


def test_the_command_shows_a_table_and_writes_what_was_handed_over(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.json"

    code = cli.main(["handed", "--data", str(folder), "--gold", "--model", NO_MODEL, "--json", str(out)])

    assert code == 0
    assert "| one | 2 |" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["rows"][0]["right"] == 1.0
    assert found["details"]["one"][0]["lines"][0]["labels"]
    assert found["run"]["data"]["sha256"] == devmem.labelled(folder).sha256
