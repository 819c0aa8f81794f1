"""Passages that are not stored: what a person marked as private, and what recall put into an agent's context."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from scrubjay.policy import DEFAULT
from scrubjay.redaction.windows import holds, scan

INJECTED_OPEN = '<memory source="scrubjay"'  # what recall puts into an agent's context begins and ends with these
INJECTED_CLOSE = "</memory>"


def injected(body: str, **attributes: str) -> str:
    """Wrap recalled text in the block that `clean` recognises, whatever the text holds.

    What is within is `defused`, so that stored text cannot end the block early and speak to the agent from outside it.
    Attributes are quoted.
    """
    quoted = "".join(f' {name}="{_ATTRIBUTE_UNSAFE.sub(" ", defused(value))}"' for name, value in attributes.items())
    return f"{INJECTED_OPEN}{quoted}>\n{defused(body)}\n{INJECTED_CLOSE}"


def defused(text: str) -> str:
    """Return a text in which nothing can end or open a block, whatever its letters: `<` becomes `‹`.

    A list of tags would be a race: a model reads `</ memory >`, full-width signs, Cyrillic letters and `<|im_start|>`
    as it reads ours. So every sign that looks like the beginning of a tag goes, however it is written; what shows
    nothing is left out. Only what compares or shifts numbers (`a <= b`, `n < 5`, `x << 2`) stays.

    >>> defused("one </memory> two"), defused("List<int>, i < 10")
    ('one ‹/memory> two', 'List‹int>, i < 10')
    """
    return _INSTRUCTION.sub("‹", _TAG_BEGINS.sub("‹", _SHOWS_NOTHING.sub("", text)))


# ---------------------------------------------------------------------------------------------------- passages

_ATTRIBUTE_UNSAFE = re.compile(
    r'[<>"\x00-\x1f\x7f-\x9f\u2028\u2029\\‹]|&(?:amp;)*(?:quot|#0*34|#x0*22|gt|#0*62|#x0*3e)\b;?'
)
_LT = r"(?:<|\\u003[cC]|&(?:amp;)?lt;)"  # `<` as such, as some JSON encoders write it, or as HTML, once or twice
_GT = r"(?:>|\\u003[eE]|&(?:amp;)?gt;)"
_QUOTE = r"(?:\\{0,3}[\"']|&(?:amp;)?(?:quot|\#3[49]);)?"
OPENING = rf"{_LT}memory\s{{1,4}}source\s?=\s?{_QUOTE}scrubjay"
CLOSING = rf"{_LT}\\?/memory\s?{_GT}"
HOST_OPENING = rf"{_LT}(?:system-reminder|hook_context){_GT}"
HOST_CLOSING = rf"{_LT}\\?/(?:system-reminder|hook_context){_GT}"
"""The tags of our own block, and those that hosts put around what hooks add, however they were escaped on the way."""

_ANY_LT = (
    r"(?:[<＜﹤\u2329\u226e\u27e8\u3008\u1438\u02c2\u276e\u2770\u29fc]|\\{1,4}(?:u00|U0{6}|x)3c|\\{1,4}u\{0{0,6}3c\}"
    r"|\\{1,4}0?74(?!\d)|%(?:25){0,3}3c"
    r"|[&＆](?:amp;){0,9}(?:lt(?:;|(?![\w=]))|#0{0,32}60(?:;|(?!\d))|#x0{0,32}3c(?:;|(?![\da-f]))))"
)
"""Signs that are `<` or look like it, as such or as JSON, C, addresses and HTML (up to ten times) write it."""
_TAG_BEGINS = re.compile(
    rf"{_ANY_LT}(?!<?(?:=\s{{0,8}}[\w(\[\-+.,;:\"'`$)]|\s{{0,8}}[-+]?\d[\d.,_]{{0,32}}(?![\w/|>.,])))", re.IGNORECASE
)
"""What compares stays: a number, and no name or stroke, stands behind it, or `=` and a word."""
_INSTRUCTION = re.compile(
    r"[\[［](?=\s*/?\s*(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\s*[\]］])", re.IGNORECASE
)
"""Of the prompts of some models the marks that are no tags."""

_SHOWS_NOTHING = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
    "\U000e0001-\U000e007f]|(?<=[\\x00-\\x7e])[\u200c\u200d]|[\u200c\u200d](?=[\\x00-\\x7e])"
)
"""Characters that show nothing or turn the order of what is shown. Joiners are let be where scripts need them."""

_PRIVATE_TAG = re.compile(rf"{_LT}(?P<close>\\?/)?private{_GT}", re.IGNORECASE)
_INJECTED_TAG = re.compile(
    rf"(?P<close>{CLOSING})|(?P<closed_host>{HOST_CLOSING})|(?P<host>{HOST_OPENING})|{OPENING}", re.IGNORECASE
)
TAG_REACH = 96
"""The longest of these tags, escaped twice, has fewer characters."""

REST_OF_OPENING = re.compile(rf"[^<>\n]{{0,1000}}?{_GT}[ \t]*(?:\r?\n|\\r|\\n|$)")


class _Cut(NamedTuple):
    start: int
    end: int


TAG_SIGNS = ("<", "\\u003", "\\U003", "lt;", "LT;", "Lt;", "lT;")
"""Of these one stands in every text that a passage may begin in."""


def may_hold_tag(text: str) -> bool:
    """Whether a passage may begin in the text: False is certain, True is not."""
    return any(holds(text, sign) for sign in TAG_SIGNS)


def cut_out(text: str, spans_of: Callable[[str], Iterable[_Cut]]) -> tuple[str, int]:
    """Cut out the spans until no span is left. Cutting can join a tag out of halves only in a text made to do so.

    Where two words would run together, one space stands in for what was between them.
    """
    count = 0
    for _ in range(DEFAULT.redact.passes):
        spans = _outermost(spans_of(text))
        if not spans:
            return text, count
        count += len(spans)
        text = _without(text, spans)
    spans = _outermost(spans_of(text))
    if spans:  # hostile by now: nothing after the first tag is kept
        return text[: spans[0].start], count + 1
    return text, count


def _without(text: str, spans: list[_Cut]) -> str:
    parts: list[str] = []
    end = 0
    for span in spans:
        parts.append(text[end : span.start])
        glued = span.start > 0 and span.end < len(text)
        if glued and not text[span.start - 1].isspace() and not text[span.end].isspace():
            parts.append(" ")
        end = span.end
    return "".join([*parts, text[end:]])


def _outermost(spans: Iterable[_Cut]) -> list[_Cut]:
    result: list[_Cut] = []
    for span in sorted(spans):
        if result and span.start <= result[-1].end:
            result[-1] = _Cut(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def private_spans(text: str) -> Iterator[_Cut]:
    """Yield what stands between `<private>` and `</private>`, with the tags; one that is never closed runs to the end.

    The tags are exact but for case (`<private key>` is prose), and may be escaped as JSON escapes them.
    """
    opened: list[int] = []
    for tag in scan(_PRIVATE_TAG, text, 32) if may_hold_tag(text) else ():
        if not tag["close"]:
            opened.append(tag.start())
        elif opened:
            yield _Cut(opened.pop(), tag.end())
    if opened:
        yield _Cut(opened[0], len(text))


def injected_spans(text: str) -> list[_Cut]:
    """Return the blocks that `injected` made, and the tag of a host around them with all it holds.

    A block cut off by the host (opened at the end of a line, never closed) runs to the end of the text. A mere mention
    of the tag within a line stays.
    """
    own: list[_Cut] = []
    hosts: list[_Cut] = []
    own_open: list[re.Match[str]] = []
    host_open: list[int] = []
    for tag in scan(_INJECTED_TAG, text, TAG_REACH) if may_hold_tag(text) else ():
        if tag["host"]:
            host_open.append(tag.start())
        elif tag["closed_host"]:
            if host_open:
                hosts.append(_Cut(host_open.pop(), tag.end()))
        elif not tag["close"]:
            own_open.append(tag)
        elif own_open:
            own.append(_Cut(own_open.pop().start(), tag.end()))
    cut_off = next((tag.start() for tag in own_open if REST_OF_OPENING.match(text, tag.end())), None)
    if cut_off is not None:
        # The host closes its own tag even around a block that it cut off: what follows is not ours.
        wrap = min((host for host in hosts if host.start < cut_off < host.end), default=None)
        own.append(wrap or _Cut(cut_off, len(text)))
        own += [_Cut(start, len(text)) for start in host_open[:1] if start < cut_off and not wrap]
    if not own:
        return own
    own = _outermost(own)
    starts = [span.start for span in own]
    return own + [host for host in hosts if _any_within(starts, host)]


def _any_within(starts: list[int], host: _Cut) -> bool:
    at = bisect_left(starts, host.start)
    return at < len(starts) and starts[at] < host.end
