"""What a measurement is made of: figures by round, the floors beside them, and the machine it was all done on."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from scrubjay.store import sqlite_version

DIGITS = 4  # significant ones kept of a figure: beyond, every repetition differs
RISING = ("/s", "of 1")  # how units end of which more is better: rates, and shares of what should be found
LIBRARIES = ("numpy", "numkong", "onnxruntime", "tokenizers", "starlette", "uvicorn", "msgspec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    `value` is the median of `rounds` repetitions, `low` and `high` the least and greatest of them; each repetition was
    itself made from `samples` requests or seconds. `floor` names what it is compared with and `ratio` is how many times
    the floor's cost it costs: the median over the rounds of cost by cost, so below 1 is cheaper than the floor. `goal`
    is the bound set by the design, in the same unit.
    """

    name: str
    meaning: str
    unit: str
    value: float
    low: float
    high: float
    rounds: int
    samples: int
    floor: str = ""
    ratio: float | None = None
    goal: float | None = None

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit.endswith(RISING)

    @property
    def reached(self) -> bool | None:
        """Whether the goal is met, None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.is_rate else self.value <= self.goal


class Rounds:
    """Values by name, one a round. What is compared is measured in the same round, so that load falls on both alike."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        """Note one round's value."""
        self._values.setdefault(name, []).append(value)

    def add_latencies(self, name: str, seconds: Sequence[float], *percents: int) -> None:
        """Note one round's percentiles of some latencies, in milliseconds, as `name.p50` and so on."""
        for percent in percents:
            self.add(f"{name}.p{percent}", percentile(seconds, percent) * 1000)

    def values(self, name: str) -> Sequence[float]:
        """Return what was noted, in order."""
        return self._values[name]

    def ratio(self, name: str, floors: Sequence[str], *, rate: bool = False) -> float:
        """Return the median over the rounds of a cost by the sum of other costs. A rate's cost is its inverse."""
        sums = [sum(beside) for beside in zip(*(self._values[floor] for floor in floors), strict=True)]
        pairs = list(zip(self._values[name], sums, strict=True))
        return float(statistics.median(beside / own if rate else own / beside for own, beside in pairs))

    def figure(
        self, name: str, meaning: str, unit: str, *, samples: int, floor: str = "", goal: float | None = None
    ) -> Figure:
        """Return the figure of that name. A floor is another name here: of a rate a rate, of a cost a cost."""
        values = self._values[name]
        return Figure(
            name=name,
            meaning=meaning,
            unit=unit,
            value=rounded(statistics.median(values)),
            low=rounded(min(values)),
            high=rounded(max(values)),
            rounds=len(values),
            samples=samples,
            floor=floor,
            ratio=rounded(self.ratio(name, [floor], rate=unit.endswith("/s"))) if floor else None,
            goal=goal,
        )


def percentile(values: Iterable[float], percent: int) -> float:
    """Return the least value that `percent` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def rounded(value: float) -> float:
    """Return a number with `DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def machine(scratch: Path) -> dict[str, Any]:
    """Return what a reader must know of the machine to compare: never its name or its paths."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "file_system": _file_system(scratch),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "sqlite": sqlite_version,
        **{library: _version(library) for library in LIBRARIES},
    }


def load() -> float:
    """Return how many processes wanted a core during the last minute."""
    return round(psutil.getloadavg()[0], 1)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "absent"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds a folder: the longest mount point that it is under."""
    real = str(folder.resolve())
    mounts = [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True) if part.fstype]
    holding = [mount for mount in mounts if Path(real).is_relative_to(mount[0])]
    return max(holding, default=("", "unknown"), key=lambda mount: len(mount[0]))[1]
