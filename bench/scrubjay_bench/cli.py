"""`scrubjay bench`: run the benchmarks, show them, write them down; or judge a change in a minute and a half."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from scrubjay import settings as options
from scrubjay_bench import (
    answers_cli,
    append,
    consolidation_cli,
    contents,
    daemons,
    devmem_cli,
    event_loop,
    footprint,
    gate,
    handed_cli,
    hooks,
    importing,
    junk_cli,
    quality,
    reader_cli,
    report,
    retrieval_cli,
    routes_cli,
    scale,
    starting,
    surfacing_cli,
    terminal,
)
from scrubjay_bench.figures import Figure, load, machine
from scrubjay_bench.plan import Plan
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError

CHECKOUT = Path(__file__).resolve().parents[2]
BASELINE = CHECKOUT / "bench" / "baseline.json"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
FAILED = 1
# Up to half an hour: measured when they are named.
LONGEST = ("scale-1m", "bootstrap-1m", "event-loop", "import-growth")


def _synced(module: str, **options: str) -> Callable[[Plan], list[Figure]]:
    """Return a section about sync or the cloud, whose libraries are loaded (and needed) only when it is measured."""

    def measure(plan: Plan) -> list[Figure]:
        try:
            found = import_module(f"scrubjay_bench.{module}")
        except ModuleNotFoundError as error:
            raise NotFoundError(f"{error.name} is not installed", hint="pip install 'scrubjay[sync,cloud]'") from error
        figures: list[Figure] = found.measure(plan, **options)
        return figures

    return measure


SECTIONS: dict[str, tuple[str, Callable[[Plan], list[Figure]]]] = {
    "append": ("Appending events", append.measure),
    **{
        f"scale-{name}": (f"A store of {size.filling.items:,} items", partial(scale.measure, name=name))
        for name, size in scale.SIZES.items()
    },
    "toc": ("The table of contents", contents.measure),
    "event-loop": ("The event loop with texts of 8 MB", event_loop.measure),
    "footprint": ("Memory and processor time of the daemon", footprint.measure),
    "import": ("Importing", importing.measure),
    "import-growth": ("Importing 1,000 and 13,000 memories", importing.measure_growth),
    "start": ("Cold start", starting.measure),
    "terminal": ("Commands at a terminal", terminal.measure),
    "hooks": ("Hooks", hooks.measure),
    "quality": ("Quality on the shipped sample", quality.measure),
    "sealing": ("Sync: sealing and sizes", _synced("sealing")),
    "cloud": ("Sync: the cloud service", _synced("cloud_rates")),
    "longpolls": ("Sync: a service with 1,000 long-polls", _synced("longpolls")),
    "visible": ("Sync: until the other machine shows it", _synced("visible")),
    "bootstrap-10k": ("Sync: a new machine, 10,000 events", _synced("bootstrap", name="10k")),
    "bootstrap-100k": ("Sync: a new machine, 100,000 events", _synced("bootstrap", name="100k")),
    "bootstrap-1m": ("Sync: a new machine, 1,000,000 events", _synced("bootstrap", name="1m")),
}


def command(words: Sequence[str]) -> int:
    """Run `scrubjay bench …`: the first word is the command's own name."""
    return main(words[1:])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0, 1 when the gate is shut, else the error's."""
    line = _parser().parse_args(argv)
    try:
        return int(line.act(line))
    except ScrubjayError as error:
        sys.stderr.write(f"scrubjay: {error.message}\n      {error.hint}\n")
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scrubjay bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="measure, and show a table")
    run.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (all but {' and '.join(LONGEST)})"
    )
    run.add_argument("--rounds", type=int, default=5, help="how often each figure is measured (5)")
    run.add_argument(
        "--only",
        nargs="+",
        default=(),
        metavar="REQUEST",
        help="of event-loop: ask only what has a name that begins so; name what it needs before it too",
    )
    run.add_argument("--locomo", type=Path, help="locomo10.json, for the figures of import and scale")
    run.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    run.add_argument(
        "--docs", action="store_true", help="also write them into bench/baseline.json and docs/benchmarks.md"
    )
    run.set_defaults(act=_run)
    check = commands.add_parser("gate", help="fail when a ratio has become worse than bench/baseline.json allows")
    check.add_argument("--baseline", type=Path, default=BASELINE, help="a file with other limits")
    check.add_argument("--locomo", type=Path, help="locomo10.json, to judge recall on two of its conversations too")
    check.set_defaults(act=_gate)
    retrieval_cli.add(commands)
    devmem_cli.add(commands)
    handed_cli.add(commands)
    answers_cli.add(commands)
    routes_cli.add(commands)
    junk_cli.add(commands)
    surfacing_cli.add(commands)
    consolidation_cli.add(commands)
    reader_cli.add(commands)
    for command in (run, check):
        command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
        command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
        command.add_argument("--keep", type=Path, help="where filled stores stay between runs (a temporary folder)")
        command.add_argument("--scratch", type=Path, help="where to write meanwhile: the disk that is measured")
    return parser


def _plan(line: argparse.Namespace, keep: Path) -> Plan:
    models_dir = line.models or options.load(environ=os.environ).models_dir
    if not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    return Plan(
        models_dir=models_dir.absolute(),
        model=line.model,
        keep=keep,
        scratch=line.scratch,
        locomo=getattr(line, "locomo", None),
        rounds=getattr(line, "rounds", gate.ROUNDS),
        only=tuple(getattr(line, "only", ())),
    )


def _run(line: argparse.Namespace) -> int:
    if unknown := set(line.sections) - SECTIONS.keys():
        raise InvalidError(f"no section is called {min(unknown)}", hint=f"sections: {', '.join(SECTIONS)}")
    if line.rounds < 1:
        raise InvalidError("less than one round", hint="5 rounds make a median that holds")
    if line.only and line.docs:
        raise InvalidError(
            "--docs writes down whole sections, and --only measures a part", hint="leave one of them out"
        )
    keep = line.keep or Path(tempfile.gettempdir()) / "scrubjay-bench"
    plan = _plan(line, keep)
    found: dict[str, dict[str, Any]] = {}
    for name in line.sections or [section for section in SECTIONS if section not in LONGEST]:
        title, measure = SECTIONS[name]
        sys.stderr.write(f"measuring {name} …\n")
        before = load()
        figures = measure(plan)
        section = report.section_of(figures, machine(line.scratch or Path(tempfile.gettempdir())), (before, load()))
        found[title] = section
        print(f"\n{title} (load average {before}, then {section['load_after']})\n")
        print(_shown(figures), flush=True)
        # After each section: a run takes long, and what was measured should not be lost to what comes after it.
        if line.json:
            line.json.write_text(json.dumps({"format": report.FORMAT, "sections": found}, indent=1) + "\n")
        if line.docs:
            _write_down({title: section})
    return 0


def _write_down(found: Mapping[str, dict[str, Any]]) -> None:
    """Put sections into the baseline, in place of their own earlier ones, and the whole of it into the page."""
    if not PAGE.exists():
        raise NotFoundError("docs/benchmarks.md is not there", hint="--docs is for a checkout of the source")
    baseline = _baseline(BASELINE)
    old = baseline["sections"]
    merged = {title: found.get(title) or old.get(title) for title, _ in SECTIONS.values()}
    baseline["sections"] = {title: section for title, section in merged.items() if section}
    page = report.replaced(PAGE.read_text(encoding="utf-8"), baseline["sections"])
    BASELINE.write_text(json.dumps(baseline, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")


def _gate(line: argparse.Namespace) -> int:
    limits = limits_of(_baseline(line.baseline))
    began = time.perf_counter()
    with daemons.scratch(None) as folder:
        verdicts = gate.judged(_plan(line, line.keep or folder), limits)
    for verdict in verdicts:
        limit = verdict.limit
        print(
            f"{'pass' if verdict.passed else 'FAIL'}  {verdict.name:20} {report.number(verdict.value):>6}"
            f"  {limit.bound.value} {report.number(limit.last):>6}"
            f" = {report.number(limit.expected)} × {limit.tolerance:g}  (tries: {verdict.tries})"
        )
        if not verdict.passed:
            print(f"      {limit.reason}")
    print(f"took {time.perf_counter() - began:.0f} s, load average {load()}")
    return 0 if all(verdict.passed for verdict in verdicts) else FAILED


def limits_of(baseline: Mapping[str, Any]) -> dict[str, gate.Limit]:
    """Return the gate's limits out of a baseline. Raises InvalidError unless each check has one, and nothing else."""
    try:
        limits = msgspec.convert(baseline.get("gate", {}), dict[str, gate.Limit])
    except msgspec.ValidationError as error:
        raise InvalidError(f"the gate's limits cannot be read: {error}") from error
    if set(limits) != set(gate.NAMES):
        raise InvalidError("the baseline's limits are not those of the gate", hint=f"limits: {', '.join(gate.NAMES)}")
    return limits


def _baseline(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{path.name} is not there", hint="it is in bench/ of a checkout; or name one") from None
    except ValueError as error:
        raise InvalidError(f"{path.name} is not JSON", hint="git checkout bench/baseline.json") from error
    if not isinstance(found, dict) or found.get("format") != report.FORMAT:
        raise InvalidError(f"{path.name} is of another format", hint=f"this program reads format {report.FORMAT}")
    return found


def _shown(figures: Sequence[Figure]) -> str:
    lines = []
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{report.number(figure.ratio)} × {figure.floor}"
        reached = {None: "", True: "reached", False: "missed"}[figure.reached]
        spread = f"{report.number(figure.low)} … {report.number(figure.high)}"
        lines.append(
            f"  {figure.name:28} {report.number(figure.value):>8} {figure.unit:11} {spread:20} {ratio:34} {reached}"
        )
    return "\n".join(line.rstrip() for line in lines)
