"""Credentials that what surrounds them gives away: key blocks, URLs, headers, and arguments of commands."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from scrubjay.policy import DEFAULT, RedactPolicy
from scrubjay.redaction.spans import MARKER, Span
from scrubjay.redaction.values import is_placeholder, is_template, looks_random
from scrubjay.redaction.windows import find, hits, holds

# Private keys: from BEGIN to END, or as far as a key goes if the END was cut off.

_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY_KEY = re.compile(r"Private-Lines: \d{1,4}")
_KEY_LINE = re.compile(
    r"(?:\s|\\[nrt]|[\"'+>|#*,]|\\{1,3}[\"'])*"
    r"(?P<line>(?:Proc-Type|DEK-Info|Version|Comment|Hash|Private-MAC): [^\n\\]{0,120}|[A-Za-z0-9+/=]{1,16384})"
)
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{24}")


def private_keys(text: str, policy: RedactPolicy) -> Iterator[Span]:
    """Blocks that hold a private key."""
    for anchor, begin in (("-----BEGIN ", _KEY_BEGIN), ("Private-Lines: ", _PUTTY_KEY)):
        done = 0
        for at in hits(text, anchor):
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
                yield Span(at, end, 0, "private-key")


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


def urls(text: str) -> Iterator[Span]:
    """Passwords and tokens before the @ of a URL."""
    for at in hits(text, "://"):
        if match := _URL_PASSWORD.match(text, at):
            if not is_template(match["s"]) and not MARKER.fullmatch(match["s"]):
                yield Span(*match.span("s"), 1, "url-password")
        elif (match := _URL_TOKEN.match(text, at - text.startswith("https", max(0, at - 5)))) and any(
            map(str.isdigit, match["s"])
        ):
            yield Span(*match.span("s"), 1, "url-token")


# Headers.

_AUTHORIZATION = re.compile(
    r"""authorization(?:\\{0,3}["'`])?\s{0,4}[:=,]\s{0,4}(?:\\{0,3}["'`])?"""
    r"""(?P<scheme>basic|bearer|token|apikey|api-key|key|ssws|bot|negotiate|oauth)?[ \t]{0,4}"""
    r"""(?P<s>[A-Za-z0-9._~+/=:|-]{8,4096})""",
    re.IGNORECASE,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{0,4096}")
_BEARER = re.compile(r"bearer[ \t]{1,4}(?P<s>[A-Za-z0-9._~+/=|-]{16,4096})", re.IGNORECASE)
_COOKIE = re.compile(
    r"cookie(?:\\{0,3}[\"'])?:[ \t]{0,4}(?:\\{0,3}[\"'])?(?P<s>[^\s\"'`\\<>{}()]{1,4096})", re.IGNORECASE
)
_NETRC = re.compile(r"machine[ \t\n]{1,4}\S{1,128}\s{1,8}login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<s>\S{4,256})")


def headers(text: str, lowered: str, policy: RedactPolicy) -> Iterator[Span]:
    """Values of Authorization and Cookie headers, and passwords of a netrc file."""
    if holds(lowered, "authorization") or holds(lowered, "bearer") or holds(lowered, "cookie"):
        yield from _authorized(text, lowered, policy)
    for at in hits(text, "machine") if holds(text, "password") else ():
        match = _NETRC.match(text, at)
        if match and not is_template(match["s"]):
            yield Span(*match.span("s"), 1, "password")


def _authorized(text: str, lowered: str, policy: RedactPolicy) -> Iterator[Span]:
    for at in hits(lowered, "authorization"):
        match = _AUTHORIZATION.match(text, at)
        if match and _is_authorization(match["scheme"], match["s"], policy):
            yield Span(*match.span("s"), 1, "authorization")
    for at in hits(lowered, "bearer"):
        match = _BEARER.match(text, at)
        if match and not is_placeholder(match["s"]) and looks_random(match["s"], policy):
            yield Span(*match.span("s"), 1, "bearer-token")
    for at in hits(lowered, "cookie"):
        match = _COOKIE.match(text, at)
        if match and "=" in match["s"]:
            yield from _cookies(text, match.start("s"))


def _is_authorization(scheme: str | None, value: str, policy: RedactPolicy) -> bool:
    if is_placeholder(value):
        return False
    if scheme and scheme.lower() == "basic":
        head = _BASE64.match(value)  # a full stop, or what an identifier goes on with, may stand behind it
        letters = head[0] if head else ""
        try:
            return b":" in base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
    return looks_random(value, policy) and len(value) >= policy.assigned_chars


_COOKIE_PAIR = re.compile(r"[ \t]{0,2}[^\s=;,\"'<>]{1,128}=(?P<s>[^\s;,\"'`\\<>]{1,4096})(?P<more>;)?")


def _cookies(text: str, at: int) -> Iterator[Span]:
    while pair := _COOKIE_PAIR.match(text, at):
        value = pair["s"]
        if looks_random(value, DEFAULT.redact) and len(value) >= 16:
            yield Span(*pair.span("s"), 1, "cookie")
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


def commands(text: str, lowered: str) -> Iterator[Span]:
    """Passwords that are arguments of commands, and those of PostgreSQL's password file."""
    for anchor, lead in _COMMANDS:
        at = find(lowered, anchor)
        while at >= 0:
            following = find(lowered, anchor, at + 1)
            limit = at + _COMMAND_CHARS
            line_end = text.find("\n", at, limit)
            stop = min(end for end in (following, limit, line_end) if end >= 0)
            led = lead.search(text, at + len(anchor) - anchor.endswith(" "), stop)
            value = _ARGUMENT.match(text, led.end()) if led else None
            if value and anchor.startswith("identified") and "user" not in lowered[max(0, at - 200) : at]:
                value = None  # "identified by 'x'" is English as well
            if value and not is_template(value[0]):
                yield Span(*value.span(), 1, "password")
            at = following
    for port in _PGPASS_PORTS:
        for at in hits(text, port) if holds(text, port) else ():
            start = text.rfind("\n", max(0, at - 130), at) + 1 or max(0, at - 130)
            match = _PGPASS.match(text, start)
            if match and not is_template(match["s"]):
                yield Span(*match.span("s"), 1, "password")
