"""One query of the hybrid mode on its way: what the scores of every kind are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import Candidates
from scrubjay.retrieval.query import Floats, Query
from scrubjay.retrieval.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The query, and the candidates and signals of each kind by its name."""

    index: Index
    query: Query
    policy: RecallPolicy
    candidates: Candidates
    signals: dict[str, Signals]


def best_of_session(own: Floats, session: npt.NDArray[np.int32]) -> Floats:
    """Return, for each row, the best score of its session; of a row without a session its own."""
    if not len(own):
        return own
    best = np.full(int(session.max()) + 2, -np.inf, np.float32)
    np.maximum.at(best, session, own)
    return np.where(session >= 0, best[session], own)
