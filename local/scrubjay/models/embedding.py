"""From texts to the vectors that are stored, and which text it is that a model refuses. Knows no store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.models.http import ServerFailedError
from scrubjay.models.ports import Embedder
from scrubjay_shared.errors import CorruptError, InvalidError, ScrubjayError
from scrubjay_shared.scoring import encode_vector, quantise

PLAIN = "The meeting was moved to Thursday afternoon."
"""A text that every embedding model takes: what tells a text that is refused from a model that refuses everything."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """An embedder and the number of its space in the store: one value, so that neither is ever used with another's."""

    embedder: Embedder
    space: int

    def close(self) -> None:
        """Let go of the model."""
        self.embedder.close()


def encoded(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the stored form of the vectors of some texts. Raises what the embedder raises for any of them."""
    rows, scales = quantise(embedder.embed(texts))
    return [encode_vector(row, float(scale)) for row, scale in zip(rows, scales, strict=True)]


def each_encoded(embedder: Embedder, texts: Sequence[str]) -> list[bytes | ScrubjayError]:
    """Return the stored form of each text's vector, or the error with which the model refuses that text alone.

    InvalidError or CorruptError means that the text is refused, ServerFailedError that the server failed over it and
    may not do so the next time. Raises what no text is to blame for: an outage, or a model that refuses everything.
    """
    try:
        return list(encoded(embedder, texts))
    except _MAYBE_OF_A_TEXT:
        embedder.embed([PLAIN])
    return _halved(embedder, texts)


_MAYBE_OF_A_TEXT = (InvalidError, CorruptError, ServerFailedError)


def _halved(embedder: Embedder, texts: Sequence[str]) -> list[bytes | ScrubjayError]:
    try:
        return list(encoded(embedder, texts))
    except _MAYBE_OF_A_TEXT as error:
        if len(texts) == 1:
            return [error]
    middle = len(texts) // 2
    return _halved(embedder, texts[:middle]) + _halved(embedder, texts[middle:])
