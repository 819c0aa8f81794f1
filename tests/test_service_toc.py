"""The table of contents over real stores: built in steps, the same after a rebuild, without a word of what was erased."""

from __future__ import annotations

import asyncio
import json
import math
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.jobs.toc import TableOfContents
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.store import Queries
from scrubjay.store.contents import ALL
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType, Role
from scrubjay_shared.scoring import encode_vector, quantise
from service_calls import NOTHING, Opener, ingest, said

pytestmark = pytest.mark.anyio

DAY = 86_400_000
START = 1_768_176_000_000  # Monday, 12 January 2026, 00:00 UTC
TALK = [
    "How do we refresh JWT tokens without forcing a logout?",
    "We implemented a sliding window refresh for the JWT tokens.",
    "The OAuth2 callback URL was wrong, because the proxy changed the host.",
    "We decided to move the billing tables to PostgreSQL 17.",
    "The nightly export failed with a timeout after 30 seconds.",
    "Let us add a session timeout of 15 minutes to the configuration.",
    "thanks!",
]


def at(day: int, minute: int, words: str, session: str = "s1", **more: Any) -> EventDraft:
    return said(
        words, session, ts=Millis(START + day * DAY + minute * 60_000), dedupe_key=f"{session} {day} {minute}", **more
    )


async def weeks(service: Application, days: int = 21) -> None:
    """Some weeks of talk: a session a day, thirty turns each, with a break in the middle."""
    for day in range(days):
        turns = [
            at(
                day,
                n + (n > 14) * 60 + 540,
                TALK[(n + day) % len(TALK)],
                f"s{day}",
                role=Role.USER if n % 2 == 0 else Role.ASSISTANT,
                type=EventType.USER_MESSAGE if n % 2 == 0 else EventType.ASSISTANT_MESSAGE,
            )
            for n in range(30)
        ]
        await ingest(service, *turns, learn=False)


async def toc(service: Application, node: str | None = None, caller: Caller = PERSON, **more: Any) -> api.TocResponse:
    return await service.call(caller, "toc", api.TocRequest(id=node, **more))


def contents(q: Queries) -> dict[str, list[tuple[Any, ...]]]:
    """Return all that the table of contents holds, to the byte."""
    return {table: q.fetch(f"select * from {table} order by 1, 2, 3") for table in ("toc_segment", "toc_period")}


@pytest.mark.parametrize(("asked", "waits"), [(0.0, True), (math.inf, False)], ids=["without a pause", "never"])
async def test_each_step_waits_for_questions_but_not_for_ever(service: Application, asked: float, waits: bool) -> None:  # noqa: FBT001
    await weeks(service)
    policy = replace(DEFAULT, toc=replace(DEFAULT.toc, step_sessions=4, way_seconds=0.2))
    toc = TableOfContents(service.store, policy, asyncio.Event(), quiet_seconds=lambda: asked)
    began = time.monotonic()
    steps = await toc.run()

    assert steps > 3
    assert await toc.pending() == 0
    assert (time.monotonic() - began >= 0.2 * steps) is waits


async def test_it_goes_on_when_nobody_has_asked_for_a_moment(service: Application) -> None:
    await weeks(service)
    policy = replace(DEFAULT, toc=replace(DEFAULT.toc, way_seconds=600.0, asked_seconds=0.2))
    asked = time.monotonic()
    toc = TableOfContents(service.store, policy, asyncio.Event(), quiet_seconds=lambda: time.monotonic() - asked)

    assert await asyncio.wait_for(toc.run(), 60)
    assert time.monotonic() - asked >= 0.2


async def test_who_waits_for_it_does_not_wait_for_questions_to_end(service: Application) -> None:
    await weeks(service)
    policy = replace(DEFAULT, toc=replace(DEFAULT.toc, way_seconds=600.0))
    toc = TableOfContents(service.store, policy, asyncio.Event(), quiet_seconds=lambda: 0.0)

    assert await asyncio.wait_for(toc.finish(), 60)
    assert await toc.pending() == 0


async def test_the_walk_from_a_year_to_what_was_said(service: Application) -> None:
    await weeks(service)
    await service.toc.run()

    root = await toc(service)
    assert [node.title for node in root.children] == ["2026"]
    year = await toc(service, root.children[0].id)
    assert [node.title for node in year.children] == ["January 2026", "February 2026"]
    month = await toc(service, year.children[0].id)
    assert month.node.children == ("toc:week:2026-W03", "toc:week:2026-W04", "toc:week:2026-W05")
    week = await toc(service, month.children[0].id)
    assert next(node.title for node in week.children) == "Monday, 12 January 2026"
    assert week.node.summary.startswith("7 conversations, 210 events: ")
    day = await toc(service, week.children[3].id)
    assert (len(day.children), day.events) == (2, 30)
    segment = await toc(service, day.children[1].id)
    assert (segment.level, segment.session_id, segment.node.agents) == ("segment", "s3", ("test",))
    assert segment.node.bullets
    grip = await service.call(PERSON, "grip", api.GripRequest(id=segment.node.grip_ids[0], before=1, after=2))
    assert (grip.excerpt, grip.segment) == (segment.node.bullets[0], segment.node.id)
    assert len(grip.events) in {3, 4}
    page = api.EventsRequest(session_id="s3", since=segment.node.start, until=Millis(segment.node.end + 1))
    assert len((await service.call(PERSON, "events", page)).events) == segment.events == 15

    # up and sideways
    assert segment.parents == (day.node.id,)
    assert segment.previous == day.children[0].id
    assert segment.following is not None
    assert (day.parents, day.previous, day.following) == (
        (week.node.id,), "toc:day:2026-01-14", "toc:day:2026-01-16",
    )  # fmt: skip
    assert (week.parents, week.previous, week.following) == ((month.node.id,), None, "toc:week:2026-W04")
    assert (month.parents, month.following) == ((year.node.id,), "toc:month:2026-02")
    assert (year.parents, year.previous, year.following) == (("toc",), None, None)


async def test_every_passage_of_every_node_is_in_its_event_word_for_word(service: Application) -> None:
    await weeks(service, 8)
    await service.toc.run()

    told = 0
    waiting = ["toc"]
    while waiting:
        found = await toc(service, waiting.pop())
        waiting += [node.id for node in found.children]
        for node in (found.node, *found.children):
            assert len(node.bullets) == len(node.grip_ids)
            for bullet, grip_id in zip(node.bullets, node.grip_ids, strict=True):
                grip = await service.call(PERSON, "grip", api.GripRequest(id=grip_id, before=0, after=0))
                assert bullet == grip.excerpt == grip.events[0].text[grip.span_start : grip.span_end]
                told += 1
    assert told > 100


async def test_the_output_of_tools_and_words_of_strangers_stand_in_no_node(service: Application) -> None:
    tool = {"type": EventType.TOOL_RESULT, "role": Role.TOOL}
    await ingest(
        service,
        *(at(0, n, "The password of the vault is xyzzy and the zebra is striped.", **tool) for n in range(3)),
        at(0, 4, "The zebra was moved to the northern enclosure yesterday.", role=Role.TOOL, type=EventType.NOTE),
    )
    await service.toc.run()

    day = await toc(service, "toc:day:2026-01-12")

    assert (day.events, day.node.bullets, day.node.keywords) == (4, (), ())
    assert day.children[0].title == "4 events"
    stored = await service.store.read(contents)
    assert "zebra" not in json.dumps(stored)


async def test_a_day_is_the_persons_day(service: Application) -> None:
    late = 23 * 60 + 30
    await ingest(service, at(0, late, TALK[0]), at(0, late + 10, TALK[1], utc_offset=120), at(1, 5, TALK[2]))
    await service.toc.run()

    week = await toc(service, "toc:week:2026-W03")

    assert {node.id: node.summary.split(":")[0] for node in week.children} == {
        "toc:day:2026-01-12": "1 conversation, 1 event",
        "toc:day:2026-01-13": "2 events",
    }


# What callers see


CROW = Caller(principal=Principal.AGENT, agent="crow", project="nest", session_id="crow session")


async def test_an_agent_sees_of_every_node_only_what_it_may(service: Application) -> None:
    own = "The nest needs forty twigs of willow before October."
    others = "The burrow has a secret tunnel to the quarry."
    elsewhere = "The pond freezes over in the second week of January."
    mine = "The hollow oak was given up because of the owls."
    await ingest(
        service,
        at(0, 540, own, "a", project="nest"),
        at(0, 560, others, "b", project="burrow"),
        at(0, 580, elsewhere, "c"),
        at(8, 540, mine, "crow session", project="burrow"),
        at(40, 540, others, "d", project="burrow"),
    )
    await service.toc.run()

    async def told(caller: Caller, **more: Any) -> set[str]:
        found: set[str] = set()
        waiting = ["toc"]
        while waiting:
            answer = await toc(service, waiting.pop(), caller, **more)
            waiting += [node.id for node in answer.children]
            for node in (answer.node, *answer.children):
                found |= {*node.bullets, node.title}
                assert not ("quarry" in node.keywords and caller is not PERSON)
        return found & {own, others, elsewhere, mine}

    assert await told(PERSON) == {own, others, elsewhere, mine}
    assert await told(PERSON, project="nest") == {own, elsewhere}
    assert await told(PERSON, session_id="crow session") == {elsewhere, mine}
    assert await told(CROW) == {own, elsewhere, mine}
    assert await told(Caller(principal=Principal.AGENT, agent="crow")) == {elsewhere}

    root = await toc(service, caller=CROW)
    assert (root.events, root.segments, [node.id for node in root.children]) == (3, 3, ["toc:year:2026"])
    for level, nodes in (("day", 2), ("week", 2), ("month", 1), ("year", 1), ("segment", 3)):
        line = await service.call(CROW, "timeline", api.TimelineRequest(level=level))
        assert len(line.nodes) == nodes, level
    day = await toc(service, "toc:day:2026-01-12", CROW)
    assert (day.following, (await toc(service, "toc:day:2026-01-20", CROW)).following) == ("toc:day:2026-01-20", None)

    hidden = (await toc(service, "toc:day:2026-02-21")).children[0]
    for node in (hidden.id, "toc:day:2026-02-21", "toc:month:2026-02"):
        with pytest.raises(NotFoundError):
            await toc(service, node, CROW)
    with pytest.raises(NotFoundError):
        await service.call(CROW, "grip", api.GripRequest(id=hidden.grip_ids[0]))
    with pytest.raises(DeniedError):
        await toc(service, "toc", CROW, project="burrow")


# Built in steps, rebuilt, erased


async def test_a_rebuild_gives_the_same_tree_to_the_byte(service: Application) -> None:
    await weeks(service)
    await service.toc.run()
    before = await service.store.read(contents)

    await service.call(PERSON, "rebuild", api.RebuildRequest())

    assert await service.store.read(contents) == before
    assert not await service.store.read(lambda q: q.toc.is_stale())


@asynccontextmanager
async def fresh_service() -> AsyncIterator[Application]:
    with tempfile.TemporaryDirectory() as folder:
        service = await Application.open(Path(folder) / "m.db", models_dir=Path(folder), model="none")
        try:
            yield service
        finally:
            await service.close()


@settings(max_examples=6)
@given(st.integers(0, 2**32))
async def test_whatever_came_and_went_in_whatever_order_the_tree_is_that_of_a_rebuild(seed: int) -> None:
    await come_and_go(seed)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.integers(0, 2**32))
async def test_however_often_that_is_tried(seed: int) -> None:
    await come_and_go(seed)


async def come_and_go(seed: int) -> None:
    """Add, forget and embed at random, building now and then; compare what that gives with what a rebuild does."""
    draw = random.Random(seed)
    async with fresh_service() as service:
        ids: list[str] = []
        gone: set[str] = set()
        space = await service.store.write(lambda tx: tx.vectors.enter_space("a space"))
        for _n in range(draw.randrange(1, 12)):
            what = draw.random()
            if what < 0.6 or not ids:
                drafts = [
                    at(
                        draw.randrange(3), draw.choice([10, 1430]) + draw.randrange(12), draw.choice(TALK),
                        f"s{draw.randrange(2)}", project=draw.choice([None, None, "p"]),
                        utc_offset=draw.choice([0, 0, 60]),
                    )
                    for _ in range(draw.choice([1, 5, 60]))
                ]  # fmt: skip
                came = (await ingest(service, *drafts, learn=False)).ids
                ids += dict.fromkeys(each for each in came if each and each not in {*ids, *gone})
            elif what < 0.75:
                gone.add(forgotten := ids.pop(draw.randrange(len(ids))))  # what comes with its key again has its id
                await service.call(PERSON, "forget", api.ForgetRequest(ref=forgotten))
            else:
                some = draw.sample(ids, min(len(ids), 40))
                rows, scales = quantise(np.array([np.eye(4)[draw.randrange(4)] for _ in some], np.float32))
                vectors = [(each, "0", encode_vector(*pair)) for each, *pair in zip(some, rows, scales, strict=True)]
                await service.store.write(lambda tx, vectors=vectors: tx.vectors.put(space, vectors))  # type: ignore[misc]
            if draw.random() < 0.6:
                await service.toc.run()
        await service.store.write(lambda tx: tx.vectors.queue.refill(None) or tx.vectors.queue.enter(space))
        await _build_all(service)
        before = await service.store.read(contents)

        await service.store.write(lambda tx: tx.projections.contents.empty())
        await _build_all(service)

        assert await service.store.read(contents) == before
        assert await service.store.read(tiled)


async def _build_all(service: Application) -> None:
    """Build also what waits for vectors that no model will make."""
    await service.store.write(lambda tx: tx.projections.contents._run("update toc_stale set said = 1"))
    await service.toc.run()


def tiled(q: Queries) -> bool:
    """Say whether every event that is there lies in exactly one segment, and in one place in time with the others."""
    sums = q.fetch(
        "select (select count(*) from event where not forgotten), (select coalesce(sum(outline ->> 2), 0) from toc_segment)"
    )[0]
    held = {
        event_id: q.toc.segments_of_events([event_id])[event_id].id
        for (event_id,) in q.fetch("select id from event where not forgotten")
    }
    inside = all(
        each in {event.id for event in q.events.run(segment.id, segment.last, chars=1)}
        for each, found in held.items()
        for segment in [q.toc.segments([found])[found]]
    )
    return sums[0] == sums[1] and inside


async def test_what_was_forgotten_stands_in_no_node_at_once_and_after(service: Application, store_path: Path) -> None:
    word = "Schnurrbert"
    ids = (
        await ingest(
            service,
            at(0, 540, "The export of the billing tables failed again."),
            at(0, 541, f"{word} the cat was vaccinated by Doctor Marlow in spring."),
            at(0, 542, "We moved the billing tables to PostgreSQL 17."),
            learn=False,
        )
    ).ids
    await service.toc.run()
    assert word.lower() in json.dumps(await service.store.read(contents)).lower()

    await service.call(PERSON, "forget", api.ForgetRequest(ref=ids[1]))

    at_once = json.dumps(await service.store.read(contents))
    await service.toc.run()
    after = json.dumps(await service.store.read(contents))
    day = await toc(service, "toc:day:2026-01-12")
    assert word.lower() not in (at_once + after).lower()
    assert (day.events, "billing" in day.node.keywords) == (2, True)
    await service.store.checkpoint(truncate=True)
    for path in store_path.parent.rglob("*"):
        assert path.is_dir() or word.lower().encode() not in path.read_bytes().lower(), path.name


async def test_a_passage_that_was_erased_with_a_memory_is_gone_from_the_nodes(service: Application) -> None:
    await ingest(service, at(0, 540, "I prefer oolong tea to coffee in the morning. The deploy to Oslo failed twice."))
    await service.call(PERSON, "settle", api.SettleRequest())
    memory = (await service.call(PERSON, "list", api.ListRequest())).entries[0].memory
    assert any("oolong" in bullet for bullet in (await toc(service, "toc:day:2026-01-12")).node.bullets)

    await service.call(PERSON, "forget", api.ForgetRequest(ref=memory.id))
    await service.toc.run()

    day = await toc(service, "toc:day:2026-01-12")
    assert "oolong" not in json.dumps(await service.store.read(contents))
    assert day.node.bullets == ("The deploy to Oslo failed twice.",)


async def test_the_grip_of_a_memory_is_shown_with_what_was_said_around_it(service: Application) -> None:
    await ingest(
        service,
        at(0, 1, "Good morning to you."),
        at(0, 2, "I prefer oolong tea to coffee in the morning."),
        at(0, 3, "Noted.", type=EventType.ASSISTANT_MESSAGE),
    )
    await service.call(PERSON, "settle", api.SettleRequest())
    memory = (await service.call(PERSON, "list", api.ListRequest())).entries[0].memory
    why = await service.call(PERSON, "why", api.RefRequest(ref=memory.id))

    found = await service.call(PERSON, "grip", api.GripRequest(id=why.sources[0].grip.id, before=5, after=5))

    assert (found.memory_id, len(found.events)) == (memory.id, 3)
    assert found.excerpt == found.events[1].text[found.span_start : found.span_end]
    assert found.segment is not None


async def test_a_session_that_grows_while_it_is_cut_is_cut_to_its_end(service: Application) -> None:
    count = DEFAULT.toc.step_events * 2 + 30
    for start in range(0, count, 500):
        drafts = [at(0, n, TALK[n % len(TALK)]) for n in range(start, min(start + 500, count))]
        await ingest(service, *drafts, learn=False)
        await service.store.write(lambda tx: tx.toc.start_anew())
        step = await service.store.read(lambda q: q.toc.stale_session("s1"))
        assert step is not None
    await service.toc.run()

    root = await toc(service)
    assert root.events == count
    assert await service.store.read(tiled)


async def test_the_timeline_shows_what_lies_between_two_times(service: Application) -> None:
    await weeks(service)
    await service.toc.run()

    async def line(**more: Any) -> api.TimelineResponse:
        return await service.call(PERSON, "timeline", api.TimelineRequest(**more))

    def day(n: int) -> Millis:
        return Millis(START + n * DAY)

    assert [node.id for node in (await line(since=day(3), until=day(6))).nodes] == [
        f"toc:day:2026-01-{n}" for n in (15, 16, 17)
    ]
    assert ((await line(since=day(3), until=day(4))).level, (await line()).level) == ("segment", "day")
    assert [(await line(since=day(-n), until=day(9))).level for n in (40, 300, 2_000)] == ["week", "month", "year"]
    first = await line(level="segment", limit=40)
    rest = await line(level="segment", limit=40, cursor=first.next)
    assert (len(first.nodes), len(rest.nodes), rest.next) == (40, 2, None)
    assert sorted({node.start for node in (*first.nodes, *rest.nodes)}) == [
        node.start for node in (*first.nodes, *rest.nodes)
    ]
    with pytest.raises(InvalidError, match="is not a level"):
        await line(level="fortnight")


async def test_a_store_of_an_earlier_version_gets_its_table_in_the_background(opened: Opener) -> None:
    async with opened() as service:
        await weeks(service)
        await service.toc.run()
        before = await service.store.read(contents)
        await service.store.write(lambda tx: tx.set_meta("toc_made_by", "0"))
    async with opened() as service:
        assert await service.toc.due()
        await service.toc.run()
        assert await service.store.read(contents) == before
        assert not await service.toc.due()
        assert (await service.call(PERSON, "status", NOTHING)).warnings is not None


async def test_what_is_not_there_is_said(service: Application) -> None:
    empty = await toc(service)
    assert (empty.node.children, empty.events, empty.node.title) == ((), 0, "Everything")
    assert (await service.call(PERSON, "timeline", api.TimelineRequest())).nodes == ()
    for node in ("toc:year:2020", "toc:segment:" + "0" * 26):
        with pytest.raises(NotFoundError, match="nothing was said"):
            await toc(service, node)
    for grip in ("grip:" + "0" * 26 + ":0-5", "nonsense", "0" * 26):
        with pytest.raises(NotFoundError, match="no passage"):
            await service.call(PERSON, "grip", api.GripRequest(id=grip))
    with pytest.raises(InvalidError, match="between 0 and 50"):
        await service.call(PERSON, "grip", api.GripRequest(id="x", before=51))


async def test_what_is_left_of_a_session_stands_when_an_import_is_taken_back_event_by_event(
    service: Application,
) -> None:
    await weeks(service, 2)
    ids = (await ingest(service, *(at(1, n + 700, TALK[n % 7], "s1") for n in range(20)), learn=False)).ids
    await service.toc.run()
    kept = await toc(service, "toc:day:2026-01-12")

    for each in ids[:6]:
        await service.call(PERSON, "forget", api.ForgetRequest(ref=each))
        held = await service.store.read(lambda q: q.fetch("select count(*) from toc_segment where session_id = 's1'"))
        assert held == [(2,)], "only the segment that held them is gone until it is cut again"
    await service.toc.run()

    assert (await toc(service, "toc:day:2026-01-13")).events == 30 + 14
    assert (await toc(service, "toc:day:2026-01-12")).node == kept.node


async def test_nobodys_project_stands_for_all_of_them(service: Application) -> None:
    await ingest(service, at(0, 540, "The burrow has a secret tunnel to the quarry.", "b", project="burrow"))
    await service.toc.run()

    sly = Caller(principal=Principal.AGENT, agent="crow", project=ALL)

    assert (await toc(service, caller=sly)).events == 0
    assert (await toc(service)).events == 1
