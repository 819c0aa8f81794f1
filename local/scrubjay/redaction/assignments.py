"""Credentials assigned to a name: `DB_PASSWORD=…`, `"api_key": "…"`, "the password is …"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from scrubjay.policy import RedactPolicy
from scrubjay.redaction.rules import SERVICE_KINDS
from scrubjay.redaction.spans import MARKER, Span
from scrubjay.redaction.values import class_transitions, entropy, is_template
from scrubjay.redaction.windows import FIND_WINDOW, end_of, hits

# Assignments: a key whose name says what it holds, an operator, a value that looks the part.

_PASSWORD_WORDS = ("pass", "pwd", "pw", "kennwort", "wachtwoord", "contrasena", "senha", "haslo", "heslo", "salasana")
FOREIGN_WORDS = (
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


def kind_of_name(name: str) -> str:
    """Tell what kind of secret a member of this name holds; "" for a name that promises no secret."""
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


class _Sign(NamedTuple):
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
        return end_of(_BARE_RUN, self.text, at, len(self.text))


def assigned(text: str, lowered: str, policy: RedactPolicy) -> Iterator[Span]:
    """Values of names that say they hold a credential."""
    runs = _BareRuns(text)
    words = _PASSWORD_WORDS + _SECRET_WORDS
    is_long = len(lowered) > FIND_WINDOW
    for word in words if text.isascii() else words + FOREIGN_WORDS:
        for at in hits(lowered, word) if is_long or word in lowered else ():
            name = _NAME.match(text, at)
            sign = _sign(text, name) if name and text[name.end() : name.end() + 1] in _MAY_FOLLOW_NAME else None
            if name and sign and (kind := _kind_of_key(text, name)):
                span = _value_span(text, name, sign, runs, policy)
                if span:
                    yield Span(*span, 1, kind)


def _sign(text: str, name: re.Match[str]) -> _Sign | None:
    """Find where the value after `name` begins; None when nothing is assigned."""
    before = _before(text, name.start(), 48)
    flag = "--" in before and bool(_FLAG.search(before + name[0]))
    instruction = name[0].isupper() and bool(_ENV_INSTRUCTION.search(before))
    if (flag or instruction) and text.startswith(" ", name.end()):
        return _Sign(name.end() + 1, "=", flag=True)
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
    return None if compares else _Sign(operator.end(), op, verb, flag, "\n" in operator[0])


def _value_span(
    text: str, name: re.Match[str], sign: _Sign, runs: _BareRuns, policy: RedactPolicy
) -> tuple[int, int] | None:
    """Start and end of the value, if it looks like what its name promises."""
    family = name.lastgroup or ""
    password = family == "password"
    if sign.op == ">":
        return _element_span(text, name, sign, policy)
    env = sign.op == "=" and text.startswith("=", name.end()) and _is_shouted(text, name)
    if quoted := _QUOTED.match(text, sign.at):
        value = quoted["v"]
        worded = (password or (env and family == "secret")) and _is_words(value, policy, phrase=env)
        return quoted.span("v") if worded or _is_value(value, family, policy, loose=True) else None
    end = runs.end(sign.at)
    if not 0 < end - sign.at < policy.secret_max_chars or runs.judged[end] > policy.names_per_value:
        return None
    value = text[sign.at : end].rstrip(".:!?*" if sign.verb else ".:*")
    end = sign.at + len(value)
    stands_bare = env or sign.flag or sign.verb
    if not _is_expression(value, text[end : end + 1], stands_bare=stands_bare) and _is_value(
        value, family, policy, loose=env or sign.flag
    ):
        return sign.at, end
    worded = (password or (env and family == "secret")) and _is_words(value, policy)
    stands = worded and (_is_passphrase(value) or _stands_for_words(text, name, sign, end, env=env))
    return (sign.at, end) if stands else None


def _element_span(text: str, name: re.Match[str], sign: _Sign, policy: RedactPolicy) -> tuple[int, int] | None:
    """Do what `_value_span` does, where the name stands in a tag of XML."""
    inner = _XML_VALUE.match(text, sign.at)
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


def _stands_for_words(text: str, name: re.Match[str], sign: _Sign, end: int, *, env: bool) -> bool:
    """Whether an unquoted value stands where files and shells hold literals, and code would hold no bare word."""
    after = text[end : end + 1]
    before = _before(text, name.start(), 160)
    if after and after in "([{<":
        return False
    if env or sign.block:
        return not (after == ")" and env and "(" in before[-64:])
    if sign.flag:
        line = before[before.rfind("\n") + 1 :]
        glued = sign.op == "=" and text[sign.at - 1] == "="
        return glued or bool(_ARGUMENT_AFTER.match(text, end) or _FLAG_BEFORE.search(line))
    return not sign.verb and (_is_setting(text, before, sign, end) or _is_pair(text, before, sign, end))


def _is_setting(text: str, before: str, sign: _Sign, end: int) -> bool:
    """Whether name and value fill a line, as in YAML and other files of settings."""
    head = _LINE_HEAD.search(before) if sign.op in {":", "：", "="} else None
    if not head or not _LINE_REST.match(text, end, end + 256):
        return False
    if _MIXED_WORD.search(text, sign.at, end):
        return True
    # In code, an assignment is hardly ever so far to the left, and what begins with a capital letter is a type.
    return not head["indent"] if sign.op == "=" else not text[sign.at].isupper()


def _is_pair(text: str, before: str, sign: _Sign, end: int) -> bool:
    """Whether it is one of several `name=value`, as in connection strings, query strings and logs, or quoted alone."""
    if sign.op != "=" or text[sign.at - 1] != "=":
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
    """Whether `value` may be a password made of words: it is neither path nor reference, and does not name passwords.

    `phrase`: blanks may stand in it.
    """
    value = MARKER.sub("", value) if "[REDACTED:" in value else value
    if not policy.password_chars <= len(value) <= policy.password_max_chars or is_template(value):
        return False
    words = value.split(" ") if phrase else [value]
    if not all(_WORD_SIGNS.fullmatch(word) for word in words) or _PATH_OR_URL.match(value) or not value[0].isalnum():
        return False
    if not any(map(str.isalpha, value)) or _IDEOGRAPH.search(value) or _DOTTED.fullmatch(value) or value.endswith(":"):
        return False
    segments = [segment.lower() for segment in _SEGMENT.findall(value)]
    said = sum(segment in _SAYS_WHAT for segment in segments)
    return 2 * said < max(1, len(segments)) and _NAMES_ONE.isdisjoint(segments)


_IDEOGRAPH = re.compile("[\u2e80-\u9fff\uac00-\ud7af]")  # of these a whole sentence has no blank
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
    value = MARKER.sub("", text) if "[REDACTED:" in text else text
    if is_template(value):
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
    return entropy(value) >= policy.assigned_entropy and class_transitions(value) >= policy.assigned_transitions
