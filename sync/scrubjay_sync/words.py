"""Digests as words that two people can compare over the phone: the 2,048 English words of BIP-39, 11 bits each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

COUNT = 6
"""Words that a person carries from the machine that asks: 66 bits, of which whoever is in between has one guess."""
PROOF_COUNT = 3
"""Words that a person carries back: 33 bits, again for one guess, and by then the first six were right."""
_BITS = 11


class PairingWords(NamedTuple):
    """The words of one pairing: those the machine that asks shows, and those the other one shows for them."""

    shown: tuple[str, ...]
    proof: tuple[str, ...]


def pairing_words(digest: bytes) -> PairingWords:
    """Return the words of a pairing's digest."""
    words = words_of(digest, COUNT + PROOF_COUNT)
    return PairingWords(shown=words[:COUNT], proof=words[COUNT:])


def words_of(digest: bytes, count: int = COUNT) -> tuple[str, ...]:
    """Return the first bits of a digest as words.

    >>> words_of(bytes(32))
    ('abandon', 'abandon', 'abandon', 'abandon', 'abandon', 'abandon')
    """
    number = int.from_bytes(digest, "big") >> (len(digest) * 8 - count * _BITS)
    return tuple(wordlist()[number >> _BITS * place & (1 << _BITS) - 1] for place in reversed(range(count)))


@cache
def wordlist() -> tuple[str, ...]:
    """Return the list, in its order: a word's place is its number."""
    return tuple(files("scrubjay_sync").joinpath("words.txt").read_text(encoding="ascii").split())
