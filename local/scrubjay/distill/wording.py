"""How a memory reads: relative dates as dates, the speaker by name, and what the dates say of its validity."""

from __future__ import annotations

import re
from dataclasses import replace

from scrubjay.dates import DateMention, Grain
from scrubjay.distill.clauses import past_fillers, plain_words
from scrubjay.distill.lexicon import ADVERB_RUN
from scrubjay.distill.person import KIN, Speaker, named
from scrubjay.distill.prose import Span
from scrubjay_shared.clock import Millis

PREPOSITION = re.compile(
    r"(?i)\b(?:on|in|at|since|from|until|till|by|for|of|during|before|after|around|about|over|through|to|"
    r"between|and|than|do|make)\s+(?:the\s+)?$"
)
SUBJECT_DATE = re.compile(r"'s|\s(?:was|is|has been)\b")
"""After a date that stands as a noun: "yesterday was …", "yesterday's"."""

BOUND = re.compile(
    r"(?i)\b(since|as of|from|starting|until|till|by|before|after)\s+(?:the\s+|late\s+|early\s+|end of\s+)*$"
)
_BOLD = re.compile(r"\*\*([^*]{1,200})\*\*")
COMPANIONS = re.compile(rf"(?i)\b(?:my|the|our|some|few) (?:\w+ )?({KIN})\b")
FIRST_PERSON_LEFT = re.compile(r"(?<![\w'\"/.-])(?:I|I'm|I've|I'd|I'll|[Mm]y|[Mm]yself)(?![\w'\"/.-])")
REMINDER = re.compile(r"(?i)(?:please )?remind \S+(?: (?:that|to|about|of))? ")


def worded(text: str, dates: tuple[DateMention, ...], speaker: Speaker) -> str:
    """Return tidied text with relative dates and first persons replaced. `dates` are those of `text`."""
    return named(dated(text, dates), speaker)


_LOOSE_ENDS = " -\u2014:;,\u00b7\u2022>"
_LED_ON = re.compile(r"(?i),\s*(?:so|and|but|or|because|since|then)$")
_LINE_BREAK = re.compile(r"(?P<end>\S)\s*\n\s*(?=(?P<next>\S))")


def whole(said: str) -> str:
    """Return somebody's sentence on one line, without what hangs on to what stood before or after it.

    That is punctuation, the conjunction that leads on to a list, and the end of parentheses that it did not open. A
    line that begins anew is set off.

    >>> whole("The tag is `v1` (the prefix is cut off), so:")
    'The tag is `v1` (the prefix is cut off)'
    """
    said = _LED_ON.sub("", _LINE_BREAK.sub(_joined, said.strip()).strip(_LOOSE_ENDS)).strip(_LOOSE_ENDS)
    bare = said.rstrip(".!")
    if bare.endswith(")") and said.count(")") > said.count("("):
        return bare[:-1].rstrip(_LOOSE_ENDS) + said[len(bare) :]
    return said


def _joined(lines: re.Match[str]) -> str:
    goes_on = lines["next"].islower() or not (lines["end"].isalnum() or lines["end"] in "\"')]")
    return lines["end"] + (" " if goes_on else "; ")


def as_said(text: str, one: Span, people: tuple[str, ...]) -> str:
    """Return a sentence in its own words, without fillers, emphasis and line breaks; "" where nothing is left."""
    start = past_fillers(text, one.start, one.end, people)
    return whole(_BOLD.sub(r"\1", plain_words(text[start : one.end], people)))


def is_grammatical(text: str, speaker: Speaker) -> bool:
    """Say whether a text about the speaker in the third person reads as English: persons and verbs agree, none is left.

    The test is of what goes wrong when first person is replaced: an "I" that was no person ("i is the index"), a
    contraction that was a name ("im is a crate"), a verb that was none.
    """
    if speaker.name is None:
        return True
    name = re.escape(speaker.name)
    wrong = re.search(
        rf"(?:^|[,;:] |\b(?:that|because|when|but|so) ){name} (?:{ADVERB_RUN})?"
        r"(?:am|are|have|do|don't|haven't|aren't|i|they|we|their|a|an|the|my)\b(?! and)|"
        rf"\b{name} (?:[a-z]+ises|ises|ams|ares|wases)\b|\b{name}'s (?:is|are|was|be|has|we|a|an|the|they|i)\b|"
        rf"\b{name},? {name}\b|^changed {name}'s mind\b|"
        r"\b(?:is|are|was|has|had|have|will|would) (?:is|are|was|were|am|does|do|has)\b|"
        r"\bthey (?:is|has|does|was|isn't|hasn't|doesn't|wasn't|am|i)\b|\b(?:is|has) (?:i|they|we|she|he)\b|n't(?:s|"
        r"es)\b|\b(?:before|after|when|whenever|if|once|until|unless) the assistant "
        r"(?!(?:is|was|has|had|can|will|would|should|must|may|might|could|did|does|do|went|ran|made|saw|got|who|and|or)\b)"
        r"[a-z]+(?<![sd])\b",
        text,
        re.IGNORECASE,
    )
    return wrong is None and FIRST_PERSON_LEFT.search(text) is None


def requested(text: str, speaker: Speaker) -> str:
    """Return an instruction, already worded, as what the speaker asked for."""
    if speaker.name is None:
        return text
    reminder = REMINDER.match(text)
    if reminder:
        return f"Reminder for {speaker.name}: {text[reminder.end() :]}"
    first = text[0] if _PROPER.match(text) else text[0].lower()
    return f"{speaker.name} asked: {first}{text[1:]}"


_PROPER = re.compile(r"\w+[A-Z]|(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Japanese|Chinese)\b")
"""A first word that keeps its capital within a sentence: "JSON", "GitHub", "English"."""


_NAME_FIRST = re.compile(r"[a-z][\w-]*(?:[./_=(][\w(]|[A-Z])")
"""A path, a file or a name of code: "main.py", "get_week(", "myTable". Its first letter is part of it."""


def sentence_case(text: str) -> str:
    """Return non-empty text with a capital, unless it opens with a name of code, and a full stop."""
    first = text[0] if _NAME_FIRST.match(text) else text[0].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def in_company(speaker: Speaker, text: str, before: str) -> Speaker:
    """Return the speaker with those whom "we" includes: the kin or friends named last in or before the text."""
    kin = COMPANIONS.search(before + " " + text)
    return replace(speaker, company=f"their {kin[1].lower()}" if kin else "others")


def dated(text: str, dates: tuple[DateMention, ...]) -> str:
    """Return the text with each relative date replaced by the date it means, with the preposition that goes with it."""
    out: list[str] = []
    position = 0
    for date in dates:
        if date.relative:
            phrase = _with_preposition(date, text[: date.span_start], text[date.span_end :])
            out += [text[position : date.span_start], phrase if date.span_start else phrase[0].upper() + phrase[1:]]
            position = date.span_end
    return "".join([*out, text[position:]])


def _with_preposition(date: DateMention, before: str, after: str) -> str:
    if PREPOSITION.search(before) or SUBJECT_DATE.match(after) or date.grain is Grain.VAGUE:
        return date.phrase
    return ("on " if date.grain in (Grain.DAY, Grain.WEEKEND) else "in ") + date.phrase


def validity(text: str, dates: tuple[DateMention, ...]) -> tuple[Millis | None, Millis | None]:
    """Return the bounds of what is said, end exclusive, where exactly one date in it says them; else None and None."""
    if len(dates) != 1:
        return None, None
    date = dates[0]
    bound = BOUND.search(text[: date.span_start])
    match bound[1].lower() if bound else "":
        case "since" | "as of" | "from" | "starting" | "after":
            return date.start, None
        case "until" | "till" | "by" | "before":
            return None, date.end
        case _:
            return date.start, date.end
