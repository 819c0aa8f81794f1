"""`scrubjay setup`: tell other programs of scrubjay, and take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import text
from scrubjay.cli.host_setup import change_host
from scrubjay.cli.output import Output
from scrubjay.cli.reports import SetupReport
from scrubjay.setup import texts
from scrubjay.setup.hosts import HOSTS
from scrubjay.setup.this_machine import this_machine
from scrubjay.writer.configured import OFF
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from scrubjay.cli.arguments import Parser
    from scrubjay.setup.hosts import Host
    from scrubjay.setup.program import Machine

AGENTS_MD = "agents-md"
"""What stands in place of a host for the lines of a project's AGENTS.md."""


def configure(parser: Parser) -> None:
    """Take which host is meant, and what to do."""
    parser.add_argument(
        "host",
        nargs="?",
        type=text,
        metavar="HOST",
        help=(
            f"{', '.join(HOSTS)}; {AGENTS_MD} prints lines for the file that agents read in a project"
            " (without HOST: how each is)"
        ),
    )
    parser.add_argument("--all", action="store_true", help="every host that is installed")
    parser.add_argument("--remove", action="store_true", help="take out what setup put in; files get their bytes back")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change in which file, and change nothing"
    )


def run(line: Namespace) -> None:
    """Set up one host or all, remove that, or say how they are."""
    if line.host == AGENTS_MD:
        Output.of(line, prose=True).answer({"text": texts.AGENTS}, lambda: texts.AGENTS.rstrip("\n"))
        return
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    machine = this_machine(chosen)
    hosts = _hosts(line, machine)
    dry = line.dry_run or (line.host is None and not line.all)
    reports = tuple(change_host(host, machine, chosen, remove=line.remove, dry_run=dry) for host in hosts)
    report = SetupReport(hosts=reports, removed=line.remove, dry_run=dry)
    shown = line.dry_run
    out.answer(report, lambda: render.setup.done(report, diffs=shown))
    if chosen.writer == OFF and not (line.remove or line.dry_run):
        out.notes((render.writers.OFFER,))


def _hosts(line: Namespace, machine: Machine) -> Iterable[Host]:
    if line.host is not None and line.all:
        raise InvalidError("--all means every host", hint="leave out HOST, or --all")
    if line.host is None:
        if line.remove and not line.all:
            raise InvalidError("which host is meant?", hint="scrubjay setup --remove HOST, or --remove --all")
        return [host for host in HOSTS.values() if not line.all or host.folder(machine).is_dir()]
    if line.host not in HOSTS:
        raise InvalidError(f"there is no host {line.host[:60]!r}", hint=f"one of: {', '.join((*HOSTS, AGENTS_MD))}")
    return [HOSTS[line.host]]
