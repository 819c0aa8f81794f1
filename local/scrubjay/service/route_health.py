"""How the layers are that a question can be routed to: each is asked for next to nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scrubjay import api
from scrubjay.models.runtime import Models
from scrubjay.routing import plan
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.route_run import told
from scrubjay.store import Store

TIERS = (
    ("contents", frozenset({plan.CONTENTS})),
    ("keyword", frozenset({plan.KEYWORD})),
    ("hybrid", frozenset({plan.VECTOR, plan.KEYWORD})),
    ("full", frozenset({plan.VECTOR, plan.KEYWORD, plan.CONTENTS})),
)
"""What must work for each tier, from the least to the best; without any of them, the events are read themselves."""


class Health:
    """The health of the layers of one store."""

    def __init__(self, store: Store, *, maintainer: IndexMaintainer, models: Models) -> None:
        self._store = store
        self._maintainer = maintainer
        self._models = models

    async def layers(self) -> list[api.Layer]:
        """Return how each layer is, by asking it for next to nothing."""
        found: list[api.Layer] = []

        async def look(name: str, work: Callable[[], Awaitable[tuple[api.LayerState, str]]]) -> None:
            try:
                state, detail = await work()
            except Exception as error:  # noqa: BLE001 - as in `_layer`: the state of one says nothing of the others
                state = api.LayerState.FAILED
                detail = told(error)
            found.append(api.Layer(name=name, state=state, detail=detail))

        await look(plan.MEMORIES, self._memories_health)
        await look(plan.HYBRID, self._meaning_health)
        await look(plan.VECTOR, self._vector_health)
        await look(plan.KEYWORD, self._index_health)
        await look(plan.CONTENTS, self._contents_health)
        await look(plan.EVENTS, self._events_health)
        return found

    async def _memories_health(self) -> tuple[api.LayerState, str]:
        await self._store.read(lambda q: q.routes.probe("memory"))
        return await self._meaning_health()

    async def _index_health(self) -> tuple[api.LayerState, str]:
        await self._maintainer.indexed()
        return api.LayerState.OK, ""

    async def _vector_health(self) -> tuple[api.LayerState, str]:
        if self._maintainer.space is None:
            return api.LayerState.UNAVAILABLE, "no embedding model is in use"
        waiting, _ = await self._models.queue.to_embed()
        if waiting:
            return api.LayerState.DEGRADED, f"{waiting} texts wait for a vector"
        return api.LayerState.OK, ""

    async def _meaning_health(self) -> tuple[api.LayerState, str]:
        state, detail = await self._vector_health()
        return (
            (api.LayerState.DEGRADED, f"by words alone: {detail}")
            if state is api.LayerState.UNAVAILABLE
            else (state, detail)
        )

    async def _contents_health(self) -> tuple[api.LayerState, str]:
        waiting = await self._store.read(lambda q: q.routes.probe("toc_segment") and q.toc.count_stale())
        return (
            (api.LayerState.DEGRADED, f"{waiting} sessions are not in it yet") if waiting else (api.LayerState.OK, "")
        )

    async def _events_health(self) -> tuple[api.LayerState, str]:
        await self._store.read(lambda q: q.routes.probe("event"))
        return api.LayerState.OK, ""


def tier(layers: list[api.Layer]) -> str:
    """Return the best tier of which every layer works, be it in part."""
    works = {layer.name for layer in layers if layer.state in {api.LayerState.OK, api.LayerState.DEGRADED}}
    return next((name for name, needed in reversed(TIERS) if needed <= works), "events")
