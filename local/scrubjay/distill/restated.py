"""Whether something that an agent says only tells back what it was handed. Pure.

Recall tells an agent what is known. When the agent says it again, nothing new is known, and nobody has confirmed it:
else a memory would feed on itself. What the person says is never an echo, whatever their agent was handed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.distill.prose import sentences
from scrubjay.policy import DistillPolicy
from scrubjay_shared.text import analyse

Told = Sequence[frozenset[str]]
"""The stems of each sentence that was handed over."""


def told(texts: Iterable[str]) -> Told:
    """Return what was handed over, in a form to compare with: each text, and each of its sentences."""
    found: list[frozenset[str]] = []
    for text in texts:
        found += [frozenset(analyse(text[span.start : span.end])) for span in sentences(text)]
        found.append(frozenset(analyse(text)))
    return [stems for stems in dict.fromkeys(found) if stems]


def restates(content: str, handed: Told, policy: DistillPolicy) -> bool:
    """Say whether a statement has nearly all of its words from one thing that was handed over.

    >>> given = told(["The carts are kept in SQLite in WAL mode."])
    >>> restates("As recalled, the carts are kept in SQLite in WAL mode.", given, DistillPolicy())
    True
    >>> restates("The carts move to Postgres in May.", given, DistillPolicy())
    False
    """
    stems = frozenset(analyse(content))
    if len(stems) < policy.echo_stems:
        return False
    return any(len(stems & one) >= policy.echo_share * len(stems) for one in handed)
