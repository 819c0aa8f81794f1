"""`scrubjay sync status | acknowledge | quiet`: where sync stands, and how often it sends."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text

from scrubjay.cli import notices, render
from scrubjay.cli.render import layout
from scrubjay_shared.errors import ScrubjayError
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.rounds import OtherStatus, QuietRequest, StatusResponse
from scrubjay_sync.cli.choosing import Login, is_named, logins
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.presence import require_person
from scrubjay_sync.cli.rendering import fault_lines, renamed_lines, say_done, when
from scrubjay_sync.policy import IDENTITY
from scrubjay_sync.transport import connect


def status(command: Command) -> None:
    """Show where sync stands."""
    answer: StatusResponse = command.call("status")
    others = [] if is_named(command.chosen) else [_other(command, one) for one in logins(command.chosen)]
    found = [one for one in others if one is not None]
    answer = replace(answer, others=tuple(line for line, _ in found))
    shown = [show_status(answer), *(words for _, words in found)]
    command.out.answer(answer, lambda: Text("\n\n").join(shown))


def _other(command: Command, login: Login) -> tuple[OtherStatus, Text] | None:
    """Return where sync of another account stands, as a record and in words; None for the one that was asked.

    What is wrong with one account does not hide the others.
    """
    if login.profile is None or login.account == command.chosen.account:
        return None
    line = OtherStatus(name=login.account, username=login.profile.username, origin=login.profile.origin)
    try:
        with connect(replace(command.chosen, account=login.account)) as transport:
            found: StatusResponse = transport.call("status", Nothing())
    except ScrubjayError as error:
        line = replace(line, problem=error.message)
        words = f"account {login.account}: {login.where}\n! {error.message}\n  {error.hint}"
        return line, Text(render.words.clean(words))
    line = replace(
        line,
        pending_ops=found.pending_ops,
        last_round=found.last_round,
        last_error=found.last_error,
        faults=found.faults,
    )
    return line, show_status(found)


def show_status(found: StatusResponse) -> Text:
    """Return the status as a table, with what needs attention below it."""
    rows = [
        ("account", f"{found.who.name}: {found.who.username or '-'} ({found.who.account[:8]}) at {found.who.origin}"),
        ("device", f"{found.who.device_name} ({found.who.device[:8]})" + (", limited" if found.limited else "")),
        ("keys", f"in {found.who.keys}"),
        ("waiting", render.words.counted(found.pending_ops, "change") if found.pending_ops else "nothing"),
        ("last sync", when(found.last_round)),
        ("last verified", when(found.verified_at)),
        ("devices", str(found.devices)),
    ]
    if found.quiet:
        rows.append(("sends", "every quarter of an hour"))
    if found.last_error:
        rows.append(("last error", f"{found.last_error}, {when(found.last_error_at)}"))
    if found.clock_off:
        rows.append(("clock", clock_shown(found.clock_offset_ms or 0)))
    if found.quota_percent:
        rows.append(("storage", f"{found.quota_percent} % used"))
    if found.rotations_left is not None and found.rotations_left < IDENTITY.keyring_warning:
        room = render.words.counted(max(found.rotations_left, 0), "more new key")
        rows.append(("keyring", f"room for {room} of each scope; scrubjay sync scopes delete makes more"))
    rows += [
        (
            f"{lane.scope} / {lane.device}",
            f"{lane.n}"
            + (f", confirmed {lane.acked}" if lane.own else "")
            + (f", {lane.missing} missing" * bool(lane.missing)),
        )
        for lane in found.lanes
    ]
    shown = layout.pairs([(name, render.words.clean(value)) for name, value in rows])
    lines = [*fault_lines(found.faults, found.who.name), *renamed_lines(found.renamed)]
    if found.code_unverified:
        lines.append(
            "! this is the only device, and nobody has checked yet that the recovery code was written down right\n"
            "  scrubjay recovery verify"
        )
    return shown if not lines else Text("\n").join([shown, *(Text(line) for line in lines)])


def clock_shown(offset_ms: int) -> str:
    """Return how far this machine's clock is off the server's; `offset_ms` is what to add to this one's."""
    return f"{abs(offset_ms) // 60_000} minutes {'behind' if offset_ms > 0 else 'ahead of'} the server's"


def acknowledge(command: Command) -> None:
    """Clear the alarms. Where one tells of a change of who is in or reads, a person has to say that they know."""
    with connect(command.chosen) as transport:
        found: StatusResponse = transport.call("status", Nothing())
        told = [one for one in found.faults if one.code in notices.CHANGES]
        if told and not found.limited:  # else who let a machine in could take the alarm away, too
            shown = "\n".join(render.words.clean(one.message) for one in told)
            require_person(command, transport, f"This says that you know of:\n{shown}")
        answer = transport.call("acknowledge", Nothing())
    say_done(command, answer, "alarms cleared")


def quiet(command: Command) -> None:
    """Choose between sending within seconds and sending once in a quarter of an hour."""
    on = command.line.state == "on"
    words = "changes are sent once in a quarter of an hour" if on else "changes are sent within seconds"
    say_done(command, command.call("quiet", QuietRequest(on=on)), words)
