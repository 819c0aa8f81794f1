"""What is looked for by a table of its own: places of imported files that say the same, and who said how much."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay.store import file, find_damage
from scrubjay_io.sqlite import driver
from scrubjay_shared.records import MemoryDraft
from service_calls import Opener, ingest, said

pytestmark = pytest.mark.anyio

NEW = {
    "also_from": "source_key, memory_id",
    "session_agent": "session_id, agent, project, events, start, last",
}


def rows(path: Path) -> dict[str, list[Any]]:
    with closing(driver.connect(str(path))) as connection:
        return {
            table: connection.execute(f"select {columns} from {table} order by {columns}").fetchall()
            for table, columns in NEW.items()
        }


async def notes(service: Application, name: str, *texts: str) -> api.ImportResponse:
    data = "\n\n".join(f"# {n}\n\n{text}" for n, text in enumerate(texts)).encode()
    return await service.call(PERSON, "import", api.ImportRequest(name=name, data=data, project="shop"))


async def filled(service: Application) -> None:
    await notes(service, "first.md", "The quay is closed on Sundays.", "The crane lifts nine tons.")
    await notes(service, "second.md", "The quay is closed on Sundays.")
    for agent, project in (("crow", "shop"), ("rook", "shop"), ("crow", None)):
        await ingest(service, said(f"{agent} says {project}", "s1", agent=agent, project=project))
    await ingest(service, said("Forget me", "s2", agent="jay"))
    page = await service.call(PERSON, "events", api.EventsRequest(session_id="s2"))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=page.events[0].id))


async def test_an_older_store_gets_them_with_its_upgrade(opened: Opener, store_path: Path) -> None:
    async with opened() as service:
        await filled(service)
    before = rows(store_path)
    older(store_path)

    async with opened():
        pass

    assert rows(store_path) == before
    assert len(before["also_from"]) == 1
    assert [row[1:4] for row in before["session_agent"]] == [("crow", "", 1), ("crow", "shop", 1), ("rook", "shop", 1)]
    assert list(find_damage(store_path, lambda *_: None)) == []


def older(path: Path) -> None:
    """Make a store what it would be if it had been written before there were these tables."""
    steps = file.migrations()
    first = next(step.version for step in steps if step.name == "look_ups")
    old = path.with_name("older.db")
    file.prepare(old, steps[: first - 1], dict)
    with closing(driver.connect(str(old), isolation_level=None)) as connection:
        connection.execute("attach ? as now", (str(path),))
        names = [
            name
            for (name,) in connection.execute("select name from main.sqlite_schema where type = 'table'")
            if not name.startswith(("sqlite_", "memory_fts_"))
        ]
        for name in names:
            columns = ", ".join(row[1] for row in connection.execute(f"pragma main.table_info({name})"))
            columns = f"rowid, {columns}" if name == "memory_fts" else columns
            connection.execute(f"delete from main.{name}")
            connection.execute(f"insert into main.{name} ({columns}) select {columns} from now.{name}")
    old.replace(path)


async def test_a_note_that_stands_in_two_files_is_known_by_both(opened: Opener) -> None:
    async with opened() as service:
        await filled(service)
        again = await notes(service, "second.md", "The quay is closed on Sundays.")
        assert (again.memories, again.duplicates) == (0, 1)


async def test_a_forgotten_memory_leaves_no_place_of_a_file(opened: Opener, store_path: Path) -> None:
    async with opened() as service:
        await filled(service)
        [found] = [one for one in await _listed(service) if "quay" in one.memory.content]
        await service.call(PERSON, "forget", api.ForgetRequest(ref=found.memory.id))

    assert rows(store_path)["also_from"] == []


async def test_metadata_that_only_looks_like_places_is_left_alone(opened: Opener, store_path: Path) -> None:
    async with opened() as service:
        for n, also in enumerate(("a text", ["a text", 5], {"source_key": "k"}, [{"source_key": 7}], [{}], None)):
            await service.call(PERSON, "add", MemoryDraft(content=f"Note {n}", metadata={"also_from": also}))
        await notes(service, "first.md", "The quay is closed on Sundays.")

    assert rows(store_path)["also_from"] == []


@pytest.mark.parametrize("few", [0, 5_000], ids=["in the order of time", "by its sessions"])
async def test_events_of_a_project_are_the_same_however_they_are_read(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("scrubjay.store.queries.events.FEW", few)
    crow = Caller(principal=Principal.AGENT, agent="crow", project="shop", session_id="s1")
    async with opened() as service:
        for n, project in enumerate(("shop", "quay", None, "shop", "crane")):
            await ingest(service, said(f"said {n}", f"s{n % 2}", project=project))

        async def texts(caller: Caller, **more: Any) -> list[str]:
            found, cursor = [], None
            while True:
                page = await service.call(caller, "events", api.EventsRequest(limit=1, cursor=cursor, **more))
                found += [event.text for event in page.events]
                if (cursor := page.next) is None:
                    return found

        assert await texts(PERSON, project="shop") == ["said 0", "said 2", "said 3"]
        assert await texts(PERSON, project="nowhere") == ["said 2"]
        assert await texts(crow) == ["said 0", "said 1", "said 2", "said 3"]


async def _listed(service: Application) -> Any:
    return (await service.call(PERSON, "list", api.ListRequest())).entries
