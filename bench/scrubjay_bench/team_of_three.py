"""`make demo-sync`, its third part: three people, each with a machine and an account, and a team that they share.

Ann makes the team and lets Bob in to write and Eve to read, by words. Each writes; Eve's change stays with her; she
is taken out, and what is written after does not reach her. Bob leaves at the end. What the server holds is searched
for any word of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from scrubjay_bench.daemons import scratch
from scrubjay_bench.two_machines import PASSWORD, WAIT_S, Cloud, Machine, free_port
from scrubjay_shared.errors import CorruptError, ScrubjayError, UnavailableError

CANARY = "periwinkle"
"""Stands in every memory, and must stand in no byte of the server's files."""
PROJECT = "github.com/acme/nest"
TEAM = "corvids"


def main() -> int:
    """Run the story. Returns 0, or 1 with what went wrong."""
    console = Console(highlight=False)
    began = time.monotonic()
    try:
        with scratch(None) as folder, ExitStack() as undo:
            share_a_team(lambda text: console.print(f"[cyan]•[/] {text}"), folder, undo)
    except ScrubjayError as error:
        console.print(f"failed: {error.message}\n      {error.hint}", markup=False, style="red")
        return 1
    console.print(f"\n[bold]a team of three, and then of one[/] ({time.monotonic() - began:.0f} s)")
    return 0


def share_a_team(say: Callable[[str], None], folder: Path, undo: ExitStack) -> None:
    """Have three people share what they learn, and part again. Raises CorruptError, UnavailableError."""
    cloud = Cloud(folder / "cloud", free_port())
    cloud.folder.mkdir()
    cloud.start()
    undo.callback(cloud.stop)
    ann, bob, eve = (Machine(name, folder / name) for name in ("ann", "bob", "eve"))
    for machine in (ann, bob, eve):
        machine.run("daemon", "start")
        undo.callback(machine.run, "daemon", "stop")
        machine.run(
            *("login", "--sign-up", "--server", cloud.origin, "--username", machine.name, "--password-stdin"),
            typed=f"{PASSWORD}\n",
        )
    ann.run("teams", "create", TEAM, "--project", PROJECT)
    for machine, role in ((bob, "writer"), (eve, "reader")):
        _comes_in(ann, machine, role)
    say("ann makes a team; bob comes in to write and eve to read, by twelve words each way")

    ann.run("add", f"{CANARY} builds take four minutes", "--project", PROJECT)
    for machine in (bob, eve):
        _arrives(machine, f"{CANARY} builds take four minutes")
    bob.run("add", f"{CANARY} is deployed on Tuesdays", "--project", PROJECT)
    took = _arrives(ann, f"{CANARY} is deployed on Tuesdays")
    eve.run("add", f"{CANARY} wants a vacation", "--project", PROJECT)
    eve.run("sync")
    _lacks(ann, f"{CANARY} wants a vacation")
    said = [one["message"] for one in eve.run("sync", "status")["faults"] if one["code"] == "denied"]
    if not said:
        raise CorruptError("eve, a reader, is not told that her change stays with her", hint="a bug: report it")
    say(f"what ann and bob write is with the others ({took:.1f} s); eve is told that hers stays with her")

    ann.run("teams", "remove", TEAM, "eve", "--password-stdin", typed=f"{PASSWORD}\n")
    bob.run("add", f"{CANARY} has a new lead", "--project", PROJECT)
    _arrives(ann, f"{CANARY} has a new lead")
    eve.run("sync")
    _lacks(eve, f"{CANARY} has a new lead")
    for machine in (ann, bob, eve):
        told = [one["message"] for one in machine.run("sync", "status")["faults"] if one["code"] == "team_changed"]
        if not any("taken out" in one for one in told):
            raise CorruptError(f"{machine.name} is not told that eve was taken out", hint="a bug: report it")
    say("eve is taken out: all are told, and what is written from then on does not reach her")

    bob.run("teams", "leave", TEAM, "--confirm", TEAM)
    ann.run("sync")
    left = [one["role"] for one in ann.run("teams")["teams"][0]["members"]]
    if left != ["admin"]:
        raise CorruptError(f"the team should be ann's alone, and has {left}", hint="a bug: report it")
    for machine in (ann, bob, eve):
        machine.run("daemon", "stop")
    cloud.stop()
    _is_blind(say, cloud)
    for machine in (ann, bob, eve):
        machine.run("daemon", "start")


def _comes_in(admin: Machine, person: Machine, role: str) -> None:
    card = person.run("teams", "card")["words"]
    words = admin.run(
        *("teams", "invite", TEAM, person.name, "--role", role, "--words", " ".join(card), "--password-stdin"),
        typed=f"{PASSWORD}\n",
    )["words"]
    person.run(
        *("teams", "join", TEAM, "--project", PROJECT, "--words", " ".join(words), "--password-stdin"),
        typed=f"{PASSWORD}\n",
    )


def _arrives(machine: Machine, text: str) -> float:
    """Wait until a memory has come to a machine by itself. Returns the seconds that it took."""
    began = time.monotonic()
    while time.monotonic() < began + WAIT_S:
        if text in _contents(machine):
            return time.monotonic() - began
        time.sleep(0.2)
    raise UnavailableError(f"{machine.name}: {text!r} did not arrive", hint="scrubjay sync status")


def _lacks(machine: Machine, text: str) -> None:
    if text in _contents(machine):
        raise CorruptError(f"{machine.name} has {text!r}, which it must not have", hint="a bug: report it")


def _contents(machine: Machine) -> set[str]:
    return {entry["memory"]["content"] for entry in machine.run("list")["entries"]}


def _is_blind(say: Callable[[str], None], cloud: Cloud) -> None:
    """Look for what only the people know in every file of the server."""
    size = 0
    for path in (one for one in cloud.folder.rglob("*") if one.is_file()):
        held = path.read_bytes()
        size += len(held)
        for word in (CANARY, TEAM, PROJECT):
            if word.encode() in held:
                raise CorruptError(f"the server's {path.name} holds {word!r}", hint="a bug: report it")
    say(f"bob leaves; the {size:,} bytes that the server keeps hold no word of the team, nor its name")


if __name__ == "__main__":
    sys.exit(main())
