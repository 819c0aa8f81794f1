"""`scrubjay bench consolidation`: what months of consolidation cost and save."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay_bench import consolidation
from scrubjay_bench.figures import load, machine
from scrubjay_shared.errors import InvalidError, NotFoundError

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
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.locomo is None and line.devmem is None:
        raise InvalidError("there is nothing to measure on", hint="name --locomo FILE, --devmem FOLDER or both")
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if line.model != options.NO_MODEL and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    talks = consolidation.talks(line.locomo, line.devmem, line.only, line.sessions)
    if not talks:
        raise InvalidError("nothing has one of these names", hint="leave --only out for all")
    rows = []
    for row in consolidation.measured(talks, models_dir=models_dir.absolute(), model=line.model, scratch=line.scratch):
        rows.append(row)
        if line.json:
            run = {"model": line.model, "sessions": line.sessions, "machine": machine(models_dir), "load": load()}
            line.json.write_text(json.dumps({"rows": rows, "run": run}, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(consolidation.table(rows) + "\n")
    return 0
