"""What must not be lost of a text when it is made shorter: names, numbers, dates, paths, commands, code. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrubjay_shared.text import STOP_WORDS

_CODE = re.compile(r"`([^`\n]+)`")
_PLACES = re.compile(
    r"\b[a-z][a-z0-9+.-]*://[^\s<>\"')\]]+|(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@-]+/)+[\w.@-]*", re.IGNORECASE
)
_MARKED = re.compile(
    r"[\w-]+@[\w-]+\.[\w.-]+|(?<!\w)--?[a-z][\w-]*|\b\w+(?:[._:#@]\w+)+|\b\w+\(\)|\b\w+_\w+\b", re.IGNORECASE
)
_NUMBERS = re.compile(r"\w*\d[\w.,:%/-]*")
_NAMES = re.compile(r"\b[A-Z][\w'’+#-]*")
_WORDED = re.compile(
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?"
    r"|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|million"
    r"|half|twice|daily|weekly|monthly|yearly|noon|midnight)\b",
    re.IGNORECASE,
)
_EDGES = ".,;:!?\"'()[]{}<>“”‘’`*"
_COMMON = "i i'm i've i'd i'll ok yes no please also now today never always use"
_PLAIN = frozenset(_COMMON.split()) | STOP_WORDS


def specifics(text: str) -> frozenset[str]:
    """Return the names, numbers, dates, places and code of a text, each as it is looked for: in lower case.

    A word that begins a sentence counts as a name where it is no common word: one too many costs a line, one too few
    would cost what it names.

    >>> sorted(specifics("Mara moved the cache to Redis 7.2 on port 6380, see `make redis` and notes/cache.md."))
    ['6380', '7.2', 'cache.md', 'make redis', 'mara', 'notes/cache.md', 'redis']
    """
    found = {code.casefold() for code in _CODE.findall(text)}
    for pattern in (_PLACES, _MARKED, _NUMBERS, _NAMES, _WORDED):
        found |= {match.group().casefold().strip(_EDGES) for match in pattern.finditer(text)}
    bare = {one.removesuffix("'s").removesuffix("’s") for one in found}
    return frozenset(one for one in bare if one and one not in _PLAIN and one.strip("-/._"))


def lost(wanted: Iterable[str], texts: Iterable[str]) -> frozenset[str]:
    """Return which of some specifics none of some texts says, each as a word of its own.

    >>> sorted(lost({"80", "redis"}, ["Redis listens on 8080"]))
    ['80']
    """
    said = "\n".join(texts).casefold()
    return frozenset(one for one in wanted if not _says(said, one))


def _says(said: str, one: str) -> bool:
    at = said.find(one)
    while at >= 0:
        before, after = said[at - 1 : at], said[at + len(one) : at + len(one) + 1]
        if not (before.isalnum() and one[0].isalnum()) and not (after.isalnum() and one[-1].isalnum()):
            return True
        at = said.find(one, at + 1)
    return False
