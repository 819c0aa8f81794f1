"""What the service weighs while a thousand devices wait for news of their accounts: by long-polls, by event streams."""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from scrubjay_bench import clouds, daemons
from scrubjay_bench.clouds import Line, Service
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_shared import wire
from scrubjay_shared.errors import UnavailableError

ACCOUNTS = 250
TOKENS = 4  # of an account's device, each of which waits: no more of one do
WAIT_S = 25  # what a client asks for, and the most that the service grants
WINDOW_SECONDS = 26.0  # each poll is asked again within it: the service is idle in between
REST_SECONDS = 3.0  # of a window while nobody waits
SETTLE_SECONDS = 3.0
GOAL_MB = 150
SPARE_FILES = 256


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; five minutes."""
    return measured(plan, accounts=ACCOUNTS, tokens=TOKENS, window_s=WINDOW_SECONDS)


def measured(plan: Plan, *, accounts: int, tokens: int, window_s: float) -> list[Figure]:
    """Measure so many tokens of so many accounts."""
    rounds = Rounds()
    count, rest_s = accounts * tokens, min(REST_SECONDS, window_s)
    _allow(count + SPARE_FILES)
    with daemons.scratch(plan.scratch) as folder:
        with clouds.running(folder) as service:
            everyone = asyncio.run(_signed_up(service, accounts, tokens))
            time.sleep(SETTLE_SECONDS)
            for _ in range(plan.rounds):
                asyncio.run(_window(rounds, "longpolls.signups", service, rest_s))
        with clouds.running(folder) as service:  # as it is weeks later: those who wait signed up long ago
            time.sleep(SETTLE_SECONDS)
            for _ in range(plan.rounds):
                asyncio.run(_window(rounds, "longpolls.rest", service, rest_s))
            waited = _waited(
                rounds, service, everyone, name="longpolls", wait=_poll, count=plan.rounds, window_s=window_s
            )
            asyncio.run(waited)
        with clouds.running(folder) as service:  # another: polls keep their places until they would have ended
            time.sleep(SETTLE_SECONDS)
            waited = _waited(
                rounds, service, everyone, name="streams", wait=_stream, count=plan.rounds, window_s=window_s
            )
            asyncio.run(waited)
    seconds = int(window_s)
    return [
        rounds.figure("longpolls.memory", f"resident memory of the service, {count:,} long-polls of {accounts} accounts"
                      " waiting", "MB", samples=1, goal=GOAL_MB),
        rounds.figure("longpolls.cpu", f"its processor time, each poll asked again after {WAIT_S} s", "% of a core",
                      samples=seconds),
        rounds.figure("longpolls.each", "resident memory that one waiting poll adds", "kB", samples=count),
        rounds.figure("streams.memory", f"resident memory, {count:,} event streams instead", "MB", samples=1,
                      goal=GOAL_MB),
        rounds.figure("streams.cpu", "its processor time: a comment on each every 15 s", "% of a core",
                      samples=seconds),
        rounds.figure("streams.each", "resident memory that one stream adds", "kB", samples=count),
        rounds.figure("longpolls.rest.memory", "resident memory before, nobody there yet", "MB", samples=1),
        rounds.figure("longpolls.rest.cpu", "its processor time before", "% of a core", samples=int(rest_s)),
        rounds.figure("longpolls.signups.memory", f"resident memory of one that {accounts} accounts have just signed"
                      " up at: Argon2id has been at work", "MB", samples=1),
        rounds.figure("longpolls.signups.cpu", "its processor time then", "% of a core", samples=int(rest_s)),
    ]  # fmt: skip


async def _signed_up(service: Service, accounts: int, tokens: int) -> list[str]:
    made = [(await clouds.signed_up(service, number, tokens=tokens))[0] for number in range(accounts)]
    return [token for author in made for token in author.tokens]


async def _waited(
    rounds: Rounds,
    service: Service,
    everyone: Sequence[str],
    *,
    name: str,
    wait: Callable[[Line, str], Awaitable[None]],
    count: int,
    window_s: float,
) -> None:
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(clouds.connected(service)) for _ in everyone]
        pairs = zip(lines, everyone, strict=True)
        waiting = [asyncio.ensure_future(wait(line, token)) for line, token in pairs]
        try:
            await asyncio.sleep(SETTLE_SECONDS)
            for place in range(count):
                await _window(rounds, name, service, window_s)
                added = rounds.values(f"{name}.memory")[-1] - rounds.values("longpolls.rest.memory")[place]
                rounds.add(f"{name}.each", added * 1000 / len(everyone))
            if any(one.done() for one in waiting):
                raise UnavailableError("the service ended the waiting of one", hint="see its log")
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def _poll(line: Line, token: str) -> None:
    """Wait for news again and again, as a device does."""
    cursor, wait = "", 0
    while True:
        path = f"/v1/pull?after={cursor}&wait={wait}"
        _, headers = await line.asked(clouds.request_of("GET", path, token=token))
        cursor, wait = headers[wire.CURSOR.lower()], WAIT_S


async def _stream(line: Line, token: str) -> None:
    """Follow the account's events."""
    await line.listen(clouds.request_of("GET", "/v1/events", token=token))


async def _window(rounds: Rounds, name: str, service: Service, seconds: float) -> None:
    before, began = service.cpu_seconds(), time.perf_counter()
    seen = []
    while time.perf_counter() - began < seconds:
        await asyncio.sleep(min(1.0, seconds))
        seen.append(service.rss_mb())
    rounds.add(f"{name}.memory", statistics.median(seen))
    rounds.add(f"{name}.cpu", 100 * (service.cpu_seconds() - before) / (time.perf_counter() - began))


def _allow(files: int) -> None:
    """Have this process, and those that it starts, open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard) if hard >= 0 else files, hard))
