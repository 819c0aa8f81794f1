"""`scrubjay rebuild`: derive everything again from events and ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.draining import finish
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take how much to derive again."""
    parser.add_argument("--vectors", action="store_true", help="embed everything again as well")


def run(line: Namespace) -> None:
    """Derive everything again from events and ops."""
    out = Output.of(line)
    with invocation.store(line, background=line.vectors) as store, out.progress() as bar:
        bar.add_task("rebuilding", total=None)
        answer: api.RebuildResponse = store.call("rebuild", api.RebuildRequest(vectors=line.vectors))
        bar.stop()
        if line.vectors:
            finish(store, out, wait=False)
    same = "the same as before" if answer.before == answer.after else "it was damaged, and is now as its ops say"
    out.answer(
        answer,
        lambda: (
            f"{render.words.counted(answer.memories, 'memory', 'memories')} from "
            f"{render.words.counted(answer.events, 'event')}: {same}"
        ),
    )
