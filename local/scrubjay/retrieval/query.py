"""What is asked: the question in words, as a vector, and what its words ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrubjay_shared.text import analyse

Floats = npt.NDArray[np.float32]

_ASKS_WHEN = re.compile(
    r"\b(?:when|how long|how recently|(?:what|which) (?:date|day|week|month|year|season|time))\b", re.IGNORECASE
)
_ASKS_HOW_MANY = re.compile(r"\bhow (?:many|much|often|old|long|far|big|tall|high)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. `tokens` are `text.query_tokens(text)`; `vector` is float32 [d], unit, None without a model.

    `named` are the ids of memories whose name or alias the text is, `mentioned` of those whose name or alias it holds.
    `dates` are ranges [start, end) in UTC milliseconds that the text speaks of. `cosine_baseline` is the mean and the
    standard deviation of the cosine of unrelated texts in the space of `vector`, which the embedding model knows.
    """

    text: str
    tokens: tuple[str, ...]
    vector: Floats | None = None
    named: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    dates: tuple[tuple[int, int], ...] = ()
    cosine_baseline: tuple[float, float] = (0.0, 1.0)


_MENTIONING_WORDS = 40  # of a question; a longer one is a text, and its words are no names
_NAME_WORDS = 4  # of a name that somebody mentions in passing
_AROUND = " \t\n.,;:!?\"'()[]`"


def mentions(text_: str) -> tuple[str, ...]:
    """Return what in a question may be the name or an alias of a memory: runs of up to four words, as they stand.

    Runs of stop words alone are left out, and the question itself, which is looked up anyway.

    >>> mentions("what about pg?")
    ('what about pg', 'about pg', 'pg')
    """
    words = [word.strip(_AROUND) for word in text_.split()[:_MENTIONING_WORDS]]
    runs = (
        " ".join(words[start : start + length])
        for start in range(len(words))
        for length in range(min(_NAME_WORDS, len(words) - start), 0, -1)
    )
    return tuple(run for run in dict.fromkeys(runs) if run != text_ and analyse(run))


def asks_when(text_: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(text_) is not None


def asks_how_many(text_: str) -> bool:
    """Whether a question asks for a number."""
    return _ASKS_HOW_MANY.search(text_) is not None
