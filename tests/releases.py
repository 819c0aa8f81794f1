"""Processes of a released version: its wheel, unpacked before everything else on the path of this environment's Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

WHEELS = Path(__file__).parent / "fixtures" / "releases"
RELEASED = ("0.1.0",)


class Release:
    """The code of one released version, and a home for its processes."""

    def __init__(self, version: str, folder: Path) -> None:
        self.code = folder / "code"
        self.home = folder / "home"
        with zipfile.ZipFile(WHEELS / f"scrubjay-{version}-py3-none-any.whl") as wheel:
            wheel.extractall(self.code)

    @property
    def environ(self) -> dict[str, str]:
        """What today's processes for this home are started with."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
        folder = str(self.home.parent)
        return kept | {
            "HOME": folder,
            "SCRUBJAY_HOME": str(self.home),
            "SCRUBJAY_MODEL": "none",
            "SCRUBJAY_PORT": "0",
            "SCRUBJAY_MODELS_DIR": str(self.home.parent / "models"),
        }

    def run(self, *words: str, stdin: str = "") -> str:
        """Run a module of the released version with arguments, and return what it wrote."""
        return ran(["-m", *words], self.environ | {"PYTHONPATH": str(self.code)}, stdin)

    def answers(self, *lines: tuple[str, ...]) -> list[Any]:
        """Return the JSON of some command lines of the released version, run in one process."""
        environ = self.environ | {"PYTHONPATH": str(self.code)}
        *answers, where = json.loads(ran(["-c", _COMMANDS], environ, json.dumps(lines)))
        assert Path(where).is_relative_to(self.code), f"{where} is not the released version"
        return answers

    def answers_now(self, *lines: tuple[str, ...]) -> list[Any]:
        """Return the JSON of some command lines of today's version on the same home."""
        return list(json.loads(ran(["-c", _COMMANDS], self.environ, json.dumps(lines)))[:-1])


def ran(arguments: list[str], environ: dict[str, str], stdin: str = "") -> str:
    """Return what a process of Python wrote that must end well."""
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        input=stdin,
        env=environ,
        cwd=tempfile.gettempdir(),  # in no repository, whose project some commands would take by now
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, (arguments[:3], done.stderr)
    return done.stdout


_COMMANDS = """
import contextlib, io, json, sys
import scrubjay
from scrubjay.cli import main
answers = []
for line in json.load(sys.stdin):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        code = main(["--json", *line])
    out.flush()
    if code:
        sys.exit(f"{line}: {code}")
    answers.append(json.loads(out.buffer.getvalue().decode()))
print(json.dumps([*answers, scrubjay.__file__]))
"""
