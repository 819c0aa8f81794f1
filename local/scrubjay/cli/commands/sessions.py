"""`scrubjay sessions`: list the sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(_parser: Parser) -> None:
    """Take no arguments."""


def run(line: Namespace) -> None:
    """List the sessions."""
    out = Output.of(line)
    with invocation.store(line) as store:
        answer: api.SessionsResponse = store.call("sessions", api.Nothing())
        labels = invocation.labels(store, [session.project for session in answer.sessions])
    out.answer(answer, lambda: render.events.sessions(answer.sessions, labels))
