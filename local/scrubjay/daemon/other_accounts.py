"""What the daemon runs beside the store of each account but the main one: its jobs and its plugins, by themselves."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay.plugins import Plugins
from scrubjay.service.account_stores import OpenAccount
from scrubjay.service.application import Application
from scrubjay.settings import writer_reread

if TYPE_CHECKING:
    from scrubjay.policy import MemoryPolicy
    from scrubjay.settings import Settings

log = logging.getLogger(__name__)


def attended(service: Application, settings: Settings, policy: MemoryPolicy) -> Application:
    """Return the service, to open the other accounts' stores with all that runs beside the main one's."""

    async def opener(account: str) -> OpenAccount:
        chosen = replace(await asyncio.to_thread(writer_reread, settings), account=account)
        opened = await Application.configured(chosen, os.environ, policy=policy)
        plugins = Plugins(opened, chosen)

        async def close() -> None:
            try:
                await plugins.close()
                await opened.scheduler.stop()
            finally:
                await opened.close()

        opened.warnings.append(plugins.warnings)
        try:
            await opened.scheduler.start()
            await plugins.start()
        except BaseException:
            await close()
            raise
        log.info("account opened name=%s", account)
        return OpenAccount(service=opened, close=close, find_plugin=plugins.find)

    if service.accounts is not None:
        service.accounts.open_with(opener)
    return service


async def start(service: Application) -> None:
    """Open every account's store. One that fails is logged and told by `status`: the others are served."""
    if service.accounts is not None:
        await service.accounts.start()


async def close(service: Application) -> None:
    """Close the accounts' stores, with the work under way there; the main one stays."""
    if service.accounts is not None:
        await service.accounts.close()
