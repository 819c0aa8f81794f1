"""What the Writer cost, as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import CostResponse
from scrubjay.cli.render.layout import dim, pairs, table_of
from scrubjay.cli.render.words import clean


def cost(answer: CostResponse, by: tuple[str, ...]) -> RenderableType:
    """Return the caps with what is left, and the calls."""
    writer = f"{answer.writer} ({answer.model})" if answer.model else "none: no model is asked"
    rows = [("writer", clean(writer))]
    if answer.destination:
        rows.append(("prompts go to", clean(answer.destination)))
    rows += [
        ("today", f"{answer.used_today:,} of {answer.daily_tokens:,} tokens"),
        ("this month", f"{answer.used_this_month:,} of {answer.monthly_tokens:,} tokens"),
        ("left", f"{answer.left:,} tokens today"),
    ]
    if not answer.rows or answer.total is None:
        return Group(pairs(rows), Text(), Text("no calls in these days"))
    columns = (*by, "calls", "read", "written")
    table = table_of(*columns)
    for row in answer.rows:
        names = [clean(str(getattr(row, name))) for name in by]
        table.add_row(*names, f"{row.calls:,}", f"{row.input_tokens:,}", f"{row.output_tokens:,}")
    if by:
        total = answer.total
        blank = ["in all", *([""] * (len(by) - 1))]
        table.add_row(*blank, f"{total.calls:,}", f"{total.input_tokens:,}", f"{total.output_tokens:,}")
    notes = []
    if answer.total.failed:
        notes.append(f"{answer.total.failed:,} without an answer")
    if answer.total.estimated:
        notes.append(f"{answer.total.estimated:,} counted by an upper bound")
    return Group(pairs(rows), Text(), table, *([dim(*notes)] if notes else []))
