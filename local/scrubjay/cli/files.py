"""The commands that carry much at a time: events and files in, exports and backups out, and a backup back in."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from scrubjay import api, destination
from scrubjay.cli import invocation, reasons
from scrubjay.cli.errors import of_os_error
from scrubjay.cli.found import READ_SUFFIXES, Found, files
from scrubjay.cli.lazy import Later
from scrubjay.cli.output import Output
from scrubjay.importers.export_format import is_export
from scrubjay.policy import DEFAULT
from scrubjay_shared.errors import BY_CODE, InvalidError, NotFoundError, ScrubjayError, TooLargeError
from scrubjay_shared.records import EventDraft, Layer

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli import render
    from scrubjay.transports.local import Door
else:
    render = Later("scrubjay.cli.render")

BATCH = 500
"""Events in one request: shares an fsync among many, and keeps a progress bar moving."""

LOOK_S = 0.2
"""Between two looks at what is still to be learned: a bar that moves five times a second looks alive."""

STALLED_S = 10.0
"""How long the jobs may make no progress before the work is done in the foreground, where errors show."""

SETTLE_MS = 3_600_000
"""How long the rest may take: an hour is more than a store of a hundred thousand events needs on a small machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What became of all events. `line` counts those read."""

    lines: int
    accepted: int
    duplicates: int
    redactions: dict[str, int]
    skipped: tuple[api.Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A file that could not be imported, and why."""

    path: str
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysLoaded:
    """Every line that agents are given in each session, by key: after something was put back, a person should know."""

    identity: dict[str, str]
    active: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import took, over all files. `formats` counts files by format; `failed` are those that gave nothing.

    `changed` counts what records said of themselves and a file cannot say: how far they are trusted, that they are
    loaded always. `always_loaded` is there after `--restore`.
    """

    files: int
    events: int
    memories: int
    duplicates: int
    formats: dict[str, int]
    redactions: dict[str, int]
    skipped: tuple[api.Skipped, ...]
    failed: tuple[Failed, ...]
    dry_run: bool
    renamed: int = 0
    aliases_taken: int = 0
    changed: tuple[api.Skipped, ...] = ()
    always_loaded: AlwaysLoaded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written, and where: printed when the export itself goes to a file."""

    path: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """The store's file, what it was restored from, and where the old one is kept (null when there was none).

    `always_loaded` are the lines that agents are given from now on.
    """

    file: str
    source: str
    kept: str | None
    always_loaded: AlwaysLoaded


@dataclass(slots=True)
class Totals:
    """The sums of the answers so far."""

    files: int = 0
    events: int = 0
    memories: int = 0
    duplicates: int = 0
    renamed: int = 0
    aliases_taken: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)

    def add(self, answer: api.ImportAnswer) -> None:
        """Add what one import took."""
        self.formats[answer.format] += 1
        self.events += answer.events
        self.memories += answer.memories
        self.duplicates += answer.duplicates
        self.renamed += answer.renamed
        self.aliases_taken += answer.aliases_taken
        self.redactions.update(answer.redactions)
        self.skip(answer.skipped)
        self.changed.update({each.reason: each.count for each in answer.changed})

    def skip(self, skipped: Iterable[api.Skipped]) -> None:
        """Add reasons."""
        for each in skipped:
            self.skipped[each.reason] += each.count

    def reasons(self) -> tuple[api.Skipped, ...]:
        """Return the reasons, the commonest first."""
        return tuple(api.Skipped(reason=reason, count=count) for reason, count in self.skipped.most_common())


def ingest(line: Namespace) -> None:
    """Take in events, one JSON object a line. All lines are read before the first is sent: all of it, or none."""
    out = Output.of(line)
    data = sys.stdin.buffer.read() if line.file == "-" else Path(line.file).read_bytes()
    drafts = _drafts(invocation.decoded(data, "stdin" if line.file == "-" else line.file))
    totals = Totals()
    with invocation.store(line, background=True) as door, out.progress() as bar:
        task = bar.add_task("ingesting", total=len(drafts))
        for start in range(0, len(drafts), BATCH):
            batch = tuple(drafts[start : start + BATCH])
            answer: api.IngestAnswer = door.call("ingest", api.IngestRequest(events=batch, learn=not line.no_learn))
            totals.events += answer.accepted
            totals.duplicates += answer.duplicates
            totals.redactions.update(answer.redactions)
            totals.skip(answer.skipped)
            bar.update(task, advance=len(batch))
        bar.stop()
        _finish(door, out, wanted=line.wait)
    report = IngestReport(
        lines=len(drafts),
        accepted=totals.events,
        duplicates=totals.duplicates,
        redactions=dict(totals.redactions),
        skipped=totals.reasons(),
    )
    out.answer(
        report,
        lambda: render.taken(report.accepted, 0, report.duplicates, report.redactions, report.skipped),
    )


def _drafts(text: str) -> list[EventDraft]:
    decoder = msgspec.json.Decoder(EventDraft)
    drafts = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            drafts.append(decoder.decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidError(
                f"line {number} is not an event: {error}",
                hint='a line is {"agent": …, "session_id": …, "type": "user_message", "text": …}; nothing was stored',
            ) from error
    if not drafts:
        raise InvalidError("the input holds no events", hint="give one JSON object a line, in a file or on stdin")
    return drafts


def import_(line: Namespace) -> int:
    """Learn from files, one after another. One that fails does not stop the rest, and shows in the exit code."""
    out = Output.of(line)
    if line.restore and (
        wrong := [word for word in line.paths if word != "-" and not Path(word).expanduser().is_file()]
    ):
        raise InvalidError(
            f"--restore takes files, and {wrong[0]} is not a file",
            hint="name the export itself: scrubjay import --restore FILE; what a folder holds may be anybody's",
        )
    loaded = None
    found = list(files(line.paths, named_format=line.format is not None))
    totals = Totals()
    failed: list[Failed] = []
    for file in found:
        if file.reason:
            totals.skipped[file.reason] += 1
    wanted = [file for file in found if not file.reason]
    if not wanted:
        raise _nothing_found(line.paths, totals)
    with invocation.store(line, background=not line.dry_run) as door, out.progress() as bar:
        task = bar.add_task("importing", total=len(wanted))
        try:
            for file in wanted:
                if (error := _imported(door, line, file, totals)) is not None:
                    failed.append(Failed(path=file.shown, code=error.code, message=error.message, hint=error.hint))
                bar.update(task, advance=1)
            bar.stop()
            if not line.dry_run:
                _finish(door, out, wanted=line.wait)
                loaded = _always_loaded(door) if line.restore else None
        except KeyboardInterrupt:
            bar.stop()
            out.remark(_stopped(totals, len(failed), len(wanted), dry_run=line.dry_run))
            raise
    report = ImportReport(
        files=totals.files,
        events=totals.events,
        memories=totals.memories,
        duplicates=totals.duplicates,
        formats=dict(totals.formats),
        redactions=dict(totals.redactions),
        skipped=totals.reasons(),
        failed=tuple(failed),
        dry_run=line.dry_run,
        renamed=totals.renamed,
        aliases_taken=totals.aliases_taken,
        changed=tuple(api.Skipped(reason=reason, count=count) for reason, count in totals.changed.most_common()),
        always_loaded=loaded,
    )
    if len(failed) == len(wanted) == 1:
        raise BY_CODE.get(failed[0].code, ScrubjayError)(failed[0].message, hint=failed[0].hint)
    out.answer(report, lambda: render.imported(report))
    return BY_CODE.get(failed[0].code, ScrubjayError).exit_code if failed else 0


def _nothing_found(given: Iterable[str], totals: Totals) -> NotFoundError:
    """Return the error of an import that found no file to read, with what it did find."""
    found = "; ".join(reasons.said(totals.reasons()))
    return NotFoundError(
        f"{' and '.join(map(repr, given))} holds nothing to import: {f'left out {found}' if found else 'no files'}",
        hint=f"out of a folder, an import picks up {', '.join(READ_SUFFIXES)}; any other file can be named",
    )


def _stopped(totals: Totals, failed: int, wanted: int, *, dry_run: bool) -> str:
    """Return how far an import came that was interrupted, and what to do."""
    done = totals.files + failed
    if dry_run:
        return f"stopped after {done:,} of {render.counted(wanted, 'file')}; a dry run stores nothing"
    if done == wanted:
        return f"stopped while learning: {render.counted(wanted, 'file')} imported; the next command goes on learning"
    stored = f"{render.counted(totals.events, 'event')} and {render.counted(totals.memories, 'memory', 'memories')}"
    return (
        f"stopped after {done:,} of {render.counted(wanted, 'file')}: {stored} stored; "
        "the same command again goes on where this one stopped"
    )


def _imported(door: Door, line: Namespace, file: Found, totals: Totals) -> ScrubjayError | None:
    """Import one file into the totals; return what is wrong with that file. What is wrong with the store is raised."""
    try:
        data = sys.stdin.buffer.read() if file.path is None else file.path.read_bytes()
        for piece in _pieces(door, file.name, data):
            request = api.ImportRequest(
                name=file.name,
                data=piece,
                format=line.format,
                only=line.only,
                project=line.project,
                dry_run=line.dry_run,
                place=file.place(data),
                restore=line.restore,
            )
            totals.add(door.call("import_", request))
    except (InvalidError, NotFoundError) as error:
        return error
    except OSError as error:
        return of_os_error(error)
    totals.files += 1
    return None


def _pieces(door: Door, name: str, data: bytes) -> Iterator[bytes]:
    """Yield the file whole, or an export of ours in pieces that the daemon's door is wide enough for.

    Each piece begins with the export's first line; its records stand on their own. Other formats cannot be cut.
    """
    widest = DEFAULT.limits.max_import_bytes
    if door.through != "daemon" or len(data) <= widest:
        yield data
        return
    if not is_export(data):
        raise TooLargeError(
            f"{name} is larger than the {widest >> 20} MiB that the daemon takes at once",
            hint="scrubjay daemon stop, then import it again: without the daemon there is no such limit",
        )
    head_end = data.index(b"\n") + 1
    head, start = data[:head_end], head_end
    while start < len(data):
        end = min(start + widest - head_end, len(data))
        if end < len(data):
            end = data.rfind(b"\n", start, end) + 1
            if end == 0:
                raise TooLargeError(
                    f"{name} holds a record of more than {widest >> 20} MiB, which the daemon does not take",
                    hint="scrubjay daemon stop, then import it again: without the daemon there is no such limit",
                )
        yield head + data[start:end]
        start = end


def _finish(door: Door, out: Output, *, wanted: bool) -> None:
    """Wait until all is learned, when asked to, or when no daemon would do it after us."""
    if not wanted and door.through == "daemon":
        return
    left = settled(door, out)
    if left.to_learn or left.to_embed:
        out.remark(
            f"not done yet: {render.counted(left.to_learn, 'event')} to learn from, "
            f"{render.counted(left.to_embed, 'text')} to embed; the next command goes on"
        )


def settled(door: Door, out: Output) -> api.SettleAnswer:
    """Wait until all is learned and embedded, and show how far it is. Returns what could not be done.

    The jobs do the work and the bar follows them; the verb `settle` then does what they left.
    """
    with out.progress() as bar:
        task = bar.add_task("learning", total=None)
        most = waiting = 0
        moved = time.monotonic()
        while time.monotonic() - moved < STALLED_S:
            counts: api.SettleAnswer = door.call("settle", api.SettleRequest(timeout_ms=0))
            left = counts.to_learn + counts.to_embed
            if left == 0:
                break
            if left != waiting:
                waiting, moved = left, time.monotonic()
            most = max(most, left)
            what = "learning" if counts.to_learn else "embedding"
            bar.update(task, description=what, total=most, completed=most - left)
            time.sleep(LOOK_S)
        answer: api.SettleAnswer = door.call("settle", api.SettleRequest(timeout_ms=SETTLE_MS))
    return answer


def export(line: Namespace) -> None:
    """Write everything out, as `scrubjay import` reads it. A file appears complete, or not at all."""
    out = Output.of(line)
    with invocation.store(line) as door:
        if line.file == "-":
            sys.stdout.flush()
            _written(door, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        path = _destination(line, Path(line.file).expanduser().absolute())
        with destination.written(path, force=line.force) as part, part.open("wb") as file:
            lines, size = _written(door, file)
            file.flush()
    report = ExportReport(path=str(path), lines=lines, bytes=size)
    out.answer(report, lambda: f"wrote {path}: {render.counted(lines, 'record')}, {render.size(size)}")


def _destination(line: Namespace, target: Path) -> Path:
    """Return where a copy is to go. Raises for a file of ours, and for one that is there and may not be replaced."""
    chosen = invocation.settings_of(line)
    inside = [each for each in chosen.data_dir.iterdir() if each.is_file()] if chosen.data_dir.is_dir() else []
    ours = [chosen.config_path, chosen.log_path, *inside, *([chosen.socket] if chosen.socket else [])]
    return destination.check(target, chosen.store_path, force=line.force, ours=ours)


def _written(door: Door, file: BinaryIO) -> tuple[int, int]:
    lines = size = 0
    for record in door.export():
        size += file.write(record + b"\n")
        lines += 1
    return lines, size


def backup(line: Namespace) -> None:
    """Copy the store while it is in use, and check the copy."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    stamp = f"{invocation.now():%Y-%m-%dT%H%M%S}"
    default = chosen.data_dir / "backups" / f"memory-{stamp}.db"
    path = Path(line.file).expanduser().absolute() if line.file else default
    if path.is_dir():
        path = path / default.name
    if path == default:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _destination(line, path)
    with invocation.store(line) as door:
        answer: api.PathAnswer = door.call("backup", api.PathRequest(path=str(path), force=line.force))
    out.answer(
        answer, lambda: f"wrote {answer.path}: {render.size(answer.bytes)}, checked, sha256 {answer.sha256[:16]}…"
    )


def restore(line: Namespace) -> None:
    """Put a backup in place of the store; the old file is kept beside it."""
    from scrubjay.store import migrations  # noqa: PLC0415  # numpy and all: the other commands may find a daemon
    from scrubjay.store import restore as put_back  # noqa: PLC0415

    out = Output.of(line)
    target = invocation.settings_of(line).store_path
    source = Path(line.file).expanduser().absolute()
    kept = put_back(target, source, migrations())
    with invocation.store(line) as door:
        loaded = _always_loaded(door)
    report = RestoreReport(
        file=str(target), source=str(source), kept=None if kept is None else str(kept), always_loaded=loaded
    )
    out.answer(report, lambda: render.restored(report))


def _always_loaded(door: Door) -> AlwaysLoaded:
    """Return the lines of the layers that every agent is given."""
    lines: dict[Layer, dict[str, str]] = {}
    for layer in (Layer.IDENTITY, Layer.ACTIVE):
        entries: list[api.Entry] = []
        cursor: str | None = None
        while True:
            page: api.ListAnswer = door.call("list", api.ListRequest(layer=layer, cursor=cursor))
            entries += page.entries
            cursor = page.next
            if cursor is None:
                break
        lines[layer] = {entry.memory.name or entry.memory.id: entry.memory.content for entry in reversed(entries)}
    return AlwaysLoaded(identity=lines[Layer.IDENTITY], active=lines[Layer.ACTIVE])


def rebuild(line: Namespace) -> None:
    """Derive everything again from events and ops."""
    out = Output.of(line)
    with invocation.store(line, background=line.vectors) as door, out.progress() as bar:
        bar.add_task("rebuilding", total=None)
        answer: api.RebuildAnswer = door.call("rebuild", api.RebuildRequest(vectors=line.vectors))
        bar.stop()
        if line.vectors:
            _finish(door, out, wanted=False)
    same = "the same as before" if answer.before == answer.after else "it was damaged, and is now as its ops say"
    out.answer(
        answer,
        lambda: (
            f"{render.counted(answer.memories, 'memory', 'memories')} from "
            f"{render.counted(answer.events, 'event')}: {same}"
        ),
    )
