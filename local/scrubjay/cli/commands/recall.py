"""`scrubjay recall`: ask a question."""

from __future__ import annotations

from scrubjay.cli import direct
from scrubjay.cli.arguments import CANDIDATES, MODES, SCOPES, TYPES, caller, count, period, share, text, whole
from scrubjay.cli.lazy import LazyModule

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    import msgspec

    from scrubjay import api
    from scrubjay.cli import invocation, output, times
    from scrubjay.cli.arguments import Parser
    from scrubjay.cli.render import hits
else:  # through a running daemon, a program's question needs none of them
    msgspec, api, invocation = LazyModule("msgspec"), LazyModule("scrubjay.api"), LazyModule("scrubjay.cli.invocation")
    output, times = LazyModule("scrubjay.cli.output"), LazyModule("scrubjay.cli.times")
    hits = LazyModule("scrubjay.cli.render.hits")


def configure(parser: Parser) -> None:
    """Take a question and what may answer it."""
    parser.add_argument("query", nargs="+", type=text, metavar="QUERY", help="the question; - reads it from stdin")
    parser.add_argument(
        "--also",
        action="append",
        type=text,
        default=[],
        metavar="QUERY",
        help="the question in other words; what either finds is one list; can be repeated three times",
    )
    parser.add_argument("-n", "--limit", type=count, help="at most this many hits (10 to read, 20 in JSON)")
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
    parser.add_argument("--topic", type=text, help="only memories of this topic")
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
        "--as-of",
        type=text,
        metavar="WHEN",
        help='what was known and held at the end of that time: 2026-11-21, yesterday, "7 days ago"',
    )
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
    parser.add_argument("--all", action="store_true", help="changes nothing: what comes nearest is always shown")
    parser.add_argument("--why", action="store_true", help="show the parts that each score is the sum of")
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    parser.add_argument("--agent", type=text, help="only what this agent said or learned")
    caller(parser)


def run(line: Namespace) -> None:
    """Ask a question."""
    if direct.run(line, "/v1/recall", line.query, fields, repeatable=True):
        return
    out = output.Output.of(line)
    if line.limit is None and not out.json:
        line.limit = hits.SHOWN
    request = msgspec.convert(fields(line, invocation.words(line.query, "the question")), api.RecallRequest)
    with invocation.store(line) as store:
        answer: api.RecallResponse = store.call("recall", request)
    out.answer(answer, lambda: hits.recall(answer, why=line.why))
    if not out.json:
        out.remark(hits.recalled(answer))
        if not answer.hits and (others := invocation.other_accounts(line)):
            out.remark(f"this asked one account; others here: {', '.join(others)} (--account NAME)")


def fields(line: Namespace, query: str) -> dict[str, Any]:
    """Return the question as the fields of a RecallRequest."""
    since = until = as_of = None
    if line.since is not None or line.until is not None or line.as_of is not None:
        today = invocation.now()
        since, until = times.since(line.since, today), times.until(line.until, today)
        as_of = times.until(line.as_of, today)
    return direct.given(
        query=query,
        also=line.also or None,
        limit=line.limit,
        mode=line.mode,
        project=line.project,
        session_id=line.session,
        scope=line.scope,
        agent=line.agent,
        since=since,
        until=until,
        as_of=as_of,
        types=line.types,
        topic=line.topic,
        kinds=list(dict.fromkeys(line.kinds)) or ["memory", "event"],
        min_salience=line.min_salience,
        max_tokens=line.max_tokens,
        neighbours=line.neighbours,
        rerank=line.rerank,
    )
