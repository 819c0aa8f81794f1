"""Devices of one account over the real service: real stores, real keys, real bodies; only the network is not."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from scrubjay.store import MemoryWrite, Store
from scrubjay_cloud import database
from scrubjay_cloud.app import create_app
from scrubjay_cloud.policy import DEFAULT
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventType, Role
from scrubjay_shared.wire import Enrolment, Kdf
from scrubjay_sync.account import admission, pairing, registration
from scrubjay_sync.account.admission import Joining
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine.results import Round
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import ACCOUNT_CHANGED

ORIGIN = "https://sync.example.org"
KDF = Kdf(salt=b"k" * 16, memory_kib=19 * 1024, iterations=2, lanes=1)
AUTH_KEY = b"r" * 32
GENEROUS = replace(
    DEFAULT,
    hash_memory_kib=64,
    hash_iterations=1,
    limits=replace(
        DEFAULT.limits,
        **{
            name: replace(getattr(DEFAULT.limits, name), burst=1e12)
            for name in ("push", "pull", "control", "traffic", "token", "challenge")
        },
    ),
)


class Vault:
    """A `secrets.Vault` in memory."""

    def __init__(self) -> None:
        self.secrets: Secrets | None = None
        self.sealed: bytes | None = None

    async def load(self) -> Secrets | None:
        return self.secrets

    async def save(self, secrets: Secrets) -> None:
        self.secrets = secrets

    async def keyring(self) -> bytes | None:
        return self.sealed

    async def keep_keyring(self, data: bytes) -> None:
        self.sealed = data

    async def erase(self) -> None:
        self.secrets = self.sealed = None


Answer = Callable[[], Awaitable[httpx2.Response]]
Handler = Callable[[httpx2.Request, Answer], Awaitable[httpx2.Response]]


class Network(httpx2.AsyncBaseTransport):
    """The way to the server. `fault` sees each request and may answer it, change the answer, or raise."""

    def __init__(self, server: World) -> None:
        self.server = server
        self.fault: Handler | None = None
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        body = await request.aread()

        async def answer() -> httpx2.Response:
            copy = httpx2.Request(request.method, request.url, headers=request.headers, content=body)
            response = await self.server.transport.handle_async_request(copy)
            content = await response.aread()
            return httpx2.Response(response.status_code, headers=response.headers, content=content)

        found = await (self.fault(request, answer) if self.fault is not None else answer())
        # Raw bytes, as from a socket: the client reads them as a stream.
        return httpx2.Response(found.status_code, headers=found.headers, stream=_Bytes(found.content))


class _Bytes(httpx2.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self.content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content


@dataclass
class Device:
    """One machine of the account."""

    world: World
    machine: Machine
    member: Member
    network: Network
    path: Path
    skew_ms: int = 0
    free: int = 1 << 40
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        async def sleep(_: float) -> None:
            return None

        self.engine = Engine(
            self.machine.store,
            self.member,
            self.machine.cloud,
            now=self.now,
            entropy=self.machine.entropy,
            sleep=sleep,
            free_bytes=lambda: self.free,
        )

    def now(self) -> Millis:
        return Millis(self.world.now() + self.skew_ms)

    @property
    def store(self) -> Store:
        return self.machine.store

    async def log(self) -> list[bytes]:
        """Return the account log as this device holds it."""
        return await self.store.read(lambda q: q.replication.account_log())

    async def sync(self, **options: Any) -> Round:
        return await self.engine.sync(**options)

    async def note(self, text: str, **fields: Any) -> str:
        """Write a memory; return its id."""

        def work(tx: Any) -> str:
            memory_id = str(tx.new_id())
            values = {Field.CONTENT: text, Field.CREATED_AT: int(tx.now)}
            values |= {Field[name.upper()]: value for name, value in fields.items()}
            tx.memories.write([MemoryWrite(memory_id=memory_id, fields=values)])
            return memory_id

        return await self.store.write(work)

    async def edit(self, memory_id: str, text: str) -> None:
        await self.set_fields(memory_id, content=text)

    async def set_fields(self, memory_id: str, **fields: Any) -> None:
        """Write some fields of a memory."""
        values = {Field[name.upper()]: value for name, value in fields.items()}
        await self.store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=memory_id, fields=values)]))

    async def rename(self, memory_id: str, name: str) -> None:
        await self.store.write(
            lambda tx: tx.memories.write([MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,))])
        )

    async def forget(self, memory_id: str) -> None:
        await self.store.write(lambda tx: tx.forget.memory(memory_id))

    async def say(self, *texts: str, project: str | None = None) -> list[str]:
        """Append events; return their ids."""

        def work(tx: Any) -> list[str]:
            events = [
                Event(
                    id=tx.new_id(),
                    device=self.store.device,
                    agent="test",
                    session_id="s1",
                    type=EventType.USER_MESSAGE,
                    role=Role.USER,
                    text=text,
                    ts=tx.now,
                    dedupe_key=f"{self.store.device}{self.store.last_seq}-{n}",
                    project=project,
                )
                for n, text in enumerate(texts)
            ]
            tx.events.append(events, learn=False)
            return [event.id for event in events]

        return await self.store.write(work)

    async def contents(self) -> list[str]:
        """Return what all memories say, sorted."""
        return sorted(str(row[0]) for row in await self.store.read(lambda q: q.fetch("select content from memory")))

    async def digest(self) -> str:
        return await self.store.write(lambda tx: tx.queries.digests.state())

    async def reopen(self) -> None:
        """Stop and start again, as after a crash: only what is in the file counts."""
        await self.store.close()
        store = await Store.open(self.path, now=self.now, entropy=self.machine.entropy)
        self.world.stack.push_async_callback(store.close)
        self.machine = replace(self.machine, store=store)
        self.member = await self.machine.member()
        self.start()

    async def alarms(self) -> list[str]:
        """The codes of all alarms, those apart that only tell who is in (`changes`)."""
        found = await self.store.read(lambda q: q.replication.alarms())
        return [alarm.code for alarm in found if alarm.code != ACCOUNT_CHANGED]

    async def changes(self) -> list[str]:
        """What this device tells of changes of who is in."""
        found = await self.store.read(lambda q: q.replication.alarms())
        return [alarm.message for alarm in found if alarm.code == ACCOUNT_CHANGED]


async def answered(joining: Joining, member: Member, cloud: Cloud) -> Enrolment:
    """Have a device answer a machine that asks, and that machine show its words. Returns its request as it is then."""
    await member.refresh(cloud)
    for _ in range(2):
        (asked,) = (one for one in (await cloud.account.enrolments()).enrolments if one.id == joining.asked.id)
        await pairing.answer(member, cloud, asked, anew=True)
        await joining.poll()
    (asked,) = (one for one in (await cloud.account.enrolments()).enrolments if one.id == joining.asked.id)
    return asked


async def let_in(joining: Joining, member: Member, cloud: Cloud) -> Member:
    """Let a machine in that asks, as two people do: words carried there, and words carried back."""
    asked = await answered(joining, member, cloud)
    proof = await pairing.approve(member, cloud, asked, joining.words)
    await joining.poll()
    return await joining.join(proof)


@dataclass
class World:
    """One server, one account, and as many devices as a test wants."""

    path: Path
    stack: AsyncExitStack
    transport: httpx2.AsyncBaseTransport = field(init=False)
    settings: Settings = field(init=False)
    database: database.Database = field(init=False)
    stop: Callable[[], None] = field(init=False)
    random: Random = field(default_factory=lambda: Random(7))
    time: int = 1_800_000_000_000
    code: RecoveryCode = field(default_factory=lambda: RecoveryCode(secret=b"c" * 20))
    devices: list[Device] = field(default_factory=list)
    database_url: str = ""
    """Where the server keeps everything when it is PostgreSQL; else a file in the folder."""

    def now(self) -> Millis:
        self.time += 1
        return Millis(self.time)

    async def serve(self) -> None:
        """Start the server over its file."""
        self.settings = Settings(
            data=self.path / "cloud", registration="open", pepper="p" * 32, database_url=self.database_url
        )
        self.database = await database.open(self.settings, now=self.now, entropy=self.random.randbytes)
        app = create_app(self.database, self.settings, now=self.now, entropy=self.random.randbytes, policy=GENEROUS)
        self.stop = app.state.service.stop
        self.transport = httpx2.ASGITransport(app=app)

    async def device(self, *, skew_ms: int = 0) -> Device:
        """Return one more device: the first signs up, the others are let in by it."""
        name = f"device{len(self.devices)}"
        path, network = self.path / name / "memory.db", Network(self)
        machine = await self.machine(path, network, skew_ms=skew_ms)
        member = await (self._first(machine) if not self.devices else self._joined(machine, name))
        made = Device(world=self, machine=machine, member=member, network=network, path=path, skew_ms=skew_ms)
        self.devices.append(made)
        return made

    async def machine(
        self, path: Path | None = None, network: httpx2.AsyncBaseTransport | None = None, *, skew_ms: int = 0
    ) -> Machine:
        """Return a machine that is in no account."""
        clock = lambda: Millis(self.now() + skew_ms)  # noqa: E731
        path = path or self.path / f"machine{self.random.random()}" / "memory.db"
        store = await Store.open(path, now=clock, entropy=self.random.randbytes)
        self.stack.push_async_callback(store.close)
        cloud = Cloud(ORIGIN, now=clock, transport=network or Network(self))
        self.stack.push_async_callback(cloud.aclose)
        return Machine(store=store, vault=Vault(), cloud=cloud, now=clock, entropy=self.random.randbytes)

    async def log_in(self, machine: Machine, name: str) -> Joining:
        """Prove the password and ask to be let in."""
        return await admission.log_in(machine, username="ann", auth_key=AUTH_KEY, name=name)

    async def _first(self, machine: Machine, *, bring_all: bool = False) -> Member:
        return await registration.sign_up(
            machine,
            username="ann",
            auth_key=AUTH_KEY,
            kdf=KDF,
            recovery=self.code,
            name="device0",
            bring_all=bring_all,
        )

    async def _joined(self, machine: Machine, name: str) -> Member:
        first = self.devices[0]
        return await let_in(await self.log_in(machine, name), first.member, first.machine.cloud)

    async def adopted(self, device: Device) -> Device:
        """Sign up with a device that has left its account; it is the first of a new one."""
        machine = replace(device.machine, vault=Vault())
        member = await self._first(machine, bring_all=True)
        made = Device(world=self, machine=machine, member=member, network=device.network, path=device.path)
        self.devices[0] = made
        return made

    async def rejoined(self, device: Device, *, by: Device) -> Device:
        """Log a device in again that has left the account."""
        machine = replace(device.machine, vault=Vault())
        self.devices.insert(0, by)
        member = await self._joined(machine, "again")
        return Device(world=self, machine=machine, member=member, network=device.network, path=device.path)

    async def copied(self, device: Device, folder: Path) -> Device:
        """Return a copy of a device as it stands: its store, its keys, everything."""
        await device.store.backup(folder / "memory.db")
        network = Network(self)
        store = await Store.open(folder / "memory.db", now=device.now, entropy=self.random.randbytes)
        self.stack.push_async_callback(store.close)
        cloud = Cloud(ORIGIN, now=device.now, transport=network)
        self.stack.push_async_callback(cloud.aclose)
        vault = Vault()
        vault.secrets, vault.sealed = await device.machine.vault.load(), await device.machine.vault.keyring()
        machine = Machine(store=store, vault=vault, cloud=cloud, now=device.now, entropy=self.random.randbytes)
        made = Device(
            world=self, machine=machine, member=await machine.member(), network=network, path=folder / "memory.db"
        )
        self.devices.append(made)
        return made

    async def back_up(self) -> None:
        """Copy the server's data as it stands."""
        await self.database.close()
        shutil.rmtree(self.path / "backup", ignore_errors=True)
        shutil.copytree(self.settings.data, self.path / "backup")
        await self.serve()

    async def restore(self, *, announced: bool = True) -> None:
        """Put the copy in the place of the server's data, as its operator does after a loss, or as one who hides it."""
        await self.database.close()
        shutil.rmtree(self.settings.data)
        shutil.copytree(self.path / "backup", self.settings.data)
        await self.serve()
        if announced:
            await self.database.write(database.raise_generation)
            await self.database.close()
            await self.serve()

    async def settle(self, *devices: Device, rounds: int = 3) -> None:
        """Run rounds on some devices, or all, until each has seen what the others sent."""
        for _ in range(rounds):
            for device in devices or self.devices:
                await device.sync()


@asynccontextmanager
async def world_at(path: Path, database_url: str = "") -> AsyncIterator[World]:
    """A world in a folder, its server's data in PostgreSQL if told, closed at the end."""
    async with AsyncExitStack() as stack:
        made = World(path=path, stack=stack, database_url=database_url)
        await made.serve()
        try:
            yield made
        finally:
            made.stop()
            await made.database.close()
