"""What was falsified in a copy, and what a comparison noticed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.cli.render.layout import dim, table_of
from scrubjay.cli.render.words import counted
from scrubjay.cli.reports import PerturbReport, VerifyReport

TOLD = 20
"""Findings that are named: a falsified copy has hundreds."""


def perturbed(report: PerturbReport) -> RenderableType:
    """Return what was falsified, and where that is written down."""
    table = table_of("kind", "depth", "number")
    for name, number in report.done.items():
        kind, depth = name.split(" ")
        table.add_row(kind, depth, f"{number:,}")
    return Group(Text(f"wrote {report.file}, falsified"), table, dim(f"{report.key} says what was done"))


def verified(report: VerifyReport) -> RenderableType:
    """Return what does not fit, and of a key what was noticed."""
    parts: list[RenderableType] = []
    if report.sound:
        parts.append(Text("everything fits: rows their check sums, memories their ops, passages their events"))
    parts += [Text(f"{one.what}: {one.wrong}", style="red") for one in report.findings[:TOLD]]
    if len(report.findings) > TOLD:
        parts.append(dim(f"and {len(report.findings) - TOLD:,} more"))
    if report.detected:
        table = table_of("kind", "depth", "done", "noticed")
        for each in report.detected:
            table.add_row(each.kind, each.depth, f"{each.done:,}", f"{each.found:,}")
        parts += [table, dim(f"{counted(report.unexplained, 'finding')} that the key does not explain")]
    return Group(*parts)
