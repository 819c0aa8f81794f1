"""The hard stop, proved against a provider that counts for itself: whatever comes, it never counts more than the cap."""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from cli_shell import Shell
from quick_disk import quick_folder
from scrubjay.store import Store
from scrubjay.writer.budget import Caps
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import Prompt
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import BudgetError, ScrubjayError
from writer_server import POLICY, Fault, ModelServer, model_server

pytestmark = pytest.mark.anyio

NOON = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@asynccontextmanager
async def written_by(
    server: ModelServer, caps: Caps, path: Path, *, at: Any = lambda: Millis(NOON)
) -> AsyncIterator[BudgetedWriter]:
    store = await Store.open(path, now=at, entropy=os.urandom)
    writer = BudgetedWriter(store, server.chosen(), caps, POLICY, monotonic=itertools.count(0, 10_000).__next__)
    try:
        yield writer
    finally:
        await writer.aclose()
        await store.close()


def prompt(text: str, most: int = 20) -> Prompt:
    return Prompt(system="", text=text, max_output_tokens=most)


def cost_at_most(one: Prompt) -> int:
    return one.bytes + POLICY.framing_tokens + one.max_output_tokens


FAULTS = (
    None,
    None,
    Fault(status=500),
    Fault(status=429),
    Fault(status=400),
    Fault(body=b"nonsense"),
    Fault(cut_off=True),
    Fault(usage={}),
    Fault(usage={"prompt_tokens": 0, "completion_tokens": True}),
)
TEXTS = st.text(alphabet="ab é漢🪶", min_size=1, max_size=300)
CALLS = st.lists(st.tuples(TEXTS, st.integers(1, 200), st.sampled_from(("observe", "consolidate"))), max_size=8)


def law(examples: int) -> Callable[[Any], Any]:
    """Return what draws histories of calls: rounds of calls at once, faults, answers and caps."""
    drawn = hypothesis.given(
        st.lists(CALLS, min_size=1, max_size=3),
        st.lists(st.sampled_from(FAULTS), max_size=20),
        st.integers(0, 400),
        st.builds(Caps, daily=st.integers(0, 6_000), monthly=st.integers(0, 6_000)),
    )
    return lambda test: hypothesis.settings(max_examples=examples)(drawn(test))


async def holds(rounds: list[Any], faults: list[Any], words: int, caps: Caps, server: ModelServer) -> None:
    """Check that the provider never counts more than the ledger, and the ledger no more than the cap."""
    server.faults.clear()
    server.faults.extend(faults)
    server.answer = lambda _: "ab " * words
    before = server.counted
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        await held(rounds, caps, server, before, Path(folder) / "memory.db")


async def held(rounds: list[Any], caps: Caps, server: ModelServer, before: int, path: Path) -> None:
    async with written_by(server, caps, path) as writer:

        async def ask(text: str, most: int, job: str) -> str:
            try:
                await writer.write(prompt(text, most), job=job)
            except ScrubjayError as error:
                return error.code
            return "done"

        for calls in rounds:
            outcomes = await asyncio.gather(*(ask(*call) for call in calls))
            spent = await writer.spent()

            assert server.counted - before <= spent.daily == spent.monthly <= min(caps.daily, caps.monthly)
            for (text, most, _), outcome in zip(calls, outcomes, strict=True):
                if outcome == "budget" and len(calls) == 1:
                    assert cost_at_most(prompt(text, most)) > await writer.left()


@pytest.fixture(scope="module")
def ruled(server: ModelServer) -> Callable[..., Any]:
    return partial(holds, server=server)


@law(10)
async def test_no_order_of_calls_and_faults_makes_a_provider_count_more_than_the_cap(
    ruled: Any, rounds: Any, faults: Any, words: Any, caps: Any
) -> None:
    await ruled(rounds, faults, words, caps)


@pytest.mark.slow
@law(100)
async def test_no_order_of_calls_in_many_histories_makes_a_provider_count_more_than_the_cap(
    ruled: Any, rounds: Any, faults: Any, words: Any, caps: Any
) -> None:
    await ruled(rounds, faults, words, caps)


async def test_the_stop_is_exact_to_the_token(server: ModelServer, tmp_path: Path) -> None:
    server.faults.clear()
    server.answer = lambda _: "It is written, and that in some words."
    one, before = prompt("The magpie nests in the walnut tree. " * 20, 100), server.counted
    async with written_by(server, Caps(daily=5_000, monthly=10**6), tmp_path / "memory.db") as writer:
        calls = 0
        while True:
            try:
                await writer.write(one, job="observe")
            except BudgetError:
                break
            calls += 1
        left = await writer.left()
        fits = prompt("x", left - cost_at_most(prompt("x", 1)) + 1)
        over = prompt("xx", fits.max_output_tokens)

        assert calls > 5_000 // cost_at_most(one)  # what was reserved and not used came back
        assert server.counted - before == (await writer.spent()).daily  # the ledger counts as the provider does
        assert left < cost_at_most(one)
        with pytest.raises(BudgetError):
            await writer.write(over, job="observe")
        assert server.counted - before == 5_000 - left
        await writer.write(fits, job="observe")
    assert server.counted - before <= 5_000


async def test_calls_at_once_do_not_pass_the_cap_together(server: ModelServer, tmp_path: Path) -> None:
    server.faults.clear()
    one, before, asked = prompt("The magpie nests in the walnut tree."), server.counted, len(server.asked)
    async with written_by(server, Caps(daily=3 * cost_at_most(one), monthly=10**6), tmp_path / "memory.db") as writer:
        found = await asyncio.gather(*(writer.write(one, job="observe") for _ in range(20)), return_exceptions=True)

    refused = [outcome for outcome in found if isinstance(outcome, BudgetError)]
    assert len(server.asked) - asked == 20 - len(refused) >= 3
    assert server.counted - before <= 3 * cost_at_most(one)


async def test_a_provider_that_reports_more_than_was_reserved_ends_the_day(server: ModelServer, tmp_path: Path) -> None:
    server.faults.clear()
    server.faults.append(Fault(usage={"prompt_tokens": 70_000, "completion_tokens": 40_000}))
    one, asked = prompt("The magpie nests in the walnut tree."), len(server.asked)
    async with written_by(server, Caps(daily=100_000, monthly=10**6), tmp_path / "memory.db") as writer:
        await writer.write(one, job="observe")
        spent = await writer.spent()
        with pytest.raises(BudgetError, match="0 of 100,000 are left for today"):
            await writer.write(one, job="observe")

    assert (spent.daily, len(server.asked) - asked) == (110_000, 1)


@pytest.mark.parametrize(("zone", "hours"), [("UTC0", 12), ("AHEAD-9", 3), ("BEHIND+9", 21)])
async def test_a_day_and_a_month_are_those_of_the_persons_clock(
    zone: str, hours: int, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    server.faults.clear()
    server.faults.extend([Fault(usage={})] * 3)  # counted as the most that they can be
    one = prompt("The magpie nests in the walnut tree.")
    now = NOON
    try:
        caps = Caps(daily=cost_at_most(one), monthly=2 * cost_at_most(one))
        async with written_by(server, caps, tmp_path / "memory.db", at=lambda: Millis(now)) as writer:
            await writer.write(one, job="observe")
            now = NOON + hours * 3_600_000 - 1
            with pytest.raises(BudgetError, match="today"):
                await writer.write(one, job="observe")
            now += 1
            await writer.write(one, job="observe")
            now += DAY_MS
            with pytest.raises(BudgetError, match="this month"):
                await writer.write(one, job="observe")
            now = int((datetime(2026, 12, 2, tzinfo=UTC) + timedelta(hours=hours)).timestamp() * 1000)
            await writer.write(one, job="observe")
            days = await writer.ledger.store.read(lambda q: q.fetch("select day from writer_call order by n"))
    finally:
        monkeypatch.undo()
        time.tzset()

    assert [day for (day,) in days] == ["2026-11-23", "2026-11-24", "2026-12-02"]


async def test_the_ledger_forgets_calls_after_its_time(server: ModelServer, tmp_path: Path) -> None:
    server.faults.clear()
    now = NOON
    async with written_by(
        server, Caps(daily=10**6, monthly=10**6), tmp_path / "m.db", at=lambda: Millis(now)
    ) as writer:
        await writer.write(prompt("The first."), job="observe")
        now += POLICY.ledger_days * DAY_MS
        await writer.write(prompt("The second."), job="observe")
        kept = await writer.ledger.store.read(lambda q: q.fetch("select count(*) from writer_call"))
        now += DAY_MS
        await writer.write(prompt("The third."), job="observe")
        left = await writer.ledger.store.read(lambda q: q.fetch("select count(*) from writer_call"))

    assert (kept, left) == ([(2,)], [(2,)])


def test_the_command_shows_caps_and_what_is_left(shell: Shell) -> None:
    answer = shell.json("cost", "--by", "month,model")
    _, shown, _ = shell.run("--text", "cost")
    code, _, told = shell.run("cost", "--by", "words")

    assert (answer["writer"], answer["left"], answer["rows"]) == ("none", 200_000, [])
    assert "none: no model is asked" in shown
    assert "0 of 200,000 tokens" in shown
    assert (code, "day, month, job, writer, model" in told) == (2, True)
