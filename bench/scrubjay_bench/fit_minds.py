"""Fits what tells of a change of mind (`scrubjay.lifecycle.minds`), and shows how it does on people left out.

`python -m scrubjay_bench.fit_minds OUT.json [FOLDER]`

FOLDER holds `fit.jsonl`, in this repository `bench/minds`: lines of `{who, old, new, label}`, with a
label of `replaces`, `both` (hold on) or `doubtful`. Each later statement is also compared with all earlier ones of the
same person, which it says nothing of. Only `fit.jsonl` is fitted to; of it, each person is judged by the others. What
the rules see without it (`lifecycle.supersession`) is counted as noticed. `tests/test_minds.py` looks at `kept.jsonl`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrubjay.lifecycle.minds import FEATURES, features
from scrubjay.lifecycle.supersession import verdict_of
from scrubjay.policy import SupersessionPolicy
from scrubjay_bench.fit_worth import Matrix, ridge

FOLDER = Path(__file__).parents[1] / "minds"
RIDGE = 10.0
"""How much large weights cost. A third or three times as much changes an average precision by .005."""
SHARES = {"replaces": 1.0, "both": 1.0, "doubtful": 0.5, "beside": 0.15}
"""What a pair weighs: those that only stand beside each other are ten times as many, and easy."""
FLOORS = (0.4, 0.5, 0.6, 0.7)
"""Chances from which it is said how many pairs are noticed."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of statements: who said them, their labels, and what is measured of them."""

    who: NDArray[np.str_]
    label: NDArray[np.str_]
    rows: Matrix
    ruled: NDArray[np.bool_]


def read(path: Path) -> Pairs:
    """Return the labelled pairs of a file, and those of the same people that only stand beside each other."""
    said = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [(one["who"], one["label"], one["old"], one["new"]) for one in said]
    for who in sorted({one["who"] for one in said}):
        own = [one for one in said if one["who"] == who]
        olds = list(dict.fromkeys(one["old"] for one in own))
        rows += [(who, "beside", old, one["new"]) for one in own for old in olds if old != one["old"]]
    policy = SupersessionPolicy()
    return Pairs(
        who=np.array([row[0] for row in rows]),
        label=np.array([row[1] for row in rows]),
        rows=np.array([features(old, new) for _, _, old, new in rows]),
        ruled=np.array([verdict_of(old, new, policy) is not None for _, _, old, new in rows]),
    )


def fit(rows: Matrix, label: NDArray[np.str_]) -> Matrix:
    """Return the weights of a logistic regression, and the offset last."""
    share = np.array([SHARES[one] for one in label])
    weights, offset = ridge(rows, (label == "replaces").astype(np.float64), share, RIDGE)
    return np.append(weights, offset)


def left_out(pairs: Pairs) -> Matrix:
    """Return what is said of each person's pairs by weights that were fitted to the others'."""
    said = np.zeros(len(pairs.rows))
    for who in sorted(set(pairs.who)):
        own = pairs.who == who
        said[own] = chances(pairs.rows[own], fit(pairs.rows[~own], pairs.label[~own]))
    return said


def chances(rows: Matrix, weights: Matrix) -> Matrix:
    """Return how likely each row tells of a change of mind."""
    return np.asarray(1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1]))))


def main(arguments: list[str]) -> None:
    """Fit, write the file, and say how it does on people left out."""
    parser = argparse.ArgumentParser(prog="scrubjay_bench.fit_minds")
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    given = parser.parse_args(arguments)
    pairs = read(given.folder / "fit.jsonl")
    weights = [round(float(one), 4) for one in fit(pairs.rows, pairs.label)]
    data = json.dumps({"features": list(FEATURES), "weights": weights}, separators=(",", ":")).encode() + b"\n"
    given.out.write_bytes(data)
    sys.stdout.write(f"sha256 {hashlib.sha256(data).hexdigest()}\n| from | {' | '.join(SHARES)} |\n")
    said = left_out(pairs)
    for floor in FLOORS:
        noticed = pairs.ruled | (said >= floor)
        shares = [f"{float(noticed[pairs.label == one].mean()):.4f}" for one in SHARES]
        sys.stdout.write(f"| {floor} | {' | '.join(shares)} |\n")


if __name__ == "__main__":
    main(sys.argv[1:])
