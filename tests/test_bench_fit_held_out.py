"""The table of what the distiller keeps of people that its selector was not fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrubjay.distill.features import FEATURES
from scrubjay.distill.forest import Forest
from scrubjay_bench import devmem, fit_held_out
from scrubjay_bench.devmem_scores import SAME_TYPE

OURS = Path(__file__).parents[1] / "bench" / "devmem"


def always(chance: float) -> Forest:
    """A forest of one leaf, which gives every sentence the same chance."""
    nothing = np.zeros(1, np.int32)
    return Forest(
        names=FEATURES,
        roots=nothing,
        feature=np.zeros(1, np.int16),
        threshold=np.zeros(1, np.float32),
        left=nothing,
        right=nothing,
        value=np.zeros(1, np.float32),
        depth=1,
        slope=0.0,
        offset=float(np.log(chance / (1 - chance))),
    )


@pytest.fixture(scope="module")
def held() -> list[fit_held_out.Held]:
    projects = devmem.load(OURS).projects
    return [fit_held_out.Held(project, always(0.28)) for project in projects]


def test_a_lower_floor_keeps_more_and_each_row_says_of_whom(held: list[fit_held_out.Held]) -> None:
    found = list(fit_held_out.rows(held, (0.25, 0.5)))

    assert [(row["floor"], row["project"]) for row in found] == [
        (floor, name) for floor in (0.25, 0.5) for name in (*(one.project.name for one in held), "all")
    ]
    low, high = (row for row in found if row["project"] == "all")
    assert low["memories"] > high["memories"] > 0  # the patterns' own decisions stay
    assert low["coverage"]["2-3"] >= high["coverage"]["2-3"]


def test_the_table_has_a_line_for_each_row(held: list[fit_held_out.Held]) -> None:
    found = list(fit_held_out.rows(held[:1], (0.5,)))

    lines = fit_held_out.table(found).splitlines()

    assert len(lines) == 2 + len(found)
    assert lines[0].count("|") == lines[1].count("|") == lines[-1].count("|")
    assert lines[-1].startswith(f"| 0.5 | all | {found[-1]['memories']} | ")


def test_each_learned_label_is_counted_once_by_its_kind_and_by_what_it_is_called(
    held: list[fit_held_out.Held],
) -> None:
    lines = fit_held_out.kinds(held, 0.25).splitlines()
    cells = {line.split("|")[1].strip(): [int(cell) for cell in line.split("|")[2:-1]] for line in lines[2:]}
    row: dict[str, Any] = next(row for row in fit_held_out.rows(held, (0.25,)) if row["project"] == "all")

    assert tuple(cells) == fit_held_out.KINDS
    covered = sum(row["labels"][one] * row["coverage"][one] for one in row["labels"])
    assert covered > 0
    assert sum(map(sum, cells.values())) == pytest.approx(covered, abs=0.01)
    right = sum(
        cells[label][n]
        for label in cells
        for n, kind in enumerate(fit_held_out.KINDS)
        if label == kind or (label, kind) in SAME_TYPE
    )
    assert right == pytest.approx(covered * row["type_right"], abs=0.01)
