"""Starting: the daemon from nothing to ready, and the commands a person types."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from scrubjay_bench import daemons
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.recalling import timed

EACH = 5  # starts of a command a round
COMMAND = "import sys; from scrubjay.cli import main; sys.exit(main())"
"""What the console script of an installed scrubjay runs."""

BARE = ("-c", "pass")
HELP = ("-c", COMMAND, "--help")
QUESTION = "where does the boat lie"
MEMORY = "The boat lies at pontoon C"
RECALL = ("-c", COMMAND, "recall", QUESTION, "--json")
ADD = ("-c", COMMAND, "add", MEMORY, "--json")

STARTS = 4  # times the interpreter's own start that a command may cost, beside what it asks for


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; about a minute."""
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        for number in range(plan.rounds):
            home = folder / f"empty-{number}"  # a new one each time: making the store is part of the first start
            home.mkdir()
            rounds.add("start.empty", daemons.started(home, models_dir=plan.models_dir, model=plan.model))
        commands(rounds, plan, folder, {"bare": BARE, "help": HELP, "recall": RECALL, "add": ADD})
    return [
        rounds.figure("start.empty", "daemon from its start until ready, on a new store", "s", samples=1, goal=1.0),
        rounds.figure("cli.help", "scrubjay --help, whole process", "ms", samples=EACH, floor="floor.python"),
        rounds.figure("cli.recall", "scrubjay recall through a running daemon, whole process", "ms", samples=EACH,
                      floor="floor.python"),
        rounds.figure("cli.add", "scrubjay add through a running daemon, whole process", "ms", samples=EACH,
                      floor="floor.python"),
        rounds.figure("floor.asked", "the same question over an open connection", "ms", samples=EACH),
        rounds.figure("floor.added", "the same memory over an open connection", "ms", samples=EACH),
        rounds.figure("floor.python", "the bare interpreter: python -c pass", "ms", samples=EACH),
    ]  # fmt: skip


def commands(rounds: Rounds, plan: Plan, folder: Path, wanted: dict[str, tuple[str, ...]]) -> None:
    """Note the medians of some processes, in turns."""
    names = {"bare": "floor.python", "help": "cli.help", "recall": "cli.recall", "add": "cli.add"}
    environ = daemons.environment(folder / "cli", models_dir=plan.models_dir, model="none")
    with daemons.serving(folder / "cli", models_dir=plan.models_dir, model="none") as daemon, daemon.client() as client:
        client.call("POST", "/v1/memories", {"content": MEMORY})
        for _ in range(plan.rounds):
            took: dict[str, list[float]] = {name: [] for name in wanted}
            for _ in range(EACH):
                for name, arguments in wanted.items():
                    began = time.perf_counter()
                    subprocess.run([sys.executable, *arguments], env=environ, check=True, stdout=subprocess.DEVNULL)
                    took[name].append(time.perf_counter() - began)
            for name, seconds in took.items():
                rounds.add(names[name], statistics.median(seconds) * 1000)
            for name, path, fields in (
                ("floor.asked", "/v1/recall", {"query": QUESTION}),
                ("floor.added", "/v1/memories", {"content": MEMORY}),
            ):
                asked = [timed(client.call, "POST", path, fields) for _ in range(EACH)]
                rounds.add(name, statistics.median(asked) * 1000)
