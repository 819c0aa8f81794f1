"""Compaction: an archive stands for a session's beginning, a marker says where it ends, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli_shell import EVENTS, Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.compaction import markers, requests
from scrubjay.compaction.markers import Place
from scrubjay.service.application import Application
from scrubjay.store import check
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import Event, EventDraft, EventType, Kind, Role, Scope, Trust
from service_calls import Opener, get, ingest, said

pytestmark = pytest.mark.anyio

MINUTE = 60_000
START = 1_790_000_000_000


async def compact(service: Application, session: str = "s1", caller: Caller = PERSON, **more: Any) -> Any:
    return await service.call(caller, "compact", api.CompactRequest(session_id=session, **more))


async def replay(service: Application, session: str = "s1", caller: Caller = PERSON, **more: Any) -> Any:
    return await service.call(caller, "replay", api.ReplayRequest(session_id=session, **more))


async def whole(service: Application, session: str = "s1", **more: Any) -> list[str]:
    """Return the texts of all pages of a replay."""
    texts: list[str] = []
    cursor = None
    while True:
        page = await replay(service, session, limit=3, cursor=cursor, **more)
        texts += [event.text for event in page.events]
        cursor = page.next
        if cursor is None:
            return texts


def turns(*texts: str, session: str = "s1", after: int = 0, **more: Any) -> list[EventDraft]:
    return [said(text, session, ts=START + (after + n) * MINUTE, **more) for n, text in enumerate(texts)]


async def test_an_archive_and_a_marker_stand_for_what_came_before(service: Application) -> None:
    ids = (await ingest(service, *turns("We decided to use PostgreSQL 16 for the shop.", "And Redis?", "Later."))).ids

    answer = await compact(service, upto=ids[1])

    memory = answer.archive.memory
    assert (memory.kind, memory.scope, memory.resource_id) == (Kind.ARCHIVE, Scope.SESSION, "s1")
    assert memory.name == "archive/s1/1"
    assert "We decided to use PostgreSQL 16 for the shop." in memory.content
    assert "Later." not in memory.content
    assert (answer.events, answer.created) == (2, True)
    assert (answer.marker.type, answer.marker.session_id) == (EventType.COMPACTION, "s1")
    assert answer.marker.metadata["archive_name"] == "archive/s1/1"
    assert answer.marker.metadata["archived_at"] == answer.marker.ts
    replayed = await replay(service)
    assert [event.text for event in replayed.events] == ["Later."]
    assert (replayed.archive_name, replayed.archive_text) == ("archive/s1/1", memory.content)
    assert replayed.archived_at == answer.marker.ts


async def test_every_line_of_an_archive_is_a_passage_of_its_events(service: Application) -> None:
    await ingest(
        service,
        *turns(
            "Please fix the login page of the shop. It is slow.",
            "We decided to cache sessions in Redis.",
            "The root cause was a missing index on the carts table.",
        ),
    )
    archive = (await compact(service)).archive.memory

    why = await service.call(PERSON, "why", api.RefRequest(ref=archive.id))

    lines = [line for line in archive.content.splitlines() if line.startswith("- ")]
    excerpts = [source.grip.excerpt for source in why.sources]
    assert len(lines) == len(excerpts) > 2
    for line in lines:
        assert any(line.endswith(": " + " ".join(excerpt.split())) for excerpt in excerpts), line
    texts = {event.id: event.text for event in (await replay(service, archive="archive/s1/1")).events}
    for source in why.sources:
        grip = source.grip
        assert texts[grip.event_id_start][grip.span_start : grip.span_end] == grip.excerpt


async def test_archives_are_found_by_search_by_name_and_by_kind(service: Application) -> None:
    await ingest(service, *turns("We decided to paint the zebra crossing orange.", "Thanks."))
    archive = (await compact(service)).archive.memory

    hits = (await service.call(PERSON, "recall", api.RecallRequest(query="zebra crossing", kinds=("memory",)))).hits
    listed = (await service.call(PERSON, "list", api.ListRequest(kind=Kind.ARCHIVE))).entries

    assert archive.id in {hit.id for hit in hits}
    assert [entry.memory.id for entry in listed] == [archive.id]
    assert (await get(service, "archive/s1/1")).memory.id == archive.id


async def test_compacting_once_more_without_new_events_changes_nothing(service: Application) -> None:
    await ingest(service, *turns("One thing.", "Another thing."))
    first = await compact(service)

    again = await compact(service)

    assert (again.created, again.archive.memory.id, again.marker) == (False, first.archive.memory.id, first.marker)
    assert (await replay(service)).archives == ("archive/s1/1",)


@pytest.mark.parametrize("kind", ["unknown session", "unknown event", "event of another session", "earlier event"])
async def test_what_cannot_be_compacted_is_said(service: Application, kind: str) -> None:
    ids = (await ingest(service, *turns("One.", "Two."), *turns("Three.", session="s2"))).ids
    await compact(service, upto=ids[1])

    session, upto, error, words = {
        "unknown session": ("nowhere", None, NotFoundError, "there is no session 'nowhere'"),
        "unknown event": ("s1", "01KX", NotFoundError, "session s1 has no event '01KX'"),
        "event of another session": ("s1", ids[2], NotFoundError, "session s1 has no event"),
        "earlier event": ("s1", ids[0], InvalidError, "compacted beyond that event already, into archive/s1/1"),
    }[kind]
    with pytest.raises(error, match=words):
        await compact(service, session, upto=upto)
    with pytest.raises(NotFoundError, match="no archive 'archive/s9/1'"):
        await replay(service, archive="archive/s9/1")


async def test_compactions_at_the_same_moment_make_one_archive(service: Application) -> None:
    await ingest(service, *turns("One.", "Two."))

    answers = await asyncio.gather(*(compact(service) for _ in range(4)))

    assert sum(answer.created for answer in answers) == 1
    assert len({answer.archive.memory.id for answer in answers}) == 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("say"), st.integers(1, 4)),
            st.tuples(st.just("compact"), st.just(0)),
            st.tuples(st.just("upto"), st.integers(1, 3)),
            st.tuples(st.just("late"), st.integers(1, 6)),
        ),
        max_size=12,
    )
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_archives_and_replay_together_are_the_whole_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Whatever is said and compacted in whatever order; `late` is said at a time that lies before, as by another device."""

    async def check_it() -> None:
        folder = tmp_path_factory.mktemp("compaction")
        service = await Application.open(folder / "memory.db", models_dir=folder, model="none")
        try:
            history: list[tuple[int, str]] = []
            boundary = -1
            count = 0
            await ingest(service, *turns("begin"))
            history.append((START, "begin"))
            at = 1
            for step, number in steps:
                if step == "say":
                    for _ in range(number):
                        text = f"turn {at}"
                        await ingest(service, *turns(text, after=at))
                        history.append((START + at * MINUTE, text))
                        at += 1
                elif step == "late":
                    text = f"late {len(history)}"
                    moment = START + max(at - number, 0) * MINUTE + 1 + len(history)
                    await ingest(service, said(text, ts=moment))
                    history.append((moment, text))
                else:
                    left = (await replay(service, limit=500)).events
                    upto = left[max(len(left) - number, 0) - 1] if step == "upto" and len(left) > number else None
                    if left:
                        answer = await compact(service, upto=None if upto is None else upto.id)
                        assert answer.created
                        count += 1
                        boundary = max(boundary, (upto or left[-1]).ts)
            history.sort()
            replayed = await replay(service, limit=500)
            assert len(replayed.archives) == count
            assert [event.text for event in replayed.events] == [text for ts, text in history if ts > boundary]
            parts = [await whole(service, archive=name) for name in replayed.archives]
            assert [text for part in [*parts, await whole(service)] for text in part] == [text for _, text in history]
        finally:
            await service.close()

    asyncio.run(check_it())


# What hosts send

HOOKS = [
    ("claude-code", "before", "", 0),
    ("claude-code", "after", "We kept the cart store on SQLite WAL.", 1),
    ("codex", "before", "", 0),
    ("codex", "after", "", 1),
    ("opencode", "after", "", 1),
    ("cursor", "before", "", 1),
    ("copilot", "before", "", 1),
    ("gemini", "during", "", 0),
]


@pytest.mark.parametrize(("host", "phase", "summary", "archives"), HOOKS)
async def test_a_compaction_that_a_host_tells_of_makes_an_archive(
    service: Application, host: str, phase: str, summary: str, archives: int
) -> None:
    told = EventDraft(
        agent=host,
        session_id="s1",
        type=EventType.COMPACTION,
        role=Role.SYSTEM,
        text=summary,
        ts=START + 5 * MINUTE,
        metadata={"phase": phase, "trigger": "auto"},
        trust=Trust.AGENT,
    )
    await ingest(service, *turns("We decided to use SQLite.", agent=host), told)
    await service.call(PERSON, "settle", api.SettleRequest())
    await ingest(service, *turns("And then?", after=9, agent=host))
    await service.call(PERSON, "settle", api.SettleRequest())

    replayed = await replay(service)

    assert len(replayed.archives) == archives
    assert replayed.events[-1].text == "And then?"
    assert len(replayed.events) == (1 if archives else 3)
    if summary:
        assert summary in replayed.archive_text
        assert (await get(service, "archive/s1/1")).memory.trust is Trust.AGENT
    elif archives:
        assert "We decided to use SQLite." in replayed.archive_text


async def test_the_real_payloads_of_a_compaction_make_one_archive_of_what_the_host_kept(service: Application) -> None:
    lines = (Path(__file__).parent / "fixtures" / "host_payloads.jsonl").read_text(encoding="utf-8").splitlines()
    recorded = [json.loads(line) for line in lines]
    session = next(one["payload"]["session_id"] for one in recorded if one["event"] == "PostCompact")
    told = [
        one["payload"]
        for one in recorded
        if one["host"].startswith("claude") and one["payload"]["session_id"] == session
    ]
    hook = Caller(principal=Principal.HOST)
    for payload in told:
        data = json.dumps(payload).encode()
        await service.call(hook, "hook", api.HookRequest(host="claude-code", data=data, project=payload["cwd"]))
    await service.call(PERSON, "settle", api.SettleRequest())

    replayed = await replay(service, session)

    assert len(replayed.archives) == 1
    assert "We decided to keep the cart store on SQLite WAL." in replayed.archive_text
    after = [payload["hook_event_name"] for payload in told]
    assert len(replayed.events) <= len(after) - after.index("PostCompact")
    archived = await replay(service, session, archive=replayed.archive_name)
    assert [event.type for event in archived.events].count(EventType.COMPACTION) == 2


async def test_a_request_that_a_crash_left_is_carried_out_by_the_next_process_once(opened: Opener) -> None:
    told = EventDraft(
        agent="codex", session_id="s1", type=EventType.COMPACTION, metadata={"phase": "after"}, ts=START + 9 * MINUTE
    )
    async with opened() as service:
        await ingest(service, *turns("One.", "Two."), told)
    for _ in range(2):
        async with opened() as service:
            await service.call(PERSON, "run_job", api.JobRequest(name="compact"))
            assert (await replay(service)).archives == ("archive/s1/1",)


def test_a_marker_that_an_agent_made_up_is_read_as_far_as_it_is_one() -> None:
    def event(**metadata: Any) -> Event:
        return Event(
            id="m", device="d", agent="a", session_id="s", type=EventType.COMPACTION, role=Role.SYSTEM, text="",
            ts=5, dedupe_key="k", metadata=metadata,  # type: ignore[arg-type]
        )  # fmt: skip

    good = markers.metadata_of(archive_name="a", archived_at=7, upto=Place(3, 4, "e"), events=2)  # type: ignore[arg-type]
    assert markers.marker_of(event(**good), 1) is not None
    for changes in ({"archive_name": 3}, {"archive_name": ""}, {"upto": None}, {"upto_ts": "3"}, {"upto_seq": -1},
                    {"archived_at": True}, {"upto_ts": 1 << 70}):  # fmt: skip
        assert markers.marker_of(event(**good | changes), 1) is None
    assert not requests.asks(event(**good))
    assert not requests.asks(event())


# Whose it is

OWN = Caller(principal=Principal.AGENT, agent="codex", project="own", session_id="s1")
SAME_PROJECT = Caller(principal=Principal.AGENT, agent="codex", project="own")
OTHER = Caller(principal=Principal.AGENT, agent="codex", project="other")


async def test_own_found_others_absent_shared_found(service: Application) -> None:
    await ingest(service, *turns("The quagga is blue.", "Yes.", project="own"), *turns("Hello.", session="s2"))
    archive = (await compact(service, caller=OWN)).archive.memory

    assert (archive.scope, archive.resource_id, archive.trust) == (Scope.PROJECT, "own", Trust.AGENT)
    for caller in (OWN, SAME_PROJECT, PERSON):
        assert "quagga" in (await replay(service, caller=caller)).archive_text
        assert (await get_as(service, caller, archive.id)).memory.id == archive.id
    for call in (replay(service, caller=OTHER), compact(service, caller=OTHER), get_as(service, OTHER, archive.id)):
        with pytest.raises(NotFoundError):
            await call
    assert (await replay(service, "s2", OTHER)).events[0].text == "Hello."


async def get_as(service: Application, caller: Caller, ref: str) -> api.Entry:
    entry: api.Entry = await service.call(caller, "get", api.RefRequest(ref=ref))
    return entry


async def test_a_marker_that_names_anothers_memory_shows_nothing_of_it(service: Application) -> None:
    await ingest(service, *turns("The quagga is blue.", project="other", session="s9"))
    theirs = (await compact(service, "s9")).archive.memory
    await ingest(service, *turns("Mine.", "Still mine.", project="own"))
    ids = [event.id for event in (await replay(service)).events]
    forged = markers.metadata_of(archive_name=theirs.name, archived_at=START, upto=Place(START, 1, ids[0]), events=1)  # type: ignore[arg-type]
    await service.call(
        OWN,
        "ingest",
        api.IngestRequest(events=(said("", type=EventType.COMPACTION, project="own", metadata=forged),)),
    )

    for caller in (OWN, PERSON):
        answer = await replay(service, caller=caller)
        assert answer.archive_name == theirs.name
        assert answer.archive_text is None


async def test_an_agent_compacts_no_session_but_its_own(service: Application) -> None:
    await ingest(service, *turns("One.", project="own", session="s2"))

    with pytest.raises(DeniedError, match="not the caller's own session"):
        await compact(service, "s2", OWN)


async def test_what_several_projects_said_belongs_to_the_session_alone(service: Application) -> None:
    await ingest(service, *turns("Of one.", project="own"), *turns("Of the other.", project="other", after=5))

    archive = (await compact(service)).archive.memory

    assert (archive.scope, archive.resource_id) == (Scope.SESSION, "s1")
    with pytest.raises(NotFoundError):
        await get_as(service, SAME_PROJECT, archive.id)


# Never rewritten, but for forgetting


async def test_an_archive_is_not_rewritten(service: Application) -> None:
    await ingest(service, *turns("One.", "Two."))
    await compact(service)

    with pytest.raises(ConflictError, match="archives are not rewritten"):
        await service.call(PERSON, "update", api.UpdateRequest(ref="archive/s1/1", content="another text"))

    await service.call(PERSON, "rename", api.RenameRequest(ref="archive/s1/1", name="the first talk"))
    assert (await get(service, "archive/s1/1")).memory.name == "the first talk"


@pytest.mark.parametrize("what", ["event", "memory"])
async def test_forgetting_erases_the_words_from_the_archive_too(
    service: Application, store_path: Path, what: str
) -> None:
    secret = "I prefer quvexzoldrun gondolas to ferries in the morning."
    ids = (await ingest(service, *turns("We decided to use SQLite.", secret, "Good."))).ids
    await service.call(PERSON, "settle", api.SettleRequest())
    before = await compact(service)
    assert "quvexzoldrun" in before.archive.memory.content
    learned = [
        entry.memory.id
        for entry in (await service.call(PERSON, "list", api.ListRequest(kind=Kind.OBSERVATION))).entries
        if "quvexzoldrun" in entry.memory.content
    ]

    await service.call(PERSON, "forget", api.ForgetRequest(ref=ids[1] if what == "event" else learned[0]))

    after = (await get(service, "archive/s1/1")).memory
    assert "quvexzoldrun" not in after.content
    assert "We decided to use SQLite." in after.content
    assert after.created_at == before.archive.memory.created_at
    assert (await replay(service)).archive_text == after.content
    await service.store.checkpoint(truncate=True)
    assert [
        path.name for path in store_path.parent.iterdir() if path.is_file() and b"vexzoldrun" in path.read_bytes()
    ] == []
    assert check(store_path) == []


async def test_a_forgotten_marker_gives_the_history_back(service: Application) -> None:
    await ingest(service, *turns("One.", "Two."))
    marker = (await compact(service)).marker

    await service.call(PERSON, "forget", api.ForgetRequest(ref=marker.id))

    assert [event.text for event in (await replay(service)).events] == ["One.", "Two."]


async def test_a_rebuild_and_a_restored_export_replay_alike(opened: Opener, tmp_path: Path) -> None:
    async with opened() as service:
        await ingest(service, *turns("We decided to use SQLite.", "Two.", "Three."))
        ids = [event.id for event in (await replay(service)).events]
        await compact(service, upto=ids[0])
        await compact(service, upto=ids[1])
        before = await replay(service)
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert await replay(service) == before
        lines = [line async for line in service.stream(PERSON, "export", api.Nothing())]
    async with opened(path=tmp_path / "other.db") as service:
        request = api.ImportRequest(name="all.jsonl", data=b"\n".join(lines), restore=True)
        await service.call(PERSON, "import", request)
        after = await replay(service)
        assert [event.text for event in after.events] == ["Three."]
        assert (after.archives, after.archive_text) == (before.archives, before.archive_text)


def test_the_commands_compact_and_replay(shell: Shell) -> None:
    shell.json("ingest", stdin=EVENTS)

    made = shell.json("compact", "s")
    assert made["events"] == 3
    assert shell.json("replay", "s")["events"] == []
    assert shell.json("replay", "s", "--archive", "archive/s/1", "-n", "2")["next"]
    code, error = shell.error("compact", "nowhere")
    assert (code, error["code"]) == (3, "not_found")
