"""What `Memory` offers to look after a memory: review, plain files, audit and feedback, as the commands have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hook_process import Home
from scrubjay import Memory, api
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_REVIEW", "all")


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "store" / "agent_memory.db") as opened:
        yield opened


def test_what_waits_is_listed_accepted_and_rejected(mem: Memory) -> None:
    reviewed(mem)


def test_an_agents_memory_may_not_decide(tmp_path: Path, mem: Memory) -> None:
    mem.close()
    with (
        Memory(tmp_path / "store" / "agent_memory.db", agent="crow", project="shop") as crow,
        pytest.raises(DeniedError),
    ):
        crow.review.accept(every=True)


def test_a_state_that_there_is_not_is_refused_by_name(mem: Memory) -> None:
    with pytest.raises(InvalidError, match="'unsure' is not a state of review"):
        mem.review.list("unsure")


def test_feedback_counts_and_a_correction_takes_the_place(mem: Memory) -> None:
    port = mem.add("The crane server listens on port 9417.").memory
    assert mem.feedback(port.id).helped

    said = mem.feedback(port.id, wrong=True, content="The crane server listens on port 9500.")

    assert (said.helped, said.wrong) == (False, True)
    assert said.corrected is not None
    assert mem.audit().feedback["wrong"] == 1
    assert next(hit.text for hit in mem.search("crane server port")).endswith("9500.")
    with pytest.raises(NotFoundError):
        mem.feedback("nothing-like-it")


@pytest.mark.slow
def test_an_agents_files_are_kept_read_and_left(mem: Memory, tmp_path: Path) -> None:
    kept(mem, tmp_path / "zara")


@pytest.mark.slow
def test_a_daemon_answers_alike(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path_factory.mktemp("upkeep"), SCRUBJAY_REVIEW="all")
    monkeypatch.setenv("SCRUBJAY_HOME", str(home.folder))
    with home.daemon(), Memory(home.settings.store_path) as mem:
        assert "daemon" in repr(mem)
        reviewed(mem)
        kept(mem, home.folder / "zara")


def reviewed(mem: Memory) -> None:
    """Have an agent's words wait, accept some and reject others."""
    mem.ingest(
        [
            {
                "agent": "crow",
                "session_id": "s",
                "type": "assistant_stop",
                "text": text,
                "ts": 1_790_000_000_000 + at,
            }
            for at, text in enumerate(
                (
                    "We decided to keep carts in SQLite.",
                    "We decided to deploy the harbour crane from the release branch.",
                )
            )
        ]
    )
    mem.settle()
    waiting = mem.review.list("waiting")
    assert [one.state.value for one in waiting.entries] == ["waiting"] * 2
    assert waiting.counts["waiting"] == 2
    first, second = (one.memory.id for one in waiting.entries)

    accepted = mem.review.accept(first)
    rejected = mem.review.reject(every=True)

    assert (accepted.memories, accepted.accepted) == ((first,), True)
    assert (rejected.memories, rejected.accepted) == ((second,), False)
    assert not mem.review.list().entries
    assert rejected.cause is not None
    mem.undo(rejected.cause)
    assert [one.memory.id for one in mem.review.list().entries] == [second]
    audit = mem.audit()
    assert (audit.review["accepted"], audit.review["waiting"]) == (1, 1)
    assert {one.kind for one in audit.findings} >= {"exact_duplicate", "echo", "secret"}


def kept(mem: Memory, folder: Path) -> None:
    """Keep an agent's files in a folder, by every operation of vaults."""
    assert mem.vault.list() == ()
    [made] = mem.vault.init("zara", folder)
    assert (made.agent, made.folder) == ("zara", str(folder))
    for tick in range(8):
        mem.vault.remember("Berries grow at B2. I often move too early.", agent="zara", section=f"Tick {tick}")
    written = mem.vault.remember("Kibo said that food is at A1.", agent="zara", source="Kibo", claim="confirmed")
    assert isinstance(written, api.VaultRememberResponse)
    assert written.file == "social.md"
    assert mem.vault.recall("food", agent="zara").sections[0].section == "Kibo"

    planned = mem.vault.compact("zara", dry_run=True)
    assert mem.vault.compact("zara").written == planned.written
    assert [one.text for one in mem.vault.reflect("zara").written] == ["I often move too early."]
    assert "- Berries grow at B2.\n" in (folder / "semantic.md").read_text(encoding="utf-8")
    (folder / "semantic.md").write_text("# Semantic memory\n\n- Nuts grow at C3.\n", encoding="utf-8")
    [synced] = mem.vault.sync("zara", "semantic", confirm=True)
    assert {state.file: state.entries for state in synced.files}["semantic.md"] == 1
    assert mem.vault.stop("zara") == ()
    assert (folder / "semantic.md").read_text(encoding="utf-8").endswith("- Nuts grow at C3.\n")
