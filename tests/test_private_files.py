"""Private files are the owner's alone from their first byte, and are replaced whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from scrubjay_io import private_files
from scrubjay_shared.errors import UnavailableError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_by_one_for_its_owner_only_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "keys"
    private_files.write(path, b"old")
    path.chmod(0o644)

    private_files.write(path, b"new")

    assert (path.read_bytes(), mode(path), mode(path.parent)) == (b"new", 0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_a_half_written_file_that_a_crash_left_is_not_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 7)
    left = tmp_path / ".keys.7"
    left.write_bytes(b"longer than what is written now")
    left.chmod(0o644)

    private_files.write(tmp_path / "keys", b"new")

    assert ((tmp_path / "keys").read_bytes(), mode(tmp_path / "keys")) == (b"new", 0o600)


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.mkdir()

    with pytest.raises(UnavailableError, match="keys cannot be written"):
        private_files.write(path, b"new")

    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_private_file_is_never_made_over_another(tmp_path: Path) -> None:
    private_files.create(tmp_path / "part")

    with pytest.raises(FileExistsError):
        private_files.create(tmp_path / "part")

    assert mode(tmp_path / "part") == 0o600
