"""What consolidation may touch, how salience decays with age, and how short an archive is."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.records import MemoryType

HALF_LIFE_DAYS: dict[MemoryType, float | None] = {  # in which half of a memory's salience is gone; None: never
    MemoryType.DAILY: 14.0,  # what a day brought is asked for in the next fortnight, if at all
    MemoryType.FACT: 45.0,  # below the mark of compression after a month: a project's details change by the month
    MemoryType.SOCIAL: 60.0,  # who was met or does what: somewhat longer than a detail
    MemoryType.INSIGHT: 90.0,  # a quarter: the question it answers comes back with the next release
    MemoryType.GOAL: 90.0,  # people plan by the quarter; one that is open still is spoken of, and so recalled
    MemoryType.DECISION: 120.0,  # in force for longer than what led to it
    MemoryType.BELIEF: 180.0,
    MemoryType.LONG_TERM: 365.0,  # kept for long on purpose
    MemoryType.PREFERENCE: None,  # these hold until something takes their place, however old
    MemoryType.HOWTO: None,
    MemoryType.SELF: None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicy:
    """How much one run may change, and what it does to which memories."""

    share: float = 0.2  # of the memories that are not put away: a night that went wrong is one night in five
    least: int = 50  # memories that a run may touch in a store however small: a fifth of ten is not worth a run
    most: int = 2_000  # … and however large: some seconds of writing, in steps between which others write
    batch: int = 200  # memories in one transaction: some hundredths of a second that other writes wait
    longest: int = (
        1_000  # characters of a memory that is compared or compressed: a longer one is a document, left whole
    )
    min_age_days: float = 30.0  # since it was made or last used, before which nothing is compressed or put away
    use_stretch: float = 1.0  # by how many half-lives each doubling of its recalls lets a memory live longer
    helped_recalls: int = 4  # recalls that one word of "it helped" counts as: somebody took the trouble to say so
    person_floor: float = 0.5  # standing below which nothing falls that the person wrote: theirs to put away
    compress_below: float = 0.35  # standing from which detail is compressed: a fact's after a month, a decision's after
    # five; above .3, where the specification begins "low, may be pruned", as compressing loses less than pruning
    prune_below: float = 0.05  # standing from which what was too little for an archive joins one: a fact of half a year
    min_members: int = 3  # of an archive: two memories are no shorter as one
    max_members: int = 40  # … and at most: a screen of lines, and an event linked to more says little for each
    archive_share: float = 0.25  # of its members' tokens that an archive says itself; each is found by its own words …
    quoted_share: float = 0.5  # … and may have where what no source says, with the day on which it was said, needs it
    archive_months: int = 3  # of one archive: of a month there are often too few memories to make one
    alike: int = 12  # memories that share most words with one, which it is compared with
    common_share: float = 0.1  # of the memories that hold a word, from which it tells nothing of likeness
    common_least: int = 50  # … of small stores, where every word is in a tenth
    writer_share: float = 0.7  # … and that a Writer's words may have, which keep specifics that no event says
    writer_tokens: int = 600  # of a Writer's answer: more than any archive has room for
    writer_archives: int = 20  # that a Writer words in one run: the rest keep the extracted words
