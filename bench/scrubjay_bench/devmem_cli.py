"""`scrubjay bench devmem`: what is learned from labelled coding sessions, and whether later questions find it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay.policy import DEFAULT
from scrubjay.writer import configured
from scrubjay_bench import devmem, devmem_asking, devmem_tables, devmem_writers, plots, report
from scrubjay_bench.devmem_asking import MEAN, Memories, Run, Seen
from scrubjay_bench.devmem_writers import Answers
from scrubjay_shared.errors import InvalidError, NotFoundError

CHECKOUT = Path(__file__).resolve().parents[2]
OWN = CHECKOUT / "bench" / "devmem"
FIGURES = CHECKOUT / "bench" / "devmem.json"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
FORMAT = 1
ABOUT = "what is learned from labelled coding sessions, and whether later questions find it"
AT = 5
PART_NAMES = ("precision", "type_right", "scope_right", "tempting_kept", "first_right", "current_first", "known_auc")


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("devmem", help=ABOUT, description=ABOUT)
    files = f"{devmem.SESSIONS}, {devmem.MEMORIES}, {devmem.TEMPTING} and {devmem.QUESTIONS}"
    command.add_argument("--data", type=Path, required=True, help=f"a folder with {files}")
    command.add_argument("--projects", nargs="+", default=(), metavar="NAME", help="some projects only")
    command.add_argument(
        "--gold", action="store_true", help="learn nothing and add the labelled memories: the ranking alone is measured"
    )
    command.add_argument(
        "--writer",
        choices=[one.value for one in Answers],
        help="have an observer read the sessions: the Writer of the settings, under their caps for each project; or the"
        " labels, which measures what gets lost on the way; or those of other sessions, which should be refused",
    )
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--reranker", default=options.DEFAULT_RERANKER, help="the reranking model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows there, and every memory and answer behind them"
    )
    command.add_argument("--out", type=Path, metavar="FOLDER", help="also draw the rows there, as SVG")
    command.add_argument(
        "--docs", action="store_true", help="also write them into bench/devmem.json and docs/benchmarks.md"
    )
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.docs and line.projects:
        raise InvalidError("--docs writes all projects down", hint="leave --projects out")
    if line.gold and line.writer:
        raise InvalidError("--gold learns nothing, so nothing is asked", hint="leave --gold or --writer out")
    if line.docs and line.writer in {Answers.LABELS, Answers.OTHER_LABELS}:
        raise InvalidError("--docs writes down what a product can do, not what labels say", hint="leave --docs out")
    run = _run(line)
    conditions = run.conditions
    seen: list[Seen] = []
    for one in devmem_asking.measured(run):
        seen.append(one)
        # After each project: a run takes long, and what was measured should not be lost to what comes after it.
        rows = devmem_asking.rows(seen, run.memories)
        if line.json:
            details = {each.project.name: each.details() for each in seen}
            _write(line.json, {"rows": rows, "run": conditions, "details": details})
    print(f"{set_name(line.data)}: data sha256 {run.data.sha256}, memories {run.memories.value}")
    print(devmem_tables.shown(rows))
    if run.answers is not None:
        print(devmem_tables.observed({each.project.name: each.observed for each in seen if each.observed}))
    if line.out:
        _draw(line.out, f"{set_name(line.data)}, {run.memories.value}", rows)
    if line.docs:
        _write_down(set_name(line.data), run.memories, {"rows": rows, "run": conditions})
    return 0


def _run(line: argparse.Namespace) -> Run:
    settings = options.load(environ=os.environ)
    models_dir = line.models or settings.models_dir
    answers = Answers(line.writer) if line.writer else None
    writer = None
    if answers is Answers.SETTINGS:
        writer = configured.chosen(settings, os.environ, DEFAULT.writer)
        if writer is None:
            raise InvalidError("the settings name no Writer", hint="scrubjay docs writer says how to set one")
    for name in (line.model, line.reranker):
        if name != options.NO_MODEL and not (models_dir / name).is_dir():
            raise NotFoundError(f"the model {name} is not there", hint=f"scrubjay models pull {name}")
    return Run(
        data=devmem.load(line.data, line.projects),
        memories=Memories.LABELLED if line.gold else Memories.OBSERVED if answers else Memories.LEARNED,
        models_dir=models_dir.absolute(),
        model=line.model,
        reranker=line.reranker,
        scratch=line.scratch,
        answers=answers,
        writer=writer,
        caps=configured.caps(settings) if writer else devmem_writers.NO_CAPS,
    )


def set_name(folder: Path) -> str:
    """Return what a folder's data is called in tables: ours, or as the folder is."""
    return "bench/devmem" if folder.resolve() == OWN else folder.resolve().name


def _draw(folder: Path, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in f"devmem {title}".lower())
    drawn = [{"by_category": {}, **row, "configuration": row["project"]} for row in rows]
    asked = [row for row in drawn if row["questions"]]
    (folder / f"{name}-curves.svg").write_text(plots.curves(f"{title}: recall at k", asked), encoding="utf-8")
    bars = plots.bars(f"{title}: recall at {AT} by category", [row for row in asked if row["project"] != MEAN], AT)
    (folder / f"{name}-categories.svg").write_text(bars, encoding="utf-8")
    parts = [row | {"by_category": _parts(row)} for row in drawn]
    bars = plots.bars(f"{title}: shares", parts, AT, counted="")
    (folder / f"{name}-shares.svg").write_text(bars, encoding="utf-8")


def _parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shares of a row in the shape in which bars are drawn."""
    found = {name.replace("_", " "): row[name] for name in PART_NAMES} | {"coverage 2-3": row["coverage"]["2-3"]}
    return {name: {"recall": {str(AT): value}} for name, value in found.items() if value is not None}


def _write_down(name: str, memories: Memories, found: Mapping[str, Any]) -> None:
    """Put rows into the committed figures in place of their own earlier ones, and all of them into the page."""
    if not PAGE.exists():
        raise NotFoundError("docs/benchmarks.md is not there", hint="--docs is for a checkout of the source")
    sets = figures()
    sets[name] = {**sets.get(name, {}), memories.value: found}
    block = devmem_tables.block(sets)
    page = report.inserted(PAGE.read_text(encoding="utf-8"), devmem_tables.BEGIN, devmem_tables.END, block)
    _write(FIGURES, {"format": FORMAT, "sets": sets})
    PAGE.write_text(page, encoding="utf-8")


def figures() -> dict[str, Any]:
    """Return the committed rows, by data set; none where the file is not there."""
    try:
        found = json.loads(FIGURES.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidError("bench/devmem.json is of another format", hint="git checkout bench/devmem.json")
    return dict(found["sets"])


def _write(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file whole or not at all: a run is often ended in the middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
