"""One host set up or taken out again, as `scrubjay setup` and `scrubjay uninstall` do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import settings as options
from scrubjay.cli.reports import HostReport, SetupFile
from scrubjay.setup import files, plan

if TYPE_CHECKING:
    from scrubjay.settings import Settings
    from scrubjay.setup.hosts import Host
    from scrubjay.setup.program import Machine


def change_host(host: Host, machine: Machine, chosen: Settings, *, remove: bool, dry_run: bool) -> HostReport:
    """Change all files of a host or none, and say what became of each.

    Raises InvalidError or ConflictError for a file that must not be touched, and OSError.
    """
    targets = files.named(host.targets(machine))
    records = files.Records(chosen.data_dir / "setup", host.name)
    decide = plan.removal if remove else plan.installation
    made = decide(targets, files.contents(targets), records.load())
    if not dry_run:
        options.ensure_dirs(chosen)
        files.apply(made, records)
    return HostReport(
        host=host.name,
        title=host.title,
        installed=host.folder(machine).is_dir(),
        state=plan.standing(targets, made).value,
        captures=host.captures,
        files=tuple(
            SetupFile(path=str(edit.path), what=edit.what, action=edit.action, diff=edit.diff() if dry_run else "")
            for edit in made.edits
        ),
        notes=made.notes,
        then="" if remove else host.then,
    )
