"""The simulated server: the real application over a real database of its own, and what may happen to that."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from scrubjay_cloud import database, verify
from scrubjay_cloud.app import create_app
from scrubjay_cloud.database import raise_generation
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Header
from simulation.laws import require
from simulation.machine import CANARY
from simulation.network import Answer

ORIGIN = "http://127.0.0.1:8377"
FILES = ("server.db", "server.db-wal")


class Server:
    """A server in a folder. `now` is its clock."""

    def __init__(self, folder: Path, seed: str, now: Callable[[], int]) -> None:
        self.folder = folder
        self.rng = random.Random(f"{seed} server")
        self.settings = Settings(data=folder, origin=ORIGIN, registration="open")
        self._now = now
        self.database: Any
        self._app: Any

    async def open(self) -> None:
        """Open the database and the application over it."""
        self.database = await database.open(self.settings, now=self.now, entropy=self.rng.randbytes, inline=True)
        self._app = create_app(self.database, self.settings, now=self.now, entropy=self.rng.randbytes, offload=_at_once)

    async def answer(self, request: httpx2.Request) -> Answer:
        """Answer a request, as a web server asks the application to."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(key.lower(), value) for key, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.split(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": ("127.0.0.1", 123),
            "root_path": "",
        }
        asked = [{"type": "http.request", "body": request.content, "more_body": False}]
        told: list[Any] = []
        over = asyncio.Event()

        async def receive() -> Any:
            if asked:
                return asked.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            told.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                over.set()

        await self._app(scope, receive, send)
        start, *rest = told
        return Answer(
            status=start["status"],
            headers=tuple((key.decode("latin-1"), value.decode("latin-1")) for key, value in start["headers"]),
            body=b"".join(one.get("body", b"") for one in rest),
        )

    def now(self) -> Millis:
        """Return the time by the server's clock."""
        return Millis(self._now())

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()

    def copy_to(self, target: Path) -> None:
        """Copy the files as they are on the disk at this moment."""
        target.mkdir(parents=True)
        for name in FILES:
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, target / name)

    async def roll_back(self, source: Path, *, noticed: bool) -> None:
        """Go on from an older copy; `noticed`: the operator says so, by a new generation."""
        await self.close()
        for name in (*FILES, "server.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        for name in FILES:
            if (source / name).exists():
                shutil.copyfile(source / name, self.folder / name)
        await self.open()
        if noticed:
            await self.database.write(raise_generation)

    async def fill(self, *, full: bool) -> None:
        """Take all free space of the disk, or give it back."""

        def work(tx: Any) -> None:
            pages = tx.row("pragma page_count")[0] if full else 1 << 30
            tx.row(f"pragma max_page_count = {pages}")

        await self.database.read(work)

    async def heads(self) -> dict[tuple[bytes, bytes], tuple[int, bytes]]:
        """Return where every lane ends."""
        rows = await self.database.read(lambda tx: tx.rows("select scope, device, n, tip from lane"))
        return {(row[0], row[1]): (row[2], row[3]) for row in rows}

    async def newest(self) -> int:
        """Return the place of the newest object."""
        return int((await self.database.read(lambda tx: tx.row("select coalesce(max(gseq), 0) from object")))[0])

    async def stale(self, scope: bytes, epoch: int, after: int) -> int:
        """Return how many objects of a scope came after a place that are sealed under an epoch before one."""
        rows = await self.database.read(
            lambda tx: tx.rows(
                "select substr(body, 1, 208) from object where gseq > ? and kind <> 2 and scope = ?", (after, scope)
            )
        )
        return sum(Header.unpack(row[0]).epoch < epoch for row in rows)

    async def check(self) -> None:
        """I8, I9, I11: every chain and signature holds, there is one account, and nothing is in plain text."""
        found = await self.database.read(verify.verify)
        require("I8 every lane is one chain", repr(found.findings), holds=found.holds)
        require("I9 there is one account", str(found.accounts), holds=found.accounts == 1)
        for name in FILES:
            path = self.folder / name
            if path.exists():
                require("I11 no plaintext on the server", name, holds=CANARY.encode() not in path.read_bytes())


async def _at_once(work: Callable[[], Any]) -> Any:
    return work()
