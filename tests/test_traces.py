"""Traces: the way of a memory and of a request can be followed by ids and times, and no word is kept of what they say."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cli_shell import Shell
from scrubjay import api, telemetry
from scrubjay.api.caller import PERSON
from scrubjay.policy import TracePolicy
from scrubjay.service.application import Application
from scrubjay.tracing import REQUEST, Span, Tracer
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft

pytestmark = pytest.mark.anyio


async def traced(service: Application, ref: str) -> list[api.TraceStep]:
    return list((await service.call(PERSON, "trace", api.TraceRequest(id=ref))).steps)


async def test_a_memory_can_be_followed_from_what_was_said_to_the_answer_that_quoted_it(service: Application) -> None:
    said = EventDraft(
        agent="codex", session_id="s1", type=EventType.USER_MESSAGE, text="We decided to use PostgreSQL for the ledger."
    )
    taken = await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))
    assert (await service.scheduler.run("learn")).error is None
    [hit] = (await service.call(PERSON, "recall", api.RecallRequest(query="ledger database", kinds=("memory",)))).hits

    steps = await traced(service, hit.id)

    assert [step.stage for step in steps if step.ms is not None] == ["distill", "recall"]
    assert {"commit", "distill"} <= {step.stage for step in steps if step.ms is None}  # what the log of ops says
    assert {taken.ids[0], hit.id} <= {one for step in steps for one in step.ids}
    [recalled] = [step for step in steps if step.stage == "recall"]
    assert [step.name for step in await traced(service, recalled.request)] == ["recall"]
    [wrote] = [step for step in steps if step.stage == "distill" and step.ms is not None]
    run = await traced(service, wrote.request)
    assert {(step.stage, step.name) for step in run} >= {("job", "learn"), ("distill", "write")}
    assert wrote.cause in {step.cause for step in await traced(service, str(wrote.cause))}
    assert "commit" in {step.stage for step in await traced(service, taken.ids[0])}


async def test_a_run_an_event_and_a_session_are_followed_by_the_short_ids_that_commands_print(
    service: Application,
) -> None:
    said = EventDraft(agent="codex", session_id="s1", type=EventType.USER_MESSAGE, text="We decided to use PostgreSQL.")
    [event] = (await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))).ids
    assert event is not None
    assert (await service.scheduler.run("learn")).error is None
    [entry] = (await service.call(PERSON, "list", api.ListRequest())).entries
    memory = entry.memory.id
    [run] = (await service.call(PERSON, "history", api.HistoryRequest(kind="distill"))).causes
    await service.call(PERSON, "update", api.UpdateRequest(ref=memory, salience=0.9))

    ran = await service.call(PERSON, "trace", api.TraceRequest(id=run.id[: len("distill:") + 16]))
    assert ran.id == run.id
    assert {(step.stage, step.name) for step in ran.steps} == {("distill", "write"), ("distill", "source")}
    assert {step.ms is None for step in ran.steps} == {True, False}  # what the log says, and the span

    for ref in (event[:16], "s1"):
        found = await service.call(PERSON, "trace", api.TraceRequest(id=ref))
        assert found.id == (event if ref != "s1" else "s1")
        assert {"commit", "distill", "update"} <= {step.stage for step in found.steps}
        assert {event, memory} <= {one for step in found.steps for one in step.ids}


async def test_no_word_of_what_is_said_stands_in_a_trace(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="the marigold stands by the gate", name="flower"))
    await service.call(PERSON, "recall", api.RecallRequest(query="where is the marigold"))
    with pytest.raises(NotFoundError):
        await service.call(PERSON, "get", api.RefRequest(ref="marigold"))
    await asyncio.to_thread(service.tracer.flush)

    path = service.store.path.with_name("trace.jsonl")
    lines = path.read_text(encoding="utf-8")
    assert [json.loads(line)["stage"] for line in lines.splitlines()] == ["add", "recall"]
    for word in ("marigold", "gate", "where", "flower"):
        assert word not in lines
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_was_forgotten_is_followed_to_its_end(service: Application) -> None:
    added = (await service.call(PERSON, "add", MemoryDraft(content="the code is blue"))).memory
    await service.call(PERSON, "forget", api.ForgetRequest(ref=added.id))

    stages = [step.stage for step in await traced(service, added.id)]

    assert "add" in stages
    assert stages[-1] == "forget"


async def test_of_what_nobody_knows_nothing_is_told(service: Application) -> None:
    with pytest.raises(NotFoundError, match="nothing is known of"):
        await traced(service, "no-such-thing")
    with pytest.raises(InvalidError, match="limit"):
        await service.call(PERSON, "trace", api.TraceRequest(id="x", limit=0))


def span(n: int, **given: object) -> Span:
    return Span(at=Millis(n), ms=1.0, stage="recall", request=f"r{n}", **given)  # type: ignore[arg-type]


def test_the_newest_spans_are_kept_and_the_files_stay_small(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "trace.jsonl", TracePolicy(file_bytes=4_000))
    for n in range(400):
        tracer.note(span(n, ids=("m1",)))
        if n % 20 == 0:
            tracer.flush()

    found = tracer.find("m1", 1_000)
    tracer.close()

    assert found[-1].request == "r399"
    assert [one.at for one in found] == list(range(400 - len(found), 400))
    assert 20 < len(found) < 400
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 9_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.jsonl", "trace.jsonl.1"]


def test_a_line_that_a_crash_cut_off_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    tracer = Tracer(path, TracePolicy())
    tracer.note(span(1, ids=("m1",)))
    tracer.close()
    path.write_bytes(path.read_bytes() + b'{"at":2,"ms":1.0,"ids":["m1"')

    assert [one.at for one in Tracer(path, TracePolicy()).find("m1", 10)] == [1]


def test_a_disk_that_takes_no_spans_keeps_nobody_waiting(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "gone" / "trace.jsonl", TracePolicy(queued=4))
    for n in range(100):
        tracer.note(span(n))
    tracer.close()

    assert tracer.lost == 100


async def test_a_stage_that_fails_is_noted_with_its_error_and_the_request_it_was_for(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "trace.jsonl", TracePolicy())
    REQUEST.set("r-1")

    with pytest.raises(InvalidError), tracer.span("recall", "recall"):
        raise InvalidError("no")

    [found] = tracer.find("r-1", 10)
    assert (found.stage, found.error, found.request) == ("recall", "invalid", "r-1")
    tracer.close()


def test_opentelemetry_is_told_of_each_span_where_the_environment_names_a_collector() -> None:
    assert telemetry.is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    assert not telemetry.is_wanted({})
    assert not telemetry.is_wanted(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}
    )
    kept = InMemorySpanExporter()
    tell, end = telemetry.exporter(SimpleSpanProcessor(kept))

    tell(span(1_000, ids=("m1", "m2"), count=2, error="invalid", name="recall"))
    end()

    [told] = kept.get_finished_spans()
    assert told.name == "scrubjay.recall"
    assert (told.start_time, told.end_time) == (1_000_000_000, 1_001_000_000)
    assert dict(told.attributes or {}) == {
        "scrubjay.request": "r1000",
        "scrubjay.name": "recall",
        "scrubjay.ids": ("m1", "m2"),
        "scrubjay.count": 2,
    }
    assert told.status.description == "invalid"


def test_opentelemetry_is_told_of_a_call_of_a_model_in_its_own_names() -> None:
    kept = InMemorySpanExporter()
    tell, end = telemetry.exporter(SimpleSpanProcessor(kept))
    tell(Span(at=Millis(1), ms=1.0, stage="write", name="observe", model="small", input_tokens=120, output_tokens=7))
    end()
    [told] = kept.get_finished_spans()
    assert told.name == "scrubjay.write"
    assert dict(told.attributes or {}) == {
        "scrubjay.name": "observe",
        "gen_ai.request.model": "small",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 7,
    }


def test_a_person_reads_a_trace_in_a_terminal(shell: Shell) -> None:
    shell.json("add", "The gate is green.", "--name", "gate")
    found = shell.json("trace", "gate")
    assert found["steps"][0]["stage"] == "add"
    _, out, _ = shell.run("trace", "gate", "--text")
    assert "add" in out
    assert found["id"][:8] in out
    status, _, error = shell.run("trace", "nobody")
    assert (status, "nothing is known of" in error) == (3, True)
