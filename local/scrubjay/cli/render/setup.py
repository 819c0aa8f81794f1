"""What was set up in other programs, or would be."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from scrubjay.cli.render.layout import table_of
from scrubjay.cli.render.words import clean
from scrubjay.cli.reports import SetupReport, UninstallReport

DONE = {"create": "made", "change": "changed", "delete": "deleted", "keep": "as it was"}
STANDING = {"complete": "yes", "partly": "not as it would be now", "absent": ""}


def done(report: SetupReport, *, diffs: bool) -> RenderableType:
    """Return what became of each file of each host; with `diffs`, what would change in it."""
    if not report.hosts:
        return Text("none of the hosts is installed here; scrubjay setup HOST sets one up all the same")
    if report.dry_run and not diffs:
        return _state(report)
    parts: list[Text] = []
    for host in report.hosts:
        parts.append(Text(host.title, style="bold"))
        for file in host.files:
            if file.diff:
                parts.append(Text(clean(file.diff).rstrip("\n")))
            elif not report.dry_run or file.action != "keep":
                parts.append(Text(f"  {DONE[file.action]:<9}  {clean(file.path)}  ({file.what})"))
        if all(file.action == "keep" for file in host.files):
            parts.append(Text("  nothing to change", style="dim"))
        parts += [Text(f"  {clean(note)}", style="yellow") for note in host.notes]
        if host.then and not report.dry_run:
            parts.append(Text(f"  → {host.then}", style="bold"))
    return Text("\n").join(parts)


def uninstalled(report: UninstallReport) -> Text:
    """Return what goes or went of scrubjay, what stays, and what is left to do."""
    verbs = {"change": "would change", "delete": "would delete"} if report.dry_run else DONE
    parts: list[Text] = []
    for host in report.hosts:
        parts.append(Text(host.title, style="bold"))
        parts += [
            Text(f"  {verbs[file.action]:<12}  {clean(file.path)}  ({file.what})")
            for file in host.files
            if file.action != "keep"
        ]
    if not report.hosts and not report.failed:
        parts.append(Text("nothing of scrubjay stands in any agent's files"))
    for one in report.failed:
        parts.append(Text(f"{one.path}: {clean(one.message)}", style="red"))
        parts.append(Text(f"  {clean(one.hint)}", style="red"))
    if report.daemon:
        parts.append(Text("daemon: would be stopped" if report.dry_run else "daemon: stopped"))
    parts += [Text(f"stays: {clean(path)}") for path in report.stays]
    parts.append(Text("then:" if not report.dry_run else "left to you after that:", style="bold"))
    parts += [Text(f"  {clean(command)}") for command in report.then]
    return Text("\n").join(parts)


def _state(report: SetupReport) -> RenderableType:
    table = table_of("host", "installed", "set up", "what it gets")
    for host in report.hosts:
        gets = "capture, context, MCP" if host.captures else "MCP"
        table.add_row(host.host, "yes" if host.installed else "", STANDING[host.state], gets)
    return table
