"""An agent's memory as plain files: edits on either side reach the other, and nobody's words are lost."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay.vault.markdown import CONFLICT
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError, TooLargeError
from scrubjay_shared.records import MemoryDraft, MemoryType, Scope, Trust

pytestmark = pytest.mark.anyio

FILES = ("episodic", "semantic", "self", "social", "working")
ZARA = Caller(principal=Principal.AGENT, agent="zara", project="p")
KIBO = Caller(principal=Principal.AGENT, agent="kibo", project="p")


@pytest.fixture
async def folder(service: Application, tmp_path: Path) -> Path:
    """The folder of zara's vault."""
    path = tmp_path / "zara"
    await service.call(PERSON, "vault_init", api.VaultInitRequest(agent="zara", folder=str(path)))
    return path


async def sync(service: Application, **how: object) -> dict[str, api.VaultFileState]:
    answer = await service.call(PERSON, "vault_sync", api.VaultSyncRequest(agent="zara", **how))  # type: ignore[arg-type]
    return {state.file.removesuffix(".md"): state for state in answer.vaults[0].files}


async def stored(service: Application, *, archived: bool = False) -> dict[str, api.Entry]:
    page = await service.call(PERSON, "list", api.ListRequest(limit=500, archived=archived))
    return {entry.memory.content: entry for entry in page.entries}


async def add(service: Application, content: str, kind: MemoryType, section: str | None) -> str:
    draft = MemoryDraft(content=content, type=kind, scope=Scope.PROJECT, resource_id="vault:zara", topic=section)
    found: api.Entry = await service.call(PERSON, "add", draft)
    return found.memory.id


async def test_a_new_vault_has_five_files(service: Application, folder: Path) -> None:
    answer = await service.call(PERSON, "vaults", api.VaultsRequest())
    assert (folder / "semantic.md").read_text(encoding="utf-8") == "# Semantic memory\n"
    assert not (folder / "working.md").read_text(encoding="utf-8")
    assert [(vault.agent, vault.folder) for vault in answer.vaults] == [("zara", str(folder))]
    assert [state.file for state in answer.vaults[0].files] == [f"{name}.md" for name in FILES]
    assert not any(state.problem for state in answer.vaults[0].files)


@pytest.mark.parametrize("name", FILES)
async def test_an_edit_of_each_file_is_recalled_within_two_seconds(
    name: str, service: Application, folder: Path
) -> None:
    await service.scheduler.start()
    try:
        (folder / f"{name}.md").write_text(f"# {name}\n\n## Food\n- zebra berries of {name}\n", encoding="utf-8")
        began = time.monotonic()
        while True:
            found = await service.call(PERSON, "recall", api.RecallRequest(query="zebra berries", kinds=("memory",)))
            if found.hits:
                break
            assert time.monotonic() - began < 20, "it is never recalled"
            await asyncio.sleep(0.05)
    finally:
        await service.scheduler.stop()
    assert f"zebra berries of {name}" in found.hits[0].text


async def test_what_stands_in_a_file_becomes_memories_of_that_file(service: Application, folder: Path) -> None:
    (folder / "social.md").write_text("## Kibo\n- Seen at B2\n\nTends to stay.\n", encoding="utf-8")
    assert (await sync(service))["social"].entries == 2
    seen = (await stored(service))["Seen at B2"].memory
    assert (seen.type, seen.topic, seen.scope, seen.resource_id) == (
        MemoryType.SOCIAL, "Kibo", Scope.PROJECT, "vault:zara",
    )  # fmt: skip
    assert seen.trust is Trust.AGENT, "who edited the file is not known"


async def test_an_edit_of_an_entry_is_an_edit_of_its_memory_and_is_in_its_history(
    service: Application, folder: Path
) -> None:
    (folder / "semantic.md").write_text("## Food\n- Berries grow near rivers\n- Fish is rare\n", encoding="utf-8")
    await sync(service)
    before = (await stored(service))["Berries grow near rivers"].memory
    (folder / "semantic.md").write_text("## Food\n- Berries grow near wide rivers\n- Fish is rare\n", encoding="utf-8")
    await sync(service)
    after = (await stored(service))["Berries grow near wide rivers"].memory
    assert after.id == before.id
    history = await service.call(PERSON, "history", api.HistoryRequest(kind="vault"))
    assert [cause.label for cause in history.causes[:2]] == ["zara semantic.md"] * 2
    await service.call(PERSON, "undo", api.UndoRequest(cause=history.causes[0].id))
    await sync(service)
    assert (folder / "semantic.md").read_text(
        encoding="utf-8"
    ) == "## Food\n- Berries grow near rivers\n- Fish is rare\n"


async def test_the_words_of_a_person_that_a_file_rewrites_are_trusted_as_a_files(
    service: Application, folder: Path
) -> None:
    ref = await add(service, "Berries grow near rivers", MemoryType.BELIEF, "Food")
    await sync(service)
    path = folder / "semantic.md"
    path.write_text(path.read_text(encoding="utf-8").replace("near rivers", "near wide rivers"), encoding="utf-8")
    await sync(service)
    memory = (await service.call(PERSON, "get", api.RefRequest(ref=ref))).memory
    assert (memory.content, memory.trust) == ("Berries grow near wide rivers", Trust.AGENT)


async def test_a_change_in_the_store_is_written_where_the_entry_stands(service: Application, folder: Path) -> None:
    text = "# Mine\n\nA note.\n\n## Food\n1. Berries\n2. Fish\n\n<!-- keep -->\n## Places\nThe river\nis wide.\n"
    (folder / "semantic.md").write_text(text, encoding="utf-8")
    await sync(service)
    found = await stored(service)
    await service.call(PERSON, "update", api.UpdateRequest(ref=found["Fish"].memory.id, content="Trout"))
    await service.call(PERSON, "update", api.UpdateRequest(ref=found["Berries"].memory.id, archived=True))
    await add(service, "The hill is steep", MemoryType.BELIEF, "Places")
    await sync(service)
    assert (folder / "semantic.md").read_text(encoding="utf-8") == (
        "# Mine\n\nA note.\n\n## Food\n2. Trout\n\n<!-- keep -->\n## Places\nThe river\nis wide.\n- The hill is steep\n"
    )


async def test_of_two_edits_of_one_entry_the_stores_stays_and_the_files_is_kept_until_one_is_deleted(
    service: Application, folder: Path
) -> None:
    path = folder / "semantic.md"
    path.write_text("## Food\n- Berries grow near rivers\n", encoding="utf-8")
    await sync(service)
    ref = (await stored(service))["Berries grow near rivers"].memory.id
    await service.call(PERSON, "update", api.UpdateRequest(ref=ref, content="Berries grow near lakes"))
    path.write_text("## Food\n- Berries grow near wide rivers\n", encoding="utf-8")
    state = (await sync(service))["semantic"]
    both = f"## Food\n- Berries grow near lakes\n- {CONFLICT}\n  Berries grow near wide rivers\n"
    assert (state.conflicts, path.read_text(encoding="utf-8")) == (1, both)
    assert set(await stored(service)) == {"Berries grow near lakes"}
    assert (await sync(service))["semantic"].conflicts == 1
    assert path.read_text(encoding="utf-8") == both, "nothing more is said of it"

    path.write_text("## Food\n- Berries grow near wide rivers\n", encoding="utf-8")  # the person decides
    assert (await sync(service))["semantic"].conflicts == 0
    assert {text: entry.memory.id for text, entry in (await stored(service)).items()} == {
        "Berries grow near wide rivers": ref
    }


async def test_an_entry_that_is_deleted_is_archived_and_one_that_comes_back_holds_again(
    service: Application, folder: Path
) -> None:
    path = folder / "self.md"
    path.write_text("- I explore\n- I wait\n", encoding="utf-8")
    await sync(service)
    path.write_text("- I explore\n", encoding="utf-8")
    await sync(service)
    assert set(await stored(service)) == {"I explore"}
    assert set(await stored(service, archived=True)) == {"I wait"}
    path.write_text("- I explore\n- I wait\n", encoding="utf-8")
    await sync(service)
    assert set(await stored(service)) == {"I explore", "I wait"}
    assert not await stored(service, archived=True)


@pytest.mark.parametrize("how", ["delete the file", "empty it", "delete most of it"])
async def test_what_is_gone_at_once_is_archived_only_when_the_person_says_so(
    how: str, service: Application, folder: Path
) -> None:
    path = folder / "semantic.md"
    path.write_text("".join(f"- fact {n}\n" for n in range(6)), encoding="utf-8")
    await sync(service)
    if how == "delete the file":
        path.unlink()
    else:
        path.write_text("" if how == "empty it" else "- fact 0\n", encoding="utf-8")
    state = (await sync(service))["semantic"]
    count = 5 if how == "delete most of it" else 6
    assert state.gone == count
    assert "scrubjay vault confirm" in state.problem
    assert any("confirm" in warning for warning in (await service.call(PERSON, "status", api.Nothing())).warnings)
    assert len(await stored(service)) == 6

    assert (await sync(service, file="self", confirm=True))["semantic"].gone == count, "it was said of another file"
    assert (await sync(service, file="semantic", confirm=True))["semantic"].gone == 0
    assert len(await stored(service)) == 6 - count


async def test_what_is_gone_can_be_written_there_again(service: Application, folder: Path) -> None:
    path = folder / "semantic.md"
    path.write_text("## Food\n" + "".join(f"- fact {n}\n" for n in range(6)), encoding="utf-8")
    await sync(service)
    path.unlink()
    await sync(service)
    assert (await sync(service, put_back=True))["semantic"].gone == 0
    text = path.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("-")] == [f"- fact {n}" for n in range(6)]


@pytest.mark.parametrize("what", ["binary", "latin-1", "link", "folder", "too large", "pipe"])
async def test_a_file_that_cannot_be_read_is_told_and_nothing_is_lost(
    what: str, service: Application, folder: Path, tmp_path: Path
) -> None:
    path = folder / "semantic.md"
    path.write_text("- a fact\n", encoding="utf-8")
    await sync(service)
    path.unlink()
    if what == "link":
        (tmp_path / "outside.md").write_text("- secret\n", encoding="utf-8")
        path.symlink_to(tmp_path / "outside.md")
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes({"binary": b"- a\0b\n", "latin-1": b"- caf\xe9\n"}.get(what, b"- x\n" * 300_000))
    await service.call(
        PERSON, "update", api.UpdateRequest(ref=(await stored(service))["a fact"].memory.id, content="b")
    )
    state = (await sync(service))["semantic"]
    assert state.problem.startswith("semantic.md ")
    assert set(await stored(service)) == {"b"}
    if what == "link":
        assert (tmp_path / "outside.md").read_text(encoding="utf-8") == "- secret\n"


async def test_what_one_saves_while_the_store_changes_is_not_written_over(
    service: Application, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "semantic.md"
    path.write_text("- a fact\n", encoding="utf-8")
    await sync(service)
    await add(service, "another", MemoryType.BELIEF, None)
    write = os.fsync

    def saved_meanwhile(descriptor: int) -> None:
        write(descriptor)
        path.write_text("- a fact\n- saved meanwhile\n", encoding="utf-8")
        monkeypatch.setattr(os, "fsync", write)

    monkeypatch.setattr(os, "fsync", saved_meanwhile)
    await sync(service)
    assert path.read_text(encoding="utf-8") == "- a fact\n- saved meanwhile\n- another\n"
    assert set(await stored(service)) == {"a fact", "saved meanwhile", "another"}
    assert not [one for one in folder.iterdir() if one.name[0] == "."], "nothing is left beside it"  # noqa: ASYNC240  # of no account in a test


async def test_a_secret_in_a_file_stays_there_and_is_not_stored(service: Application, folder: Path) -> None:
    path = folder / "semantic.md"
    text = "- the password = hunter2zebra!\n- <private>mine</private>\n"
    path.write_text(text, encoding="utf-8")
    state = (await sync(service))["semantic"]
    assert path.read_text(encoding="utf-8") == text
    assert (state.entries, state.refused) == (1, 1)
    assert not any("hunter2" in content or "mine" in content for content in await stored(service))
    assert (await sync(service))["semantic"].refused == 1


async def test_working_memory_is_one_note_of_500_tokens_at_most(service: Application, folder: Path) -> None:
    path = folder / "working.md"
    path.write_text("# Now\n\n- go north\n", encoding="utf-8")
    await sync(service)
    assert set(await stored(service)) == {"# Now\n\n- go north"}
    path.write_text("word " * 700, encoding="utf-8")
    state = (await sync(service))["working"]
    assert "working.md has" in state.problem
    assert set(await stored(service)) == {"# Now\n\n- go north"}
    assert path.read_text(encoding="utf-8") == "word " * 700, "nobody's words are cut"
    path.write_text("go south\n", encoding="utf-8")
    assert not (await sync(service))["working"].problem
    assert set(await stored(service)) == {"go south"}
    await service.call(ZARA, "vault_remember", api.VaultRememberRequest(text="go east", working=True))
    assert path.read_text(encoding="utf-8") == "go east\n"
    assert set(await stored(service)) == {"go east"}
    with pytest.raises(InvalidError):
        await service.call(ZARA, "vault_remember", api.VaultRememberRequest(text="word " * 700, working=True))


async def test_an_agent_appends_to_its_own_vault_and_sees_no_other(
    service: Application, folder: Path, tmp_path: Path
) -> None:
    await service.call(PERSON, "vault_init", api.VaultInitRequest(agent="kibo", folder=str(tmp_path / "kibo")))
    said = api.VaultRememberRequest(text="Found zebra berries", section="Tick 14")
    first = await service.call(ZARA, "vault_remember", said)
    assert await service.call(ZARA, "vault_remember", said) == first, "the same is written once"
    assert (folder / "episodic.md").read_text(encoding="utf-8").endswith("## Tick 14\n\n- Found zebra berries\n")
    own = await service.call(ZARA, "vault_recall", api.VaultRecallRequest(query="zebra"))
    assert [(one.file, one.section) for one in own.sections] == [("episodic.md", "Tick 14")]
    assert not (await service.call(KIBO, "vault_recall", api.VaultRecallRequest(query="zebra"))).sections
    assert not (await service.call(KIBO, "recall", api.RecallRequest(query="zebra", kinds=("memory",)))).hits
    with pytest.raises(NotFoundError):
        await service.call(KIBO, "get", api.RefRequest(ref=first.id))
    for name, request in (
        ("vault_recall", api.VaultRecallRequest(query="zebra", agent="zara")),
        ("vault_remember", api.VaultRememberRequest(text="x", agent="zara")),
        ("vault_compact", api.VaultCondenseRequest(agent="zara")),
        ("vaults", api.VaultsRequest()),
        ("vault_sync", api.VaultSyncRequest(confirm=True)),
    ):
        with pytest.raises(DeniedError):
            await service.call(KIBO, name, request)


async def test_recall_is_the_plain_bm25_of_sections(service: Application, folder: Path) -> None:
    (folder / "semantic.md").write_text(
        "## Food\n- Berries grow near rivers\n- Fish\n\n## Rivers\n- The river is wide, the river is deep\n\n## Hills\n- Steep\n",
        encoding="utf-8",
    )
    await sync(service)
    found = await service.call(PERSON, "vault_recall", api.VaultRecallRequest(query="river", agent="zara"))
    assert [(one.section, [e.text for e in one.entries]) for one in found.sections] == [
        ("Rivers", ["The river is wide, the river is deep"]),
        ("Food", ["Berries grow near rivers", "Fish"]),
    ]
    assert [entry.score > 0 for entry in found.sections[1].entries] == [True, False]


async def test_claims_of_a_source_are_counted_and_may_rank(service: Application, folder: Path) -> None:
    async def claim(source: str, text: str, how: str) -> None:
        said = api.VaultRememberRequest(text=text, source=source, claim=how)  # type: ignore[arg-type]
        await service.call(ZARA, "vault_remember", said)

    await service.call(ZARA, "vault_remember", api.VaultRememberRequest(text="food at A1 today", source="Delta"))
    await claim("Delta", "food at A1 today", "contradicted")
    await claim("Delta", "food at A7 today", "contradicted")
    await claim("Kibo", "food at A2 today", "confirmed")
    await claim("Kibo", "food at A8 today", "confirmed")
    path = folder / "social.md"
    assert "- food at A1 today (contradicted)\n" in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8") + "- food at A9 today (confirmed)\n", encoding="utf-8")
    await sync(service)

    async def asked(*, by_source: bool) -> list[tuple[str, int, int, float]]:
        request = api.VaultRecallRequest(query="food today", agent="zara", by_source=by_source)
        found = await service.call(PERSON, "vault_recall", request)
        return [(one.section, one.confirmed, one.contradicted, one.score) for one in found.sections]

    plain = {name: (right, wrong, score) for name, right, wrong, score in await asked(by_source=False)}
    ranked = {name: score for name, _, _, score in await asked(by_source=True)}
    assert {name: each[:2] for name, each in plain.items()} == {"Kibo": (3, 0), "Delta": (0, 2)}
    assert ranked["Kibo"] == pytest.approx(plain["Kibo"][2] * 1.06)
    assert ranked["Delta"] == pytest.approx(plain["Delta"][2] * 0.95)


async def test_compact_and_reflect_carry_sentences_over_word_for_word_and_can_be_undone(
    service: Application, folder: Path
) -> None:
    ticks = "".join(
        f"## Tick {n}\n- Berries grow at B2.\n- Saw bird number {n}.\n- I often move too early.\n\n" for n in range(8)
    )
    (folder / "episodic.md").write_text(ticks, encoding="utf-8")
    await sync(service)
    before = await stored(service)
    planned = await service.call(ZARA, "vault_compact", api.VaultCondenseRequest(dry_run=True))
    assert await stored(service) == before
    done = await service.call(ZARA, "vault_compact", api.VaultCondenseRequest())
    assert done.written == planned.written
    assert "- Berries grow at B2.\n" in (folder / "semantic.md").read_text(encoding="utf-8")
    left = (folder / "episodic.md").read_text(encoding="utf-8")
    assert left.count("Berries grow") == 5, "the latest sections stay"
    assert left.count("Saw bird") == 8, "what is nowhere else stays"
    assert not (await service.call(ZARA, "vault_compact", api.VaultCondenseRequest())).written
    await service.call(ZARA, "vault_reflect", api.VaultCondenseRequest())
    assert "## Patterns\n\n- I often move too early.\n" in (folder / "self.md").read_text(encoding="utf-8")
    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause))
    await sync(service)
    assert (folder / "episodic.md").read_text(encoding="utf-8").count("Berries grow") == 8
    assert "Berries" not in (folder / "semantic.md").read_text(encoding="utf-8")


async def test_compact_takes_the_headings_that_it_empties_and_no_others(service: Application, folder: Path) -> None:
    path = folder / "episodic.md"
    ticks = "".join(f"## Tick {n}\n- Berries grow at B2.\n\n" for n in range(8))
    path.write_text(f"# Episodes\n\n## Plans\n\n{ticks}", encoding="utf-8")
    await sync(service)
    kept = path.read_text(encoding="utf-8")
    done = await service.call(ZARA, "vault_compact", api.VaultCondenseRequest())
    left = path.read_text(encoding="utf-8")
    assert len(done.archived) == 3
    assert left == kept.replace("".join(f"## Tick {n}\n- Berries grow at B2.\n\n" for n in range(3)), "")
    assert "## Plans\n" in left, "the person left it empty"

    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause))
    await sync(service)
    again = path.read_text(encoding="utf-8")
    assert sorted(again.split()) == sorted(kept.split()), "what comes back brings its heading along"
    assert all(f"## Tick {n}\n\n- Berries grow at B2.\n" in again for n in range(3))


async def test_a_vault_that_is_stopped_leaves_files_and_memories(service: Application, folder: Path) -> None:
    (folder / "semantic.md").write_text("- a fact\n", encoding="utf-8")
    await sync(service)
    await service.call(PERSON, "vault_stop", api.VaultStopRequest(agent="zara"))
    (folder / "semantic.md").write_text("- another\n", encoding="utf-8")
    assert not await service.plain_files.job.due()
    assert set(await stored(service)) == {"a fact"}
    with pytest.raises(NotFoundError):
        await sync(service)
    await service.call(PERSON, "vault_init", api.VaultInitRequest(agent="zara", folder=str(folder)))
    assert set(await stored(service)) == {"a fact", "another"}


async def test_one_folder_is_one_agents(service: Application, folder: Path, tmp_path: Path) -> None:
    for agent, place, error in (
        ("zara", tmp_path / "other", ConflictError),
        ("kibo", folder, ConflictError),
        ("kibo", Path("here"), InvalidError),
        ("kibo", service.store.path.parent / "vault", InvalidError),
        ("../kibo", tmp_path / "other", InvalidError),
    ):
        with pytest.raises(error):
            await service.call(PERSON, "vault_init", api.VaultInitRequest(agent=agent, folder=str(place)))


async def test_the_job_has_nothing_to_do_once_both_agree(service: Application, folder: Path) -> None:
    (folder / "semantic.md").write_text("- a fact\n", encoding="utf-8")
    job = service.plain_files.job
    for _ in range(6):
        await job.run()
    assert not await job.due()
    await add(service, "another", MemoryType.BELIEF, None)
    assert await job.due()
    for _ in range(3):
        await job.run()
    assert not await job.due()
    assert (folder / "semantic.md").read_text(encoding="utf-8") == "- a fact\n- another\n"


async def test_what_is_forgotten_leaves_the_file_and_what_is_known_of_it(service: Application, folder: Path) -> None:
    (folder / "semantic.md").write_text("- a fact\n- zebra secret\n", encoding="utf-8")
    await sync(service)
    ref = (await stored(service))["zebra secret"].memory.id
    await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))
    await sync(service)
    assert (folder / "semantic.md").read_text(encoding="utf-8") == "- a fact\n"
    rows = await service.store.read(lambda q: q.vaults.files("zara"))
    assert ref not in rows["semantic"].known


async def test_an_entry_too_large_for_a_file_is_refused_and_written_into_none(
    service: Application, folder: Path
) -> None:
    with pytest.raises(TooLargeError):
        await service.call(ZARA, "vault_remember", api.VaultRememberRequest(text="word " * 9_000))
    await add(service, "zebra " * 300_000, MemoryType.BELIEF, None)
    assert "would have" in (await sync(service))["semantic"].problem
    assert "zebra" not in (folder / "semantic.md").read_text(encoding="utf-8")
    assert len(await stored(service)) == 1


async def test_a_file_that_cannot_be_written_follows_at_the_next_look(
    service: Application, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "semantic.md"
    path.write_text("- a fact\n- a note\n", encoding="utf-8")
    await sync(service)
    await add(service, "another", MemoryType.BELIEF, None)
    await service.call(
        PERSON, "update", api.UpdateRequest(ref=(await stored(service))["a fact"].memory.id, content="b")
    )
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert "No space left" in (await sync(service))["semantic"].problem
    assert path.read_text(encoding="utf-8") == "- a fact\n- a note\n"
    assert not (await sync(service))["semantic"].problem
    assert path.read_text(encoding="utf-8") == "- b\n- a note\n- another\n"
    assert set(await stored(service)) == {"b", "a note", "another"}


def test_the_command_line(shell: Shell, tmp_path: Path) -> None:
    shell.json("vault", "init", str(tmp_path / "zara"), "--agent", "zara")
    said = shell.json("vault", "remember", "Found zebra berries", "--section", "Tick 14")
    assert (said["file"], said["section"]) == ("episodic.md", "Tick 14")
    (tmp_path / "zara" / "self.md").write_text("- I explore\n", encoding="utf-8")
    assert shell.json("vault", "sync")["vaults"][0]["files"][2]["entries"] == 1
    assert shell.json("vault", "recall", "zebra")["sections"][0]["section"] == "Tick 14"
    assert shell.json("vault", "reflect", "--dry-run")["written"] == []
    for words, part in (
        (("vault",), "episodic.md"),
        (("vault", "recall", "zebra"), "Found zebra berries"),
        (("vault", "remember", "go north", "--working"), "working.md"),
        (("vault", "compact"), "0 entries written"),
        (("vault", "confirm"), "self.md"),
        (("vault", "stop"), "zara: stopped; its memories stay"),
    ):
        _, out, _ = shell.run("--text", *words)
        assert part in out, words
    assert shell.error("vault", "recall", "zebra")[0] == 2


async def test_what_was_forgotten_is_refused_and_does_not_hold_up_the_rest(service: Application, folder: Path) -> None:
    path = folder / "semantic.md"
    path.write_text("- a fact\n- zebra stripes are white\n", encoding="utf-8")
    await sync(service)
    ref = (await stored(service))["zebra stripes are white"].memory.id
    await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))
    await sync(service)
    text = path.read_text(encoding="utf-8") + "- zebra stripes are white\n- another fact\n"
    path.write_text(text, encoding="utf-8")
    state = (await sync(service))["semantic"]
    assert (state.entries, state.refused, state.problem) == (2, 1, "")
    assert set(await stored(service)) == {"a fact", "another fact"}
    assert path.read_text(encoding="utf-8") == text
    assert (await sync(service))["semantic"].refused == 1
