"""Hooks: what `scrubjay-hook` costs a host that waits for it, as whole processes, beside the bare interpreter.

Each run of a hook has a run of the interpreter right before it, and the difference of the two is what is measured: how
busy the machine is falls on both alike.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from scrubjay import folders
from scrubjay_bench import daemons
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_shared.errors import UnavailableError

LONGEST_WRITE_SECONDS = 20.0
HUNG = 10  # of those that are waited for half a second each
EACH = 40  # runs of each kind a round: with the usual five rounds 200
UP_MS, DOWN_MS, INJECT_MS = 20.0, 60.0, 120.0
SAID = (
    "We decided to use SQLite in WAL mode for the cart store.",
    "I prefer tabs over spaces in every project.",
    "The staging server listens on port 8443 behind nginx.",
)
ASKED = "Which mode of SQLite did we decide to use for the cart store?"

_numbers = count()


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; about two minutes."""
    rounds = Rounds()
    with (
        daemons.scratch(plan.scratch) as folder,
        daemons.serving(folder / "up", models_dir=plan.models_dir, model=plan.model) as daemon,
        _hung(folder / "hung"),
    ):
        environ = daemons.environment(folder / "up", models_dir=plan.models_dir, model=plan.model)
        _teach(environ, folder / "up")
        with daemon.client() as client:
            client.call("POST", "/v1/settle", {"timeout_ms": 60_000})
        for _ in range(plan.rounds):
            took: dict[str, list[float]] = {}
            for _ in range(EACH):
                for name, home, words in (
                    ("up", "up", ("claude-code", "UserPromptSubmit")),
                    ("down", "down", ("claude-code", "UserPromptSubmit")),
                    ("inject", "up", ("inject", "claude-code", "UserPromptSubmit")),
                ):
                    (bare, bare_cpu), (whole, cpu) = _bare(environ), _hook(environ, folder / home, words)
                    took.setdefault("python", []).append(bare)
                    took.setdefault(name, []).append(whole)
                    took.setdefault(f"{name}.more", []).append(whole - bare)
                    took.setdefault(f"{name}.cpu", []).append(cpu - bare_cpu)
                    if home == "down":
                        _rest(folder / home)
            for _ in range(HUNG):
                took.setdefault("hung", []).append(_hook(environ, folder / "hung", ("claude-code", "Stop"))[0])
                _rest(folder / "hung")
            for name, seconds in took.items():
                rounds.add_latencies(f"hook.{name}", seconds, 50, 95)
    return _figures(rounds)


def _figures(rounds: Rounds) -> list[Figure]:
    found = [
        rounds.figure(
            f"hook.python.p{percent}", f"the bare interpreter: python -c pass, p{percent}", "ms", samples=3 * EACH
        )
        for percent in (50, 95)
    ]
    for name, what, goal in (
        ("up", "a hook, the daemon up", UP_MS),
        ("down", "a hook, the daemon away: what it costs the host", DOWN_MS),
        ("inject", "a hook that hands over what recall finds", INJECT_MS),
    ):
        for percent in (50, 95):
            bound = goal if percent == 95 else None
            busy = f"{what}: processor time more than the interpreter's, p{percent}"
            found.append(rounds.figure(f"hook.{name}.cpu.p{percent}", busy, "ms", samples=EACH))
            whole = bound if name == "inject" else None
            found.append(
                rounds.figure(f"hook.{name}.p{percent}", f"{what}, p{percent}", "ms", samples=EACH, goal=whole)
            )
            found.append(
                rounds.figure(
                    f"hook.{name}.more.p{percent}",
                    f"{what}: more than the interpreter, p{percent}",
                    "ms",
                    samples=EACH,
                    goal=None if name == "inject" else bound,
                )
            )
    found += [
        rounds.figure(f"hook.hung.p{percent}", f"a hook, the daemon hung, p{percent}", "ms", samples=HUNG)
        for percent in (50, 95)
    ]
    return found


def payload(text: str) -> bytes:
    """Return what Claude Code sends for a prompt, of a session of its own."""
    number = next(_numbers)
    fields: dict[str, Any] = {
        "session_id": f"session-{number}",
        "transcript_path": f"/home/ana/.claude/projects/-home-ana-shop/session-{number}.jsonl",
        "cwd": "/home/ana/shop",
        "prompt_id": f"prompt-{number}",
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }
    return json.dumps(fields).encode()


def _teach(environ: Mapping[str, str], home: Path) -> None:
    for text in SAID:
        _run(environ, home, ("claude-code", "UserPromptSubmit"), payload(text))


def _hook(environ: Mapping[str, str], home: Path, words: tuple[str, ...]) -> tuple[float, float]:
    return _run(environ, home, words, payload(ASKED))


def _run(environ: Mapping[str, str], home: Path, words: tuple[str, ...], given: bytes) -> tuple[float, float]:
    script = Path(sys.executable).with_name("scrubjay-hook")  # what an installer registers
    return _process([str(script), *words], {**environ, "SCRUBJAY_HOME": str(home)}, given)


def _bare(environ: Mapping[str, str]) -> tuple[float, float]:
    return _process([sys.executable, "-c", "pass"], environ, b"")


def _process(command: Sequence[str], environ: Mapping[str, str], given: bytes) -> tuple[float, float]:
    """Run a process; return how long it took, and the processor time of it, in seconds."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ) as process:
        if process.stdin is not None:
            process.stdin.write(given)
            process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UnavailableError(f"a hook ended with {process.returncode}", hint="run it by hand")
    return took, used.ru_utime + used.ru_stime


def _rest(home: Path) -> None:
    """Wait until what a hook left behind has written its event: it would take the next run's processor."""
    spool = home / "data" / "spool"
    ends = time.monotonic() + LONGEST_WRITE_SECONDS
    while time.monotonic() < ends:
        files = [path for path in spool.glob("*.json") if not path.name.startswith(".")] if spool.is_dir() else []
        for path in files:
            path.unlink()
        if files:
            return
        time.sleep(0.002)
    raise UnavailableError("a hook lost its event", hint="look into the data folder's hook_error")


@contextmanager
def _hung(home: Path) -> Iterator[None]:
    """Listen where a daemon would, and never answer."""
    data = home / "data"
    data.mkdir(parents=True, mode=0o700)
    path = data / "hung.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(os.fspath(path))
        listening.listen(512)
        lines = ("token", os.fspath(path), "127.0.0.1", "1", "nobody")
        (data / folders.HOOK_DOOR_NAME).write_text("\n".join(lines), encoding="utf-8")
        yield
