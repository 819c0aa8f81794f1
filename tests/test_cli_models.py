"""`init` and `models`: private folders, and which choice of a model wins."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from cli_shell import Shell


def test_init_makes_private_folders_and_never_asks_into_the_void(shell: Shell) -> None:
    report = shell.json("init")

    assert report["model_state"] == "none"
    assert report["reranker_state"] == "absent"
    assert stat.S_IMODE((shell.home / "data").stat().st_mode) == 0o700
    assert shell.json("init")["memories"] == 0


def test_init_without_a_terminal_fetches_nothing(shell: Shell) -> None:
    ended = shell.process("--text", "init", env={"SCRUBJAY_MODEL": "bge-small-en-v1.5"})

    assert ended.returncode == 0, ended.stderr
    assert b"scrubjay models pull" in ended.stdout
    assert not any((shell.home / "models").iterdir())


def test_a_chosen_model_is_kept_in_the_settings(shell: Shell) -> None:
    shell.json("models", "use", "none")
    shell.json("models", "use", "--reranker", "none")

    assert (shell.home / "config.toml").read_text(encoding="utf-8") == 'model = "none"\nreranker = "none"\n'


def test_a_model_that_two_places_name_is_said_and_the_store_wins_over_the_settings_file(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_MODEL")
    shell.json("models", "use", "none")
    in_agreement = shell.json("models")["notes"]
    (shell.home / "config.toml").write_text('model = "e5-small-v2"\n', encoding="utf-8")

    (note,) = shell.json("models")["notes"]
    _, out, _ = shell.run("doctor")
    found = {check["found"]: check for check in json.loads(out)["checks"] if check["name"] == "model"}

    assert in_agreement == []
    assert "the settings file says e5-small-v2; the store uses none" in note
    assert "scrubjay models use e5-small-v2" in note
    assert [(check["state"], check["todo"]) for text, check in found.items() if "two places" in text] == [
        ("warn", "To use e5-small-v2, run: scrubjay models use e5-small-v2")
    ]
    assert any(text.startswith("none, because 'scrubjay models use none' was run") for text in found)


def test_a_model_named_for_one_process_wins_and_is_not_overridden_in_silence(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_MODEL")
    shell.json("models", "use", "none")
    monkeypatch.setenv("SCRUBJAY_MODEL", "e5-small-v2")

    answer = shell.json("models")
    code, _, err = shell.run("models", "use", "none")

    assert [model["name"] for model in answer["models"] if model["in_use"]] == [
        "e5-small-v2",
        "ms-marco-MiniLM-L-12-v2",
    ]
    assert "SCRUBJAY_MODEL says e5-small-v2, which is used; the store says none" in answer["notes"][0]
    assert code == 5
    assert "unset SCRUBJAY_MODEL" in err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the folders are not those of XDG")
def test_models_pull_leaves_no_folder_open_to_others(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    for part in ("CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{part}_HOME", raising=False)
    (tmp_path / "nothing").mkdir()

    code, _, _ = shell.run("models", "pull", "e5-small-v2", "--from", str(tmp_path / "nothing"))

    assert code != 0
    assert stat.S_IMODE((tmp_path / ".local" / "share" / "scrubjay").stat().st_mode) == 0o700


def test_pulling_without_a_name_needs_a_model_in_the_settings(shell: Shell) -> None:
    shell.json("models", "use", "--reranker", "none")

    code, _, err = shell.run("models", "pull")

    assert code == 2
    assert "models pull NAME" in err
