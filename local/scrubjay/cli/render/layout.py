"""Lines and tables that every kind of result is made of."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
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


class Packed:
    """Parts with dots between them, as `dim` joins them, broken only at the dots, so that no date is cut in two."""

    def __init__(self, parts: Text) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        del console
        first, *others = self._parts.split(" · ")
        line = first
        for part in others:
            joined = Text.assemble(line, (" · ", "dim"), part)
            if joined.cell_len > options.max_width:
                yield line
                line = part
            else:
                line = joined
        yield line


NUMBERS = frozenset(("events", "size", "runs", "failed", "pending", "calls", "read", "written"))
"""Columns of numbers, which stand to the right."""

LONG = frozenset(("memory", "title"))
"""Columns that take the width that is left, and are cut to it."""

LEAST_LONG = 8
"""Columns of the window below which a cut text says nothing."""


class FittedTable(Table):
    """A table where the window is wide enough; in a narrower one each row is a paragraph, so that no cell is cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its rows one below the other."""
        headers = [str(column.header) for column in self.columns]
        rows = [*zip(*([_text(cell) for cell in column.cells] for column in self.columns), strict=True)]
        widths = [
            LEAST_LONG if header in LONG else max(cell_len(header), *(one[at].cell_len for one in rows), 0)
            for at, header in enumerate(headers)
        ]
        if sum(widths) + 2 * (len(widths) - 1) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        marks = 0 if headers[0] else 1  # a column without a name is a mark on the next one
        for row in rows:
            yield Text(" ").join(cell for cell in row[: marks + 1] if cell.plain)
            others = zip(headers[marks + 1 :], row[marks + 1 :], strict=True)
            told = [f"{header} {cell.plain}" for header, cell in others if cell.plain]
            yield Padding(Packed(dim(*told)), (0, 0, 0, 2))


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def table_of(*columns: str) -> Table:
    """Return an empty table; memories and titles take the width that is left."""
    table = FittedTable(
        box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, expand=bool(LONG & {*columns})
    )
    for column in columns:
        if column in LONG:
            table.add_column(column, overflow="ellipsis", no_wrap=True, ratio=1)
        else:
            side: JustifyMethod = "right" if column in NUMBERS else "left"
            table.add_column(column, no_wrap=True, justify=side)
    return table
