"""Lines and tables that every kind of result is made of."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from scrubjay.cli.render.words import clean


def dim(*parts: str) -> Text:
    """Return the parts that are there, joined by a dot, in a low voice."""
    return Text(" · ".join(part for part in parts if part), style="dim")


def pairs(rows: Iterable[tuple[str, str]]) -> Text:
    """Return labels and values, a line each; a pair without a value is left out.

    Long lines are the terminal's to wrap: a path must stay in one piece.
    """
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    lines = [Text.assemble((f"{label:<{width}}", "dim"), "  ", clean(value)) for label, value in kept]
    return Text("\n").join(lines)


def spaced(parts: Iterable[RenderableType]) -> RenderableType:
    """Return the parts with an empty line between them."""
    shown: list[RenderableType] = []
    for part in parts:
        if shown:
            shown.append(Text())
        shown.append(part)
    return Group(*shown)


NUMBERS = frozenset(("events", "size", "runs", "failed", "pending", "calls", "read", "written"))
"""Columns of numbers, which stand to the right."""


def table_of(*columns: str) -> Table:
    """Return an empty table; memories and titles take the width that is left."""
    long = {"memory", "title"}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, expand=bool(long & {*columns}))
    for column in columns:
        if column in long:
            table.add_column(column, overflow="ellipsis", no_wrap=True, ratio=1)
        else:
            side: JustifyMethod = (
                "right"
                if column in {"events", "size", "runs", "failed", "pending", "calls", "read", "written"}
                else "left"
            )
            table.add_column(column, no_wrap=True, justify=side)
    return table
