"""The doctor finds damage and open doors, and changes nothing."""

from __future__ import annotations

import sys

import pytest

from cli_shell import Shell, checks


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
def test_the_doctor_finds_open_doors(shell: Shell) -> None:
    shell.json("init")
    (shell.home / "data").chmod(0o755)
    (shell.home / "data" / "token").write_text("x" * 43, encoding="ascii")
    (shell.home / "data" / "token").chmod(0o644)

    code, found = checks(shell)

    assert code == 6
    assert (found["data folder"], found["token"]) == ("warn", "fail")
