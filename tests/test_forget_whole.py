"""A wrong import is taken back whole: its events, what was learned from them, in one step after a look at it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import MemoryDraft, Scope
from service_calls import ingest, listed, said

pytestmark = pytest.mark.anyio

SECRET = "quvexzoldrun"
OWN = "We decided to use PostgreSQL for the harbour."


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for copies to be blanked however busy the machine is: an answer gives up after some seconds."""
    monkeypatch.setattr("scrubjay.service.forget.COPIES_SECONDS", 120.0)


def transcript(folder: Path) -> Path:
    path = folder / "talk.jsonl"
    said_ = [f"We decided to use {SECRET} for the bookings.", f"I prefer {SECRET} in Makefiles."]
    lines = [
        json.dumps(
            {
                "type": "user",
                "uuid": f"u{n}",
                "parentUuid": None if n == 0 else f"u{n - 1}",
                "promptSource": "user",
                "sessionId": "s",
                "cwd": "/bookings",
                "timestamp": f"2026-11-2{n}T10:00:00.000Z",
                "message": {"role": "user", "content": text},
            }
        )
        for n, text in enumerate(said_)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


async def loaded(service: Application, folder: Path) -> str:
    """Import a transcript, learn from it and from talk of this machine, and return the import's cause."""
    data = transcript(folder).read_bytes()
    answer = await service.call(PERSON, "import", api.ImportRequest(name="talk.jsonl", data=data))
    assert answer.cause is not None
    await ingest(service, said(OWN, session="own", project="/harbour"))
    await service.call(PERSON, "settle", api.SettleRequest())
    assert len([text for text in await listed(service) if SECRET in text]) == 2
    return str(answer.cause)


async def test_an_import_goes_whole_with_what_was_learned_from_it_and_nothing_else(
    service: Application, tmp_path: Path
) -> None:
    cause = await loaded(service, tmp_path)
    await service.scheduler.run("backup")

    preview = await service.call(PERSON, "forget_all", api.ForgetAllRequest(import_cause=cause, dry_run=True))

    assert (preview.events, preview.memories, preview.sessions, preview.dry_run) == (2, 2, 1, True)
    assert any(SECRET in text for text in preview.examples)
    assert len([text for text in await listed(service) if SECRET in text]) == 2, "a preview erases nothing"

    done = await service.call(PERSON, "forget_all", api.ForgetAllRequest(import_cause=cause))

    assert (done.of, done.events, done.memories, done.blanked) == (cause, 2, 2, 1)
    assert done.examples == (), "what is gone is shown no more"
    assert await listed(service) == [OWN]
    assert SECRET not in repr(await service.call(PERSON, "events", api.EventsRequest()))
    files = [path for path in service.store.path.parent.rglob("memory.db*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    with pytest.raises(NotFoundError):
        await service.call(PERSON, "forget_all", api.ForgetAllRequest(import_cause=cause))


async def test_a_session_and_a_project_go_whole_too(service: Application, tmp_path: Path) -> None:
    await loaded(service, tmp_path)
    draft = MemoryDraft(content="The harbour has nine berths.", scope=Scope.PROJECT, resource_id="/harbour")
    await service.call(PERSON, "add", draft)

    of_session = await service.call(PERSON, "forget_all", api.ForgetAllRequest(session_id="s"))
    of_project = await service.call(PERSON, "forget_all", api.ForgetAllRequest(project="/harbour"))

    assert (of_session.events, of_session.memories) == (2, 2)
    assert (of_project.events, of_project.memories) == (1, 2)
    assert await listed(service) == []


async def test_what_was_learned_from_elsewhere_too_stays(service: Application, tmp_path: Path) -> None:
    cause = await loaded(service, tmp_path)
    [kept] = [
        entry.memory
        for entry in (await service.call(PERSON, "list", api.ListRequest())).entries
        if "Makefiles" in entry.memory.content
    ]
    await service.call(PERSON, "update", api.UpdateRequest(ref=kept.id, salience=0.9))
    await ingest(service, said(f"I prefer {SECRET} in Makefiles.", session="own"))
    await service.call(PERSON, "settle", api.SettleRequest())

    await service.call(PERSON, "forget_all", api.ForgetAllRequest(import_cause=cause))

    events = (await service.call(PERSON, "events", api.EventsRequest(session_id="own"))).events
    assert any(SECRET in event.text for event in events), "what was said here was not imported"


@pytest.mark.parametrize("named", ["import", "session"])
async def test_a_memory_of_the_person_s_that_was_put_away_into_one_of_an_import_comes_back(
    service: Application, tmp_path: Path, named: str
) -> None:
    cause = await loaded(service, tmp_path)
    mine = (await service.call(PERSON, "add", MemoryDraft(content="I keep Makefiles short."))).memory.id
    [theirs] = [
        entry.memory.id
        for entry in (await service.call(PERSON, "list", api.ListRequest())).entries
        if "in Makefiles" in entry.memory.content
    ]
    away = {Field.ARCHIVED_AT: 1_800_000_000_000, Field.SUPERSEDED_BY: theirs}
    await service.store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=mine, fields=away)]))
    assert await service.store.read(lambda q: q.memories.put_away_into(theirs)) == [mine]
    assert "I keep Makefiles short." not in await listed(service)
    whole = api.ForgetAllRequest(import_cause=cause) if named == "import" else api.ForgetAllRequest(session_id="s")

    done = await service.call(PERSON, "forget_all", whole)

    assert done.memories == 2
    assert sorted(await listed(service)) == sorted([OWN, "I keep Makefiles short."])


async def test_only_the_person_forgets_a_whole_and_names_exactly_one(service: Application) -> None:
    agent = Caller(principal=Principal.AGENT, agent="codex", session_id="s")
    with pytest.raises(DeniedError):
        await service.call(agent, "forget_all", api.ForgetAllRequest(session_id="s"))
    for request in (api.ForgetAllRequest(), api.ForgetAllRequest(session_id="s", project="p")):
        with pytest.raises(InvalidError):
            await service.call(PERSON, "forget_all", request)


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_command_shows_what_goes_and_takes_a_yes_from_a_script(shell: Shell, tmp_path: Path) -> None:
    report = shell.json("import", str(transcript(tmp_path)), "--wait")
    cause = report["cause"]

    code, error = shell.error("forget", "--import", cause)
    assert (code, error["code"]) == (2, "invalid")
    assert "2 events of 1 session and 2 memories" in error["message"]
    assert "--yes" in error["hint"]
    assert shell.json("forget", "--import", cause, "--dry-run")["events"] == 2
    assert len(shell.json("list")["entries"]) == 2

    assert shell.json("forget", "--import", cause, "--yes")["memories"] == 2
    assert shell.json("list")["entries"] == []


def test_undoing_an_import_names_what_forgets_its_events(shell: Shell, tmp_path: Path) -> None:
    cause = shell.json("import", str(transcript(tmp_path)))["cause"]

    code, out, _ = shell.run("undo", cause, "--text")

    assert code == 0
    assert "scrubjay forget --import import:" in out


def test_a_folder_that_is_no_agents_is_read_only_after_a_yes(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    transcript(folder)
    (folder / "notes.md").write_text("# Drinks\n\nI prefer green tea.\n", encoding="utf-8")

    code, error = shell.error("import", str(folder))
    assert (code, error["code"]) == (2, "invalid")
    assert "2 files would be read" in error["message"]
    assert "1 .jsonl" in error["message"]
    assert shell.json("list")["entries"] == []

    assert shell.json("import", str(folder), "--dry-run")["files"] == 2
    assert shell.json("import", str(folder), "--yes")["files"] == 2


@pytest.mark.parametrize("inside", [".codex/sessions/2026/11/27", ".codex"])
def test_an_agents_own_folder_and_a_file_named_by_hand_need_no_question(
    shell: Shell, tmp_path: Path, inside: str
) -> None:
    sessions = tmp_path / ".codex" / "sessions" / "2026" / "11" / "27"
    sessions.mkdir(parents=True)
    path = sessions / "rollout-2026-11-27T10-00-00-0192f5a0-0000-7000-8000-000000000000.jsonl"
    path.write_text('{"type":"session_meta","payload":{"id":"x","cwd":"/x"}}\n', encoding="utf-8")

    code, _, err = shell.run("import", str(tmp_path / inside))
    assert "--yes" not in err
    code, _, err = shell.run("import", str(path))
    assert "--yes" not in err
    assert code in {0, 2}
