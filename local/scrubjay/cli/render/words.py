"""Text, numbers and ids in the form that people read. Plain strings; no library for terminals."""

from __future__ import annotations

SHORT_ID = 16
"""Characters of an id that are shown: its ten of time and six of chance, which a batch of one millisecond needs."""

_TAGS = range(0xE0000, 0xE0080)
_UNSEEN = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """Return text that cannot drive or deceive the terminal: controls, direction overrides and tags become `�`.

    Line breaks and tabs stay. What is remembered was said by someone, and may be written to do just that.
    """
    return "".join(character if _harmless(character) else "�" for character in text)


def _harmless(character: str) -> bool:
    if character in "\n\t":
        return True
    code = ord(character)
    return not (code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or character in _UNSEEN or code in _TAGS)


def one_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def short(id_: str) -> str:
    """Return the part of an id that people need."""
    return id_[:SHORT_ID]


def size(count: int) -> str:
    """Return "34.1 MB" (powers of ten, as disks are sold)."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return "1 memory", "1,204 memories"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
