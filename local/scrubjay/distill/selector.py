"""Which sentences of a turn are worth keeping: a forest fitted to sessions that people labelled.

`scrubjay bench fit-selector` fits it to labelled sessions and says how well it does on people it was not fitted to.
The weights that ship were fitted to 57 sessions of five developers with coding agents, from public repositories that
keep their histories (getspecstory, EmailBuddy, Afterburn, league_analyzer, zero-auth); no text of them is in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Protocol

from scrubjay.distill.features import FEATURES, features
from scrubjay.distill.forest import Forest, parse
from scrubjay.distill.prose import Span
from scrubjay_shared.errors import CorruptError

WEIGHTS = "selector.npz"
SHA256 = "43f6b74bf6433db3bc1731af2787210e30788457286ec9e958b129641a95a11d"


class Selector(Protocol):
    """Returns, for each sentence of a turn, how likely a careful reader would keep it, in [0, 1]."""

    def __call__(self, text: str, sentences: Sequence[Span], *, by_person: bool) -> list[float]:
        """Return the chances of the sentences, in their order."""
        ...


def probabilities(text: str, sentences: Sequence[Span], *, by_person: bool) -> list[float]:
    """Return what the weights that ship give each sentence of a turn; a `Selector`."""
    if not sentences:
        return []
    return [float(one) for one in _forest().probabilities(features(text, sentences, by_person=by_person))]


@cache
def _forest() -> Forest:
    forest = parse(resources.files("scrubjay.distill").joinpath(WEIGHTS).read_bytes(), SHA256)
    if forest.names != FEATURES:
        raise CorruptError("the distiller's weights were fitted to other features", hint="install scrubjay again")
    return forest
