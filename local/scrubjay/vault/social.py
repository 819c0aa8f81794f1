"""What sources claimed, and how often that proved right: counted from the entries of social.md. Pure.

A section is about a source. An entry that ends in "(confirmed)" or "(contradicted)" is a claim of which that is known;
people and agents write these words by hand as well as by `scrubjay vault remember --claim`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Claim = Literal["confirmed", "contradicted"]

_CLAIM = re.compile(r"\((?P<claim>confirmed|contradicted)\)[.!]?\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How many claims of a source proved right and wrong."""

    confirmed: int = 0
    contradicted: int = 0

    @property
    def reliability(self) -> float:
        """The share that proved right, one more of each counted: .5 of a source of which nothing is known.

        >>> Record(confirmed=3, contradicted=0).reliability
        0.8
        """
        return (self.confirmed + 1) / (self.confirmed + self.contradicted + 2)


NOTHING_KNOWN = Record()


def claimed(text: str, claim: Claim | None) -> str:
    """Return an entry that says whether a claim proved right."""
    return text.rstrip() if claim is None or _CLAIM.search(text) else f"{text.rstrip()} ({claim})"


def records(entries: Iterable[tuple[str, str]]) -> dict[str, Record]:
    """Return the record of each source, from (section, text) of the entries of social.md."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"confirmed": 0, "contradicted": 0})
    for section, text in entries:
        if found := _CLAIM.search(text):
            counts[section][found["claim"].lower()] += 1
    return {section: Record(**each) for section, each in counts.items()}


def weight(record: Record, reach: float) -> float:
    """Return what a section's score is multiplied by: from 1 - reach / 2 to 1 + reach / 2, 1 where nothing is known.

    >>> weight(Record(), 0.2)
    1.0
    """
    return 1 + reach * (record.reliability - 0.5)
