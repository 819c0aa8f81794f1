"""The loss of a machine, for real: service and litestream killed with -9 under load, restored from the replica, healed.

`python -m cloud_drill --rounds 3` prints figures; `rounds` returns them. Every round goes on where the last one ended, on
the same replica, as it would be after a true loss.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psutil

from cloud_client import Account, Client, Device, RefusedError, second_device
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.wire import Pushed

SERVICE = Path(sys.executable).with_name("scrubjay-cloud")
ACCOUNTS = 3
PUSHES_A_SECOND = 12  # of each account: three rounds stay below its bucket of 240; more rounds wait for it
OBJECTS_A_PUSH = 4
PATIENCE_S = 60.0  # a machine that others use starts a service in twenty seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one loss cost. Seconds; `lost` objects had been acknowledged and were not in the replica.

    `rpo_s` is how long before the kill the oldest of them was acknowledged. `restore_s` is the whole command, `work_s`
    what it spends on fetching, checking and mending.
    """

    acknowledged: int
    lost: int
    lost_after_heal: int
    rpo_s: float
    restore_s: float
    work_s: float
    repair_s: float
    generation: int
    findings: int


@dataclass(slots=True, kw_only=True)
class Deployment:
    """Where one service lives, and how it is started."""

    root: Path
    port: int = 0
    metrics_port: int = 0
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port, self.metrics_port = free_port(), free_port()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def database(self) -> Path:
        return self.data / "server.db"

    @property
    def environ(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SCRUBJAY_CLOUD", "DATABASE"))
        }
        return kept | {
            "SCRUBJAY_CLOUD_DATA": str(self.data),
            "SCRUBJAY_CLOUD_PORT": str(self.port),
            "SCRUBJAY_CLOUD_METRICS_PORT": str(self.metrics_port),
            "SCRUBJAY_CLOUD_ORIGIN": self.origin,
            "SCRUBJAY_CLOUD_REGISTRATION": "open",
            "SCRUBJAY_CLOUD_PEPPER": "0f" * 32,  # kept apart from the disk that is lost
            **self.more,
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `scrubjay-cloud` to its end."""
        return subprocess.run(
            [SERVICE, *words], env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )

    def json(self, *words: str) -> Any:
        """Return the JSON answer of a command that must succeed."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr + done.stdout
        assert "faults in indexes" not in done.stderr, done.stderr  # a replica is whole, not mended
        return json.loads(done.stdout)

    @contextmanager
    def serving(self) -> Iterator[psutil.Process]:
        """Run the service; killed at the end if it still runs. Its log is in `root/log`."""
        with (self.root / "log").open("ab") as log:
            child = subprocess.Popen([SERVICE, "serve"], env=self.environ, stdout=log, stderr=log)
        process = psutil.Process(child.pid)
        try:
            self.wait_ready(child)
            yield process
        finally:
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()

    def wait_ready(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if child.poll() is not None:
                raise AssertionError(f"the service ended with {child.returncode}: {self.log()[-2000:]}")
            try:
                if httpx.get(f"{self.origin}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"the service was not ready in {PATIENCE_S:.0f} s: {self.log()[-2000:]}")

    def ready(self) -> Any:
        return httpx.get(f"{self.origin}/readyz", timeout=5).json()

    def metrics(self) -> dict[str, float]:
        """Return what a scrape finds, without `# …` lines: name with labels → value."""
        text = httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5).text
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def log(self) -> str:
        path = self.root / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def wait(self, held: Any, what: str, seconds: float = PATIENCE_S) -> Any:
        """Wait until `held()` is true, and return it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := held():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {what}\n{self.log()[-2000:]}")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def litestream_of(process: psutil.Process) -> psutil.Process | None:
    """Return the litestream that a service has started."""
    return next((child for child in process.children() if child.name() == "litestream"), None)


@asynccontextmanager
async def client_of(deployment: Deployment) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(base_url=deployment.origin, timeout=30) as http:
        yield Client(http)


class Writer:
    """A device that pushes, and remembers what was acknowledged when."""

    def __init__(self, device: Device, reader: Device) -> None:
        self.device = device
        self.reader = reader
        self.acknowledged: dict[int, float] = {}
        self.read: dict[tuple[bytes, int], Envelope] = {}

    @property
    def lane(self) -> list[Envelope]:
        return self.device.lanes.setdefault(self.device.account.home, [])

    async def load(self, stop: asyncio.Event) -> None:
        """Push until the server is gone. What was sent and not acknowledged is sent again by the next heal."""
        while not stop.is_set():
            made = [self.device.quick(200 + 13 * len(self.lane) % 3000) for _ in range(OBJECTS_A_PUSH)]
            try:
                results = await self.patiently("/v1/push", made)
            except httpx.TransportError:
                return
            at = time.time()
            assert {one.status for one in results} <= {"ok", "dup"}, results
            self.acknowledged |= {one.n_to: at for one in results}
            await asyncio.sleep(1 / PUSHES_A_SECOND)

    async def patiently(self, path: str, objects: list[Envelope]) -> tuple[Pushed, ...]:
        """Send, and wait when the service asks for that, as every device does: a fast machine can empty its bucket."""
        while True:
            try:
                return await self.device.send(path, objects)
            except RefusedError as refused:
                if refused.code != "too_many":
                    raise
                await asyncio.sleep(float(refused.response.headers["Retry-After"]))

    async def follow(self, stop: asyncio.Event) -> None:
        """Read along as another device does."""
        while not stop.is_set():
            try:
                page = await self.reader.pull(wait=1)
            except httpx.TransportError:
                return
            self.took(page.objects)
            self.reader.cursor = page.cursor

    def took(self, objects: list[Envelope]) -> None:
        for one in objects:
            known = self.read.setdefault((one.header.device, one.header.n_from), one)
            assert known.data == one.data

    async def head(self) -> int:
        heads = (await self.device.heads()).heads
        return max((one.n for one in heads if one.device == self.device.id), default=0)

    async def heal(self) -> None:
        """Send again, verbatim, whatever the server does not have."""
        n = await self.head()
        missing = self.lane[n:]
        for start in range(0, len(missing), 100):
            results = await self.patiently("/v1/heal", missing[start : start + 100])
            assert {one.status for one in results} <= {"ok", "dup"}, results
        self.acknowledged |= {one.header.n_to: time.time() for one in missing}

    async def missing(self) -> int:
        """Return how many of the acknowledged objects nobody could read from the server now."""
        fresh = Device(account=self.reader.account, client=self.reader.client, id=self.reader.id, key=self.reader.key)
        there = {one.header.n_from: one.data for one in await fresh.drain() if one.header.device == self.device.id}
        return sum(1 for n in self.acknowledged if there.get(n) != self.lane[n - 1].data)


async def rounds(root: Path, count: int, *, load_s: float = 4.0) -> list[Round]:
    """Run so many rounds in a folder, and return what each cost."""
    deployment = Deployment(root=root, more={"SCRUBJAY_CLOUD_REPLICA": str(root / "replica")})
    writers: list[Writer] = []
    with deployment.serving():
        async with client_of(deployment) as client:
            for number in range(ACCOUNTS):
                account = Account.make(f"drill{number}", origin=deployment.origin)
                device = account.device(Client(client.http))
                await account.register(client)
                await device.authenticate()
                writers.append(Writer(device, await second_device(device)))
    # Each a little longer than the last: killed at another moment of litestream's second.
    found = [await _round(deployment, writers, load_s + 0.37 * number) for number in range(count)]
    held = deployment.json("admin", "drill")
    assert held["held"], held
    return found


async def _round(deployment: Deployment, writers: list[Writer], load_s: float) -> Round:
    before = sum(len(one.acknowledged) for one in writers)
    with deployment.serving() as process:
        async with client_of(deployment) as client:
            for one in writers:
                one.device.client.http = one.reader.client.http = client.http
            deployment.wait(lambda: deployment.ready()["replica"]["state"] == "replicating", "litestream replicates")
            stop = asyncio.Event()
            tasks = [asyncio.create_task(work(stop)) for one in writers for work in (one.load, one.follow)]
            await asyncio.sleep(load_s)
            litestream = litestream_of(process)
            assert litestream is not None
            os.kill(process.pid, signal.SIGKILL)
            os.kill(litestream.pid, signal.SIGKILL)
            killed = time.time()
            stop.set()
            await asyncio.gather(*tasks)
    shutil.rmtree(deployment.data)
    began = time.monotonic()
    restored = deployment.json("admin", "restore")
    restore_s = time.monotonic() - began
    with deployment.serving():
        async with client_of(deployment) as client:
            for one in writers:
                one.device.client.http = one.reader.client.http = client.http
            lost: list[float] = []
            for one in writers:
                head = await one.head()
                lost.extend(at for n, at in one.acknowledged.items() if n > head)
            began = time.monotonic()
            for one in writers:
                await one.heal()
            repair_s = time.monotonic() - began
            after = sum([await one.missing() for one in writers])
            for one in writers:  # a reader goes on from the cursor it had before the loss, and misses nothing
                one.took(await one.reader.drain())
                after += sum(1 for n in one.acknowledged if (one.device.id, n) not in one.read)
    return Round(
        acknowledged=sum(len(one.acknowledged) for one in writers) - before,
        lost=len(lost),
        lost_after_heal=after,
        rpo_s=round(max((killed - at for at in lost), default=0.0), 2),
        restore_s=round(restore_s, 2),
        work_s=(restored["fetch_ms"] + restored["verify_ms"]) / 1000,
        repair_s=round(repair_s, 2),
        generation=restored["generation"],
        findings=len(restored["verified"]["findings"]),
    )


def main() -> None:
    """Print the figures as JSON lines, and a line of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on which disk; a temporary folder unless given")
    line = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=line.folder) as folder:
        for one in asyncio.run(rounds(Path(folder), line.rounds)):
            sys.stdout.write(json.dumps(asdict(one)) + "\n")


if __name__ == "__main__":
    main()
