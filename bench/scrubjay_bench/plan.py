"""What a run is told: where models, kept stores and scratch files are, and how long to go on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of one run. `rounds` is how often each figure is measured.

    `keep` is where filled stores stay between runs, `scratch` where daemons and floors write (None: the system's
    temporary folder). `locomo` is the path of locomo10.json, None to leave out what needs it. `only` are the
    beginnings of the names of the requests that the event loop is measured with; empty for all.
    """

    models_dir: Path
    model: str
    keep: Path
    scratch: Path | None = None
    locomo: Path | None = None
    rounds: int = 5
    only: tuple[str, ...] = ()
