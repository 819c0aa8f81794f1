"""What this machine is like for the hosts' settings, and where our programs lie on it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from scrubjay.setup.program import Machine
from scrubjay_shared.errors import UnavailableError


def this_machine(options: tuple[str, ...], environ: Mapping[str, str] | None = None) -> Machine:
    """Return this machine. Raises UnavailableError where the program that hosts call is not installed."""
    return Machine(
        home=Path.home(),
        environ=dict(os.environ if environ is None else environ),
        platform=sys.platform,
        hook=program("scrubjay-hook"),
        scrubjay=program("scrubjay"),
        options=options,
    )


def program(name: str) -> Path:
    """Return the path of an installed program of ours: the one that is found by its name where that is this one.

    It stays the same when scrubjay is upgraded. Raises UnavailableError where it is not installed.
    """
    own = Path(sysconfig.get_path("scripts")) / (f"{name}.exe" if sys.platform == "win32" else name)
    found = shutil.which(name)
    if found is not None and os.path.realpath(found) == os.path.realpath(own):
        return Path(os.path.abspath(found))  # noqa: PTH100  # resolve() would follow the link that outlives an upgrade
    if not own.is_file():
        raise UnavailableError(
            f"{own} is not installed", hint="install scrubjay again: uv tool install --force scrubjay"
        )
    return own
