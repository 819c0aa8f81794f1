"""How responses of sync are shown to a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from scrubjay.accounts import MAIN
from scrubjay.cli import notices, render, times
from scrubjay_shared.clock import Millis
from scrubjay_sync.api.identity import Who
from scrubjay_sync.api.rounds import Fault, Renamed
from scrubjay_sync.cli.command import Command

if TYPE_CHECKING:
    from rich.console import RenderableType


BETA = "Sync is beta: keep a backup (scrubjay backup)."


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUp:
    """A new account where nobody could be shown the recovery code: it stands here, and nowhere else."""

    who: Who
    recovery_code: str


def identity_line(who: Who) -> str:
    """Return the line that every command ends with: which account, where, as which device."""
    name = f"{who.username} ({who.account[:8]})" if who.username else who.account[:8]
    return render.words.clean(f"account {who.name}: {name} at {who.origin}, {who.device_name} ({who.device[:8]})")


def say_done(command: Command, answer: Any, words: str) -> None:
    """Print that something was done, and as whom."""
    command.out.answer(answer, lambda: f"{words}\n{identity_line(answer.who)}")


def table(who: Who, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Return rows under columns, with the identity line below them."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(render.words.clean(cell)) for cell in row))
    return Group(table, Text(identity_line(who)))


def when(at: int | None) -> str:
    """Return a time, or "never"."""
    return times.moment(Millis(at)) if at else "never"


def fault_lines(faults: Sequence[Fault], account: str) -> list[str]:
    """Return two lines for each fault: what happened and since when, in which account, and what to do."""
    of, to = ("", "") if account == MAIN else (f"account {account}: ", f" (with --account {account})")
    return [render.words.clean(f"! {of}{_dated(one)}\n  {one.hint}{to}") for one in faults]


def _dated(one: Fault) -> str:
    """Return what an alarm says, with its time; what a round has just met has none."""
    return notices.dated(one.message, one.code, Millis(one.at)) if one.at else one.message


def renamed_lines(found: Sequence[Renamed]) -> list[str]:
    """Return a line for each memory whose name another one had first: it shows under another."""
    return [
        render.words.clean(f"! two memories were named {one.claimed}; the later one is shown as {one.name}")
        + "\n  "
        + render.words.clean(f"scrubjay rename {one.name} NEW gives it a name of its own")
        for one in found
    ]
