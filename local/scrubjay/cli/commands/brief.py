"""`scrubjay brief`: what the agents of a project are handed first, and what of it is pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import here, invocation, render
from scrubjay.cli.arguments import caller, text
from scrubjay.cli.output import Output
from scrubjay_shared.records import Layer

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to pin, and whose brief to show."""
    for option, meaning in (("--pin", "always put this memory first"), ("--unpin", "pin this memory no more")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            type=text,
            metavar="ID",
            help=f"{meaning}: an id, its beginning or its end",
        )
    caller(parser, by_place=True)


def run(line: Namespace) -> None:
    """Show a project's brief, after pinning what was asked for."""
    out, project = Output.of(line), here.project_of(line)
    with invocation.store(line) as store:
        for refs, layer in ((line.pin, Layer.SURFACED), (line.unpin, Layer.ARCHIVE)):
            for ref in refs:
                store.call("update", api.UpdateRequest(ref=ref, layer=layer))
        answer: api.BriefResponse = store.call("brief", api.BriefRequest(project=project, session_id=line.session))
        labels = invocation.labels(store, [answer.project])
    out.answer(answer, lambda: render.layers.brief(answer))
    out.notes(answer.notes, labels)
    if not out.json:
        out.remark(here.told(line, answer.project, labels))
        known = render.words.counted(answer.known, "memory", "memories")
        out.remark(
            f"{answer.tokens} of {answer.budget} tokens · chosen of {known} · "
            "scrubjay update ID changes a line, --pin keeps it"
        )
