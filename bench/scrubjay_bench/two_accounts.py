"""`make demo-sync`, its second half: one home with two accounts at two servers, and a second machine of each.

A laptop has a private account and one of work; its one daemon serves both. A desktop at home is in the first, an office
machine in the second. What an agent does in a project of work goes to work alone; one server's absence and one logout
leave the other account as it was. At the end the files of every store and of both servers are searched for words of the
wrong account.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from scrubjay.transports.client import Agent, discover
from scrubjay_bench.daemons import scratch
from scrubjay_bench.two_machines import PASSWORD, WAIT_S, Cloud, Machine, free_port
from scrubjay_shared.errors import CorruptError, ScrubjayError, UnavailableError

PRIVATE = "hollyhock"
WORK = "turnstile"
"""Words in every memory of an account, which must stand in no byte of the other's files, nor of a server's."""

SHOP = "github.com/acme/shop"


def main() -> int:
    """Run the story. Returns 0, or 1 with what went wrong."""
    console = Console(highlight=False)
    began = time.monotonic()
    try:
        with scratch(None) as folder, ExitStack() as undo:
            _story(lambda text: console.print(f"[cyan]•[/] {text}"), folder, undo)
    except ScrubjayError as error:
        console.print(f"failed: {error.message}\n      {error.hint}", markup=False, style="red")
        return 1
    console.print(
        f"\n[bold]two accounts in one home, and nothing of one in the other[/] ({time.monotonic() - began:.0f} s)"
    )
    return 0


def _story(say: Callable[[str], None], folder: Path, undo: ExitStack) -> None:
    private, work = (Cloud(folder / f"cloud-{name}", free_port()) for name in ("private", "work"))
    for cloud in (private, work):
        cloud.folder.mkdir()
        cloud.start()
        undo.callback(cloud.stop)
    laptop, desktop, office = (Machine(name, folder / name) for name in ("laptop", "desktop", "office"))
    for machine in (laptop, desktop, office):
        machine.run("daemon", "start")
        undo.callback(machine.run, "daemon", "stop")
    home_code = _signs_up(laptop, private)
    work_code = _signs_up(laptop, work, "--account", "work")
    laptop.run("sync", "projects", "add", "github.com/acme", "--account", "work")
    say("a laptop with two accounts at two servers and one daemon; github.com/acme lives in the account work")
    _joins(desktop, private, home_code)
    _joins(office, work, work_code)
    say("a desktop joins the private account, an office machine the one of work")

    laptop.run("add", f"the {PRIVATE} wants sun")
    _an_agent_says(laptop, f"the {WORK} counts twice")
    _arrives(desktop, "the hollyhock wants sun")
    _arrives(office, "the turnstile counts twice")
    say("what an agent learned in a project of work is in the office, what the person noted is on the desktop")

    work.stop()
    laptop.run("add", f"{WORK} waits for its server", "--project", SHOP)
    laptop.run("add", f"{PRIVATE} does not wait")
    took = _arrives(desktop, f"{PRIVATE} does not wait")
    waiting = {one["name"]: one["pending_ops"] for one in laptop.run("sync", "status")["others"]}
    say(f"work's server is gone: private goes on ({took:.1f} s), what is new at work waits: {waiting['work']}")
    work.start()
    laptop.run("sync", "--account", "work")
    _arrives(office, f"{WORK} waits for its server")

    laptop.run("logout", "--account", "work")
    laptop.run("add", f"{PRIVATE} after work")
    _arrives(desktop, f"{PRIVATE} after work")
    say("logged out of work: the private account goes on, and work's memories stay in their own store")
    for machine in (laptop, desktop, office):
        machine.run("daemon", "stop")
    for cloud in (private, work):
        cloud.stop()
    _apart(say, laptop, desktop, office, private, work)
    for machine in (laptop, desktop, office):
        machine.run("daemon", "start")


def _signs_up(machine: Machine, cloud: Cloud, *words: str) -> str:
    made = machine.run(
        *("login", "--sign-up", "--server", cloud.origin, "--username", "jay", "--password-stdin", *words),
        typed=f"{PASSWORD}\n",
    )
    return str(made["recovery_code"])


def _joins(machine: Machine, cloud: Cloud, code: str) -> None:
    machine.run(
        *("login", "--recovery", "--server", cloud.origin, "--username", "jay", "--password-stdin"),
        typed=f"{PASSWORD}\n{code}\n",
    )


def _an_agent_says(machine: Machine, text: str) -> None:
    speaker = discover(machine.data_dir, agent=Agent(name="demo", project=SHOP))
    if speaker is None:
        raise UnavailableError(f"{machine.name}: the daemon does not answer", hint="see its log under the home")
    with speaker:
        speaker.call("POST", "/v1/memories", {"content": text, "scope": "project", "resource_id": SHOP})


def _arrives(machine: Machine, text: str) -> float:
    """Wait until a memory has come to a machine by itself. Returns the seconds that it took."""
    began = time.monotonic()
    while time.monotonic() < began + WAIT_S:
        if any(entry["memory"]["content"] == text for entry in machine.run("list")["entries"]):
            return time.monotonic() - began
        time.sleep(0.2)
    raise UnavailableError(f"{machine.name}: {text!r} did not arrive", hint="scrubjay sync status")


def _apart(say: Callable[[str], None], laptop: Machine, desktop: Machine, office: Machine, *clouds: Cloud) -> None:
    """Look for the words of one account in every file of the other, and for any in the servers'."""
    own = laptop.data_dir / "accounts" / "work"
    wrong: list[tuple[Path, tuple[str, ...]]] = [
        (desktop.home, (WORK,)),
        (office.home, (PRIVATE,)),
        (own, (PRIVATE,)),
        *((cloud.folder, (PRIVATE, WORK)) for cloud in clouds),
    ]
    wrong += [(path, (WORK,)) for path in laptop.home.rglob("*") if path.is_file() and own not in path.parents]
    files = size = 0
    for place, words in wrong:
        for path in [place] if place.is_file() else [one for one in place.rglob("*") if one.is_file()]:
            held: Any = path.read_bytes()
            files, size = files + 1, size + len(held)
            for word in words:
                if word.encode() in held:
                    raise CorruptError(f"{path} holds {word!r}, which is of the other account", hint="a bug: report it")
    say(f"{files} files ({size:,} bytes) of three machines and two servers hold no word of the wrong account")


if __name__ == "__main__":
    sys.exit(main())
