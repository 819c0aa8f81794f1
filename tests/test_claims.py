"""Folders that claim a known project, by other means than two text files."""

import json
import os
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import Opener
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.checkouts import checkout
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType
from test_projects import SHOP, git, repository, say, texts_of


async def trust(service: Application, folder: Path, *, yes: bool = True) -> api.TrustFolderResponse:
    request = api.TrustFolderRequest(folder=str(folder), trusted=yes)
    done: api.TrustFolderResponse = await service.call(PERSON, "trust_folder", request)
    return done


@pytest.mark.anyio
async def test_the_yes_is_for_what_a_folder_claims_now(service: Application, tmp_path: Path) -> None:
    await say(service, repository(tmp_path / "shop", "git@github.com:ana/shop"), "Shop.")
    await say(service, repository(tmp_path / "bank", "git@github.com:ana/bank"), "Bank.", "b")
    evil = repository(tmp_path / "evil", "https://github.com/ana/bank")
    await say(service, evil, "One.", "t")
    git(evil, "remote", "set-url", "origin", "https://github.com/ana/shop")
    await say(service, evil, "Two.", "u")

    done = await trust(service, evil)

    assert [one.project for one in done.folders] == [SHOP]
    git(evil, "remote", "set-url", "origin", "https://github.com/ana/bank")
    assert (await service.project_names.place(str(evil))).project == str(evil)


@pytest.mark.anyio
async def test_a_no_to_one_claim_outlasts_the_yes_to_another(service: Application, tmp_path: Path) -> None:
    await say(service, repository(tmp_path / "shop", "git@github.com:ana/shop"), "Shop.")
    await say(service, repository(tmp_path / "bank", "git@github.com:ana/bank"), "Bank.", "b")
    evil = repository(tmp_path / "evil", "https://github.com/ana/bank")
    await say(service, evil, "One.", "t")
    await trust(service, evil, yes=False)
    git(evil, "remote", "set-url", "origin", "https://github.com/ana/shop")
    await say(service, evil, "Two.", "u")
    await trust(service, evil)
    git(evil, "remote", "set-url", "origin", "https://github.com/ana/bank")
    assert (await service.project_names.place(str(evil))).project == str(evil)


@pytest.mark.anyio
async def test_of_a_store_from_before_a_folder_by_its_path_is_nobody_elses(
    opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    async with opened() as service:
        await say(service, notes, "The pin is in slot 7.")
    store_path.with_name(f"{store_path.name}.folders.json").unlink()
    evil = repository(tmp_path / "evil")
    (evil / ".git" / "commondir").write_text(f"{notes}/.git")
    async with opened() as service:
        await service.indexed()
        assert (await service.project_names.place(str(evil))).project == str(evil)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["it's", "x'; touch pwned; '", "a\nb", "a$(touch pwned)b", "-rf", "two words"])
async def test_the_command_that_is_shown_is_safe_to_paste(service: Application, tmp_path: Path, name: str) -> None:
    await say(service, repository(tmp_path / "shop", "git@github.com:ana/shop"), "Shop.")
    evil = repository(tmp_path / name, "https://github.com/ana/shop")

    asked = await service.project_names.question(str(evil))

    assert "\n" not in asked
    if "\n" not in name:
        assert asked.endswith(shlex.join(["scrubjay", "projects", "trust", str(evil)]))


@pytest.mark.anyio
async def test_more_than_one_batch_moves_with_all_its_sources(
    service: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrubjay.service.trusted_projects.MOVED_AT_ONCE", 2)
    await say(service, repository(tmp_path / "shop", "git@github.com:ana/shop"), "Nothing yet.")
    clone = repository(tmp_path / "clone", "https://github.com/ana/shop")
    drafts: list[EventDraft] = []
    for n in range(3):
        for kind, text in (
            (EventType.ASSISTANT_MESSAGE, f"Shall we deploy service{n} with nomad?"),
            (EventType.USER_MESSAGE, f"Yes, always deploy service{n} with nomad."),
        ):
            drafts.append(
                EventDraft(
                    agent="a",
                    session_id="t",
                    type=kind,
                    text=text,
                    project=str(clone),
                    ts=Millis(1_700_000_000_000 + len(drafts)),
                )
            )
    drafts.insert(
        0,
        EventDraft(
            agent="a",
            session_id="t",
            type=EventType.USER_MESSAGE,
            text="Hi there.",
            project=str(clone),
            ts=Millis(1_699_999_999_999),
        ),
    )
    await service.call(PERSON, "ingest", api.IngestRequest(events=tuple(drafts)))
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=20_000))

    async def cited(project: str) -> dict[str, set[str]]:
        entries = (await service.call(PERSON, "list", api.ListRequest(project=project))).entries
        found = {}
        for entry in entries:
            why = await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))
            found[entry.memory.id] = {event.text for source in why.sources for event in source.events}
        return found

    before = await cited(str(clone))
    assert any(len(texts) > 1 for texts in before.values())  # a question and its answer

    await trust(service, clone)

    assert await cited(SHOP) == before


def test_a_pipe_in_gits_folder_stops_nobody(tmp_path: Path) -> None:
    for name in ("HEAD", "config", "commondir"):
        folder = repository(tmp_path / name)
        (folder / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(folder / ".git" / name)
        checkout(folder)
    (tmp_path / "x").mkdir()
    os.mkfifo(tmp_path / "x" / ".git")
    checkout(tmp_path / "x")


@pytest.mark.anyio
async def test_after_a_move_all_is_sound_and_what_is_read_again_is_not_doubled(
    service: Application, tmp_path: Path
) -> None:
    await say(service, repository(tmp_path / "shop", "git@github.com:ana/shop"), "Nothing yet.")
    clone = repository(tmp_path / "clone", "https://github.com/ana/shop")
    prompt = "From now on we always deploy with nomad, never with ansible."
    told = {"session_id": "11111111-2222-3333-4444-555555555555", "cwd": str(clone), "prompt": prompt}
    told["hook_event_name"] = "UserPromptSubmit"
    hook = api.HookRequest(host="claude-code", event="UserPromptSubmit", data=json.dumps(told).encode())
    assert (await service.call(PERSON, "hook", hook)).accepted == 1
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=20_000))
    assert await texts_of(service, str(clone)) == [prompt]
    await trust(service, clone)
    await service.indexed()
    assert (await service.call(PERSON, "hook", hook)).accepted == 0
    line = {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": told["session_id"], "cwd": str(clone),
        "timestamp": datetime.now(UTC).isoformat(), "message": {"role": "user", "content": prompt},
    }  # fmt: skip
    request = api.ImportRequest(name="t.jsonl", data=json.dumps(line).encode() + b"\n", format="claude-code")
    await service.call(PERSON, "import", request)
    await service.indexed()
    assert (await texts_of(service, SHOP)).count(prompt) == 1
    rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
    assert rebuilt.before == rebuilt.after
    assert (await texts_of(service, SHOP)).count(prompt) == 1
