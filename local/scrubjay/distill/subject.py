"""The subject that talk leaves out: "Went to the lake" has an "I" before it. Fills in only what has one reading."""

from __future__ import annotations

import re

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


def with_subject(text: str, *, opening: bool) -> str:
    """Return the tidied text with the "I" that talk leaves out: "Went to the lake" is "I went to the lake".

    An -ing form is filled in only where it opens what is said: later it may go on about someone else.
    """
    low = text.lower()
    rest = text[0].lower() + text[1:] if not text[:2].isupper() else text
    if ELLIPTIC_PAST.match(low):
        return f"I {rest}"
    if ELLIPTIC_BEEN.match(low):
        return f"I've {rest}"
    if opening and ELLIPTIC_ING.match(low) and not FINITE.search(low):
        return f"I'm {rest}"
    return text
