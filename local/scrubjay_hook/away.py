"""What becomes of a payload that the daemon did not take: a child that nobody waits for writes it to the spool.

Taking secrets out needs modules that load for a tenth of a second, five times what the host may wait for. The child
then starts the daemon where none runs any more, after a crash or when the machine was started: the session would go on
without memory. One that the person stopped stays stopped.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from collections.abc import Mapping

STORE_NAME = "memory.db"
"""The store's file: where there is none, scrubjay was set up and never used, and no daemon is missed."""

STARTED_NAME = "hook_start"
"""The file of the data folder whose time says when a hook last started the daemon."""

PATIENCE_SECONDS = 300.0
"""Between two starts: a daemon that cannot start takes a second of the processor at each try."""


def keep(folder: str, host: str, fields: Mapping[str, str], payload: bytes, flags: list[str]) -> None:
    """Have a payload written to the spool of a data folder. Returns at once where the platform can fork.

    `flags` are those by which a command finds the same folder.
    """
    try:
        if hasattr(os, "fork") and os.fork():
            return
    except OSError:  # no process to spare: the host waits
        _kept(folder, host, fields, payload)
        return
    if hasattr(os, "setsid"):
        _detach()
    try:
        _kept(folder, host, fields, payload)
    finally:
        if fields.get("use_memory") != "false":
            _start(folder, flags)


def _kept(folder: str, host: str, fields: Mapping[str, str], payload: bytes) -> None:
    from scrubjay import hosts, refusals, spool  # noqa: PLC0415  # see above
    from scrubjay.ingest import payloads  # noqa: PLC0415  # as above

    found, more = payloads.all_parsed(payload)
    use_memory = fields.get("use_memory") != "false"
    failed: Exception | None = None
    for told in found if use_memory else [{"session_id": hosts.session_of(each)} for each in found]:
        report = spool.Report(host=host, event=fields["event"], sent=int(fields["sent"]), project=fields["project"],
                              payload=told, use_memory=use_memory)  # fmt: skip
        try:
            spool.write(folder, report)
        except Exception as error:  # noqa: BLE001  # one that cannot be kept costs no other, and is told below
            failed = error
    if failed is not None:
        raise failed
    if more:
        refusals.count(folder, host, "not_json")


def _start(data_dir: str, flags: list[str]) -> None:
    """Start the daemon of a data folder where none runs, unless the person stopped it or a hook started it just now."""
    from pathlib import Path  # noqa: PLC0415  # see above

    from scrubjay.transports.client import discover  # noqa: PLC0415  # as above
    from scrubjay.transports.mcp import bridge  # noqa: PLC0415  # as above
    from scrubjay_shared.errors import UnavailableError  # noqa: PLC0415  # as above

    folder = Path(data_dir)
    marker = folder / STARTED_NAME
    # A time to come is of a clock that was set back since.
    just_now = marker.exists() and 0 <= time.time() - marker.stat().st_mtime < PATIENCE_SECONDS
    if just_now or not (folder / STORE_NAME).exists() or bridge.stopped_by_hand(data_dir):
        return
    try:
        if discover(folder) is not None:
            return
    except UnavailableError:  # it is there, and busy
        return
    marker.touch(mode=0o600)
    bridge.start_daemon(data_dir, flags)


def _detach() -> None:
    """Leave the host's process group, and let go of the pipes that it waits for the end of."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
