"""What `scrubjay doctor` looks at of each agent: set up, trusted, last event and error, and one event end to end."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scrubjay import refusals
from scrubjay.cli import times
from scrubjay.cli.check import Check, fail, ok, warn
from scrubjay.cli.render import words
from scrubjay.daemon import control
from scrubjay.refusals import Refusal
from scrubjay.settings import Settings
from scrubjay.setup import codex_trust, files, plan
from scrubjay.setup.hosts import HOSTS, Host
from scrubjay.setup.json_edits import PROGRAM
from scrubjay.setup.plan import Standing
from scrubjay.setup.program import Machine
from scrubjay.setup.this_machine import this_machine
from scrubjay.spawning import NO_WINDOW
from scrubjay.store import last_events_in
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError

LIMIT_S = 5.0
"""How long the hook may take: a tenth of a second, when nothing else is going on."""

SYNTHETIC = "UserPromptSubmit"
"""An event that every host's table knows; sent on trial, it is stored and found, and that is rolled back."""

ERROR_NAME = "hook_error"
"""The file of the data folder in which `scrubjay-hook` says when and where it last failed."""

NO_SPACE = {"little_space", "ENOSPC", "EDQUOT"}
FREE_SPACE = "free some space: while there is little, hooks keep nothing that the daemon does not take at once"


def hosts(chosen: Settings) -> Iterator[Check]:
    """Look at every host that is installed here or was set up."""
    try:
        machine = this_machine(chosen)
    except ScrubjayError as error:
        yield fail("agents", error.message, error.hint)
        return
    last = last_events_in(chosen.store_path)
    running = control.status(chosen).daemon is not None
    some = False
    for host in HOSTS.values():
        try:
            standing = _standing(host, machine, chosen)
        except (ScrubjayError, OSError) as error:
            yield warn(host.name, str(error), f"then scrubjay setup {host.name}")
            continue
        if standing is Standing.COMPLETE:
            some |= host.captures
            yield from _complete(host, machine, last.get(host.name), running=running)
        elif standing is Standing.PARTLY:
            yield warn(host.name, "set up in part, or by another version", f"scrubjay setup {host.name}")
        elif host.folder(machine).is_dir():
            yield ok(host.name, f"installed, not set up: scrubjay setup {host.name} lets it remember")
    if some or (chosen.data_dir / ERROR_NAME).exists():
        yield from _errors(chosen)


def _standing(host: Host, machine: Machine, chosen: Settings) -> Standing:
    targets = files.named(host.targets(machine))
    records = files.Records(chosen.data_dir / "setup", host.name)
    made = plan.installation(targets, files.contents(targets), records.load())
    return plan.standing(targets, made)


def _complete(host: Host, machine: Machine, last: int | None, *, running: bool) -> Iterator[Check]:
    """Look at a host that is set up."""
    if not host.captures:
        yield ok(host.name, "has the MCP server")
        return
    seen = f"last event {times.moment(Millis(last))}" if last is not None else "no event yet"
    arrives = _arrives(host, machine) if running else None
    if arrives is False:
        yield fail(
            host.name,
            f"set up, {seen}, and an event sent now did not arrive",
            "scrubjay daemon restart; scrubjay daemon logs may say more",
        )
    else:
        tried = "an event sent now arrives" if arrives else "no daemon runs: events wait in the spool"
        yield ok(host.name, f"set up, {seen}, {tried}")
    yield from PECULIAR.get(host.name, _nothing)(machine)


def _arrives(host: Host, machine: Machine) -> bool:
    """Run the registered program with an event on trial; say whether the daemon stored it and found it."""
    program, *rest = machine.capture(host.name, SYNTHETIC)
    event = {
        "hook_event_name": SYNTHETIC,
        "session_id": "scrubjay-doctor",
        "prompt_id": secrets.token_hex(8),  # or it would be the same event as a moment ago
        "prompt": "scrubjay doctor sent this.",
    }
    try:
        ended = subprocess.run(  # noqa: S603  # our own program
            [program, *rest[:-2], "--check", *rest[-2:]],
            input=json.dumps(event).encode(),
            capture_output=True,
            creationflags=NO_WINDOW,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0 and b'"accepted":1' in ended.stdout


def _errors(chosen: Settings) -> Iterator[Check]:
    """Say when a hook last failed, if one ever did."""
    try:
        when, kind, *where = (chosen.data_dir / ERROR_NAME).read_text(encoding="utf-8").split()
        moment = times.moment(Millis(int(when)))
    except (OSError, ValueError):
        yield ok("hooks", "none has failed")
        return
    yield warn("hooks", f"one failed on {moment}: {kind} {' '.join(where)}", "please report it if it happens again")


def refused(chosen: Settings) -> Iterator[Check]:
    """Say how much of what each host reported in the last days could not be kept, when last, and why."""
    by_host: dict[str, list[Refusal]] = {}
    for one in refusals.counted(chosen.data_dir, now=time.time_ns() // 1_000_000):
        by_host.setdefault(one.host, []).append(one)
    for host, found in by_host.items():
        reasons = Counter(one.reason for one in found)
        why = ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
        last = times.moment(Millis(found[-1].ts))
        of_host = "" if host == "-" else f" of {host}"
        yield warn(
            "hooks",
            f"{words.counted(len(found), 'report')}{of_host} not kept in {refusals.DAYS} days, last on {last}: {why}",
            FREE_SPACE if reasons.keys() & NO_SPACE else "scrubjay reconcile reads what hosts wrote down themselves",
        )


def _codex(machine: Machine) -> Iterator[Check]:
    """Ask Codex which of our hooks it runs."""
    program = shutil.which("codex", path=machine.environ.get("PATH"))
    if program is None:
        return
    try:
        skipped = codex_trust.untrusted(program, machine.home, machine.environ)
    except ScrubjayError as error:
        yield warn("codex hooks", error.message, error.hint)
        return
    if skipped:
        yield warn(
            "codex hooks",
            f"Codex skips {len(skipped)}: {', '.join(skipped)}",
            "start Codex and approve them with /hooks",
        )
    else:
        yield ok("codex hooks", "Codex trusts them")


def _opencode(machine: Machine) -> Iterator[Check]:
    """Look whether OpenCode would fetch its plugin package at each start."""
    folder = HOSTS["opencode"].folder(machine)
    if not (folder / "node_modules" / "@opencode-ai" / "plugin").is_dir():
        yield warn(
            "opencode start",
            "OpenCode fetches @opencode-ai/plugin when it starts; without a network it waits for more than a minute",
            f"npm install --prefix {folder} @opencode-ai/plugin, once while there is a network",
        )


def _claude_code(machine: Machine) -> Iterator[Check]:
    """Look whether hooks are switched off."""
    for name in ("settings.json", "settings.local.json"):
        path = HOSTS["claude-code"].folder(machine) / name
        found = files.read(path)
        if found is not None and b'"disableAllHooks"' in found and json.loads(found).get("disableAllHooks") is True:
            yield warn("claude-code hooks", f"{path} switches all hooks off", "set disableAllHooks to false there")


def _copilot(machine: Machine) -> Iterator[Check]:
    """Look whether another file registers our program too: Copilot delivers to each."""
    folder = HOSTS["copilot"].folder(machine) / "hooks"
    others = [path for path in sorted(folder.glob("*.json")) if path.name != "scrubjay.json" and _calls_us(path)]
    for path in others:
        yield warn("copilot hooks", f"{path} calls {PROGRAM} too: each event arrives twice", f"delete it from {path}")


def _calls_us(path: Path) -> bool:
    return PROGRAM.encode() in (files.read(path) or b"")


def _nothing(_: Machine) -> Iterator[Check]:
    yield from ()


PECULIAR = {"codex": _codex, "opencode": _opencode, "claude-code": _claude_code, "copilot": _copilot}
"""What is looked at in one host alone."""
