"""`scrubjay verify`: compare everything in a store with what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from scrubjay.cli import invocation, render
from scrubjay.cli.output import Output
from scrubjay.cli.reports import Detected, Finding, VerifyReport
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take which store to look at, and the key of its falsifications."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a copy of a store (the store itself)")
    parser.add_argument("--key", metavar="KEY", help="what `scrubjay perturb` wrote: say what of it was noticed")


def run(line: Namespace) -> int:
    """Look at everything, and change nothing. Exits 7 where something does not fit."""
    from scrubjay.store import verify  # noqa: PLC0415  # the other commands need no store

    out = Output.of(line)
    path = Path(line.file).expanduser().absolute() if line.file else invocation.settings_of(line).store_path
    if not path.exists():
        raise NotFoundError(f"there is no store {path}", hint="scrubjay init makes one; scrubjay backup copies it")
    done = _done(Path(line.key).expanduser()) if line.key else []
    with out.progress() as bar:
        task = bar.add_task("comparing", total=None)
        found = tuple(
            Finding(what=one.what, wrong=one.wrong, remedy=str(one.remedy))
            for one in verify(path, lambda what, at, of: bar.update(task, description=what, completed=at, total=of))
        )
    explained = [mark for each in done for mark in (*each["marks"], *each.get("also", ()))]
    report = VerifyReport(
        file=str(path),
        sound=not found,
        findings=found,
        detected=_detected(done, found),
        unexplained=sum(not any(mark in one.what for mark in explained) for one in found) if done else 0,
    )
    out.answer(report, lambda: render.verification.verified(report))
    return 0 if report.sound else CorruptError.exit_code


def _done(key: Path) -> list[dict[str, Any]]:
    """Return what a key says was done. Raises InvalidError where it is none."""
    try:
        return list(msgspec.json.decode(key.read_bytes())["done"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise InvalidError(
            f"{key} is no key of falsifications ({type(error).__name__})", hint="scrubjay perturb writes one"
        ) from error


def _detected(done: Sequence[dict[str, Any]], found: Sequence[Finding]) -> tuple[Detected, ...]:
    """Return how many falsifications of each kind and depth a finding names."""
    named = " ".join(one.what for one in found)
    counts: dict[tuple[str, str], list[int]] = {}
    for one in done:
        count = counts.setdefault((one["kind"], one["depth"]), [0, 0])
        count[0] += 1
        count[1] += any(mark in named for mark in one["marks"])
    return tuple(
        Detected(kind=kind, depth=depth, done=number, found=noticed)
        for (kind, depth), (number, noticed) in sorted(counts.items())
    )
