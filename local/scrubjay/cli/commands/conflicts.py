"""`scrubjay conflicts`: list and settle what devices disagree about, and which of two memories holds."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import caller, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import (
    ScrubjayError,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


DEVICE_NAMES = "scrubjay.device_names"
"""The entry point group of functions from settings to names of devices by id: sync announces one."""


def configure(parser: Parser) -> None:
    """Take which conflict to settle, if any."""
    parser.add_argument(
        "--keep",
        nargs=3,
        type=text,
        metavar=("REF", "FIELD", "VERSION"),
        help="settle one: the version of that field is right. `shown` is the one that is shown",
    )
    parser.add_argument(
        "--both",
        nargs=2,
        type=text,
        metavar=("OLD", "NEW"),
        help="settle one: both hold. scrubjay supersede OLD NEW says that the later one took the earlier one's place",
    )
    caller(parser)


def run(line: Namespace) -> None:
    """List the conflicts, after settling what was asked for."""
    out = Output.of(line)
    with invocation.store(line) as store:
        if line.keep is not None:
            ref, field, version = line.keep
            request = api.ResolveRequest(
                ref=ref,
                field=field,
                version=None if version == "shown" else version,
                project=line.project,
                session_id=line.session,
            )
            store.call("resolve", request)
            invocation.embedded(store)
        if line.both is not None:
            old, new = line.both
            both = api.ResolveRequest(
                ref=new, field="may_supersede", version=old, project=line.project, session_id=line.session
            )
            store.call("resolve", both)
        answer: api.ConflictsResponse = store.call(
            "conflicts", api.ConflictsRequest(project=line.project, session_id=line.session)
        )
    out.answer(answer, lambda: render.conflicts.conflicts(answer, _device_names(line, out) if answer.conflicts else {}))


def _device_names(line: Namespace, out: Output) -> Mapping[str, str]:
    """Return what the devices that wrote here are called, by id, as far as another package knows."""
    names: dict[str, str] = {}
    for found in importlib.metadata.entry_points(group=DEVICE_NAMES):
        try:
            names |= found.load()(invocation.settings_of(line))
        except (ScrubjayError, ModuleNotFoundError) as error:
            out.remark(f"devices are shown by their ids, because their names cannot be read: {error}")
    return names
