"""How likely it is that somebody who knows the work would have a statement told, weeks later and unasked. Pure.

Theory of operation. Two linear models vote: one of the form of the statement (`features`), one of its meaning, where it
has a vector of the space that this one was fitted in. What the patterns learned as a decision is an order of the moment
one time in two, and forms and meanings tell the two apart better than any pattern: whoever was left out of the fit,
right among the first twentieth of what was learned of them is .64 by both, .41 by forms alone, .42 by how sure the
distiller was. Kinds and the distiller's sureness beside them gained nothing.

The weights were fitted to sentences that eleven developers typed to coding agents, each read and coded by what it is
worth weeks later, from public repositories that keep their histories (getspecstory, league_analyzer, EmailBuddy,
Afterburn, zero-auth, chef-chopsky, gpt-crawler, MunsellSpace, destyler, PaperBites, bing-wallpaper); none of their
words is in the file. `python -m scrubjay_bench.fit_worth` fits them again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from scrubjay.handing.features import FEATURES, features
from scrubjay_shared.errors import CorruptError

WEIGHTS = "worth.json"
SHA256 = "66fe2613d2e41b7a2e678eb9e81afe0737135e97e71a61caabe352ba7493509b"

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Weights:
    """Two linear models, and the curves that make chances of what they say: (slope, offset) without and with meaning.

    `space` names the embedding space of `meaning`.
    """

    form: Sequence[float]
    meaning: Vector
    space: str
    curve_form: tuple[float, float]
    curve_both: tuple[float, float]

    def chance(self, text: str, vector: Vector | None = None) -> float:
        """Return how likely a statement is worth telling, in [0, 1]; `vector` is its meaning, where that is known."""
        said = sum(weight * value for weight, value in zip(self.form, features(text), strict=True))
        (slope, offset) = self.curve_form
        if vector is not None and len(vector) == len(self.meaning):
            said += float(self.meaning @ vector)
            (slope, offset) = self.curve_both
        return 1 / (1 + math.exp(-(slope * said + offset)))


def parse(data: bytes) -> Weights:
    """Return the weights in the bytes of a file. Raises CorruptError where they were fitted to other features."""
    held = json.loads(data)
    if tuple(held["features"]) != FEATURES:
        raise CorruptError("what is worth telling was fitted to other features", hint="install scrubjay again")
    return Weights(
        form=held["form"],
        meaning=np.array(held["meaning"], np.float32),
        space=held["space"],
        curve_form=tuple(held["curve_form"]),
        curve_both=tuple(held["curve_both"]),
    )


@cache
def fitted() -> Weights:
    """Return the weights that ship. Raises CorruptError when the file is not the one that was shipped."""
    data = resources.files("scrubjay.handing").joinpath(WEIGHTS).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise CorruptError(f"{WEIGHTS} is damaged: its sha256 is {found[:12]}…", hint="install scrubjay again")
    return parse(data)
