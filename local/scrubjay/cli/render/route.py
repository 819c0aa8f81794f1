"""Where an answer stands, and the layers by which that was found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from scrubjay.api import LayersResponse, Pointer, RouteResponse
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, spaced, table_of
from scrubjay.cli.render.words import clean, one_line


def routed(answer: RouteResponse) -> RenderableType:
    """Return the places, what says it, and how it was found."""
    parts: list[RenderableType] = [
        dim(answer.intent.value.replace("_", "-"), *(clean(reason) for reason in answer.reasons)),
        pointers(answer.pointers),
    ]
    if answer.hits:
        lines = [Text.assemble((f"{times.day(hit.ts)}  ", "dim"), one_line(hit.text, 300)) for hit in answer.hits]
        parts.append(Text("\n").join(lines))
    asked = [f"{step.layer} {step.found}" + (f" ({clean(step.note)})" if step.note else "") for step in answer.steps]
    parts.append(dim(*asked, f"{answer.tokens:,} tokens", f"{answer.elapsed_ms:.0f} ms"))
    return spaced(parts)


def pointers(found: Sequence[Pointer]) -> RenderableType:
    """Return places in the table of contents, each with the id that opens it."""
    if not found:
        return Text("no place in the table of contents: scrubjay recall asks all that is remembered")
    lines = []
    for pointer in found:
        lines.append(
            Text.assemble((f"{pointer.day}  ", "dim"), (pointer.node, "cyan"), f"  {one_line(pointer.title, 80)}")
        )
        lines += [Text(f"            {grip}", style="dim") for grip in pointer.grips]
    return Text("\n").join(lines)


def layers(health: LayersResponse) -> RenderableType:
    """Return the layers and how each is."""
    table = table_of("layer", "state", "detail")
    for layer in health.layers:
        table.add_row(layer.name, layer.state.value, Text(clean(layer.detail)))
    return spaced([Text(f"tier {health.tier}"), table])
