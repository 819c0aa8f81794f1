"""Reading sessions anew: what lesser readers made of them ends where it is not learned again, as one run to undo."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.distill.prose import Span
from scrubjay.distill.reading import Judgement, Turn
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.store import Cause, MemoryWrite, Store
from scrubjay.writer.budget import Caps
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import EventDraft, Grip, Layer, MemoryDraft, MemoryType
from service_calls import NOTHING, NOW, Opener, get, ingest, listed, said
from writer_server import POLICY, Asked, Fault, ModelServer, model_server

if TYPE_CHECKING:
    from scrubjay.models.reading import OnnxReader

pytestmark = pytest.mark.anyio

PROJECT = "github.com/example/harbour"
CAPS = Caps(daily=1_000_000, monthly=10_000_000)
FIRST = "We decided to use PostgreSQL for the carts, because of its exclusion constraints."
SECOND = (
    "Remember that the harbour crane server must listen on port 9417, because the customer's firewall opens only that."
)
CUSTOMS = "It was a long day at the customs shed."
PORT = "The crane server listens on port 9417."
OLD = "It was a grey afternoon at the harbour."
FACT = "The carts are kept in PostgreSQL because of its exclusion constraints."
ANSWER = f"@type decision\n@turns 1\n@observe project\n{FACT}\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        running.answer = lambda _: "NONE"
        yield running


@pytest.fixture
def written(server: ModelServer, opened: Opener) -> Opener:
    """`async with written() as service`: a service whose Writer is the server."""

    def open_written(**options: Any) -> AbstractAsyncContextManager[Application]:
        policy = MemoryPolicy(writer=POLICY, observer=options.pop("observer", DEFAULT.observer))
        return opened(**({"writer": server.chosen(), "caps": CAPS, "policy": policy} | options))

    return open_written


def turn(text: str, at: int = 0, session: str = "s1", **more: Any) -> EventDraft:
    return said(text, session, ts=Millis(NOW + at * 1000), project=PROJECT, **more)


async def job(service: Application, name: str) -> str | None:
    return (await service.call(PERSON, "run_job", api.JobRequest(name=name))).error  # type: ignore[no-any-return]


async def taught(service: Application, *texts: str, session: str = "s1") -> None:
    """Have patterns learn of a session, as without a Writer."""
    await ingest(service, *(turn(text, at, session) for at, text in enumerate(texts)))
    await service.distill.run(session)


async def made_of_old(service: Application, text: str = OLD, session: str = "s1", *, source: str = "patterns/4") -> str:
    """Store what patterns of an earlier version, or another reader, made of a sentence that these pass over."""
    [event_id] = (await ingest(service, turn(text, 99, session))).ids
    await service.distill.run(session)
    memory_id = ulid(NOW, event_id.encode()[-10:])
    grip = Grip(
        id=ulid(NOW, event_id.encode()[-9:] + b"g"), memory_id=memory_id, event_id_start=event_id, event_id_end=event_id,
        span_start=0, span_end=len(text), excerpt=text, source=source, created_at=NOW,
    )  # fmt: skip
    fields = {
        Field.CONTENT: text, Field.KIND: "observation", Field.SCOPE: "project", Field.RESOURCE_ID: PROJECT,
        Field.CREATED_AT: int(NOW),
    }  # fmt: skip
    write = MemoryWrite(memory_id=memory_id, fields=fields, grips=(grip,))
    cause = Cause(id=f"distill:{ulid(NOW, bytes(10))}")
    await service.store.write(lambda tx: tx.memories.write([write]), cause=cause)
    return memory_id


class Marks:
    """A reader that finds a sentence worth keeping where a word of it stands there."""

    source = "reader/1"

    def __init__(self, *words: str) -> None:
        self.words = words
        self.read_texts: list[str] = []

    def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
        """Return what it makes of each sentence."""
        self.read_texts.append(turn.text)
        said = [turn.text[one.start : one.end] for one in found]
        worth = [0.9 if any(word in one for word in self.words) else 0.01 for one in said]
        return [Judgement(worth=one, leans=0.0, type=MemoryType.DECISION, personal=False) for one in worth]

    def close(self) -> None:
        """Let go of nothing."""


class Halting(Marks):
    """One that says so at the second turn, and reads no further."""

    def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
        """Return what it makes of each sentence of the first turn."""
        judged = super().read(turn, found)
        if len(self.read_texts) == 2:
            sys.stdout.write("halted\n")
            sys.stdout.flush()
            time.sleep(600)
        return judged


def read_by(service: Application, reader: Marks | None) -> None:
    """Have a reader read what people say at work, or none."""
    service._models.reader.replace(cast("OnnxReader | None", reader))


async def relearn(service: Application, *, dry_run: bool = False) -> api.RelearnResponse:
    return await service.call(PERSON, "relearn", api.RelearnRequest(dry_run=dry_run))  # type: ignore[no-any-return]


async def relearned(service: Application) -> str:
    """Carry out a whole run, and return its cause."""
    cause = (await relearn(service)).cause
    assert cause is not None
    assert await job(service, "relearn") is None
    assert await service.relearn.pending() is None
    return cause


async def undo(service: Application, cause: str) -> api.UndoResponse:
    return await service.call(PERSON, "undo", api.UndoRequest(cause=cause))  # type: ignore[no-any-return]


# --- what a run would do ----------------------------------------------------------------------------------------------


async def test_a_preview_counts_what_may_end_and_what_stays_and_changes_nothing(opened: Opener) -> None:
    async with opened() as service:
        await taught(service, FIRST, SECOND, "From now on always run the linter before you commit.")
        old = {why: await made_of_old(service, f"{OLD} {why}", why) for why in ("edited", "pinned", "helped", "cited")}
        await service.call(PERSON, "update", api.UpdateRequest(ref=old["edited"], content="It was a bright afternoon."))
        await service.call(PERSON, "update", api.UpdateRequest(ref=old["pinned"], layer=Layer.SURFACED))
        await service.call(PERSON, "feedback", api.FeedbackRequest(refs=(old["helped"],), helped=True))
        other = await made_of_old(service, "It rained a little later.", "cited")
        await service.call(PERSON, "supersede", api.SupersedeRequest(ref=other, by=old["cited"]))
        await service.call(PERSON, "learn", api.LearnRequest(text="We always use uv, never poetry.", project=PROJECT))
        await service.call(PERSON, "add", MemoryDraft(content="Ines signs the invoices."))
        before = await listed(service, limit=200)

        found = await relearn(service, dry_run=True)

        assert (found.cause, found.sessions, found.memories, found.cost) == (None, 1, 3, None)
        assert found.kept == {"cited": 1, "confirmed": 2, "edited": 1, "pinned": 1}
        assert await listed(service, limit=200) == before
        assert "relearn" not in {one.name for one in (await service.call(PERSON, "jobs", NOTHING)).jobs}
        await relearned(service)
        assert sorted(await listed(service, limit=200)) == sorted(before)


async def test_a_preview_with_a_writer_says_what_goes_where_and_asks_nothing(
    written: Opener, server: ModelServer
) -> None:
    async with written() as service:
        await taught(service, FIRST, SECOND)
        found = await relearn(service, dry_run=True)

    assert found.cost is not None
    assert (found.cost.calls, found.cost.days, found.cost.leaves) == (1, 1, False)
    assert found.cost.destination in server.url
    assert found.cost.left_today == CAPS.daily // 2
    assert server.asked == []


async def test_where_nothing_is_to_be_read_no_run_begins(opened: Opener) -> None:
    async with opened() as service:
        assert (await relearn(service)).cause is None
        assert await service.relearn.pending() is None


# --- with what `learn` reads with -------------------------------------------------------------------------------------


async def test_what_is_not_learned_again_ends_and_undo_brings_it_back(opened: Opener) -> None:
    async with opened() as service:
        await taught(service, FIRST, SECOND)
        old = await made_of_old(service)
        before = set(await listed(service))

        cause = await relearned(service)

        assert set(await listed(service)) == before - {OLD}
        ended = (await service.call(PERSON, "why", api.RefRequest(ref=old))).history[-1]
        assert (ended.fields, ended.cause) == (("archived_at",), cause)
        undone = await undo(service, cause)
        assert (undone.restored, undone.archived) == ((old,), ())
        assert set(await listed(service)) == before


async def test_a_run_that_was_undone_can_be_carried_out_again(written: Opener, server: ModelServer) -> None:
    server.answer = lambda asked: ANSWER if "PostgreSQL" in asked.text else "NONE"
    async with written() as service:
        await taught(service, FIRST)
        first = await listed(service)
        for _ in range(2):
            cause = await relearned(service)
            assert await listed(service) == [FACT]
            await undo(service, cause)
            assert await listed(service) == first
        await relearned(service)
        assert await listed(service) == [FACT]


async def test_what_was_said_in_several_sessions_ends_when_none_of_them_says_it_any_more(opened: Opener) -> None:
    async with opened() as service:
        await taught(service, FIRST, session="a")
        await taught(service, FIRST, session="c")
        old = await made_of_old(service, session="b")
        [again] = (await ingest(service, turn(OLD, 5, "d"))).ids
        await service.distill.run("d")
        grip = Grip(
            id=ulid(NOW, b"another---"), memory_id=old, event_id_start=again, event_id_end=again,
            span_start=0, span_end=len(OLD), excerpt=OLD, source="patterns/4", created_at=NOW,
        )  # fmt: skip
        await service.store.write(
            lambda tx: tx.memories.write([MemoryWrite(memory_id=old, fields={}, grips=(grip,))]),
            cause=Cause(id=f"distill:{ulid(NOW, bytes(10))}"),
        )
        [stays] = [text for text in await listed(service) if text != OLD]
        assert (await relearn(service, dry_run=True)).sessions == 4

        await relearned(service)

        assert await listed(service) == [stays]


# --- with the reader that ships ---------------------------------------------------------------------------------------


async def test_the_reader_replaces_what_patterns_and_earlier_readers_made_and_nothing_of_its_own(
    opened: Opener,
) -> None:
    async with opened() as service:
        read_by(service, Marks("invoices"))
        await taught(service, "Ines signs the invoices herself.", session="own")
        read_by(service, None)
        await taught(service, CUSTOMS)
        await made_of_old(service, PORT)
        older = await made_of_old(service, source="reader/0", session="old")
        before = set(await listed(service))
        assert CUSTOMS not in before
        read_by(service, Marks("customs"))
        found = await relearn(service, dry_run=True)
        assert (found.reader, found.sessions, found.memories, found.kept) == ("reader", 2, 2, {})

        for _ in range(2):
            cause = await relearned(service)
            entries = (await service.call(PERSON, "list", api.ListRequest())).entries
            assert {one.memory.content for one in entries} == {CUSTOMS, "Ines signs the invoices herself."}
            readers = [(await service.call(PERSON, "why", api.RefRequest(ref=one.memory.id))).origin for one in entries]
            assert {one.reader for one in readers} == {"reader"}
            assert (await relearn(service, dry_run=True)).sessions == 0
            assert older in (await undo(service, cause)).restored
            assert set(await listed(service)) == before


async def test_patterns_replace_nothing_that_a_reader_made(opened: Opener) -> None:
    async with opened() as service:
        await made_of_old(service, source="reader/0")
        await made_of_old(service, "It rained a little later.", session="s2")
        found = await relearn(service, dry_run=True)
        assert (found.reader, found.sessions, found.memories, found.kept) == ("patterns", 1, 1, {})
        await relearned(service)
        assert await listed(service) == [OLD]


async def test_a_writer_replaces_what_the_reader_made(written: Opener, server: ModelServer) -> None:
    server.answer = lambda _: ANSWER
    async with written() as service:
        read_by(service, Marks("carts", "port"))
        await taught(service, FIRST, SECOND)
        before = set(await listed(service))
        assert before == {FIRST, SECOND}
        found = await relearn(service, dry_run=True)
        assert (found.reader, found.sessions, found.memories) == ("writer", 1, 2)

        cause = await relearned(service)

        assert await listed(service) == [FACT]
        await undo(service, cause)
        assert set(await listed(service)) == before


# --- with a Writer ----------------------------------------------------------------------------------------------------


async def test_what_patterns_made_gives_way_to_what_the_writer_reads(written: Opener, server: ModelServer) -> None:
    server.answer = lambda _: ANSWER
    async with written() as service:
        await taught(service, FIRST, SECOND)
        [port] = [one for one in await listed(service) if "9417" in one]

        cause = await relearned(service)

        [entry] = (await service.call(PERSON, "list", api.ListRequest())).entries
        assert entry.memory.content == FACT
        why = await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))
        assert why.origin.reader == "writer"
        assert {change.cause for change in why.history} == {cause}
        [asked] = server.asked
        assert "memories-" not in asked.text  # or it would not say again what these say
        assert "relearn" in str(await service.call(PERSON, "cost", api.CostRequest(by="job")))
        await undo(service, cause)
        assert port in await listed(service)
        assert FACT not in await listed(service)


async def test_patterns_stand_beside_what_they_made(opened: Opener) -> None:
    async with opened() as service:
        await taught(service, FIRST)
        [entry] = (await service.call(PERSON, "list", api.ListRequest())).entries
        assert (await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))).origin.reader == "patterns"
        added = await service.call(PERSON, "add", MemoryDraft(content="Ines signs the invoices."))
        assert (await service.call(PERSON, "why", api.RefRequest(ref=added.memory.id))).origin.reader == ""


SHORT = replace(DEFAULT.observer, prompt_chars=8_000, turn_chars=1_000)
FILLER = "It was a long afternoon at the harbour, and nothing of it is worth keeping for anybody. " * 11


async def long_session(service: Application) -> list[str]:
    """Have patterns learn of a session that needs several questions; return what they learned."""
    await taught(service, FIRST, *(f"{FILLER} {n}" for n in range(8)), SECOND)
    found = await listed(service)
    assert len(found) >= 2
    return found


async def test_a_session_that_is_read_in_half_keeps_what_patterns_made(written: Opener, server: ModelServer) -> None:
    server.answer = lambda _: "NONE"
    async with written(observer=SHORT) as service:
        before = await long_session(service)
        server.faults.extend([None, Fault(status=401)])
        await relearn(service)

        assert await job(service, "relearn") is not None

        assert len(server.asked) == 2
        assert await listed(service) == before
        assert await service.relearn.pending() == 1
        assert await job(service, "relearn") is None
        assert await listed(service) == []
    new = [asked for asked in server.asked if f"[1] person:\n  {FIRST}" in asked.text]
    assert new == server.asked[:1]  # what was read is not paid for again
    assert SECOND in server.asked[-1].text


async def test_a_session_that_the_writer_cannot_read_stays_and_the_others_go_on(
    written: Opener, server: ModelServer
) -> None:
    server.answer = lambda asked: "Certainly! Nice work." if "9417" in asked.text else "NONE"
    async with written() as service:
        await taught(service, SECOND, session="a")
        stays = await listed(service)
        await taught(service, FIRST, session="b")

        await relearned(service)

        assert await listed(service) == stays
    assert len(server.asked) == DEFAULT.observer.again_tries + 1


async def test_a_run_uses_half_of_a_days_cap_and_says_that_it_waits(written: Opener, server: ModelServer) -> None:
    async with written(caps=Caps(daily=60_000, monthly=600_000)) as service:
        for session in "abcdef":
            await taught(service, f"{FIRST} {FILLER} {session}", session=session)
        cause = (await relearn(service)).cause
        server.faults.append(Fault(usage={"prompt_tokens": 31_000, "completion_tokens": 10, "total_tokens": 31_010}))

        await service.relearn.run()

        assert len(server.asked) == 1
        assert not await service.relearn.due()
        [told] = await service.relearn.warnings()
        assert "0 of 6 sessions" in told
        assert str(cause) in told


async def test_where_the_writer_was_turned_off_a_run_waits_for_it(
    written: Opener, opened: Opener, server: ModelServer
) -> None:
    async with written() as service:
        await taught(service, FIRST)
        await relearn(service)
    async with opened() as service:
        assert not await service.relearn.due()
        with pytest.raises(UnavailableError, match="it is off"):
            await service.relearn.finish()
        assert "scrubjay writer on" in (await service.relearn.warnings())[0]
        assert len(await listed(service)) == 1
    assert server.asked == []


# --- a kill, an undo, and other devices -------------------------------------------------------------------------------

KILLED = """
import asyncio, sys
from pathlib import Path
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import load
from scrubjay.writer import configured
from test_relearn import CAPS, POLICY, SHORT

async def main(path, url):
    named = {"writer": "openai", "writer_url": url + "/v1", "writer_model": "small"}
    chosen = configured.chosen(load(named, {"SCRUBJAY_HOME": "/nowhere"}), {}, POLICY)
    policy = MemoryPolicy(writer=POLICY, observer=SHORT)
    options = {"models_dir": Path(path).parent, "model": "none", "writer": chosen, "caps": CAPS, "policy": policy}
    service = await Application.open(Path(path), **options)
    await service.relearn.finish()

asyncio.run(main(*sys.argv[1:]))
"""


def killed_while_it_asks(server: ModelServer, path: Path) -> None:
    """Have another process go on with a run, and kill it while its second question is under way."""
    server.faults.extend([None, Fault(silent=True)])
    command = [sys.executable, "-c", KILLED, str(path), server.url]
    with subprocess.Popen(command, cwd=Path(__file__).parent) as child:
        for _ in range(2):
            assert server.reading.wait(60)
            server.reading.clear()
        child.send_signal(signal.SIGKILL)
    server.going_on.set()


async def test_a_run_that_was_killed_goes_on_where_it_was(
    written: Opener, server: ModelServer, store_path: Path
) -> None:
    server.answer = lambda asked: ANSWER if f"[1] person:\n  {FIRST}" in asked.text else "NONE"
    async with written(observer=SHORT) as service:
        before = await long_session(service)
        cause = (await relearn(service)).cause
    await asyncio.to_thread(killed_while_it_asks, server, store_path)
    assert len(server.asked) == 2

    async with written(observer=SHORT) as service:
        assert set(await listed(service)) == {*before, FACT}
        assert (await relearn(service)).cause == cause
        assert await job(service, "relearn") is None

        assert await listed(service) == [FACT]
        assert cause is not None
        await undo(service, cause)
        assert set(await listed(service)) == set(before)


KILLED_READER = """
import asyncio, sys
from pathlib import Path
from scrubjay.service.application import Application
from test_relearn import STEPS, Halting, read_by

async def main(path):
    options = {"models_dir": Path(path).parent, "model": "none", "policy": STEPS}
    service = await Application.open(Path(path), **options)
    read_by(service, Halting("customs"))
    await service.relearn.finish()

asyncio.run(main(*sys.argv[1:]))
"""
STEPS = MemoryPolicy(work=replace(DEFAULT.work, learn_events=1))


def killed_while_it_reads(path: Path) -> None:
    """Have another process go on with a run by a reader, and kill it at the second turn."""
    command = [sys.executable, "-c", KILLED_READER, str(path)]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"halted\n"
        child.send_signal(signal.SIGKILL)


async def test_a_run_by_the_reader_that_was_killed_goes_on_where_it_was(opened: Opener, store_path: Path) -> None:
    later = "It was a quiet evening at the customs shed."
    async with opened(policy=STEPS) as service:
        await taught(service, CUSTOMS, OLD, later)
        await made_of_old(service, PORT)
        before = set(await listed(service))
        cause = (await relearn(service)).cause
    await asyncio.to_thread(killed_while_it_reads, store_path)

    async with opened(policy=STEPS) as service:
        assert set(await listed(service)) == {*before, CUSTOMS}
        reader = Marks("customs")
        read_by(service, reader)
        assert (await relearn(service)).cause == cause
        assert await job(service, "relearn") is None

        assert reader.read_texts == [OLD, later, PORT]
        assert set(await listed(service)) == {CUSTOMS, later}
        assert cause is not None
        await undo(service, cause)
        assert set(await listed(service)) == before


async def test_a_run_that_is_undone_half_way_ends_there(written: Opener, server: ModelServer) -> None:
    server.answer = lambda asked: ANSWER if FIRST in asked.text else "NONE"
    async with written() as service:
        await taught(service, FIRST, session="a")
        await taught(service, SECOND, session="b")
        before = await listed(service)
        server.faults.extend([None, Fault(status=401)])
        cause = (await relearn(service)).cause
        assert cause is not None
        assert await job(service, "relearn") is not None
        assert FACT in await listed(service)

        await undo(service, cause)

        assert set(await listed(service)) == set(before)
        assert await service.relearn.pending() is None
        assert not await service.relearn.due()


async def test_a_run_that_was_undone_writes_nothing_of_the_answer_that_comes_after(
    written: Opener, server: ModelServer
) -> None:
    async with written() as service:
        await taught(service, FIRST)
        before = await listed(service)
        cause = (await relearn(service)).cause
        run = await service.relearn.under_way()
        assert cause is not None
        assert run is not None

        def answer(_: Asked) -> str:
            asked.set()
            undone.wait(10)
            return ANSWER

        asked, undone = threading.Event(), threading.Event()
        server.answer = answer
        running = asyncio.create_task(service.relearn.finish())
        await asyncio.to_thread(asked.wait, 10)
        await undo(service, cause)
        undone.set()
        await running

        assert await listed(service) == before
        history = await service.call(PERSON, "history", api.HistoryRequest(cause=cause))
        assert history.changes == ()


async def exchange(*stores: Store) -> None:
    logs = [(one.device, await said_by(one)) for one in stores]
    for store in stores:
        for device, run in logs:
            if device != store.device:
                await store.write(lambda tx, device=device, run=run: tx.ingest.receive(device, run))  # type: ignore[misc]


async def said_by(store: Store) -> list[tuple[int, bytes | None]]:
    found = await store.read(lambda q: q.ops.unsent(store.device, 0, 10_000))
    return [(one.seq, one.data) for one in found]


async def test_one_device_reads_anew_and_the_ops_carry_what_came_of_it(
    opened: Opener, written: Opener, server: ModelServer, tmp_path: Path
) -> None:
    server.answer = lambda _: ANSWER
    async with written() as one, opened(tmp_path / "other" / "memory.db") as other:
        await taught(other, FIRST, SECOND)  # said to the other device, and read there by patterns
        await exchange(one.store, other.store)
        assert len(await listed(one)) == 2

        cause = await relearned(one)
        await exchange(one.store, other.store)

        assert await listed(one) == await listed(other) == [FACT]
        assert (await relearn(other, dry_run=True)).sessions == 0
        # A device of an earlier version knows all of these ops.
        kinds = await other.store.read(
            lambda q: q.fetch("select distinct type from op o join cause c on c.n = o.cause where c.id = ?", (cause,))
        )
        assert {row[0] for row in kinds} == {int(OpType.MEMORY), int(OpType.GRIP)}
        await undo(other, cause)
        await exchange(one.store, other.store)
        assert sorted(await listed(one)) == sorted(await listed(other))
        assert FACT not in await listed(one)


async def test_the_reader_replaces_what_another_device_made_of_old(opened: Opener, tmp_path: Path) -> None:
    async with opened() as one, opened(tmp_path / "other" / "memory.db") as other:
        await taught(other, CUSTOMS)
        await made_of_old(other, PORT)
        await made_of_old(other, source="reader/0")
        await exchange(one.store, other.store)
        before = set(await listed(one))
        assert before == {PORT, OLD}
        for service in (one, other):
            read_by(service, Marks("customs"))

        cause = await relearned(one)
        await exchange(one.store, other.store)

        assert await listed(one) == await listed(other) == [CUSTOMS]
        assert (await relearn(other, dry_run=True)).sessions == 0
        await undo(other, cause)
        await exchange(one.store, other.store)
        assert set(await listed(one)) == set(await listed(other)) == before


async def test_what_another_device_was_not_to_learn_from_is_not_read_anew(
    opened: Opener, written: Opener, server: ModelServer, tmp_path: Path
) -> None:
    async with written() as one, opened(tmp_path / "other" / "memory.db") as other:
        await taught(other, FIRST)
        await ingest(other, turn(SECOND, 40, metadata={"useMemory": False}))
        await exchange(one.store, other.store)
        await relearned(one)
    [asked] = server.asked
    assert FIRST in asked.text
    assert SECOND not in asked.text


async def test_two_devices_that_read_anew_at_once_come_to_one_memory(
    written: Opener, server: ModelServer, tmp_path: Path
) -> None:
    server.answer = lambda _: ANSWER
    async with written() as one, written(path=tmp_path / "other" / "memory.db") as other:
        await taught(one, FIRST, SECOND)
        await exchange(one.store, other.store)

        await relearned(one)
        await relearned(other)
        await exchange(one.store, other.store)

        for service in (one, other):
            assert await listed(service) == [FACT]
            assert (await relearn(service, dry_run=True)).sessions == 0
        [entry] = (await one.call(PERSON, "list", api.ListRequest())).entries
        assert (await get(other, entry.memory.id)).memory == entry.memory


async def test_new_turns_are_read_as_ever_while_a_run_is_under_way(written: Opener, server: ModelServer) -> None:
    server.answer = lambda asked: ANSWER if "Today:" in asked.text else "NONE"
    async with written() as service:
        await taught(service, SECOND)
        await ingest(service, turn(f"Today: {FIRST}", 50))
        await relearned(service)
        assert await listed(service) == []

        await job(service, "observe")

        assert await listed(service) == [FACT]


async def test_the_reader_learns_of_new_turns_while_a_run_is_under_way(opened: Opener) -> None:
    later = "It was a quiet evening at the customs shed."
    async with opened() as service:
        await taught(service, CUSTOMS)
        await made_of_old(service, PORT)
        await ingest(service, turn(later, 50))
        read_by(service, Marks("customs"))
        await relearn(service)

        await asyncio.gather(service.relearn.finish(), service.distill.run())

        assert await service.relearn.pending() is None
        assert set(await listed(service)) == {CUSTOMS, later}


def test_the_command_shows_what_it_would_do_and_begins_after_a_yes(shell: Shell) -> None:
    shell.json("ingest", "--wait", stdin=b"\n".join(map(msgspec.json.encode, (turn(FIRST), turn(SECOND, 1)))))
    [one, other] = [entry["memory"]["content"] for entry in shell.json("list")["entries"]]

    code, shown, _ = shell.run("--text", "relearn")

    assert code == 0
    assert "1 session would be read anew, by the patterns of this version" in shown
    assert "2 memories that patterns made may end" in shown
    assert "nothing that you added, imported or edited is touched" in shown
    assert shell.json("history", "--kind", "relearn")["causes"] == []
    begun = shell.json("relearn", "--yes")
    assert shell.json("relearn")["cause"] == begun["cause"]
    _, shown, _ = shell.run("--text", "relearn")
    assert f"scrubjay undo {begun['cause'].partition(':')[0]}" in shown or "scrubjay jobs run relearn" in shown
    shell.json("jobs", "run", "relearn")
    assert shell.json("relearn")["cause"] is None
    assert {entry["memory"]["content"] for entry in shell.json("list")["entries"]} == {one, other}


# --- a session that was under way when the Writer was turned on -------------------------------------------------------


async def test_a_session_under_way_is_read_from_its_beginning_and_what_patterns_made_of_it_ends(
    written: Opener, server: ModelServer
) -> None:
    server.answer = lambda asked: ANSWER if f"[1] person:\n  {FIRST}" in asked.text else "NONE"
    async with written() as service:
        await taught(service, FIRST, SECOND)
        before = await listed(service)
        await ingest(service, turn("And now for the invoices.", 60))

        await job(service, "observe")

        assert await listed(service) == [FACT]
        assert len(server.asked) == 2
        [run] = (await service.call(PERSON, "history", api.HistoryRequest(kind="observe"))).causes
        await undo(service, run.id)
        assert sorted(await listed(service)) == sorted(before)
        await ingest(service, turn("And then the quay.", 70))
        await job(service, "observe")
    assert len(server.asked) == 3  # its beginning is not read at each look


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=401), Fault(cut_short=True)])
async def test_where_the_writer_fails_at_a_beginning_what_patterns_made_stays(
    written: Opener, server: ModelServer, fault: Fault
) -> None:
    async with written() as service:
        await taught(service, FIRST, SECOND)
        before = await listed(service)
        await ingest(service, turn("And now for the invoices.", 60))
        server.faults.extend([None, fault, fault, fault])

        await job(service, "observe")

        assert len(server.asked) >= 2
        assert await listed(service) == before


async def test_a_long_beginning_is_left_to_relearn(written: Opener, server: ModelServer) -> None:
    async with written(observer=replace(DEFAULT.observer, again_chars=100)) as service:
        await taught(service, FIRST, SECOND)
        before = await listed(service)
        await ingest(service, turn("And now for the invoices.", 60))

        await job(service, "observe")

        assert len(server.asked) == 1
        assert await listed(service) == before


async def test_what_the_person_told_on_purpose_is_not_read_anew(written: Opener, server: ModelServer) -> None:
    async with written() as service:
        for text in ("We always use uv, never poetry.", "Ines signs the invoices on the first working day."):
            await service.call(PERSON, "learn", api.LearnRequest(text=text, project=PROJECT))
        before = await listed(service)
        assert before
        await job(service, "observe")
        assert await listed(service) == before
    assert server.asked == []


async def test_what_patterns_learned_of_turns_that_were_not_read_anew_stays(
    written: Opener, server: ModelServer
) -> None:
    async with written() as service:
        await taught(service, FIRST)
        assert (await relearn(service)).cause is not None
        server.faults.append(Fault(status=401))
        assert await job(service, "relearn") is not None
        await ingest(service, turn(SECOND, 30))
        upto = await service.store.read(lambda q: q.relearning.read_upto("s1"))
        run = await service.relearn.under_way()
        assert run is not None
        await service.distill.run("s1")

        await service.relearn._ended(run, upto)

        assert await listed(service) == [SECOND]
