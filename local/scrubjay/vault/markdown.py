"""A vault file as lines, sections and entries. Pure.

An entry is an item of a list, or another block (paragraph, code, quotation). The name of its section is its headings
from the outermost in, without the title that a file begins with. Lines that are no entry are kept as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BOM = "\ufeff"
PATH_MARK = " / "
CONFLICT = "<!-- scrubjay: the memory of the entry above was changed too. This is yours: keep one, delete this note -->"
"""Stands before a person's text that is kept beside the store's."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_ENDING = re.compile(r"(?:\r\n|\r|\n)\Z")
_MARKER = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-+*]|\d{1,9}[.)])(?P<space>[ \t]*)")
_COMMENT = re.compile(r" {0,3}<!--.*?-->[ \t]*", re.DOTALL)
MOST_INDENT = 4
"""Columns after a list's marker at most: with more, what follows is code, one column in."""


class Form(StrEnum):
    """How an entry is written."""

    ITEM = "item"
    PARAGRAPH = "paragraph"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry: its section, its text without the list's marker, and the lines [start, end) it stands on.

    `mark` is what stands before the text of a list's item, "" of another block.
    """

    section: str
    text: str
    form: Form
    start: int
    end: int
    mark: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether this is a person's text that is kept beside the store's until somebody decides."""
        return self.text.startswith(CONFLICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading: its section, its level, and the lines [start, end) it stands on. A title has the section ""."""

    section: str
    level: int
    start: int
    end: int
    is_title: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file. `lines` have no endings; `endings` are theirs, the last of which may be ""."""

    lines: tuple[str, ...]
    endings: tuple[str, ...]
    entries: tuple[Entry, ...]
    headings: tuple[Heading, ...]
    begins: int = 0
    """The first line after the frontmatter."""
    has_bom: bool = False

    @property
    def ending(self) -> str:
        """How most lines end."""
        found = Counter(one for one in self.endings if one)
        return found.most_common(1)[0][0] if found else "\n"

    @property
    def text(self) -> str:
        """The whole file again."""
        joined = "".join(line + ending for line, ending in zip(self.lines, self.endings, strict=True))
        return BOM + joined if self.has_bom else joined


def normal(text: str) -> str:
    """Return a text as it compares: line breaks alike, no space at the ends of lines, nothing around it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip(" \t") for line in lines).strip(" \t\n")


def parse(text: str) -> Document:
    """Read a file."""
    has_bom = text.startswith(BOM)
    rows = _LINE.findall(text[len(BOM) :] if has_bom else text)
    endings = tuple(found[0] if (found := _ENDING.search(row)) else "" for row in rows)
    lines = tuple(row[: len(row) - len(ending)] for row, ending in zip(rows, endings, strict=True))
    begins = _after_frontmatter(lines)
    source = "\n".join(("",) * begins + lines[begins:])
    entries, headings = _read(lines, _parser().parse(source), begins)
    return Document(lines=lines, endings=endings, entries=entries, headings=headings, begins=begins, has_bom=has_bom)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # a twentieth of a second of the daemon's start

    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable(["inline"])
    return parser


def _after_frontmatter(lines: tuple[str, ...]) -> int:
    """Return the number of the first line after a leading block between `---` lines, 0 where there is none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at in range(1, len(lines)) if lines[at].rstrip() in {"---", "..."}), 0)


def _read(lines: tuple[str, ...], tokens: list[Token], begins: int) -> tuple[tuple[Entry, ...], tuple[Heading, ...]]:
    entries: list[Entry] = []
    headings: list[Heading] = []
    above: list[tuple[int, str]] = []
    section = ""
    for token, after in pairwise((*tokens, None)):
        if token is None or token.map is None:
            continue
        start, end = token.map[0], min(token.map[1], len(lines))
        if token.type == "heading_open" and token.level == 0:
            level, title = int(token.tag[1:]), " ".join("" if after is None else after.content.split())
            is_title = level == 1 and not any(line.strip() for line in lines[begins:start])
            if not is_title:
                above = [(outer, name) for outer, name in above if outer < level] + [(level, title)]
                section = PATH_MARK.join(name for _, name in above)
            headings.append(Heading(section=section, level=level, start=start, end=end, is_title=is_title))
        elif token.type == "list_item_open" and token.level == 1:
            entry = _item(lines, section, start, end)
            if entry.text:
                entries.append(entry)
        elif token.level == 0 and token.type in _BLOCKS:
            end = _without_blank(lines, start, end)
            text = normal("\n".join(lines[start:end]))
            if text and not (token.type == "html_block" and _COMMENT.fullmatch("\n".join(lines[start:end]))):
                entries.append(Entry(section=section, text=text, form=_BLOCKS[token.type], start=start, end=end))
    return tuple(entries), tuple(headings)


_BLOCKS = {
    "paragraph_open": Form.PARAGRAPH,
    "fence": Form.OTHER,
    "code_block": Form.OTHER,
    "blockquote_open": Form.OTHER,
    "html_block": Form.OTHER,
}


def _without_blank(lines: tuple[str, ...], start: int, end: int) -> int:
    """Return where a block ends that has no blank lines at its end."""
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _item(lines: tuple[str, ...], section: str, start: int, end: int) -> Entry:
    end = _without_blank(lines, start, end)
    found = _MARKER.match(lines[start])
    mark, space = ("", "") if found is None else (found["indent"] + found["mark"], found["space"])
    first = lines[start][len(mark) + len(space) :]
    width = columns(mark)
    offset = columns(mark + space)
    if not first.strip() or offset - width > MOST_INDENT:
        offset = width + 1
    body = [first, *(outdented(line, offset) for line in lines[start + 1 : end])]
    return Entry(section=section, text=normal("\n".join(body)), form=Form.ITEM, start=start, end=end, mark=mark)


def columns(text: str) -> int:
    """Return how many columns a text takes, a tab reaching to the next fourth one."""
    return len(text.expandtabs(4))


def outdented(line: str, columns_: int) -> str:
    """Return a line without at most so many columns of white space at its beginning."""
    at = 0
    while at < len(line) and line[at] in " \t" and columns(line[: at + 1]) <= columns_:
        at += 1
    return line[at:]
