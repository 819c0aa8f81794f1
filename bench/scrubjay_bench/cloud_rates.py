"""The cloud service: how fast it takes and hands out objects, on SQLite and on PostgreSQL, beside the bare least.

A real service process on loopback. Whoever pushes is as light as can be (requests are made before the clock runs), but
shares the machine's cores with the service: rates by the clock are of both together, `.cpu` is of the service alone.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_bench import clouds, daemons, sealing
from scrubjay_bench.clouds import Author, Line, Service
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_io.sqlite import driver
from scrubjay_shared import wire
from scrubjay_shared.envelope import MAX_PAGE_BYTES, Envelope, signed_message
from scrubjay_shared.errors import UnavailableError
from scrubjay_sync.policy import SYNC

SEED = 29
STOCKED = 1_000_000  # numbers of accounts that are only read from
TURN = sealing.TURN
POOL = 8_192  # ops that objects are made of, over and over: making them takes longer than sealing them
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much is sent in a round. `pace` and `fast` are pushes a second, for so many seconds."""

    accounts: int = 32
    devices: int = 8  # of the one account
    each: int = 12  # pushes of an account, or device, one after another
    pace: int = 50
    fast: int = 500
    seconds: float = 3.0
    batches: int = 4  # requests of `batch` segments, from four accounts
    batch: int = 100
    pages: int = 3  # times that everything is pulled
    stock: int = 20  # times `batch` live segments that are there to be pulled
    large: int = 12  # objects as a first upload makes them, to pull bytes


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it on both databases; five minutes."""
    return measured(plan, Load())


def measured(plan: Plan, load: Load) -> list[Figure]:
    """Measure with so much load."""
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder, ExitStack() as stack:
        address = stack.enter_context(clouds.postgres())
        kinds = {"sqlite": ""} | ({} if address is None else {"postgres": address})
        fields = {
            kind: _Field(
                kind=kind,
                service=stack.enter_context(clouds.running(folder / kind, postgres=where, unlimited=True)),
                bare=stack.enter_context(_bare(kind, where, folder)),
            )
            for kind, where in kinds.items()
        }
        replica = f"file://{folder / 'replica'}"
        beside = _Field(
            kind="replicated",
            service=stack.enter_context(clouds.running(folder / "beside", replica=replica, unlimited=True)),
            bare=lambda _: None,
        )
        echo = stack.enter_context(_serving_bytes())
        asyncio.run(_all(rounds, plan.rounds, load, [*fields.values(), beside], echo))
    return _figures(rounds, load, list(kinds))


@dataclass(slots=True, kw_only=True)
class _Field:
    """A service with its accounts, and the bare commit beside it."""

    kind: str
    service: Service
    bare: Callable[[Sequence[Envelope]], None]
    many: list[Author] = field(default_factory=list)
    one: list[Author] = field(default_factory=list)


async def _all(rounds: Rounds, count: int, load: Load, fields: list[_Field], echo: Service) -> None:
    *fields, beside = fields
    for at, one in enumerate([*fields, beside]):
        start = at * load.accounts * 2
        one.many = [(await clouds.signed_up(one.service, start + n))[0] for n in range(load.accounts)]
        one.one = await clouds.signed_up(one.service, start + load.accounts, devices=load.devices)
    texts = itertools.cycle(sealing.event_ops(POOL, SEED))
    stocks = [await _stocked(one.service, load, texts) for one in fields]
    for _ in range(count):
        for one, stock in zip(fields, stocks, strict=True):
            await _round(rounds, load, one, texts)
            await _pulled(rounds, f"pull.{one.kind}", one.service, stock[0], load.pages)
            await _pulled(rounds, f"pull.{one.kind}.large", one.service, stock[1], load.pages)
        await _echoed(rounds, echo, load)
        await _replication(rounds, load, fields[0], beside, texts)


async def _round(rounds: Rounds, load: Load, one: _Field, texts: Iterator[bytes]) -> None:
    kind = one.kind
    await _closed(rounds, f"push.{kind}.many", one.service, [_pushes(author, load.each, texts) for author in one.many])
    await _closed(rounds, f"push.{kind}.one", one.service, [_pushes(author, load.each, texts) for author in one.one])
    await _paced(rounds, f"push.{kind}", one, _spread(one, load.pace * load.seconds, texts), load.pace)
    if kind == "sqlite":
        await _paced(rounds, f"push.{kind}.fast", one, _spread(one, load.fast * load.seconds, texts), load.fast)
    batches = [_batches(author, load, at, texts) for at, author in enumerate(one.many[:4])]
    await _closed(rounds, f"push.{kind}.batch", one.service, batches, weight=load.batch)
    _floors(rounds, one, load, texts)


# --- pushing ----------------------------------------------------------------------------------------------------------


def _segment(author: Author, texts: Iterator[bytes], count: int = TURN) -> Envelope:
    return author.made([next(texts) for _ in range(count)])[0].envelope


def _pushes(author: Author, count: int, texts: Iterator[bytes]) -> list[bytes]:
    return [clouds.push_of(author, [_segment(author, texts)]) for _ in range(count)]


def _batches(author: Author, load: Load, at: int, texts: Iterator[bytes]) -> list[bytes]:
    count = load.batches // 4 + (at < load.batches % 4)
    return [clouds.push_of(author, [_segment(author, texts) for _ in range(load.batch)]) for _ in range(count)]


async def _closed(rounds: Rounds, name: str, service: Service, work: list[list[bytes]], *, weight: int = 1) -> None:
    """Note how fast requests are answered, each connection sending its next when it has the answer to the last."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(clouds.connected(service)) for _ in work]
        for line in lines:
            await line.ask(clouds.request_of("GET", "/healthz"))

        async def send(line: Line, requests: list[bytes]) -> None:
            for request in requests:
                _check(await line.ask(request))

        before, began = service.cpu_seconds(), time.perf_counter()
        await asyncio.gather(*map(send, lines, work))
        took, cpu = time.perf_counter() - began, service.cpu_seconds() - before
    count = sum(map(len, work)) * weight
    rounds.add(name, count / took)
    rounds.add(f"{name}.cpu", count / max(cpu, 0.01))


def _spread(one: _Field, count: float, texts: Iterator[bytes]) -> list[bytes]:
    """Return single pushes of a service's accounts in turn."""
    return [
        clouds.push_of(author, [_segment(author, texts)])
        for author in itertools.islice(itertools.cycle(one.many), int(count))
    ]


async def _paced(rounds: Rounds, name: str, one: _Field, requests: Sequence[bytes], pace: int) -> None:
    """Note how long pushes wait for their answer when they come evenly, whether or not the last was answered."""
    took: list[float] = []
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(clouds.connected(one.service)) for _ in one.many]
        for line in lines:
            await line.ask(clouds.request_of("GET", "/healthz"))
        began = time.perf_counter() + 0.05

        async def send(at: int) -> None:
            for place in range(at, len(requests), len(lines)):
                due = began + place / pace
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                _check(await lines[at].ask(requests[place]))
                took.append(time.perf_counter() - due)

        await asyncio.gather(*map(send, range(len(lines))))
    rounds.add_latencies(name, took, 50, 99)


async def _replication(rounds: Rounds, load: Load, plain: _Field, beside: _Field, texts: Iterator[bytes]) -> None:
    """Note the same pace with litestream beside the service and, just before, without."""
    for name, one in (("unreplicated", plain), ("replicated", beside)):
        await _paced(rounds, f"push.{name}", one, _spread(one, load.pace * load.seconds, texts), load.pace)


def _check(answer: bytes) -> None:
    if wrong := clouds.refused(answer):
        raise UnavailableError("a push was not taken", hint=", ".join(sorted(set(wrong))))


# --- the least of it --------------------------------------------------------------------------------------------------


@contextmanager
def _bare(kind: str, address: str, folder: Path) -> Iterator[Callable[[Sequence[Envelope]], None]]:
    """Yield what makes some objects durable in one transaction and does nothing else."""
    rows = "insert into bare (hash, body) values ({}, {})"
    if kind == "sqlite":
        connection = driver.connect(str(folder / "bare.db"), isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("create table bare (n integer primary key, hash blob not null, body blob not null) strict")

        def keep(objects: Sequence[Envelope]) -> None:
            connection.execute("begin immediate")
            connection.executemany(rows.format("?", "?"), [(sha256(one.data).digest(), one.data) for one in objects])
            connection.execute("commit")
    else:
        import psycopg  # noqa: PLC0415 - where there is no PostgreSQL it may be missing

        connection = psycopg.connect(address, autocommit=True)
        connection.execute("create table bare (n bigserial primary key, hash bytea not null, body bytea not null)")

        def keep(objects: Sequence[Envelope]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(rows.format("%s", "%s"), [(sha256(one.data).digest(), one.data) for one in objects])

    try:
        yield keep
    finally:
        connection.close()


def _floors(rounds: Rounds, one: _Field, load: Load, texts: Iterator[bytes]) -> None:
    """Note what a verified signature, a hash and a commit take, one after another, here in this process."""
    author = clouds.authors(1)[0][0]
    public = Ed25519PublicKey.from_public_bytes(author.key.public)

    def least(objects: Sequence[Envelope]) -> None:
        public.verify(objects[-1].signature, signed_message(objects[-1].head, objects[-1].body))
        one.bare(objects)

    for name, sizes in (("", [1] * (load.each * 8)), (".batch", [load.batch] * load.batches)):
        work = [[_segment(author, texts) for _ in range(size)] for size in sizes]
        took: list[float] = []
        before, began = time.process_time(), time.perf_counter()
        for objects in work:
            at = time.perf_counter()
            least(objects)
            took.append(time.perf_counter() - at)
        count = sum(sizes)
        rounds.add(f"floor.push.{one.kind}{name}", count / (time.perf_counter() - began))
        rounds.add(f"floor.push.{one.kind}{name}.cpu", count / (time.process_time() - before))
        if not name:
            rounds.add_latencies(f"floor.push.{one.kind}", took, 50, 99)


# --- pulling ----------------------------------------------------------------------------------------------------------


async def _stocked(service: Service, load: Load, texts: Iterator[bytes]) -> tuple[Author, Author]:
    """Return devices of two accounts: one with many small objects on the server, one with some large ones."""
    small, large = [(await clouds.signed_up(service, STOCKED + more))[0] for more in range(2)]
    async with clouds.connected(service) as line:
        for _ in range(load.stock):
            objects = [_segment(small, texts) for _ in range(load.batch)]
            _check(await line.ask(clouds.push_of(small, objects)))
        for _ in range(load.large):
            made = large.made([next(texts) for _ in range(min(SYNC.seal_ops, load.batch * 40))])
            _check(await line.ask(clouds.push_of(large, [one.envelope for one in made])))
    return small, large


async def _pulled(rounds: Rounds, name: str, service: Service, author: Author, times: int) -> None:
    """Note how fast everything of an account is handed out, as pages of the largest size."""
    objects = size = 0
    async with clouds.connected(service) as line:
        before, began = service.cpu_seconds(), time.perf_counter()
        for _ in range(times):
            cursor = ""
            while True:
                path = f"/v1/pull?after={cursor}&limit={MAX_PAGE_BYTES}&wait=0"
                body, headers = await line.asked(clouds.request_of("GET", path, token=author.tokens[0]))
                size += len(body)
                cursor = headers[wire.CURSOR.lower()]
                if cursor == headers[wire.HEAD.lower()]:
                    break
            objects += author.n
        took, cpu = time.perf_counter() - began, max(service.cpu_seconds() - before, 0.01)
    rounds.add(f"{name}.objects", objects / took)
    rounds.add(f"{name}.objects.cpu", objects / cpu)
    rounds.add(f"{name}.bytes", size / 1e6 / took)
    rounds.add(f"{name}.bytes.cpu", size / 1e6 / cpu)


async def _echoed(rounds: Rounds, echo: Service, load: Load) -> None:
    """Note how fast a bare route hands out pages of the same size."""
    request = clouds.request_of("GET", "/bytes")
    count = max(4, load.pages * load.large // 2)
    async with clouds.connected(echo) as line:
        await line.ask(request)
        before, began = echo.cpu_seconds(), time.perf_counter()
        for _ in range(count):
            await line.ask(request)
        took, cpu = time.perf_counter() - began, max(echo.cpu_seconds() - before, 0.01)
    rounds.add("floor.pull.bytes", count * MAX_PAGE_BYTES / 1e6 / took)
    rounds.add("floor.pull.bytes.cpu", count * MAX_PAGE_BYTES / 1e6 / cpu)


@contextmanager
def _serving_bytes() -> Iterator[Service]:
    """Serve a bare Starlette route that answers with one page's worth of bytes, as uvicorn serves it."""
    port = clouds.free_port()
    process = subprocess.Popen([sys.executable, "-P", "-m", "scrubjay_bench.cloud_rates", str(port)])
    service = Service(origin=f"http://127.0.0.1:{port}", port=port, process=psutil.Process(process.pid))
    try:
        deadline = time.monotonic() + START_SECONDS
        while not asyncio.run(_answers(service)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError("the bare server did not start", hint="try again")
            time.sleep(clouds.LOOK_SECONDS)
        yield service
    finally:
        process.terminate()
        process.wait()


async def _answers(service: Service) -> bool:
    try:
        async with clouds.connected(service) as line:
            await line.ask(clouds.request_of("GET", "/bytes"))
    except OSError:
        return False
    return True


def _serve_bytes(port: int) -> None:
    import uvicorn  # noqa: PLC0415 - only the child serves
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    page = os.urandom(MAX_PAGE_BYTES)

    async def answer(_: Request) -> Response:
        return Response(page, media_type=wire.MEDIA)

    uvicorn.run(
        Starlette(routes=[Route("/bytes", answer)]), host="127.0.0.1", port=port, log_config=None, access_log=False
    )


# --- the table --------------------------------------------------------------------------------------------------------

_GOALS = {"push.sqlite.many": 1_000, "push.sqlite.fast.p99": 100, "push.sqlite.batch": 30_000, "push.postgres.one": 500,
          "push.postgres.many": 900}  # fmt: skip  # of one worker on two cores, PostgreSQL and who asks beside it
_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


class _Table:
    """The lines, as they are put together."""

    def __init__(self, rounds: Rounds) -> None:
        self.lines: list[Figure] = []
        self._rounds = rounds

    def row(self, name: str, meaning: str, unit: str, samples: int, *, floor: str = "") -> None:
        """Add one line."""
        goal = _GOALS.get(name)
        self.lines.append(self._rounds.figure(name, meaning, unit, samples=samples, floor=floor, goal=goal))

    def rate(self, name: str, meaning: str, unit: str, samples: int, *, floor: str = "") -> None:
        """Add a rate by the clock and one per second of processor time."""
        self.row(name, meaning, unit, samples, floor=floor)
        meaning = "the same, per second of processor time"
        self.row(f"{name}.cpu", meaning, unit, samples, floor=f"{floor}.cpu" if floor else "")

    def latency(self, name: str, meaning: str, samples: int, *, floor: str = "") -> None:
        """Add p50 and p99."""
        for percent in (50, 99):
            beside = f"{floor}.p{percent}" if floor else ""
            self.row(f"{name}.p{percent}", meaning if percent == 50 else "…", "ms", samples, floor=beside)


def _figures(rounds: Rounds, load: Load, kinds: Sequence[str]) -> list[Figure]:
    table = _Table(rounds)
    for kind in kinds:
        _pushing(table, load, kind)
        _pulling(table, load, kind)
    said, count = f"SQLite: a push of one segment, {load.pace} a second", int(load.pace * load.seconds)
    table.latency("push.replicated", f"{said}, litestream beside it, to a folder", count, floor="push.unreplicated")
    table.latency("push.unreplicated", f"{said}, just before, no litestream", count)
    for kind in kinds:
        _least(table, load, kind)
    table.rate("floor.pull.bytes", "bare Starlette route with a page of bytes", "MB/s", load.large)
    return table.lines


def _pushing(table: _Table, load: Load, kind: str) -> None:
    of, floor = f"{_NAMES[kind]}: ", f"floor.push.{kind}"
    table.rate(f"push.{kind}.many", f"{of}pushes of one segment ({TURN} events), {load.accounts} accounts at once",
               "pushes/s", load.each * load.accounts, floor=floor)  # fmt: skip
    table.rate(f"push.{kind}.one", f"{of}the same, {load.devices} devices of one account at once", "pushes/s",
               load.each * load.devices, floor=floor)  # fmt: skip
    for suffix, pace in (("", load.pace), (".fast", load.fast)):
        if not suffix or kind == "sqlite":
            meaning = f"{of}a push of one segment, {pace} a second"
            table.latency(f"push.{kind}{suffix}", meaning, int(pace * load.seconds), floor=floor)
    table.rate(f"push.{kind}.batch", f"{of}segments in pushes of {load.batch}, 4 accounts at once", "segments/s",
               load.batches * load.batch, floor=f"{floor}.batch")  # fmt: skip


def _pulling(table: _Table, load: Load, kind: str) -> None:
    for size, what in (("", "live segments"), (".large", "objects of a first upload")):
        name, of = f"pull.{kind}{size}", f"{_NAMES[kind]}: "
        count = (load.large if size else load.stock * load.batch) * load.pages
        table.rate(f"{name}.objects", f"{of}{what} pulled, one page after another", "objects/s", count)
        table.rate(f"{name}.bytes", f"{of}the same in bytes", "MB/s", count, floor="floor.pull.bytes")


def _least(table: _Table, load: Load, kind: str) -> None:
    of, floor = f"{_NAMES[kind]}: bare", f"floor.push.{kind}"
    said = f"{of} signature check, SHA-256 and durable commit of one segment, one after another"
    table.rate(floor, said, "pushes/s", load.each * 8)
    table.latency(floor, said, load.each * 8)
    said = f"{of} check of one signature, SHA-256 of each and durable commit of {load.batch}"
    table.rate(f"{floor}.batch", said, "segments/s", load.batches * load.batch)


if __name__ == "__main__":
    _serve_bytes(int(sys.argv[1]))
