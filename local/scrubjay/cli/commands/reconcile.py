"""`scrubjay reconcile`: store what hooks missed, out of the transcripts that the hosts keep themselves."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import text
from scrubjay.cli.draining import finish
from scrubjay.cli.errors import of_os_error
from scrubjay.cli.import_parts import parts, require_small
from scrubjay.cli.import_paths import ImportFile
from scrubjay.cli.output import Output
from scrubjay.cli.reports import Failed, ReconciledHost, ReconcileReport
from scrubjay.cli.totals import Totals
from scrubjay.containers.files import unpacked_name
from scrubjay.hosts.transcripts import TRANSCRIPTS
from scrubjay.policy import DEFAULT
from scrubjay_io import private_files
from scrubjay_shared.errors import BY_CODE, InvalidError, NotFoundError, ScrubjayError, TooLargeError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.transports.local import Transport

USUAL = "14 days ago"
"""What is looked at without --since: longer than anybody leaves a machine off, and short to read."""

STATE = "reconciled.json"
"""In the data folder: each transcript that was read, with its size and time. Without it all are read again."""

LABEL = "reconcile"

Seen = dict[str, list[int]]


@dataclass(slots=True)
class Reading:
    """What became of one host's transcripts so far."""

    files: int = 0
    unchanged: int = 0
    totals: Totals = field(default_factory=Totals)


def configure(parser: Parser) -> None:
    """Take which hosts, and how far back."""
    parser.add_argument(
        "hosts", nargs="*", type=text, metavar="HOST", help=f"{', '.join(TRANSCRIPTS)} (without one: all of them)"
    )
    parser.add_argument(
        "--since", type=text, metavar="WHEN", default=USUAL, help=f"transcripts written since then ({USUAL})"
    )
    parser.add_argument("--all", action="store_true", help="read those again that did not change since the last time")
    parser.add_argument("--wait", action="store_true", help="return when all is learned and embedded")


def run(line: Namespace) -> int:
    """Read what the hosts wrote; what their hooks delivered is there already and stays as it is."""
    out = Output.of(line)
    if unknown := [host for host in line.hosts if host not in TRANSCRIPTS]:
        raise InvalidError(
            f"{unknown[0]!r} is no host whose transcripts scrubjay reads", hint=f"hosts: {', '.join(TRANSCRIPTS)}"
        )
    since = times.since(line.since, invocation.now())
    state = invocation.settings_of(line).store_dir / STATE
    seen = {} if line.all else _seen(state)
    readings = {host: Reading() for host in line.hosts or TRANSCRIPTS}
    to_read: list[tuple[str, Path, list[int]]] = []
    for host, reading in readings.items():
        for path, mark in _written(host, 0 if since is None else since):
            if seen.get(str(path)) == mark:
                reading.unchanged += 1
            else:
                to_read.append((host, path, mark))
    failed: list[Failed] = []
    cause: str | None = None
    with invocation.store(line, background=True) as store, out.progress() as bar:
        task = bar.add_task("reconciling", total=len(to_read))
        try:
            for host, path, mark in to_read:
                readings[host].totals.cause = cause
                if (error := _read(store, host, path, readings[host])) is None:
                    seen[str(path)] = mark
                else:
                    failed.append(Failed(path=str(path), code=error.code, message=error.message, hint=error.hint))
                cause = readings[host].totals.cause
                bar.update(task, advance=1)
        finally:
            bar.stop()
            if to_read:
                private_files.write(state, json.dumps(_existing(seen)).encode())
        if to_read:
            finish(store, out, wait=line.wait)
    report = ReconcileReport(
        hosts=tuple(_reported(host, reading) for host, reading in readings.items()),
        failed=tuple(failed),
        cause=cause,
    )
    out.answer(report, lambda: render.transfer.reconciled(report))
    return BY_CODE.get(failed[0].code, ScrubjayError).exit_code if failed else 0


def _reported(host: str, reading: Reading) -> ReconciledHost:
    return ReconciledHost(
        host=host,
        files=reading.files,
        unchanged=reading.unchanged,
        events=reading.totals.events,
        duplicates=reading.totals.duplicates,
        redactions=dict(reading.totals.redactions),
        skipped=reading.totals.reasons(),
    )


def _written(host: str, since: int) -> Iterator[tuple[Path, list[int]]]:
    """Yield the transcripts of a host that were written since then, in order, each with its size and time."""
    place = TRANSCRIPTS[host]
    folder = Path(place.within(Path.home(), os.environ))
    for path in sorted(found for pattern in place.patterns for found in folder.glob(pattern)):
        with contextlib.suppress(OSError):  # it went away, or is not ours to read
            mark = _mark(path)
            is_twin = path.name != unpacked_name(path.name) and path.with_name(unpacked_name(path.name)).exists()
            if not is_twin and mark[1] >= since * 1_000_000:
                yield path, mark


def _mark(path: Path) -> list[int]:
    """Return what changes when a file does. What a database has not put into its file yet stands beside it."""
    found = [each.stat() for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]
    return [sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)]


def _seen(state: Path) -> Seen:
    """Return what was read before; nothing where that is not known, for reading again changes nothing."""
    try:
        known: Any = json.loads(state.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _existing(seen: Seen) -> Seen:
    return {path: mark for path, mark in sorted(seen.items()) if Path(path).exists()}


def _read(store: Transport, host: str, path: Path, reading: Reading) -> ScrubjayError | None:
    """Store what is missing of one transcript; return what is wrong with it. What is wrong with the store is raised."""
    most = DEFAULT.limits.max_import_bytes if store.through == "daemon" else None
    try:
        for part in parts(ImportFile(path.name, path), path, named_format=True, most=most):
            require_small(part, most)
            if part.data:
                request = api.ImportRequest(
                    name=part.name,
                    data=part.data,
                    format=part.format or host,
                    place=str(path),
                    cause=reading.totals.cause,
                    label=LABEL,
                )
                reading.totals.add(store.call("import", request))
    except (InvalidError, NotFoundError, TooLargeError) as error:
        return error
    except OSError as error:
        return of_os_error(error)
    reading.files += 1
    return None
