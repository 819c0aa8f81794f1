"""How the daemon is, as the command line reports it."""

from __future__ import annotations

import msgspec

from scrubjay import api
from scrubjay.cli.reports import DaemonReport
from scrubjay.daemon.control import Health


def report_of(health: Health) -> DaemonReport:
    """Return what is known of a daemon from outside, in the words of the command line."""
    running = health.daemon
    return DaemonReport(
        state=health.state.value,
        pid=None if running is None else running.pid,
        address=None if running is None else f"http://{running.host}:{running.port}",
        socket=None if running is None else running.socket,
        status=None if health.answer is None else msgspec.convert(health.answer, api.StatusResponse),
    )
