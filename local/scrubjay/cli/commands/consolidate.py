"""`scrubjay consolidate`: merge what is there twice, end what was outdated, and compress old detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take whether to do it."""
    parser.add_argument("--dry-run", action="store_true", help="show the whole plan, and change nothing")


def run(line: Namespace) -> None:
    """Consolidate, or say what that would change."""
    out = Output.of(line)
    with invocation.store(line) as store:
        answer: api.ConsolidateResponse = store.call("consolidate", api.ConsolidateRequest(dry_run=line.dry_run))
        out.answer(answer, lambda: render.consolidation.consolidated(answer, dry_run=line.dry_run))
        if not line.dry_run:
            invocation.embedded(store)
