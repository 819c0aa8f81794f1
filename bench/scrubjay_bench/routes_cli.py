"""`scrubjay bench route`: sixty questions, and whether they find their places."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay_bench import report, routes
from scrubjay_shared.errors import NotFoundError

CHECKOUT = Path(__file__).resolve().parents[2]
FIGURES = CHECKOUT / "bench" / "route.json"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
ABOUT = "whether sixty questions find what they are after, and where it stands"


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("route", help=ABOUT, description=ABOUT)
    command.add_argument("--locomo", type=Path, required=True, metavar="FILE", help="LoCoMo's locomo10.json")
    command.add_argument(
        "--devmem", type=Path, required=True, metavar="FOLDER", help="labelled coding sessions with the project spec"
    )
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--reranker", default=options.DEFAULT_RERANKER, help="the reranking model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    command.add_argument("--json", type=Path, metavar="FILE", help="also write what became of each question there")
    command.add_argument(
        "--docs", action="store_true", help="also write the figures into bench/route.json and docs/benchmarks.md"
    )
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    models_dir = line.models or options.load(environ=os.environ).models_dir
    for name in (line.model, line.reranker):
        if name != options.NO_MODEL and not (models_dir / name).is_dir():
            raise NotFoundError(f"the model {name} is not there", hint=f"scrubjay models pull {name}")
    run = routes.Run(
        locomo=line.locomo,
        devmem=line.devmem,
        models_dir=models_dir.absolute(),
        model=line.model,
        reranker=line.reranker,
        scratch=line.scratch,
    )
    asked = routes.measured(run)
    rows = routes.rows(asked)
    found = {
        "rows": rows,
        "run": {"sha256": run.sha256, "model": run.model, "reranker": run.reranker},
    }
    sys.stdout.write(routes.table(rows) + "\n")
    if line.json:
        line.json.write_text(routes.details(asked), encoding="utf-8")
    if line.docs:
        if not PAGE.exists():
            raise NotFoundError("docs/benchmarks.md is not there", hint="--docs is for a checkout of the source")
        page = report.inserted(PAGE.read_text(encoding="utf-8"), routes.BEGIN, routes.END, routes.block(found))
        FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page, encoding="utf-8")
    return 0
