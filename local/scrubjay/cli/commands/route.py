"""`scrubjay route`: find where the answer to a question stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import INTENTS, caller, count, period, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a question, and what bounds the way to its answer."""
    parser.add_argument("query", nargs="*", type=text, metavar="QUERY", help="the question; - reads it from stdin")
    parser.add_argument("-n", "--limit", type=count, default=3, help="at most this many places (3)")
    parser.add_argument("--intent", choices=INTENTS, help="what the question is after, where its words do not tell")
    parser.add_argument("--max-tokens", type=count, metavar="N", help="at most this many tokens of quoted text (1000)")
    parser.add_argument("--timeout-ms", type=count, metavar="N", help="skip the layers for which no time is left")
    parser.add_argument("--agent", type=text, help="only what this agent said or learned")
    parser.add_argument("--layers", action="store_true", help="show how the layers are, and ask nothing")
    period(parser)
    caller(parser)


def run(line: Namespace) -> None:
    """Find where the answer to a question stands, or show how the layers are."""
    out = Output.of(line)
    if line.layers:
        with invocation.store(line) as store:
            health: api.LayersResponse = store.call("layers", api.Nothing())
        out.answer(health, lambda: render.route.layers(health))
        return
    today = invocation.now()
    request = api.RouteRequest(
        query=invocation.words(line.query, "the question"),
        intent=None if line.intent is None else api.Intent(line.intent),
        limit=line.limit,
        max_tokens=line.max_tokens,
        timeout_ms=line.timeout_ms,
        agent=line.agent,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        project=line.project,
        session_id=line.session,
    )
    with invocation.store(line) as store:
        answer: api.RouteResponse = store.call("route", request)
    out.answer(answer, lambda: render.route.routed(answer))
    out.notes(answer.notes)
