"""A sentence that tells of a change, said as what holds since: "we raised the limit to 9" is "the limit is 9 now".

So it is compared with an earlier one word by word ("the limit is 200 kB"). English; pure; what it does not know it
leaves as it is.
"""

from __future__ import annotations

import re

_WHAT = (
    r"(?P<what>(?:the |our |my )?(?!(?:to|at|from|away|off|it|this|that)\b)[\w-]+"
    r"(?: (?!(?:to|at|from|by)\b)[\w-]+){0,3}?)"
)
_FROM = r"(?:(?:up |down |over |back )?from [#$€]?\d\S*(?: \S+)? )?"
_NUMBER = r"(?P<value>[#$€]?\d\S*(?: [\w%/]+){0,3})"
_SETS = re.compile(
    rf"^(?:please )?(?:set|keep|make|raise|lower|increase|decrease|reduce|change|bump) {_WHAT} (?:from \S+ )?"
    rf"(?:to |at )?{_NUMBER}$",
    re.IGNORECASE,
)
"""An order to set something to a number, which says what it is from then on."""
_HAS_SET = re.compile(
    r"^(?:we|i|they|the user)(?:['’]ve| have| has)? (?:just |now |also |finally )?"
    r"(?:set|raised|lowered|increased|decreased|reduced|changed|bumped|cut|extended|shortened|moved|migrated|switched|"
    rf"put) {_WHAT} {_FROM}(?:over |up |down |back )?(?:to|on|onto) (?P<value>(?!.*\bfrom\b)[^,;]{{1,40}})$",
    re.IGNORECASE,
)
"""Somebody has done so."""
_HAS_MOVED = re.compile(
    r"^(?P<what>(?:the |our |my )?(?!(?:we|i|they|it|he|she|you|this|that)\b)[\w-]+(?: [\w-]+){0,2}?)"
    r"(?: has| have| was| were| got| is| are)?(?: just| now| been)* "
    rf"(?:moved|switched|changed|went|gone|raised|lowered) (?:up |down |over |back )?{_FROM}to "
    r"(?P<value>(?!.*\bfrom\b)[^,;]{1,40})$",
    re.IGNORECASE,
)
"""Something has another place, time or value."""
_SHOULD_BE = re.compile(r"\b(?:should|shall|must|has to|have to|needs? to|ought to) be\b", re.IGNORECASE)
_FROM_NOW = re.compile(r"\bfrom now on\b|\bnow\b|\bas of (?:now|today)\b|\bgoing forward\b", re.IGNORECASE)
_PREFERS = re.compile(
    r"^(?:i|we|the user)(?:(?:['’]d| would)(?: now)? rather (?:have|use|get|see)| (?:now |really )?prefers?)\b",
    re.IGNORECASE,
)
_SINCE_FIRST = re.compile(
    r"^since (?:yesterday|today|last \w+|this \w+|(?:the )?\d[\w ]{0,20}?|\w+day),? (?=\w+ \w+ \w+)", re.IGNORECASE
)
_PLURAL = re.compile(r"(?:[^s\W]s|ies|ses)$")


def restated(text: str) -> str:
    """Return a sentence as what it says to hold since; itself where it tells of no such change.

    >>> restated("we raised the bundle limit from 200 to 250 kB")
    'the bundle limit is 250 kB now'
    """
    text = _SINCE_FIRST.sub("as of now ", text)
    if _FROM_NOW.search(text):
        text = _SHOULD_BE.sub("is", text)
    text = _PREFERS.sub("I prefer", text)
    bare = text.rstrip(".!")
    order = _SETS.match(bare)
    if order is not None:
        return f"{order['what']} is {order['value']}"
    told = _HAS_SET.match(bare) or _HAS_MOVED.match(bare)
    if told is None:
        return text
    return f"{told['what']} {'are' if _PLURAL.search(told['what']) else 'is'} {told['value']} now"
