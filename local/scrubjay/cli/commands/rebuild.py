"""`scrubjay rebuild`: derive everything again from events and ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.draining import finish
from scrubjay.cli.output import Output
from scrubjay.cli.salvaging import salvaged
from scrubjay_shared.errors import CorruptError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take how much to derive again."""
    parser.add_argument("--vectors", action="store_true", help="embed everything again as well")


def run(line: Namespace) -> None:
    """Derive everything again from events and ops."""
    out = Output.of(line)
    try:
        answer = _rebuilt(line, out)
    except CorruptError:
        # What is derived cannot even be read, or its pages not be written: then it is left, and a new file made.
        report, answer = salvaged(line, losing=False)
        out.remark(f"made a new file; the damaged one: {report.kept}")
        if line.vectors:
            answer = _rebuilt(line, out)
    same = "the same as before" if answer.before == answer.after else "it was damaged, and is now as its ops say"
    out.answer(
        answer,
        lambda: (
            f"{render.words.counted(answer.memories, 'memory', 'memories')} from "
            f"{render.words.counted(answer.events, 'event')}: {same}"
        ),
    )


def _rebuilt(line: Namespace, out: Output) -> api.RebuildResponse:
    with invocation.store(line, background=line.vectors) as store, out.progress() as bar:
        bar.add_task("rebuilding", total=None)
        answer: api.RebuildResponse = store.call("rebuild", api.RebuildRequest(vectors=line.vectors))
        bar.stop()
        if line.vectors:
            finish(store, out, wait=False)
    return answer
