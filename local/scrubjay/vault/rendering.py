"""Changing entries of a file in place: everything else of it stays as the person wrote it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.vault.markdown import CONFLICT, Document, Entry, Form, normal, parse

SEPARATOR = "<!-- -->"
"""An empty comment, which keeps two blocks apart that would run together: it shows nothing."""

_RULE = re.compile(r"[-*_ \t]*")
_INDENTED = re.compile(r"(?: {2,}| *\t)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A new entry at the end of a section, which is made where there is none."""

    key: str
    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What to change. Entries are named by their place in `Document.entries`.

    `kept` are a person's texts, each to be kept below an entry, marked. With `drops_headings`, a heading goes with the
    last entry below it that is removed; one below which nothing stood before stays.
    """

    replaced: dict[int, str]
    removed: frozenset[int]
    kept: dict[int, str]
    inserted: tuple[Insertion, ...] = ()
    drops_headings: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        return not (self.replaced or self.removed or self.kept or self.inserted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An entry of the file as it is now: `source` is its place before or the key of its insertion; None: kept text."""

    source: int | str | None
    entry: Entry


def heading_text(name: str, most: int) -> str:
    """Return a topic as a heading can say it: one line, without what markdown reads as something else.

    >>> heading_text("  Food   sources ##", 40)
    'Food sources'
    """
    line = " ".join(name.replace("\0", " ").split())[:most].strip("# \t")
    return re.sub(r"[`<>\\]", "", line).strip("# \t")


def render(document: Document, edits: Edits) -> tuple[str, tuple[Placed, ...]] | None:
    """Return the file with its changes, and its entries in order; None where the file's form does not take them."""
    if edits.is_empty:
        placed = tuple(Placed(source=place, entry=entry) for place, entry in enumerate(document.entries))
        return document.text, placed
    for careful, drops in ((False, True), (True, True), (False, False), (True, False)):
        if drops > edits.drops_headings:
            continue
        text, expected = _rendered(document, replace(edits, drops_headings=drops), careful=careful)
        found = parse(text).entries
        if [(entry.section, entry.text) for entry in found] == [(section, text_) for _, section, text_ in expected]:
            return text, tuple(
                Placed(source=source, entry=entry) for (source, _, _), entry in zip(expected, found, strict=True)
            )
    return None


_Expected = list[tuple[int | str | None, str, str]]
_Waiting = Mapping[int, list[tuple[Insertion, str]]]


def _rendered(document: Document, edits: Edits, *, careful: bool) -> tuple[str, _Expected]:
    waiting, appended = _places(document, edits.inserted)
    dropped = _dropped(document, edits.removed, waiting) if edits.drops_headings else frozenset[int]()
    writing = _Writing(document, edits, waiting, dropped, careful=careful)
    for number, entry in enumerate(document.entries):
        writing.copy_to(entry.start)
        writing.insert()
        writing.entry(number, entry)
    writing.copy_to(len(document.lines))
    writing.insert()
    if len(document.lines) - 1 in dropped:
        while writing.lines and not writing.lines[-1].strip():
            writing.lines.pop()
    _sections(writing.lines, writing.expected, document, appended, careful=careful)
    return _joined(document, writing.lines), writing.expected


class _Writing:
    """The file as it is written: its lines, and the entries that are to be found in them."""

    def __init__(
        self, document: Document, edits: Edits, waiting: _Waiting, dropped: frozenset[int], *, careful: bool
    ) -> None:
        self.lines: list[str] = []
        self.expected: _Expected = []
        self._document = document
        self._edits = edits
        self._waiting = waiting
        self._dropped = dropped
        self._careful = careful
        self._at = 0

    def copy_to(self, end: int) -> None:
        """Copy the lines before one, with what is inserted between them."""
        while self._at < end:
            self.insert()
            if self._at not in self._dropped:
                self.lines.append(self._document.lines[self._at])
            self._at += 1

    def insert(self) -> None:
        """Write what is inserted here."""
        ones = self._waiting.get(self._at, ())
        for insertion, mark in ones:
            _append(self.lines, _item(insertion.text, mark, careful=self._careful), careful=self._careful)
            self.expected.append((insertion.key, insertion.section, normal(insertion.text)))
        if ones and self._follows.strip():
            self.lines.extend((SEPARATOR, "") if self._careful else ("",))

    @property
    def _follows(self) -> str:
        return self._document.lines[self._at] if self._at < len(self._document.lines) else ""

    def entry(self, number: int, entry: Entry) -> None:
        """Write an entry as it is to be, or leave it out."""
        self._at = entry.end
        if entry.start in self._dropped:
            return
        if number in self._edits.removed:
            _remove(self.lines, self._document, entry, careful=self._careful)
            return
        text = self._edits.replaced.get(number)
        if text is None:
            self.lines.extend(self._document.lines[entry.start : entry.end])
        else:
            _append(self.lines, _rewritten(entry, text, careful=self._careful), careful=self._careful)
            self.lines.extend(("", SEPARATOR, "") if self._careful else ())
        self.expected.append((number, entry.section, entry.text if text is None else normal(text)))
        if number in self._edits.kept:
            self._keep(entry, self._edits.kept[number])

    def _keep(self, entry: Entry, text: str) -> None:
        """Write a person's text below an entry, marked."""
        noted = f"{CONFLICT}\n{text}"
        is_item = entry.form is Form.ITEM
        self.lines.extend(() if is_item else ("",))
        _append(self.lines, _item(noted, entry.mark if is_item else "-", careful=self._careful), careful=self._careful)
        if self._careful:
            self.lines.extend(("", SEPARATOR, ""))
        elif self._follows.strip() and not is_item:
            self.lines.append("")
        self.expected.append((None, entry.section, normal(noted)))


def _places(document: Document, inserted: Sequence[Insertion]) -> tuple[_Waiting, list[Insertion]]:
    """Return before which line each insertion goes, with the mark of its list; and those that need a new section."""
    waiting: dict[int, list[tuple[Insertion, str]]] = {}
    appended: list[Insertion] = []
    for one in inserted:
        heading = next((h for h in document.headings if h.section == one.section and not h.is_title), None)
        title = next((h for h in document.headings if h.is_title), None)
        if one.section and heading is None:
            appended.append(one)
            continue
        start = heading.end if heading is not None else title.end if title is not None else document.begins
        limit = next((h.start for h in document.headings if h.start >= start), len(document.lines))
        inside = [entry for entry in document.entries if start <= entry.start < limit]
        place = inside[-1].end if inside else start
        mark = "-"
        if inside and inside[-1].form is Form.ITEM and inside[-1].mark.strip() in {"-", "+", "*"}:
            mark = inside[-1].mark
        waiting.setdefault(place, []).append((one, mark))
    return waiting, appended


def _dropped(document: Document, removed: frozenset[int], waiting: _Waiting) -> frozenset[int]:
    """Return the lines of the headings below which nothing is left, with what stands there: removed entries and blanks.

    A heading goes with the headings below it that all go. One below which no entry is removed stays, and so does what
    stands above it.
    """
    gone = {line for number in removed for line in range(document.entries[number].start, document.entries[number].end)}
    ends = [*(heading.start for heading in document.headings[1:]), len(document.lines)]
    dropped: set[int] = set()
    emptied: dict[int, bool] = {}
    for at in range(len(document.headings) - 1, -1, -1):
        heading, end = document.headings[at], ends[at]
        below = []
        for other in range(at + 1, len(document.headings)):
            if document.headings[other].level <= heading.level:
                break
            below.append(other)
        own = range(heading.end, end)
        is_bare = all(line in gone or not document.lines[line].strip() for line in own)
        takes = any(heading.end <= place <= end for place in waiting)
        loses = any(line in gone for line in own) or bool(below)
        emptied[at] = (
            not heading.is_title and is_bare and not takes and loses and all(emptied[other] for other in below)
        )
        if emptied[at]:
            dropped.update(range(heading.start, end))
    return frozenset(dropped)


def _sections(
    lines: list[str], expected: _Expected, document: Document, appended: Sequence[Insertion], *, careful: bool
) -> None:
    """Add the sections that were not there, at the end."""
    level = min((heading.level for heading in document.headings if not heading.is_title), default=2)
    by_section: dict[str, list[Insertion]] = {}
    for one in appended:
        by_section.setdefault(one.section, []).append(one)
    for section, ones in by_section.items():
        if careful and lines and lines[-1].strip():
            lines.extend(("", SEPARATOR))
        if lines and lines[-1].strip():
            lines.append("")
        lines.extend((f"{'#' * level} {section}", ""))
        for one in ones:
            _append(lines, _item(one.text, "-", careful=careful), careful=careful)
            expected.append((one.key, section, normal(one.text)))


def _append(lines: list[str], block: list[str], *, careful: bool) -> None:
    if careful and lines:
        lines.extend(("", SEPARATOR, ""))
    lines.extend(block)


def _item(text: str, mark: str, *, careful: bool) -> list[str]:
    """Return an entry as an item of a list."""
    first, *others = normal(text).split("\n")
    if careful or _RULE.fullmatch(first):
        mark = "+"  # nothing that begins with it is a rule
    indent = " " * (len(mark.expandtabs(4)) + 1)
    return [f"{mark} {first}", *(f"{indent}{line}" if line else "" for line in others)]


def _rewritten(entry: Entry, text: str, *, careful: bool) -> list[str]:
    """Return another text in the form of an entry: a paragraph stays one where the text is one."""
    if entry.form is Form.ITEM:
        return _item(text, entry.mark, careful=careful)
    new = parse(normal(text)).entries
    if len(new) == 1 and new[0].form is Form.PARAGRAPH and new[0].text == normal(text):
        return normal(text).split("\n")
    return _item(text, "-", careful=careful)


def _remove(lines: list[str], document: Document, entry: Entry, *, careful: bool) -> None:
    if careful:
        lines.extend(("", SEPARATOR, ""))
        return
    follows = document.lines[entry.end] if entry.end < len(document.lines) else ""
    if not follows.strip() and lines and not lines[-1].strip():
        lines.pop()
        if not lines:
            return
    after = next((line for line in document.lines[entry.end :] if line.strip()), "")
    if entry.form is not Form.ITEM and _INDENTED.match(after):
        lines.extend(("", SEPARATOR))


def _joined(document: Document, lines: list[str]) -> str:
    """Return lines as a file that ends as it did: with a line break or without one."""
    ending = document.ending
    kept = _endings_of(document)
    ended = not document.endings or bool(document.endings[-1])
    text = "".join(line + kept.get(line, ending) for line in lines)
    while not ended and text.endswith(("\n", "\r")):
        text = text[:-2] if text.endswith("\r\n") else text[:-1]
    return replace(document, lines=(), endings=()).text + text


def _endings_of(document: Document) -> dict[str, str]:
    """Return how lines end that do not end as most do, where all equal ones end so."""
    if len({one for one in document.endings if one}) <= 1:
        return {}
    found: dict[str, str] = {}
    for line, ending in zip(document.lines, document.endings, strict=True):
        found[line] = document.ending if found.setdefault(line, ending) != ending or not ending else ending
    return found
