"""The sections of a vault, ranked for a question by BM25 of their words: anybody can compute it again. Pure.

A section is one document: its heading and its entries. Only the vault's own words count, so that an answer follows from
its files alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scrubjay.policy import MemoryPolicy
from scrubjay.vault.layout import VaultFile, file_of
from scrubjay.vault.social import NOTHING_KNOWN, Record, records, weight
from scrubjay_shared import scoring
from scrubjay_shared.records import Memory
from scrubjay_shared.text import analyse, query_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section, the memories that stand in it, and how well it and each of them answers."""

    file: VaultFile
    name: str
    memories: tuple[Memory, ...]
    score: float = 0.0
    scores: tuple[float, ...] = ()
    record: Record = NOTHING_KNOWN


def in_sections(memories: Sequence[Memory]) -> list[Section]:
    """Return the sections of the memories of a vault, in the order of their first ones."""
    found: dict[tuple[VaultFile, str], list[Memory]] = {}
    for memory in memories:
        found.setdefault((file_of(memory), memory.topic or ""), []).append(memory)
    counted = records(
        (name, memory.content) for (file, name), each in found.items() if file is VaultFile.SOCIAL for memory in each
    )
    return [
        Section(
            file=file,
            name=name,
            memories=tuple(each),
            record=counted.get(name, NOTHING_KNOWN) if file is VaultFile.SOCIAL else NOTHING_KNOWN,
        )
        for (file, name), each in found.items()
    ]


def ranked(sections: Sequence[Section], query: str, policy: MemoryPolicy, *, by_source: bool) -> tuple[Section, ...]:
    """Return the sections that share a word with a question, best first."""
    tokens = query_tokens(query)
    k1, b = policy.recall.keyword_k1, policy.recall.keyword_b
    words = [[analyse(memory.content) for memory in section.memories] for section in sections]
    wholes = [
        [*analyse(section.name), *(token for entry in entries for token in entry)]
        for section, entries in zip(sections, words, strict=True)
    ]
    scores = scoring.bm25(tokens, wholes, k1=k1, b=b)
    each = iter(scoring.bm25(tokens, [entry for entries in words for entry in entries], k1=k1, b=b))
    found = []
    for section, score in zip(sections, scores, strict=True):
        own = tuple(next(each) for _ in section.memories)
        factor = weight(section.record, policy.vault.reliability) if by_source else 1.0
        if score > 0:
            found.append(replace(section, score=score * factor, scores=own))
    return tuple(sorted(found, key=lambda one: -one.score))
