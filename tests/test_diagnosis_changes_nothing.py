"""Looking at a store changes no byte of it: not the store, not its log, not one of the copies beside it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hook_process import PATIENCE_SECONDS, Home, prompt
from scrubjay.policy import DEFAULT
from scrubjay.store import nightly_copies, save_index

LOOKS = (
    ("doctor",),
    ("doctor", "--deep"),
    ("daemon", "status"),
    ("stats",),
    ("verify",),
    ("jobs", "list"),
    ("setup", "--dry-run", "claude-code"),
    ("audit",),
    ("history",),
    ("forget", "--status"),
)


class Machine:
    """A home with a daemon, a host that is set up, and every kind of copy that a store has beside it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.environ = {**os.environ, **home.environ, "SCRUBJAY_HOME": str(home.folder), "HOME": str(home.folder)}
        self.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{self.environ.get('PATH', '')}"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return subprocess.run(
            [sys.executable, "-m", "scrubjay.cli", *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def bytes_of_data(self) -> dict[str, str]:
        """Return the digest of every file of the data folder but the one that SQLite's readers share."""
        data = self.home.data
        return {
            str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(data.rglob("*"))
            if path.is_file() and not path.name.endswith("-shm")
        }


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with copies of two nights and of a migration, a saved index, and jobs that rest."""
    home = Home(tmp_path_factory.mktemp("looked-at"))
    (home.folder / ".claude").mkdir()
    machine = Machine(home)
    with home.daemon():
        assert machine.run("setup", "claude-code").returncode == 0
        home.hook("claude-code", "UserPromptSubmit", prompt("s1", "We chose SQLite for the cart."))
        home.ask("POST", "/v1/memories", {"content": "The cart is stored in SQLite."})
        for _ in range(2):
            home.ask("POST", "/v1/jobs/backup/run", {})
        store = home.settings.store_path
        copy = nightly_copies(store)[0]
        store.with_name(f"{store.name}.v27.bak").write_bytes(copy.read_bytes())
        assert save_index(store, {}, {}, {}, stop=lambda: False)
        for job in home.ask("GET", "/v1/jobs")["jobs"]:
            home.ask("POST", f"/v1/jobs/{job['name']}/pause", {})
        time.sleep(DEFAULT.trace.flush_seconds + 1)  # what was done until now is traced
        yield machine


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_looking_changes_no_byte_of_the_data_folder(machine: Machine, look: tuple[str, ...]) -> None:
    before = machine.bytes_of_data()
    assert {"memory.db", "memory.db.v27.bak", "memory.db.index"} <= before.keys()
    assert sum("nightly" in name for name in before) == 2

    done = machine.run(*look)

    assert done.returncode == 0, (done.stdout, done.stderr)
    assert machine.bytes_of_data() == before
    if look[0] == "doctor":
        assert "an event sent now arrives" in done.stdout
