"""The job that embeds: gives texts the vectors that they wait for."""

from __future__ import annotations

import asyncio

from scrubjay.models.runtime import Models


class Embed:
    """Embeds what waits for a vector in the space in use."""

    name = "embed"

    def __init__(self, models: Models, stopping: asyncio.Event) -> None:
        self._models = models
        self._stopping = stopping

    async def due(self) -> bool:
        """Say whether there may be something to embed. Costs a few look-ups, however large the store is."""
        return await self._models.queue.may_embed()

    async def pending(self) -> int:
        """Return how many texts wait for a vector in the space in use; 0 without a model."""
        return (await self._models.queue.to_embed())[0]

    async def run(self) -> int:
        """Embed what waits for a vector. Returns how many texts that were; 0 without a model."""
        return await self._models.queue.embed(self._stopping)
