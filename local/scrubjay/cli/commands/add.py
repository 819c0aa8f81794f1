"""`scrubjay add`: remember something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import KINDS, LAYERS, TYPES, project, share, text
from scrubjay.cli.output import Output
from scrubjay_shared.records import Kind, Layer, MemoryDraft, MemoryType, Scope

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a memory."""
    parser.add_argument("text", nargs="+", type=text, metavar="TEXT", help="what to remember; - reads it from stdin")
    parser.add_argument("--name", type=text, help="the name to address it by")
    parser.add_argument(
        "--alias",
        dest="aliases",
        action="append",
        default=[],
        type=text,
        metavar="NAME",
        help="one more name; can be repeated",
    )
    parser.add_argument("--type", choices=TYPES, default="fact", metavar="TYPE", help=f"{', '.join(TYPES)} (fact)")
    parser.add_argument("--kind", choices=KINDS[:3], default="stored", help="how it came to be (stored)")
    parser.add_argument("--salience", type=share, metavar="0..1", help="how much it matters (by its type)")
    parser.add_argument("--topic", type=text, help="what it is about, in a word")
    parser.add_argument("--layer", choices=LAYERS, default="archive", help="when it is loaded (archive)")
    parser.add_argument(
        "--project", type=project, metavar="ID", help="it belongs to this project, not to you everywhere"
    )
    parser.add_argument("--session", type=text, metavar="ID", help="it belongs to this session only")


def run(line: Namespace) -> None:
    """Remember something."""
    out = Output.of(line)
    scope, resource = _belongs(line)
    draft = MemoryDraft(
        content=invocation.words(line.text, "what to remember"),
        name=line.name,
        aliases=tuple(line.aliases),
        kind=Kind(line.kind),
        type=MemoryType(line.type),
        scope=scope,
        resource_id=resource,
        layer=Layer(line.layer),
        salience=line.salience,
        topic=line.topic,
    )
    with invocation.store(line) as door:
        entry: api.Entry = door.call("add", draft)
        out.answer(entry, lambda: render.memories.changed("added" if entry.created else "already there:", entry))
        invocation.embedded(door)


def _belongs(line: Namespace) -> tuple[Scope, str | None]:
    if line.session is not None:
        return Scope.SESSION, line.session
    if line.project is not None:
        return Scope.PROJECT, line.project
    return Scope.USER, None
