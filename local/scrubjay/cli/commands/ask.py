"""`scrubjay ask`: have the Writer answer a question from what is remembered."""

from __future__ import annotations

from scrubjay.cli.arguments import SCOPES, caller, period, text
from scrubjay.cli.lazy import LazyModule

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay import api
    from scrubjay.cli import invocation, output, times
    from scrubjay.cli.arguments import Parser
    from scrubjay.cli.render import hits
    from scrubjay_shared import records
else:
    api, invocation = LazyModule("scrubjay.api"), LazyModule("scrubjay.cli.invocation")
    output, times = LazyModule("scrubjay.cli.output"), LazyModule("scrubjay.cli.times")
    hits, records = LazyModule("scrubjay.cli.render.hits"), LazyModule("scrubjay_shared.records")


def configure(parser: Parser) -> None:
    """Take a question and what may answer it."""
    parser.add_argument(
        "question", nargs="+", type=text, metavar="QUESTION", help="the question; - reads it from stdin"
    )
    period(parser)
    parser.add_argument(
        "--as-of", type=text, metavar="WHEN", help="what was known and held at the end of that time, as in recall"
    )
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    parser.add_argument("--agent", type=text, help="only what this agent said or learned")
    caller(parser)


def run(line: Namespace) -> None:
    """Have a question answered."""
    out = output.Output.of(line)
    today = invocation.now()
    request = api.AskRequest(
        question=invocation.words(line.question, "the question"),
        project=line.project,
        session_id=line.session,
        scope=None if line.scope is None else records.Scope(line.scope),
        agent=line.agent,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        as_of=times.until(line.as_of, today),
    )
    with invocation.store(line) as store:
        answer: api.AskResponse = store.call("ask", request)
    out.answer(answer, lambda: hits.answered(answer))
    if not out.json:
        out.remark(hits.asked(answer))
