"""What must happen to a text before its first write, in the order in which it must happen."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from scrubjay.policy import DEFAULT, RedactPolicy
from scrubjay.redaction.assignments import FOREIGN_WORDS, assigned, kind_of_name
from scrubjay.redaction.blocks import TAG_SIGNS, cut_out, injected_spans, may_hold_tag, private_spans
from scrubjay.redaction.shapes import CARD, DENSE, DENSE_CHARS, DENSE_MORE, anchored, cards, runs
from scrubjay.redaction.spans import MARKER, Span, marker, merged
from scrubjay.redaction.structured import commands, headers, private_keys, urls
from scrubjay.redaction.values import is_placeholder
from scrubjay.redaction.windows import holds, long_runs, lower_case
from scrubjay_shared.errors import InvalidError


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
    if not may_hold_tag(text):
        if not _may_hold_credential(text):
            return Cleaned(text=text)
        redaction = _redacted(text, policy)
        return Cleaned(text=redaction.text, redactions=redaction.found)
    removed_injected = removed_private = 0
    found: Counter[str] = Counter()
    for _ in range(policy.passes):
        before = text
        text, injected = cut_out(text, injected_spans)
        text, private = cut_out(text, private_spans)
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


def harmless(texts: Sequence[str]) -> list[bool]:
    """Say of each text whether `clean` surely changes nothing. Many are looked through as one, which is quicker.

    >>> harmless(["a jay hides acorns", "password: hunter2", "and finds them again"])
    [True, False, True]
    """
    found = [
        len(text) <= _SHORT and (text.isascii() or not (may_hold_tag(text) or _holds_sign(text))) for text in texts
    ]
    plain = [at for at, (text, may_pass) in enumerate(zip(texts, found, strict=True)) if may_pass and text.isascii()]
    for low in range(0, len(plain), _TOGETHER):
        run = plain[low : low + _TOGETHER]
        for place in _suspected([texts[at] for at in run]):
            found[run[place]] = False
    return found


def _suspected(texts: Sequence[str]) -> set[int]:
    """Return the places of some short ASCII texts that `may_hold_tag` or `_holds_sign` speak of.

    No sign crosses the end of a line, and each sees it as it sees the end of a text.
    """
    text = "\n".join(texts)
    starts = list(accumulate((len(one) + 1 for one in texts), initial=0))
    lowered = text.lower()
    found: set[int] = set()

    def look(find: Callable[[int], int]) -> None:
        at = find(0)
        while at >= 0:
            place = bisect_right(starts, at) - 1
            found.add(place)
            at = find(starts[place + 1])

    for sign in TAG_SIGNS:
        look(partial(text.find, sign))
    for sign in _SIGNS:
        look(partial(lowered.find, sign))
    look(partial(text.encode().translate(_UNBROKEN).find, b"x" * DENSE_CHARS))
    look(lambda start: -1 if (match := CARD.search(text, start)) is None else match.start())
    return found


def without_passages(text: str) -> str:
    """Return a text without private passages and our own words, credentials left in: before it is cut into parts.

    A passage that is cut in two has no mark in its second half.
    """
    if not may_hold_tag(text):
        return text
    return cut_out(cut_out(text, injected_spans)[0], private_spans)[0]


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
        if not may_hold_tag(held) and not _may_hold_credential(held):
            return held
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
            return marker(kind)
        return held

    def _members(self, held: dict[Any, Any], depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, inner in held.items():
            kept = key = self.text(str(name))
            copies = 1
            while kept in members:
                copies += 1
                kept = f"{key}#{copies}"
            members[kept] = self.value(inner, depth + 1, kind_of_name(str(name)))
        return members

    def _string(self, held: str, kind: str) -> str:
        rest = self.text(held)
        if not kind or not MARKER.sub("", rest).strip() or is_placeholder(rest):
            return rest
        self.found[kind] += 1
        return marker(kind)


def redact(text: str, policy: RedactPolicy = DEFAULT.redact) -> Redaction:
    """Replace every credential by `[REDACTED:kind]`; all else, line breaks included, stays as it was.

    `redact` of a redacted text changes nothing. Kinds are `rules.KINDS`. Total: any `str` is accepted, lone
    surrogates and NUL too.
    """
    return _redacted(text, policy) if _may_hold_credential(text) else Redaction(text=text)


def _redacted(text: str, policy: RedactPolicy) -> Redaction:
    found: Counter[str] = Counter()
    for _ in range(policy.passes):
        spans = merged(_spans(text, policy), text)
        if not spans:
            break
        parts: list[str] = []
        kept = 0
        for start, end, _, kind in spans:
            found[kind] += 1
            parts += (text[kept:start], marker(kind))
            kept = end
        text = "".join([*parts, text[kept:]])
    return Redaction(text=text, found=tuple(sorted(found.items())) if found else ())


def _spans(text: str, policy: RedactPolicy) -> Iterator[Span]:
    lowered = lower_case(text)
    dense = [*long_runs(text, DENSE, DENSE_MORE, 0, len(text))]
    if dense:
        yield from anchored(text, lowered, "\n".join([text[start:end] for start, end in dense]), policy)
        yield from runs(text, dense, policy)
    if holds(lowered, "-----begin ") or holds(lowered, "private-lines: "):
        yield from private_keys(text, policy)
    if holds(text, "://"):
        yield from urls(text)
    yield from headers(text, lowered, policy)
    yield from commands(text, lowered)
    yield from assigned(text, lowered, policy)
    yield from cards(text)


_TOGETHER = 256  # texts looked through as one: the price of a call is shared, and none keeps other threads waiting
_UNBROKEN = bytes(32 if chr(code).isspace() else ord("x") for code in range(256))
"""What shows runs without white space in an ASCII text."""
_SHORT = 2_048  # a text up to here is worth a look whether anything may be found; a longer one nearly always has it
_SIGNS = (
    # Of these one stands, in lower case, in every text without a long run of characters that any rule below fires on.
    "pass", "pw", "key", "token", "secret", "://", "credential", "authorization", "bearer", "cookie", "-----begin ",
    "private-lines: ", "curl", "mysql", "mariadb", "redis-cli", "mongo", " login ", "ldap", "identified", ":5432:",
    ":5433:", ":6432:", ":*:", "kennwort", "wachtwoord", "contrasena", "senha", "haslo", "heslo", "salasana",
)  # fmt: skip


def _may_hold_credential(text: str) -> bool:
    """Whether `redact` may change the text: False is certain, True is not."""
    return len(text) > _SHORT or _holds_sign(text)


def _holds_sign(text: str) -> bool:
    """Whether anything stands in the text that a rule fires on; the text may be several, one a line."""
    if max(map(len, text.split()), default=0) >= DENSE_CHARS:
        return True
    lowered = lower_case(text)
    for sign in _SIGNS:
        if sign in lowered:
            return True
    if not text.isascii() and any(word in lowered for word in FOREIGN_WORDS):
        return True
    return CARD.search(text) is not None
