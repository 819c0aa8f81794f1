"""What came in from files or from a backup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import (
    Skipped,
)
from scrubjay.cli import reasons
from scrubjay.cli.render.layout import dim
from scrubjay.cli.render.words import clean, counted
from scrubjay.cli.reports import AlwaysLoaded, ImportReport, ReconcileReport, RestoreReport, SalvageReport


def taken(
    events_: int, memories: int, duplicates: int, redactions: Mapping[str, int], skipped: Iterable[Skipped]
) -> str:
    """Return what came in and what did not, in words."""
    parts = [counted(events_, "event")] if events_ or not memories else []
    if memories:
        parts.append(counted(memories, "memory", "memories"))
    if duplicates:
        parts.append(f"{duplicates:,} already there")
    if hidden := sum(redactions.values()):
        parts.append(f"{counted(hidden, 'secret')} hidden ({', '.join(sorted(redactions))})")
    parts.extend(f"left out: {line}" for line in reasons.said(skipped))
    return " · ".join(parts)


SHOWN = 5
"""Of what was taken back; JSON has the first of each file."""

_LOWERED = {
    "trust": "trusted as an import, whatever the file says",
    "layer": "put into the archive: a file cannot say what is loaded always",
    "kind": "kept as stored, not as learned: what they were read from is not here",
    "name": "without a name that only you can give to a line that is loaded always",
}


def restored(report: RestoreReport) -> Text:
    """Return what was put back, where the old store is, and what agents are given from now on."""
    parts = [Text(f"restored {report.file} from {report.source}")]
    if report.kept:
        parts.append(Text(f"the old file: {report.kept}"))
        if report.forgotten is None:
            parts.append(
                Text("what was forgotten after the backup was made is back: forget it again (scrubjay forget)")
            )
        elif report.forgotten:
            parts.append(Text(f"forgotten after the backup was made, and not brought back: {report.forgotten:,}"))
    return Text("\n").join([*parts, always_loaded(report.always_loaded)])


def salvaged(report: SalvageReport) -> Text:
    """Return what a new store was made of, what is lost, and where the damaged one is kept."""
    parts = [Text(f"made {report.file} again of {counted(report.ops, 'op')} and {counted(report.events, 'event')}")]
    parts[0].append(f": {counted(report.memories, 'memory', 'memories')}")
    for table, count in sorted(report.lost.items()):
        parts.append(Text(f"lost: {counted(count, 'row')} of table {table}"))
    if not report.lost:
        parts.append(Text("nothing is lost"))
    if report.restamped:
        parts.append(Text(f"{counted(report.restamped, 'event')} got another place in the log"))
    if report.kept:
        parts.append(Text(f"the damaged file: {report.kept}"))
    return Text("\n").join(parts)


def always_loaded(loaded: AlwaysLoaded) -> Text:
    """Return every line that agents are given in each session."""
    count = len(loaded.identity) + len(loaded.active)
    if not count:
        return Text("agents are always given no line: none is set (scrubjay context)")
    lines = [f"  {clean(name)}: {clean(text)}" for name, text in (*loaded.identity.items(), *loaded.active.items())]
    return Text("\n".join([f"agents are always given {counted(count, 'line')}:", *lines]))


def imported(report: ImportReport) -> RenderableType:
    """Return what an import took, what it left out and why, and the files that gave nothing."""
    head = "would take" if report.dry_run else "took"
    formats = ", ".join(f"{count} {name}" for name, count in sorted(report.formats.items()))
    said = taken(report.events, report.memories, report.duplicates, report.redactions, ())
    parts: list[RenderableType] = [Text(f"{head} {said}")]
    if formats:
        parts.append(dim(f"from {counted(report.files, 'file')}: {formats}"))
    if report.renamed:
        theirs = "its name was taken, and got" if report.renamed == 1 else "their names were taken, and got"
        parts.append(Text(f"{counted(report.renamed, 'note')}: {theirs} the file's path added"))
    if report.aliases_taken:
        have = "belongs to another memory and was" if report.aliases_taken == 1 else "belong to other memories and were"
        parts.append(Text(f"{counted(report.aliases_taken, 'alias', 'aliases')} {have} not added"))
    if report.skipped:
        parts += [Text("left out:"), *(Text(f"  {clean(line)}") for line in reasons.said(report.skipped))]
    if report.taken_back:
        parts += [Text("of yours, taken back:"), *(dim(f"  “{clean(said)}”") for said in report.taken_back[:SHOWN])]
        parts += [dim(f"  and {more:,} more")] if (more := len(report.taken_back) - SHOWN) > 0 else []
    parts.extend(Text(f"{each.count:,} {_LOWERED.get(each.reason, clean(each.reason))}") for each in report.changed)
    if report.changed and not report.dry_run and "scrubjay" in report.formats:
        parts.append(dim("if this is your own export: scrubjay import --restore FILE puts back what it says"))
    if report.always_loaded is not None:
        parts.append(always_loaded(report.always_loaded))
    if report.waiting:
        wait = "memory waits" if report.waiting == 1 else "memories wait"
        said = f"{report.waiting:,} {wait} for your review, and agents are not handed what waits: scrubjay review"
        parts.append(Text(said, style="yellow"))
    parts.extend(Text(f"failed: {clean(_of_file(each.path, each.message))}", style="red") for each in report.failed)
    return Group(*parts)


def reconciled(report: ReconcileReport) -> RenderableType:
    """Return of each host with transcripts what its hooks had missed, and the transcripts that could not be read."""
    parts: list[RenderableType] = []
    for one in report.hosts:
        if not one.files and not one.unchanged:
            continue
        missed = counted(one.events, "event")
        found = f"{missed} that hooks had missed, {one.duplicates:,} already there" if one.files else "nothing new"
        parts.append(Text(f"{one.host}: {found}"))
        parts.append(dim(f"  {counted(one.files, 'transcript')} read, {one.unchanged:,} unchanged since the last time"))
    if not parts and not report.failed:
        parts.append(Text("no transcripts were written in that time: scrubjay setup shows which hosts are here"))
    parts.extend(Text(f"failed: {clean(_of_file(each.path, each.message))}", style="red") for each in report.failed)
    return Group(*parts)


def _of_file(path: str, message: str) -> str:
    """Return an error's message with its file before it, where it does not begin with that."""
    return message if message.startswith(path) else f"{path}: {message}"
