"""The subject that talk leaves out: "Went to the lake" has an "I" before it. Fills in only what has one reading."""

from __future__ import annotations

import re

from scrubjay.distill.lexicon import BASE_VERBS

ELLIPTIC_PAST = re.compile(
    r"^(?:(?:just|recently|also|finally|even|still|already|actually|only|never) )*(?:went|got|took|"
    r"started|finished|bought|had|made|met|saw|visited|tried|joined|signed up|"
    r"attended|spent|watched|moved|found|lost|won|came back|hosted|organized|organised|volunteered|"
    r"completed|adopted|learned|ran|wrote|built|painted|twisted|hurt|broke|"
    r"booked|planned|decided|ordered|received|picked up|quit|launched|applied|passed|discovered|created|"
    r"posted|published|released|talked|teamed up|opened|enjoyed|left|drove|flew|"
    r"hiked|camped|cooked|baked|played|taught|gave|donated|added|used|loved|love|prefer|need to|want to|"
    r"would love to|haven't|don't)\b(?!')(?! (?:and|is|of|can|or|has|brings|makes|for|by)\b)"
)

ELLIPTIC_BEEN = re.compile(
    r"^(?:(?:just|recently|also|still|only|never) )*been (?:busy )?(?:[a-z]+ing|to|in|at|into|on|with)\b(?! an?\b)"
)

ELLIPTIC_ING = re.compile(
    r"^(?:(?:just|also|still|currently|now|actually) )*(?:working|planning|thinking|hoping|going to|"
    r"trying|training|reading|seeing an?|looking (?:into|for)|learning|building|making|writing|taking|"
    r"heading|preparing|organizing|teaching|saving|starting|getting|researching|exploring|studying|"
    r"volunteering|applying|moving|focusing|practicing|running)\b"
)

FINITE = re.compile(
    r"(?<!that )(?<!which )(?<!who )(?<!it )(?<!they )(?<!there )(?<!what )\b(?:must|sounds|looks|seems|"
    r"is|are|was|were|has|"
    r"helps?|helped|makes?|made|gives?|gave|lets?|takes?|took|feels?|keeps?|brings?|brought|can|will|"
    r"reminds?)\b"
)


OTHER_VERB = re.compile(
    r"(?<!that )(?<!it )(?<!they )(?<!there )(?<!what )\b(?:is|are|was|were|has|will|must|forecasts?|said|says)\b"
)
"""After a past form that opens a name: "saw blade depth is 12 mm"."""

IMPERATIVE = re.compile(
    r"don't (?!(?:really )?(?:like|love|want|need|have|know|think|care|mind|eat|drink|enjoy|believe)\b)"
)
PASSIVE = re.compile(
    r"^(?:\w+ly )?\w+ (?:permanently |under (?:the )?[\w-]+ licen[cs]e|by (?!my|the time|myself|car|bus|train|bike|"
    r"foot)\w|"
    r"in \d{4} by\b|with \d+ (?:errors?|warnings?)|in \d+(?:\.\d+)? ?(?:s|ms|seconds?|minutes?)\b)"
)
"""After a participle: "published under the MIT licence", "discovered in 1998 by two teams", "completed in 4 s"."""

CLAUSE_END = re.compile(
    r"[,;:]|\b(?:and|but|so|because|since|when|while|that|which|who|where|until|after|before|if|with)\b"
)
_STOPS = r"(?:an?|the|to|as|on|in|at|from|by|after|when|every|well|up|\d+)"
NOUN_AND_VERB = re.compile(
    rf"ing (?!(?:an?|the|to|my|our|some|for|with|at|in|on|of|from|about|into|out|"
    rf"up)\b)(?:(?:[a-z]+(?<!s) [a-z]{{3,}}s {_STOPS}\b)|"
    rf"[a-z]+s (?:{'|'.join(sorted(BASE_VERBS | {'depend', 'smooth', 'require', 'contain', 'hold', 'return'}))})\b)|"
    rf"^going to [a-z]+ [a-z]{{3,}}s {_STOPS}\b"
)
"""An -ing word that is part of a name has its own verb: "training data lives in S3", "running shoes need care"."""

NAMED_BY = re.compile(
    r"(?:saw|met|left|found|used|watched|had|lost) (?:office|blade|join|files?|it been|memory|cars?)\b"
)
"""Names and phrases that begin with a verb's form."""

OF_A_PERSON = re.compile(
    r"\b(?:i|me|my|myself|we|our|us|yesterday|today|tonight|last (?:week|month|year|night|\w+day)|this (?:week|"
    r"morning|weekend)|"
    r"(?:prefer|love|need to|want to|would love to|haven't|don't) \w+)\b"
)
"""What shows that somebody speaks of themselves: a program prints "started", "found" and "took" as well."""


def with_subject(text: str, *, opening: bool, known: bool) -> str:
    """Return the tidied text with the "I" that talk leaves out: "Went to the lake" is "I went to the lake".

    An -ing form is filled in only where it opens what is said: later it may go on about someone else. `known`: the
    speaker has a name, and so does not paste a program's output; else something in the text must be a person's.
    """
    low = text.lower()
    clause = CLAUSE_END.search(low)
    head = low[: clause.start()] if clause else low
    begins_with = ELLIPTIC_PAST.match(low)
    if (
        IMPERATIVE.match(low)
        or (begins_with and OTHER_VERB.search(head, begins_with.end()))
        or not (known or OF_A_PERSON.search(low))
    ):
        return text
    rest = text[0].lower() + text[1:] if not text[:2].isupper() else text
    if begins_with and not PASSIVE.match(low) and not NAMED_BY.match(low):
        return f"I {rest}"
    if ELLIPTIC_BEEN.match(low):
        return f"I've {rest}"
    if opening and ELLIPTIC_ING.match(low) and not FINITE.search(low) and not NOUN_AND_VERB.search(low):
        return f"I'm {rest}"
    return text
