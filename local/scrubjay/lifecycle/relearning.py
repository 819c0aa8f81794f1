"""Which memories may end where their session is read anew: those that a lesser reader made, and nobody took up. Pure.

A Writer replaces what patterns and the reader (the small model that ships) made; the reader, what patterns and earlier
versions of it did; patterns, their own. What a person or an agent did to a memory says that it is worth keeping: who
reads again does not know better. What background jobs wrote (merging, ending, moving with its project) says nothing of
the kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Layer, Memory, Op, ReviewState, review_state

KIND = "relearn"
"""The kind of the causes of runs that read sessions anew."""

PATTERNS = "patterns/"
"""How the sources of passages begin that patterns found, whatever their version."""

READER = "reader/"
"""How those begin that the reader chose."""

OBSERVER = "observer/"
"""How those begin that a language model found."""

_MAKING = frozenset({"distill", "observe", KIND, ""})
"""The kinds of causes that make what patterns and the reader find; none in a log of old."""

_BESIDE = _MAKING - {""} | {"consolidate", "prune", "move", "undo"}
"""The kinds of causes that write to memories without anybody's having decided about the one."""


class By(StrEnum):
    """Who reads sessions anew."""

    WRITER = "writer"
    READER = "reader"
    PATTERNS = "patterns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesser:
    """The sources that a new reading replaces: they begin with one of `begins`, and are not `but`."""

    begins: tuple[str, ...]
    but: str = ""

    def __contains__(self, source: str) -> bool:
        """Say whether a source is one of them."""
        return source.startswith(self.begins) and source != self.but


def lesser(by: By, reader: str = "") -> Lesser:
    """Return what who reads anew replaces. `reader` is the source of what this version's reader chooses.

    >>> "reader/1" in lesser(By.WRITER), "reader/1" in lesser(By.READER, "reader/1")
    (True, False)
    """
    if by is By.PATTERNS:
        return Lesser(begins=(PATTERNS,))
    return Lesser(begins=(PATTERNS, READER), but=reader if by is By.READER else "")


class Kept(StrEnum):
    """Why a memory stays that a lesser reader made."""

    EDITED = "edited"
    """Somebody rewrote it, gave it a name, or brought it in from elsewhere."""
    PINNED = "pinned"
    """It stands in a layer that is told first."""
    CONFIRMED = "confirmed"
    """Somebody accepted it, told it on purpose or said that it helped, or another reader found it too."""
    CITED = "cited"
    """It took another memory's place, or a session used it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A current memory with a passage that a lesser reader found.

    `sources` are the readers of its passages, `sessions` where these were said, each with the arrival number of the
    last event of one. `named`: it has a name or an alias; `helped`: somebody said so; `used`: a session used it;
    `supersedes`: it took another's place.
    """

    memory: Memory
    sources: frozenset[str]
    sessions: Mapping[str, int]
    named: bool = False
    helped: bool = False
    used: bool = False
    supersedes: bool = False


def kept(learned: Learned, log: Sequence[Op], told: Collection[str], replaced: Lesser) -> Kept | None:
    """Return why a memory stays, None where a new reading may end it. `told` are sessions of what was told on purpose.

    `replaced` are the sources that the new reading replaces; `log` are the ops of the memory. One that does not say
    what wrote it counts as an edit, but for the first.
    """
    memory = learned.memory
    if memory.layer is not Layer.ARCHIVE:
        return Kept.PINNED
    if (
        learned.helped
        or any(session in told for session in learned.sessions)
        or any(source not in replaced for source in learned.sources)
        or review_state(memory.review) in {ReviewState.ACCEPTED, ReviewState.DISPUTED}
    ):
        return Kept.CONFIRMED
    if learned.named or memory.name is not None or _is_edited(log):
        return Kept.EDITED
    return Kept.CITED if learned.supersedes or learned.used else None


def _is_edited(log: Sequence[Op]) -> bool:
    writes = sorted((op for op in log if op.type == OpType.MEMORY), key=lambda op: (op.hlc, op.device))
    kinds = [(ops.cause_of(op) or "").partition(":")[0] for op in writes]
    return any(kind not in _MAKING for kind in kinds[:1]) or any(kind not in _BESIDE for kind in kinds[1:])
