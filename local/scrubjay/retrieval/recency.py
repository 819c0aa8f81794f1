"""Where a question asks how things are now, what says the same later stands before what says it earlier.

Which of two memories holds is decided when one is written (`superseded_by`); this is for those that nobody noticed. It
is weak, and only for a question that asks for the present: of two alike memories the older one is as often right too.
"""

from __future__ import annotations

import re

import numpy as np

from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import CandidateSet
from scrubjay_shared import scoring

_ASKS_NOW = re.compile(
    r"\b(?:now|nowadays|today|current|currently|at present|presently|still|in the end|finally|latest|any ?more"
    r"|any longer|at the moment|these days|so far|by now|meanwhile|right now)\b",
    re.IGNORECASE,
)


def asks_now(text: str) -> bool:
    """Whether a question asks how things are now.

    >>> asks_now("Which blue does the header have now?"), asks_now("When did we meet?")
    (True, False)
    """
    return _ASKS_NOW.search(text) is not None


def prefer_newer(candidates: CandidateSet, policy: RecallPolicy) -> None:
    """Take off the first memories what a newer one among them, nearly as good and of the same subject, makes doubtful.

    That is up to `policy.outdated`, in proportion to how far their likeness exceeds `policy.outdated_cosine`.
    """
    table, shown = candidates.table, np.flatnonzero(candidates.shown & ~candidates.superseded)
    shown = shown[table["embedded"][candidates.rows[shown]]]
    total = candidates.total()
    first = shown[table.best(total[shown], candidates.rows[shown], policy.outdated_among)]
    rows = candidates.rows[first]
    vectors, scales, created = table.vectors(rows), table["scale"][rows], table["created"][rows]
    lost = np.zeros(len(candidates.rows), np.float32)
    for at, place in enumerate(first.tolist()):
        newer = (created > created[at]) & (total[first] >= total[place] - policy.outdated)
        if newer.any():
            alike = scoring.cosines(vectors[newer], scales[newer], vectors[at], float(scales[at])).max()
            share = (float(alike) - policy.outdated_cosine) / (1 - policy.outdated_cosine)
            lost[place] = -policy.outdated * min(max(share, 0.0), 1.0)
    if lost.any():
        candidates.parts["outdated"] = lost
