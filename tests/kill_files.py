"""kill -9 of commands at each step that changes files: at every unlink, fsync, rename and link, and at random moments.

`python -m kill_files` prints figures; `make kill-rounds` runs it. Whatever was killed, the store opens, is whole, and
says what it said before or after the command; a backup is whole or not there; and the command works the next time.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay import cli
from scrubjay.cli import table
from scrubjay.service import application  # noqa: F401  # what every command loads is loaded once, before the forks
from scrubjay.store import file

SOURCE = Path(__file__).with_name("dying.c")
PRELOADED = "SCRUBJAY_TEST_DYING"
SECRET = "quvexzoldrun"
COPIES = 2


@dataclass(frozen=True)
class Scene:
    """A command on a home: what lies there before, and what must hold after it was killed."""

    name: str
    before: str
    words: tuple[str, ...]
    may_say: frozenset[str] = frozenset()
    """The states that the store may have afterwards; nothing where a new one may be made."""


def built(folder: Path) -> Path:
    """Compile the library that ends a process at a step."""
    made = folder / "dying.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    return made


def forked(work: Callable[[], Any], *, kill_after: float | None = None) -> Any:
    """Return what `work` returns in a child of this process, None where the child was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1), os.dup2(null, 2)
            with os.fdopen(write, "w") as out:
                json.dump(work(), out)
        finally:
            os._exit(0)
    os.close(write)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with os.fdopen(read) as told:
        said = told.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


def command(home: Path, *words: str) -> tuple[int, Any]:
    """Run a command line in this process: return its exit code and what it printed."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(["--home", str(home), "--json", *words])
    out.flush()
    text = out.buffer.getvalue().decode()
    return code, json.loads(text) if text else err.getvalue()


class Stage:
    """The homes that commands are killed in, made once, and copied for each trial."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.old, self.new = folder / "old", folder / "new"
        self.copy = folder / "copy.db"
        for home, words in ((self.new, "tern"), (self.old, "gull")):
            for n in range(12):
                assert forked(lambda home=home, n=n, words=words: command(home, "add", f"{words} {n}"))[0] == 0
        assert forked(lambda: command(self.new, "backup", str(self.copy)))[0] == 0
        self.says = {
            home: forked(lambda home=home: command(home, "audit"))[1]["state"] for home in (self.old, self.new)
        }
        self.make("empty")
        plain = self.make("plain") / "data"
        plain.mkdir()
        shutil.copy(self.copy, plain / "memory.db")  # of a rollback journal, as whoever copies a backup there leaves it
        forked(lambda: self._aged(self.make("aged") / "data" / "memory.db"))
        forgotten = forked(lambda: self._with_copies(self.make("copied")))
        both = frozenset(self.says.values())
        kept = frozenset({self.says[self.new]})
        self.scenes = (
            Scene("first init", "empty", ("init", "--no-model")),
            Scene("first add", "empty", ("add", "the first words")),
            Scene("add", "old", ("add", "more words")),
            Scene("add to a copied backup", "plain", ("add", "more words")),
            Scene("restore", "old", ("restore", str(self.copy)), both),
            Scene("restore over a copied backup", "plain", ("restore", str(self.copy)), kept),
            Scene("backup", "old", ("backup", "{home}/out.db"), frozenset({self.says[self.old]})),
            Scene("upgrade", "aged", ("stats",)),
            Scene("rebuild", "old", ("rebuild",), frozenset({self.says[self.old]})),
            Scene("salvage", "old", ("salvage",), frozenset({self.says[self.old]})),
            Scene("forget a memory", "copied", ("forget", forgotten)),
            Scene("forget a session", "copied", ("forget", "--session", "talk", "--yes")),
        )

    def make(self, name: str) -> Path:
        """Make a home with nothing in it."""
        home = self.folder / name
        home.mkdir()
        return home

    def _aged(self, path: Path) -> None:
        path.parent.mkdir()
        file.create(path, file.migrations()[:9], file.created(1_790_000_000_000, "a" * 32, "b" * 32))

    def _with_copies(self, home: Path) -> str:
        """Fill a home with what is to be forgotten, and with copies that hold it too. Returns a memory's id."""
        shutil.copytree(self.old, home, dirs_exist_ok=True)
        events = home / "events.jsonl"
        events.write_text(
            "".join(
                json.dumps({"agent": "a", "session_id": "talk", "type": "user_message", "text": f"{SECRET} number {n}"})
                + "\n"
                for n in range(6)
            )
        )
        assert command(home, "ingest", str(events))[0] == 0
        events.unlink()
        added: str = command(home, "add", f"The word is {SECRET}.")[1]["memory"]["id"]
        nightly = home / "data" / "memory.db.nightly"
        nightly.mkdir()
        for copy in (nightly / "memory-2026-11-26T030000.000Z.db", home / "data" / "memory.db.v27.bak", home / "b.db"):
            assert command(home, "backup", str(home / "b.db"), "--force")[0] == 0
            shutil.move(home / "b.db", copy)
        (home / "b.db").unlink()
        return added

    def home(self, scene: Scene) -> Path:
        """Return a fresh copy of what lies there before a scene."""
        home = self.folder / "trial"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.folder / scene.before, home)
        return home


def played(scene: Scene, home: Path, at: int) -> int | None:
    """Run a scene's command until its n-th step. Returns its number of steps where it came to its end."""

    def work() -> int:
        library = ctypes.CDLL(os.environ[PRELOADED])
        library.die_at(ctypes.c_long(at), str(home).encode())
        code, said = command(home, *(word.format(home=home) for word in scene.words))
        assert code == 0, said
        return int(library.died_of())

    found: int | None = forked(work)
    return found


def broken(scene: Scene, home: Path) -> list[str]:
    """Return what does not hold after a command was killed, and was run again."""
    wrong: list[str] = []

    def ask(*words: str) -> Any:
        answer = forked(lambda: command(home, *words))
        if answer is None or answer[0] != 0:
            wrong.append(f"{' '.join(words[:2])}: {answer}")
            return {}
        return answer[1]

    out = home / "out.db"
    if out.exists():
        ask("verify", str(out))
    ask("stats")
    failed = [check for check in ask("doctor", "--deep").get("checks", ()) if check["state"] == "fail"]
    wrong.extend(f"{check['name']}: {check['found']}" for check in failed)
    said = ask("audit").get("state")
    if scene.may_say and said not in scene.may_say:
        wrong.append("it says neither what it said before nor what it was to say")
    if scene.name.startswith("forget"):
        return [*wrong, *held_after(scene, home)]
    again = [word.format(home=home) for word in scene.words]
    ask(*again, *(["--force"] if scene.name == "backup" and out.exists() else []))
    if scene.name == "backup":
        wrong.extend(f"{left.name} was left" for left in home.glob(".*.part*"))
    ask("verify")
    return wrong


def held_after(scene: Scene, home: Path) -> list[str]:
    """Return what does not hold once what was to be forgotten is forgotten again, or else the next thing is."""
    kept = file.automatic_copies(home / "data" / "memory.db")
    wrong = [f"{copy.name}: {found[0]}" for copy in kept if (found := file.check(copy))]
    if len(kept) != COPIES:
        wrong.append(f"{len(kept)} copies are left of {COPIES}")
    again = forked(lambda: command(home, *scene.words))
    if again is None:
        wrong.append("the same again did not end")
    for words in (("add", "the next words", "--name", "next"), ("forget", "next"), ("verify",)):
        answer = forked(lambda words=words: command(home, *words))
        wrong += [] if answer is not None and answer[0] == 0 else [f"{words}: {answer}"]
    only = f"The word is {SECRET}.".encode() if "memory" in scene.name else f"{SECRET} number".encode()
    files = [path for path in home.rglob("*") if path.is_file()]
    return [*wrong, *(f"{path.name} holds what was forgotten" for path in files if only in path.read_bytes())]


def play(trials: int, seed: int, folder: Path, only: str = "") -> tuple[Counter[str], list[str]]:
    """Kill `trials` commands, half of them at steps spread over each command, half at random moments."""
    draw = random.Random(seed)
    stage = Stage(folder)
    kills: Counter[str] = Counter()
    failures: list[str] = []
    scenes = [scene for scene in stage.scenes if scene.name.startswith(only)]
    each = -(-trials // len(scenes))
    for scene in scenes:
        began = time.monotonic()
        steps = played(scene, stage.home(scene), 0)
        took = time.monotonic() - began
        assert steps, scene
        points = draw.sample(range(1, steps + 1), min(steps, -(-each // 2)))
        for point in (*points, *(None for _ in range(each - len(points)))):
            home = stage.home(scene)
            if point is None:
                forked(
                    lambda scene=scene, home=home: command(home, *(word.format(home=home) for word in scene.words)),
                    kill_after=draw.uniform(0, took),
                )
            else:
                played(scene, home, point)
            kills[scene.name] += 1
            failures.extend(f"{scene.name}, step {point} of {steps}: {one}" for one in broken(scene, home))
    return kills, failures


def main(argv: Sequence[str] | None = None) -> int:
    """Play, and print what came of it."""
    parser = argparse.ArgumentParser(prog="kill_files")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--scene", default="", help="only of these, by how their names begin")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args(argv)
    if not shutil.which("cc"):
        sys.stdout.write("no C compiler here: nothing was killed at its steps\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if PRELOADED not in os.environ:
            library = built(Path(folder))
            kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
            environ = kept | {"LD_PRELOAD": str(library), PRELOADED: str(library), "HOME": folder}
            environ |= {"SCRUBJAY_MODEL": "none", "SCRUBJAY_PORT": "0", "SCRUBJAY_MODELS_DIR": f"{folder}/models"}
            words = ["--trials", str(chosen.trials), "--seed", str(chosen.seed), "--scene", chosen.scene]
            return subprocess.run([sys.executable, "-m", "kill_files", *words], env=environ, check=False).returncode
        for name in table.COMMANDS:
            importlib.import_module(f"scrubjay.cli.commands.{name.rstrip('_')}{'_' * (name in {'import', 'list'})}")
        began = time.monotonic()
        kills, failures = play(chosen.trials, chosen.seed, Path(folder), chosen.scene)
        for failure in failures:
            sys.stdout.write(f"{failure}\n")
        counted = "".join(f"  {count:>4}  {name}\n" for name, count in sorted(kills.items()))
        sys.stdout.write(
            f"{kills.total()} commands killed in {time.monotonic() - began:.0f} s (seed {chosen.seed})\n{counted}"
            f"{len(failures)} failures\n"
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
