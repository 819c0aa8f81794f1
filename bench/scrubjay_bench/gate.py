"""The fast gate: a few figures that must not get worse, each with its limit and the reason for it in baseline.json.

Costs are ratios, because a machine's speed and load fall on both sides of them. Each is tried again when it fails, and
the best try counts: noise only ever makes things slower, and a real loss fails every try. What recall finds is the same
on every try, so it is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from scrubjay_bench import (
    append,
    chats,
    configurations,
    daemons,
    devmem,
    devmem_asking,
    handed,
    locomo,
    protocols,
    quality,
    recalling,
    retrieval,
    starting,
)
from scrubjay_bench.conversations import DataSet
from scrubjay_bench.figures import Rounds
from scrubjay_bench.fillings import Keeper
from scrubjay_bench.plan import Plan
from scrubjay_bench.retrieval import Run
from scrubjay_bench.stores import Filling
from scrubjay_shared.errors import InvalidError

TRIES = 3
ROUNDS = 3
SMALL = Filling(items=10_000, talks=2)
SIZE = "gate"
CHATS = Path(__file__).resolve().parents[1] / "chats"  # in a checkout, which is where a gate stands
SESSIONS = Path(__file__).resolve().parents[1] / "devmem"
HANDED = Path(__file__).resolve().parents[1] / "handed"
PLACES = (1, 2)  # of the conversations: embedding more of them takes more than the minute a gate may have
FIRST = 5


class Bound(StrEnum):
    """Which side of a limit passes: costs are bounded from above, what is found from below."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a value was on the machine the figures come from, how many times that is let pass, and why so many.

    A tolerance is 1 or more for what is bounded from above, 1 or less for what is bounded from below.
    """

    expected: float
    tolerance: float
    reason: str
    bound: Bound = Bound.AT_MOST

    @property
    def last(self) -> float:
        """The last value that passes."""
        return self.expected * self.tolerance

    def passes(self, value: float) -> bool:
        """Say whether a value is within the limit."""
        return value <= self.last if self.bound is Bound.AT_MOST else value >= self.last

    def better(self, value: float, other: float) -> float:
        """Return the better of two values."""
        return min(value, other) if self.bound is Bound.AT_MOST else max(value, other)


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
        return self.limit.passes(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Values measured together, by name. `needs_locomo` leaves it out where the data set is not given."""

    names: tuple[str, ...]
    measure: Callable[[Plan], tuple[float, ...]]
    tries: int = TRIES
    needs_locomo: bool = False


def judged(plan: Plan, limits: Mapping[str, Limit]) -> list[Verdict]:
    """Measure and compare. At most two minutes where nothing is lost; more where something is, and tried again."""
    short = replace(plan, rounds=ROUNDS)
    verdicts: list[Verdict] = []
    for check in _CHECKS:
        if check.needs_locomo and plan.locomo is None:
            continue
        best: dict[str, float] = {}
        tries = 0
        while tries < check.tries:
            tries += 1
            for name, value in zip(check.names, check.measure(short), strict=True):
                best[name] = limits[name].better(value, best.get(name, value))
            if all(limits[name].passes(best[name]) for name in check.names):
                break
        verdicts += [Verdict(name=name, value=best[name], limit=limits[name], tries=tries) for name in check.names]
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
    return (rounds.ratio(f"recall.{SIZE}.p50", [f"{floor}.embedding.p50", f"{floor}.int8.p50"]),)


def _helps(plan: Plan) -> tuple[float, ...]:
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        starting.commands(rounds, plan, folder, {"bare": starting.BARE, "help": starting.HELP})
    return (rounds.ratio("cli.help", ["floor.python"]),)


def _processes(plan: Plan) -> tuple[float, ...]:
    """Return what commands cost by four starts of the interpreter and what they ask for."""
    rounds = Rounds()
    with daemons.scratch(plan.scratch) as folder:
        wanted = {"bare": starting.BARE, "recall": starting.RECALL, "add": starting.ADD}
        starting.commands(rounds, plan, folder, wanted)
    starts = ["floor.python"] * starting.STARTS
    return (rounds.ratio("cli.recall", [*starts, "floor.asked"]), rounds.ratio("cli.add", [*starts, "floor.added"]))


def _seals(plan: Plan) -> tuple[float, ...]:
    from scrubjay_bench import sealing  # noqa: PLC0415 - it needs what the base install lacks; a gate stands in a checkout

    return (sealing.gate(plan.rounds).ratio("seal.upload", ["floor.seal"], rate=True),)


def _questions(plan: Plan) -> tuple[float, ...]:
    return (float(len(quality.asked(plan).missed)),)


def _found(plan: Plan, data: DataSet) -> tuple[float, ...]:
    """Return R@5 and NDCG@5 of raw turns, the default configuration without a reranking model."""
    run = Run(
        data=data,
        protocols=(protocols.P2,),
        configurations=configurations.named([configurations.PLAIN]),
        keeper=Keeper(folder=plan.keep, models_dir=plan.models_dir, model=plan.model),
        k=FIRST,
        scratch=plan.scratch,
    )
    (row,) = retrieval.measured(run)
    return (row["recall"][str(FIRST)], row["ndcg"][str(FIRST)])


def _chats(plan: Plan) -> tuple[float, ...]:
    return _found(plan, retrieval.cut(chats.load(CHATS), PLACES))


def _locomo(plan: Plan) -> tuple[float, ...]:
    if plan.locomo is None:
        raise InvalidError("no LoCoMo to judge by", hint="--locomo PATH")
    return _found(plan, retrieval.cut(locomo.load(plan.locomo), PLACES))


def _sessions(plan: Plan) -> tuple[float, ...]:
    """Return what is learned from our own labelled sessions and what is found of them, without a reranking model."""
    run = devmem_asking.Run(
        data=devmem.load(SESSIONS),
        memories=devmem_asking.Memories.LEARNED,
        models_dir=plan.models_dir,
        model=plan.model,
        scratch=plan.scratch,
    )
    rows = devmem_asking.rows(list(devmem_asking.measured(run)), run.memories)
    (row,) = [row for row in rows if row["project"] == devmem_asking.ALL]
    learned = (row["precision"] or 0.0, row["coverage"]["2-3"], row["type_right"] or 0.0)
    return (*learned, row["recall"][str(FIRST)], row["first_right"])


def _handed(plan: Plan) -> tuple[float, ...]:
    """Return how much of what our own sessions are handed at their start is worth it, and what of importance is."""
    run = handed.Run(
        data=devmem.labelled(HANDED),
        memories=devmem_asking.Memories.LEARNED,
        models_dir=plan.models_dir,
        model=plan.model,
        scratch=plan.scratch,
    )
    rows = handed.rows(list(handed.measured(run)), run.memories)
    (row,) = [row for row in rows if row["project"] == devmem_asking.ALL]
    return (row["right"] or 0.0, row["covered_3"])


_CHECKS = (
    Check(names=("append_batched_wall", "append_batched_cpu"), measure=_appends),
    Check(names=("recall_10k",), measure=_recalls),
    Check(names=("help",), measure=_helps),
    Check(names=("recall_process", "add_process"), measure=_processes),
    Check(names=("seal",), measure=_seals),
    Check(names=("sample_missed",), measure=_questions, tries=1),
    Check(names=("chats_recall_5", "chats_ndcg_5"), measure=_chats, tries=1),
    Check(
        names=("devmem_precision", "devmem_coverage", "devmem_type", "devmem_recall_5", "devmem_first_right"),
        measure=_sessions,
        tries=1,
    ),
    Check(names=("handed_worth", "handed_covered"), measure=_handed, tries=1),
    Check(names=("locomo_recall_5", "locomo_ndcg_5"), measure=_locomo, tries=1, needs_locomo=True),
)
NAMES = tuple(name for check in _CHECKS for name in check.names)
