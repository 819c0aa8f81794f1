"""working.md: a scratch pad that is one entry from its first line to its last. Pure."""

from __future__ import annotations

from scrubjay.vault.markdown import BOM, CONFLICT, Document, Entry, Form, normal, parse
from scrubjay.vault.rendering import Edits, Placed


def read(text: str) -> Document:
    """Read the file: one entry, and below it what is kept of a person's text beside the store's."""
    plain = parse("") if not text else parse(text.partition(CONFLICT)[0])
    whole = text.removeprefix(BOM)
    body, mark, kept = whole.partition(CONFLICT)
    rows = body.count("\n") + 1
    entries = [Entry(section="", text=normal(body), form=Form.OTHER, start=0, end=rows)] if normal(body) else []
    if mark:
        entries.append(Entry(section="", text=normal(mark + kept), form=Form.OTHER, start=rows, end=rows + 1))
    return Document(
        lines=(whole,),
        endings=("",),
        entries=tuple(entries),
        headings=(),
        has_bom=plain.has_bom or text.startswith(BOM),
    )


def render(document: Document, edits: Edits) -> tuple[str, tuple[Placed, ...]]:
    """Return the file with its changes, and its entries in order."""
    if edits.is_empty:
        return document.text, tuple(Placed(source=place, entry=one) for place, one in enumerate(document.entries))
    parts: list[tuple[int | str | None, str]] = []
    kept: list[str] = []
    for place, entry in enumerate(document.entries):
        if place in edits.kept:
            kept.append(edits.kept[place])
        if entry.is_kept:
            kept.append(normal(entry.text.removeprefix(CONFLICT)))
        elif place in edits.replaced:
            parts.append((place, normal(edits.replaced[place])))
        elif place not in edits.removed:
            parts.append((place, entry.text))
    parts += [(one.key, normal(one.text)) for one in edits.inserted]
    ending = "\r\n" if "\r\n" in document.lines[0] else "\n"
    text = "\n\n".join([*(part for _, part in parts), *([f"{CONFLICT}\n" + "\n\n".join(kept)] if kept else [])])
    whole = (text + "\n" if text else "").replace("\n", ending)
    placed = tuple(
        Placed(source=source, entry=Entry(section="", text=part, form=Form.OTHER, start=0, end=0))
        for source, part in parts
    )
    return (BOM if document.has_bom else "") + whole, placed
