"""`scrubjay export`: write everything out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from scrubjay import api, destination
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import overwriting
from scrubjay.cli.output import Output
from scrubjay.cli.reports import ExportReport
from scrubjay.cli.target import target_of

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.transports.local import Transport


def configure(parser: Parser) -> None:
    """Take where to write to."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="where to write, one record a line (stdout)"
    )
    overwriting(parser)


def run(line: Namespace) -> None:
    """Write everything out, as `scrubjay import` reads it. A file appears complete, or not at all."""
    out = Output.of(line)
    with invocation.store(line) as store:
        if line.file == "-":
            sys.stdout.flush()
            _written(store, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        path = target_of(line, Path(line.file).expanduser().absolute())
        with destination.written(path, force=line.force) as part, part.open("wb") as file:
            lines, size = _written(store, file)
            file.flush()
    report = ExportReport(path=str(path), lines=lines, bytes=size)
    out.answer(report, lambda: f"wrote {path}: {render.words.counted(lines, 'record')}, {render.words.size(size)}")


def _written(store: Transport, file: BinaryIO) -> tuple[int, int]:
    lines = size = 0
    for record in store.stream("export", api.Nothing()):
        size += file.write(record + b"\n")
        lines += 1
    return lines, size
