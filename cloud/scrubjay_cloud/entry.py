"""Where `scrubjay-cloud` begins: the command itself or, where its libraries are not installed, which command adds them.

Imports nothing of the extra `cloud`, because the script is installed without it too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path

from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.extras import install_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        cli = import_module("scrubjay_cloud.cli")
    except ModuleNotFoundError as error:
        if (error.name or "scrubjay").startswith("scrubjay"):
            raise  # a module of ours: the installation is broken, and no extra mends it
        return _not_installed(error.name or "", as_json="--json" in given)
    code: int = cli.main(given)
    return code


def _not_installed(missing: str, *, as_json: bool) -> int:
    error = UnavailableError(
        f"the server needs the extra 'cloud', which is not installed ({missing} is missing)",
        hint=install_command("cloud", distribution("scrubjay"), Path(sys.prefix)),
    )
    if as_json:
        record = {"code": error.code, "message": error.message, "hint": error.hint}
        sys.stderr.write(json.dumps(record) + "\n")
    else:
        sys.stderr.write(f"scrubjay-cloud: {error.message}\n      {error.hint}\n")
    return error.exit_code
