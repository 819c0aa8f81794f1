"""Several accounts in one home: what goes to which store, and that nothing of one is in a byte of another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import accounts, api, settings, spool
from scrubjay.accounts import MAIN, Accounts
from scrubjay.api.caller import HOST, PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay.spool import Report
from scrubjay.transports.client import Running, require_same_version
from scrubjay.transports.http.app import create_app
from scrubjay.version import __version__
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, NotFoundError, UnavailableError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, Role, Scope

pytestmark = pytest.mark.anyio

WORK = "github.com/acme/shop"
PRIVATE = "github.com/ana/garden"


def chosen(home: Path, account: str | None = None) -> settings.Settings:
    flags = {} if account is None else {"account": account}
    return settings.load(flags, {"SCRUBJAY_HOME": str(home), "SCRUBJAY_MODEL": "none"})


def route(home: Path, *routes: tuple[str, str]) -> None:
    known = Accounts()
    for project, account in routes:
        known = known.with_account(account).with_project(project, account)
    accounts.change(home / "data", lambda _: known)


@asynccontextmanager
async def opened(home: Path, account: str | None = None) -> AsyncIterator[Application]:
    service = await Application.configured(chosen(home, account), {})
    try:
        yield service
    finally:
        await service.close()


def said(text: str, project: str | None, session: str = "s1") -> EventDraft:
    return EventDraft(
        agent="test",
        session_id=session,
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text=text,
        project=project,
        dedupe_key=f"{session}-{text}",
    )


def note(text: str, project: str) -> MemoryDraft:
    return MemoryDraft(content=text, scope=Scope.PROJECT, resource_id=project)


async def texts(home: Path, account: str | None = None) -> list[str]:
    """Everything that the store of an account says, read from its own file."""
    async with opened(home, account) as service:
        events = (await service.call(PERSON, "events", api.EventsRequest())).events
        memories = (await service.call(PERSON, "list", api.ListRequest())).entries
    return sorted([event.text for event in events] + [entry.memory.content for entry in memories])


# Rules


name = st.sampled_from(["a", "b", "ab"])  # few, so that one is often the beginning of another
project = st.lists(name, min_size=1, max_size=3).map("/".join)


@given(
    st.dictionaries(st.integers(1, 4), st.sampled_from(["work", "club"]), min_size=1),
    st.dictionaries(project, st.sampled_from(["work", "club"]), max_size=3),
)
def test_the_longest_routed_name_above_a_project_decides(above: dict[int, str], others: dict[str, str]) -> None:
    parts = ["github.com", "acme", "shop", "till"]
    routes = {"/".join(parts[:depth]): account for depth, account in above.items()}
    known = Accounts().with_account("work").with_account("club")
    for routed, account in (others | routes).items():
        known = known.with_project(routed, account)

    assert known.of(["/".join(parts)]) == above[max(above)]
    assert known.of(["gitlab.com/" + "/".join(parts)]) == MAIN


@given(st.dictionaries(project, st.sampled_from(["work", "club"]), max_size=5))
def test_accounts_are_read_as_they_were_kept(tmp_path_factory: pytest.TempPathFactory, routes: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("kept")
    known = Accounts()
    for routed, account in routes.items():
        known = known.with_account(account).with_project(routed, account)
    accounts.change(folder, lambda _: known)

    assert accounts.load(folder) == known


def test_case_and_a_star_at_the_end_do_not_count() -> None:
    known = Accounts().with_account("work").with_project("GitHub.com/Acme/*", "work")

    assert known.of(["github.com/ACME/shop"]) == "work"
    assert known.of(["github.com/acmeville/shop"]) == MAIN


@pytest.mark.parametrize("wrong", ["", "/", "*", "a/*/b"])
def test_what_would_be_everything_is_no_project(wrong: str) -> None:
    with pytest.raises(InvalidError):
        Accounts().with_account("work").with_project(wrong, "work")


@pytest.mark.parametrize("wrong", ["", "Work", "../up", "-a", "a" * 33, "a b"])
def test_what_could_be_another_folder_is_no_account(wrong: str) -> None:
    with pytest.raises(InvalidError):
        Accounts().with_account(wrong)


def test_a_project_lives_in_one_account() -> None:
    known = Accounts().with_account("work").with_account("club").with_project(WORK, "work")

    with pytest.raises(ConflictError, match="belongs to the account work"):
        known.with_project(WORK, "club")
    with pytest.raises(NotFoundError):
        known.without_project(WORK, "club")
    assert known.without_project(WORK, "work").of([WORK]) == MAIN


def test_two_that_route_at_the_same_time_take_nothing_from_each_other(tmp_path: Path) -> None:
    accounts.change(tmp_path, lambda known: known.with_account("work"))

    def add(number: int) -> None:
        accounts.change(tmp_path, lambda known: known.with_project(f"acme/{number}", "work"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))

    assert len(accounts.load(tmp_path).projects["work"]) == 24


async def test_a_damaged_record_stores_nothing_rather_than_all_in_one_place(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    accounts.record_path(tmp_path / "data").write_text("{}")

    async with opened(tmp_path) as service:
        with pytest.raises(CorruptError):
            await service.call(PERSON, "add", note("the till rounds down", WORK))


async def test_a_name_that_is_no_account_makes_no_store(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))

    with pytest.raises(NotFoundError, match="no account 'wrok'"):
        async with opened(tmp_path, "wrok"):
            pass
    assert not (tmp_path / "data" / "accounts" / "wrok").exists()


def test_main_is_always_there_and_another_account_can_be_let_go_of() -> None:
    known = Accounts().with_account("work").with_project(WORK, "work")

    assert known.without_account("work") == Accounts()
    with pytest.raises(InvalidError):
        known.without_account(MAIN)


# What goes where


async def test_what_is_of_a_routed_project_is_in_no_byte_of_the_main_store(tmp_path: Path) -> None:
    route(tmp_path, ("github.com/acme", "work"))
    async with opened(tmp_path) as service:
        batch = (said("zirconium till", WORK), said("marigold seeds", PRIVATE), said("zirconium shelf", WORK))
        stored = await service.call(PERSON, "ingest", api.IngestRequest(events=batch))
        await service.call(PERSON, "add", note("zirconium rounds down", WORK))
        await service.call(PERSON, "add", note("marigold in spring", PRIVATE))
        await service.call(PERSON, "add", MemoryDraft(content="marigold tea"))

    assert (stored.accepted, len(set(stored.ids))) == (3, 3)
    assert await texts(tmp_path) == ["marigold in spring", "marigold seeds", "marigold tea"]
    assert await texts(tmp_path, "work") == ["zirconium rounds down", "zirconium shelf", "zirconium till"]
    work = tmp_path / "data" / "accounts" / "work"
    for path in (one for one in (tmp_path / "data").rglob("*") if one.is_file()):
        stranger = b"marigold" if work in path.parents else b"zirconium"
        assert stranger not in path.read_bytes(), path
    assert b"zirconium" in b"".join(path.read_bytes() for path in work.iterdir())


async def test_ids_of_a_mixed_batch_stand_in_its_order(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    batch = tuple(said(f"line {at}", WORK if at % 2 else PRIVATE) for at in range(6))
    async with opened(tmp_path) as service:
        stored = await service.call(PERSON, "ingest", api.IngestRequest(events=batch))
        again = await service.call(PERSON, "ingest", api.IngestRequest(events=batch))
        here = (await service.call(PERSON, "events", api.EventsRequest())).events

    assert (again.ids, again.duplicates) == (stored.ids, 6)
    assert [event.id for event in here] == list(stored.ids[::2])


async def test_an_agent_in_a_routed_project_has_that_account_and_no_other(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    at_work = Caller(principal=Principal.AGENT, agent="a", project=WORK)
    at_home = Caller(principal=Principal.AGENT, agent="a", project=PRIVATE)
    async with opened(tmp_path) as service:
        await service.call(at_work, "add", MemoryDraft(content="the zirconium till rounds down"))
        await service.call(at_home, "add", MemoryDraft(content="marigold seeds need light"))
        asked = api.RecallRequest(query="zirconium till marigold seeds")
        found = {
            caller.project: [hit.text for hit in (await service.call(caller, "recall", asked)).hits]
            for caller in (at_work, at_home)
        }

    assert found == {WORK: ["the zirconium till rounds down"], PRIVATE: ["marigold seeds need light"]}


async def test_something_new_is_not_stored_in_an_account_that_its_project_does_not_belong_to(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"), ("github.com/club", "club"))
    for account in (MAIN, "club"):
        async with opened(tmp_path, account) as service:
            named = Caller(principal=Principal.PERSON, account=account)
            with pytest.raises(ConflictError, match="belongs to the account work"):
                await service.call(named, "add", note("the till", WORK))
            with pytest.raises(ConflictError, match="belongs to the account work"):
                await service.call(named, "ingest", api.IngestRequest(events=(said("the till", WORK),)))
    for account in (MAIN, "work", "club"):
        assert await texts(tmp_path, account) == []


async def test_the_person_may_name_the_account(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    named = Caller(principal=Principal.PERSON, account="work")
    async with opened(tmp_path) as service:
        await service.call(named, "add", MemoryDraft(content="the zirconium till"))
        lines = b"".join([line async for line in service.stream(named, "export", api.Nothing())])
        with pytest.raises(NotFoundError, match="no account 'wrok'"):
            await service.call(Caller(principal=Principal.PERSON, account="wrok"), "list", api.ListRequest())

    assert b"zirconium" in lines
    assert await texts(tmp_path, "work") == ["the zirconium till"]
    assert await texts(tmp_path) == []


def prompt(text: str, session: str, cwd: Path) -> bytes:
    return json.dumps(
        {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": str(cwd), "prompt": text}
    ).encode()


async def test_a_session_that_looks_into_another_folder_stays_in_its_account(tmp_path: Path) -> None:
    shop, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    for folder in (shop, elsewhere):
        folder.mkdir()
    route(tmp_path, (str(shop), "work"))
    async with opened(tmp_path) as service:
        for text, session, cwd in (
            ("zirconium begins", "at-work", shop),
            ("zirconium goes on", "at-work", elsewhere),
            ("marigold", "at-home", elsewhere),
        ):
            request = api.HookRequest(host="claude-code", data=prompt(text, session, cwd))
            assert (await service.call(HOST, "hook", request)).accepted == 1

    assert await texts(tmp_path, "work") == ["zirconium begins", "zirconium goes on"]
    assert await texts(tmp_path) == ["marigold"]


async def test_a_session_that_began_at_home_is_at_home_again_when_it_leaves_a_project_of_work(tmp_path: Path) -> None:
    shop, garden = tmp_path / "shop", tmp_path / "garden"
    for folder in (shop, garden):
        folder.mkdir()
    route(tmp_path, (str(shop), "work"))
    async with opened(tmp_path) as service:
        for text, cwd in (("marigold", garden), ("zirconium", shop), ("marigold again", garden)):
            await service.call(HOST, "hook", api.HookRequest(host="claude-code", data=prompt(text, "s", cwd)))

    assert await texts(tmp_path, "work") == ["zirconium"]
    assert await texts(tmp_path) == ["marigold", "marigold again"]


async def test_an_import_takes_the_account_s_own_projects_only(tmp_path: Path) -> None:
    shop, garden = tmp_path / "shop", tmp_path / "garden"
    for folder in (shop, garden):
        folder.mkdir()
    route(tmp_path, (str(shop), "work"))
    lines = [
        json.dumps(
            {
                "type": "user",
                "uuid": f"u{at}",
                "sessionId": f"s{at}",
                "timestamp": "2026-01-01T00:00:00Z",
                "cwd": str(folder),
                "message": {"role": "user", "content": text},
            }
        )
        for at, (folder, text) in enumerate(((shop, "the zirconium till"), (garden, "marigold seeds")))
    ]
    request = api.ImportRequest(name="log.jsonl", data="\n".join(lines).encode(), format="claude-code")
    for account in (None, "work"):
        async with opened(tmp_path, account) as service:
            taken = await service.call(PERSON, "import", request)
        assert {one.reason: one.count for one in taken.skipped}["of_another_account"] == 1

    assert await texts(tmp_path) == ["marigold seeds"]
    assert await texts(tmp_path, "work") == ["the zirconium till"]


def report(home: Path, text: str, folder: Path, session: str = "") -> None:
    """Let a hook have run while no daemon was there."""
    payload = json.loads(prompt(text, session or f"of-{text}", folder))
    spool.write(
        home / "data",
        Report(host="claude-code", event="UserPromptSubmit", sent=Millis(1), project="", payload=payload),
    )


def broken(home: Path, account: str) -> None:
    store = home / "data" / "accounts" / account / "memory.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"no database at all" * 100)


async def test_a_broken_store_of_one_account_holds_up_no_report_of_a_session_of_another(tmp_path: Path) -> None:
    shop, garden = tmp_path / "shop", tmp_path / "garden"
    for folder in (shop, garden):
        folder.mkdir()
    report(tmp_path, "marigold", garden, "at-home")
    async with opened(tmp_path) as service:
        await service.call(PERSON, "run_job", api.JobRequest(name="spool"))
    route(tmp_path, (str(shop), "work"))
    broken(tmp_path, "work")
    report(tmp_path, "zirconium", shop)
    report(tmp_path, "marigold again", garden, "at-home")
    report(tmp_path, "whose is it?", garden, "of nobody yet")

    async with opened(tmp_path) as service:
        await service.call(PERSON, "run_job", api.JobRequest(name="spool"))
        mixed = api.IngestRequest(events=(said("zirconium", str(shop)), said("marigold in a batch", PRIVATE)))
        with pytest.raises(CorruptError):
            await service.call(PERSON, "ingest", mixed)

    assert len(spool.waiting(tmp_path / "data")) == 2  # kept until the store is mended: nothing of it goes elsewhere
    assert await texts(tmp_path) == ["marigold", "marigold again", "marigold in a batch"]


async def test_a_report_that_waited_in_the_spool_goes_to_its_account(tmp_path: Path) -> None:
    shop, garden = tmp_path / "shop", tmp_path / "garden"
    for folder in (shop, garden):
        folder.mkdir()
    route(tmp_path, (str(shop), "work"))
    report(tmp_path, "zirconium", shop)
    report(tmp_path, "marigold", garden)

    async with opened(tmp_path) as service:
        await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    assert spool.waiting(tmp_path / "data") == []
    assert await texts(tmp_path, "work") == ["zirconium"]
    assert await texts(tmp_path) == ["marigold"]


async def test_a_store_that_cannot_be_opened_takes_nothing_and_leaves_the_others_alone(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    broken(tmp_path, "work")

    async with opened(tmp_path) as service:
        assert service.accounts is not None
        await service.accounts.start()
        with pytest.raises(CorruptError):
            await service.call(PERSON, "add", note("the zirconium till", WORK))
        await service.call(PERSON, "add", note("marigold seeds", PRIVATE))
        warned = (await service.call(PERSON, "status", api.Nothing())).warnings

    assert [line.partition(":")[0] for line in warned if "work" in line] == ["the account work is not served"]
    assert await texts(tmp_path) == ["marigold seeds"]


async def test_each_account_s_jobs_learn_from_its_own_events_only(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    batch = tuple(said("We decided to use PostgreSQL for the till.", name, name) for name in (WORK, PRIVATE))
    async with opened(tmp_path) as service:
        await service.call(PERSON, "ingest", api.IngestRequest(events=batch))
        named = Caller(principal=Principal.PERSON, account="work")
        for caller in (PERSON, named):
            await service.call(caller, "settle", api.SettleRequest(timeout_ms=60_000))
        learned = [
            [(entry.memory.content, entry.memory.resource_id) for entry in listed.entries]
            for listed in [await service.call(caller, "list", api.ListRequest()) for caller in (PERSON, named)]
        ]

    assert [len(memories) for memories in learned] == [1, 1]  # the same sentence is not one memory of both


async def test_a_project_that_main_knows_by_its_path_is_routed_by_its_remote(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    (shop / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    async with opened(tmp_path) as service:
        await service.call(PERSON, "add", note("marigold seeds, before it was routed", str(shop)))
    (shop / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/shop.git\n')
    route(tmp_path, ("github.com/acme", "work"))

    async with opened(tmp_path) as service:
        agent = await service.handlers.placed(Caller(principal=Principal.AGENT, agent="a", project=str(shop)))
        await service.call(agent, "add", MemoryDraft(content="zirconium, by the agent"))
        await service.call(PERSON, "add", note("zirconium, by the person", str(shop)))

    assert (agent.account, agent.project) == ("work", WORK)
    assert await texts(tmp_path) == ["marigold seeds, before it was routed"]
    assert await texts(tmp_path, "work") == ["zirconium, by the agent", "zirconium, by the person"]


async def test_over_http_the_person_names_an_account_and_an_agent_cannot(tmp_path: Path) -> None:
    route(tmp_path, (WORK, "work"))
    async with opened(tmp_path) as service:
        app = create_app(service, token="t" * 43, agent_token="a" * 43, hook_token="h" * 43, version="1")
        web = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=web, base_url="http://127.0.0.1:7377") as client:

            async def add(token: str, text: str, **headers: str) -> int:
                given = {"Authorization": f"Bearer {token * 43}", "Scrubjay-Account": "work", **headers}
                return (await client.post("/v1/memories", json={"content": text}, headers=given)).status_code

            assert await add("t", "zirconium, by the person") == 201
            assert await add("a", "marigold, by an agent that names an account") == 201
            assert await add("a", "zirconium, by an agent at work", **{"Scrubjay-Project": WORK}) == 201
            assert await add("t", "nowhere", **{"Scrubjay-Account": "wrok"}) == 404

    assert await texts(tmp_path) == ["marigold, by an agent that names an account"]
    assert await texts(tmp_path, "work") == ["zirconium, by an agent at work", "zirconium, by the person"]


def test_a_daemon_of_another_version_is_asked_about_no_account() -> None:
    record = Running(
        pid=1, create_time=0, host="127.0.0.1", port=1, socket=None, version="0.0.1", instance="i", started=0
    )

    require_same_version(replace(record, version=__version__))
    with pytest.raises(UnavailableError, match="an account is named"):
        require_same_version(record)
