"""A change is let in or refused by what the store holds when it is written, and not by what was read before."""

from __future__ import annotations

import asyncio
import threading

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.errors import DeniedError
from scrubjay_shared.records import Layer, MemoryDraft, Scope

pytestmark = pytest.mark.anyio

BOUND = Caller(principal=Principal.AGENT, agent="crow", project="own", session_id="own session")


@pytest.mark.parametrize("operation", ["update", "rename", "alias", "forget"])
async def test_a_change_is_checked_against_what_was_written_just_before_it(
    service: Application, operation: str
) -> None:
    added = await service.handlers.call(
        BOUND, "add", MemoryDraft(content="The deploy key is in the vault.", scope=Scope.PROJECT, resource_id="own")
    )
    ref = added.memory.id
    requests = {
        "update": api.UpdateRequest(ref=ref, content="The deploy key is lost."),
        "rename": api.RenameRequest(ref=ref, name="lost-key"),
        "alias": api.AliasRequest(ref=ref, alias="lost-key"),
        "forget": api.ForgetRequest(ref=ref),
    }
    writing = threading.Event()
    waits = asyncio.create_task(service.store.write(lambda _: writing.wait(10)))  # those below queue behind it
    persons = asyncio.create_task(
        service.handlers.call(PERSON, "update", api.UpdateRequest(ref=ref, layer=Layer.IDENTITY))
    )
    await asyncio.sleep(0.2)
    agents = asyncio.create_task(service.handlers.call(BOUND, operation, requests[operation]))
    await asyncio.sleep(0.2)
    writing.set()
    await asyncio.gather(waits, persons)

    with pytest.raises(DeniedError):
        await agents

    shown = await service.handlers.call(PERSON, "get", api.RefRequest(ref=ref))
    assert (shown.memory.content, shown.memory.layer) == ("The deploy key is in the vault.", Layer.IDENTITY)
