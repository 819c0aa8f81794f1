"""`scrubjay bench reader`: the reader fitted to judged sentences, and scored on people whom it was not fitted to."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrubjay.models import reading
from scrubjay_bench import reader_examples, reader_fit
from scrubjay_bench.reader_examples import Example

SHARES = (0.02, 0.05, 0.10)


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    about = "fit the reader to judged sentences, or score one on people whom it was not fitted to"
    command = commands.add_parser("reader", help=about, description=about)
    doings = command.add_subparsers(required=True, metavar="COMMAND")
    fit = doings.add_parser("fit", help="fit a reader, and write its weights")
    fit.add_argument("--weights", type=Path, required=True, metavar="FILE", help="where to write the network")
    fit.add_argument(
        "--without", default="", metavar="PEOPLE", help="who is left out, parted by commas; they are scored"
    )
    fit.add_argument("--seed", type=int, default=0)
    fit.set_defaults(act=_fit)
    score = doings.add_parser("score", help="score SCRUBJAY_READER, or the reader that ships")
    score.add_argument("--people", default="", help="on whom, parted by commas (default: everybody, fitted or not)")
    score.set_defaults(act=_score)
    for one in (fit, score):
        one.add_argument("--data", type=Path, required=True, help="a folder with sentences.jsonl and agents.jsonl")
        one.add_argument("--clones", type=Path, help="a folder with the bare clones that bench/reader/codes names")


def _fit(line: argparse.Namespace) -> int:
    examples = reader_examples.everything(line.data, line.clones, _Tokens())
    out = frozenset(line.without.split(",")) - {""}
    chosen = reader_examples.thinned([one for one in examples if one.person not in out], line.seed)
    print(f"{len(chosen):,} sentences, {sum(one.is_kept for one in chosen):,} of them kept")
    reader_fit.write(reader_fit.fitted(chosen, line.seed), line.weights)
    if out:
        print(table(line.weights, [one for one in examples if one.person in out and one.by_person]))
    return 0


def _score(line: argparse.Namespace) -> int:
    people = frozenset(line.people.split(",")) - {""}
    examples = reader_examples.everything(line.data, line.clones, _Tokens())
    print(table(None, [one for one in examples if one.by_person and (not people or one.person in people)]))
    return 0


def table(weights: Path | None, examples: Sequence[Example]) -> str:
    """Return as markdown how well a reader ranks each person's sentences and all together; None: the one that loads."""
    reader = reading.load() if weights is None else reading.OnnxReader(weights, reading.tokenizer())
    worth = np.array([reader.worth(one.tokens, one.own) for one in examples])
    right = np.array([one.is_kept for one in examples])
    people = np.array([one.person for one in examples])
    lines = ["| person | sentences | kept | average precision | at 2 % | 5 % | 10 % |", f"|---|{'--:|' * 6}"]
    for person in (*np.unique(people), None):
        of = people == person if person else np.ones(len(examples), bool)
        ranked = right[of][np.argsort(-worth[of], kind="stable")]
        shares = " | ".join(f"{ranked[: max(1, round(len(ranked) * share))].mean():.3f}" for share in SHARES)
        lines.append(
            f"| {person or 'all'} | {len(ranked)} | {ranked.sum()} | {average_precision(ranked):.3f} | {shares} |"
        )
    return "\n".join(lines)


def average_precision(ranked: NDArray[np.bool_]) -> float:
    """Return the mean, over those that are right, of the share of right ones down to each; 0 where none is.

    >>> average_precision(np.array([True, False, True]))
    0.8333333333333333
    """
    if not ranked.any():
        return 0.0
    return float((np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[ranked].mean())


class _Tokens:
    """The reader's tokenizer without its network; a `models.reading.Tokenizer`."""

    def __init__(self) -> None:
        self._tokenizer = reader_fit.load("tokenizers").Tokenizer.from_file(str(reading.tokenizer()))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        start, _, end = self._tokenizer.encode("", "").ids
        self.frame: tuple[int, int] = (start, end)

    def tokens(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` tokens of a text."""
        clean = text.encode("utf-8", "replace").decode()
        ids: list[int] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return ids[:limit]
