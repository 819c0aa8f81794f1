"""What must never be stored is taken out here: credentials, private passages, and our own words coming back.

Theory of operation. `clean` runs three removals in an order that matters: our own injected blocks first (one of them
may speak of `<private>`), private passages next (their secrets need no marker), credentials last. Each is idempotent.

`redact` gathers spans and replaces them in one step, so no rule sees another's output within a pass:

1. anchored shapes (`secret_rules.RULES`): looked for only in the text's long unbroken runs, tried only where their
   anchor stands;
2. what the surroundings give away: private key blocks, passwords in URLs, Authorization headers, cookies, and values
   assigned to keys named password, secret, token or the like;
3. nameless runs that look random.

Overlapping spans become one, named after the most specific. Taking a secret out may uncover another that it touched,
so passes repeat until nothing is found. All quantifiers are bounded: no text costs more than a constant per character.

It decides by form alone and asks no issuer, so it errs: a password that is an ordinary word in running prose is missed,
and a random-looking identifier of 32 characters or more is taken for a key. It holds no secret, and returns none.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from scrubjay.policy import DEFAULT, RedactPolicy
from scrubjay.secret_rules import KINDS, RULES, RUN_RULES, SCANS, SERVICE_KINDS, Rule
from scrubjay_shared.errors import InvalidError

INJECTED_OPEN = "<scrubjay-memory"  # what recall puts into an agent's context begins and ends with these, nowhere else
INJECTED_CLOSE = "</scrubjay-memory>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """A text without its credentials, and how many of each kind were in it, sorted by kind."""

    text: str
    found: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A text that may be stored. `private_removed` and `injected_removed` count outermost blocks."""

    text: str
    redactions: tuple[tuple[str, int], ...] = ()
    private_removed: int = 0
    injected_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedJson:
    """A JSON value that may be stored; counts as in `Cleaned`, summed over every string inside."""

    value: Any
    redactions: tuple[tuple[str, int], ...] = ()
    private_removed: int = 0
    injected_removed: int = 0


def clean(text: str, policy: RedactPolicy = DEFAULT.redact) -> Cleaned:
    """Everything that must happen to a text before its first write. `clean` of a cleaned text changes nothing."""
    if not _may_hold_tag(text):
        redaction = redact(text, policy)
        return Cleaned(text=redaction.text, redactions=redaction.found)
    removed_injected = removed_private = 0
    found: Counter[str] = Counter()
    for _ in range(policy.passes):
        before = text
        text, injected = _strip(text, _injected_spans)
        text, private = _strip(text, _private_spans)
        redaction = redact(text, policy)
        text = redaction.text
        found.update(dict(redaction.found))
        removed_injected += injected
        removed_private += private
        if text == before or not (injected or private):
            break  # only a removal can bring parts together that mean something new
    return Cleaned(
        text=text,
        redactions=tuple(sorted(found.items())),
        private_removed=removed_private,
        injected_removed=removed_injected,
    )


def clean_json(
    value: Any, policy: RedactPolicy = DEFAULT.redact, *, max_depth: int = DEFAULT.limits.max_metadata_depth
) -> CleanedJson:
    """`clean` for every string in a JSON value, names of members included; the value itself is not modified.

    Under a name such as "password" or "api_key" any string goes, however plain, and under a password's also a number:
    there the name says what it is. Members whose names become equal are told apart by `#2`, `#3`.

    Raises InvalidError when lists and objects are nested deeper than `max_depth`.
    """
    cleaner = _JsonCleaner(policy, max_depth)
    result = cleaner.value(value, 0)
    return CleanedJson(
        value=result,
        redactions=tuple(sorted(cleaner.found.items())),
        private_removed=cleaner.private,
        injected_removed=cleaner.injected,
    )


class _JsonCleaner:
    """One walk through one value, and what it took out on the way."""

    def __init__(self, policy: RedactPolicy, max_depth: int) -> None:
        self.policy = policy
        self.max_depth = max_depth
        self.found: Counter[str] = Counter()
        self.private = 0
        self.injected = 0

    def text(self, held: str) -> str:
        done = clean(held, self.policy)
        self.found.update(dict(done.redactions))
        self.private += done.private_removed
        self.injected += done.injected_removed
        return done.text

    def value(self, held: Any, depth: int, kind: str = "") -> Any:
        """Clean what stands under a name that promises `kind` of secret, or none ("")."""
        if isinstance(held, dict | list | tuple) and depth >= self.max_depth:
            raise InvalidError(
                f"the JSON value is nested deeper than {self.max_depth} levels",
                hint="flatten it, or store it as text",
            )
        if isinstance(held, dict):
            return self._members(held, depth)
        if isinstance(held, list | tuple):
            return [self.value(item, depth + 1, kind) for item in held]
        if isinstance(held, str):
            return self._string(held, kind)
        if kind == "password" and isinstance(held, int | float) and not isinstance(held, bool):
            self.found[kind] += 1
            return _marker(kind)
        return held

    def _members(self, held: dict[Any, Any], depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, inner in held.items():
            kept = key = self.text(str(name))
            copies = 1
            while kept in members:
                copies += 1
                kept = f"{key}#{copies}"
            members[kept] = self.value(inner, depth + 1, _kind_of_name(str(name)))
        return members

    def _string(self, held: str, kind: str) -> str:
        rest = self.text(held)
        if not kind or not _MARKER.sub("", rest).strip() or _is_placeholder(rest):
            return rest
        self.found[kind] += 1
        return _marker(kind)


def redact(text: str, policy: RedactPolicy = DEFAULT.redact) -> Redaction:
    """Replace every credential by `[REDACTED:kind]`; all else, line breaks included, stays as it was.

    `redact` of a redacted text changes nothing. Kinds are `secret_rules.KINDS`. Total: any `str` is accepted, lone
    surrogates and NUL too.
    """
    if not _may_hold_credential(text):
        return Redaction(text=text)
    found: Counter[str] = Counter()
    for _ in range(policy.passes):
        spans = _merged(_spans(text, policy), text)
        if not spans:
            break
        parts: list[str] = []
        kept = 0
        for start, end, _, kind in spans:
            found[kind] += 1
            parts += (text[kept:start], _marker(kind))
            kept = end
        text = "".join([*parts, text[kept:]])
    return Redaction(text=text, found=tuple(sorted(found.items())) if found else ())


def strip_private(text: str) -> str:
    """Take out `<private>…</private>`, nested ones as one; one that is never closed runs to the end of the text.

    The tags are exact but for case (`<private key>` is prose), and may be escaped as JSON escapes them. Where two words
    would run together, one space stands in for what was between them.
    """
    return _strip(text, _private_spans)[0]


def strip_injected(text: str) -> str:
    """Take out the blocks that `injected` made, and a `<system-reminder>` around them with all it holds.

    A block cut off by the host (opened at the end of a line, never closed) runs to the end of the text. A mere mention
    of the tag within a line stays.
    """
    return _strip(text, _injected_spans)[0]


def injected(body: str, **attributes: str) -> str:
    """Wrap recalled text in the block that `strip_injected` recognises, whatever the text holds.

    A tag of ours within `body` is defused (its `<` becomes `‹`), so that stored text cannot end the block early and
    speak to the agent from outside it. Attributes are quoted.
    """
    quoted = "".join(f' {name}="{_ATTRIBUTE_UNSAFE.sub(" ", value)}"' for name, value in attributes.items())
    return f"{INJECTED_OPEN}{quoted}>\n{_OWN_TAG.sub('‹', body)}\n{INJECTED_CLOSE}"


# ---------------------------------------------------------------------------------------------------- passages

_ATTRIBUTE_UNSAFE = re.compile(r'[<>"\r\n\\]')
_LT = r"(?:<|\\u003[cC])"  # `<` as such, or as some JSON encoders write it
_GT = r"(?:>|\\u003[eE])"
_OWN_TAG = re.compile(rf"{_LT}(?=\\?/?(?:scrubjay-memory|system-reminder))", re.IGNORECASE)
_PRIVATE_TAG = re.compile(rf"{_LT}(?P<close>\\?/)?private{_GT}", re.IGNORECASE)
_INJECTED_TAG = re.compile(
    rf"{_LT}(?:(?P<close>\\?/)(?:scrubjay-memory|(?P<closed_host>system-reminder)){_GT}"
    rf"|(?:scrubjay-memory(?=[\s>\\])|(?P<host>system-reminder){_GT}))",
    re.IGNORECASE,
)
_REST_OF_OPENING = re.compile(rf"[^<>\n]{{0,1000}}{_GT}[ \t]*(?:\r?\n|\\r|\\n|$)")


class _Cut(NamedTuple):
    start: int
    end: int


def _may_hold_tag(text: str) -> bool:
    return "<" in text or "\\u003" in text or "\\U003" in text


def _strip(text: str, spans_of: Callable[[str], Iterable[_Cut]]) -> tuple[str, int]:
    """Cut out the spans until there are none. Cutting can join a tag out of halves only in a text made to do so."""
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


def _private_spans(text: str) -> Iterator[_Cut]:
    opened: list[int] = []
    for tag in _scan(_PRIVATE_TAG, text, 32) if _may_hold_tag(text) else ():
        if not tag["close"]:
            opened.append(tag.start())
        elif opened:
            yield _Cut(opened.pop(), tag.end())
    if opened:
        yield _Cut(opened[0], len(text))


def _injected_spans(text: str) -> list[_Cut]:
    own: list[_Cut] = []
    hosts: list[_Cut] = []
    own_open: list[re.Match[str]] = []
    host_open: list[int] = []
    for tag in _scan(_INJECTED_TAG, text, 48) if _may_hold_tag(text) else ():
        if tag["host"]:
            host_open.append(tag.start())
        elif tag["closed_host"]:
            if host_open:
                hosts.append(_Cut(host_open.pop(), tag.end()))
        elif not tag["close"]:
            own_open.append(tag)
        elif own_open:
            own.append(_Cut(own_open.pop().start(), tag.end()))
    cut_off = next((tag.start() for tag in own_open if _REST_OF_OPENING.match(text, tag.end())), None)
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


# ---------------------------------------------------------------------------------------------------- credentials


_PlainSpan = tuple[int, int, int, str]  # a _Span without names: the collector of garbage need not walk over millions


class _Span(NamedTuple):
    start: int
    end: int
    rank: int  # 0 names the issuer, 1 the key it was assigned to, 2 only that it looks random
    kind: str


_MARKER = re.compile(r"\[REDACTED:(?:" + "|".join(sorted(KINDS, key=len, reverse=True)) + r")\]")
_DENSE_CHARS = 20  # the shortest of the anchored shapes
_DENSE = re.compile(r"(?<![A-Za-z0-9_.+/=:~$@%&?;-])[A-Za-z0-9_.+/=:~$@%&?;-]{20}")
_DENSE_MORE = re.compile(r"[A-Za-z0-9_.+/=:~$@%&?;-]*")
_RUN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{32}")
_RUN_MORE = re.compile(r"[A-Za-z0-9+/_=-]*")
_RULES_OF: dict[str, list[Rule]] = {}
_ANCHORS: dict[str, list[str]] = {}  # by a sign that each holds, "" for none: without it the others are not looked for
for _rule in RULES:
    for _anchor in _rule.anchors:
        if _anchor not in _RULES_OF:
            _ANCHORS.setdefault(next((sign for sign in "$~:=_-/." if sign in _anchor), ""), []).append(_anchor)
        _RULES_OF.setdefault(_anchor, []).append(_rule)


def _marker(kind: str) -> str:
    return f"[REDACTED:{kind}]"


def _spans(text: str, policy: RedactPolicy) -> Iterator[_Span]:
    lowered = _lowered(text)
    dense = [*_long_runs(text, _DENSE, _DENSE_MORE, 0, len(text))]
    if dense:
        yield from _anchored(text, lowered, "\n".join([text[start:end] for start, end in dense]), policy)
        yield from _runs(text, dense, policy)
    if "-----begin " in lowered or "private-lines: " in lowered:
        yield from _private_keys(text, policy)
    if "://" in text:
        yield from _urls(text)
    yield from _headers(text, lowered, policy)
    yield from _commands(text, lowered)
    yield from _assigned(text, lowered, policy)
    yield from _cards(text)


# What is looked for first, and how far one call may go.

_STRETCH = 65_536  # characters that one call into `re` walks over: it holds the interpreter's lock all the while
_SHORT = 2_048  # a text up to here is worth a look whether anything may be found; a longer one nearly always has it
_SIGNS = (
    # Of these one stands, in lower case, in every text without a long run of characters that any rule below fires on.
    "pass", "pw", "key", "token", "secret", "://", "credential", "authorization", "bearer", "cookie", "-----begin ",
    "private-lines: ", "curl", "mysql", "mariadb", "redis-cli", "mongo", " login ", "ldap", "identified", ":5432:",
    ":5433:", ":6432:", ":*:", "kennwort", "wachtwoord", "contrasena", "senha", "haslo", "heslo", "salasana",
)  # fmt: skip


def _may_hold_credential(text: str) -> bool:
    """Whether `redact` may change the text: False is certain, True is not."""
    if len(text) > _SHORT:
        return True
    if max(map(len, text.split()), default=0) >= _DENSE_CHARS:
        return True
    lowered = _lowered(text)
    for sign in _SIGNS:
        if sign in lowered:
            return True
    if not text.isascii() and any(word in lowered for word in _FOREIGN_WORDS):
        return True
    return _CARD.search(text) is not None


def _lowered(text: str) -> str:
    """Return the text in lower case, every character where it was."""
    if text.isascii():
        return text.lower()
    text = text.replace("İ", "i")  # U+0130 alone changes length in lower case, and would shift all offsets
    return "".join([text[at : at + _STRETCH].lower() for at in range(0, len(text), _STRETCH)])


def _scan(
    pattern: re.Pattern[str], text: str, reach: int, start: int = 0, end: int | None = None
) -> Iterator[re.Match[str]]:
    """Do what `pattern.finditer` does, a stretch at a time. No match, with all it looks ahead to, exceeds `reach`."""
    end = len(text) if end is None else end
    while True:
        edge = start + _STRETCH
        for match in pattern.finditer(text, start, min(end, edge + reach)):
            if match.start() >= edge:
                break
            yield match
            start = match.end()
        if edge >= end:
            return
        start = max(start, edge)


def _long_runs(
    text: str, least: re.Pattern[str], more: re.Pattern[str], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Spans of unbroken runs: of at least what `least` matches, going on as long as `more` does."""
    while start < end:
        edge = min(end, start + _STRETCH)
        first = least.search(text, start, min(end, edge + 64))
        if first:
            start = _end_of(more, text, first.end(), end)
            yield first.start(), start
        else:
            start = edge


def _end_of(run: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Where the run that goes on at `at` ends; `run` matches any number of its characters."""
    while at < end:
        match = run.match(text, at, min(end, at + _STRETCH))
        if not match or match.end() == at:
            return at
        at = match.end()
    return at


def _in_order(spans: Iterable[_Span], text: str) -> Iterator[_PlainSpan]:
    """Sort by start, a stretch of the text at a time: sorting half a million holds the interpreter's lock too long."""
    stretches: dict[int, list[_PlainSpan]] = {}
    for start, end, rank, kind in spans:
        escape = _ESCAPE.match(text, start) if text[start - 1 : start] == "\\" else None
        if escape and escape.end() < end:
            start = escape.end()  # noqa: PLW2901 - behind the n of a line break in JSON: JSON must stay JSON
        stretches.setdefault(start // _STRETCH, []).append((start, end, rank, kind))
    for stretch in sorted(stretches):
        yield from sorted(stretches.pop(stretch))


def _merged(spans: Iterable[_Span], text: str) -> list[_PlainSpan]:
    """Disjoint spans in order; those that only touch a marker of an earlier pass are gone."""
    result: list[_PlainSpan] = []
    for span in _in_order(spans, text):
        if result and span[0] < result[-1][1]:
            start, end, rank, kind = result[-1]
            best = (rank, kind) if rank <= span[2] else span[2:]
            result[-1] = (start, max(end, span[1]), *best)
        else:
            result.append(span)
    if not result or "[REDACTED:" not in text:
        return result
    ends = {marker.start(): marker.end() for marker in _scan(_MARKER, text, _MARKER_CHARS)}
    starts = [*ends]
    return [span for span in result if not _is_within(span, starts, ends)]


_MARKER_CHARS = 64


def _is_within(span: _PlainSpan, starts: list[int], ends: dict[int, int]) -> bool:
    at = bisect_right(starts, span[0]) - 1
    return at >= 0 and span[1] <= ends[starts[at]]


_ESCAPE = re.compile(r"(?<=\\)(?:[nrtbf]|u[0-9a-fA-F]{4})")


def _hits(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _anchored(text: str, lowered: str, dense: str, policy: RedactPolicy) -> Iterator[_Span]:
    for sign, anchors in _ANCHORS.items():
        if sign not in dense:
            continue
        for anchor in [anchor for anchor in anchors if anchor in dense]:
            for rule in _RULES_OF[anchor]:
                yield from _tried(rule, anchor, text, lowered, policy)


def _tried(rule: Rule, anchor: str, text: str, lowered: str, policy: RedactPolicy) -> Iterator[_Span]:
    done = 0  # where the last match ended: one run of characters is judged once, however often it holds the anchor
    for at in _hits(text, anchor):
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
        if _is_placeholder(secret) or _bits(body) < policy.prefixed_bits:
            continue
        if rule.random and not _looks_random(body, policy):
            continue
        yield _Span(start, end, 0, rule.kind)


# Private keys: from BEGIN to END, or as far as a key goes if the END was cut off.

_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY_KEY = re.compile(r"Private-Lines: \d{1,4}")
_KEY_LINE = re.compile(
    r"(?:\s|\\[nrt]|[\"'+>|#*,]|\\{1,3}[\"'])*"
    r"(?P<line>(?:Proc-Type|DEK-Info|Version|Comment|Hash|Private-MAC): [^\n\\]{0,120}|[A-Za-z0-9+/=]{1,16384})"
)
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{24}")


def _private_keys(text: str, policy: RedactPolicy) -> Iterator[_Span]:
    for anchor, begin in (("-----BEGIN ", _KEY_BEGIN), ("Private-Lines: ", _PUTTY_KEY)):
        done = 0
        for at in _hits(text, anchor):
            opened = begin.match(text, at) if at >= done else None
            if not opened:
                continue
            limit = min(len(text), opened.end() + policy.key_max_chars)
            closed = _closing(text, opened.end(), limit) if begin is _KEY_BEGIN else None
            if closed:
                end = closed.end()
                key = bool(_KEY_BODY.search(text, opened.end(), closed.start()))
            else:
                end = _key_lines(text, opened.end(), limit)
                key = end > opened.end()
            done = end
            if key:
                yield _Span(at, end, 0, "private-key")


def _closing(text: str, at: int, limit: int) -> re.Match[str] | None:
    following = text.find("-----BEGIN ", at, limit)
    return _KEY_END.search(text, at, limit if following < 0 else following)


def _key_lines(text: str, at: int, limit: int) -> int:
    """Where the lines of a key end that has no END: the first that is neither base 64 nor a header of the format."""
    last = 0
    while line := _KEY_LINE.match(text, at, limit):
        word = line["line"]
        tail = last >= 48 and (word.endswith("=") or not word.isalpha())  # the last line is as short as it needs to be
        if ":" not in word and len(word) < 24 and not tail:
            break
        last = 0 if ":" in word else len(word)
        at = line.end()
        if tail and len(word) < 48:
            break
    return at


# Passwords and tokens in URLs. Query parameters are assignments.

_URL_PASSWORD = re.compile(r"""://(?P<user>[^\s:/?#@"'`<>]{0,128}):(?P<s>[^\s/"'`<>]{1,256})@(?=[A-Za-z0-9\[.$%{_-])""")
_URL_TOKEN = re.compile(r"""(?<=http)s?://(?P<s>[A-Za-z0-9_.~%-]{20,256})@(?=[A-Za-z0-9\[.-])""")


def _urls(text: str) -> Iterator[_Span]:
    for at in _hits(text, "://"):
        if match := _URL_PASSWORD.match(text, at):
            if not _is_template(match["s"]) and not _MARKER.fullmatch(match["s"]):
                yield _Span(*match.span("s"), 1, "url-password")
        elif (match := _URL_TOKEN.match(text, at - text.startswith("https", max(0, at - 5)))) and any(
            map(str.isdigit, match["s"])
        ):
            yield _Span(*match.span("s"), 1, "url-token")


# Headers.

_AUTHORIZATION = re.compile(
    r"""authorization(?:\\{0,3}["'`])?\s{0,4}[:=,]\s{0,4}(?:\\{0,3}["'`])?"""
    r"""(?P<scheme>basic|bearer|token|apikey|api-key|key|ssws|bot|negotiate|oauth)?[ \t]{0,4}"""
    r"""(?P<s>[A-Za-z0-9._~+/=:|-]{8,4096})""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"bearer[ \t]{1,4}(?P<s>[A-Za-z0-9._~+/=|-]{16,4096})", re.IGNORECASE)
_COOKIE = re.compile(
    r"cookie(?:\\{0,3}[\"'])?:[ \t]{0,4}(?:\\{0,3}[\"'])?(?P<s>[^\s\"'`\\<>{}()]{1,4096})", re.IGNORECASE
)
_NETRC = re.compile(r"machine[ \t\n]{1,4}\S{1,128}\s{1,8}login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<s>\S{4,256})")


def _headers(text: str, lowered: str, policy: RedactPolicy) -> Iterator[_Span]:
    if "authorization" in lowered or "bearer" in lowered or "cookie" in lowered:
        yield from _authorized(text, lowered, policy)
    for at in _hits(text, "machine") if "password" in text else ():
        match = _NETRC.match(text, at)
        if match and not _is_template(match["s"]):
            yield _Span(*match.span("s"), 1, "password")


def _authorized(text: str, lowered: str, policy: RedactPolicy) -> Iterator[_Span]:
    for at in _hits(lowered, "authorization"):
        match = _AUTHORIZATION.match(text, at)
        if match and _is_authorization(match["scheme"], match["s"], policy):
            yield _Span(*match.span("s"), 1, "authorization")
    for at in _hits(lowered, "bearer"):
        match = _BEARER.match(text, at)
        if match and not _is_placeholder(match["s"]) and _looks_random(match["s"], policy):
            yield _Span(*match.span("s"), 1, "bearer-token")
    for at in _hits(lowered, "cookie"):
        match = _COOKIE.match(text, at)
        if match and "=" in match["s"]:
            yield from _cookies(text, match.start("s"))


def _is_authorization(scheme: str | None, value: str, policy: RedactPolicy) -> bool:
    if _is_placeholder(value):
        return False
    if scheme and scheme.lower() == "basic":
        try:
            return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
    return _looks_random(value, policy) and len(value) >= policy.assigned_chars


_COOKIE_PAIR = re.compile(r"[ \t]{0,2}[^\s=;,\"'<>]{1,128}=(?P<s>[^\s;,\"'`\\<>]{1,4096})(?P<more>;)?")


def _cookies(text: str, at: int) -> Iterator[_Span]:
    while pair := _COOKIE_PAIR.match(text, at):
        value = pair["s"]
        if _looks_random(value, DEFAULT.redact) and len(value) >= 16:
            yield _Span(*pair.span("s"), 1, "cookie")
        at = pair.end()
        if not pair["more"]:
            return


# Commands that take a password as an argument, and other places without a name.

_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    # what the command is called, and what leads to the password, up to an opening quote
    (anchor, re.compile(lead))
    for anchor, lead in (
        ("curl", r"""\s(?:-u|-U|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,64}:"""),
        ("mysql", r"""\s-p(?=[^\s-])["']?(?!\d[\d.]{1,14}(?:[:\s"']|\Z))"""),  # but `-p3306:3306` is docker's
        ("mariadb", r"""\s-p(?=[^\s-])["']?(?!\d[\d.]{1,14}(?:[:\s"']|\Z))"""),
        ("redis-cli", r"""\s-a[ ]["']?"""),
        ("sshpass", r"""\s-p[ ]?["']?"""),
        ("mongo", r"""\s-p[ ]["']?"""),
        (" login ", r"""\s-p[ ]["']?"""),
        ("ldap", r"""\s-w[ ]["']?"""),
        ("openssl", r"""\s-pass(?:in|out)?[ ]["']?pass:"""),
        ("identified by", r"""(?i:\s(?:password\s)?)["']"""),
        ("identified with ", r"""(?i:\S{1,64}\sby\s)["']"""),
    )
)
_COMMAND_CHARS = 400  # how far into a command's line its password is looked for
_ARGUMENT = re.compile(r"""[^\s"'`$<>-][^\s"'`$<>]{3,255}""")
_PGPASS = re.compile(r"(?m)^[^\s:#]{1,128}:(?:\d{2,5}|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<s>\S{4,256})$")
_PGPASS_PORTS = (":5432:", ":5433:", ":6432:", ":*:")


def _commands(text: str, lowered: str) -> Iterator[_Span]:
    for anchor, lead in _COMMANDS:
        at = lowered.find(anchor)
        while at >= 0:
            following = lowered.find(anchor, at + 1)
            limit = at + _COMMAND_CHARS
            line_end = text.find("\n", at, limit)
            stop = min(end for end in (following, limit, line_end) if end >= 0)
            led = lead.search(text, at + len(anchor) - anchor.endswith(" "), stop)
            value = _ARGUMENT.match(text, led.end()) if led else None
            if value and anchor.startswith("identified") and "user" not in lowered[max(0, at - 200) : at]:
                value = None  # "identified by 'x'" is English as well
            if value and not _is_template(value[0]):
                yield _Span(*value.span(), 1, "password")
            at = following
    for port in _PGPASS_PORTS:
        for at in _hits(text, port) if port in text else ():
            start = text.rfind("\n", max(0, at - 130), at) + 1 or max(0, at - 130)
            match = _PGPASS.match(text, start)
            if match and not _is_template(match["s"]):
                yield _Span(*match.span("s"), 1, "password")


# Assignments: a key whose name says what it holds, an operator, a value that looks the part.

_PASSWORD_WORDS = ("pass", "pwd", "pw", "kennwort", "wachtwoord", "contrasena", "senha", "haslo", "heslo", "salasana")
_FOREIGN_WORDS = (
    "contraseña", "hasło", "lösenord", "şifre", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호",
)  # fmt: skip
_SECRET_WORDS = ("secret", "token", "key", "credential")
_NAME = re.compile(
    r"(?:(?P<password>(?:(?<![A-Za-z])pass|(?<=[_.-])pass|(?-i:(?<=[a-z])Pass)|(?-i:(?<=[A-Z])PASS))"
    r"(?:phrase|code|wort|ord)?|(?<=mot[_ -]de[_ -])passe|passw(?:or)?d|passphrase|passcode|pwd|(?<![A-Za-z])pw"
    r"|(?-i:(?<=[a-z])Pw)|kennwort|wachtwoord|contrase[ñn]a|senha|(?<![A-Za-z])(?:has[lł]o|heslo|[sş]ifre)|salasana|lösenord"
    r"|пароль|密码|密碼|口令|パスワード|비밀번호)"
    r"|(?P<secret>secret)|(?P<token>token)|(?P<credential>credential)|(?P<key>key))"
    r"s?(?:[_-]?(?:value|base64|b64|production|prod|staging|live|dev|\d{1,2}))?(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
# Words before "key" that make it secret, and words before "token" or "key" that make it none.
_KEY_QUALIFIERS = (
    "api", "access", "auth", "authorization", "private", "secret", "signing", "sign", "encryption", "encrypt",
    "decryption", "master", "account", "storage", "shared", "service", "admin", "app", "application", "client",
    "consumer", "deploy", "license", "hmac", "jwt", "crypto", "webhook", "subscription", "server", "write",
    "ingest", "integration", "project", "root", "gpg", "ssh",
)  # fmt: skip
_NOT_SECRET = frozenset({
    "public", "publishable", "page", "pagination", "next", "continuation", "cursor", "sync", "resume", "no", "not",
    "without", "cache", "anon", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "stop", "end", "start", "special",
    "idempotency", "request", "host", "max", "min", "num", "total", "prompt", "completion", "input", "output", "used",
    "cached", "change", "lock", "update", "sequence", "upload",
})  # fmt: skip
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)\Z")
_OPERATOR = re.compile(
    r"""(?P<close>\\{0,3}["'`]|\*\*)?\]?(?:"""
    r""",\s{0,40}\\{0,3}["']?[Vv]alue\\{0,3}["']?\s{0,4}[:=]\s{0,4}"""  # {"name": "X", "value": "…"}
    r"""|[ \t]{0,4}\r?\n[ \t]{0,32}value:[ \t]{1,4}"""  # - name: X, and its value on the next line
    r"""|[ \t]value=(?=["'])"""  # <add key="X" value="…"/>
    r"""|(?P<call>\([ \t]?(?=["']))"""  # setPassword("…"), and SQL's PASSWORD('…')
    r"""|[ \t]{0,8}:[ \t]{0,4}(?:str|String|string|Optional\[str\]|str \| None)[ \t]{0,4}=[ \t]{0,4}"""
    r"""|[ \t]{0,12}(?P<op>:=|=>|->|==|!=|=|:|：|\||>)[ \t]{0,12}(?:\*\*[ \t]{0,2})?"""
    r"""|(?:[ \t](?:for|of|on|to|in|at)(?:[ \t]the)?[ \t][\w.-]{1,32})?"""
    r"""[ \t]{1,4}(?P<verb>is now|is|was|to|是)[ \t:]{1,3}"""
    r"""|(?<=[Ww][Oo][Rr][Dd])[ \t]{1,4}(?=["'][^"'\s]{1,256}["'])"""  # SQL: password 'x'
    r"""|(?P<verb2>是|为))"""
)
_ENV_INSTRUCTION = re.compile(r"(?:\A|\n)ENV [A-Z0-9_]{0,40}\Z")  # a Dockerfile's: ENV NAME value
_FLAG = re.compile(r"--[A-Za-z][A-Za-z-]{0,40}$")
_QUOTED = re.compile(r"""(?:[rbfuRBFU]{0,2})(?P<q>\\{0,3}["'`])(?P<v>(?:(?!(?P=q))[^\r\n]){1,4096})(?P=q)""")
_BARE_RUN = re.compile(r"""[^\s"'`<>,;(){}\[\]\\&|，。、；]*""")
_PARAMETER = re.compile(r"&[A-Za-z_][\w.%-]{0,40}=")
_XML_VALUE = re.compile(r"[^<>\s]{1,512}(?=</)")
_CODE_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.|=)[A-Za-z_$][\w$]*)*\??\Z")
_WORDS_OF_CODE = re.compile(
    r"pass|pwd|secret|token|self|this|arg|param|value|user|input|config|env|key|form|data|field|none|null|true|false"
    r"|request|result|hash|default|string|text|credential|auth|get|raw|new|old|plain|name|type|utf|base64|sha\d|md5",
    re.IGNORECASE,
)
_FAMILY_KIND = {
    "password": "password",
    "secret": "secret",
    "token": "token",
    "credential": "credential",
    "key": "api-key",
}


def _kind_of_name(name: str) -> str:
    """Tell what kind of secret a member of this name holds; "" for a name that promises none."""
    for match in _NAME.finditer(name):
        if match.end() == len(name) and (kind := _kind_of_key(name, match)):
            return kind
    bare = name.strip().lower()
    if bare in {"authorization", "proxy-authorization"}:
        return "authorization"
    return "cookie" if bare in {"cookie", "set-cookie"} else ""


def _kind_of_key(text: str, match: re.Match[str]) -> str:
    family = match.lastgroup or ""
    if family == "password":
        return family
    before = text[max(0, match.start() - 32) : match.start()]
    if family in {"token", "key"}:
        trimmed = before[:-1] if before[-1:] in ("_", "-", ".", " ") else before
        last = _LAST_WORD.search(trimmed)
        word = last[0].lower() if last else ""
        if word in _NOT_SECRET or "public" in trimmed[-12:].lower():
            return ""
        if family == "key" and not word.endswith(_KEY_QUALIFIERS):
            return ""
    # "topsecret" is a word, "authtoken" a key
    if family in {"secret", "credential"} and match[0][0].islower() and before[-1:].isalpha() and before[-1:].islower():
        return ""
    owner = re.split(r"[^\w.\- ]", before)[-1].lower()
    for word, kind in SERVICE_KINDS:
        if word in owner:
            return kind
    return _FAMILY_KIND[family]


_MAY_FOLLOW_NAME = frozenset("\"'`\\*],\r\n\t :=-!|>(：是为")  # what an operator begins with


class _Place(NamedTuple):
    """Where the value of a name begins, and what led to it: an operator, a verb of prose, or a command line flag."""

    at: int
    op: str
    verb: bool = False
    flag: bool = False
    block: bool = False  # on a line of its own, below the name


class _BareRuns:
    """Ends of unquoted values. One long run is measured once, however many names stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._start = self._end = 0
        self.judged: Counter[int] = Counter()

    def end(self, at: int) -> int:
        if not self._start <= at < self._end:
            self._start, self._end = at, self._run_end(at)
            joined = 0
            while joined < 8 and self._end < len(self.text) and self.text[self._end] == "&":
                if self._end == at or _PARAMETER.match(self.text, self._end):
                    break
                self._end = self._run_end(self._end + 1)
                joined += 1
        self.judged[self._end] += 1
        return self._end

    def _run_end(self, at: int) -> int:
        return _end_of(_BARE_RUN, self.text, at, len(self.text))


def _assigned(text: str, lowered: str, policy: RedactPolicy) -> Iterator[_Span]:
    runs = _BareRuns(text)
    words = _PASSWORD_WORDS + _SECRET_WORDS
    for word in words if text.isascii() else words + _FOREIGN_WORDS:
        for at in _hits(lowered, word) if word in lowered else ():
            name = _NAME.match(text, at)
            place = _place(text, name) if name and text[name.end() : name.end() + 1] in _MAY_FOLLOW_NAME else None
            if name and place and (kind := _kind_of_key(text, name)):
                span = _value_span(text, name, place, runs, policy)
                if span:
                    yield _Span(*span, 1, kind)


def _place(text: str, name: re.Match[str]) -> _Place | None:
    """Find where the value after `name` begins; None when nothing is assigned."""
    before = _before(text, name.start(), 48)
    flag = "--" in before and bool(_FLAG.search(before + name[0]))
    instruction = name[0].isupper() and bool(_ENV_INSTRUCTION.search(before))
    if (flag or instruction) and text.startswith(" ", name.end()):
        return _Place(name.end() + 1, "=", flag=True)
    operator = None if text.startswith("=[REDACTED:", name.end()) else _OPERATOR.match(text, name.end())
    if not operator:
        return None
    verb = bool(operator["verb"] or operator["verb2"])
    if verb and name[0].lower() == "pass":  # "to pass x to y"
        return None
    if operator["call"] and not (before.endswith("set") or name[0].isupper()):
        return None
    if "arn:" in before and before.rfind("arn:") > max(
        map(before.rfind, " \n\t\"'")
    ):  # the name of a secret, not the secret
        return None
    op = operator["op"] or ""
    cell = text[operator.end() : operator.end() + 1]
    compares = op in {"==", "!=", "->"} or (op == "|" and not cell.isalnum() and cell != "`")
    return None if compares else _Place(operator.end(), op, verb, flag, "\n" in operator[0])


def _value_span(
    text: str, name: re.Match[str], place: _Place, runs: _BareRuns, policy: RedactPolicy
) -> tuple[int, int] | None:
    """Start and end of the value, if it looks like what its name promises."""
    family = name.lastgroup or ""
    password = family == "password"
    if place.op == ">":
        return _element_span(text, name, place, policy)
    env = place.op == "=" and text.startswith("=", name.end()) and _is_shouted(text, name)
    if quoted := _QUOTED.match(text, place.at):
        value = quoted["v"]
        worded = (password or (env and family == "secret")) and _is_words(value, policy, phrase=env)
        return quoted.span("v") if worded or _is_value(value, family, policy, loose=True) else None
    end = runs.end(place.at)
    if not 0 < end - place.at < policy.secret_max_chars or runs.judged[end] > policy.names_per_value:
        return None
    value = text[place.at : end].rstrip(".:!?*" if place.verb else ".:*")
    end = place.at + len(value)
    stands_bare = env or place.flag or place.verb
    if not _is_expression(value, text[end : end + 1], stands_bare=stands_bare) and _is_value(
        value, family, policy, loose=env or place.flag
    ):
        return place.at, end
    worded = (password or (env and family == "secret")) and _is_words(value, policy)
    stands = worded and (_is_passphrase(value) or _stands_for_words(text, name, place, end, env=env))
    return (place.at, end) if stands else None


def _element_span(text: str, name: re.Match[str], place: _Place, policy: RedactPolicy) -> tuple[int, int] | None:
    """Do what `_value_span` does, where the name stands in a tag of XML."""
    inner = _XML_VALUE.match(text, place.at)
    before = text[max(0, name.start() - 48) : name.start()]
    if not inner or "<" not in before:
        return None
    names_element = name.lastgroup == "password" and _IN_ELEMENT.search(before)
    good = _is_value(inner[0], name.lastgroup or "", policy, loose=True)
    return inner.span() if good or (names_element and _is_words(inner[0], policy)) else None


# Passwords that are words. Nothing about them looks secret: only where they stand tells.

_IN_ELEMENT = re.compile(r"<[\w.:-]{0,40}\Z")
_LINE_HEAD = re.compile(r"(?:\A|[\r\n]|\\n)[+-]?(?P<indent>[ \t]*)(?:[-*>][ \t]+)?(?:\*\*|[\"'])?[\w.-]{0,60}[ ]?\Z")
_LINE_REST = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:[\r\n]|\\[rn]|\Z)")
_PAIR_BEFORE = re.compile(r"(?:\A|[\s;&?\"'`])[\w.-]{1,40}=[^\s;&,()\"'`]{0,80}(?:[ ]|;[ ]?|&)(?:[A-Za-z]\w*[_.-])?\Z")
_PAIR_AFTER = re.compile(r"(?:[ ]|;[ ]?|&)[A-Za-z][\w. -]{0,40}=[^=\s]")
_QUOTE_BEFORE = re.compile(r"([\"'`])[\w.-]{0,40}\Z")
_ARGUMENT_AFTER = re.compile(r"(?:[\"'`\\|;&>)]|[ \t]*(?:\\n|[\r\n]|\Z)|[ \t]+(?:-|[|&;>\\#]))")
_FLAG_BEFORE = re.compile(r"(?:\A|[\s\"'`])--?[a-z][\w-]*[ =]\S+[ ]|[$#>] ")
_PASSPHRASE = re.compile(r"[A-Za-z]{3,}(?:-[A-Za-z]{3,}){2,}")
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_WORD_SIGNS = re.compile(r"[^\s\"'`<>{}()\[\]=,;|\\/]+")
_NAMES_ONE = frozenset(
    ["pass", "password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"]
)
# Words that tell of a password what it is, where it is or what to do with it; or that name a type. None is one.
_SAYS_WHAT = frozenset(
    """
    pass password passwords passwd passphrase passcode pwd pw passwort kennwort secret token credential credentials key
    str string text bytes byte int integer bool boolean float number object any optional varchar char type array
    none null nil undefined nullable true false yes no not empty blank unset missing default
    required require requires mandatory needed must may can should valid invalid incorrect correct wrong weak strong
    hidden masked stored hashed hash encrypted plain plaintext cleartext raw encoded protected redacted sensitive
    changed unchanged change reset forgot forgotten expired updated update set get new old current previous
    same different provided given supplied generated expected actual unknown disabled enabled allowed forbidden
    enter choose repeat confirm confirmation again please prompt ask only too short long
    self this arg args argument param params parameter value values var variable input output config conf settings
    options option opts env environ environment form data field fields props state request req response result
    user username name email login auth account flag instead before after because when where which from with
    strict error errors failed failure success validation validator policy rule rules min max length
    obligatoire requis erforderlich falsch ungültig vergessen oublié obligatoria obligatorio requerida olvidada
    """.split()  # noqa: SIM905 - as a list of seventy lines nobody could read it
)


def _before(text: str, at: int, count: int) -> str:
    """Return what stands before `at`; an ellipsis in front where it was cut, so that nothing takes it for the start."""
    return text[:at] if at <= count else "…" + text[at - count : at]


def _stands_for_words(text: str, name: re.Match[str], place: _Place, end: int, *, env: bool) -> bool:
    """Whether an unquoted value stands where files and shells hold literals, and code would hold no bare word."""
    after = text[end : end + 1]
    before = _before(text, name.start(), 160)
    if after and after in "([{<":
        return False
    if env or place.block:
        return not (after == ")" and env and "(" in before[-64:])
    if place.flag:
        line = before[before.rfind("\n") + 1 :]
        glued = place.op == "=" and text[place.at - 1] == "="
        return glued or bool(_ARGUMENT_AFTER.match(text, end) or _FLAG_BEFORE.search(line))
    return not place.verb and (_is_setting(text, before, place, end) or _is_pair(text, before, place, end))


def _is_setting(text: str, before: str, place: _Place, end: int) -> bool:
    """Whether name and value fill a line, as in YAML and other files of settings."""
    head = _LINE_HEAD.search(before) if place.op in {":", "：", "="} else None
    if not head or not _LINE_REST.match(text, end, end + 256):
        return False
    if _MIXED_WORD.search(text, place.at, end):
        return True
    # In code, an assignment is hardly ever so far to the left, and what begins with a capital letter is a type.
    return not head["indent"] if place.op == "=" else not text[place.at].isupper()


def _is_pair(text: str, before: str, place: _Place, end: int) -> bool:
    """Whether it is one of several `name=value`, as in connection strings, query strings and logs, or quoted as one."""
    if place.op != "=" or text[place.at - 1] != "=":
        return False
    quote = _QUOTE_BEFORE.search(before)
    if (quote and text[end : end + 1] == quote[1]) or _PAIR_BEFORE.search(before):
        return True
    return bool(_PAIR_AFTER.match(text, end))


_MIXED_WORD = re.compile(r"[a-z][-+!][a-z]")


def _is_passphrase(value: str) -> bool:
    """Whether it is of three words or more joined by hyphens: even in a sentence hardly anything else is."""
    return len(value) >= 14 and bool(_PASSPHRASE.fullmatch(value))


def _is_words(value: str, policy: RedactPolicy, *, phrase: bool = False) -> bool:
    """Whether `value` may be a password made of words: it is no path, no reference, and says nothing of a password.

    `phrase`: blanks may stand in it.
    """
    value = _MARKER.sub("", value) if "[REDACTED:" in value else value
    if not policy.password_chars <= len(value) <= policy.password_max_chars or _is_template(value):
        return False
    words = value.split(" ") if phrase else [value]
    if not all(_WORD_SIGNS.fullmatch(word) for word in words) or _PATH_OR_URL.match(value) or not value[0].isalnum():
        return False
    if not any(map(str.isalpha, value)) or _DOTTED.fullmatch(value) or value.endswith(":"):
        return False
    segments = [segment.lower() for segment in _SEGMENT.findall(value)]
    said = sum(segment in _SAYS_WHAT for segment in segments)
    return 2 * said < max(1, len(segments)) and _NAMES_ONE.isdisjoint(segments)


_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+")


def _is_expression(value: str, after: str, *, stands_bare: bool) -> bool:
    """Whether an unquoted value is code: a call, or (where words do not stand bare) the name of something."""
    if not _CODE_NAME.match(value):
        return False
    if after and after in "([{<":
        return True
    named = _WORDS_OF_CODE.search(value) or "." in value or not any(map(str.isdigit, value))
    return bool(named) and not stands_bare


def _is_shouted(text: str, name: re.Match[str]) -> bool:
    """Whether KEY=value stands as in an environment file or a shell: capitals only, where words need no quotes."""
    before = text[max(0, name.start() - 1) : name.start()]
    return name[0].isupper() and (before.isupper() or before in {"", "_", " ", "\n", ";"})


def _is_value(text: str, family: str, policy: RedactPolicy, *, loose: bool) -> bool:
    """Whether `text` looks like a `family`. `loose`: its form (quoted, shouted) already speaks for it."""
    value = _MARKER.sub("", text) if "[REDACTED:" in text else text
    if _is_template(value):
        return False
    return _is_password(value, policy, loose=loose) if family == "password" else _is_assigned_secret(value, policy)


def _is_password(value: str, policy: RedactPolicy, *, loose: bool) -> bool:
    if not policy.password_chars <= len(value) <= policy.password_max_chars or any(map(str.isspace, value)):
        return False
    if _PATH_OR_URL.match(value) or (loose and re.fullmatch(r"[A-Za-z]+(?:[_.-][A-Za-z]+)+\d?", value)):
        return False
    letters = any(map(str.isalpha, value))
    digits = any(map(str.isdigit, value))
    symbols = any(char in "!@#$%^&*+~?" for char in value)
    if letters and (digits or symbols):
        return True
    return digits and len(value) >= 6 and loose and value.isascii() and value.isdigit()


_PATH_OR_URL = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,16}://|[.~]{0,2}/[A-Za-z._-]{2,}(?:[/.]|\Z)|[A-Za-z]:\\|\d{4}-\d\d-\d\d)"
)


_INDEXED = re.compile(r"[A-Za-z]\[-?\w*\]")


def _is_assigned_secret(value: str, policy: RedactPolicy) -> bool:
    if len(value) < policy.assigned_chars or any(map(str.isspace, value)) or _PATH_OR_URL.match(value):
        return False
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)) or not value.isascii():
        return False
    if "a-z" in value or "0-9" in value or _INDEXED.search(value):  # a regular expression, an expression
        return False
    return _bits(value) >= policy.assigned_bits and _turns(value) >= policy.assigned_turns


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


def _runs(text: str, dense: list[tuple[int, int]], policy: RedactPolicy) -> Iterator[_Span]:
    previous_end = -1
    long = [span for span in dense if span[1] - span[0] >= policy.token_chars]
    for start, end in long:
        yield from _shaped(SCANS, text, (start, min(len(text), end + 1)), policy)
    for start, end in chain.from_iterable(_long_runs(text, _RUN, _RUN_MORE, *span) for span in long):
        yield from _shaped(RUN_RULES, text, (start, end), policy)
        wrapped = previous_end >= 0 and text[previous_end:start].strip("\r\n\t \"'\\+>|#*") in {"", "n"}
        previous_end = end
        if wrapped or _wraps_on(text, end):
            continue
        for piece in _long_runs(text, _RUN_PIECE, _RUN_PIECE_MORE, start, end):
            if _is_nameless_secret(text, *piece, policy):
                padding = next((count for count in (2, 1) if text.startswith("=" * count, piece[1], end)), 0)
                yield _Span(piece[0], piece[1] + padding, 2, "high-entropy")


_NEXT_LINE_OF_DATA = re.compile(r"(?:\\[nr]|[\"'\\+\s>|#*])*(?:\n|\\n)[\s\"'>|#*+]{0,80}[A-Za-z0-9+/_=-]{32}")


def _shaped(
    rules: tuple[tuple[str, re.Pattern[str]], ...], text: str, within: tuple[int, int], policy: RedactPolicy
) -> Iterator[_Span]:
    for kind, pattern in rules:
        for match in _scan(pattern, text, 128, *within):
            if _bits(match[0]) >= policy.prefixed_bits:
                yield _Span(match.start(), match.end(), 0, kind)


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
    if _turns(value) < policy.token_turns or _bits(value) < policy.token_bits:
        return False
    return not text.startswith(("...", "…"), end) and not _is_explained(text, start) and not _is_placeholder(value)


def _is_explained(text: str, start: int) -> bool:
    """Whether what stands before says that the run is a hash, an address or other data."""
    before = text[max(0, start - 300) : start]
    if _HASH_BEFORE.search(before) or "base64," in before[-8:]:
        return True
    word = before[max(map(before.rfind, " \n\t\"'<>`")) + 1 :]
    return "://" in word or "arn:" in word


# Cards: grouped as they are printed, of a known issuer, with a valid check digit.

_CARD = re.compile(
    # the first digit comes first, because a search is fast only where a pattern begins with characters
    r"[3-6](?:(?<![\w.-].)|(?<=\\[nrt].))(?<![0-9A-F]{4}[ -].)"
    r"(?:\d{3}([ -])\d{4}\1\d{4}\1\d{4}|(?<=3)[47]\d\d([ -])\d{6}\2\d{5})"
    r"(?!\w|[ -][0-9A-F]{4}(?!\w))"
)


def _cards(text: str) -> Iterator[_Span]:
    for match in _scan(_CARD, text, 64):
        digits = [int(char) for char in match[0] if char.isdigit()]
        doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
        if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0:
            yield _Span(match.start(), match.end(), 1, "card-number")


# What a value looks like.

_PLACEHOLDER_SIGNS = (
    "xxxx", "***", "...", "…", "•••", "____", "------", "your", "example", "placeholder", "replace", "redacted",
    "dummy", "insert", "todo", "sample", "00000000", "11111111",
    *(first + between + then
      for first, then in (("change", "me"), ("change", "it"), ("goes", "here"), ("not", "set"))
      for between in ("", "-", "_", " ", ".")),
    *("not" + first + "a" + then + "real" for first in ("", "-", "_", " ") for then in ("", "-", "_", " ")),
)  # fmt: skip
_IN_ANGLES = re.compile(r"<[^<>]{0,64}>")
_TEMPLATE_PART = re.compile(
    r"[$%{<#@](?:(?<=\$)[{(]|(?<=\$)\$?[A-Za-z_]\w*\}?\Z|(?<=\{)\{|(?<=%)[(sdrv]|(?<=\{)[\w.:!]{0,64}\}"
    r"|(?<=<)%|(?<=#)\{|(?<=@)@)",
    re.IGNORECASE,
)
_TEMPLATE_WHOLE = re.compile(
    r"<|%\w+%\Z|\$\d\Z|\*+\Z|:\w+\Z"
    r"|(?:user|my|the)?_?(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)s?\Z"
    r"|!(?:vault|secret|env|ref|sub|getatt|reference|include|importvalue)|\*[a-z_]+\Z|(?:required|nullable|string)[|:]"
    r"|(?:none|null|nil|true|false|string|str|undefined)\Z",
    re.IGNORECASE,
)


def _is_placeholder(value: str) -> bool:
    """Whether it says that a secret would stand here, within its first 256 characters."""
    value = value[:256].lower()
    for sign in _PLACEHOLDER_SIGNS:
        if sign in value:
            return True
    return "<" in value and _IN_ANGLES.search(value) is not None


def _is_template(value: str) -> bool:
    value = value[:256]
    return bool(_TEMPLATE_WHOLE.match(value) or _TEMPLATE_PART.search(value)) or _is_placeholder(value)


def _looks_random(value: str, policy: RedactPolicy) -> bool:
    return (
        any(map(str.isdigit, value)) and _bits(value) >= policy.assigned_bits and _turns(value) >= policy.assigned_turns
    )


def _bits(value: str) -> float:
    """Shannon entropy in bits per character, over the frequencies within the value.

    >>> _bits("abab")
    1.0
    """
    if not value:
        return 0.0
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _turns(value: str) -> float:
    """Return the share of neighbouring letters and digits that differ in class (lower, upper, digit).

    Words have few turns, random characters many, whatever the alphabet's size; punctuation is not counted.
    """
    pairs = turns = 0
    last = ""
    for char in value:
        now = "0" if char.isdigit() else "a" if char.islower() else "A" if char.isupper() else ""
        if now and last:
            pairs += 1
            turns += now != last
        last = now
    return turns / pairs if pairs else 0.0
