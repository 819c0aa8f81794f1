"""What the tests of searchable scopes share: a world whose server has a database, a toy model, and what both show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx2
import numpy as np
import pytest

from scrubjay.store import MemoryWrite
from scrubjay_cloud import database, materialise
from scrubjay_cloud.app import create_app
from scrubjay_cloud.settings import Settings
from scrubjay_shared import scoring
from scrubjay_shared.envelope import Suite
from scrubjay_shared.ops import Field
from scrubjay_shared.text import analyse
from scrubjay_shared.wire import SearchRequest
from scrubjay_sync import searching
from scrubjay_sync.account import account_scopes
from sync_devices import GENEROUS, Device, World

SPACE, WIDTH = "toy@1/64", 64
PROJECT = "proj_team"
HOUR_MS = 3_600_000


def vector_of(text: str) -> np.ndarray[Any, Any]:
    """A bag of words as a unit vector: near when words are shared. Enough of a model to rank by."""
    found = np.linspace(0.02, 0.05, WIDTH, dtype=np.float32)
    for word in analyse(text):
        found[crc32(word.encode()) % WIDTH] += 1
        found[crc32(word[::-1].encode()) % WIDTH] += 0.5
    return found / np.linalg.norm(found)


async def meaning(texts: Sequence[str], *, question: bool = False) -> tuple[str, np.ndarray[Any, Any]]:
    assert question in {True, False}
    return SPACE, np.stack([vector_of(text) for text in texts])


@dataclass
class Searching(World):
    """A world whose server keeps its data where a test says."""

    where: str | Path = ""

    async def serve(self) -> None:
        url = self.where if isinstance(self.where, str) else ""
        data = self.where.parent if isinstance(self.where, Path) else self.path / "cloud"
        self.settings = Settings(data=data, database_url=url, registration="open", pepper="p" * 32)
        self.database = await database.open(self.settings, now=self.now, entropy=self.random.randbytes)
        app = create_app(self.database, self.settings, now=self.now, entropy=self.random.randbytes, policy=GENEROUS)
        self.app = app
        self.transport = httpx2.ASGITransport(app=app)

    async def close(self) -> None:
        await self.database.close()

    async def rows(self, sql: str, *params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.rows(sql, params))


@asynccontextmanager
async def searching_world(path: Path, where: str | Path) -> AsyncIterator[Searching]:
    async with AsyncExitStack() as stack:
        made = Searching(path=path, stack=stack, where=where)
        await made.serve()
        stack.push_async_callback(made.close)
        yield made


async def team(device: Device, space: str = SPACE) -> bytes:
    """A searchable scope to which the project is bound; the device's engine has the toy model."""
    scope = await account_scopes.create_scope(
        device.member, device.machine, name="team", suite=Suite.OPEN, projects=[PROJECT], space=space
    )
    await device.sync()
    modelled(device)
    return scope


def modelled(device: Device) -> None:
    device.engine.context.meaning = meaning


async def write(device: Device, text: str, **more: Any) -> str:
    """A memory of the team's project."""
    return await device.note(text, scope="project", resource_id=PROJECT, **more)


async def write_all(device: Device, notes: Sequence[tuple[str, str | None]]) -> list[str]:
    """Many memories of the team's project, with their topics, in one transaction."""

    def work(tx: Any) -> list[str]:
        made = []
        for text, topic in notes:
            values = {Field.CONTENT: text, Field.CREATED_AT: int(tx.now), Field.SCOPE: "project"}
            values |= {Field.RESOURCE_ID: PROJECT} | ({} if topic is None else {Field.TOPIC: topic})
            made.append(MemoryWrite(memory_id=str(tx.new_id()), fields=values))
        tx.memories.write(made)
        return [one.memory_id for one in made]

    return await device.store.write(work)


async def embed(device: Device) -> None:
    """Embed every memory of a device's store, sealed ones too."""

    async def everything() -> None:
        found = await device.store.read(lambda q: q.fetch("select id, content, content_hash from memory"))
        made = []
        for memory, content, said in found:
            ((row,), (scale,)) = scoring.quantise(vector_of(content)[None, :])
            made.append((memory, said, scoring.encode_vector(row, float(scale))))
        await device.store.write(lambda tx: tx.vectors.put(tx.vectors.space(SPACE), made))

    await everything()


async def ask(device: Device, scope: bytes, text: str, **more: Any) -> searching.Asked:
    request = SearchRequest(text=text, **more)
    return await searching.search_scope(device.member, device.machine.cloud, meaning, scope, request)


async def refused(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await call


async def view_of(device: Device, scope: bytes) -> list[Any]:
    """What a device shows of a scope's memories."""
    return await device.store.read(
        lambda q: q.fetch(
            "select id, content, type, topic, created_at, content_hash from memory"
            " where id in (select entity from placed where scope = ?) order by id",
            (scope,),
        )
    )


async def shown(world: Searching) -> list[Any]:
    """What the server shows of all searchable scopes, once it has read them."""
    await world.app.state.service.materialising.idle()
    return [
        tuple(row)
        for row in await world.rows(
            "select id, text, type, topic, created, hash from mem where text is not null order by id"
        )
    ]


async def kept(world: Searching) -> list[Any]:
    """Everything that is made from lanes, bytes and all, once they are read."""
    await world.app.state.service.materialising.idle()
    mem = await world.rows(
        "select id, fields, text, type, topic, created, updated, superseded, hash from mem order by id"
    )
    return [*map(tuple, mem), *map(tuple, await world.rows("select word, id from mem_word order by word, id"))]


TABLE_COUNTS = " union all ".join(f"select count(*) from {table}" for table in materialise.TABLES)
