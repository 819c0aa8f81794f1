"""Commands at a terminal: what each costs there, beside the same command in a pipe."""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
from collections.abc import Mapping

from scrubjay_bench import daemons
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.starting import COMMAND, MEMORY

EACH = 2
"""Times a command is run each way in a round: the least is taken, for what else runs only adds."""
GOAL = 1.2
COMMANDS = (
    *("active", "agents", "audit", "conflicts", "context", "cost", "daemon status", "diff", "docs", "doctor"),
    *("events", "history", "jobs", "list", "models", "projects", "review", "sessions", "stats", "timeline", "toc"),
)
"""All that need no argument, change nothing, end by themselves, and ask nobody."""


def measure(plan: Plan) -> list[Figure]:
    """Measure the processor time of each; a minute or two."""
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        environ = daemons.environment(folder, models_dir=plan.models_dir, model="none") | {"TERM": "dumb"}
        with daemons.serving(folder, models_dir=plan.models_dir, model="none") as daemon, daemon.client() as client:
            client.call("POST", "/v1/memories", {"content": MEMORY})
            for _ in range(plan.rounds):
                ratios = []
                for command in COMMANDS:
                    took = [
                        [_took(command, environ, terminal=terminal) for terminal in (False, True)] for _ in range(EACH)
                    ]
                    piped, shown = map(min, zip(*took, strict=True))
                    ratios.append(shown / piped)
                    rounds.add(f"terminal.{command.replace(' ', '-')}", ratios[-1])
                rounds.add("terminal.median", statistics.median(ratios))
    return [
        rounds.figure("terminal.median", "the median command, × the same in a pipe", "×", samples=EACH, goal=GOAL),
        *(
            rounds.figure(f"terminal.{command.replace(' ', '-')}", f"scrubjay {command}", "×", samples=EACH, goal=GOAL)
            for command in COMMANDS
        ),
    ]


def _took(command: str, environ: Mapping[str, str], *, terminal: bool) -> float:
    """Return the processor time of a command, in seconds, told for people; its outputs a terminal or a pipe."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    try:
        line = [sys.executable, "-c", COMMAND, *command.split(), "--text"]
        process = subprocess.Popen(line, env=dict(environ), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        while _read(ours):
            pass
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for here
        return used.ru_utime + used.ru_stime
    finally:
        os.close(ours)


def _read(file: int) -> bytes:
    try:
        return os.read(file, 65_536)
    except OSError:  # a terminal at whose other end nobody is left
        return b""
