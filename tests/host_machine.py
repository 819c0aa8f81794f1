"""A machine that is not there, for plans of what hosts are told."""

from __future__ import annotations

from pathlib import Path

from scrubjay.setup.program import Machine

HOME = Path("/home/ana")
"""A home that is not there: plans are pure."""


def machine(home: Path = HOME, hook: str = "/opt/scrubjay/bin/scrubjay-hook", **environ: str) -> Machine:
    return Machine(
        home=home,
        environ=environ,
        platform="linux",
        hook=Path(hook),
        scrubjay=Path("/opt/scrubjay/bin/scrubjay"),
        options=("--data-dir", "/data/of ana"),
    )
