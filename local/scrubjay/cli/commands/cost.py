"""`scrubjay cost`: show what the Writer used, and what is left of its caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, count, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take what calls are added up by, and of which days."""
    parser.add_argument(
        "--by",
        type=text,
        default="day,job,model",
        metavar="NAMES",
        help="add calls up by these, separated by commas: day, month, job, writer, model (%(default)s)",
    )
    parser.add_argument("--since", type=text, metavar="DAY", help="from this day on, as 2026-11-23 (30 days ago)")
    parser.add_argument("--until", type=text, metavar="DAY", help="up to this day, which is included")
    parser.add_argument("-n", "--limit", type=count, default=200, help="at most this many rows (200)")


def run(line: Namespace) -> None:
    """Show the calls of the Writer."""
    out = Output.of(line)
    request = api.CostRequest(by=line.by, since=line.since, until=line.until, limit=line.limit)
    with invocation.store(line) as store:
        answer: api.CostResponse = store.call("cost", request)
    by = tuple(dict.fromkeys(name for name in line.by.split(",") if name))
    out.answer(answer, lambda: render.costs.cost(answer, by))
