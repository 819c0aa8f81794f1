"""What becomes of a payload that the daemon did not take: a child that nobody waits for writes it to the spool.

Taking secrets out needs modules that load for a tenth of a second, five times what the host may wait for.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from collections.abc import Mapping


def keep(folder: str, host: str, fields: Mapping[str, str], payload: bytes) -> None:
    """Have a payload written to the spool of a data folder. Returns at once where the platform can fork."""
    try:
        if hasattr(os, "fork") and os.fork():
            return
    except OSError:  # no process to spare: the host waits
        _kept(folder, host, fields, payload)
        return
    if hasattr(os, "setsid"):
        _detach()
    _kept(folder, host, fields, payload)


def _kept(folder: str, host: str, fields: Mapping[str, str], payload: bytes) -> None:
    from scrubjay import hosts, refusals, spool  # noqa: PLC0415  # see above
    from scrubjay.ingest import payloads  # noqa: PLC0415  # as above

    found, more = payloads.parsed(payload)
    if more:
        refusals.count(folder, host, "not_json")
    use_memory = fields.get("use_memory") != "false"
    for told in found if use_memory else [{"session_id": hosts.session_of(each)} for each in found]:
        spool.write(folder, spool.Report(host=host, event=fields["event"], sent=int(fields["sent"]),
                                         project=fields["project"], payload=told, use_memory=use_memory))  # fmt: skip


def _detach() -> None:
    """Leave the host's process group, and let go of the pipes that it waits for the end of."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
