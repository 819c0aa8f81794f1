"""What a value looks like: a placeholder, a template, or something random."""

from __future__ import annotations

import math
import re
from collections import Counter

from scrubjay.policy import RedactPolicy

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


def is_placeholder(value: str) -> bool:
    """Whether it says that a secret would stand here, within its first 256 characters."""
    value = value[:256].lower()
    for sign in _PLACEHOLDER_SIGNS:
        if sign in value:
            return True
    return "<" in value and _IN_ANGLES.search(value) is not None


def is_template(value: str) -> bool:
    """Whether something else is to be put in its place when the text is used."""
    value = value[:256]
    return bool(_TEMPLATE_WHOLE.match(value) or _TEMPLATE_PART.search(value)) or is_placeholder(value)


def looks_random(value: str, policy: RedactPolicy) -> bool:
    """Whether it has the digits, the entropy and the changes of class of an assigned secret."""
    if not any(map(str.isdigit, value)) or entropy(value) < policy.assigned_entropy:
        return False
    return class_transitions(value) >= policy.assigned_transitions


def entropy(value: str) -> float:
    """Shannon entropy in bits per character, over the frequencies within the value.

    >>> entropy("abab")
    1.0
    """
    if not value:
        return 0.0
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def class_transitions(value: str) -> float:
    """Return the share of neighbouring letters and digits that differ in class (lower, upper, digit).

    Words have few such changes, random characters many, whatever the alphabet's size; punctuation is not counted.
    """
    pairs = changes = 0
    last = ""
    for char in value:
        now = "0" if char.isdigit() else "a" if char.islower() else "A" if char.isupper() else ""
        if now and last:
            pairs += 1
            changes += now != last
        last = now
    return changes / pairs if pairs else 0.0
