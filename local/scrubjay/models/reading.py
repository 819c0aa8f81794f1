"""The reader: a small network that was taught which sentences still matter weeks later, run by onnxruntime.

It is all-MiniLM-L6-v2 with its upper half fitted to labelled sentences (`scrubjay bench reader`), its weights in eight
bits. It ships with the package: what is learned must not depend on a download. `SCRUBJAY_READER` names another file of
the same shape, which is how a reader that left somebody out is scored on them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scrubjay.distill.prose import Span
from scrubjay.distill.reading import Judgement, Turn
from scrubjay.models.onnx import Network
from scrubjay_shared.errors import CorruptError, NotFoundError
from scrubjay_shared.records import MemoryType

WEIGHTS = "reader.onnx"
SHA256 = "1e67383b502acfc242a924093fa168aa6eb9b27dd7e55435761bd97c4b79580a"
TOKENIZER = "reader_tokenizer.json"

OWN, BEFORE, NEXT, OTHER = 48, 16, 10, 22
"""Tokens of the sentence, the end of the one before, the next one's beginning, the end of what the agent said before.
A sentence comes to 58 tokens with them, and takes 15 ms of one core."""
LAST = 8
"""Of `OWN`, how many are a longer sentence's last."""
CHARS, ALL = 300, 400
"""Characters and tokens of the neighbours that are looked at: their ends lie within."""
TYPES = (
    MemoryType.DECISION,
    MemoryType.PREFERENCE,
    MemoryType.FACT,
    MemoryType.INSIGHT,
    MemoryType.GOAL,
    MemoryType.HOWTO,
)
KEPT, CODES, TYPE, SCOPE, LEANS = 0, slice(2, 10), slice(10, 16), slice(16, 19), 19
"""Where the answers stand in the network's row; of the codes the first is "kept", of the scopes "everywhere"."""


class Tokenizer(Protocol):
    """Turns words into a network's tokens; `frame` holds those that begin an input and end each part of it."""

    @property
    def frame(self) -> tuple[int, int]:
        """The two tokens."""
        ...

    def tokens(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` tokens of a text."""
        ...


def row_of(
    turn: Turn, found: Sequence[Span], n: int, tokenizer: Tokenizer, *, by_person: bool = True
) -> tuple[list[int], slice]:
    """Return the tokens of the `n`th sentence with what stands around it, and the place of its own among them.

    An agent's sentence (what was asked `before` it) is read while the reader is fitted alone.
    """
    said = [" ".join(turn.text[one.start : one.end].split()) for one in found[max(0, n - 1) : n + 2]]
    at = min(n, 1)
    start, end = tokenizer.frame
    own = tokenizer.tokens(said[at], ALL) or [end]  # of signs without a token, whose mean would be of none
    own = own if len(own) <= OWN else [*own[: OWN - LAST], *own[-LAST:]]
    before = tokenizer.tokens(said[0][-CHARS:], ALL)[-BEFORE:] if at else []
    after = tokenizer.tokens(said[at + 1], NEXT) if at + 1 < len(said) else []
    other = tokenizer.tokens(" ".join(turn.before.split())[-CHARS:], ALL)[-OTHER:]
    who = tokenizer.tokens("person" if by_person else "agent", 1)
    return [start, *who, *own, end, *before, end, *after, end, *other, end], slice(2, 2 + len(own))


class OnnxReader:
    """The reader, loaded; a `distill.reading.Reader`."""

    source = "reader/1"

    def __init__(self, network: Path, tokenizer: Path) -> None:
        """Load the files. Raises CorruptError when they cannot be run, UnavailableError without onnxruntime."""
        self._network = Network("reader", network, tokenizer, threads=1)

    def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
        """Return what it makes of each sentence; each alone, so that it is always the same."""
        readings = []
        for n in range(len(found)):
            tokens, own = row_of(turn, found, n, self._network)
            readings.append(_judgement(self._network.run(tokens, second=own)[0, 0]))
        return readings

    def worth(self, tokens: Sequence[int], own: slice) -> float:
        """Return how likely a sentence would still matter weeks later, from what `row_of` gives."""
        return _judgement(self._network.run(tokens, second=own)[0, 0]).worth

    def close(self) -> None:
        """Let go of the network, after the sentence in hand."""
        self._network.close()


def tokenizer() -> Path:
    """Return the file of the reader's tokenizer, which is BERT's for English without capitals."""
    return Path(str(resources.files("scrubjay.models"))) / TOKENIZER


def load() -> OnnxReader:
    """Return the reader that ships, or the one that `SCRUBJAY_READER` names. Takes 41 MiB.

    Raises CorruptError for weights that are not the ones that ship, NotFoundError for a file that is not there.
    """
    if named := os.environ.get("SCRUBJAY_READER"):
        network = Path(named)
        if not network.is_file():
            raise NotFoundError(f"SCRUBJAY_READER names {named}, where no file is", hint="unset it, or name a reader")
    else:
        network = tokenizer().with_name(WEIGHTS)
        digest = hashlib.sha256(network.read_bytes()).hexdigest()
        if digest != SHA256:
            raise CorruptError(
                f"the reader's weights are damaged: their sha256 is {digest[:12]}\N{HORIZONTAL ELLIPSIS}, not "
                f"{SHA256[:12]}\N{HORIZONTAL ELLIPSIS}",
                hint="install scrubjay again",
            )
    return OnnxReader(network, tokenizer())


def _judgement(row: NDArray[np.float32]) -> Judgement:
    """Return what a row of the network's answers says.

    Two of its answers tell whether a sentence is kept, and their mean is righter than either.
    """
    codes = np.exp(row[CODES] - row[CODES].max())
    return Judgement(
        worth=float((_chance(row[KEPT]) + codes[0] / codes.sum()) / 2),
        leans=_chance(row[LEANS]),
        type=TYPES[int(row[TYPE].argmax())],
        personal=int(row[SCOPE].argmax()) == 0,
    )


def _chance(logit: np.float32) -> float:
    return float(1 / (1 + np.exp(-logit)))
