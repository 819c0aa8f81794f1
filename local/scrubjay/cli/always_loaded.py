"""The lines that agents are given in each session: shown after something was put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli.reports import AlwaysLoaded
from scrubjay_shared.records import Layer

if TYPE_CHECKING:
    from scrubjay.transports.local import Transport


def always_loaded(store: Transport) -> AlwaysLoaded:
    """Return the lines of the layers that every agent is given."""
    lines: dict[Layer, dict[str, str]] = {}
    for layer in (Layer.IDENTITY, Layer.ACTIVE):
        entries: list[api.Entry] = []
        cursor: str | None = None
        while True:
            page: api.ListResponse = store.call("list", api.ListRequest(layer=layer, cursor=cursor))
            entries += page.entries
            cursor = page.next
            if cursor is None:
                break
        lines[layer] = {entry.memory.name or entry.memory.id: entry.memory.content for entry in reversed(entries)}
    return AlwaysLoaded(identity=lines[Layer.IDENTITY], active=lines[Layer.ACTIVE])
