"""`scrubjay forget`: erase a memory, and the words it was read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what is to be erased."""
    parser.add_argument(
        "ref", nargs="?", type=text, metavar="REF", help="a memory's id, name or alias, or an event's id"
    )
    parser.add_argument(
        "--status",
        action="store_true",
        help="show what was forgotten, and which devices say they did so; or REF's",
    )
    parser.add_argument("--keep-sources", action="store_true", help="leave the words it was read from in the events")
    parser.add_argument("--once", action="store_true", help="do not refuse the same words when they come again")


def run(line: Namespace) -> None:
    """Erase a memory, and the words it was read from."""
    out = Output.of(line)
    if line.status:
        with invocation.store(line) as store:
            listed: api.ForgetsResponse = store.call("forgets", api.ForgetsRequest(id=line.ref))
        out.answer(listed, lambda: render.forgets.forgets(listed))
        return
    if line.ref is None:
        raise InvalidError("name what is to be forgotten", hint="scrubjay forget ID; scrubjay list shows ids")
    request = api.ForgetRequest(ref=line.ref, keep_sources=line.keep_sources, for_good=not line.once)
    with invocation.store(line) as store:
        answer: api.ForgetResponse = store.call("forget", request)
    out.answer(answer, lambda: render.memories.forgotten(answer))
