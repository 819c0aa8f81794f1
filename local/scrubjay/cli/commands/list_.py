"""`scrubjay list`: page through memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import KINDS, LAYERS, SCOPES, TYPES, caller, paging, period
from scrubjay.cli.output import Output
from scrubjay_shared.records import Kind, Layer, MemoryType, Scope

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take which memories, and which page of them."""
    paging(parser, 50, "memories")
    parser.add_argument("--type", choices=TYPES, metavar="TYPE", help="only this type")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--layer", choices=LAYERS, help="only this layer")
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    parser.add_argument("--archived", action="store_true", help="only what was archived")
    period(parser)
    caller(parser)


def run(line: Namespace) -> None:
    """Page through memories: to a person what agents are handed first, to a program the newest first.

    Of a period, and of what was archived, nothing is handed: these are newest first.
    """
    out = Output.of(line)
    today = invocation.now()
    request = api.ListRequest(
        limit=line.limit,
        cursor=line.cursor,
        type=None if line.type is None else MemoryType(line.type),
        kind=None if line.kind is None else Kind(line.kind),
        layer=None if line.layer is None else Layer(line.layer),
        scope=None if line.scope is None else Scope(line.scope),
        project=line.project,
        session_id=line.session,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        archived=line.archived,
        handed_first=not (out.json or line.since or line.until or line.archived),
    )
    with invocation.store(line) as store:
        answer: api.ListResponse = store.call("list", request)
    out.answer(answer, lambda: render.memories.entries(answer.entries))
    out.notes(answer.notes)
    out.more(answer.next)
