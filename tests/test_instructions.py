"""A file of instructions that was imported is looked at again: the memories follow what the person edits in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.errors import InvalidError

pytestmark = pytest.mark.anyio

RULES = "# Shop\n\n## Build\n\nBuild with make, never with npm.\n\n## Tests\n\nRun the tests with nox.\n"


def a_file(path: Path, project: str | None = "shop") -> api.ImportRequest:
    return api.ImportRequest(name=path.name, data=path.read_bytes(), project=project, place=str(path))


async def imported(service: Application, path: Path, project: str | None = "shop") -> api.ImportResponse:
    found: api.ImportResponse = await service.call(PERSON, "import", a_file(path, project))
    return found


async def current(service: Application) -> set[str]:
    """Return what holds now, looked up as people see it."""
    page = await service.call(PERSON, "list", api.ListRequest())
    return {entry.memory.content for entry in page.entries if entry.memory.archived_at is None}


def edited(path: Path, text: str) -> None:
    """Write a file, and give it another time whatever the clock's resolution is."""
    was = path.stat().st_mtime_ns
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(was + 1_000_000, was + 1_000_000))


@pytest.fixture
async def rules(service: Application, tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text(RULES, encoding="utf-8")
    await imported(service, path)
    await service.instructions.run()
    return path


async def test_an_edited_section_follows_and_one_that_is_gone_holds_no_longer(
    service: Application, rules: Path
) -> None:
    assert await current(service) == {"Build with make, never with npm.", "Run the tests with nox."}
    assert not await service.instructions.due()

    edited(rules, "# Shop\n\n## Build\n\nBuild with just.\n\n## Deploy\n\nDeploy on Mondays.\n")

    assert await service.instructions.pending() == 1
    assert await service.instructions.run() == 3
    assert await current(service) == {"Build with just.", "Deploy on Mondays."}
    assert not await service.instructions.due()


async def test_a_section_that_comes_back_holds_again(service: Application, rules: Path) -> None:
    edited(rules, "# Shop\n\n## Build\n\nBuild with make, never with npm.\n")
    await service.instructions.run()
    assert await current(service) == {"Build with make, never with npm."}

    edited(rules, RULES)
    await service.instructions.run()

    assert await current(service) == {"Build with make, never with npm.", "Run the tests with nox."}


@pytest.mark.parametrize("how", ["forget", "archive"])
async def test_what_was_let_go_here_stays_gone_while_its_section_stands_as_it_did(
    how: str, service: Application, rules: Path
) -> None:
    page = await service.call(PERSON, "list", api.ListRequest())
    [ref] = [entry.memory.id for entry in page.entries if "nox" in entry.memory.content]
    if how == "forget":
        await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))
    else:
        await service.call(PERSON, "update", api.UpdateRequest(ref=ref, archived=True))

    edited(rules, RULES.replace("make", "just"))
    await service.instructions.run()

    assert await current(service) == {"Build with just, never with npm."}


async def test_what_was_rewritten_here_stays_when_its_section_is_gone(service: Application, rules: Path) -> None:
    page = await service.call(PERSON, "list", api.ListRequest())
    [ref] = [entry.memory.id for entry in page.entries if "nox" in entry.memory.content]
    await service.call(PERSON, "update", api.UpdateRequest(ref=ref, content="Run the tests with tox."))

    edited(rules, "# Shop\n\n## Build\n\nBuild with make, never with npm.\n")
    await service.instructions.run()

    assert await current(service) == {"Build with make, never with npm.", "Run the tests with tox."}


async def test_a_rule_that_another_file_says_too_holds_while_that_file_says_it(
    service: Application, rules: Path, tmp_path: Path
) -> None:
    (tmp_path / "again").mkdir()
    other = tmp_path / "again" / "CLAUDE.md"
    other.write_text("# Shop\n\nRun the tests with nox.\n", encoding="utf-8")
    await imported(service, other)

    edited(rules, "# Shop\n\n## Build\n\nBuild with make, never with npm.\n")
    await service.instructions.run()
    assert "Run the tests with nox." in await current(service)

    edited(other, "# Shop\n\nNothing of note.\n")
    await service.instructions.run()
    assert "Run the tests with nox." not in await current(service)


async def test_a_file_that_is_away_changes_nothing(service: Application, rules: Path, tmp_path: Path) -> None:
    before = await current(service)
    rules.rename(tmp_path / "elsewhere.md")  # noqa: ASYNC240  # of no account in a test

    assert not await service.instructions.due()
    assert await service.instructions.run() == 0
    assert await current(service) == before


@pytest.mark.usefixtures("rules")
async def test_a_restarted_daemon_reads_the_file_and_changes_nothing(service: Application) -> None:
    history = await service.call(PERSON, "history", api.HistoryRequest())
    service.instructions._seen.clear()  # as after a start

    assert await service.instructions.run() == 0
    assert await service.call(PERSON, "history", api.HistoryRequest()) == history


async def test_one_file_that_is_no_text_does_not_stop_the_others(
    service: Application, rules: Path, tmp_path: Path
) -> None:
    other = tmp_path / "CLAUDE.md"
    other.write_text("# House\n\nSay please.\n", encoding="utf-8")
    await imported(service, other, project=None)
    await service.instructions.run()
    edited(rules, "a\x00b")
    edited(other, "# House\n\nSay thank you.\n")

    with pytest.raises(InvalidError):
        await service.instructions.run()

    assert "Say thank you." in await current(service)
    assert "Run the tests with nox." in await current(service)
    assert not await service.instructions.due(), "it is tried again once it changes"


@pytest.mark.parametrize(("name", "is_placed"), [("notes.md", True), ("CLAUDE.md", False)])
async def test_other_files_are_not_looked_at_again(
    name: str, *, is_placed: bool, service: Application, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(RULES, encoding="utf-8")
    request = replace(a_file(path), place=str(path) if is_placed else None)
    await service.call(PERSON, "import", request)

    edited(path, "# Shop\n\nNothing.\n")
    assert await service.instructions.run() == 0
    await service.call(PERSON, "import", replace(a_file(path), place=request.place))

    assert "Run the tests with nox." in await current(service)


async def test_an_undone_import_is_not_taken_again(service: Application, tmp_path: Path) -> None:
    path = tmp_path / "CLAUDE.md"
    path.write_text(RULES, encoding="utf-8")
    done = await imported(service, path)
    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause))

    await service.instructions.run()

    assert await current(service) == set()
