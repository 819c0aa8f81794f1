"""`scrubjay backup`: copy the store while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import overwriting
from scrubjay.cli.output import Output
from scrubjay.cli.target import target_of

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take where to write to."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to write (a dated file in the data folder)")
    overwriting(parser)


def run(line: Namespace) -> None:
    """Copy the store while it is in use, and check the copy."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    stamp = f"{invocation.now():%Y-%m-%dT%H%M%S}"
    default = chosen.store_dir / "backups" / f"memory-{stamp}.db"
    path = Path(line.file).expanduser().absolute() if line.file else default
    if path.is_dir():
        path = path / default.name
    if path == default:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = target_of(line, path)
    with invocation.store(line) as store:
        answer: api.PathResponse = store.call("backup", api.PathRequest(path=str(path), force=line.force))
    out.answer(
        answer, lambda: f"wrote {answer.path}: {render.words.size(answer.bytes)}, checked, sha256 {answer.sha256[:16]}…"
    )
