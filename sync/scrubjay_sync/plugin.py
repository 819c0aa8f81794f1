"""Sync inside the daemon: the operations over the store that it holds, and rounds as a job."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from scrubjay.api.operations import PERSON_ONLY, Operation
from scrubjay.plugins import Plugin
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError
from scrubjay_sync.api.registry import OPERATIONS
from scrubjay_sync.api.registry import Operation as Types
from scrubjay_sync.background import JOB, Background, SnapshotJob, SyncJob
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.operations.dispatch import HANDLERS, Handler

if TYPE_CHECKING:
    from scrubjay.api.caller import Caller
    from scrubjay.service.application import Application
    from scrubjay.settings import Settings

log = logging.getLogger(__name__)


async def start(service: Application, settings: Settings) -> Plugin:
    """Return the operations over the daemon's store; its rounds begin at once if this machine is logged in.

    A login that cannot be opened (its keys are gone) is logged, and each operation says what to do: logging out of it
    still works.
    """
    client = SyncClient(
        service.store,
        settings.store_dir,
        account=settings.account,
        environ=os.environ,
        now=lambda: Millis(time.time_ns() // 1_000_000),
        entropy=os.urandom,
        sleep=asyncio.sleep,
        background=Background(
            wake=lambda: service.on_work(JOB),
            paused=lambda: service.scheduler.is_paused(JOB),
            roll=random.random,
        ),
        meaning=service.meaning,
    )
    try:
        await client.session()
    except ScrubjayError as error:
        log.warning("sync cannot begin code=%s", error.code)
    return Plugin(
        operations=[
            (_operation(name, types), partial(_run, client, HANDLERS[name])) for name, types in OPERATIONS.items()
        ],
        jobs=[SyncJob(lambda: client.rounds), SnapshotJob(lambda: client.rounds)],
        close=client.close,
    )


def _operation(name: str, types: Types) -> Operation:
    return Operation(
        name=f"sync.{name}",
        request=types.request,
        response=types.response,
        principals=PERSON_ONLY,
    )


async def _run(client: SyncClient, handler: Handler, _: Caller, request: Any) -> Any:
    return await handler(client, request)
