"""When a later hit is told before an earlier one, because it may say what has become of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SucceedingPolicy:
    """How likely a later statement takes the place of an earlier one (`scrubjay.lifecycle.succeeding`).

    A logistic function, fitted (ridge) on 87 labelled successions among 10,862 pairs of alike memories of four people's
    work with agents. Fitted to three of them, it tells those of the fourth from the other pairs with an AUC of .90 to
    .97; but they are so rare that it is never sure, so that it only decides which of two hits is told first.
    """

    among: int = 16  # first hits that are compared: what stands further down is seldom what came of the first
    olds: int = 10  # of these, the first that another may be told before: an answer's usual size
    chars: int = 1_200  # of a text that are read: what it is about stands there
    cosine: float = 0.55  # below, two texts are about different things
    bias: float = -6.7
    contained: float = 4.5  # share of the shorter one's words, by their weight, that the other one has too
    nearest: float = 2.0  # the earlier one is the most alike of all earlier ones among the hits
    ended: float = 1.5  # share of what it says has ended that the earlier one holds
    number: float = 0.6  # both have numbers, and none in common
    chance: float = 0.1  # from which the later one is told first; at .06 fewer other questions have their answer first
    chance_now: float = 0.01  # where the question asks how things are now
    likely: float = 0.6  # and the later one is at least so likely to answer, as a share of the earlier one
