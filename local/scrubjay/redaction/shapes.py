"""Credentials known by their own shape: vendors' prefixes, runs that look random, payment cards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from scrubjay.policy import RedactPolicy
from scrubjay.redaction.rules import RULES, RUN_RULES, SCANS, Rule
from scrubjay.redaction.spans import Span
from scrubjay.redaction.values import class_transitions, entropy, is_placeholder, looks_random
from scrubjay.redaction.windows import hits, long_runs, scan

DENSE_CHARS = 20  # the shortest of the anchored shapes
DENSE = re.compile(r"(?<![A-Za-z0-9_.+/=:~$@%&?;-])[A-Za-z0-9_.+/=:~$@%&?;-]{20}")
DENSE_MORE = re.compile(r"[A-Za-z0-9_.+/=:~$@%&?;-]*")
_RUN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{32}")
_RUN_MORE = re.compile(r"[A-Za-z0-9+/_=-]*")
_RULES_OF: dict[str, list[Rule]] = {}
_ANCHORS: dict[str, list[str]] = {}  # by a sign that each holds, "" for none: without it the others are not looked for
for _rule in RULES:
    for _anchor in _rule.anchors:
        if _anchor not in _RULES_OF:
            _ANCHORS.setdefault(next((sign for sign in "$~:=_-/." if sign in _anchor), ""), []).append(_anchor)
        _RULES_OF.setdefault(_anchor, []).append(_rule)


def anchored(text: str, lowered: str, dense: str, policy: RedactPolicy) -> Iterator[Span]:
    """Credentials of `rules.RULES`; `dense` is all of the text's long runs, where alone they stand."""
    for sign, anchors in _ANCHORS.items():
        if sign not in dense:
            continue
        for anchor in [anchor for anchor in anchors if anchor in dense]:
            for rule in _RULES_OF[anchor]:
                yield from _tried(rule, anchor, text, lowered, policy)


def _tried(rule: Rule, anchor: str, text: str, lowered: str, policy: RedactPolicy) -> Iterator[Span]:
    done = 0  # where the last match ended: one run of characters is judged once, however often it holds the anchor
    for at in hits(text, anchor):
        if at < done:
            continue
        for back in rule.back:
            match = rule.pattern.match(text, at - back) if at >= back else None
            if match:
                break
        else:
            continue
        done = match.end()
        if rule.context and not any(word in lowered[max(0, at - 64) : at] for word in rule.context):
            continue
        start, end = match.span("s" if "s" in rule.pattern.groupindex else 0)
        secret = text[start:end]
        body = secret[len(anchor) :] if not rule.back[0] and secret.startswith(anchor) else secret
        if is_placeholder(secret) or entropy(body) < policy.prefixed_entropy:
            continue
        if rule.random and not looks_random(body, policy):
            continue
        yield Span(start, end, 0, rule.kind)


# Nameless random runs.

_HASH_BEFORE = re.compile(
    r"(?:sha-?(?:1|224|256|384|512)|md5|h1|blake\w{0,4}|integrity|hash|digest|checksum|sum|fingerprint|etag|public|pubkey"
    r"|public[_ -]?key|cid|signature|sig|commit|rev|revision|uuid|guid|id|base64|nonce|state|cursor|challenge"
    r"|(?:next|page|pagination|continuation)[_ -]?token)"
    r"[\"'\s:=,(_-]{0,6}$",
    re.IGNORECASE,
)
_HARMLESS_RUN = re.compile(
    r"(?:AAAA|eyJ|MFkwEwYHKoZIzj0|MCowBQYDK2Vw|MIIBIjAN|MIGfMA0G|(?:sha(?:1|224|256|384|512)|md5|h1)[-=:]"
    r"|(?:toolu|srvtoolu|msg|req|call|chatcmpl|resp|run|thread|asst|file|evt|cus|pi|ch|in|sub|price|prod|acct|cs|item|step"
    r"|vs|batch|gen|org|user|proj|conv|sess|session|rs|fc|ws|bdrk|vrtx)[_-])"
)
_NAMED_HASH = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?<![A-Za-z0-9])[0-9a-f]{32,}(?![A-Za-z0-9])"
)
_RUN_PIECE = re.compile(r"[A-Za-z0-9+/_-]{32}")
_RUN_PIECE_MORE = re.compile(r"[A-Za-z0-9+/_-]*")


def runs(text: str, dense: list[tuple[int, int]], policy: RedactPolicy) -> Iterator[Span]:
    """Find runs that look random, and shapes without an anchor, within the long runs of the text."""
    previous_end = -1
    long = [span for span in dense if span[1] - span[0] >= policy.token_chars]
    for start, end in long:
        yield from _shaped(SCANS, text, (start, min(len(text), end + 1)), policy)
    for start, end in chain.from_iterable(long_runs(text, _RUN, _RUN_MORE, *span) for span in long):
        yield from _shaped(RUN_RULES, text, (start, end), policy)
        wrapped = previous_end >= 0 and text[previous_end:start].strip("\r\n\t \"'\\+>|#*") in {"", "n"}
        previous_end = end
        if wrapped or _wraps_on(text, end):
            continue
        for piece in long_runs(text, _RUN_PIECE, _RUN_PIECE_MORE, start, end):
            if _is_nameless_secret(text, *piece, policy):
                padding = next((count for count in (2, 1) if text.startswith("=" * count, piece[1], end)), 0)
                yield Span(piece[0], piece[1] + padding, 2, "high-entropy")


_NEXT_LINE_OF_DATA = re.compile(r"(?:\\[nr]|[\"'\\+\s>|#*])*(?:\n|\\n)[\s\"'>|#*+]{0,80}[A-Za-z0-9+/_=-]{32}")


def _shaped(
    rules: tuple[tuple[str, re.Pattern[str]], ...], text: str, within: tuple[int, int], policy: RedactPolicy
) -> Iterator[Span]:
    for kind, pattern in rules:
        for match in scan(pattern, text, 128, *within):
            if entropy(match[0]) >= policy.prefixed_entropy:
                yield Span(match.start(), match.end(), 0, kind)


def _wraps_on(text: str, at: int) -> bool:
    """Whether the next line goes on with as long a run: then this is a block of data, not a credential."""
    return bool(_NEXT_LINE_OF_DATA.match(text, at, at + 256))


def _is_nameless_secret(text: str, start: int, end: int, policy: RedactPolicy) -> bool:
    if not policy.token_chars <= end - start <= policy.token_max_chars:
        return False
    value = text[start:end]
    if _HARMLESS_RUN.match(value):
        return False
    if sum(map(str.isdigit, value)) < policy.token_digits or value.islower() or value.isupper():
        return False
    value = _NAMED_HASH.sub("", value)
    if class_transitions(value) < policy.token_transitions or entropy(value) < policy.token_entropy:
        return False
    return not text.startswith(("...", "…"), end) and not _is_explained(text, start) and not is_placeholder(value)


def _is_explained(text: str, start: int) -> bool:
    """Whether what stands before says that the run is a hash, an address or other data."""
    before = text[max(0, start - 300) : start]
    if _HASH_BEFORE.search(before) or "base64," in before[-8:]:
        return True
    word = before[max(map(before.rfind, " \n\t\"'<>`")) + 1 :]
    return "://" in word or "arn:" in word


# Cards: grouped as they are printed, of a known issuer, with a valid check digit.

_CARDS_AT_ONCE = 8
"""How many card numbers may stand side by side: a bound, so that the search stays within `_REACH`."""

_REACH = 256
"""How far a match of `CARD` and what it looks ahead to may go: those numbers, 20 characters each, and a group."""

_ONE_MORE = r"(?:[ -][3-6]\d{3}(?:([ -])\d{4}\3\d{4}\3\d{4}|(?<=3[47]\d\d)([ -])\d{6}\4\d{5}))"

CARD = re.compile(
    # the first digit comes first, because a search is fast only where a pattern begins with characters
    r"[3-6](?:(?<![\w.-].)|(?<=\\[nrt].))(?<![0-9A-F]{4}[ -].)"
    r"(?:\d{3}([ -])\d{4}\1\d{4}\1\d{4}|(?<=3)[47]\d\d([ -])\d{6}\2\d{5})" + _ONE_MORE + f"{{0,{_CARDS_AT_ONCE - 1}}}"
    r"(?!\w|[ -][0-9A-F]{4}(?!\w))"
)

_ONE = re.compile(r"\d{4}([ -])(?:\d{4}\1\d{4}\1\d{4}|\d{6}\1\d{5})")


def cards(text: str) -> Iterator[Span]:
    """Numbers of payment cards. Of several side by side each must be one: else it is a longer number in groups."""
    for match in scan(CARD, text, _REACH):
        found = list(_ONE.finditer(match[0]))
        if all(_checks_out(one[0]) for one in found):
            for one in found:
                yield Span(match.start() + one.start(), match.start() + one.end(), 1, "card-number")


def _checks_out(number: str) -> bool:
    """Whether the last digit of a card number is the check digit of the others."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
