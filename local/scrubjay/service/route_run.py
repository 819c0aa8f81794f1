"""One question on its way through the layers: what each found, how it went, and how much time is left."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.routing import plan
from scrubjay.routing.pointers import Placed
from scrubjay.routing.timespans import Timespan
from scrubjay_shared.errors import ScrubjayError, UnavailableError

log = logging.getLogger(__name__)

MODEL, PLACES, PASSAGES = "model", "places", "passages"
UNTOLD = frozenset({PLACES, PASSAGES})
"""Steps that every answer takes: told only where something went wrong."""

ASKED = frozenset(plan.LAYERS) - {plan.CONTENTS}
"""The layers that propose events."""


@dataclass(slots=True)
class Run:
    """One question on its way: what each layer found, and how it went."""

    caller: Caller
    query: Query
    filters: Filters
    times: tuple[Timespan, ...]
    began: float
    until: float | None
    project: str | None
    session_id: str | None
    found: dict[str, list[str]] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    hits: tuple[api.Hit, ...] = ()
    nodes: tuple[api.Pointer, ...] = ()
    plain: bool = False
    """Whether the question names no subject, so that its words tell nothing apart."""
    steps: list[api.Step] = field(default_factory=list)
    states: dict[str, api.Layer] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def left(self) -> float | None:
        """Return the seconds that are left, None without a limit."""
        return None if self.until is None else self.until - time.perf_counter()

    async def layer(self, layer: str, work: Callable[[], Awaitable[list[str]]]) -> None:
        """Let a layer work in the time that is left. What goes wrong in it is noted, and ends nothing else."""
        left = self.left()
        if left is not None and left <= 0:
            self.steps.append(api.Step(layer=layer, found=0, ms=0.0, note="skipped: no time was left"))
            return
        began, note, found = time.perf_counter(), "", 0
        try:
            async with asyncio.timeout(left):
                events = await work()
            found = len(events)
            if events and layer in ASKED:
                self.found[layer] = events
        except TimeoutError:
            note = "ended: no time was left"
        except UnavailableError as error:
            note = f"unavailable: {error.message}"
            self.states[layer] = api.Layer(name=layer, state=api.LayerState.UNAVAILABLE, detail=error.message)
        except Exception as error:  # noqa: BLE001 - a layer that fails must not fail the answer; the others go on
            detail = told(error)
            note = f"failed: {detail}"
            self.states[layer] = api.Layer(name=layer, state=api.LayerState.FAILED, detail=detail)
            log.warning("layer %s failed: %s", layer, type(error).__name__)
        if layer != MODEL or note:
            self.steps.append(api.Step(layer=layer, found=found, ms=lap(began), note=note))


def told(error: Exception) -> str:
    """Return what is said of an error: of ours its message; of others the kind, for theirs may quote what is stored."""
    return error.message if isinstance(error, ScrubjayError) else type(error).__name__


def lap(began: float) -> float:
    """Return the milliseconds since a moment."""
    return round((time.perf_counter() - began) * 1000, 3)
