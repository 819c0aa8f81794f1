"""`scrubjay update`: rewrite a memory or its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import LAYERS, TYPES, caller, reference, share, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.records import Layer, MemoryType

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a memory and its new fields."""
    reference(parser)
    parser.add_argument("text", nargs="*", type=text, metavar="TEXT", help="the new words; - reads them from stdin")
    parser.add_argument("--type", choices=TYPES, metavar="TYPE", help="the new type")
    parser.add_argument("--salience", type=share, metavar="0..1", help="how much it matters")
    parser.add_argument("--topic", type=text, help="what it is about")
    parser.add_argument("--layer", choices=LAYERS, help="when it is loaded")
    caller(parser)


def run(line: Namespace) -> None:
    """Rewrite a memory or its fields."""
    out = Output.of(line)
    request = api.UpdateRequest(
        ref=line.ref,
        content=invocation.words(line.text, "the new words") if line.text else None,
        type=None if line.type is None else MemoryType(line.type),
        salience=line.salience,
        topic=line.topic,
        layer=None if line.layer is None else Layer(line.layer),
        project=line.project,
        session_id=line.session,
    )
    if all(getattr(request, name) is None for name in ("content", "type", "salience", "topic", "layer")):
        raise InvalidError("nothing to change", hint="give new words, or --type, --salience, --topic or --layer")
    with invocation.store(line) as store:
        entry: api.Entry = store.call("update", request)
        out.answer(entry, lambda: render.memories.changed("updated", entry))
        invocation.embedded(store)
