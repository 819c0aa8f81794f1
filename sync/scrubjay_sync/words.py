"""Digests as words that two people can compare over the phone: the 2,048 English words of BIP-39, 11 bits each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

COUNT = 6
"""Words that are compared: 66 bits, more than a server can grind through while two people read them out."""
_BITS = 11


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
