"""`python -m scrubjay.daemon [mark]`: the process that `scrubjay daemon start` leaves behind."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Serve until told to stop and return the exit code. Another daemon on the same data is a success."""
    gc.disable()  # until it serves (`process`): what is loaded stays, and walking over it takes a tenth of the start
    from scrubjay import settings  # noqa: PLC0415
    from scrubjay.daemon.process import run  # noqa: PLC0415
    from scrubjay_shared.errors import ScrubjayError  # noqa: PLC0415

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
