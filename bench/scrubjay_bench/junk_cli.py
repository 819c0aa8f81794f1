"""`scrubjay bench junk`: a month of an agent's work, with recall in every turn, and what of it becomes junk."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrubjay import settings as options
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay_bench import junk, plots, report
from scrubjay_bench.junk import Control, Junk
from scrubjay_shared.errors import InvalidError, NotFoundError

ABOUT = "a month of an agent's work, with recall in every turn, and what of it becomes junk"
MOST_TURNS = 1_500
CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "benchmarks.md"
DRAWING = CHECKOUT / "docs" / "images" / "junk.svg"
BEGIN = "<!-- junk:begin, written by `scrubjay bench junk --docs` -->"
END = "<!-- junk:end -->"


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    command = commands.add_parser("junk", help=ABOUT, description=ABOUT)
    command.add_argument("--devmem", type=Path, metavar="FOLDER", help="labelled coding sessions")
    command.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    command.add_argument("--turns", type=int, default=MOST_TURNS, metavar="N", help="turns of each set (%(default)s)")
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    command.add_argument("--out", type=Path, metavar="FILE", help="also draw the size of the store there, as SVG")
    command.add_argument("--check", action="store_true", help="exit with 1 where anything is not as it should be")
    command.add_argument(
        "--docs", action="store_true", help="also write them into docs/benchmarks.md, with the drawing"
    )
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.devmem is None and line.locomo is None:
        raise InvalidError("there is nothing to live through", hint="name --devmem FOLDER, --locomo FILE or both")
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if line.model != options.NO_MODEL and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    sources = [] if line.devmem is None else [junk.of_devmem(line.devmem, line.turns)]
    sources += [] if line.locomo is None else [junk.of_locomo(line.locomo, line.turns)]
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_lived(Path(folder), models_dir, line.model, junk.month(sources)))
        control = asyncio.run(_control(Path(folder)))
    print(table(found, control))
    if line.json:
        figures = asdict(found) | {"model": line.model, "control": asdict(control)}
        line.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if line.out:
        line.out.write_text(drawn(found), encoding="utf-8")
    if line.docs:
        document(found, control, line.model)
    failed = junk.failures(found, control)
    for told in failed:
        print(f"junk: {told}", file=sys.stderr)
    return int(bool(failed and line.check))


def drawn(found: Junk) -> str:
    """Return the size of the store against turns, as SVG."""
    return plots.growth("Size of the store during a month", found.sizes)


def document(found: Junk, control: Control, model: str) -> None:
    """Write figures and drawing into the documentation of this checkout."""
    how = "without an embedding model" if model == options.NO_MODEL else f"with {model}"
    figures = f"{BEGIN}\n\n{found.turns:,} turns, {how}:\n\n{table(found, control)}\n\n{END}"
    page = report.inserted(PAGE.read_text(encoding="utf-8"), BEGIN, END, figures)
    PAGE.write_text(page, encoding="utf-8")
    DRAWING.write_text(drawn(found), encoding="utf-8")


async def _lived(folder: Path, models_dir: Path, model: str, turns: list[junk.Turn]) -> Junk:
    clock = junk.Clock()
    service = await Application.open(folder / "memory.db", models_dir=models_dir, model=model, now=clock)
    try:
        return await junk.lived(service, turns, clock)
    finally:
        await service.close()


async def _control(folder: Path) -> Control:
    counts = []
    for subtracts in (True, False):
        clock = junk.Clock()
        service = await Application.open(
            folder / f"control-{int(subtracts)}.db",
            models_dir=folder,
            model=options.NO_MODEL,
            policy=junk.comparing(DEFAULT, subtracts=subtracts),
            now=clock,
        )
        try:
            counts.append(await junk.echoes_of(service, clock))
        finally:
            await service.close()
    return Control(with_subtraction=counts[0], without=counts[1])


def table(found: Junk, control: Control) -> str:
    """Return the figures as a table of Markdown."""
    near = found.near if found.near_by_meaning is None else found.near_by_meaning
    rows = (
        ("turns, and how often something was handed over", f"{found.turns:,} / {found.handed:,}"),
        ("memories", f"{found.memories:,}"),
        ("exact duplicates in a scope", f"{found.exact}"),
        (
            "near duplicates" + ("" if found.near_by_meaning is None else " (by meaning)"),
            f"{near} ({near / max(found.memories, 1):.1%})",
        ),
        ("memories that tell back what was handed over", f"{found.echoes}"),
        ("passages that tell it back", f"{found.echoed_sources}"),
        (
            "planted echoes that were learned, and without the subtraction",
            f"{control.with_subtraction} / {control.without}",
        ),
        ("memories of turns that say nothing, of our block, of directives", f"{found.junk}"),
        ("size of the store", f"{found.sizes[-1][1] / 1e6:.1f} MB"),
    )
    return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows)])
