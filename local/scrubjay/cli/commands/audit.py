"""`scrubjay audit`: how much of what is remembered is junk, an echo, a repetition, or stands where it should not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(_: Parser) -> None:
    """Take nothing."""


def run(line: Namespace) -> None:
    """Show the audit."""
    out = Output.of(line)
    with invocation.store(line) as store:
        answer: api.AuditResponse = store.call("audit", api.Nothing())
        labels = invocation.labels(store, [one.resource_id for one in answer.scopes])
    out.answer(answer, lambda: render.audit.audit(answer, labels))
