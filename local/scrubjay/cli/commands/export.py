"""`scrubjay export`: write everything out, or what is remembered in the form of another program."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from scrubjay import api, destination
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import overwriting
from scrubjay.cli.output import Output
from scrubjay.cli.reports import ExportReport
from scrubjay.cli.target import target_of
from scrubjay.exporters import ExportFormat, markdown, mcp_memory, pam
from scrubjay.importers.export_format import memory_of
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.importers.export_format import MemoryRecord
    from scrubjay.transports.local import Transport


def configure(parser: Parser) -> None:
    """Take where to write to, and in which form."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="where to write (stdout); a folder for markdown"
    )
    parser.add_argument(
        "--format",
        choices=[each.value for each in ExportFormat],
        default=ExportFormat.SCRUBJAY.value,
        help="scrubjay (everything, one record a line), or the memories as pam, mcp-memory or markdown",
    )
    overwriting(parser)


def run(line: Namespace) -> None:
    """Write everything out, as `scrubjay import` reads it. A file or a folder appears complete, or not at all."""
    out = Output.of(line)
    form = ExportFormat(line.format)
    if form is ExportFormat.MARKDOWN:
        _folder(line, out)
        return
    write = _everything if form is ExportFormat.SCRUBJAY else _document if form is ExportFormat.PAM else _graph
    with invocation.store(line) as store:
        if line.file == "-":
            sys.stdout.flush()
            write(store, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        path = target_of(line, Path(line.file).expanduser().absolute())
        with destination.written(path, force=line.force) as part, part.open("wb") as file:
            lines, size = write(store, file)
            file.flush()
    _said(out, path, lines, size)


def _said(out: Output, path: Path, lines: int, size: int) -> None:
    report = ExportReport(path=str(path), lines=lines, bytes=size)
    out.answer(report, lambda: f"wrote {path}: {render.words.counted(lines, 'record')}, {render.words.size(size)}")


Writer = Callable[["Transport", BinaryIO], tuple[int, int]]
"""Writes what a store has; returns how many records and bytes."""


def _everything(store: Transport, file: BinaryIO) -> tuple[int, int]:
    lines = size = 0
    for record in store.stream("export", api.Nothing()):
        size += file.write(record + b"\n")
        lines += 1
    return lines, size


def _document(store: Transport, file: BinaryIO) -> tuple[int, int]:
    owner, records = _memories(store)
    kept = list(records)
    size = file.write(pam.document(kept, owner=owner, now=Millis(time.time_ns() // 1_000_000)))
    return len(kept), size


def _graph(store: Transport, file: BinaryIO) -> tuple[int, int]:
    lines = size = 0
    for row in mcp_memory.lines(_memories(store)[1]):
        size += file.write(row)
        lines += 1
    return lines, size


def _folder(line: Namespace, out: Output) -> None:
    """Write the notes of markdown into a new folder."""
    if line.file == "-":
        raise InvalidError(
            "notes of markdown are a folder of files", hint="name the folder: scrubjay export --format markdown FOLDER"
        )
    path = Path(line.file).expanduser().absolute()
    lines = size = 0
    with invocation.store(line) as store, destination.folder_written(path) as part:
        for name, data in markdown.notes(_memories(store)[1]):
            note = part / name
            note.parent.mkdir(mode=0o700, exist_ok=True)
            note.touch(mode=0o600)
            size += note.write_bytes(data)
            lines += 1
    _said(out, path, lines, size)


def _memories(store: Transport) -> tuple[str, Iterator[MemoryRecord]]:
    """Return whose memories they are (the store's id), and the memories with what belongs to them."""
    rows = iter(store.stream("export", api.Nothing()))
    header = json.loads(next(rows))
    return str(header["store"]), (record for row in rows if (record := memory_of(row)) is not None)
