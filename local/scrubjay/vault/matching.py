"""Which entries of a file are those that were written before, as they were or edited. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scrubjay.policy.vault import VaultPolicy
from scrubjay.vault.markdown import Entry, normal

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An entry as file and store were when they last agreed: digests, never words, so that what is forgotten is gone.

    `memory_id` is "" for one that the store did not take. `section` and `text` are digests of what stood in the file,
    `topic` and `content` of what the store had.
    """

    memory_id: str
    section: str
    text: str
    topic: str
    content: str
    refused: str = ""
    """Why the store did not take it."""


def digest(text: str | None) -> str:
    """Return what tells texts apart that differ by more than spaces at the ends of lines."""
    return hashlib.sha256(normal(text or "").encode("utf-8", "surrogatepass")).hexdigest()[:32]


def matched(
    known: Sequence[Known], found: Sequence[Entry], contents: Mapping[str, str], policy: VaultPolicy
) -> dict[int, int]:
    """Return which known entry each entry of the file is, by their places; new ones are absent.

    The same words in the same section, else the same words elsewhere, else similar words in the same section.
    `contents` are the texts of memories by id.
    """
    pairs: dict[int, int] = {}
    digests = [(digest(entry.section), digest(entry.text)) for entry in found]
    left = dict.fromkeys(range(len(known)))
    for anywhere in (False, True):
        waiting: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        for place in left:
            waiting["" if anywhere else known[place].section, known[place].text].append(place)
        for place in (place for place in range(len(found)) if place not in pairs):
            section, text = digests[place]
            if candidates := waiting.get(("" if anywhere else section, text)):
                pairs[place] = candidates.popleft()
                del left[pairs[place]]
    before: dict[str, dict[int, str]] = defaultdict(dict)
    for old in (place for place in left if known[place].memory_id):
        before[known[old].section][old] = contents.get(known[old].memory_id, "")
    after: dict[str, dict[int, str]] = defaultdict(dict)
    for new in (place for place in range(len(found)) if place not in pairs):
        after[digests[new][0]][new] = found[new].text
    for section, texts in after.items():
        pairs |= _edited(before.get(section, {}), texts, policy)
    return pairs


def _edited(olds: Mapping[int, str], news: Mapping[int, str], policy: VaultPolicy) -> dict[int, int]:
    """Pair texts of one section by the words they share, most alike first. Returns the old of each new, by place."""
    if not olds or max(len(olds), len(news)) > policy.paired_most:
        return {}
    words = {old: _words(text) for old, text in olds.items()}
    alike = sorted((-_share(words[old], _words(text)), new, old) for new, text in news.items() for old in olds)
    chosen: dict[int, int] = {}
    for share, new, old in alike:
        if -share >= policy.similar and new not in chosen and old not in chosen.values():
            chosen[new] = old
    return chosen


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))


def _share(one: Counter[str], other: Counter[str]) -> float:
    """Return how much of the words of two texts is common to both, from 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
