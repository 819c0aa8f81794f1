"""`scrubjay bench consolidation`: what months of consolidation cost and save."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay_bench import consolidation, report
from scrubjay_bench.figures import load, machine
from scrubjay_shared.errors import InvalidError, NotFoundError

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "benchmarks.md"
FIGURES = CHECKOUT / "bench" / "consolidation.json"
FORMAT = 1
BEGIN = "<!-- consolidation:begin, written by `scrubjay bench consolidation --docs` -->"
END = "<!-- consolidation:end -->"
ABOUT = "recall, tokens and specifics before and after months of consolidation, and whether undo is exact"


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("consolidation", help=ABOUT, description=ABOUT)
    command.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    command.add_argument("--devmem", type=Path, metavar="FOLDER", help="labelled coding sessions")
    command.add_argument("--only", nargs="+", default=(), metavar="NAME", help="some conversations or projects only")
    command.add_argument("--sessions", type=int, metavar="N", help="only the first sessions of each")
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    command.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    command.add_argument("--resume", action="store_true", help="go on with the rows of --json that are there already")
    command.add_argument("--docs", action="store_true", help="also write them into docs/benchmarks.md")
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.locomo is None and line.devmem is None:
        raise InvalidError("there is nothing to measure on", hint="name --locomo FILE, --devmem FOLDER or both")
    if line.docs and (line.only or line.sessions or line.locomo is None or line.devmem is None):
        raise InvalidError("--docs writes both sets down, whole", hint="name --locomo and --devmem alone")
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if line.model != options.NO_MODEL and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    talks = consolidation.talks(line.locomo, line.devmem, line.only, line.sessions)
    if not talks:
        raise InvalidError("nothing has one of these names", hint="leave --only out for all")
    rows = _begun(line) if line.resume else []
    order = [talk.name for talk in consolidation.talks(line.locomo, line.devmem, (), line.sessions)]
    done = {row["name"] for row in rows}
    left = [talk for talk in talks if talk.name not in done]
    for row in consolidation.measured(left, models_dir=models_dir.absolute(), model=line.model, scratch=line.scratch):
        rows = sorted([*rows, row], key=lambda one: order.index(one["name"]) if one["name"] in order else -1)
        if line.json:  # after each: a run takes long
            _write(line.json, _measured(line, rows, models_dir))
    sys.stdout.write(consolidation.table(rows) + "\n")
    if line.docs:
        page = report.inserted(
            PAGE.read_text(encoding="utf-8"), BEGIN, END, f"{BEGIN}\n\n{consolidation.table(rows)}\n\n{END}"
        )
        _write(FIGURES, _measured(line, rows, models_dir))
        PAGE.write_text(page, encoding="utf-8")
    return 0


def _begun(line: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows that an earlier run wrote. Raises InvalidError where it measured something else."""
    if line.json is None:
        raise InvalidError("--resume goes on with the file of --json", hint="name --json FILE, too")
    if not line.json.is_file():
        return []
    found = json.loads(line.json.read_text(encoding="utf-8"))
    if (found["format"], found["run"]["model"], found["run"]["sessions"]) != (FORMAT, line.model, line.sessions):
        raise InvalidError(f"{line.json} was measured in another way", hint="name another file, or leave --resume out")
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def _measured(line: argparse.Namespace, rows: Sequence[Mapping[str, Any]], models_dir: Path) -> dict[str, Any]:
    run = {"model": line.model, "sessions": line.sessions, "machine": machine(models_dir), "load": load()}
    return {"format": FORMAT, "rows": rows, "run": run}


def _write(path: Path, measured: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
