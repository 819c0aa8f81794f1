"""`scrubjay uninstall`: take scrubjay out of every agent, stop its daemon, and say what stays and how that goes."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.cli import invocation, render
from scrubjay.cli.errors import of
from scrubjay.cli.host_setup import change_host
from scrubjay.cli.output import Output
from scrubjay.cli.reports import Failed, HostReport, UninstallReport
from scrubjay.daemon import control
from scrubjay.setup import files
from scrubjay.setup.hosts import HOSTS
from scrubjay.setup.this_machine import this_machine
from scrubjay_shared.errors import BY_CODE, ScrubjayError
from scrubjay_shared.extras import uninstall_command

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.settings import Settings
    from scrubjay.setup.program import Machine


def configure(parser: Parser) -> None:
    """Take whether it is to be done."""
    parser.add_argument("-y", "--yes", action="store_true", help="do it without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would go and what stays, and change nothing")


def run(line: Namespace) -> int:
    """Show what goes and what stays; after a yes take it out. Without a terminal and without --yes nothing changes."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    machine = this_machine(chosen)
    report = _uninstalled(machine, chosen, dry_run=True)
    if not line.dry_run and (line.yes or _agreed(report, out)):
        report = _uninstalled(machine, chosen, dry_run=False)
    out.answer(report, lambda: render.setup.uninstalled(report))
    return BY_CODE[report.failed[0].code].exit_code if report.failed else 0


def _agreed(report: UninstallReport, out: Output) -> bool:
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    out.answer(report, lambda: render.setup.uninstalled(report))
    sys.stderr.write("\nTake scrubjay out of these files and stop its daemon? What you remember stays. [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _uninstalled(machine: Machine, chosen: Settings, *, dry_run: bool) -> UninstallReport:
    """Take scrubjay out of each host that has it. A host whose files cannot be changed does not keep the others."""
    hosts: list[HostReport] = []
    failed: list[Failed] = []
    for host in HOSTS.values():
        try:
            report = change_host(host, machine, chosen, remove=True, dry_run=dry_run)
        except (ScrubjayError, OSError) as error:
            told = of(error)
            failed.append(Failed(path=host.title, code=told.code, message=told.message, hint=told.hint))
            continue
        if any(file.action != "keep" for file in report.files):
            hosts.append(report)
    running = control.status(chosen).daemon is not None
    if not dry_run:
        control.stop(chosen)  # also where none runs: a session that is open must not start one again
    return UninstallReport(
        hosts=tuple(hosts),
        failed=tuple(failed),
        daemon=running,
        stays=_stays(chosen),
        then=tuple(_then(machine, chosen)),
        dry_run=dry_run,
    )


def _stays(chosen: Settings) -> tuple[str, ...]:
    """Return the folders and files of scrubjay's own that are there, each once; what lies in another is not named."""
    there = [path for path in (chosen.data_dir, chosen.state_dir, chosen.models_dir) if path.exists()]
    inside = {path for path in there for other in there if path != other and path.is_relative_to(other)}
    settings = [chosen.config_path] if chosen.config_path.exists() else []
    return tuple(str(path) for path in dict.fromkeys([*there, *settings]) if path not in inside)


def _then(machine: Machine, chosen: Settings) -> list[str]:
    """Return the commands that are left for the person, in their order."""
    plugins = HOSTS["claude-code"].folder(machine) / "plugins" / "installed_plugins.json"
    # A plugin is Claude Code's to take out. Sync's own file is looked for by its name: the core does not import sync.
    plugin = b'"scrubjay@' in (files.read(plugins) or b"")
    profiles = [chosen.data_dir / "sync.json", *chosen.data_dir.glob("accounts/*/sync.json")]
    synced = any(path.exists() for path in profiles)
    folders = " ".join(shlex.quote(path) for path in _stays(chosen))
    delete = "rmdir /s" if machine.platform == "win32" else "rm -r"
    return [
        *(["claude plugin uninstall scrubjay"] if plugin else []),
        *(["scrubjay logout    (or scrubjay account delete, which also empties the server)"] if synced else []),
        uninstall_command(distribution("scrubjay"), Path(sys.prefix)),
        *(
            [f"{delete} {folders}    (only if the memories are to go: scrubjay export FILE keeps a copy)"]
            if folders
            else []
        ),
    ]
