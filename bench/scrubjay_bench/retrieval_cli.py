"""The command lines of the retrieval benchmark: locomo, chats, longmemeval."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from scrubjay import settings as options
from scrubjay.setting_values import HTTP_PREFIX
from scrubjay_bench import (
    chats,
    configurations,
    fitting,
    locomo,
    longmemeval,
    plots,
    protocols,
    report,
    retrieval,
    tables,
)
from scrubjay_bench.conversations import DataSet
from scrubjay_bench.fillings import Keeper
from scrubjay_bench.protocols import Protocol
from scrubjay_bench.retrieval import Row, Run
from scrubjay_shared.errors import InvalidError, NotFoundError

CHECKOUT = Path(__file__).resolve().parents[2]
FIGURES = CHECKOUT / "bench" / "retrieval.json"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
FORMAT_HINT = "docs/retrieval-format.md describes it"

Loader = Callable[[Path], DataSet]

SETS: dict[str, tuple[Loader, dict[str, tuple[Protocol, ...]], str, str]] = {
    "locomo": (locomo.load, protocols.OF_LOCOMO, "locomo10.json, from its authors", "retrieval on LoCoMo"),
    "chats": (
        chats.load,
        protocols.OF_CHATS,
        f"a folder with {chats.TURNS} and {chats.QUESTIONS}",
        "retrieval on conversations of your own",
    ),
    "longmemeval": (
        longmemeval.load,
        protocols.OF_LONGMEMEVAL,
        "longmemeval_s_cleaned.json or longmemeval_oracle.json, from its authors",
        "retrieval on LongMemEval",
    ),
}


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    for name, (_, offered, data, about) in SETS.items():
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--data", type=Path, required=True, help=data)
        command.add_argument("--protocols", type=_names, default=tuple(offered), help=f"of {','.join(offered)} (all)")
        command.add_argument(
            "--configurations",
            type=_names,
            default=configurations.USUAL,
            help=f"names or groups ({', '.join(configurations.GROUPS)}), with commas (main,baselines)",
        )
        command.add_argument(
            "--conversations", type=int, nargs="+", default=(), metavar="N", help="some only, counted from 1"
        )
        command.add_argument(
            "--weights", type=Path, metavar="FILE", help="also rows with the weights that `scrubjay bench fit` wrote"
        )
        _add_where(command)
        command.add_argument("--k", type=int, default=5, help="the k of intervals and tokens (%(default)s)")
        command.add_argument("--json", type=Path, metavar="FILE", help=f"also write the rows there; {FORMAT_HINT}")
        command.add_argument(
            "--resume", action="store_true", help="take over rows of --json FILE for which nothing has changed"
        )
        command.add_argument("--out", type=Path, metavar="FOLDER", help="also draw the rows there, as SVG")
        command.add_argument(
            "--docs", action="store_true", help="also write them into bench/retrieval.json and docs/benchmarks.md"
        )
        command.set_defaults(act=_act, of=name)
    _add_fit(commands)


def _add_where(command: argparse.ArgumentParser) -> None:
    """Add where models and stores are."""
    command.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    command.add_argument("--reranker", default=options.DEFAULT_RERANKER, help="the reranking model (%(default)s)")
    command.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    command.add_argument("--keep", type=Path, help="where filled stores stay between runs (a temporary folder)")
    command.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")


def _add_fit(commands: Any) -> None:
    about = "fit the weights of recall to a data set, each conversation's on the others"
    fit = commands.add_parser("fit", help=about, description=about)
    fit.add_argument("of", choices=tuple(SETS), help="what kind of data")
    fit.add_argument("--data", type=Path, required=True, help="as for the command of that name")
    fit.add_argument("--protocol", default="P2", help="what is fitted to: P2 for events, P1 for memories (%(default)s)")
    fit.add_argument("--weights", type=Path, required=True, metavar="FILE", help="where to write them")
    _add_where(fit)
    fit.set_defaults(act=_fit)


def _names(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _act(line: argparse.Namespace) -> int:
    run = _run(line)
    conditions = run.conditions
    rows = {_place(row): row for row in run.earlier if row.get("under") == run.under}
    now: list[Row] = []
    for row in retrieval.measured(run, _note):
        rows[_place(row)] = row
        now.append(row)
        if line.json:
            _write(line.json, {"rows": list(rows.values()), "run": conditions})
    if not now:
        raise InvalidError(
            "no question could be counted", hint="the evidence of a question names turns of its conversation"
        )
    print(f"{run.data.name}: data sha256 {run.data.sha256}")
    for kind in ("model", "reranker"):
        if conditions[kind] is not None:
            print(f"{kind} {conditions[kind]['name']}, sha256 {conditions[kind]['sha256']}")
    print(tables.shown(now, run.k))
    if line.out:
        _draw(line.out, run, now)
    if line.docs:
        _write_down(run, {"rows": list(rows.values()), "run": conditions})
    return 0


def _fit(line: argparse.Namespace) -> int:
    """Fit, say what came out, and write it."""
    load, offered, *_ = SETS[line.of]
    (protocol,) = protocols.named(offered, (line.protocol,))[:1]
    task = fitting.Task(data=load(line.data), protocol=protocol, keeper=_keeper(line), scratch=line.scratch)
    found = fitting.fitted(task)
    if task.keeper.reranker != options.NO_MODEL:
        found = fitting.reranked(found, task)
    _write(line.weights, msgspec.to_builtins(found))
    for name, value in found.weights.items():
        spread = [fold[name] for fold in found.folds.values()]
        print(f"  {name:20} {value:7.3f}  {min(spread):7.3f} … {max(spread):.3f} over the folds")
    return 0


def _keeper(line: argparse.Namespace) -> Keeper:
    models_dir = line.models or options.load(environ=os.environ).models_dir
    local = line.model != options.NO_MODEL and not line.model.startswith(HTTP_PREFIX)
    if local and not (models_dir / line.model).is_dir():
        raise NotFoundError(f"the model {line.model} is not there", hint=f"scrubjay models pull {line.model}")
    return Keeper(
        folder=line.keep or Path(tempfile.gettempdir()) / "scrubjay-bench",
        models_dir=models_dir.absolute(),
        model=line.model,
        reranker=line.reranker,
    )


def _run(line: argparse.Namespace) -> Run:
    load, offered, *_ = SETS[line.of]
    if not 1 <= line.k <= configurations.RANKED:
        raise InvalidError(f"k {line.k} is out of range", hint=f"1 to {configurations.RANKED}, the hits asked for")
    if line.resume and line.json is None:
        raise InvalidError("--resume without --json", hint="name the file that has the earlier rows")
    data = load(line.data)
    chosen = configurations.named(line.configurations)
    if line.weights is not None:
        weights = fitting.read(line.weights)
        chosen += configurations.learned(fitting.policies(weights, data), rerank="rerank" in weights.weights)
    return Run(
        protocols=protocols.named(offered, line.protocols),
        configurations=chosen,
        data=retrieval.cut(data, line.conversations),
        keeper=_keeper(line),
        k=line.k,
        scratch=line.scratch,
        earlier=_earlier(line.json) if line.resume else (),
    )


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["protocol"], row["configuration"]


def _note(words: str) -> None:
    sys.stderr.write(f"scrubjay bench: {words}\n")


def _earlier(path: Path) -> tuple[Row, ...]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(dict(row) for row in found["rows"])
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidError(f"{path.name} is not a file of rows", hint=FORMAT_HINT) from error


def _write(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file whole or not at all: a run is often ended in the middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def _draw(folder: Path, run: Run, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for protocol, group in tables.by_protocol(rows).items():
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{run.data.name} {protocol}".lower())
        title = f"{run.data.name}, {protocol}"
        (folder / f"{name}-curves.svg").write_text(plots.curves(f"{title}: recall at k", group), encoding="utf-8")
        bars = plots.bars(f"{title}: recall at {run.k} by category", group, run.k)
        (folder / f"{name}-categories.svg").write_text(bars, encoding="utf-8")


def _write_down(run: Run, found: Mapping[str, Any]) -> None:
    """Put a data set's rows into the committed figures in place of its own earlier ones, and all into the page."""
    if not PAGE.exists():
        raise NotFoundError("docs/benchmarks.md is not there", hint="--docs is for a checkout of the source")
    sets: dict[str, Any] = figures()
    name = run.data.name if run.keeper.model == options.DEFAULT_MODEL else f"{run.data.name}, {run.keeper.model}"
    sets[name] = found
    block = tables.block(sets)
    page = report.inserted(PAGE.read_text(encoding="utf-8"), tables.BEGIN, tables.END, block)
    _write(FIGURES, {"format": retrieval.FORMAT, "sets": sets})
    PAGE.write_text(page, encoding="utf-8")


def figures() -> dict[str, Any]:
    """Return the committed rows, by data set; none where the file is not there."""
    try:
        found = json.loads(FIGURES.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or found.get("format") != retrieval.FORMAT:
        raise InvalidError("bench/retrieval.json is of another format", hint="git checkout bench/retrieval.json")
    return dict(found["sets"])
