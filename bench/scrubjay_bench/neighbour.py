"""How long others' pushes wait while one account pushes large objects into a searchable scope.

`python -m scrubjay_bench.neighbour [--postgres]` prints the percentiles with and without the neighbour. Each of its
objects holds 20,000 ops in some 30 kB, which the server reads op by op.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from scrubjay_bench import clouds, sealing
from scrubjay_bench.clouds import Author, Service
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, ulid
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Op

OPS = 20_000
OBJECTS = 10
OTHERS = 8
PACE = 50  # pushes a second of the others together
SECONDS = 20.0
SEED = 37
GOAL_MS = 150


def large_object(author: Author, draw: random.Random) -> bytes:
    """Return a push of one object with `OPS` memories of one word each."""
    encoded = []
    for number in range(OPS):
        body = {1: ulid(Millis(1_800_000_000_000 + number), draw.randbytes(10)), 2: {int(Field.CONTENT): "harbour"}}
        op = Op(device=author.device.hex(), seq=0, op_id=draw.randbytes(16), hlc=Hlc(number << 16),
                type=int(ops.OpType.MEMORY), body=body)  # fmt: skip
        encoded.append(ops.encode(op))
    return clouds.push_of(author, [one.envelope for one in author.made(encoded)])


async def waits(service: Service, others: Sequence[Author], texts: Iterator[bytes], seconds: float) -> list[float]:
    """Return how long each push of the others took, in milliseconds."""
    took: list[float] = []
    count = int(seconds * PACE)
    requests = [
        clouds.push_of(author, [author.made([next(texts)])[0].envelope])
        for author in itertools.islice(itertools.cycle(others), count)
    ]
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(clouds.connected(service)) for _ in others]
        began = time.perf_counter() + 0.05

        async def send(at: int) -> None:
            for place in range(at, count, len(lines)):
                due = began + place / PACE
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                await lines[at].ask(requests[place])
                took.append((time.perf_counter() - due) * 1000)

        await asyncio.gather(*map(send, range(len(lines))))
    return took


async def measure(service: Service) -> None:
    """Print how long pushes wait, alone and beside the neighbour."""
    draw = random.Random(SEED)
    texts = itertools.cycle(sealing.event_ops(2_048, SEED))
    others = [(await clouds.signed_up(service, number))[0] for number in range(OTHERS)]
    [noisy] = await clouds.signed_up(service, OTHERS, searchable=True)
    bodies = [large_object(noisy, draw) for _ in range(OBJECTS)]
    report("alone", await waits(service, others, texts, SECONDS / 2))

    async def push_all() -> None:
        async with clouds.connected(service) as line:
            for body in bodies:
                answer = await line.ask(body)
                assert not clouds.refused(answer), answer  # noqa: S101 - a measurement of refusals says nothing

    pushing = asyncio.create_task(push_all())
    report(f"beside {OBJECTS} objects of {OPS:,} ops", await waits(service, others, texts, SECONDS))
    await pushing


def report(name: str, took: Sequence[float]) -> None:
    """Print the percentiles of some waits."""
    cuts = statistics.quantiles(took, n=100)
    load = os.getloadavg()[0]
    print(
        f"{name}: {len(took)} pushes, p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f} (goal {GOAL_MS}),"
        f" most {max(took):.0f}, load {load:.1f}"
    )


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sjb-")))
        address = stack.enter_context(clouds.postgres()) if parser.parse_args().postgres else ""
        service = stack.enter_context(clouds.running(folder, postgres=address or "", unlimited=True))
        asyncio.run(measure(service))


if __name__ == "__main__":
    main()
