"""Whether now is a good moment for work that can wait. Pure but for `read`, which asks the machine.

Work of the night belongs to a civil day that begins at an hour of the night: due once a day, as soon as the machine is
there and nothing speaks against it. A machine that slept through the night does it after it woke, once, however many
nights it has missed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from scrubjay.policy import NightPolicy
from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What speaks for waiting. `load` is the load average of a minute, by core; `quiet_seconds` since a question."""

    on_battery: bool
    load: float
    quiet_seconds: float


def read(quiet_seconds: float) -> Conditions:
    """Return how the machine is now; what it does not tell speaks for nothing."""
    import psutil  # noqa: PLC0415  # 20 ms that no command line should pay

    try:
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    except (OSError, RuntimeError, ValueError):  # a container's /sys may be cut off
        battery = None
    cores = os.cpu_count() or 1
    return Conditions(
        on_battery=battery is not None and battery.power_plugged is False,
        load=psutil.getloadavg()[0] / cores,
        quiet_seconds=quiet_seconds,
    )


def reason_to_wait(found: Conditions, waited_seconds: float, policy: NightPolicy) -> str | None:
    """Return why work should wait, in words for people; None when it should not.

    What has waited for `most_seconds` waits no longer for a socket or an idle machine, only for a pause in questions.
    """
    if found.quiet_seconds < policy.quiet_seconds:
        return "questions are being asked"
    if waited_seconds >= policy.most_seconds:
        return None
    if found.on_battery:
        return "the machine runs on its battery"
    if found.load > policy.load:
        return "the machine is busy"
    return None


def night_of(at: Millis, utc_offset: timedelta, policy: NightPolicy) -> date:
    """Return the day that a moment belongs to, where days begin at `night_hour` of a place."""
    local = datetime.fromtimestamp(at / 1000, tz=UTC) + utc_offset
    return (local - timedelta(hours=policy.hour)).date()


def is_due(
    last_start: Millis | None,
    *,
    failed: bool,
    every_days: int,
    now: Millis,
    utc_offset: timedelta,
    policy: NightPolicy,
) -> bool:
    """Say whether work of the night is due; `failed` work is tried again after `retry_seconds`.

    A clock that was set back makes the last run lie ahead: then it is due, once.
    """
    if last_start is None or last_start > now:
        return True
    if failed:
        return now - last_start >= policy.retry_seconds * 1000
    passed = night_of(now, utc_offset, policy) - night_of(last_start, utc_offset, policy)
    return passed >= timedelta(days=every_days)


def local_offset(now: Millis) -> timedelta:
    """Return what this machine's clock adds to UTC at a moment."""
    return timedelta(seconds=time.localtime(now / 1000).tm_gmtoff)
