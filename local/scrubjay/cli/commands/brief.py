"""`scrubjay brief`: what the agents of a project are handed first, and what of it is pinned."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import here, invocation, render
from scrubjay.cli.arguments import caller, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import ConflictError, InvalidError
from scrubjay_shared.records import ALWAYS_LOADED, Layer, Memory, Scope

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.transports import local


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
        pinned = [_found(store, ref, "--pin") for ref in line.pin]
        unpinned = [_found(store, ref, "--unpin") for ref in line.unpin]
        for memory in pinned:
            store.call("update", api.UpdateRequest(ref=memory.id, layer=Layer.SURFACED))
        for memory in unpinned:
            store.call("update", api.UpdateRequest(ref=memory.id, layer=Layer.ARCHIVE))
        answer: api.BriefResponse = store.call("brief", api.BriefRequest(project=project, session_id=line.session))
        labels = invocation.labels(store, [answer.project])
    notes = (_place(memory, answer) for memory in pinned)
    answer = replace(answer, notes=(*answer.notes, *filter(None, notes)))
    out.answer(answer, lambda: render.layers.brief(answer))
    out.notes(answer.notes, labels)
    if not out.json:
        out.remark(here.told(line, answer.project, labels))
        known = render.words.counted(answer.known, "memory", "memories")
        out.remark(
            f"{answer.tokens} of {answer.budget} tokens · chosen of {known} · "
            "scrubjay update ID changes a line, --pin keeps it"
        )


def _found(store: local.Transport, ref: str, option: str) -> Memory:
    """Return the memory that an option names. Raises InvalidError for none, ConflictError where it is not to be told.

    All are looked at before any is changed.
    """
    if not ref.strip():
        raise InvalidError(f"{option} names no memory", hint="scrubjay brief shows the ids of its lines")
    entry: api.Entry = store.call("get", api.RefRequest(ref=ref))
    memory = entry.memory
    if memory.layer in ALWAYS_LOADED:
        raise ConflictError(
            f"memory {memory.id} is a line of the {memory.layer} layer, which every session is told anyway",
            hint="scrubjay context shows its lines, and sets them",
        )
    if option == "--pin" and (memory.superseded_by or memory.archived_at):
        what = "was put away" if memory.archived_at else f"was replaced by {memory.superseded_by}"
        raise ConflictError(f"memory {memory.id} {what}, and is told no more", hint=f"scrubjay get {memory.id}")
    if option == "--unpin" and memory.layer is not Layer.SURFACED:
        raise ConflictError(f"memory {memory.id} is not pinned", hint="scrubjay brief marks the lines that are")
    return memory


def _place(memory: Memory, shown: api.BriefResponse) -> str:
    """Return where a memory is told that was pinned and does not stand in the brief that is shown; "" where it does."""
    if any(item.ref == memory.id for item in shown.items):
        return ""
    pinned = f"{render.words.short(memory.id)} is pinned"
    if memory.scope is Scope.USER:
        return f"{pinned}, in the starts of all projects: it is yours everywhere, and stands in no project's brief"
    if memory.scope is Scope.SESSION:
        return f"{pinned}, and is told nowhere: it is of one session alone"
    if memory.resource_id != shown.project:
        project = render.words.clean(memory.resource_id or "")
        return f"{pinned} in {project}: scrubjay brief --project {shlex.quote(project)}"
    return f"{pinned} and not told here: it waits for review, does not hold now, or takes more room than is left"
