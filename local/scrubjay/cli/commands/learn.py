"""`scrubjay learn`: learn from a text on purpose, and see why."""

from __future__ import annotations

from pathlib import Path

from scrubjay.cli.arguments import project, text
from scrubjay.cli.lazy import LazyModule
from scrubjay_shared.errors import InvalidError

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay import api
    from scrubjay.cli import here, invocation, output
    from scrubjay.cli.arguments import Parser
    from scrubjay.cli.render import learning
else:
    api, invocation = LazyModule("scrubjay.api"), LazyModule("scrubjay.cli.invocation")
    here = LazyModule("scrubjay.cli.here")
    output, learning = LazyModule("scrubjay.cli.output"), LazyModule("scrubjay.cli.render.learning")


_LONGEST_PATH = 255
"""Characters: a longer text is asked of no file system, which would refuse it."""


def configure(parser: Parser) -> None:
    """Take a text."""
    parser.add_argument("text", nargs="+", type=text, metavar="TEXT", help="what you say; - reads it from stdin")
    parser.add_argument(
        "--project", type=project, metavar="ID", help="say it in this project (the repository that you are in)"
    )
    parser.add_argument("--explain", action="store_true", help="show every sentence, and why it is kept or not")
    parser.add_argument("--dry-run", action="store_true", help="store nothing, only show what would be learned")


def run(line: Namespace) -> None:
    """Learn from a text."""
    out = output.Output.of(line)
    if len(line.text) == 1 and len(line.text[0]) <= _LONGEST_PATH and Path(line.text[0]).is_file():
        raise InvalidError(
            f"{line.text[0]} is a file, and nothing can be learned from its name",
            hint=f"scrubjay learn - < {line.text[0]}, or scrubjay import {line.text[0]} to keep it as well",
        )
    said = invocation.words(line.text, "what to learn from")
    with invocation.store(line) as store:
        answer: api.LearnResponse = store.call(
            "learn", api.LearnRequest(text=said, project=here.project_of(line), dry_run=line.dry_run)
        )
        out.answer(answer, lambda: learning.learned(answer, explain=line.explain, dry_run=line.dry_run))
        if not out.json:
            out.remark(here.told(line, answer.project, invocation.labels(store, [answer.project])))
        if not line.dry_run:
            invocation.embedded(store)
