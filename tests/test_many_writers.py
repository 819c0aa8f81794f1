"""Many processes at one daemon: nothing is refused, lost or doubled, and readers are not kept waiting.

`SCRUBJAY_WRITERS_EVENTS` says how many events each of the 16 writers sends (50 unless told; 500 before a release).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay import settings as options
from scrubjay.api.caller import PERSON
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.service.application import Application
from scrubjay.settings import Settings
from scrubjay.store import check
from scrubjay.transports.client import discover
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft

Opener = Callable[..., AbstractAsyncContextManager[Application]]
WRITERS = 16
EVENTS = int(os.environ.get("SCRUBJAY_WRITERS_EVENTS", "50"))

WRITER = """
import pathlib, sys
from scrubjay.transports.client import discover

client = discover(pathlib.Path(sys.argv[1]))
who, count = int(sys.argv[2]), int(sys.argv[3])
for n in range(count):
    text = f"writer {who} says that I prefer tea number {n}."
    event = dict(agent="t", session_id=f"w{who % 3}", type="user_message", text=text, dedupe_key=f"{who}/{n}")
    answer = client.call("POST", "/v1/events", {"events": [event]})
    assert (answer["accepted"], answer["duplicates"]) == (1, 0), answer
    if n % 10 == 0:  # delivered once more, as agents do
        answer = client.call("POST", "/v1/events", {"events": [event]})
        assert (answer["accepted"], answer["duplicates"]) == (0, 1), answer
"""
READER = """
import pathlib, sys, time
from scrubjay.transports.client import discover

client = discover(pathlib.Path(sys.argv[1]))
took = []
while not pathlib.Path(sys.argv[2]).exists():
    for method, path, body, query in (
        ("POST", "/v1/recall", {"query": "tea number 7"}, None),
        ("GET", "/v1/memories", None, {"limit": 20}),
        ("GET", "/v1/events", None, {"limit": 20}),
    ):
        began = time.perf_counter()
        client.call(method, path, body, query=query)
        took.append((time.perf_counter() - began) * 1000)
    time.sleep(0.02)
took.sort()
print(len(took), round(took[len(took) // 2], 1), round(took[int(len(took) * 0.99)], 1))
"""


@pytest.fixture
def chosen(tmp_path: Path) -> Iterator[Settings]:
    named = {"SCRUBJAY_HOME": str(tmp_path / "home"), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"}
    loaded = options.load(environ=named)
    yield loaded
    control.stop(loaded)


@pytest.mark.slow
def test_sixteen_processes_and_their_readers_lose_and_double_nothing(chosen: Settings, tmp_path: Path) -> None:
    control.start(chosen, policy=DaemonPolicy(start_seconds=90.0))
    done = tmp_path / "done"
    folder = str(chosen.data_dir)
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, folder, str(done)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    began = time.monotonic()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, folder, str(who), str(EVENTS)]) for who in range(WRITERS)
    ]
    codes = [writer.wait() for writer in writers]
    seconds = time.monotonic() - began
    done.touch()
    figures = [reader.communicate()[0].split() for reader in readers]

    assert codes == [0] * WRITERS
    assert [reader.returncode for reader in readers] == [0, 0]
    client = discover(chosen.data_dir)
    assert client is not None
    texts: Counter[str] = Counter()
    with client:
        cursor: str | None = None
        while True:
            page = client.call("GET", "/v1/events", query={"limit": 500, "cursor": cursor})
            texts.update(each["text"] for each in page["events"])
            if (cursor := page["next"]) is None:
                break
    control.stop(chosen)
    wanted = {f"writer {who} says that I prefer tea number {n}." for who in range(WRITERS) for n in range(EVENTS)}
    assert set(texts) == wanted
    assert set(texts.values()) == {1}
    assert check(chosen.store_path) == []
    sys.stdout.write(
        f"\n{WRITERS} writers x {EVENTS} events: {seconds:.1f} s, {WRITERS * EVENTS / seconds:.0f} events/s;"
        f" reads (count, p50 ms, p99 ms): {figures}\n"
    )


@pytest.mark.anyio
async def test_many_tasks_of_one_process_lose_and_double_nothing(opened: Opener) -> None:
    async def write(service: Application, who: int) -> None:
        for n in range(12):
            draft = EventDraft(
                agent="t", session_id="s", type=EventType.USER_MESSAGE, text=f"{who}/{n}", dedupe_key=f"{who}/{n}"
            )
            await service.call(PERSON, "ingest", api.IngestRequest(events=(draft, draft)))
            await service.call(PERSON, "add", MemoryDraft(content=f"memory {who}/{n}", name=f"{who}/{n}"))
            if n % 4 == 3:
                await service.call(PERSON, "forget", api.ForgetRequest(ref=f"{who}/{n}"))

    async def read(service: Application) -> None:
        for _ in range(20):
            await service.call(PERSON, "recall", api.RecallRequest(query="memory"))
            await service.call(PERSON, "list", api.ListRequest())

    async with opened() as service:
        await asyncio.gather(*(write(service, who) for who in range(16)), *(read(service) for _ in range(4)))
        stats = await service.call(PERSON, "stats", api.Nothing())
        seqs = [row[0] for row in await service.store.read(lambda q: q.fetch("select seq from op order by seq"))]
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())

    assert (stats.events, stats.memories) == (16 * 12, 16 * 9)
    assert seqs == list(range(1, len(seqs) + 1))
    assert rebuilt.before == rebuilt.after
