"""What a push, poll, idle device, account and object cost a service on PostgreSQL: docs/scale.md adds these figures up.

`python -m scrubjay_bench.costs` measures for a minute and prints JSON (`--write FILE` keeps it). Processor time is of
the service and of all of PostgreSQL's processes; sizes are of tables with their indexes, divided by what is in them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import msgspec
import psutil
import psycopg

from scrubjay_bench import clouds, sealing
from scrubjay_bench.clouds import Author, Line, Service
from scrubjay_shared.errors import UnavailableError

SEED = 41
ACCOUNTS = 128
PUSHES = 40  # of an account, each of one segment
BATCHES = 120  # of a hundred segments: so many rows that half-filled pages count little
POLLS = 20
RENEWALS = 4  # of a token: a challenge, and its answer
STREAMS = 4  # of a device: as many as wait at once
SETTLE_SECONDS = 3.0
IDLE_SECONDS = 31.0  # two comments on an idle event stream
ACCOUNT_TABLES = ("account", "account_log", "account_state", "device", "wrap", "lane", "token", "audit", "bucket")


class Server:
    """PostgreSQL's processes."""

    def __init__(self, address: str) -> None:
        self._address = address
        with psycopg.connect(address) as connection:
            row = connection.execute("select pg_backend_pid()").fetchone()
            if row is None or (parent := psutil.Process(row[0]).parent()) is None:
                raise UnavailableError(
                    "PostgreSQL's processes cannot be seen", hint="measure on the machine it runs on"
                )
            self._parent = parent

    def cpu_seconds(self) -> float:
        """Return the processor time of all of them, those that have ended too."""
        ended = self._parent.cpu_times()
        seconds = ended.user + ended.system + ended.children_user + ended.children_system
        for one in self._parent.children():
            with contextlib.suppress(psutil.NoSuchProcess):  # one more that has ended since
                times = one.cpu_times()
                seconds += times.user + times.system
        return float(seconds)

    def vacuum(self) -> None:
        """Clear up after what was written: else that is done some time later, while something else is measured."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute("vacuum analyze")

    def bytes_of(self, *tables: str) -> int:
        """Return what tables take with their partitions and indexes."""
        size = (
            "select pg_total_relation_size(%(table)s::regclass)"
            " + coalesce((select sum(pg_total_relation_size(inhrelid)) from pg_inherits"
            " where inhparent = %(table)s::regclass), 0)"
        )
        with psycopg.connect(self._address) as connection:
            return sum(int(row[0]) for table in tables for row in connection.execute(size, {"table": table}))

    def body_bytes(self) -> int:
        """Return what the bodies of all objects take."""
        with psycopg.connect(self._address) as connection:
            row = connection.execute("select coalesce(sum(length(body)), 0) from object").fetchone()
        return int(row[0]) if row else 0


async def measured(service: Service, server: Server) -> dict[str, float]:
    """Return the figures by name."""
    found: dict[str, float] = {}
    texts = itertools.cycle(sealing.event_ops(2_048, SEED))
    before = server.bytes_of(*ACCOUNT_TABLES)
    authors = [(await clouds.signed_up(service, number, tokens=STREAMS))[0] for number in range(ACCOUNTS)]
    found["account_bytes"] = (server.bytes_of(*ACCOUNT_TABLES) - before) / ACCOUNTS

    def pushes() -> list[list[bytes]]:
        return [
            [
                clouds.push_of(author, [author.made([next(texts) for _ in range(sealing.TURN)])[0].envelope])
                for _ in range(PUSHES)
            ]
            for author in authors
        ]

    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(clouds.connected(service)) for _ in range(32)]
        await _each(service, server, "push", lines, pushes())  # lanes begin and plans are made: no push's own cost
        found |= await _each(service, server, "push", lines, pushes())
        for author in authors[:BATCHES]:
            objects = [author.made([next(texts) for _ in range(sealing.TURN)])[0].envelope for _ in range(100)]
            await lines[0].ask(clouds.push_of(author, objects))
        rows = ACCOUNTS * PUSHES * 2 + BATCHES * 100
        found["object_row_bytes"] = (server.bytes_of("object") - server.body_bytes()) / rows
        polls = [[clouds.request_of("GET", "/v1/pull?limit=1", token=one.tokens[0])] * POLLS for one in authors]
        found |= await _each(service, server, "poll", lines, polls)
    app, database = service.cpu_seconds(), server.cpu_seconds()
    renewed = 0
    async with clouds.connected(service) as line:
        for number, author in enumerate(authors):
            for _ in range(RENEWALS):
                await clouds.token(line, service, author, clouds.address_of(number))
                renewed += 1
    found["token_app_ms"] = (service.cpu_seconds() - app) * 1000 / renewed
    found["token_database_ms"] = (server.cpu_seconds() - database) * 1000 / renewed
    found |= await _idle(service, server, authors)
    return {name: float(f"{value:.3g}") for name, value in found.items()}


async def _each(
    service: Service, server: Server, name: str, lines: Sequence[Line], requests: Sequence[Sequence[bytes]]
) -> dict[str, float]:
    """Return the milliseconds of processor time of one request."""

    async def send(line: Line, some: Sequence[Sequence[bytes]]) -> None:
        for one in some:
            for request in one:
                await line.ask(request)

    app, database = service.cpu_seconds(), server.cpu_seconds()
    await asyncio.gather(*(send(line, requests[at :: len(lines)]) for at, line in enumerate(lines)))
    count = sum(map(len, requests))
    return {
        f"{name}_app_ms": (service.cpu_seconds() - app) * 1000 / count,
        f"{name}_database_ms": (server.cpu_seconds() - database) * 1000 / count,
    }


async def _idle(service: Service, server: Server, authors: Sequence[Author]) -> dict[str, float]:
    """Return what an event stream costs that nothing comes through."""
    server.vacuum()
    resting = await _window(service, server)
    memory = service.rss_mb()
    writers = []
    for author in authors:
        for token in author.tokens:
            _, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writer.write(clouds.request_of("GET", "/v1/events", token=token))
            writers.append(writer)
    await asyncio.sleep(SETTLE_SECONDS)
    added = service.rss_mb() - memory
    busy = await _window(service, server)
    for writer in writers:
        writer.close()
    return {
        "stream_bytes": added * 1e6 / len(writers),
        # Below what can be measured, the difference of two windows may be negative.
        "stream_app_ms_a_second": max(0.0, busy[0] - resting[0]) * 1000 / len(writers),
        "stream_database_ms_a_second": max(0.0, busy[1] - resting[1]) * 1000 / len(writers),
    }


async def _window(service: Service, server: Server) -> tuple[float, float]:
    """Return the shares of a core that service and database take while nothing is asked of them."""
    app, database, began = service.cpu_seconds(), server.cpu_seconds(), time.perf_counter()
    await asyncio.sleep(IDLE_SECONDS)
    seconds = time.perf_counter() - began
    return (service.cpu_seconds() - app) / seconds, (server.cpu_seconds() - database) / seconds


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the file that keeps the figures")
    target = parser.parse_args().write
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sjb-")))
        address = stack.enter_context(clouds.postgres())
        if address is None:
            raise UnavailableError("there is no PostgreSQL here", hint="measure in a checkout on Linux x86_64")
        service = stack.enter_context(clouds.running(folder, postgres=address, unlimited=True))
        load = os.getloadavg()[0]
        figures = asyncio.run(measured(service, Server(address)))
    text = msgspec.json.format(msgspec.json.encode(figures), indent=2).decode() + "\n"
    print(f"load average before: {load:.1f}\n{text}", end="")
    if target is not None:
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
