"""`scrubjay update`: rewrite a memory or its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import LAYERS, TYPES, caller, reference, share, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.records import Layer, MemoryType

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser

CLEARED = ("topic", "valid_from", "valid_to", "superseded_by")
"""Fields that can be left without a value."""


def configure(parser: Parser) -> None:
    """Take a memory and its new fields."""
    reference(parser)
    parser.add_argument("text", nargs="*", type=text, metavar="TEXT", help="the new words; - reads them from stdin")
    parser.add_argument("--type", choices=TYPES, metavar="TYPE", help="the new type")
    parser.add_argument("--salience", type=share, metavar="0..1", help="how much it matters")
    parser.add_argument("--topic", type=text, help="what it is about")
    parser.add_argument("--layer", choices=LAYERS, help="when it is loaded")
    parser.add_argument("--valid-from", type=text, metavar="DATE", help="when it began to hold")
    parser.add_argument("--valid-to", type=text, metavar="DATE", help="the last day on which it held")
    parser.add_argument("--superseded-by", type=text, metavar="REF", help="the memory that takes its place")
    archived = parser.add_mutually_exclusive_group()
    archived.add_argument(
        "--archive", dest="archived", action="store_true", default=None, help="keep it, and recall and list it no more"
    )
    archived.add_argument("--unarchive", dest="archived", action="store_false", default=None, help="bring it back")
    parser.add_argument(
        "--clear", action="append", choices=CLEARED, default=[], metavar="FIELD", help=f"of {', '.join(CLEARED)}"
    )
    caller(parser)


def run(line: Namespace) -> None:
    """Rewrite a memory or its fields."""
    out = Output.of(line)
    today = invocation.now()
    request = api.UpdateRequest(
        ref=line.ref,
        content=invocation.words(line.text, "the new words") if line.text else None,
        type=None if line.type is None else MemoryType(line.type),
        salience=line.salience,
        topic=line.topic,
        layer=None if line.layer is None else Layer(line.layer),
        valid_from=times.since(line.valid_from, today),
        valid_to=times.until(line.valid_to, today),
        superseded_by=line.superseded_by,
        archived=line.archived,
        clear=tuple(line.clear),
        project=line.project,
        session_id=line.session,
    )
    changed = ("content", "type", "salience", "topic", "layer", "valid_from", "valid_to", "superseded_by", "archived")
    if not request.clear and all(getattr(request, name) is None for name in changed):
        raise InvalidError("nothing to change", hint="give new words or a field: scrubjay update --help lists them")
    with invocation.store(line) as store:
        entry: api.Entry = store.call("update", request)
        out.answer(entry, lambda: render.memories.changed("updated", entry))
        invocation.embedded(store)
