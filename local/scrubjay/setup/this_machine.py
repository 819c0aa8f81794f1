"""What this machine is like for the hosts' settings, and where our programs lie on it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from scrubjay import settings
from scrubjay.settings import Settings
from scrubjay.setup.program import Machine
from scrubjay_shared.errors import UnavailableError


def this_machine(chosen: Settings) -> Machine:
    """Return this machine. Raises UnavailableError where the program that hosts call is not installed."""
    return Machine(
        home=Path.home(),
        environ=dict(os.environ),
        platform=sys.platform,
        hook=program("scrubjay-hook"),
        scrubjay=program("scrubjay"),
        options=store_options(chosen),
    )


def store_options(chosen: Settings) -> tuple[str, ...]:
    """Return what tells the programs that hosts call where the store is; nothing where they find it by themselves.

    Hosts start programs without the environment of the shell in which setup ran.
    """
    usual = settings.load({}, {name: value for name, value in os.environ.items() if not name.startswith("SCRUBJAY_")})
    return () if usual.data_dir == chosen.data_dir else ("--data-dir", str(chosen.data_dir))


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
