"""What `scrubjay doctor` says of sync: logged in or not, the server, the last round, what waits, what is wrong.

Light until somebody is logged in: nothing of sync is loaded before the profile says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from scrubjay import accounts
from scrubjay.accounts import MAIN
from scrubjay.cli import notices
from scrubjay.cli.check import Check, fail, ok, warn
from scrubjay.cli.checks import version_of
from scrubjay.cli.render.words import counted
from scrubjay.cli.times import moment
from scrubjay.store import migrations
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, RevokedError, ScrubjayError
from scrubjay_sync import profile
from scrubjay_sync.policy import ACCOUNT_CHANGED, CLOUD, TEAM_CHANGED

if TYPE_CHECKING:
    from scrubjay.settings import Settings
    from scrubjay_sync.api.rounds import StatusResponse

NAME = "sync"
STALE_MS = 24 * 3600 * 1000
"""A last round older than this is told of: a machine in use syncs within seconds, one that slept within minutes."""


def checks(chosen: Settings) -> Iterator[Check]:
    """Yield what sync finds, of every account of the home. Changes nothing."""
    yield from _checks(replace(chosen, account=MAIN))
    try:
        others = accounts.load(chosen.data_dir).projects
    except ScrubjayError as error:
        yield fail("accounts", error.message, error.hint, type(error))
        return
    for account in sorted(others):
        for one in _checks(replace(chosen, account=account)):
            yield replace(one, name=f"{one.name} ({account})", todo=one.todo and f"{one.todo} (--account {account})")


def _checks(chosen: Settings) -> Iterator[Check]:
    try:
        found = profile.load(chosen.store_dir)
    except ScrubjayError as error:
        yield fail(NAME, error.message, error.hint, type(error))
        return
    if found is None:
        words = "this machine" if chosen.account == MAIN else f"the account {chosen.account}"
        yield ok(NAME, f"off: {words} is not logged in")
        return
    who = found.username or "a limited device"
    yield ok(NAME, f"logged in as {who} at {found.origin}, this device is {found.device_name}")
    yield _server(found.origin)
    yield from _state(chosen)


def _server(origin: str) -> Check:
    """Ask the server what it speaks: no login is needed for that."""
    name = "sync server"
    try:
        asyncio.run(asyncio.wait_for(_ask_server(origin), CLOUD.connect_s))
    except TimeoutError:
        return warn(name, f"{origin} did not answer within {CLOUD.connect_s:.0f} s", "check the network")
    except ScrubjayError as error:
        return warn(name, error.message, error.hint)
    except ModuleNotFoundError as error:
        return fail(name, f"not asked: {error.name} is not installed", "scrubjay sync says how to install it")
    return ok(name, f"{origin} answers")


async def _ask_server(origin: str) -> None:
    cloud = import_module("scrubjay_sync.cloud.client").Cloud(origin, now=lambda: Millis(time.time_ns() // 1_000_000))
    try:
        await cloud.caps()
    finally:
        await cloud.aclose()


def _state(chosen: Settings) -> Iterator[Check]:
    """Look at what the store knows of sync, through the daemon or in a store that is as this version wants it."""
    path = chosen.store_path
    if not path.exists() or version_of(path) != migrations()[-1].version:
        return  # the check of the store has said so, and opening it would change it
    try:
        nothing = import_module("scrubjay_sync.api.identity").Nothing()
        with import_module("scrubjay_sync.transport").connect(chosen, wait_s=0) as transport:
            status: StatusResponse = transport.call("status", nothing)
    except ConflictError:
        yield warn("sync state", "not looked at: another command has the store", "run scrubjay doctor again after it")
    except ModuleNotFoundError:
        pass  # told by the check of the server
    except ScrubjayError as error:
        yield fail("sync state", error.message, error.hint, type(error))
    else:
        yield from sync_checks(status, Millis(time.time_ns() // 1_000_000))


def _forgets(status: StatusResponse) -> Iterator[Check]:
    if status.unconfirmed_forgets:
        yield warn(
            "sync forgets",
            f"{counted(status.unconfirmed_forgets, 'forget')} older than a week: another machine has not said that it"
            " erased that",
            "scrubjay forget --status names the machines; switch them on, or revoke those that are gone",
        )


def sync_checks(status: StatusResponse, now: Millis) -> Iterator[Check]:
    """Yield what there is to say of a status."""
    if status.revoked:
        yield fail(
            "sync device",
            "this device was revoked: it syncs no more, and its memories stay here",
            "scrubjay logout; scrubjay login asks to be added again",
        )
    yield _round(status, now)
    waiting = f"{counted(status.pending_ops, 'change')} not sent yet"
    if status.pending_ops and status.last_error:
        yield warn("sync waiting", waiting, "scrubjay sync sends them, once the last round's error is mended")
    else:
        yield ok("sync waiting", waiting if status.pending_ops else "nothing")
    yield from _forgets(status)
    if status.quarantined:
        yield warn(
            "sync quarantined",
            f"{counted(status.quarantined, 'change')} of other devices cannot be read by this version, and wait here",
            "upgrade scrubjay on this machine",
        )
    if status.clock_off:
        ahead = (status.clock_offset_ms or 0) < 0
        minutes = abs(status.clock_offset_ms or 0) // 60_000
        yield warn(
            "sync clock",
            f"this machine's clock is {minutes} minutes {'ahead of' if ahead else 'behind'} the server's",
            "set the clock: the latest change wins, and a wrong clock decides which one that is",
        )
    for alarm in status.faults:
        if alarm.code in {ACCOUNT_CHANGED, TEAM_CHANGED}:  # often the person's own doing, and nothing is broken
            yield warn("sync account", notices.dated(alarm.message, alarm.code, Millis(alarm.at)), alarm.hint)
        elif alarm.code != RevokedError.code:  # told above
            told = notices.dated(alarm.message, alarm.code, Millis(alarm.at))
            yield fail("sync alarm", told, f"{alarm.hint}; scrubjay sync acknowledge clears it")
    for one in status.renamed:
        yield warn(
            "sync names",
            f"two memories were named {one.claimed}; the later one is shown as {one.name}",
            f"scrubjay rename {one.name} NEW gives it a name of its own",
        )
    if status.code_unverified:
        yield warn(
            "sync recovery",
            "this is the account's only device, and nobody has checked that the recovery code was written down right",
            "scrubjay recovery verify",
        )


def _round(status: StatusResponse, now: Millis) -> Check:
    name = "sync round"
    if status.last_error is not None:
        at = moment(Millis(status.last_error_at or 0))
        before = (
            "none has ended well"
            if status.last_round is None
            else f"the last good one was {moment(Millis(status.last_round))}"
        )
        return warn(name, f"the last one failed at {at} ({status.last_error}); {before}", "scrubjay sync says why")
    if status.last_round is None:
        return warn(name, "none yet", "scrubjay sync runs one; scrubjay daemon start keeps in sync")
    at = moment(Millis(status.last_round))
    if now - status.last_round > STALE_MS:
        return warn(name, f"the last one was {at}", "scrubjay sync runs one; scrubjay daemon start keeps in sync")
    return ok(name, f"the last one ended well at {at}")
