"""One analyser for index and query, in every language, and the sizes that language models count in.

Tokens hold letters, digits, marks and emoji only: no white space, no quotation mark. A document's tokens joined by
spaces, stored in an FTS5 table made with `FTS5_TOKENIZE`, are split back into exactly these tokens: the `ascii`
tokenizer takes every character beyond ASCII as part of a word, and in ASCII splits at all but letters and digits.

English is stemmed (Snowball) after its stop words are dropped; Cyrillic, Greek, Arabic and Devanagari words are
stemmed by their own Snowball stemmers; Chinese, Japanese and Korean become overlapping pairs of characters; Thai, Lao,
Khmer and Burmese, which put no space between words, overlapping pairs of a consonant with its marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from enum import IntFlag
from itertools import pairwise

import Stemmer

FTS5_TOKENIZE = "ascii"
"""The `tokenize=` option of an FTS5 table over our tokens: `using fts5(tokens, tokenize='ascii')`."""

MAX_TOKEN_CHARS = 64
"""Longer words are cut here, at index and query alike: keys, hashes and base64 are still found by their beginning."""

# Articles, pronouns, prepositions, conjunctions, question words, auxiliaries, and their contractions.
_STOP_TEXT = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its itself just let's me might more most must
mustn't my myself needn't no nor not of off on once only or other ought our ours ourselves out over own same shall
shan't she she'd she'll she's should shouldn't so some such than that that'd that'll that's the their theirs them
themselves then there there's these they they'd they'll they're they've this those through to too under until up us
very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while who who's
whom whose why why's will with won't would wouldn't you you'd you'll you're you've your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())

_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\uff07\u00b4\u2032"), "'")
_LETTERS = str.maketrans(  # letters that NFD does not take apart, as people without that keyboard type them
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "þ": "th", "ё": "е"}
)
_ENGLISH = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# What leans on a word: Mel's, Mel'll, İstanbul'da; l'ami. Not o'clock, O'Brien, ma'am.
_CLITIC = re.compile(r"^[dln]'(?=[a-z]{3})|'s$|(?<=[a-z0-9]{3})'[a-z]+$")

# One letter for each class of characters; a word is a pattern over these letters, whatever its script.
_WORD, _DIGIT, _MARK, _HAN, _KANA, _UNSPACED, _EMOJI, _FLAG, _QUOTE, _BREAK = "wdmhkueF' "
_SCRIPTS = {
    **dict.fromkeys(("CJK", "HANGUL"), _HAN),
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO"), _KANA),
    **dict.fromkeys(("THAI", "LAO", "KHMER", "MYANMAR"), _UNSPACED),
    "CYRILLIC": "c",  # this one and the next have stemmers
    "GREEK": "g",
    "ARABIC": "a",
    "DEVANAGARI": "n",
}
_RUNS = re.compile(r"(?P<cjk>[hk][hkm]*)|(?P<unspaced>u[um]*)|(?P<emoji>FF|F|e)|(?P<word>[wdcgan][wdmcgan]*(?:'[w]+)?)")


class _Classes(dict[int, str]):
    """Character → class letter, worked out once for each character met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _class_of(chr(code))
        return found


def _class_of(char: str) -> str:
    category = unicodedata.category(char)
    script = unicodedata.name(char, "").split(" ", 1)[0]
    if category == "Nd":
        return _DIGIT
    if category[0] == "M":
        return _MARK
    if category[0] == "L" or category in {"Nl", "No"}:
        return _SCRIPTS.get(script, _WORD)
    if category == "So":
        return _FLAG if script == "REGIONAL" else _EMOJI
    return _QUOTE if char == "'" else _BREAK


class _Folds(dict[int, str]):
    """Character → what it is found by: without accents in Latin and Greek, without points in Arabic and Hebrew."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _folded(chr(code))
        return found


def _folded(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] == "C":
        return " " if category == "Cc" else ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    name = unicodedata.name(char, "")
    if category[0] == "M" and name.startswith(("COMBINING", "ARABIC", "HEBREW", "VARIATION")):
        return ""
    if char == "\u0640":  # tatweel only stretches the line
        return ""
    if name.startswith(("LATIN", "GREEK")):
        return "".join(c for c in unicodedata.normalize("NFD", char) if not unicodedata.combining(c)).translate(
            _LETTERS
        )
    return char.translate(_LETTERS)


_CLASSES = _Classes()
_FOLDS = _Folds()
# Shared between threads: a stemmer keeps a C buffer, but holds the interpreter lock from the call to the copied result.
_STEMMERS: dict[str, Callable[[list[str]], list[str]]] = {
    letter: Stemmer.Stemmer(language).stemWords
    for letter, language in {"w": "english", "c": "russian", "g": "greek", "a": "arabic", "n": "hindi"}.items()
}


def analyse(text: str) -> list[str]:
    """Return the tokens a document is found by, in order, repetitions kept.

    Any string is accepted; control characters separate, lone surrogates vanish. A run of Chinese, Japanese or Korean
    gives each pair of neighbours and each Han or Hangul character.

    >>> analyse("What did Caroline’s friends paint?")
    ['carolin', 'friend', 'paint']
    >>> analyse("Café Müller, 東京")
    ['cafe', 'muller', '東京', '東', '京']
    """
    return _tokens(text, single=True)


def analysed(text: str) -> str:
    """Return the tokens of `analyse` with a space between two, as a table made with `FTS5_TOKENIZE` keeps them.

    >>> analysed("What did Caroline’s friends paint?")
    'carolin friend paint'
    """
    return _joined(text) if text.isascii() else " ".join(_tokens(text, single=True))


def query_tokens(text: str) -> list[str]:
    """Return the tokens a query is made of: as `analyse`, each once, and a single character only where it stands alone.

    So 東京 asks for the pair, and does not also match every 京.

    >>> query_tokens("東京 or 猫")
    ['東京', '猫']
    """
    return list(dict.fromkeys(_tokens(text, single=False)))


def _tokens(text: str, *, single: bool) -> list[str]:
    if text.isascii():
        return _ascii(text)
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold().translate(_FOLDS)
    if plain.isascii():  # English with curly quotation marks, or with an accent
        return _ascii(plain)
    found: list[str] = []
    for run in _RUNS.finditer(plain.translate(_CLASSES)):
        piece = plain[run.start() : run.end()]
        if run.lastgroup == "word":
            found += _words(piece, run.group())
        elif run.lastgroup == "emoji":
            found.append(piece)
        else:
            clusters = _clusters(piece, run.group())
            found += [a + b for a, b in pairwise(clusters)] or clusters
            if single and run.lastgroup == "cjk" and len(clusters) > 1:
                found += [c for c in clusters if _CLASSES[ord(c[0])] == _HAN]
    return found


def _ascii(text: str) -> list[str]:
    return _joined(text).split()


def _joined(text: str) -> str:
    """Return the tokens of an ASCII text with a space between two, as a table of full text keeps them."""
    return " ".join(filter(None, map(_TERMS.__getitem__, text.encode().translate(_SPACED).decode().split())))


class _Terms(dict[str, str]):
    """What stands between two breaks of an ASCII text → its tokens, joined: a few thousand words make up most texts.

    Shared between threads: whoever misses works it out, and all get the same.
    """

    def __missing__(self, chunk: str) -> str:
        found = " ".join(_english(_ENGLISH.findall(chunk)))
        if len(chunk) <= _MAX_KEPT_CHARS:
            if len(self) >= _MAX_TERMS:
                self.clear()
            self[chunk] = found
        return found


_MAX_TERMS = 50_000  # about 8 MB; a conversation's vocabulary is a third of it
_MAX_KEPT_CHARS = 32  # what is longer is a key or a hash, and does not come again
_TERMS = _Terms()
_SPACED = bytes(ord(char.lower()) if char.isalnum() or char == "'" else 32 for char in map(chr, range(128))).ljust(256)


def _english(words: list[str]) -> list[str]:
    kept = [_CLITIC.sub("", word) if "'" in word else word for word in words if word not in STOP_WORDS]
    stems = _STEMMERS[_WORD]([word[:MAX_TOKEN_CHARS] for word in kept if word not in STOP_WORDS])
    return [stem.replace("'", "") for stem in stems]


def _words(piece: str, classes: str) -> list[str]:
    if piece.isascii():
        return _ascii(piece)
    word = piece.replace("'", "")[:MAX_TOKEN_CHARS]
    return _STEMMERS[classes[0]]([word]) if classes[0] in _STEMMERS and classes[0] != _WORD else [word]


def _clusters(piece: str, classes: str) -> list[str]:
    starts = [at for at, kind in enumerate(classes) if kind != _MARK] + [len(piece)]
    return [piece[a:b] for a, b in pairwise(starts)]


ASKS = "?"
"""The last token of what ends with a question mark. FTS5's tokenizer drops it, and no query holds it."""

_ASKING = re.compile(r"[?\uff1f\u061f\u037e]\W*\Z")


def asks(text: str) -> bool:
    """Return whether a text ends with a question, quotation marks and emoji after it left out."""
    tail = text[-16:]
    return ("?" in tail or not tail.isascii()) and _ASKING.search(tail) is not None


class Mark(IntFlag):
    """What a token says of the text that holds it: it asks, it has a word of time, it has a number."""

    ASKS = 1
    TIMED = 2
    COUNTED = 4


# "may", "fall" and "second" are left out: they are something else more often.
_TIME_WORDS = """
yesterday today tomorrow tonight week weekend month year day morning afternoon evening night noon midnight
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun
january february march april june july august september october november december
jan feb mar apr jun jul aug sept sep oct nov dec summer winter spring autumn
last next ago since lately recently soon later earlier tmrw tmr yday
"""
_NUMBER_WORDS = """
two three four five six seven eight nine ten eleven twelve dozen twenty thirty forty fifty sixty hundred thousand
million couple once twice several half
"""
_TIMED = frozenset(analyse(_TIME_WORDS))
_COUNTED = frozenset(analyse(_NUMBER_WORDS))


def mark_of(token: str) -> Mark:
    """Return what a token of `analyse`, or `ASKS`, says of its text. The words of time and number are English ones.

    >>> mark_of("yesterday"), mark_of("3pm"), mark_of("cat")
    (<Mark.TIMED: 2>, <Mark.TIMED|COUNTED: 6>, <Mark: 0>)
    """
    found = _MARKS.get(token)
    if found is None and token[0].isdigit():
        found = _CLOCKED if _CLOCK.fullmatch(token) else Mark.COUNTED
    return _NO_MARK if found is None else found


# Looked up rather than put together: a large store asks this of a million tokens while it is opened.
_NO_MARK, _CLOCKED = Mark(0), Mark.TIMED | Mark.COUNTED
_MARKS = {
    ASKS: Mark.ASKS,
    **dict.fromkeys(_TIMED, Mark.TIMED),
    **{token: _CLOCKED if token in _TIMED else Mark.COUNTED for token in _COUNTED},
}
_CLOCK = re.compile(r"\d{1,2}(?:am|pm|th|st|nd|rd)|(?:19|20)\d\d")


def fts_query(tokens: Iterable[str]) -> str:
    """Return the FTS5 query that matches any of these tokens, each quoted so that no operator is read in it.

    No tokens give `""`, which matches nothing in FTS5.

    >>> fts_query(["near", "or"])
    '"near" OR "or"'
    """
    return " OR ".join('"' + token.replace('"', '""') + '"' for token in tokens) or '""'


_PIECES = re.compile(r"[A-Za-z]{1,5}|[ \t]{2,}|[\n\r]|[^\sA-Za-z]")
"""Each costs a token; signs of three bytes one more, and those of four two (`_DEAR`): all is counted inside `re`."""
_DEAR = tuple(re.compile(rf"[^\s\x00-{chr(last)}]") for last in (0x7FF, 0xFFFF))


def estimate_tokens(text: str) -> int:
    """Return how many language-model tokens a text may cost: an upper estimate, for budgets that must not be exceeded.

    Counts one for each five letters of an English word (rounded up), for each digit, sign, line break and run of
    spaces, and by UTF-8 length for the rest: one for a two-byte letter, two for a Chinese, Japanese, Korean or Thai
    character, three for an emoji. Tokenizers of 100,000 entries and more need two thirds of this on English and on
    Chinese; only random bytes and invented scripts can cost more.
    """
    return sum(_estimated(text, start) for start in range(0, len(text), _ESTIMATED_CHARS))


def _estimated(text: str, start: int) -> int:
    end = start + _ESTIMATED_CHARS
    total = len(_PIECES.findall(text, start, end))
    return total if text.isascii() else total + sum(len(dear.findall(text, start, end)) for dear in _DEAR)


_ESTIMATED_CHARS = 65_536
"""Characters in one call to `re`, which no other thread can interrupt: about 2 ms. A word cut in two costs one more."""


def unbracketed(ref: str) -> str:
    """Return a reference without the brackets that it stands in where agents are handed it.

    >>> unbracketed("[05ZQSJ]"), unbracketed("05ZQSJ"), unbracketed("[]")
    ('05ZQSJ', '05ZQSJ', '[]')
    """
    return ref[1:-1].strip() or ref if ref.startswith("[") and ref.endswith("]") else ref
