"""`scrubjay why`: show where a memory comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import caller, reference
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take one memory, and who asks."""
    reference(parser)
    caller(parser)


def run(line: Namespace) -> None:
    """Show where a memory comes from."""
    out = Output.of(line)
    request = api.RefRequest(ref=line.ref, project=line.project, session_id=line.session)
    with invocation.store(line) as store:
        answer: api.WhyResponse = store.call("why", request)
        labels = invocation.labels(store, [answer.entry.memory.resource_id])
    out.answer(answer, lambda: render.memories.why(answer, labels))
