"""`scrubjay perturb`: falsify a copy of the store, for experiments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import whole
from scrubjay.cli.output import Output
from scrubjay.cli.reports import PerturbReport
from scrubjay_io import private_files
from scrubjay_shared.errors import ConflictError, InvalidError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser

KINDS = ("corrupt", "swap", "forge", "rewrite")
DEPTHS = ("row", "op", "sealed")
EACH = 1
"""Falsifications of each kind and depth where none is asked for."""


def configure(parser: Parser) -> None:
    """Take what is to be falsified, how, and where."""
    parser.add_argument("file", metavar="FILE", help="the copy to write; it must not be there yet")
    parser.add_argument("--seed", type=whole, default=0, help="the same seed falsifies the same things (0)")
    parser.add_argument("--corrupt", type=whole, metavar="N", help="change a word of so many memories")
    parser.add_argument("--swap", type=whole, metavar="N", help="exchange the texts of so many pairs of memories")
    parser.add_argument("--forge", type=whole, metavar="N", help="make up so many memories")
    parser.add_argument("--rewrite", type=whole, metavar="N", help="change so many events that memories were read from")
    parser.add_argument(
        "--depth",
        choices=(*DEPTHS, "all"),
        default="all",
        help="row: what is shown; op: the log it is derived from; sealed: the log with its check sums (each of them)",
    )


def run(line: Namespace) -> None:
    """Copy the store, falsify the copy, and write down what was done. The store itself is only read."""
    from scrubjay.store import Depth, PerturbationKind, perturb  # noqa: PLC0415  # the other commands need no store

    out = Output.of(line)
    path = Path(line.file).expanduser().absolute()
    key = path.with_name(f"{path.name}.key.json")
    for one in (path, key):
        if one.exists() or one.is_symlink():
            raise ConflictError(f"{one} is there already", hint="choose another name: nothing is falsified in place")
    asked = {kind: getattr(line, kind) for kind in KINDS}
    if not any(asked.values()):
        if any(number is not None for number in asked.values()):
            raise InvalidError("nothing is to be falsified", hint="give --corrupt, --swap, --forge or --rewrite")
        asked = dict.fromkeys(KINDS, EACH)
    depths = DEPTHS if line.depth == "all" else (line.depth,)
    wanted = [
        (PerturbationKind(kind), Depth(depth))
        for kind, number in asked.items()
        for depth in depths
        for _ in range(number or 0)
    ]
    with invocation.store(line) as store:
        store.call("backup", api.PathRequest(path=str(path)))
    try:
        done = perturb(path, wanted, line.seed)
    except BaseException:
        path.unlink()
        raise
    private_files.write(key, msgspec.json.format(msgspec.json.encode({"seed": line.seed, "done": done})))
    counts = Counter(f"{one.kind} {one.depth}" for one in done)
    report = PerturbReport(file=str(path), key=str(key), seed=line.seed, done=dict(sorted(counts.items())))
    out.answer(report, lambda: render.verification.perturbed(report))
