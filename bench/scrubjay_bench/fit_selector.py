"""`scrubjay bench fit-selector`: the distiller's selector fitted to labelled sessions.

Every sentence that the distiller finds in a turn is a row; it is right when it matches a label by the rule of
`scrubjay bench devmem` (half of the words in common, read from one of the label's turns). A forest of boosted trees is
fitted by LightGBM, which is needed here alone: `uv pip install --group fit`. What is printed was never fitted to what
it is scored on: each person's sentences are scored by a forest of the others', and each session's likewise.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrubjay.distill.features import FEATURES, features
from scrubjay.distill.forest import Forest
from scrubjay.distill.pasted import own_words
from scrubjay.distill.prose import sentences
from scrubjay_bench import devmem, fit_held_out
from scrubjay_bench.devmem import Label
from scrubjay_bench.devmem_scores import IMPORTANT, MATCHES, overlap
from scrubjay_shared.errors import InvalidError, UnavailableError

Doubles = NDArray[np.float64]

TREES = 200
SEEDS = 3  # forests of different draws, averaged: one alone moves a precision by .01
LEAVES = 15
RATE = 0.04
SETTINGS = {
    "objective": "binary",
    "num_leaves": LEAVES,
    "learning_rate": RATE,
    "min_child_samples": 40,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction": 0.3,
    "lambda_l2": 10.0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
IMPORTANCE = {1: 0.6, 2: 1.0, 3: 1.5}  # the weight of a sentence that matches a label of that importance
FEW = "others"  # people with too few sentences for a fold of their own
FOLDS = 12  # of sessions
COUNTS = (400, 600, 800, 1000, 1200)


@dataclass(frozen=True, slots=True)
class Rows:
    """The sentences of labelled sessions: the labels that each one matches, and whose it is."""

    features: NDArray[np.float32]
    labels: tuple[frozenset[str], ...]
    weights: Doubles
    people: NDArray[np.str_]
    sessions: NDArray[np.str_]
    importance: dict[str, int]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each sentence matches a label."""
        return np.array([bool(one) for one in self.labels])


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    about = "fit the distiller's selector to labelled coding sessions, and say how well it does on others"
    command = commands.add_parser("fit-selector", help=about, description=about)
    command.add_argument("--data", type=Path, required=True, help="a folder as for devmem")
    command.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="where to write the forest (default: nowhere; print what is kept of each person by the others' forest)",
    )
    command.set_defaults(act=_act)


def _act(line: argparse.Namespace) -> int:
    if line.weights is None:
        held_out(line.data)
    else:
        run(line.data, line.weights)
    return 0


def held_out(folder: Path) -> None:
    """Print, at several floors, what the distiller keeps of each person with a forest fitted to the other people."""
    rows = read(folder)
    scores, right = np.zeros(len(rows.labels)), rows.right
    fitted = {}
    for group in np.unique(rows.people):
        held = rows.people == group
        fitted[group] = _fitted(rows, ~held)
        for booster in fitted[group]:
            scores[held] += booster.predict(rows.features[held], raw_score=True) / SEEDS
    forests = {
        group: _forest(boosters, *_logistic(scores[rows.people != group], right[rows.people != group]))
        for group, boosters in fitted.items()
    }
    held = [
        fit_held_out.Held(project, forests.get(project.name) or forests[FEW])
        for project in devmem.load(folder).projects
    ]
    print(fit_held_out.table(list(fit_held_out.rows(held))))
    print(f"\n{fit_held_out.kinds(held)}")


def run(folder: Path, weights: Path) -> None:
    """Fit to the sessions in `folder`, print how well that does on others, and write the weights."""
    rows = read(folder)
    right = rows.right
    print(f"{len(right)} sentences, {int(right.sum())} of them match one of {len(rows.importance)} labels")
    scores = {}
    for name, groups in (("person", rows.people), ("session", _folded(rows.sessions))):
        scores[name] = _held_out(rows, groups)
        print(f"left out by {name}: AUC {_auc(scores[name], right):.3f}; kept: precision/coverage of importance 2-3")
        print("  " + "  ".join(f"{count}: {p:.3f}/{c:.3f}" for count, p, c in curve(rows, scores[name])))
    slope, offset = _logistic(scores["session"], right)
    forest = _forest(_fitted(rows, np.ones(len(right), bool)), slope, offset)
    data = forest.dump()
    weights.write_bytes(data)
    print(f"{weights}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    chance = 1 / (1 + np.exp(-(slope * scores["session"] + offset)))
    for floor in (0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        kept = chance >= floor
        print(f"  from {floor}: {int(kept.sum())} kept, {right[kept].mean():.3f} of them right")


def read(folder: Path) -> Rows:
    """Return the sentences of the sessions in a folder in the format of docs/retrieval-format.md."""
    matrices, matched, people, sessions = [], [], [], []
    importance: dict[str, int] = {}
    for project in devmem.load(folder).projects:
        of_turn: dict[str, list[Label]] = {}
        for label in project.labels:
            importance[label.id] = label.importance
            for turn_id in {label.turn, *label.evidence}:
                of_turn.setdefault(turn_id, []).append(label)
        for turn in project.turns:
            if turn.type == "tool_result":
                continue
            by_person = turn.type == "user_message"
            found = list(sentences(turn.text, own_words(turn.text) if by_person else None))
            matrices.append(features(turn.text, found, by_person=by_person))
            for one in found:
                said = turn.text[one.start : one.end]
                matched.append(frozenset(each.id for each in of_turn.get(turn.id, ()) if _matches(said, each)))
                people.append(project.name)
                sessions.append(turn.session)
    return Rows(
        features=np.vstack(matrices),
        labels=tuple(matched),
        weights=np.array([max((IMPORTANCE[importance[e]] for e in one), default=1.0) for one in matched]),
        people=_with_few_together(np.array(people)),
        sessions=np.array(sessions),
        importance=importance,
    )


def curve(rows: Rows, scores: Doubles) -> Iterator[tuple[int, float, float]]:
    """Yield what keeping the best so many sentences gives: the share that is right, and of the labels that matter."""
    order = np.argsort(-scores)
    wanted = {name for name, importance in rows.importance.items() if importance in IMPORTANT}
    for count in COUNTS:
        kept = [rows.labels[n] for n in order[:count]]
        found = frozenset().union(*kept)
        yield count, sum(map(bool, kept)) / max(1, len(kept)), len(found & wanted) / max(1, len(wanted))


def _matches(said: str, label: Label) -> bool:
    return max(overlap(said, label.text), overlap(said, label.quote)) >= MATCHES


def _with_few_together(people: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the people, those with less than a tenth of the sentences as one: a fold of their own says nothing."""
    names, counts = np.unique(people, return_counts=True)
    few = names[counts < len(people) / 10]
    return np.where(np.isin(people, few), FEW, people)


def _folded(sessions: NDArray[np.str_]) -> NDArray[np.str_]:
    names = sorted(set(sessions.tolist()))
    fold = {name: str(n % FOLDS) for n, name in enumerate(names)}
    return np.array([fold[name] for name in sessions.tolist()])


def _held_out(rows: Rows, groups: NDArray[np.str_]) -> Doubles:
    scores = np.zeros(len(rows.labels))
    for group in np.unique(groups):
        held = groups == group
        for booster in _fitted(rows, ~held):
            scores[held] += booster.predict(rows.features[held], raw_score=True) / SEEDS
    return scores


def _fitted(rows: Rows, chosen: NDArray[np.bool_]) -> list[Any]:
    try:
        lightgbm = importlib.import_module("lightgbm")
    except ImportError as error:
        raise UnavailableError("LightGBM is not installed", hint="uv pip install --group fit") from error
    return [
        lightgbm.train(
            SETTINGS | {"seed": seed},
            lightgbm.Dataset(rows.features[chosen], rows.right[chosen], weight=rows.weights[chosen]),
            num_boost_round=TREES,
        )
        for seed in range(SEEDS)
    ]


def _forest(boosters: Sequence[Any], slope: float, offset: float) -> Forest:
    """Return the mean of some boosters as one forest."""
    nodes: list[tuple[int, float | np.float32, int, int, float]] = []
    roots, depth = [], 0

    def add(tree: dict[str, Any], level: int) -> int:
        nonlocal depth
        depth = max(depth, level)
        at = len(nodes)
        if "leaf_value" in tree:
            nodes.append((0, 0.0, at, at, tree["leaf_value"] / len(boosters)))
            return at
        if tree["decision_type"] != "<=":
            raise InvalidError(f"a tree decides by {tree['decision_type']}", hint="fit to numbers alone")
        nodes.append((0, 0.0, 0, 0, 0.0))
        left, right = add(tree["left_child"], level + 1), add(tree["right_child"], level + 1)
        nodes[at] = (tree["split_feature"], _below(tree["threshold"]), left, right, 0.0)
        return at

    for booster in boosters:
        for tree in booster.dump_model()["tree_info"]:
            roots.append(len(nodes))
            add(tree["tree_structure"], 0)
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return Forest(
        names=FEATURES,
        roots=np.array(roots, np.int32),
        feature=np.array(feature, np.int16),
        threshold=np.array(threshold, np.float32),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        value=np.array(value, np.float32),
        depth=depth,
        slope=slope,
        offset=offset,
    )


def _below(threshold: float) -> np.float32:
    """Return the greatest float32 that is no more than a threshold: features are float32, and `<=` must not change."""
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))


def _logistic(scores: Doubles, right: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and offset of the logistic curve from scores to what is right (Platt), by Newton's method."""
    rows = np.column_stack([scores, np.ones(len(scores))])
    found = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows @ found))
        gradient = rows.T @ (right - chance)
        found += np.linalg.solve((rows * (chance * (1 - chance))[:, None]).T @ rows + 1e-9 * np.eye(2), gradient)
    return float(found[0]), float(found[1])


def _auc(scores: Doubles, right: NDArray[np.bool_]) -> float:
    ranks = np.argsort(np.argsort(scores)) + 1.0
    yes = int(right.sum())
    return float((ranks[right].sum() - yes * (yes + 1) / 2) / max(1, yes * (len(right) - yes)))
