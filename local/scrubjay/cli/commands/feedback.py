"""`scrubjay feedback`: say whether memories helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation
from scrubjay.cli.arguments import Parser, caller, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take memories, and whether they helped."""
    parser.add_argument("refs", nargs="+", type=text, metavar="REF", help="a memory's id, a prefix of it, or its name")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--helped", action="store_true", help="they did")
    chosen.add_argument("--not-helped", dest="helped", action="store_false", help="they did not")
    chosen.add_argument("--wrong", action="store_true", help="they are wrong: put them away")
    parser.add_argument(
        "--correct", type=text, metavar="TEXT", help="with --wrong: what holds instead of the one memory"
    )
    caller(parser)


def run(line: Namespace) -> None:
    """Count whether memories helped."""
    out = Output.of(line)
    request = api.FeedbackRequest(
        refs=tuple(line.refs),
        helped=line.helped and not line.wrong,
        wrong=line.wrong,
        content=line.correct,
        project=line.project,
        session_id=line.session,
    )
    with invocation.store(line) as store:
        done: api.FeedbackResponse = store.call("feedback", request)
    words = "helped" if done.helped else "did not help"
    if done.wrong:
        words = f"is wrong; {done.corrected} took its place" if done.corrected else "put away as wrong"
    back = f"; scrubjay undo {done.cause} takes it back" if done.cause and done.wrong else ""
    out.answer(done, lambda: f"counted: {', '.join(done.memories)} {words}{back}")
