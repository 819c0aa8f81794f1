"""Making the store again of what can be read in a damaged one, and deriving the rest."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation
from scrubjay.cli.output import Output
from scrubjay.cli.reports import SalvageReport
from scrubjay_shared.clock import Millis

if TYPE_CHECKING:
    from argparse import Namespace


def salvaged(line: Namespace, *, losing: bool) -> tuple[SalvageReport, api.RebuildResponse]:
    """Make the store again of what can be read, and derive the rest. Raises what `store.salvage` and opening it do."""
    from scrubjay.store import salvage  # noqa: PLC0415  # numpy and all: the other commands may find a daemon

    target = invocation.settings_of(line).store_path
    source = Path(line.file).expanduser().absolute() if getattr(line, "file", None) else target
    with Output.of(line).progress() as bar:
        bar.add_task("salvaging", total=None)
        found, kept = salvage(target, source, Millis(time.time_ns() // 1_000_000), os.urandom, losing=losing)
        with invocation.store(line) as store:
            made: api.RebuildResponse = store.call("rebuild", api.RebuildRequest())
    report = SalvageReport(
        file=str(target),
        source=str(source),
        kept=None if kept is None else str(kept),
        memories=made.memories,
        events=made.events,
        ops=found.ops,
        lost=dict(found.lost),
        restamped=found.restamped,
    )
    return report, made
