"""The doctor finds damage and open doors, and changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_shell import Shell, checks

IS_ROOT = sys.platform != "win32" and os.geteuid() == 0


def test_the_doctor_finds_a_new_store_healthy(shell: Shell) -> None:
    shell.json("init")
    shell.json("add", "We chose SQLite")

    code, found = checks(shell)

    assert code == 0
    assert "fail" not in found.values()
    assert (found["integrity"], found["schema"], found["data folder"]) == ("ok", "ok", "ok")


def test_the_doctor_makes_nothing(shell: Shell) -> None:
    code, found = checks(shell)

    assert code == 0
    assert found["store"] == "warn"
    assert not shell.home.exists()


def test_the_doctor_finds_damage_and_says_what_to_do(shell: Shell) -> None:
    for n in range(50):
        shell.json("add", f"note number {n} about the harbour and its berths")
    path = shell.home / "data" / "memory.db"
    damaged = bytearray(path.read_bytes())
    damaged[8192:16384] = b"\xaa" * 8192
    path.write_bytes(damaged)

    code, found = checks(shell)

    assert code == 7
    assert found["integrity"] == "fail"
    assert path.read_bytes() == damaged
    assert shell.error("stats")[0] == 7


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes there")
@pytest.mark.skipif(IS_ROOT and not shutil.which("setpriv"), reason="root may write anywhere")
@pytest.mark.parametrize(
    ("words", "said", "untrue"),
    [
        (("doctor",), "cannot be made", "scrubjay init makes it"),
        (("backup", "{home}/copy.db"), "the folder {home} cannot be written", ".part"),
        (("uninstall", "--yes"), "cannot be created", "nothing of scrubjay stands"),
    ],
)
def test_a_home_that_cannot_be_written_is_told_as_such(
    tmp_path: Path, words: tuple[str, ...], said: str, untrue: str
) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    home.chmod(0o555)
    unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if IS_ROOT else []
    program = [
        *unprivileged,
        sys.executable,
        "-m",
        "scrubjay.cli",
        *(word.format(home=home) for word in words),
        "--text",
    ]
    store = {"SCRUBJAY_DATA_DIR": str(tmp_path / "store")} if words[0] == "backup" else {}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCRUBJAY", "XDG"))}

    done = subprocess.run(program, env=kept | {"HOME": str(home)} | store, capture_output=True, text=True, check=False)

    home.chmod(0o755)
    assert said.format(home=home) in done.stdout + done.stderr
    assert untrue not in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes there")
def test_the_doctor_finds_open_doors(shell: Shell) -> None:
    shell.json("init")
    (shell.home / "data").chmod(0o755)
    (shell.home / "data" / "token").write_text("x" * 43, encoding="ascii")
    (shell.home / "data" / "token").chmod(0o644)

    code, found = checks(shell)

    assert code == 6
    assert (found["data folder"], found["token"]) == ("warn", "fail")
