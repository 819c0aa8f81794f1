"""What a job would cost is told before it runs, and it is what the run then asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import NO_MODEL
from scrubjay.writer.budget import Caps
from scrubjay.writer.ledger import DAY_MS
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.records import EventDraft, MemoryDraft, Trust
from service_calls import NOTHING, NOW, Opener, ingest, said
from writer_server import KEY, POLICY, Fault, ModelServer, model_server

pytestmark = pytest.mark.anyio

PROJECT = "github.com/example/harbour"
SENTENCE = "The harbour crane number {} must listen on port 94{:02}, because the customer's firewall opens only that. "


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        running.answer = lambda _: "NONE"
        yield running


def turns(session: str, count: int) -> list[EventDraft]:
    return [
        said(SENTENCE.format(at, at) * 30, ts=Millis(NOW + at * 1000), project=PROJECT, session_id=session)
        for at in range(count)
    ]


async def cost(service: Application, name: str = "observe") -> api.JobCost | None:
    jobs = (await service.call(PERSON, "jobs", NOTHING)).jobs
    return next(job.cost for job in jobs if job.name == name)


async def test_the_estimate_of_an_observer_is_what_its_run_then_asks(server: ModelServer, opened: Opener) -> None:
    caps = Caps(daily=900_000, monthly=1_000_000)
    async with opened(writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY)) as service:
        await ingest(service, *turns("long", 12), *turns("short", 1))
        before = await cost(service)
        assert server.asked == []  # an estimate costs nothing
        await service.call(PERSON, "run_job", api.JobRequest(name="observe"))
        rows = await service.store.read(
            lambda q: q.fetch("select count(*), sum(input + output) from writer_call where job = 'observe'")
        )
        after = await cost(service)
        await ingest(service, *turns("next", 1))
        then = await cost(service)

    assert before is not None
    assert (before.calls, before.whole, before.fits, before.about) == (len(server.asked), True, True, None)
    assert (before.calls, before.left_today, before.left_this_month) == (4, 900_000, 1_000_000)
    [(calls, tokens)] = rows
    assert calls == before.calls
    assert tokens <= before.input_tokens + before.output_tokens
    assert after is not None
    assert (after.calls, after.left_today) == (0, 900_000 - tokens)
    assert then is not None
    assert (then.calls, then.about) == (1, round(tokens / calls))


async def test_a_run_that_is_asked_for_reads_what_its_estimate_counted_also_what_was_said_just_now(
    server: ModelServer, opened: Opener
) -> None:
    caps = Caps(daily=900_000, monthly=1_000_000)
    now = Millis(NOW + 1_000)
    async with opened(
        writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY), now=lambda: now
    ) as service:
        await ingest(service, *turns("fresh", 1))
        assert not await service.observe.due()  # by itself it waits until the session is quiet
        before = await cost(service)
        await service.call(PERSON, "run_job", api.JobRequest(name="observe"))

    assert before is not None
    assert (before.calls, len(server.asked)) == (1, 1)


async def test_a_job_that_has_no_part_does_not_say_that_it_went_well(opened: Opener) -> None:
    async with opened() as service:
        with pytest.raises(ConflictError, match="observe has no part now"):
            await service.call(PERSON, "run_job", api.JobRequest(name="observe"))
        with pytest.raises(NotFoundError, match="no job"):
            await service.call(PERSON, "run_job", api.JobRequest(name="nothing"))


async def test_an_estimate_says_what_it_did_not_look_at_and_what_does_not_fit(
    server: ModelServer, opened: Opener
) -> None:
    policy = MemoryPolicy(writer=POLICY, observer=replace(DEFAULT.observer, estimated_calls=2))
    async with opened(writer=server.chosen(), caps=Caps(daily=9_000, monthly=9_000), policy=policy) as service:
        await ingest(service, *turns("one", 1))
        small = await cost(service)
        for name in ("two", "three"):
            await ingest(service, *turns(name, 1))
        found = await cost(service)

    assert small is not None
    assert (small.calls, small.fits, small.whole) == (1, True, True)
    assert found is not None
    assert (found.calls, found.fits, found.whole) == (2, False, False)


async def test_the_estimate_of_a_consolidation_is_no_less_than_what_its_run_asks(
    server: ModelServer, opened: Opener
) -> None:
    now = [NOW]
    caps = Caps(daily=900_000, monthly=900_000)
    async with opened(
        writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY), now=lambda: now[0]
    ) as service:
        for at in range(6):
            text = f"The host h{at} is the relay of line {at} and it answers there to whoever asks it."
            await service.call(PERSON, "add", MemoryDraft(content=text, trust=Trust.AGENT))
        young = await cost(service, "consolidate")
        now[0] = Millis(NOW + 120 * DAY_MS)
        before = await cost(service, "consolidate")
        await service.call(PERSON, "consolidate", api.ConsolidateRequest())
        rows = await service.store.read(
            lambda q: q.fetch("select count(*), sum(input + output) from writer_call where job = 'consolidate'")
        )

    assert young is not None
    assert young.calls == 0
    assert before is not None
    [(calls, tokens)] = rows
    assert calls == len(server.asked) == 1
    assert calls <= before.calls <= 2
    assert before.input_tokens + before.output_tokens >= tokens


async def _received(path: Path, drafts: list[EventDraft]) -> None:
    """Have events in a store that nobody has read yet, as a daemon leaves them that was stopped."""
    service = await Application.open(path, models_dir=path.parent, model=NO_MODEL)
    await ingest(service, *drafts)
    await service.close()


async def test_without_a_writer_no_job_costs_anything(opened: Opener) -> None:
    async with opened() as service:
        jobs = (await service.call(PERSON, "jobs", NOTHING)).jobs

    assert [job.cost for job in jobs] == [None] * len(jobs)


@pytest.fixture
def named(shell: Shell, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the shell's environment name the server as the Writer."""
    del shell
    for name, value in {
        "SCRUBJAY_WRITER": "openai",
        "SCRUBJAY_WRITER_URL": f"{server.url}/v1",
        "SCRUBJAY_WRITER_MODEL": "small",
        "SCRUBJAY_WRITER_KEY_ENV": "WRITER_KEY",
        "WRITER_KEY": KEY,
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("named")
def test_the_command_says_that_the_writer_failed_and_how(shell: Shell, server: ModelServer) -> None:
    asyncio.run(_received(shell.home / "data" / "memory.db", turns("s", 1)))
    server.faults.extend([Fault(status=401)] * 2)

    code, shown, remark = shell.run("--text", "jobs", "run", "observe")
    ran = shell.run("jobs", "run", "observe")

    assert (code, "denied" in shown) == (1, True)
    assert "observe failed: " in remark
    assert "refused the key (401); writer_key_env names the variable" in " ".join(remark.split())
    assert ran[0] == 1
    assert '"problem"' in ran[1]


@pytest.mark.usefixtures("named")
def test_the_command_tells_the_cost_before_it_runs_and_a_dry_run_only_tells_it(
    shell: Shell, server: ModelServer
) -> None:
    asyncio.run(_received(shell.home / "data" / "memory.db", turns("s", 1)))

    told = shell.json("jobs", "run", "observe", "--dry-run")["jobs"]
    _, shown, _ = shell.run("--text", "jobs", "run", "observe", "--dry-run")
    _, free, _ = shell.run("--text", "jobs", "run", "backup", "--dry-run")
    unknown = shell.error("jobs", "run", "nothing", "--dry-run")
    _, listed, _ = shell.run("--text", "jobs", "list")
    before = len(server.asked)
    code, _, remark = shell.run("jobs", "run", "observe")

    assert [(job["name"], job["cost"]["calls"]) for job in told] == [("observe", 1)]
    assert "observe would make 1 call to the Writer, at most " in shown
    assert "200,000 are left today, 2,000,000 this month" in shown
    assert " ".join(shown.split()) in " ".join(listed.split()), "wherever a line breaks"
    assert free == "backup asks no Writer\n"
    assert (unknown[0], unknown[1]["code"]) == (3, "not_found")
    assert before == 0
    assert (code, "observe would make 1 call" in remark, len(server.asked)) == (0, True, 1)
