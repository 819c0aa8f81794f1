"""`scrubjay forget`: erase a memory, and the words it was read from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.agreeing import agree
from scrubjay.cli.arguments import project, text
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
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument(
        "--import", dest="cause", type=text, metavar="REF", help="all that an import brought (scrubjay history)"
    )
    whole.add_argument("--session", type=text, metavar="ID", help="all of a session: its id, or the beginning of it")
    whole.add_argument("--project", type=project, metavar="ID", help="all of a project")
    parser.add_argument("--dry-run", action="store_true", help="say what of these would go, and erase nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask before all of these go")
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
    if any(one is not None for one in (line.cause, line.session, line.project)):
        _whole(line, out)
        return
    if line.ref is None:
        raise InvalidError("name what is to be forgotten", hint="scrubjay forget ID; scrubjay list shows ids")
    if line.dry_run:
        raise InvalidError("--dry-run is for --import, --session and --project", hint=f"scrubjay why {line.ref}")
    request = api.ForgetRequest(ref=line.ref, keep_sources=line.keep_sources, for_good=not line.once)
    with invocation.store(line) as store:
        answer: api.ForgetResponse = store.call("forget", request)
    out.answer(answer, lambda: render.memories.forgotten(answer))


def _whole(line: Namespace, out: Output) -> None:
    """Erase all of an import, a session or a project, once the person has seen what that is and said yes."""
    if line.ref is not None or line.keep_sources:
        raise InvalidError("forget one memory, or all of one import, session or project", hint="leave out the other")
    preview = api.ForgetAllRequest(import_cause=line.cause, session_id=line.session, project=line.project, dry_run=True)
    with invocation.store(line) as store:
        found: api.ForgetAllResponse = store.call("forget_all", preview)
        if line.dry_run:
            out.answer(found, lambda: render.memories.forgotten_all(found))
            return
        if not line.yes:
            agree(
                render.memories.forgotten_all(found).plain,
                refusal="all of these are forgotten only after a yes",
                hint="add --yes; with --dry-run nothing is erased",
            )
        done: api.ForgetAllResponse = store.call("forget_all", replace(preview, dry_run=False))
    out.answer(done, lambda: render.memories.forgotten_all(done))
