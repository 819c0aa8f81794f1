"""Server-sent events: where the account's `gseq` is, whenever something of the account changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from scrubjay_cloud.admission import admitted_token
from scrubjay_cloud.endpoint import Admits, Answer, Call
from scrubjay_cloud.service import Service
from scrubjay_shared.errors import (
    DeniedError,
)


async def events(service: Service, call: Call) -> Answer:
    """Send the account's `gseq`, and again whenever something of it changes, for as long as the token is valid.

    A change of who is in, or of a team, moves no `gseq`: it is sent again then, as a long-poll is answered early.

    The token is looked up when something has happened; while nothing does, its end is known here. A revocation wakes
    who watches the account; should that be lost on its way from another instance, a look after minutes finds it.
    """
    caller = call.caller
    device = caller.waits_as
    service.notifier.check_room(device)

    async def lines() -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        news, gseq, looked = True, caller.gseq, loop.time()
        with service.notifier.watch(caller.account, device, caller.head) as watch:
            while True:
                if news:
                    yield f'data: {{"gseq":{gseq}}}\n\n'
                elif not watch.closing:
                    yield ":\n\n"
                news = await watch.wait_beyond(gseq, service.policy.keepalive_s)
                if watch.closing or caller.expires <= service.now():
                    return
                if not news and loop.time() - looked < service.policy.recheck_s:
                    continue
                looked = loop.time()
                try:
                    before, gseq = gseq, (await admitted_token(service, caller.token, Admits.DEVICE, refused=True)).gseq
                except DeniedError:  # expired or revoked: the stream ends, and the next request is told why
                    return
                news = news or gseq != before

    return Answer(response=StreamingResponse(lines(), media_type="text/event-stream"))
