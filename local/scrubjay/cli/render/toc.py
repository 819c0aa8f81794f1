"""The table of contents: a node with the ways on from it, a period, a passage with what was said around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scrubjay.api import GripResponse, TocResponse
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, spaced
from scrubjay.cli.render.words import clean, counted, one_line
from scrubjay_shared.records import Event, TocNode

MANY_AGENTS = 6
"""Agents that are named; a person with more looks at `scrubjay agents`."""

AROUND_CHARS = 400
"""Characters of an event beside a passage: some lines of a terminal."""


def node(found: TocResponse, labels: Mapping[str, str] = MappingProxyType({})) -> RenderableType:
    """Return a node: what it was about, its bullets with where to read on, its children."""
    if not found.events:
        return Text("nothing was said yet")
    shown = found.node
    parts: list[RenderableType] = [
        Group(
            Text(clean(shown.title), style="bold"),
            dim(shown.id, *_where(found, labels)),
            Text(clean(shown.summary)),
            *_agents(shown),
        )
    ]
    if shown.bullets:
        parts.append(_bullets(shown))
    if found.children:
        parts.append(nodes(found.children))
    ways = dim(
        _way("up", found.parents),
        _way("before", (found.previous,)),
        _way("after", (found.following,)),
    )
    if ways.plain:
        parts.append(ways)
    return spaced(parts)


def _where(found: TocResponse, labels: Mapping[str, str]) -> tuple[str, ...]:
    if found.session_id is None:
        return ()
    start, end = times.moment(found.node.start), times.moment(found.node.end)
    return (
        start if start == end else f"{start} – {end[-5:] if end[:-5] == start[:-5] else end}",
        f"session {one_line(found.session_id, 60)}",
        f"project {one_line(labels.get(found.project, found.project), 60)}" if found.project else "",
    )


def _agents(shown: TocNode) -> tuple[Text, ...]:
    names = [one_line(name, 30) for name in shown.agents[:MANY_AGENTS]]
    more = len(shown.agents) - len(names)
    return (dim(f"by {', '.join(names)}" + (f" and {counted(more, 'other')}" if more else "")),) if names else ()


def _bullets(shown: TocNode) -> RenderableType:
    """Return what a node quotes, each line followed by the id that `grip expand` takes."""
    lines = [
        Group(
            _hanging(Text("• "), Text(clean(bullet))),
            Padding(Text(grip_id, style="dim"), (0, 0, 0, 2)),
        )
        for bullet, grip_id in zip(shown.bullets, shown.grip_ids, strict=True)
    ]
    return Group(*lines)


def _hanging(mark: Text, words: Text) -> Table:
    table = Table.grid(padding=0)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_row(mark, words)
    return table


def _way(name: str, ids: Iterable[str | None]) -> str:
    there = [each for each in ids if each is not None]
    return f"{name}: {', '.join(there)}" if there else ""


def nodes(found: Sequence[TocNode]) -> RenderableType:
    """Return nodes, each with its id, what it was about, and its first bullets on a line each."""
    if not found:
        return Text("nothing was said in that time")
    return spaced(
        Group(
            Text.assemble((f"{clean(each.title)}  ", "bold cyan"), (each.id, "dim")),
            Padding(Text(clean(each.summary)), (0, 0, 0, 2)),
            *(Padding(Text(f"• {one_line(line, 240)}", style="dim"), (0, 0, 0, 2)) for line in each.bullets),
        )
        for each in found
    )


def building(sessions: int) -> tuple[str, ...]:
    """Return what is to be said while the table is being built; nothing when it is."""
    if not sessions:
        return ()
    return (f"{counted(sessions, 'session')} changed and will be in it shortly: scrubjay jobs shows the job toc",)


def grip(found: GripResponse) -> RenderableType:
    """Return a passage in what was said around it, in bold, and where it belongs."""
    lines: list[RenderableType] = []
    inside = False
    for event in found.events:
        inside = inside or event.id == found.event_id_start
        lines.append(_said(event, found if inside else None))
        if event.id == found.event_id_end:
            inside = False
    return spaced(
        [
            Group(*lines),
            dim(
                found.id,
                found.segment or "",
                f"memory {found.memory_id}" if found.memory_id else "",
            ),
        ]
    )


def _said(event: Event, passage: GripResponse | None) -> Text:
    line = Text.assemble((f"{times.moment(event.ts)}  ", "dim"), (f"{one_line(event.speaker, 40)}: ", "cyan"))
    one = passage is not None and passage.event_id_start == passage.event_id_end
    if passage is not None and one:
        start, end = passage.span_start, passage.span_end
        begin = max(0, start - AROUND_CHARS)
        line.append(("…" if begin else "") + clean(event.text[begin:start]))
        line.append(clean(event.text[start:end]), style="bold")
        line.append(clean(event.text[end : end + AROUND_CHARS]) + ("…" if len(event.text) > end + AROUND_CHARS else ""))
        return line
    words = one_line(event.text, AROUND_CHARS) or event.type.value.replace("_", " ")
    return line.append(words, style="bold" if passage is not None else "")
