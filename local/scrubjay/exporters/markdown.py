"""Notes of markdown, a file a memory, with frontmatter: what Obsidian, basic-memory and `scrubjay import` read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from scrubjay.importers.export_format import MemoryRecord
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Memory

SLUG = re.compile(r"[^\w]+")
SLUG_CHARS = 60
TITLE_CHARS = 80
FOLDER_OF_NONE = "person"


def notes(records: Iterable[MemoryRecord]) -> Iterator[tuple[str, bytes]]:
    """Yield each note's path within a folder, and its bytes. Memories that were put away or replaced are left out."""
    for record in records:
        memory = record.memory
        if memory.superseded_by is not None or memory.archived_at is not None:
            continue
        yield path_of(memory), note(record)


def path_of(memory: Memory) -> str:
    """Return where a note stands: a folder a project, and a name that is unique by the memory's id."""
    project = memory.resource_id or FOLDER_OF_NONE
    folder = slug(project.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]) or FOLDER_OF_NONE
    return f"{folder}/{slug(title_of(memory)) or 'memory'}-{memory.id[-8:].lower()}.md"


def note(record: MemoryRecord) -> bytes:
    """Return a note: its frontmatter, and the words of the memory below."""
    memory = record.memory
    fields = [
        ("title", title_of(memory)),
        ("permalink", f"scrubjay/{memory.id.lower()}"),
        ("type", memory.type.value),
        ("created", iso(memory.created_at)),
        ("modified", iso(memory.updated_at)),
        ("project", memory.resource_id or ""),
        ("valid_from", iso(memory.valid_from)),
        ("valid_to", iso(memory.valid_to)),
    ]
    lines = ["---", *(f"{key}: {scalar(value)}" for key, value in fields if value)]
    for key, values in (("aliases", record.aliases), ("tags", (memory.topic,) if memory.topic else ())):
        if values:
            lines += [f"{key}:", *(f"  - {scalar(value)}" for value in values)]
    text = "\n".join([*lines, "---", "", memory.content.strip(), ""])
    return text.encode("utf-8", "replace")


def title_of(memory: Memory) -> str:
    """Return what a note is called: the memory's name, else its first words."""
    if memory.name:
        return memory.name
    line = " ".join(next((row for row in memory.content.splitlines() if row.strip()), "").split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1].rstrip()}…"


def scalar(value: str) -> str:
    """Return a value of frontmatter in one line, in quotes. Quotes and backslashes in it become look-alikes."""
    plain = " ".join(value.split()).replace("\\", "/").replace('"', "'")
    return f'"{plain}"'


def slug(text: str) -> str:
    """Return the letters and digits of a text with "-" between them, as a file's name may have them."""
    return SLUG.sub("-", text.casefold()).strip("-")[:SLUG_CHARS].rstrip("-")


def iso(at: Millis | None) -> str:
    """Return a time in UTC; "" for none."""
    return "" if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")
