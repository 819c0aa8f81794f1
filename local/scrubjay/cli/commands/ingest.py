"""`scrubjay ingest`: take in events, one JSON object per line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.draining import finish
from scrubjay.cli.output import Output
from scrubjay.cli.reports import IngestReport
from scrubjay.cli.totals import Totals
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.records import EventDraft

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


BATCH = 500
"""Events in one request: shares an fsync among many, and keeps a progress bar moving."""


def configure(parser: Parser) -> None:
    """Take events."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="one event per line, as JSON (stdin)")
    parser.add_argument("--no-learn", action="store_true", help="keep the events, make no memories of them")
    parser.add_argument("--wait", action="store_true", help="return when they are learned and embedded")


def run(line: Namespace) -> None:
    """Take in events, one JSON object a line. All are read before the first is sent: a bad line stores nothing."""
    out = Output.of(line)
    data = sys.stdin.buffer.read() if line.file == "-" else Path(line.file).read_bytes()
    drafts = _drafts(invocation.decoded(data, "stdin" if line.file == "-" else line.file))
    totals = Totals()
    with invocation.store(line, background=True) as store, out.progress() as bar:
        task = bar.add_task("ingesting", total=len(drafts))
        for start in range(0, len(drafts), BATCH):
            batch = tuple(drafts[start : start + BATCH])
            answer: api.IngestResponse = store.call("ingest", api.IngestRequest(events=batch, learn=not line.no_learn))
            totals.events += answer.accepted
            totals.duplicates += answer.duplicates
            totals.redactions.update(answer.redactions)
            totals.skip(answer.skipped)
            bar.update(task, advance=len(batch))
        bar.stop()
        finish(store, out, wait=line.wait)
    report = IngestReport(
        lines=len(drafts),
        accepted=totals.events,
        duplicates=totals.duplicates,
        redactions=dict(totals.redactions),
        skipped=totals.reasons(),
    )
    out.answer(
        report,
        lambda: render.transfer.taken(report.accepted, 0, report.duplicates, report.redactions, report.skipped),
    )


def _drafts(text: str) -> list[EventDraft]:
    decoder = msgspec.json.Decoder(EventDraft)
    drafts = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            drafts.append(decoder.decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidError(
                f"line {number} is not an event: {error}",
                hint='a line is {"agent": …, "session_id": …, "type": "user_message", "text": …}; nothing was stored',
            ) from error
    if not drafts:
        raise InvalidError("the input holds no events", hint="give one JSON object a line, in a file or on stdin")
    return drafts
