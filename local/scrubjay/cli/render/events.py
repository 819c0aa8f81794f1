"""What was said, the sessions it was said in, and what an agent loads at its start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import (
    ContextResponse,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import table_of
from scrubjay.cli.render.words import clean, one_line, short
from scrubjay_shared.records import Event, Session


def events(said: Iterable[Event]) -> RenderableType:
    """Return events, a line each."""
    lines = [
        Text.assemble(
            (f"{times.moment(event.ts)}  ", "dim"),
            (f"{short(event.id)}  ", "dim"),
            (f"{one_line(event.speaker, 40)}: ", "cyan"),
            one_line(event.text, 300) or event.type.value.replace("_", " "),
        )
        for event in said
    ]
    return Group(*lines) if lines else Text("no events")


def sessions(found: Sequence[Session], labels: Mapping[str, str] = MappingProxyType({})) -> RenderableType:
    """Return sessions, a line each."""
    if not found:
        return Text("no sessions")
    table = table_of("session", "from", "to", "agent", "project", "events", "title")
    for session in found:
        table.add_row(
            Text(one_line(session.id, 40)),
            times.moment(session.start),
            times.moment(session.end) if session.end is not None else "now",
            Text(one_line(session.agent, 20)),
            Text(one_line(labels.get(session.project or "", session.project or ""), 40)),
            f"{session.events:,}",
            Text(one_line(session.title, 60)),
        )
    return table


def context(answer: ContextResponse) -> Text:
    """Return the startup context as an agent gets it."""
    return Text(clean(answer.text) or "nothing set: scrubjay context --identity name=…")


def handed(answer: ContextResponse) -> Text:
    """Return the block that an agent is handed."""
    return Text(clean(answer.handed) or "nothing is handed over")
