"""What a person is told to install names the scrubjay that they have, and the installer that they used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from scrubjay_shared.extras import install_command

CHECKOUT = {"url": "file:///home/ann/my%20code/scrubjay", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///home/ann/scrubjay", "dir_info": {}}
WHEEL = {"url": "file:///tmp/scrubjay-0.1.0-py3-none-any.whl", "archive_info": {}}
REPOSITORY = {"url": "https://git.example.org/scrubjay", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}
ON_WINDOWS = {"url": "file:///C:/code/scrubjay", "dir_info": {}}


@dataclass(frozen=True)
class Metadata:
    """The metadata of a distribution: its files by name."""

    files: Mapping[str, str | None]

    def read_text(self, filename: str) -> str | None:
        return self.files.get(filename)


@pytest.mark.parametrize(
    ("origin", "installer", "receipts", "command"),
    [
        (None, "pip", (), "pip install 'scrubjay[sync]'"),
        (CHECKOUT, "pip", (), "pip install -e '/home/ann/my code/scrubjay[sync]'"),
        (FOLDER, "pip\n", (), "pip install '/home/ann/scrubjay[sync]'"),
        (FOLDER, "uv", (), "uv pip install '/home/ann/scrubjay[sync]'"),
        (WHEEL, "pip", (), "pip install 'scrubjay[sync] @ file:///tmp/scrubjay-0.1.0-py3-none-any.whl'"),
        (REPOSITORY, "pip", (), "pip install 'scrubjay[sync] @ git+https://git.example.org/scrubjay@abc123'"),
        (FOLDER, "uv", ("uv-receipt.toml",), "uv tool install --force '/home/ann/scrubjay[sync]'"),
        (None, "pip", ("pipx_metadata.json",), "pipx install --force 'scrubjay[sync]'"),
        (ON_WINDOWS, "pip", (), "pip install 'scrubjay[sync] @ file:///C:/code/scrubjay'"),
    ],
)
def test_the_command_adds_the_extra_to_what_is_installed(
    tmp_path: Path, origin: dict[str, object] | None, installer: str, receipts: tuple[str, ...], command: str
) -> None:
    for name in receipts:
        (tmp_path / name).touch()
    installed = Metadata({"direct_url.json": None if origin is None else json.dumps(origin), "INSTALLER": installer})

    assert install_command("sync", installed, tmp_path) == command


@pytest.mark.parametrize("direct_url", ["", "not JSON", "[]", "{}"])
def test_metadata_that_says_nothing_names_the_package_alone(tmp_path: Path, direct_url: str) -> None:
    assert install_command("cloud", Metadata({"direct_url.json": direct_url}), tmp_path) == (
        "pip install 'scrubjay[cloud]'"
    )
