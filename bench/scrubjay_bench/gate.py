"""The fast gate: a few ratios that must not get worse, each with its limit and the reason for it in baseline.json.

Ratios, because a machine's speed and load fall on both sides of them. Each check is tried again when it fails, and the
best try counts: noise only ever makes things slower, and a real loss fails every try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scrubjay_bench import append, daemons, quality, recalling, starting
from scrubjay_bench.figures import Rounds
from scrubjay_bench.plan import Plan
from scrubjay_bench.stores import Filling

TRIES = 3
ROUNDS = 3
SMALL = Filling(memories=10_000, bases=200)
SIZE = "gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a value was on the machine the figures come from, how many times that is let pass, and why so many."""

    expected: float
    tolerance: float
    reason: str

    @property
    def most(self) -> float:
        """The greatest value that passes."""
        return self.expected * self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one check went: its best value, what was allowed, how often it was tried."""

    name: str
    value: float
    limit: Limit
    tries: int

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit.most


def judged(plan: Plan, limits: Mapping[str, Limit]) -> list[Verdict]:
    """Measure and compare. At most about a minute where nothing is lost; three times that where something is."""
    short = replace(plan, rounds=ROUNDS)
    verdicts: list[Verdict] = []
    for names, measure in _CHECKS:
        best: dict[str, float] = {}
        tries = 0
        while tries < TRIES:
            tries += 1
            for name, value in zip(names, measure(short), strict=True):
                best[name] = min(value, best.get(name, value))
            if all(best[name] <= limits[name].most for name in names):
                break
        verdicts += [Verdict(name=name, value=best[name], limit=limits[name], tries=tries) for name in names]
    return verdicts


def _appends(plan: Plan) -> tuple[float, ...]:
    with daemons.scratch(plan.scratch) as folder:
        rounds = append.gate(plan, folder)
    return (
        rounds.ratio("append.batched", ["floor.insert_batched"], rate=True),
        rounds.ratio("append.batched_cpu", ["floor.insert_batched_cpu"], rate=True),
    )


def _recalls(plan: Plan) -> tuple[float, ...]:
    rounds = recalling.asked(plan, SMALL, SIZE)
    floor = f"floor.{SIZE}"
    return (rounds.ratio(f"recall.{SIZE}.unix.p50", [f"{floor}.embedding.p50", f"{floor}.int8.p50"]),)


def _helps(plan: Plan) -> tuple[float, ...]:
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        starting.commands(rounds, plan, folder, {"bare": starting.BARE, "help": starting.HELP})
    return (rounds.ratio("cli.help", ["floor.python"]),)


def _questions(plan: Plan) -> tuple[float, ...]:
    return (float(len(quality.asked(plan).missed)),)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[Plan], tuple[float, ...]]], ...] = (
    (("append_batched_wall", "append_batched_cpu"), _appends),
    (("recall_10k",), _recalls),
    (("help",), _helps),
    (("sample_missed",), _questions),
)
NAMES = tuple(name for names, _ in _CHECKS for name in names)
