"""`scrubjay review`: list what waits for the person, and accept or reject it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import invalid, text
from scrubjay.cli.output import Output
from scrubjay_shared.records import ReviewState

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser

EVERY = "all"


def configure(parser: Parser) -> None:
    """Take what is decided, of which memories; or which ones to list."""
    parser.add_argument("decision", nargs="?", choices=("accept", "reject"), help="say that memories hold, or do not")
    parser.add_argument("refs", nargs="*", type=text, metavar="REF", help=f"the memories, or {EVERY} that wait")
    parser.add_argument(
        "--state",
        choices=[state.value for state in ReviewState],
        help="list those in this state; without it, what waits and what is disputed",
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="memories of a page")
    parser.add_argument("--cursor", type=text, metavar="CURSOR", help="the next page, as the page before named it")


def run(line: Namespace) -> None:
    """List the queue, or decide on some of it."""
    out = Output.of(line)
    if line.decision is None:
        request = api.ReviewRequest(
            state=None if line.state is None else ReviewState(line.state), limit=line.limit, cursor=line.cursor
        )
        with invocation.store(line) as store:
            answer: api.ReviewResponse = store.call("review", request)
        out.answer(answer, lambda: render.review.queue(answer))
        return
    if not line.refs:
        raise invalid(f"review {line.decision} needs memories", hint=f"scrubjay review {line.decision} REF, or {EVERY}")
    every = line.refs == [EVERY]
    asked = api.DecideRequest(accept=line.decision == "accept", refs=() if every else tuple(line.refs), every=every)
    with invocation.store(line) as store:
        done: api.DecideResponse = store.call("decide", asked)
    out.answer(done, lambda: render.review.decided(done, every=every))
