"""What a pronoun or a "that" in a sentence points at: something the sentence itself names, or nothing we can see."""

from __future__ import annotations

import re

from scrubjay.distill.lexicon import any_of, words
from scrubjay.distill.person import KIN

LEADING_PRONOUN = re.compile(
    r"^(?:and |but |so |also |then |because )*(?:it|it's|its|it'll|it'd|this|that|that's|that'll|these|"
    r"those|they|they're|they've|they'll|their|"
    r"she|she's|he|he's|her|his|him|there|there's|here|same|such|both|one|another|some|others|each|"
    r"neither|either|which|who|whose|nothing|everything|something|none|all|most|what|where|how|why|"
    r"when(?! (?:i|we|my|our)\b))\b(?!'s\b(?<=one's))"
)

OPEN_PRONOUN = re.compile(
    r"\b(it|it's|it'll|its|they|they're|they've|they'll|them|their|theirs|he|he's|him|his|she|she's|her|"
    r"(?<=\w )(?<!\band )(?<!\bbut )(?<!\bthat )(?<!\bso )(?<!\bwhen )(?<!\bif )there)\b"
)
"""Words that stand for what was named before. A "there" that opens a clause only says that something exists."""

OBJECTS = frozenset(("it", "it's", "its", "it'll", "them"))

CLAUSE = re.compile(
    r"[,;:-]|\b(?:and|but|so|because|since|when|while|to|as|that|which|who|until|after|before|if|where|by|"
    r"for|with|though)\b"
)

TRAILING_PREPOSITION = re.compile(r" (?:for|with|by|to|from|of|on|in|at|about|into)\s*$")

MANY = frozenset(("they", "they're", "they've", "they'll", "them", "their", "theirs", "these", "those", "both"))

PERSONAL = frozenset(("he", "he's", "him", "his", "she", "she's", "her"))

ANTECEDENT = re.compile(
    r"\b(?:an?|the|my|our|some|two|three|four|several|many|new|\w+'s|with|for|of) \w+|"
    r"[^.!?] [A-Z]\w+|^[A-Z]\w+ (?:is|has|was)|`"
)
PLURAL = re.compile(
    r"\b(?!is\b|was\b|has\b|as\b|us\b|this\b|always\b|does\b|gets\b|its\b|lots\b|yes\b|ways\b|times\b|"
    r"things\b|sometimes\b|days\b|years\b|months\b|weeks\b|hours\b)\w{2,}[^\W\ds'i]s\b|\b(?:people|family|"
    r"team|kids|children|folks|everyone|everybody|anyone|each other|someone|others|crew|staff|band|"
    r"company|group|men|women|parents|couple)\b|\w+ and (?:my |the |his |her )?\w+",
)

PERSON = re.compile(
    rf"(?i)\b(?:{KIN}|man|woman|guy|girl|boy|lady|kid|child|someone|somebody|person|artist|author|writer|"
    r"player|singer|coach|boss|manager|doctor|physio|teacher|mentor|customer|client|pup|puppy|dog|cat|"
    r"kitten|baby)\b|(?<=[\w,] )(?-i:[A-Z][a-z]+)|^(?!we |the |my |our |after |when |in |on |at |since |"
    r"as |so |just |one |i )(?-i:[A-Z]\w+) "
)

_NOW = (
    r"(?:week|month|year|season|morning|evening|weekend|summer|time|afternoon|spring|fall|winter|autumn|\w+day|"
    r"repo|repository|project|codebase|app)\b"
)
"""After "this": a time, or the place that everybody is in."""

POINTING = any_of(
    r"\b(?:those|these) (?!days\b|who\b)\w+",
    r"\b(?:with|of|on|in|at|from|for|about|to|like) that \w+",
    r"\bthat (?:other|recipe|one|guy|day)\b",
    r"\bthat (?:\w+ )?(?:color|trip|place|thing|spot|game|book|kind|type|sort|way|feeling|moment|point|"
    r"photo|stuff|area|"
    r"part|day|time|experience|event|movie|song)\b",
    rf"\b(?:of|in|about|throughout|through) this (?!{_NOW})\w+",
    rf"\bthis (?!{_NOW})(?:\w+ )?\w+(?=\W*$|,| and\b| when\b| because\b| so\b| as\b| recently\b| looks?\b| - )",
    r"\bthe (?:colou?rs?|texture|event|cause(?! (?:is|was)\b)|views?|vibes?|characters?|story|plot|situation|feels|"
    r"training|language|"
    r"main character|tank)\b(?! (?:of|for|to|at|in|with|about|called|that|from|on|behind)\b)",
    r"\bthe idea\b(?! (?:of|for|to|that)\b)",
    r"the (?:same|whole|rest|other|others|next step|process|situation|experience|moment|results?|changes?|journey|"
    r"challenge|opportunity|feeling)\b(?! (?:of|for|to|that|behind|with|in|at|from|\w+ing)\b)",
)
"""Nouns that are used as if they had been told of already."""

PLACE = re.compile(r"\b(?:to|in|at|near|from|into|visit(?:ed)?) (?:\w+ )*?\w+")
ANTECEDENTS = dict.fromkeys(MANY, PLURAL) | dict.fromkeys(PERSONAL, PERSON) | {"there": PLACE}
"""What a pronoun needs before it; the others need a noun of any kind."""


def opens_pointing(low: str) -> bool:
    """Say whether a sentence in lower case begins with a word that stands for what was said before it."""
    return LEADING_PRONOUN.match(low) is not None


def points_outside(low: str) -> bool:
    """Say whether a "those", "that trip" or "the situation" is used as if it had been told of already."""
    return POINTING.search(low) is not None


def unresolved(low: str, text: str) -> bool:
    """Say whether a pronoun points at nothing that the sentence names before it. `low` is `text` in lower case.

    The test is of form, not of sense: a noun of the right number and kind must stand before the pronoun, and for "it"
    and "them" in an earlier clause.
    """
    for match in OPEN_PRONOUN.finditer(low):
        antecedent = ANTECEDENTS.get(match[1], ANTECEDENT)
        before = TRAILING_PREPOSITION.sub("", text[: match.start()])
        found = antecedent.search(before)
        if found is None or (match[1] in OBJECTS and not CLAUSE.search(before, found.start())):
            return True
    return False


_THING = r"(?:(?:the|our|my|this) (?:[\w./'`-]+ ){0,3}?[\w./'`-]+|`[^`]+`|[\w-]+(?:[./_-][\w-]+)*)"
STATED = re.compile(
    rf"(?P<thing>{_THING}) (?:is|was|are|were|lives?|runs?|sits?|stays?|listens?|has|"
    rf"have) (?P<rest>[^;:]*)",
    re.IGNORECASE,
)
"""A sentence whose subject the next "it" takes up: "the ingest service is written in Rust"."""

INTRODUCED = re.compile(
    r"(?:we|i)(?:'ve)? (?:now |also |just )?(?:have|run|use|got|built|wrote|added|need|"
    r"made) an? (?P<thing>(?:[\w./'`-]+ ){0,3}?[\w./'`-]+)"
    r"(?P<rest>(?: (?:in|on|for|at|called|named) [^;:]*)?)",
    re.IGNORECASE,
)
"""A sentence that brings a thing in, which the next "it" takes up: "we have a staging cluster"."""

TAKES_UP = re.compile(
    r"(?P<one>It|it|This|this|That|that)(?P<is>'s)? (?=(?:also |now |always |never |still |only )?(?P<verb>\w+))"
    r"|(?P<its>Its|its) (?=\w)|(?P<many>They|they)(?P<are>'re)? (?=\w)"
)
SINGULAR_VERB = re.compile(r"(?:\w+[^s]s|is|was|has|does|can|must|will|should|needs|had|\w+ed)$")
ANOTHER_THING = re.compile(
    r"\b(?:the|an?|our|my|its|their|this|that|these|every|each|another|two|three) \w|"
    r"\w+'s \w",
    re.IGNORECASE,
)
NO_THING = frozenset(
    (
        "it",
        "this",
        "that",
        "there",
        "what",
        "he",
        "she",
        "they",
        "we",
        "i",
        "you",
        "who",
        "which",
        "here",
        "one",
        "everything",
        "nothing",
    )
)


ABSTRACT = words(
    """
    problem problems issue issues goal plan idea reason fix cause question answer point result results error errors key
    solution trick difference thing things time way case rest part
    """
)
"""Nouns that stand for a whole sentence: an "it" after "the problem is …" means what the problem is about."""


def taken_up(text: str, before: str) -> str | None:
    """Return a tidied sentence with the "it" or "they" that opens it replaced by the subject of the one before it.

    None where that is not certain: where the sentence before names another thing, or has no plain subject.

    >>> taken_up("It runs on port 8080", "The ingest service is written in Rust")
    'The ingest service runs on port 8080'
    >>> taken_up("It runs on port 8080", "The ingest service is behind the proxy") is None
    True
    """
    opens = TAKES_UP.match(text)
    if opens is None:
        return None
    introduced = INTRODUCED.fullmatch(before)
    stated = None if introduced else STATED.fullmatch(before)
    found = introduced or stated
    if found is None or ANOTHER_THING.search(re.sub(r"^(?:the|an?|our) ", "", found["rest"], flags=re.IGNORECASE)):
        return None
    thing = found["thing"] if stated else f"the {found['thing']}"
    head = thing.rsplit(" ", 1)[-1].lower()
    if (
        thing.lower() in NO_THING
        or head in ABSTRACT
        or (stated is not None and " and " in before.partition(found["rest"])[0])
    ):
        return None
    plural = head.endswith("s") and not head.endswith(("ss", "us", "is"))
    if plural is not (opens["many"] is not None) and not opens["its"]:
        return None
    if opens["one"] and not opens["is"] and not SINGULAR_VERB.match(opens["verb"]):
        return None
    verb = " is" if opens["is"] else " are" if opens["are"] else "'s" if opens["its"] else ""
    return f"{thing[0].upper()}{thing[1:]}{verb} {text[opens.end() :]}"
