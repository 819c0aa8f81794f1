"""Where in a sentence the telling part is: after the fillers, before the comment, without the name called out."""

from __future__ import annotations

import re

FILLER = re.compile(
    r"(?:(?:as )?i (?:already |just )?(?:said|told you)(?: before| already)?,? (?=(?:no|never|always|only|don't|"
    r"do not|not)\b)|(?:btw|by the way)[,:]? +(?=\w)|"
    r"(?:yeah|yea|yes|yep|yup|no|nope|nah|oh|ooh|ah|aw|aww|wow|woah|whoa|well|so|hey|hi|hello|hm+|um+|"
    r"uh|ugh|ok|okay|right|sure|sure thing|haha\w*|lol|man|dude|"
    r"totally|absolutely|definitely|exactly|indeed|certainly|of course|true|cool|nice|great|awesome|"
    r"perfect|better|good|classic|agreed|btw|by the way|anyway|also|and|but|plus|(?:speaking|"
    r"talking) of(?=,)|i forgot to mention(?: that)?|(?:speaking|talking) of [\w' ]{2,30}(?=,)|"
    r"on the other hand|on another note|on a side note|on top of that|in other news|other than that|"
    r"since (?:we|you) last (?:spoke|talked|chatted|met)|after all|believe it or not|one more thing|"
    r"another thing|one thing|one last thing|quick (?:one|note)|a (?:bit|little) (?:of )?(?:context|background)|"
    r"(?:some |for )?(?:context|background)|important|remember|keep in mind|heads[- ]up|reminder|nb|"
    r"(?:just )?so you know|for (?:your information|the record)|no,? no(?:,? no)*|"
    r"long story short|"
    r"honestly|actually|basically|to be honest|tbh|fyi|as for me|for me|for sure|guess what|i mean|"
    r"you know|you know what|well done|good question|"
    r"thanks|thank you|thanks for asking|thanks so much|woohoo|yay|hooray|omg|oops|wait|wait really|then|"
    r"i(?:'ve| have)? changed my mind(?: (?:on|about) [\w' ]{2,40}?)?(?: (?:again|yesterday|today|"
    r"last \w+))?(?=\s*[,.:;])|"
    r"last|next|fine|exciting news|good news|big news|crazy news|same here|same)"
    r"(?:,? (?:there|again|so much|too|then|man|dude|buddy|bro))?(?=\s*[,.!:;\u2014-]|\s+(?:i|i'm|i've|im|"
    r"ive|we|we're|my|our|and|but|so|the)\b)\s*(?:[,.!:;\u2014]|-(?=\s))*\s*)+",
    re.IGNORECASE,
)
DASH = re.compile(
    r"\s+[-\u2013\u2014]+\s+|(?<=\w)\u2014(?=\w)|(?<=\w)- (?=\w)|;\s+|\s*\((?=[^()]{0,200}\))|:\s+(?=[A-Za-z])"
)
COMMENT = re.compile(
    r"(?:it|it's|its|that|that's|this|so|such|what a|the best|definitely|really|totally|can't|but (?:it|"
    r"it's|that)|and (?:it|it's|that)|just|love|loved|amazing|awesome|super|very|pretty|quite|always|"
    r"they|they're|he|he's|she|she's|there|now|nothing|never|feels?|felt|makes?|made|gives?|gave|gotta|"
    r"not|how|no|great|truly|worth|everyone|everything|you|your|like|hope|hopefully|sounds|seems|best|"
    r"check|maybe|i'm so|i can't|i was so|i think|i guess|thanks|one of the)\b",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"(?:(?:, (?:(?:and|but|so) )?| (?:and|but|so) )(?:it|it's|that|that's|they|they're|he|he's|she|"
    r"she's)\b(?:'s|'re| was| were| is| are| felt| feels| made| makes| gives| gave| has been| had been|"
    r" really| truly| always)\b[^,]*"
    r"|,? (?:lol|haha|btw|though|too|as well|tho|ffs|please|you know|and all|right now|for sure|no joke))+[.!]*$",
    re.IGNORECASE,
)
CONJUNCTION = re.compile(
    r"(?i)^(?:(?:and|but|so|plus|or|yet|because|also|then|in fact|best of all|for now|not a problem|"
    r"though|however|on my end|as usual|of course|overall|luckily|fortunately|unfortunately|sadly|honestly)\b,?\s+)+"
)
MAX_BREAKS = 3
"""Dashes and the like after which a sentence is no longer taken apart: it is a list or a log."""

VOCATIVE_MIN = 3
"""Letters from which a shortened name is taken for its owner ("Mel" for Melanie)."""
TITLE_WORDS = 5
"""Quotation marks around no more words than this hold a title, not what somebody else said."""

QUOTED = re.compile(r'["\u201c][^"\u201d]{8,400}["\u201d]')
MIN_TOLD = 20
"""Characters before a trailing comment from which it is cut off: a shorter rest is seldom a sentence."""

CALLED = re.compile(
    r"(?:(?:[Hh]ey|[Hh]i|[Yy]es|[Yy]eah|[Yy]ep|[Oo]h|[Ww]ow|[Tt]hanks|[Ss]ure|[Nn]o|[Ww]ell|[Ss]o) )?([A-Z]\w+)[,!.]\s+"
)
CALLED_LAST = re.compile(r",\s*([A-Z]\w+)\s*[.!?]*$")
LONGEST_CALL = 40
"""Characters in which a greeting and a name stand."""

MAX_FILLERS = 4
"""Rounds of "Yeah, Mel! By the way," that are skipped: more is noise."""


def past_fillers(text: str, start: int, end: int, people: tuple[str, ...]) -> int:
    """Return where the sentence `text[start:end]` begins after "Yeah," "Thanks, Mel!" "By the way," and the like."""
    for _ in range(MAX_FILLERS):
        filler = FILLER.match(text, start, end)
        moved = filler.end() if filler else start
        called = CALLED.match(text, moved, min(end, moved + LONGEST_CALL))
        if called and _is_someone(called[1], people):
            moved = called.end()
        if moved == start:
            break
        start = moved
    return start


def before_comment(text: str, start: int, end: int) -> int:
    """Return where the sentence ends before ", and it was so good" or "lol"."""
    tail = TAIL.search(text, start, end)
    return tail.start() if tail is not None and tail.start() - start >= MIN_TOLD else end


def parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the clauses to try, best first: all of it, then what stands before each break, then what stands between.

    A break before a comment ("- it was so good") ends the first clauses: the comment says nothing of its own.
    """
    end = start + len(text[start:end].rstrip())
    breaks = list(DASH.finditer(text, start, end))[:MAX_BREAKS]
    comment = next((cut for cut in breaks if COMMENT.match(text, cut.end(), end)), None)
    heads = [cut.start() for cut in reversed(breaks) if comment is None or cut.start() <= comment.start()]
    ends = [end, *heads] if comment is None else heads
    between = zip((cut.end() for cut in breaks), [*(cut.start() for cut in breaks[1:]), end], strict=False)
    return [*((start, head) for head in ends), *between]


def plain_words(said: str, people: tuple[str, ...]) -> str:
    """Return a clause without the "and" it begins with, the fillers after that, and the name called out at its end."""
    last = CALLED_LAST.search(said)
    said = said[: last.start()] if last and _is_someone(last[1], people) else said
    joined = CONJUNCTION.match(said)
    if joined is None:
        return said
    filler = FILLER.match(said, joined.end())
    return said[filler.end() if filler else joined.end() :]


def is_quotation(said: str) -> bool:
    """Say whether more than half of a sentence stands in quotation marks: then somebody else said it."""
    quoted = sum(len(m[0]) for m in QUOTED.finditer(said) if len(m[0].split()) > TITLE_WORDS)
    return 2 * quoted > len(said)


def _is_someone(word: str, people: tuple[str, ...]) -> bool:
    return any(word == p or (len(word) >= VOCATIVE_MIN and p.lower().startswith(word.lower())) for p in people)
