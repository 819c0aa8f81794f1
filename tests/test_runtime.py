"""The models in use: what they refuse, what happens while they are away, and that two are never mixed up.

The embeddings server here is a real one on loopback, whose faults the tests choose.
"""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from scrubjay import api, model_choice
from scrubjay.api.caller import PERSON
from scrubjay.models import catalog, http, slot
from scrubjay.policy import DEFAULT, ModelPolicy
from scrubjay.service.application import Application
from scrubjay.store import Transaction
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOTHING = api.Nothing()
QUESTION = api.RecallRequest(query="where does the kitten sleep?")
QUICK = replace(DEFAULT, models=ModelPolicy(question_seconds=0.4, rest_seconds=0.2))
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")
MODEL = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"
DIMENSIONS = {"a": 3, "b": 4}


class Handler(BaseHTTPRequestHandler):
    """Speaks Ollama's call for the models a and b."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        faults: Any = self.server
        texts = asked["input"]
        faults.requests += 1
        if any("slowly" in text for text in texts):
            faults.reached.set()
            faults.go_on.wait(20)
        status = 200
        for word, answer in faults.answers.items():
            if any(word in text for text in texts):
                status = answer
        size = DIMENSIONS[asked["model"]]
        rows = [[float(len(text)), *range(1, size)] for text in texts]
        body = json.dumps({"embeddings": rows}).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class EmbeddingServer:
    """A server at one port that can be stopped, started again, and replaced by one that accepts and never answers."""

    def __init__(self) -> None:
        self.port = 0
        self.hole: socket.socket | None = None
        self.start()

    def start(self) -> None:
        if self.hole is not None:
            self.hole.close()
            self.hole = None
        self.http: Any = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.http.daemon_threads = True
        self.http.answers, self.http.requests = {}, 0
        self.http.reached, self.http.go_on = threading.Event(), threading.Event()
        self.port = self.http.server_port
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self) -> None:
        self.http.go_on.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def black_hole(self) -> None:
        self.stop()
        self.hole = socket.socket()
        self.hole.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.hole.bind(("127.0.0.1", self.port))
        self.hole.listen(64)

    @property
    def endpoint(self) -> http.Endpoint:
        return http.Endpoint(url=f"http://127.0.0.1:{self.port}", api="ollama")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    yield running
    if running.hole is None:
        running.stop()
    else:
        running.hole.close()


async def say(service: Application, *texts: str) -> None:
    drafts = tuple(EventDraft(agent="t", session_id="s", type=EventType.USER_MESSAGE, text=text) for text in texts)
    await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=False))


async def until(holds: Callable[[], Any]) -> None:
    with anyio.fail_after(20):
        while not await holds():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


async def timed(service: Application) -> tuple[float, api.RecallResponse]:
    began = time.monotonic()
    answer = await service.call(PERSON, "recall", QUESTION)
    return time.monotonic() - began, answer


# --- two models are never mixed up --------------------------------------------------------------------------------------


async def test_what_is_added_while_the_model_changes_is_not_stored_in_the_space_of_the_other(
    opened: Opener, server: EmbeddingServer
) -> None:
    policy = replace(DEFAULT, models=ModelPolicy(question_seconds=20))
    async with opened(model="http:a", endpoint=server.endpoint, policy=policy) as service:
        await service.call(PERSON, "add", MemoryDraft(content="first"))
        await service.call(PERSON, "settle", api.SettleRequest())
        adding = asyncio.create_task(service.call(PERSON, "add", MemoryDraft(content="slowly")))
        await asyncio.to_thread(server.http.reached.wait, 20)
        server.http.reached.clear()

        await service.call(PERSON, "use_model", api.ModelRequest(name="http:b"))
        server.http.go_on.set()
        await adding
        await service.call(PERSON, "settle", api.SettleRequest())

        rows = await service.store.read(
            lambda q: q.fetch("select s.name, x.vector from embedding x join space s on s.id = x.space")
        )
        stats = await service.call(PERSON, "stats", NOTHING)

    sizes = {(str(name).split(":")[1].split("@")[0], len(vector)) for name, vector in rows}
    (a,), (b,) = ([size for name, size in sizes if name == model] for model in "ab")
    assert b == a + 1  # one byte a dimension
    assert (stats.embedded, stats.to_embed) == (2, 0)


async def test_a_model_that_the_settings_name_is_not_noted_as_the_choice_of_the_store(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:a"))  # as a command does that fetched it
        unchosen = await service.store.read(lambda q: q.meta("model"))
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:b"))
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:b"))
        chosen = await service.store.read(lambda q: q.meta("model"))
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:a"))
        back = await service.store.read(lambda q: q.meta("model"))

    assert (unchosen, chosen, back) == (None, "http:b", "http:a")


# --- what a model refuses -----------------------------------------------------------------------------------------------


async def test_a_text_that_the_server_refuses_is_put_aside_and_the_others_go_on(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        await say(service, *(f"text {n}" for n in range(70)), "poison")
        server.http.answers = {"poison": 400}

        await service.call(PERSON, "settle", api.SettleRequest())
        stats, status, listed = (
            await service.call(PERSON, "stats", NOTHING),
            await service.call(PERSON, "status", NOTHING),
            await service.call(PERSON, "models", NOTHING),
        )
        before = server.http.requests
        again = await service.embed.run()
        asked_again = server.http.requests - before

        server.http.answers = {}
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:a"))
        await service.call(PERSON, "settle", api.SettleRequest())
        cured = await service.call(PERSON, "stats", NOTHING)
        warnings = (await service.call(PERSON, "status", NOTHING)).warnings

    assert (stats.embedded, stats.to_embed, stats.refused) == (70, 0, 1)
    assert any("refused 1 text" in text and "models use http:a" in text for text in status.warnings)
    assert listed.refused == 1
    assert (again, asked_again) == (0, 0)
    assert (cured.embedded, cured.to_embed, cured.refused) == (71, 0, 0)
    assert not any("refused" in text for text in warnings)


async def test_a_refused_text_is_tried_again_when_it_changes_or_the_model_does(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        server.http.answers = {"poison": 413}
        await service.call(PERSON, "add", MemoryDraft(content="poison", name="one"))
        await service.call(PERSON, "add", MemoryDraft(content="more poison", name="two"))
        await service.call(PERSON, "settle", api.SettleRequest())
        both = (await service.call(PERSON, "stats", NOTHING)).refused
        await service.call(PERSON, "update", api.UpdateRequest(ref="one", content="medicine"))
        await service.call(PERSON, "settle", api.SettleRequest())
        one = await service.call(PERSON, "stats", NOTHING)
        server.http.answers = {}
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:b"))
        await service.call(PERSON, "settle", api.SettleRequest())
        none = await service.call(PERSON, "stats", NOTHING)

    assert both == 2
    assert (one.embedded, one.refused) == (1, 1)
    assert (none.embedded, none.refused) == (2, 0)


async def test_a_text_over_which_the_server_fails_holds_no_other_up_and_is_not_given_up(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        server.http.answers = {"cursed": 500}
        await say(service, *(f"text {n}" for n in range(70)), "cursed")
        await service.call(PERSON, "settle", api.SettleRequest())
        failed = await service.call(PERSON, "stats", NOTHING)
        server.http.answers = {}
        await service.call(PERSON, "settle", api.SettleRequest())
        healed = await service.call(PERSON, "stats", NOTHING)

    assert (failed.embedded, failed.to_embed, failed.refused) == (70, 1, 0)
    assert (healed.embedded, healed.to_embed) == (71, 0)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
async def test_a_server_that_refuses_or_fails_everything_marks_no_text(
    opened: Opener, server: EmbeddingServer, status: int
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint, policy=QUICK) as service:
        await service.call(PERSON, "add", MemoryDraft(content="first"))
        await service.call(PERSON, "settle", api.SettleRequest())
        server.http.answers = {"": status}
        await say(service, *(f"text {n}" for n in range(70)))
        await service.call(PERSON, "settle", api.SettleRequest())
        away = await service.call(PERSON, "stats", NOTHING)
        asked = server.http.requests
        said = (await service.call(PERSON, "status", NOTHING)).warnings
        server.http.answers = {}
        await asyncio.sleep(0.3)
        await service.call(PERSON, "settle", api.SettleRequest())
        back = await service.call(PERSON, "stats", NOTHING)

    assert (away.to_embed, away.refused) == (70, 0)
    assert asked < 10
    assert any("words alone" in text for text in said)
    assert (back.embedded, back.to_embed, back.refused) == (71, 0, 0)


# --- a server that is away ----------------------------------------------------------------------------------------------


async def test_a_server_that_never_answers_costs_two_questions_a_moment_and_comes_back_by_itself(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(model="http:a", endpoint=server.endpoint, policy=QUICK) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "settle", api.SettleRequest())
        _, before = await timed(service)
        server.black_hole()

        asked = [await timed(service) for _ in range(6)]
        away = await service.call(PERSON, "status", NOTHING)
        server.start()
        scheduler = service.scheduler
        await scheduler.start()
        try:

            async def healed() -> bool:
                service.on_work("embed")
                return not any(
                    "words alone" in text for text in (await service.call(PERSON, "status", NOTHING)).warnings
                )

            await until(healed)
        finally:
            await scheduler.stop()
        _, after = await timed(service)

    assert (before.mode, before.notes) == ("hybrid", ())
    assert all(answer.hits for _, answer in asked)
    assert {answer.mode for _, answer in asked} == {"lexical"}
    assert all("lexical only" in " ".join(answer.notes) for _, answer in asked)
    assert max(took for took, _ in asked) < 2
    assert max(took for took, _ in asked[2:]) < 0.3
    assert any("did not answer within 0.4 seconds" in text for text in away.warnings)
    assert (after.mode, after.notes) == ("hybrid", ())


async def test_a_server_that_is_away_from_the_start_holds_up_neither_questions_nor_the_end(
    opened: Opener, server: EmbeddingServer
) -> None:
    server.black_hole()
    async with opened(model="http:a", endpoint=server.endpoint, policy=QUICK) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        asked = [await timed(service) for _ in range(4)]
        began = time.monotonic()
    ended = time.monotonic() - began

    assert max(took for took, _ in asked) < 2
    assert {answer.mode for _, answer in asked} == {"lexical"}
    assert ended < 3


async def test_a_server_that_the_store_chose_holds_no_question_up_either(
    opened: Opener, server: EmbeddingServer
) -> None:
    async with opened(endpoint=server.endpoint) as service:
        await service.call(PERSON, "use_model", api.ModelRequest(name="http:a"))
    server.black_hole()
    async with opened(endpoint=server.endpoint, policy=QUICK) as service:
        took, answer = await timed(service)

    assert took < 2
    assert answer.mode == "lexical"


async def test_a_store_that_goes_without_a_model_keeps_no_queue(opened: Opener, server: EmbeddingServer) -> None:
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        await say(service, "one", "two")
        await service.call(PERSON, "settle", api.SettleRequest())
    async with opened(model="none") as service:
        await say(service, "three")
        queued = await service.store.read(lambda q: q.fetch("select * from unembedded"))
        found = await service.call(PERSON, "stats", NOTHING)
    async with opened(model="http:a", endpoint=server.endpoint) as service:
        await service.call(PERSON, "settle", api.SettleRequest())
        after = await service.call(PERSON, "stats", NOTHING)

    assert (queued, found.to_embed) == ([], 0)
    assert (after.embedded, after.to_embed) == (3, 0)


@pytest.mark.skipif(not (REAL / MODEL).is_dir(), reason="the model's files are not here")
async def test_no_model_is_loaded_to_find_that_everything_has_its_vector(opened: Opener) -> None:
    space = catalog.EMBEDDERS[MODEL].space

    def embedded_elsewhere(tx: Transaction) -> None:
        owners = [(row[0], "0", b"\0" * 388) for row in tx.queries.fetch("select id from event")]
        tx.vectors.put(tx.vectors.space(space), owners)

    async with opened() as service:
        await say(service, "one", "two")
        await service.store.write(embedded_elsewhere)
    async with opened(models_dir=REAL, model=MODEL) as service:
        stats = await service.call(PERSON, "stats", NOTHING)
        await service.embed.run()
        state = (await service.call(PERSON, "status", NOTHING)).model_state

    assert (stats.embedded, stats.to_embed) == (2, 0)
    assert state == "idle"


async def test_an_error_of_the_past_is_not_shown_for_ever(opened: Opener, server: EmbeddingServer) -> None:
    async with opened(model="http:a", endpoint=server.endpoint, policy=QUICK) as service:
        await service.call(PERSON, "add", MemoryDraft(content="The kitten naps on the couch"))
        await service.call(PERSON, "settle", api.SettleRequest())
        server.http.answers = {"kitten": 500}
        failed = await service.call(PERSON, "recall", QUESTION)
        during = await service.call(PERSON, "status", NOTHING)
        server.http.answers = {}
        worked = await service.call(PERSON, "recall", QUESTION)
        after = await service.call(PERSON, "status", NOTHING)

    assert (failed.mode, worked.mode) == ("lexical", "hybrid")
    assert any("500" in text for text in during.warnings)
    assert not any("500" in text for text in after.warnings)


@pytest.mark.skipif(not (REAL / RERANKER).is_dir(), reason="the reranking model's files are not here")
async def test_a_reranker_that_was_repaired_is_used_and_its_error_goes(opened: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    shutil.copytree(REAL / RERANKER, folder / RERANKER)
    (folder / RERANKER / "tokenizer.json").write_text("{}")
    async with opened(models_dir=folder, reranker=RERANKER, policy=QUICK) as service:
        damaged, note = await service._models.reranker.rerank("q", ["a", "b"])
        during = (await service.call(PERSON, "status", NOTHING)).warnings
        shutil.copy(REAL / RERANKER / "tokenizer.json", folder / RERANKER / "tokenizer.json")
        await asyncio.sleep(0.25)
        repaired, _ = await service._models.reranker.rerank("q", ["a", "b"])
        after = (await service.call(PERSON, "status", NOTHING)).warnings

    assert (damaged, "checksum" in note) == (None, True)
    assert any("reranked" in text for text in during)
    assert repaired is not None
    assert not any("reranked" in text for text in after)


# --- an idle store ------------------------------------------------------------------------------------------------------


async def test_a_look_for_work_reads_no_more_in_a_large_store(opened: Opener, server: EmbeddingServer) -> None:
    async def statements(service: Application) -> list[str]:
        asked: list[str] = []
        for connection in service.store._open:
            await connection.call(lambda raw: raw.set_trace_callback(asked.append))
        try:
            for job in (service.distill, service.embed, service.recall_counts, service.maintain):
                await job.due()
        finally:
            for connection in service.store._open:
                await connection.call(lambda raw: raw.set_trace_callback(None))
        return [sql for sql in asked if sql not in {"begin", "rollback"}]

    async with opened(model="http:a", endpoint=server.endpoint) as service:
        await say(service, *(f"text {n}" for n in range(200)))
        await service.call(PERSON, "settle", api.SettleRequest())
        await statements(service)

        looked = await statements(service)

    assert len(looked) < 6
    assert not any(table in sql for sql in looked for table in ("from event", "from memory", "from session", "count("))


# --- the breaker, and the choice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [slot, model_choice])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_breaker_rests_longer_after_each_trial_that_fails_and_not_at_all_after_one_that_works() -> None:
    policy = ModelPolicy(failures=2, rest_seconds=10, rest_most_seconds=35)
    breaker = slot.Breaker(policy)
    breaker.failed(0)
    after_one = breaker.closed
    breaker.failed(0)
    breaker.failed(1)  # of a question that was asked before
    rests = []
    now = 0.0
    for _ in range(4):
        began = now
        while not breaker.may_try(now):
            now += 1
        rests.append(now - began)
        breaker.failed(now)
    while not breaker.may_try(now):
        now += 1
    breaker.succeeded()

    assert after_one
    assert rests == [10, 20, 35, 35]
    assert breaker.closed
