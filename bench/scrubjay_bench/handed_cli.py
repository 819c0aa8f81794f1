"""`scrubjay bench handed`: how much of what sessions are handed at their start a careful reader would have kept."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay_bench import devmem, handed
from scrubjay_bench.devmem_asking import Memories
from scrubjay_shared.errors import NotFoundError

OWN = Path(__file__).resolve().parents[1] / "handed"
ABOUT = "how much of what sessions are handed at their start a careful reader would have kept"


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("handed", help=ABOUT, description=ABOUT)
    files = f"{devmem.SESSIONS} and {devmem.MEMORIES}"
    command.add_argument("--data", type=Path, required=True, help=f"a folder with {files}; bench/handed is ours")
    command.add_argument("--projects", nargs="+", default=(), metavar="NAME", help="some projects only")
    command.add_argument(
        "--gold", action="store_true", help="learn nothing and add the labelled memories: the choice alone is measured"
    )
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows there, and every line that was handed over"
    )
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if line.model != options.NO_MODEL and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    run = handed.Run(
        data=devmem.labelled(line.data, line.projects),
        memories=Memories.LABELLED if line.gold else Memories.LEARNED,
        models_dir=models_dir.absolute(),
        model=line.model,
        scratch=line.scratch,
    )
    found: list[handed.Handed] = []
    rows: list[dict[str, Any]] = []
    for one in handed.measured(run):
        found.append(one)
        rows = handed.rows(found, run.memories)
        if line.json:  # after each project: a run takes long
            details = {each.project: each.details() for each in found}
            text = json.dumps({"rows": rows, "run": run.conditions, "details": details}, indent=1, ensure_ascii=False)
            line.json.write_text(f"{text}\n", encoding="utf-8")
    print(f"{run.data.name}: data sha256 {run.data.sha256}, memories {run.memories.value}")
    print(table(rows))
    return 0


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table: a line for each project."""
    head = "| project | starts | memory lines | worth it | importance 3 covered | tokens (median) | empty starts |"
    lines = [
        f"| {row['project']} | {row['starts']} | {row['memories']} | {_share(row['right'])} |"
        f" {_share(row['covered_3'])} of {row['wanted_3']} | {row['tokens_median']:g} | {row['empty']} |"
        for row in rows
    ]
    return "\n".join([head, "|---|--:|--:|--:|--:|--:|--:|", *lines])


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
