"""A command that a person runs at a terminal loads no more than the same command in a pipe."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scrubjay import store
from scrubjay.settings import load
from scrubjay_io.sqlite import driver

RUN = """
import json, sys
from scrubjay.cli import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    json.dump([code, sorted(sys.modules)], file)
"""
COMMANDS = (
    ["stats", "--text"],
    pytest.param(["docs", "guide"], marks=pytest.mark.slow),
    pytest.param(["recall", "where is the quay", "--text"], marks=pytest.mark.slow),
    pytest.param(["list", "--text"], marks=pytest.mark.slow),
    pytest.param(["jobs", "list", "--text"], marks=pytest.mark.slow),
)
BESIDE = {"scrubjay.cli.notices", "scrubjay.folders"}
"""What looks whether there is something to be told."""
TO_TELL = {"scrubjay_io", "scrubjay.store", "scrubjay.store.alarms", "scrubjay_io.sqlite", "scrubjay_shared.clock"}
"""What reads whether there is, where sync was set up; with libraries of others."""


def loaded(home: Path, command: list[str], *, terminal: bool) -> tuple[set[str], str]:
    """Return the modules that a command loads, and what it tells a person, its error output a terminal or not."""
    found = home.with_name("modules.json")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SCRUBJAY_HOME": str(home), "SCRUBJAY_PORT": "0"}
    environ |= {"SCRUBJAY_MODEL": "none", "TERM": "dumb"}
    ours, theirs = pty.openpty() if terminal else os.pipe()
    try:
        line = [sys.executable, "-c", RUN, str(found), *command]
        subprocess.run(line, env=environ, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
        os.close(theirs)
        told = b""
        try:
            while piece := os.read(ours, 65_536):
                told += piece
        except OSError:  # a terminal at whose other end nobody is left
            pass
    finally:
        os.close(ours)
    code, modules = json.loads(found.read_text(encoding="utf-8"))
    assert code == 0, told.decode()
    return set(modules), told.decode()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("home")
    loaded(made, ["add", "The quay is closed on Sundays."], terminal=False)
    return made


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_terminal_loads_no_more_than_a_pipe(home: Path, command: list[str]) -> None:
    piped, _ = loaded(home, command, terminal=False)
    shown, told = loaded(home, command, terminal=True)

    assert shown - piped <= BESIDE
    assert "!" not in told


def test_where_sync_was_set_up_what_waits_is_told_and_little_more_is_loaded(home: Path) -> None:
    chosen = load(environ={"SCRUBJAY_HOME": str(home)})
    (chosen.data_dir / "sync.keys").touch()
    try:
        piped, _ = loaded(home, ["docs", "guide"], terminal=False)
        shown, _ = loaded(home, ["docs", "guide"], terminal=True)
        assert {name for name in shown - piped if name.startswith("scrubjay")} <= BESIDE | TO_TELL

        with closing(driver.connect(str(chosen.store_path), isolation_level=None)) as connection:
            connection.execute(
                "insert into alarm (at, code, subject, message, hint) values (0, 'split', 's', 'two histories', 'verify')"
            )
        _, told = loaded(home, ["docs", "guide"], terminal=True)
        assert "! two histories (split, since" in told
        with closing(driver.connect(str(chosen.store_path), isolation_level=None)) as connection:
            connection.execute("delete from alarm")
    finally:
        (chosen.data_dir / "sync.keys").unlink()


def test_every_name_of_the_store_can_be_had() -> None:
    assert all(getattr(store, name) is not None for name in store.__all__)
    with pytest.raises(AttributeError):
        _ = store.nothing_of_the_kind
