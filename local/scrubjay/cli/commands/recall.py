"""`scrubjay recall`: ask a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import CANDIDATES, MODES, SCOPES, TYPES, caller, count, period, share, text, whole
from scrubjay.cli.output import Output
from scrubjay_shared.records import MemoryType, Scope

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a question and what may answer it."""
    parser.add_argument("query", nargs="+", type=text, metavar="QUERY", help="the question; - reads it from stdin")
    parser.add_argument("-n", "--limit", type=count, default=5, help="at most this many hits (5)")
    parser.add_argument("--mode", choices=MODES, default="hybrid", help="meaning and words, words only, or the formula")
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        choices=TYPES,
        default=[],
        metavar="TYPE",
        help="only memories of this type; can be repeated",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        action="append",
        choices=CANDIDATES,
        default=[],
        help="only memories, or only events (both)",
    )
    period(parser)
    parser.add_argument(
        "--min-salience", type=share, default=0.0, metavar="0..1", help="only memories with at least this salience"
    )
    parser.add_argument(
        "--max-tokens", type=count, metavar="N", help="at most this many tokens of text in the answer (2000)"
    )
    parser.add_argument("--neighbours", type=whole, default=0, metavar="N", help="show N events around each hit (0)")
    parser.add_argument(
        "--no-rerank",
        dest="rerank",
        action="store_false",
        help="leave out the reranking model: about six times as fast",
    )
    parser.add_argument("--why", action="store_true", help="show the parts that each score is the sum of")
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    parser.add_argument("--agent", type=text, help="only what this agent said or learned")
    caller(parser)


def run(line: Namespace) -> None:
    """Ask a question."""
    out = Output.of(line)
    today = invocation.now()
    request = api.RecallRequest(
        query=invocation.words(line.query, "the question"),
        limit=line.limit,
        mode=api.Mode(line.mode),
        project=line.project,
        session_id=line.session,
        scope=None if line.scope is None else Scope(line.scope),
        agent=line.agent,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        types=tuple(MemoryType(name) for name in line.types),
        kinds=tuple(dict.fromkeys(line.kinds)) or ("memory", "event"),
        min_salience=line.min_salience,
        max_tokens=line.max_tokens,
        neighbours=line.neighbours,
        rerank=line.rerank,
    )
    with invocation.store(line) as door:
        answer: api.RecallAnswer = door.call("recall", request)
    out.answer(answer, lambda: render.hits.recall(answer, why=line.why))
    if not out.json:
        out.remark(render.hits.recalled(answer))
