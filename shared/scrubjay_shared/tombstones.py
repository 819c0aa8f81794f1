"""What is left of forgotten words: keyed digests, by which the same words are known again and cannot be read.

A digest is HMAC-SHA-256, cut to 16 bytes, of a *form* of the words under a random key that only a person's own devices
have. The forms are part of the wire format (docs/protocol.md, 5.2): every device must find the same ones. They are

* the words in their order, but which part leads: case, punctuation at a word's edge and white space do not count, nor
  does which of its words a sentence begins with ("on 7 May we ship"), nor the sides of "the X is Y";
* where a word is particular (an address, a number, a key: it has a digit or an @), the other words in any order and
  without those that say little ("the", "is", "my"), and the particular ones in theirs;
* of an event, all its words in their order.

Who has neither the key nor the words learns from a digest only whether two forgotten things were the same.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterator

KEY_BYTES = 32
DIGEST_BYTES = 16

EDGES = ".,;:!\"'()“”‘’"
"""What stands at the edge of a word and is no part of it. A question mark is: it makes another sentence."""
DEFINITE = frozenset({"the", "our", "my", "your"})
MAX_TURNED_CHARS = 1_000
"""Longer texts are the same only word by word: turning one around tries each of its places."""

_MARKUP = EDGES + "`*_[]{}<>«»„"
_FILLING = DEFINITE | frozenset("a an is are was were be this that these those it its his her their".split())  # noqa: SIM905
_PARTICULAR_CHARS = 4
_SENTENCE_WORDS = 3
"""A shorter sentence without a particular word ("Yes, please.") says nothing that could be recognised."""
_EVENT_WORDS = 4
_LINE = re.compile(r"[^\r\n]+")
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LEAD = re.compile(r"(?:[\s>#*+•–—-]|\d{1,3}[.)](?=\s))*")


def bare_words(text: str) -> list[str]:
    """Return the words of a text without case, and without the punctuation at their edges."""
    return [bare for word in text.casefold().split() if (bare := word.strip(EDGES))]


def forms(text: str) -> tuple[str, ...]:
    """Return the forms by which a text is compared with forgotten ones; none where it has no words."""
    words = _words(text)
    if not words:
        return ()
    if len(text) > MAX_TURNED_CHARS:
        return (_form("words", words),)
    return (_form("words", _turned(words)), *_particular(words))


def forgotten_forms(text: str) -> tuple[str, ...]:
    """Return the forms that are kept of a forgotten text: its own, and those of its other ways around."""
    words = _words(text)
    if not words or len(text) > MAX_TURNED_CHARS:
        return forms(text)
    swapped = [
        _form("words", _turned([*words[at + 1 :], word, *words[:at]]))
        for at, word in enumerate(words)
        if word in {"is", "are"} and DEFINITE & {*words[:1], *words[at + 1 : at + 2]}
    ]
    return tuple(dict.fromkeys((*forms(text), *swapped)))


def event_form(text: str) -> str | None:
    """Return the form of all that an event says; None for so few words that others say them too."""
    words = _words(text)
    return _form("event", words) if len(words) >= _EVENT_WORDS else None


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a text stands that says enough to be recognised: (start, end)."""
    for line in _LINE.finditer(text):
        start = line.start()
        ends = [*(gap.span() for gap in _END.finditer(text, line.start(), line.end())), (line.end(), line.end())]
        for end, following in ends:
            lead = _LEAD.match(text, start, end)
            first = lead.end() if lead is not None else start
            words = _words(text[first:end])
            if len(words) >= _SENTENCE_WORDS or any(map(_is_particular, words)):
                yield first, end
            start = following


def particular_words(text: str) -> tuple[str, ...]:
    """Return the words of a text that hardly stand anywhere else: keys, addresses, numbers; without case."""
    return tuple(dict.fromkeys(word for word in _words(text) if _is_particular(word)))


def rarest_word(text: str) -> str | None:
    """Return the word of a text to look for it by: the longest, of ASCII where there is one. None without words."""
    words = _words(text)
    return max(words, key=lambda word: (word.isascii(), len(word)), default=None)


def digest(key: bytes, form: str) -> bytes:
    """Return what is kept of a form under a key."""
    return hmac.digest(key, form.encode("utf-8", "surrogatepass"), "sha256")[:DIGEST_BYTES]


def project_digest(key: bytes, project: str) -> bytes:
    """Return what is kept of the project that a forgotten thing was of."""
    return digest(key, f"project\x1f{project}")


def _words(text: str) -> list[str]:
    spelled = unicodedata.normalize("NFKC", text).casefold().split()
    return [bare for word in spelled if (bare := word.strip(_MARKUP)) and any(map(str.isalnum, bare))]


def _form(kind: str, words: list[str]) -> str:
    return "\x1f".join((kind, *words))


def _turned(words: list[str]) -> list[str]:
    """Return the same words beginning with another one of them: the same for all that can be turned into each other."""
    return min(words[at:] + words[:at] for at in range(len(words)))


def _particular(words: list[str]) -> tuple[str, ...]:
    found = [word for word in words if _is_particular(word)]
    others = sorted({word for word in words if word not in _FILLING and not _is_particular(word)})
    return (_form("particular", [*others, "", *found]),) if found and others else ()


def _is_particular(word: str) -> bool:
    return len(word) >= _PARTICULAR_CHARS and ("@" in word or any(map(str.isdigit, word)))
