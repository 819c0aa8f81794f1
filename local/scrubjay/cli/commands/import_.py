"""`scrubjay import`: learn from transcripts, conversations and notes."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, reasons, render
from scrubjay.cli.agreeing import agree
from scrubjay.cli.always_loaded import always_loaded
from scrubjay.cli.arguments import FORMATS, project, text
from scrubjay.cli.draining import finish
from scrubjay.cli.errors import of_os_error
from scrubjay.cli.import_parts import Part, of_stream, parts, project_of, require_small
from scrubjay.cli.import_paths import READ_SUFFIXES, ImportFile, files, strange_folders
from scrubjay.cli.output import Output
from scrubjay.cli.reports import Failed, ImportReport
from scrubjay.cli.totals import Totals
from scrubjay.importers.export_format import FORMAT
from scrubjay.importers.parsing import FORMATS_HINT, SourceFormat
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    BY_CODE,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    TooLargeError,
)
from scrubjay_shared.records import ReviewState

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.transports.local import Transport

MAY_BE_EMPTY = {SourceFormat.MARKDOWN.value, SourceFormat.TEXT.value, FORMAT}
"""Formats of which a file may hold nothing: a heading alone, or the export of an empty store."""


log = logging.getLogger(__name__)


def configure(parser: Parser) -> None:
    """Take files, and how to read them."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or patterns; - reads stdin")
    parser.add_argument(
        "--format", type=text, help=f"how to read them, where scrubjay cannot tell: {', '.join(FORMATS)}"
    )
    parser.add_argument("--only", type=text, metavar="ID", help="one conversation of a file that holds several")
    parser.add_argument("--project", type=project, metavar="ID", help="what is imported belongs to this project")
    parser.add_argument(
        "--restore", action="store_true", help="FILE is an export of your own: put its layers and trust back as well"
    )
    parser.add_argument("--dry-run", action="store_true", help="read and count, store nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask before a folder is read that is no agent's own")
    parser.add_argument("--wait", action="store_true", help="return when all is learned and embedded")


def run(line: Namespace) -> int:
    """Learn from files, one after another. One that fails does not stop the rest, and shows in the exit code."""
    out = Output.of(line)
    if line.restore and (
        wrong := [word for word in line.paths if word != "-" and not Path(word).expanduser().is_file()]
    ):
        raise InvalidError(
            f"--restore takes files, and {wrong[0]} is not a file",
            hint="name the export itself: scrubjay import --restore FILE; what a folder holds may be anybody's",
        )
    loaded, waiting = None, 0
    label = _label(line.paths)
    found = list(files(line.paths, named_format=line.format is not None))
    totals = Totals()
    failed: list[Failed] = []
    totals.skipped.update(file.reason for file in found if file.reason)
    to_read = [file for file in found if not file.reason]
    if not to_read:
        raise _nothing_found(line.paths, totals)
    if not (line.yes or line.dry_run):
        _ask(line.paths, to_read)
    began = Millis(time.time_ns() // 1_000_000)
    with invocation.store(line, background=not line.dry_run) as store, out.progress() as bar:
        task = bar.add_task("importing", total=len(to_read))
        try:
            for file in to_read:
                if (error := _imported(store, line, file, totals, label=label)) is not None:
                    failed.append(Failed(path=file.shown, code=error.code, message=error.message, hint=error.hint))
                bar.update(task, advance=1)
            bar.stop()
            if not line.dry_run:
                finish(store, out, wait=line.wait)
                loaded = always_loaded(store) if line.restore else None
                review: api.ReviewResponse = store.call("review", api.ReviewRequest(limit=1))
                waiting = review.counts.get(ReviewState.WAITING.value, 0)
        except (KeyboardInterrupt, ScrubjayError) as error:
            bar.stop()
            _count_stored(store, totals, began)
            _say_stopped(out, error, _stopped(totals, len(failed), len(to_read), dry_run=line.dry_run))
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
        cause=totals.cause,
        taken_back=tuple(totals.taken_back),
        waiting=waiting,
    )
    if len(failed) == len(to_read) and _alike(failed):
        raise BY_CODE.get(failed[0].code, ScrubjayError)(failed[0].message, hint=failed[0].hint)
    out.answer(report, lambda: render.transfer.imported(report))
    return BY_CODE.get(failed[0].code, ScrubjayError).exit_code if failed else 0


def _count_stored(store: Transport, totals: Totals, began: Millis) -> None:
    """Count into the totals what the interrupted file has stored so far: its answer, which tells it, never came.

    A daemon ends the batch that it is at, so that some hundred more may follow.
    """
    try:
        page: api.HistoryResponse = store.call("history", api.HistoryRequest(kind="import", limit=1))
    except ScrubjayError as error:  # the interrupt is what is told
        log.debug("the history could not be read: %s", error)
        return
    for cause in page.causes:
        if cause.id == totals.cause or (totals.cause is None and cause.ts >= began):
            totals.events = max(totals.events, cause.changes.get("event", 0))
            totals.memories = max(totals.memories, cause.changes.get("write", 0))


def _ask(given: Sequence[str], to_read: Sequence[ImportFile]) -> None:
    """Ask before folders are read that may be anybody's, and say how many files, of which kinds, how large."""
    strange = strange_folders(given)
    if not strange:
        return
    paths = [file.path for file in to_read if file.path is not None]
    kinds = Counter(path.suffix.lower() or "no suffix" for path in paths)
    said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    size = render.words.size(sum(path.stat().st_size for path in paths if path.exists()))
    named = " and ".join(str(folder) for folder in strange)
    files_ = render.words.counted(len(paths), "file")
    agree(
        f"{named} is no agent's own folder. {files_} would be read: {said}; {size};"
        " what was typed in transcripts of agents counts as your word",
        refusal="a folder that is no agent's own is read only after a yes",
        hint="add --yes; with --dry-run nothing is stored",
    )


def _say_stopped(out: Output, error: BaseException, words: str) -> None:
    if isinstance(error, KeyboardInterrupt) or not out.json:  # to a program the error alone is said
        out.remark(words)


def _alike(failed: Sequence[Failed]) -> bool:
    """Tell whether the same is wrong with every file: then it is one error."""
    return len({(each.code, each.message) for each in failed}) == 1


def _nothing_found(given: Iterable[str], totals: Totals) -> NotFoundError:
    """Return the error of an import that found no file to read, with what it did find."""
    found = "; ".join(reasons.said(totals.reasons()))
    return NotFoundError(
        f"{' and '.join(map(repr, given))} holds nothing to import: {f'left out {found}' if found else 'no files'}",
        hint=f"out of a folder, an import picks up {', '.join(READ_SUFFIXES)}; any other file can be named",
    )


def _stopped(totals: Totals, failed: int, to_read: int, *, dry_run: bool) -> str:
    """Return how far an import came that was interrupted, and what to do."""
    done = totals.files + failed
    if dry_run:
        return f"stopped after {done:,} of {render.words.counted(to_read, 'file')}; a dry run stores nothing"
    files_ = render.words.counted(to_read, "file")
    if done == to_read:
        return f"stopped while learning: {files_} imported; the next command goes on learning"
    events = render.words.counted(totals.events, "event")
    memories = render.words.counted(totals.memories, "memory", "memories")
    return (
        f"stopped after {done:,} of {files_}: {events} and {memories} stored; "
        "the same command again goes on where this one stopped"
    )


def _label(paths: Sequence[str]) -> str | None:
    """Return what the history calls an import of a folder or of several paths; None for that of a file."""
    first = Path(paths[0]).expanduser()
    if len(paths) == 1:
        return first.resolve().name or str(first) if first.is_dir() else None
    return f"{first.name or paths[0]} and {render.words.counted(len(paths) - 1, 'more path')}"


def _imported(
    store: Transport, line: Namespace, file: ImportFile, totals: Totals, *, label: str | None
) -> ScrubjayError | None:
    """Import one file into the totals; return what is wrong with that file. What is wrong with the store is raised.

    All files of a command are one import: each names the cause that the first was given.
    """
    most = DEFAULT.limits.max_import_bytes if store.through == "daemon" else None
    answers: list[api.ImportResponse] = []
    left_out: Counter[str] = Counter()
    try:
        for part in _parts(file, named_format=line.format is not None, most=most):
            if part.reason:
                left_out[part.reason] += 1
                continue
            require_small(part, most)
            request = api.ImportRequest(
                name=part.name,
                data=part.data,
                format=line.format or part.format,
                only=line.only,
                project=line.project or project_of(file.path),
                dry_run=line.dry_run,
                place=part.place or file.place(part.data),
                restore=line.restore,
                cause=totals.cause,
                label=label,
            )
            answers.append(store.call("import", request))
            totals.add(answers[-1])
        nothing = _nothing_taken(file.name, answers, left_out)
    except (InvalidError, NotFoundError, TooLargeError) as error:
        return error
    except OSError as error:
        return of_os_error(error)
    finally:
        totals.skipped.update(left_out)
    totals.files += nothing is None
    return nothing


def _nothing_taken(
    name: str, answers: Sequence[api.ImportResponse], left_out: Mapping[str, int]
) -> InvalidError | None:
    """Return what is wrong with a file that gave nothing, though there was more in it than bookkeeping."""
    if any(one.events or one.memories or one.duplicates for one in answers):
        return None
    skipped = Counter(left_out)
    for one in answers:
        skipped.update({each.reason: each.count for each in one.skipped})
    formats = sorted({one.format for one in answers})
    known = skipped.keys() - reasons.UNREAD - reasons.LOST
    if not skipped.keys() & reasons.UNREAD and (known if answers else not skipped):
        return None
    if not skipped and set(formats) <= MAY_BE_EMPTY:
        return None
    saw = "; ".join(reasons.said([api.Skipped(reason=each, count=count) for each, count in skipped.most_common()]))
    what = " and ".join(formats) or "an archive"
    return InvalidError(
        f"{name} was read as {what}, and nothing could be taken: {saw or 'it is empty'}",
        hint=f"if it is of another program, say how to read it; {FORMATS_HINT}",
    )


def _parts(file: ImportFile, *, named_format: bool, most: int | None) -> Iterator[Part]:
    """Yield what a file is imported as."""
    if file.path is None:
        yield from of_stream(Part(file.name, b""), sys.stdin.buffer, most)
    else:
        yield from parts(file, file.path, named_format=named_format, most=most)
