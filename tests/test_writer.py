"""The Writer: what is sent, what is counted, and how each failure ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import load
from scrubjay.writer import configured
from scrubjay.writer.budget import Caps, asked
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import NoAnswerError, Prompt
from scrubjay_shared.errors import (
    BudgetError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    TooLargeError,
    TooManyError,
    UnavailableError,
)
from writer_server import FRAMING, KEY, POLICY, Fault, ModelServer, model_server, tokens_of, with_policy

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
PROMPT = Prompt(system="Say what is so.", text="The magpie nests in the walnut tree.", max_output_tokens=50)
CAPS = Caps(daily=100_000, monthly=1_000_000)
MOST = PROMPT.bytes + POLICY.framing_tokens + PROMPT.max_output_tokens


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


async def rows(service: Application) -> list[tuple[Any, ...]]:
    return await service.store.read(
        lambda q: q.fetch("select job, writer, model, input, output, estimated, outcome from writer_call order by n")
    )


def options(server: ModelServer, api: str = "openai", caps: Caps = CAPS, **numbers: Any) -> dict[str, Any]:
    policy = with_policy(**numbers)
    return {"writer": server.chosen(api, policy=policy), "caps": caps, "policy": MemoryPolicy(writer=policy)}


async def test_no_writer_is_set_unless_the_person_sets_one(service: Application) -> None:
    assert not service.writer.is_on
    with pytest.raises(UnavailableError, match="no Writer is set"):
        await service.writer.write(PROMPT, job="observe")
    assert await rows(service) == []


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_a_prompt_comes_back_as_text_with_the_tokens_that_the_server_counted(
    api: str, server: ModelServer, opened: Opener
) -> None:
    async with opened(**options(server, api)) as service:
        written = await service.writer.write(PROMPT, job="observe")
        ledger = await rows(service)

    [asked] = server.asked
    read = tokens_of(PROMPT.system) + tokens_of(PROMPT.text) + FRAMING
    assert (asked.system, asked.text, asked.most) == (PROMPT.system, PROMPT.text, 50)
    assert asked.path == ("/v1/chat/completions" if api == "openai" else "/v1/messages")
    assert KEY in (
        asked.headers.get("Authorization") or asked.headers["X-Api-Key"]
        if api == "openai"
        else asked.headers["x-api-key"]
    )
    assert (written.text, written.model, written.cut_short) == ("It is written.", "small-1", False)
    assert (written.input_tokens, written.output_tokens, written.estimated) == (read, tokens_of(written.text), False)
    assert ledger == [("observe", api, "small-1", read, tokens_of(written.text), 0, "done")]
    assert server.counted == written.usage.total


@pytest.mark.parametrize("api", ["openai", "anthropic", "ollama"])
@pytest.mark.parametrize(("said", "match"), [("word " * 100, "cut off"), ("", "answered nothing"), (" \n", "nothing")])
async def test_an_answer_that_is_cut_or_empty_is_a_failure_that_counts_what_it_cost(
    api: str, said: str, match: str, server: ModelServer, opened: Opener
) -> None:
    server.is_ollama = api == "ollama"
    server.answer = lambda _: said
    async with opened(**options(server, "anthropic" if api == "anthropic" else "openai")) as service:
        before = server.counted
        with pytest.raises(NoAnswerError, match=match) as caught:
            await service.writer.write(PROMPT, job="observe")
        [row] = await rows(service)

    assert caught.value.hint
    assert (row[3] + row[4] >= server.counted - before, row[-1]) == (True, "failed")
    assert len(server.asked) == 1


LONG = Prompt(system="Say what is so.", text="The magpie nests in the walnut tree. " * 1_000, max_output_tokens=50)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_a_prompt_of_which_a_server_read_a_part_is_a_failure(
    api: str, server: ModelServer, opened: Opener
) -> None:
    async with opened(**options(server, api)) as service:
        assert (await service.writer.write(LONG, job="observe")).text
        server.context = 4_096
        with pytest.raises(NoAnswerError, match=r"read 4,\d\d\d tokens of a prompt that has more"):
            await service.writer.write(LONG, job="observe")


async def test_an_answer_is_asked_for_without_chance_and_without_thinking(server: ModelServer, opened: Opener) -> None:
    async with opened(**options(server)) as service:
        await service.writer.write(PROMPT, job="observe")
    async with opened(**options(server, "anthropic")) as service:
        await service.writer.write(PROMPT, job="observe")

    openai, anthropic = (asked.body for asked in server.asked)
    assert (openai["temperature"], openai["reasoning_effort"]) == (0, "none")
    assert openai["chat_template_kwargs"] == {"enable_thinking": False}
    assert (anthropic["temperature"], anthropic["thinking"]) == (0, {"type": "disabled"})


async def test_a_parameter_that_a_server_refuses_is_left_out_from_then_on(server: ModelServer, opened: Opener) -> None:
    server.knows = frozenset({"model", "messages", "max_tokens", "stream", "temperature"})
    async with opened(**options(server)) as service:
        for _ in range(2):
            assert (await service.writer.write(PROMPT, job="observe")).text
        ledger = await rows(service)

    assert [row[-1] for row in ledger] == ["done", "done"]
    refused = len(server.asked) - 2
    assert refused == 3  # chat_template_kwargs, and both values of reasoning_effort
    assert server.asked[-1].body.keys() == server.knows


async def test_what_a_server_refuses_for_another_reason_is_wished_for_again(
    server: ModelServer, opened: Opener
) -> None:
    server.faults.extend([Fault(status=400, body=b"{}")] * 3)
    async with opened(**options(server)) as service:
        with pytest.raises(InvalidError):
            await service.writer.write(PROMPT, job="observe")
        await service.writer.write(PROMPT, job="observe")

    assert server.asked[2].body.keys().isdisjoint({"temperature", "reasoning_effort", "chat_template_kwargs"})
    assert server.asked[-1].body["temperature"] == 0


async def test_ollama_is_asked_in_its_own_way_for_a_context_that_holds_the_prompt(
    server: ModelServer, opened: Opener
) -> None:
    server.is_ollama = True
    async with opened(**options(server)) as service:
        written = await service.writer.write(PROMPT, job="observe")
        await service.writer.write(LONG, job="observe")
        ledger = await rows(service)

    short, long = server.asked
    assert (short.path, short.system, short.text, short.most) == ("/api/chat", PROMPT.system, PROMPT.text, 50)
    assert (short.body["think"], short.body["truncate"], short.body["options"]["temperature"]) == (False, False, 0)
    assert short.body["options"]["num_ctx"] == POLICY.context_tokens
    assert long.body["options"]["num_ctx"] == 2 * POLICY.context_tokens >= LONG.bytes // 2
    assert written.usage.total == ledger[0][3] + ledger[0][4]


NAMES = {"openai": ("prompt_tokens", "completion_tokens"), "anthropic": ("input_tokens", "output_tokens")}


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_usage_that_is_missing_or_makes_no_sense_is_counted_as_the_most_it_can_be(
    api: str, server: ModelServer, opened: Opener
) -> None:
    wrong = [None, 0, -1, True, 3.5, "12", 10**15]
    server.faults.extend(Fault(usage=dict.fromkeys(NAMES[api], value)) for value in wrong)
    server.faults.append(Fault(usage={}))
    async with opened(**options(server, api)) as service:
        written = [await service.writer.write(PROMPT, job="observe") for _ in range(8)]
        ledger = await rows(service)

    assert [(one.estimated, one.usage.total) for one in written] == [(True, MOST)] * 8
    assert [row[3:] for row in ledger] == [(MOST - 50, 50, 1, "done")] * 8


REFUSED = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    413: TooLargeError,
    302: InvalidError,
    409: InvalidError,
}


async def test_what_a_server_refuses_is_not_tried_again_and_costs_nothing(server: ModelServer, opened: Opener) -> None:
    async with opened(**options(server, failures=1_000)) as service:
        for status, kind in REFUSED.items():
            server.faults.append(Fault(status=status, headers={"Location": "/elsewhere"}))
            with pytest.raises(ScrubjayError) as caught:
                await service.writer.write(PROMPT, job="observe")

            assert type(caught.value) is kind
            assert caught.value.hint
            assert "magpie" not in caught.value.message + caught.value.hint
            assert (await rows(service))[-1][3:] == (0, 0, 0, caught.value.code)

    assert len(server.asked) == len(REFUSED)


async def test_a_busy_server_is_asked_again_after_the_time_that_it_says(server: ModelServer, opened: Opener) -> None:
    server.faults.extend([Fault(status=429, headers={"Retry-After": "7"}), None])
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with opened() as service:
        writer = BudgetedWriter(service.store, server.chosen(), CAPS, POLICY, sleep=sleep)
        written = await writer.write(PROMPT, job="observe")
        await writer.aclose()
        outcomes = [row[-1] for row in await rows(service)]

    assert waits == [7.0]
    assert outcomes == ["too_many", "done"]
    assert server.counted == written.usage.total


async def test_a_server_that_wants_a_long_wait_is_left_to_the_next_run(server: ModelServer, opened: Opener) -> None:
    server.faults.append(Fault(status=429, headers={"Retry-After": "3600"}))
    async with opened(**options(server)) as service:
        with pytest.raises(TooManyError) as caught:
            await service.writer.write(PROMPT, job="observe")

    assert caught.value.retry_after == 3600
    assert len(server.asked) == 1


async def test_each_try_counts_what_it_may_have_cost_and_one_that_the_server_failed_at_nothing(
    server: ModelServer, opened: Opener
) -> None:
    server.faults.extend([Fault(status=503), Fault(cut_off=True), Fault(status=529)])
    async with opened(**options(server)) as service:
        with pytest.raises(UnavailableError):
            await service.writer.write(PROMPT, job="observe")
        ledger = await rows(service)
        spent = await service.writer.spent()

    assert len(server.asked) == POLICY.attempts == len(ledger)
    failed, lost = (0, 0, 0, "failed"), (MOST - 50, 50, 1, "failed")
    assert [row[3:] for row in ledger] == [failed, lost, failed]
    assert server.counted <= spent.daily == MOST


MALFORMED = {
    "not JSON": Fault(body=b"<html>"),
    "deep": Fault(body=b"[" * 50_000),
    "not UTF-8": Fault(body=b"\xff\xfe"),
    "another type": Fault(headers={"Content-Type": "text/html; charset=utf-8"}),
    "packed": Fault(headers={"Content-Encoding": "gzip"}),
    "huge": Fault(body=b'{"a": "' + b"x" * 200_000 + b'"}'),
    "a list": Fault(body=b"[]"),
    "no choices": Fault(body=b'{"choices": [], "content": 4}'),
    "no text": Fault(body=b'{"choices": [{"message": {"content": 4}}], "content": [{"type": "text", "text": 4}]}'),
}


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_an_answer_that_cannot_be_read_is_counted_and_not_tried_again(
    api: str, server: ModelServer, opened: Opener
) -> None:
    server.faults.extend(MALFORMED.values())
    async with opened(**options(server, api, failures=1_000)) as service:
        for _ in MALFORMED:
            with pytest.raises(UnavailableError) as caught:
                await service.writer.write(PROMPT, job="observe")
            assert caught.value.hint
        ledger = await rows(service)

    assert len(server.asked) == len(MALFORMED)
    assert {row[5:] for row in ledger} == {(1, "failed")}
    assert server.counted <= sum(row[3] + row[4] for row in ledger) <= MOST * len(MALFORMED)


async def test_a_server_that_does_not_answer_in_time_is_counted(server: ModelServer, opened: Opener) -> None:
    server.faults.append(Fault(silent=True))
    async with opened(**options(server, answer_seconds=0.2)) as service:
        with pytest.raises(UnavailableError, match=r"within 0\.2 seconds"):
            await service.writer.write(PROMPT, job="observe")
        [row] = await rows(service)

    assert row[-1] == "failed"
    assert row[3] + row[4] == MOST


async def test_a_server_that_is_not_there_costs_nothing_and_is_left_alone_after_some_failures(opened: Opener) -> None:
    with model_server() as gone:
        chosen = options(gone)
    async with opened(**chosen) as service:
        for _ in range(POLICY.failures):
            with pytest.raises(UnavailableError, match="cannot be reached"):
                await service.writer.write(PROMPT, job="observe")
        asked = await rows(service)
        with pytest.raises(UnavailableError, match="left alone") as caught:
            await service.writer.write(PROMPT, job="observe")

        assert await rows(service) == asked
        assert {row[3:] for row in asked} == {(0, 0, 0, "not_reached")}
        assert len(asked) == POLICY.failures * POLICY.attempts
        assert 0 < caught.value.retry_after <= POLICY.rest_seconds


async def test_a_writer_that_works_again_is_forgiven(server: ModelServer, opened: Opener) -> None:
    time = 0.0
    async with opened() as service:
        writer = BudgetedWriter(service.store, server.chosen(), CAPS, POLICY, monotonic=lambda: time)
        server.faults.extend([Fault(body=b"")] * 2)
        for _ in range(2):
            with pytest.raises(UnavailableError):
                await writer.write(PROMPT, job="observe")
        time = POLICY.rest_seconds + 1
        await writer.write(PROMPT, job="observe")
        server.faults.append(Fault(body=b""))
        with pytest.raises(UnavailableError):
            await writer.write(PROMPT, job="observe")

        written = await writer.write(PROMPT, job="observe")
        await writer.aclose()

    assert written.text


async def test_a_call_that_is_cut_off_stays_counted(server: ModelServer, opened: Opener) -> None:
    server.faults.append(Fault(silent=True))
    async with opened(**options(server)) as service:
        call = asyncio.ensure_future(service.writer.write(PROMPT, job="observe"))
        await asyncio.to_thread(server.reading.wait, 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    async with opened() as again:
        [row] = await rows(again)
        spent = await again.writer.spent()

    assert row[-1] == "open"
    assert server.counted <= spent.daily == spent.monthly == MOST


async def test_neither_the_key_nor_what_is_said_is_logged_or_shown(
    server: ModelServer, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer = lambda _: "A secret answer."
    shown: list[str] = []
    async with opened(**options(server)) as service:
        shown.append(repr(service.writer.chosen))
        for fault in (None, Fault(status=400), Fault(status=500), Fault(cut_off=True), Fault(body=b"A secret answer")):
            server.faults.extend([fault] * POLICY.attempts)
            service.writer._failures = 0
            service.writer._rests_until = 0.0
            try:
                await service.writer.write(PROMPT, job="observe")
            except ScrubjayError as error:
                shown += [repr(error), error.message, error.hint, repr(error.__cause__)]
            server.faults.clear()
    ours = [
        record.getMessage() for record in caplog.records if record.name.startswith(("scrubjay", "httpx2", "httpcore2"))
    ]

    said = "\n".join([*shown, *ours])
    assert "asked the writer job=observe" in said
    for word in (KEY, "magpie", "Say what is so", "secret answer"):
        assert word not in said


async def test_a_key_that_is_not_there_is_said_before_anything_is_sent(server: ModelServer, opened: Opener) -> None:
    settings = load(
        {"writer": "openai", "writer_url": server.url, "writer_model": "small", "writer_key_env": "ABSENT"},
        {"SCRUBJAY_HOME": "/nowhere"},
    )
    async with opened(writer=configured.chosen(settings, {}, POLICY)) as service:
        with pytest.raises(DeniedError, match="ABSENT is not set"):
            await service.writer.write(PROMPT, job="observe")

    assert server.asked == []


async def test_a_call_that_could_pass_a_cap_is_not_made(server: ModelServer, opened: Opener) -> None:
    for caps in (Caps(daily=MOST - 1, monthly=MOST), Caps(daily=MOST, monthly=MOST - 1)):
        async with opened(**options(server, caps=caps)) as service:
            with pytest.raises(BudgetError) as caught:
                await service.writer.write(PROMPT, job="observe")
            assert await rows(service) == []
        assert "scrubjay cost" in caught.value.hint
    async with opened(**options(server, caps=Caps(daily=MOST, monthly=MOST))) as service:
        assert (await service.writer.write(PROMPT, job="observe")).text

    assert len(server.asked) == 1


async def test_an_estimate_is_the_most_that_prompts_can_cost(server: ModelServer, opened: Opener) -> None:
    async with opened(**options(server, caps=Caps(daily=2 * MOST, monthly=10 * MOST))) as service:
        two = await service.writer.estimate(asked([PROMPT, PROMPT]))
        three = await service.writer.estimate(asked([PROMPT] * 3))

    assert (two.calls, two.input_tokens + two.output_tokens, two.left, two.fits) == (2, 2 * MOST, 2 * MOST, True)
    assert not three.fits
    assert server.asked == []


@pytest.mark.parametrize(
    "given",
    [
        {"writer": "openai", "writer_model": "small"},
        {"writer": "anthropic", "writer_url": "https://api.example.com"},
        {"writer_url": "http://example.com/v1"},
        {"writer_url": "http://192.168.1.4:11434/v1"},
        {"writer_url": "http://127.0.0.1.example.com"},
        {"writer_url": "https://person:word@example.com"},
        {"writer_url": "https://example.com?key=1"},
        {"writer": "parrot"},
        {"writer_model": "\n"},
        {"writer_key_env": "sk-abc def"},
        {"writer_daily_tokens": -1},
    ],
)
def test_a_writer_that_is_not_safe_or_not_whole_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidError) as caught:
        load(given, {"SCRUBJAY_HOME": "/nowhere"})

    assert caught.value.hint
    assert "word@" not in caught.value.message


@pytest.mark.parametrize("url", ["http://localhost:11434/v1", "http://[::1]:8080/v1", "https://models.example.com/v1"])
def test_a_server_here_or_behind_tls_may_be_asked(url: str) -> None:
    found = load({"writer_url": url}, {"SCRUBJAY_HOME": "/nowhere"})

    assert found.writer_url == url


# The ledger, as people see it.


async def test_cost_adds_calls_up_by_day_job_and_model(server: ModelServer, opened: Opener) -> None:
    async with opened(**options(server)) as service:
        for job in ("observe", "observe", "consolidate"):
            await service.writer.write(PROMPT, job=job)
        server.faults.append(Fault(body=b""))
        with pytest.raises(UnavailableError):
            await service.writer.write(PROMPT, job="observe")
        spent = await service.writer.spent()
        answer = await service.call(PERSON, "cost", api.CostRequest())
        by_job = await service.call(PERSON, "cost", api.CostRequest(by="job"))
        whole = await service.call(PERSON, "cost", api.CostRequest(by=""))
        before = await service.call(PERSON, "cost", api.CostRequest(until="2020-01-01", since="2020-01-01"))

    found = {(row.job, row.model): (row.calls, row.failed, row.estimated) for row in answer.rows}
    assert found == {
        ("observe", "small-1"): (2, 0, 0),
        ("consolidate", "small-1"): (1, 0, 0),
        ("observe", "small"): (1, 1, 1),
    }
    assert {row.day for row in answer.rows} == {spent.day}
    assert [(row.job, row.calls) for row in by_job.rows] == [("observe", 3), ("consolidate", 1)]
    assert whole.rows == (whole.total,)
    assert whole.total.input_tokens + whole.total.output_tokens == answer.used_today
    assert server.counted <= answer.used_today
    assert answer.left == CAPS.daily - answer.used_today
    assert (before.rows, before.total) == ((), None)


async def test_cost_of_what_there_is_not_is_refused(service: Application) -> None:
    for request in (api.CostRequest(by="words"), api.CostRequest(since="yesterday"), api.CostRequest(limit=0)):
        with pytest.raises(InvalidError) as caught:
            await service.call(PERSON, "cost", request)
        assert caught.value.hint


async def test_status_says_where_prompts_go_and_when_a_cap_is_used_up(server: ModelServer, opened: Opener) -> None:
    async with opened(**options(server)) as service:
        assert (await service.call(PERSON, "status", api.Nothing())).warnings == ()
    far = replace(server.chosen(), destination="models.example.com", leaves=True)
    async with opened(writer=far, caps=Caps(daily=100_000, monthly=10**6)) as service:
        [goes] = (await service.call(PERSON, "status", api.Nothing())).warnings
        long = replace(PROMPT, text="x" * 24_000, max_output_tokens=20_000)
        server.faults.append(Fault(usage={}))
        await service.writer.write(long, job="observe")
        warnings = (await service.call(PERSON, "status", api.Nothing())).warnings
        assert (await service.writer.write(long, job="observe")).text, "it warns before a call is refused"

    assert "send what was said to your agents to models.example.com" in goes
    assert "of the 100,000 tokens of this day" in warnings[1]
    assert len(warnings) == 2


@pytest.mark.parametrize("how", ["refuses", "is away", "no key"])
async def test_a_writer_that_fails_is_told_of_with_since_when_and_why_until_it_answers(
    how: str, server: ModelServer, opened: Opener
) -> None:
    with model_server() as gone:
        away = gone.chosen()
    keyless = replace(server.chosen(), writer=configured.Keyless(variable="ABSENT"))
    chosen = {"refuses": server.chosen(), "is away": away, "no key": keyless}[how]
    if how == "refuses":
        server.faults.extend([Fault(status=403)])
    async with opened(writer=chosen, caps=CAPS, policy=MemoryPolicy(writer=POLICY)) as service:
        with pytest.raises(ScrubjayError) as caught:
            await service.writer.write(PROMPT, job="observe")
        [told] = (await service.call(PERSON, "status", api.Nothing())).warnings
        now = datetime.now().astimezone().strftime("%Y-%m-%d")
        assert f"since {now}" in told
        assert caught.value.message in told
    async with opened(writer=server.chosen(), caps=CAPS, policy=MemoryPolicy(writer=POLICY)) as service:
        [after] = (await service.call(PERSON, "status", api.Nothing())).warnings  # the ledger has the kind of error
        await service.writer.write(PROMPT, job="observe")
        assert (await service.call(PERSON, "status", api.Nothing())).warnings == ()
    assert "the writer fails" in after
