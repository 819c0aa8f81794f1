"""A forest of small decision trees, read from a file of arrays and evaluated with numpy alone."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrubjay_shared.errors import CorruptError


@dataclass(frozen=True, slots=True)
class Forest:
    """Binary trees in flat arrays, one entry a node; `roots` names each tree's first.

    A row goes to `left` where its `feature` is at most `threshold`, else to `right`. A leaf leads to itself, and its
    `value` is what the tree adds. The sum, through a logistic curve of `slope` and `offset`, is a probability.
    """

    names: tuple[str, ...]
    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    depth: int
    slope: float
    offset: float

    def probabilities(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability of each row of features, in [0, 1]."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        line = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            at = np.where(rows[line, self.feature[at]] <= self.threshold[at], self.left[at], self.right[at])
        total = self.value[at].sum(axis=1, dtype=np.float64)
        return np.asarray(1 / (1 + np.exp(-(self.slope * total + self.offset))))

    def dump(self) -> bytes:
        """Return the bytes of a file, the same for the same forest."""
        out = io.BytesIO()
        np.savez_compressed(
            out,
            names=np.array(self.names),
            roots=self.roots,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            value=self.value,
            curve=np.array([self.depth, self.slope, self.offset]),
        )
        return out.getvalue()


def parse(data: bytes, sha256: str) -> Forest:
    """Return the forest in the bytes of a file. Raises CorruptError when they are not those of `sha256`."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise CorruptError(
            f"the distiller's weights are damaged: their sha256 is {found[:12]}…, not {sha256[:12]}…",
            hint="install scrubjay again",
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        depth, slope, offset = held["curve"]
        return Forest(
            names=tuple(str(name) for name in held["names"]),
            roots=held["roots"],
            feature=held["feature"],
            threshold=held["threshold"],
            left=held["left"],
            right=held["right"],
            value=held["value"],
            depth=int(depth),
            slope=float(slope),
            offset=float(offset),
        )
