"""What an embedding or a reranking model is to the rest of the program. Knows no model by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scrubjay_shared.errors import CorruptError

Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, vectors out. Blocking and thread-safe: call it in a worker thread, from as many as there are.

    `space` names everything that makes vectors comparable: model, revision, dimension, pooling, quantisation. Vectors
    of two spaces are never compared. The vector of a text does not depend on the texts beside it.
    """

    @property
    def space(self) -> str:
        """The embedding space."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    @property
    def spread(self) -> tuple[float, float]:
        """The mean and the standard deviation of the cosine of a question with a text it has nothing to do with."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length, in the order of `texts`. Any string will do, the empty one too.

        Raises a ScrubjayError rather than return a row that is not finite or not of unit length.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return float32 [d], of unit length: what a question is compared by. Some models embed questions otherwise.

        Raises as `embed`.
        """
        ...

    def close(self) -> None:
        """Let go of the model. A later call raises UnavailableError; closing again does nothing."""
        ...


class Reranker(Protocol):
    """A question and texts in, a score for each text out. Blocking and thread-safe, like an embedder.

    The score of a text does not depend on the texts beside it, and is the same bit for bit whenever it is asked for.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> Vectors:
        """Return float32 [n], one number for each of `texts` in their order: the higher, the better it answers.

        The numbers are logits, from about -11.5 (has nothing to do with it) to 9 (answers it); they compare texts under
        one question, and questions with one another roughly. Any string will do, the empty one too. Raises a
        ScrubjayError rather than return a number that is not finite.
        """
        ...

    def close(self) -> None:
        """Let go of the model. A later `score` raises UnavailableError; closing again does nothing."""
        ...


def unit(rows: NDArray[np.float32], space: str) -> Vectors:
    """Return rows [n, d] scaled to unit length, as float32. Raises CorruptError when a row has no direction."""
    wide = rows.astype(np.float64)  # squares of large float32 numbers overflow
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise CorruptError(
            f"{space}: the model gave a vector that is zero or not finite", hint="fetch or choose the model again"
        )
    scaled: Vectors = (wide / lengths).astype(np.float32)
    return scaled
