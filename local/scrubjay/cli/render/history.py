"""What changed the memory: runs and requests, what one of them did, and what was taken back."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import Cause, HistoryResponse, UndoResponse
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim
from scrubjay.cli.render.words import clean, counted, one_line, short

SHOWN = 20
"""Memories that `undo` lists one by one, of those of which something stays."""


def history(answer: HistoryResponse, *, one: bool) -> RenderableType:
    """Return runs and requests, a line each; of one, what it changed."""
    if one:
        lines = [Text(f"{times.moment(cause.ts)}  {written_by(cause.id, cause.label)}") for cause in answer.causes]
        for change in answer.changes:
            line = Text("  ").append(short(change.id), style="dim")
            lines.append(line.append(f"  {did(change.change, change.fields)}"))
        return Group(*lines)
    if not answer.causes:
        return Text("no cause is noted; changes made by versions that noted none are in scrubjay why ID")
    found, lines = answer.causes, []
    for cause in found:  # no table: what `undo` takes must stand whole, however narrow the terminal
        line = Text(f"{times.moment(cause.ts)}  ").append(named(cause.id, cause.label), style="bold")
        lines.append(line.append(f"  {_summary(cause)}", style="dim"))
    hint = "scrubjay history CAUSE shows all of one"
    if not all(map(_forgets, found)):
        hint += ", scrubjay undo CAUSE takes it back"
        hint += "; what was forgotten stays so" if any(map(_forgets, found)) else ""
    return Group(*lines, dim(hint))


def _forgets(cause: Cause) -> bool:
    """Say whether a cause forgot: no undo brings back what it did."""
    return cause.id.startswith("forget:")


def shortened(cause: str) -> str:
    """Return the part of a cause that people need: `scrubjay undo` takes it."""
    kind, _, place = cause.partition(":")
    return f"{clean(kind)}:{short(place)}"


def named(cause: str, label: str) -> str:
    """Return a cause and what it was about: the name of a file, or of an undo the cause that it took back."""
    about = shortened(label) if label and cause.startswith("undo:") else one_line(label, 60)
    return shortened(cause) + (f" of {about}" if about else "")


def written_by(cause: str, label: str) -> str:
    """Return what wrote something, in words."""
    return f"by {named(cause, label)}"


_DID = {
    "write": "changed",
    "name": "named",
    "unname": "name taken away",
    "redact": "words blanked",
    "forget": "forgotten",
}
"""What happened to one memory, in words."""


def did(change: str, fields: Sequence[str]) -> str:
    """Return what a change did to a memory: that it was added, or which fields got new values.

    >>> did("write", ["superseded_by", "valid_to"])
    'changed: superseded_by, valid_to'
    """
    if change == "write" and {"content", "created_at"} <= {*fields}:
        return "added"
    word = _DID.get(change, change.replace("_", " "))
    return f"{word}: {', '.join(fields)}" if fields else word


_CHANGES: dict[str, tuple[str, str]] = {
    "write": ("change of a memory", "changes of memories"),
    "source": ("source", "sources"),
    "event": ("event", "events"),
    "name": ("name", "names"),
    "unname": ("name taken away", "names taken away"),
    "forget": ("thing forgotten", "things forgotten"),
    "redact": ("event with words blanked", "events with words blanked"),
    "recalled": ("count of recalls", "counts of recalls"),
}
"""What kinds of changes are called, for one and for several."""


def _summary(cause: Cause) -> str:
    return ", ".join(
        counted(count, *_CHANGES.get(what, (what.replace("_", " "), what.replace("_", " "))))
        for what, count in cause.changes.items()
    )


def undone(answer: UndoResponse, *, dry_run: bool) -> RenderableType:
    """Return what was taken back, what stays, and how to take that back in its turn."""
    did = [
        counted(len(ids), "memory", "memories") + f" {what}"
        for what, ids in (("archived", answer.archived), ("restored", answer.restored), ("put back", answer.reverted))
        if ids
    ]
    begin = f"would undo {shortened(answer.cause)}: " if dry_run else f"undone {shortened(answer.cause)}: "
    parts: list[Text] = [Text(begin + (", ".join(did) or "nothing to take back"), style="green" if did else "")]
    for kept in answer.kept[:SHOWN]:
        line = Text("  kept ").append(short(kept.id), style="dim")
        parts.append(line.append(f", changed since: {', '.join(kept.fields)}"))
    if len(answer.kept) > SHOWN:
        parts.append(Text(f"  and {counted(len(answer.kept) - SHOWN, 'memory', 'memories')} more, changed since"))
    if answer.events:
        stays = "stays" if answer.events == 1 else "stay"
        parts.append(
            Text(f"  {counted(answer.events, 'event')} {stays}: what was said is only forgotten. To see all that")
        )
        parts.append(Text(f"  would go: scrubjay forget --import {shortened(answer.cause)} --dry-run"))
    if answer.forgotten:
        stays = "stays" if answer.forgotten == 1 else "stay"
        parts.append(Text(f"  {counted(answer.forgotten, 'forgotten thing')} {stays} forgotten"))
    if answer.undo is not None:
        parts.append(Text(f"to take this back: scrubjay undo {shortened(answer.undo)}", style="dim"))
    return Group(*parts)
