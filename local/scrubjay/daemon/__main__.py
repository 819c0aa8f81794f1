"""`python -m scrubjay.daemon [mark]`: the process that `scrubjay daemon start` leaves behind."""

from __future__ import annotations

import os
import sys

from scrubjay import settings
from scrubjay.daemon.process import run
from scrubjay_shared.errors import ScrubjayError


def main() -> int:
    """Serve until told to stop and return the exit code. Another daemon on the same data is a success."""
    try:
        other = run(settings.load(environ=os.environ), foreground=False, stop_mark=(*sys.argv[1:], None)[0])
    except ScrubjayError as error:
        sys.stderr.write(f"scrubjay: {error.message}\n      {error.hint}\n")
        return error.exit_code
    if other is not None:
        sys.stderr.write(f"scrubjay: already running as process {other.pid}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
