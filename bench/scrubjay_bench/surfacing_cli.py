"""`scrubjay bench surfacing`: how much of what sessions needed of earlier ones they would have been told ahead."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay_bench import report, surfacing, surfacing_replay
from scrubjay_bench.figures import load, machine
from scrubjay_shared.errors import InvalidError, NotFoundError

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "benchmarks.md"
FIGURES = CHECKOUT / "bench" / "surfacing.json"
FORMAT = 2
BEGIN = "<!-- surfacing:begin, written by `scrubjay bench surfacing --docs` -->"
END = "<!-- surfacing:end -->"
ABOUT = "how much of what sessions needed of earlier ones they would have been told ahead"


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("surfacing", help=ABOUT, description=ABOUT)
    command.add_argument("--devmem", type=Path, metavar="FOLDER", help="labelled coding sessions")
    command.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    command.add_argument("--people", nargs="+", default=(), metavar="NAME", help="some people only")
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    command.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    command.add_argument("--docs", action="store_true", help="also write them into docs/benchmarks.md")
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.devmem is None and line.locomo is None:
        raise InvalidError("there is nothing to replay", hint="name --devmem FOLDER, --locomo FILE or both")
    if line.docs and (line.people or line.devmem is None or line.locomo is None):
        raise InvalidError("--docs writes both sets down, with all people", hint="name --devmem and --locomo alone")
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if line.model != options.NO_MODEL and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    people, digests = surfacing.people(line.devmem, line.locomo)
    if unknown := set(line.people) - {person.name for person in people}:
        raise InvalidError(
            f"nobody is called {min(unknown)}", hint=f"people: {', '.join(person.name for person in people)}"
        )
    people = [person for person in people if not line.people or person.name in line.people]
    if not people:
        raise InvalidError("there is nobody with sessions there", hint="docs/retrieval-format.md describes the files")
    given: list[surfacing_replay.Given] = []
    for found in surfacing_replay.replayed(
        people, models_dir=models_dir.absolute(), model=line.model, scratch=line.scratch
    ):
        given += found
        rows = surfacing_replay.rows(given)
        run = {"data": digests, "model": line.model, "machine": machine(models_dir), "load": load()}
        floors, reliability = surfacing_replay.floors(given), surfacing_replay.reliability(given)
        measured = {"format": FORMAT, "rows": rows, "floors": floors, "reliability": reliability, "run": run}
        if line.json:  # after each person: a run takes long
            _write(line.json, measured)
    shown = "\n\n".join((table(rows), floor_table(floors), reliability_table(reliability)))
    print(shown)
    if line.docs:
        page = report.inserted(PAGE.read_text(encoding="utf-8"), BEGIN, END, f"{BEGIN}\n\n{shown}\n\n{END}")
        _write(FIGURES, measured)
        PAGE.write_text(page, encoding="utf-8")
    return 0


def _write(path: Path, measured: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table: a line for each set, moment, need and way."""
    head = "| set | moment | need | way | people | sessions | median | mean | tokens |"
    lines = [
        f"| {row['set']} | {row['moment']} | {row['need']} | {row['way']} | {row['people']} | {row['sessions']} |"
        f" {row['median']:.3f} | {row['mean']:.3f} | {row['tokens']:,} |"
        for row in rows
    ]
    return "\n".join([head, "|---|---|---|---|--:|--:|--:|--:|--:|", *lines])


def floor_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table: a line for each set, moment and floor."""
    head = "| set | moment | floor | lines a session | tokens a session | needed | tokens for one that was needed |"
    lines = [
        f"| {row['set']} | {row['moment']} | {row['floor']:g} | {row['lines']:.1f} | {row['tokens']:,} |"
        f" {_share(row['needed'])} | {row['tokens_per_needed'] or ''} |"
        for row in rows
    ]
    return "\n".join([head, "|---|---|--:|--:|--:|--:|--:|", *lines])


def reliability_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table: a line for each set, moment and band of probability."""
    head = "| set | moment | probability | things | predicted | needed |"
    lines = [
        f"| {row['set']} | {row['moment']} | {row['from']:g}–{row['to']:g} | {row['things']:,} |"
        f" {_share(row['predicted'])} | {_share(row['needed'])} |"
        for row in rows
    ]
    return "\n".join([head, "|---|---|---|--:|--:|--:|", *lines])


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
