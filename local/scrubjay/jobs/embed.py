"""The job that embeds: gives texts the vectors that they wait for."""

from __future__ import annotations

import asyncio

from scrubjay.jobs.registry import Trigger
from scrubjay.models.runtime import Models
from scrubjay.policy import WorkPolicy


class Embed:
    """Embeds what waits for a vector in the space in use."""

    name = "embed"

    def __init__(self, models: Models, policy: WorkPolicy, stopping: asyncio.Event) -> None:
        self._models = models
        self._policy = policy
        self._stopping = stopping

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.sweep_seconds)

    async def due(self) -> bool:
        """Say whether there may be something to embed. Costs a few look-ups, however large the store is."""
        return await self._models.queue.may_embed()

    async def pending(self) -> int:
        """Return how many texts wait for a vector in the space in use; 0 without a model."""
        return (await self._models.queue.to_embed())[0]

    async def run(self) -> int:
        """Embed what waits for a vector. Returns how many texts that were; 0 without a model."""
        return await self._models.queue.embed(self._stopping)
