"""The first ten minutes of somebody new, from a built wheel in an empty environment, as `uv tool install` does it.

Install, init, transcripts with their tool results beside them, the notes of two projects, ten questions, why, forget,
backup, restore, a later version while the daemon runs, and leaving. Real processes, a real home; nothing of the checkout
is on the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

import scrubjay
from claude_tree import PLANTED, ClaudeHome, claude_home, two_projects_with_the_same_headings

ROOT = Path(__file__).parents[1]
MAX_INSTALLED_BYTES = 305_000_000
"""What the base install may take on the disk, the reader (24 MB) included, without extras and models to pull."""

LATER = "0.9.0"

REPLACED_S = 60.0
"""How long a daemon may take to notice that its program was replaced or removed: some seconds, on a quiet machine."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the folders of a home are those of Linux"),
]

QUESTIONS = (
    ("which database does the orders service use?", "PostgreSQL 16"),
    ("why did we choose that database?", "exclusion constraints"),
    ("how do I like tests to be written?", "pytest"),
    ("why did the checkout job fail?", "Redis lease"),
    ("what is the fix for the lease?", "renew"),
    ("what do we draw the map with?", "MapLibre"),
    ("when does the harbour map ship?", "15 March 2027"),
    ("how is alpha installed?", "poetry"),
    ("how is beta installed?", "npm"),
    ("what did we use before MapLibre?", "Leaflet"),
)


@dataclass
class Newcomer:
    """A person with an empty home: what they type, and what they are told."""

    home: Path
    uv: str
    said: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("LANG", "SSL_CERT_FILE", "TMPDIR") if key in os.environ}
        cache = {"UV_CACHE_DIR": self._cache()} if self._cache() else {}
        indexes = {key: value for key, value in os.environ.items() if key.startswith(("UV_", "PIP_"))}
        path = os.pathsep.join((str(self.home / "bin"), "/usr/bin", "/bin"))
        tool = {"UV_TOOL_DIR": str(self.home / "tools"), "UV_TOOL_BIN_DIR": str(self.home / "bin")}
        return {**indexes, **kept, **cache, **tool, "HOME": str(self.home), "PATH": path, "COLUMNS": "120"}

    def _cache(self) -> str:
        """Return the cache that `make` filled: another copy of the index's wheels would take a minute."""
        asked = subprocess.run([self.uv, "cache", "dir"], capture_output=True, text=True, check=True)
        return asked.stdout.strip()

    def run(self, *command: str, code: int = 0) -> str:
        """Type a command; what it says is kept, on stdout and stderr."""
        began = time.monotonic()
        ended = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=self.home, timeout=300, check=False
        )
        shown = " ".join(word if " " not in word else repr(word) for word in command)
        self.said.append(f"$ {shown}   [{time.monotonic() - began:.1f} s]\n{ended.stdout}{ended.stderr}")
        assert ended.returncode == code, "\n".join(self.said[-3:])
        assert "Traceback" not in ended.stderr
        return ended.stdout + ended.stderr

    def scrubjay(self, *words: str, code: int = 0) -> str:
        return self.run(str(self.home / "bin" / "scrubjay"), "--text", *words, code=code)

    def json(self, *words: str, code: int | None = 0) -> Any:
        command = [str(self.home / "bin" / "scrubjay"), "--json", *words]
        ended = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=self.home, timeout=300, check=False
        )
        assert code is None or ended.returncode == code, ended.stderr
        return json.loads(ended.stdout)

    def version_of_daemon(self) -> str:
        """Return the version of the daemon that answers; "" while none does."""
        return str((self.json("daemon", "status", code=None).get("status") or {}).get("version", ""))

    def daemons(self) -> list[psutil.Process]:
        """Return the daemons of this home."""
        return [process for process in psutil.process_iter() if _is_daemon_of(process, self.home)]


def _is_daemon_of(process: psutil.Process, home: Path) -> bool:
    try:
        return "scrubjay.daemon" in process.cmdline() and process.environ().get("HOME") == str(home)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def _wheel(folder: Path, version: str) -> Path:
    """Build the wheel of this checkout, as that version."""
    source = folder / f"source-{version}"
    names = ("local", "shared", "sync", "cloud", "bench", "docs", "pyproject.toml", "README.md", "LICENSE")
    for name in names:
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            source.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, source / name)
    for name in ("pyproject.toml", "local/scrubjay/version.py"):
        file = source / name
        text = file.read_text(encoding="utf-8").replace(f'"{scrubjay.__version__}"', f'"{version}"')
        file.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / version)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return next((folder / version).glob("*.whl"))


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    home = tmp_path_factory.mktemp("newcomer")
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, "make installs uv beside the interpreter"
    one = Newcomer(home=home, uv=found)
    try:
        yield one
    finally:
        for process in one.daemons():
            process.kill()
        folder = os.environ.get("SCRUBJAY_TRANSCRIPT")
        if folder:
            Path(folder).write_text("\n".join(one.said), encoding="utf-8")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return _wheel(folder, scrubjay.__version__), _wheel(folder, LATER)


@pytest.fixture(scope="module")
def talk(newcomer: Newcomer) -> ClaudeHome:
    return claude_home(newcomer.home)


def _installed(newcomer: Newcomer, wheel: Path, *options: str) -> None:
    # The lock's versions: what a test meets must be what the next run meets.
    lock = newcomer.home / "constraints.txt"
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lock.write_text("\n".join(re.findall(r"^[\w.-]+==[^ \\]+(?: ; [^\\]+)?", text, re.MULTILINE)), encoding="utf-8")
    python = ("--python", sys.executable, "--constraints", str(lock))
    newcomer.run(newcomer.uv, "tool", "install", "--quiet", *python, *options, str(wheel))


def test_the_first_ten_minutes(newcomer: Newcomer, wheels: tuple[Path, Path], talk: ClaudeHome) -> None:
    now, later = wheels

    # Install.
    _installed(newcomer, now)
    tools = newcomer.home / "tools"
    size = sum(path.lstat().st_size for path in tools.rglob("*") if path.is_file() and not path.is_symlink())
    newcomer.said.append(f"(installed: {size / 1e6:.0f} MB)")
    assert size <= MAX_INSTALLED_BYTES
    assert scrubjay.__version__ in newcomer.scrubjay("--version")

    # The models are those that `make` fetched; without them, recall goes by words.
    models = os.environ.get("SCRUBJAY_TEST_MODELS")
    newcomer.scrubjay("init", *(["--from", models] if models else ["--no-model"]))
    newcomer.scrubjay("daemon", "start")
    assert len(newcomer.daemons()) == 1

    # What the agents said so far, with what lies beside it.
    newcomer.scrubjay("import", str(talk.projects), "--wait")
    learned = newcomer.json("list", "--limit", "500")["entries"]
    assert learned
    texts = [entry["memory"]["content"] for entry in learned]
    assert [text for text in texts if any(word in text for word in ("Jenkins", "Debian", "acme/runner"))] == []
    said = [event["text"] for event in newcomer.json("events", "--limit", "500")["events"] if event["role"] == "user"]
    assert sorted(said) == sorted(talk.prompts)
    assert [text for text in said if any(planted in text for planted in PLANTED)] == []

    # The notes of two projects with the same headings.
    alpha, beta = two_projects_with_the_same_headings(newcomer.home)
    newcomer.scrubjay("import", str(alpha), "--project", "alpha", "--wait", "--yes")
    newcomer.scrubjay("import", str(beta), "--project", "beta", "--wait", "--yes")
    notes = newcomer.json("list", "--limit", "500", "--kind", "note")["entries"]
    assert {(entry["memory"]["resource_id"], "npm" in entry["memory"]["content"]) for entry in notes} >= {
        ("alpha", False),
        ("beta", True),
    }
    assert sum("poetry" in entry["memory"]["content"] for entry in notes) == 1

    # Ten questions.
    found = [
        any(wanted in hit["text"] for hit in newcomer.json("recall", asked)["hits"]) for asked, wanted in QUESTIONS
    ]
    newcomer.said.append(f"(answered: {sum(found)} of {len(found)})")
    for asked, _ in QUESTIONS[:2]:
        newcomer.scrubjay("recall", asked)
    assert sum(found) >= 9, dict(zip(QUESTIONS, found, strict=True))

    # Why, and forget.
    chosen = next(entry["memory"] for entry in learned if "MapLibre" in entry["memory"]["content"])
    assert "We decided to draw the harbour map with MapLibre" in newcomer.scrubjay("why", chosen["id"])
    assert "README.md" in newcomer.scrubjay("why", next(e["memory"]["id"] for e in notes))
    copy = newcomer.home / "copy.db"
    newcomer.scrubjay("backup", str(copy))
    newcomer.scrubjay("forget", chosen["id"])
    newcomer.scrubjay("get", chosen["id"], code=3)
    assert not [hit for hit in newcomer.json("recall", "MapLibre")["hits"] if "MapLibre instead" in hit["text"]]

    # Restore.
    assert "daemon stop" in newcomer.scrubjay("restore", str(copy), code=5)
    newcomer.scrubjay("daemon", "stop")
    newcomer.scrubjay("restore", str(copy), "--with-forgotten")
    newcomer.scrubjay("daemon", "start")
    assert newcomer.json("get", chosen["id"])["memory"]["content"] == chosen["content"]

    # A later version, while the daemon runs: it says so, and is replaced by itself.
    _installed(newcomer, later, "--force")
    told = newcomer.scrubjay("stats")
    assert LATER in newcomer.scrubjay("--version")
    assert "scrubjay daemon restart" in told or newcomer.version_of_daemon() == LATER
    deadline = time.monotonic() + REPLACED_S
    while newcomer.version_of_daemon() != LATER and time.monotonic() < deadline:
        time.sleep(0.5)
    assert newcomer.version_of_daemon() == LATER
    assert len(newcomer.daemons()) == 1
    assert newcomer.json("get", chosen["id"])["memory"]["content"] == chosen["content"]
    newcomer.scrubjay("doctor", "--deep")

    # Leaving: the program goes, the daemon notices and ends, the memories stay until their folder is deleted.
    data = Path(newcomer.json("daemon", "status")["status"]["file"])
    newcomer.run(newcomer.uv, "tool", "uninstall", "--quiet", "scrubjay")
    deadline = time.monotonic() + REPLACED_S
    while newcomer.daemons() and time.monotonic() < deadline:
        time.sleep(0.5)
    assert newcomer.daemons() == []
    assert not (newcomer.home / "bin" / "scrubjay").exists()
    assert data.is_file()
