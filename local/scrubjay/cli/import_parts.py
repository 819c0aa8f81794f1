"""What a file is imported as: itself, or the files that an archive, a database or a long list in it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scrubjay.cli.import_paths import HEAD_BYTES, READ_SUFFIXES, ImportFile, unread
from scrubjay.containers import archives, databases, elements

SPLIT_BYTES = 32 << 20
"""A JSON array of more is imported in pieces of so much: to read one takes ten times its size in memory."""

PROJECT_ROOT = ".project_root"
"""Where Gemini CLI says which folder the chats beside it are of."""


class Part(NamedTuple):
    """A part of a file: what to call it, its bytes, and its format where that is known.

    `reason` says why it is not read; it is empty for one that is. `place` is "" for the file itself.
    """

    name: str
    data: bytes
    format: str | None = None
    reason: str = ""
    place: str = ""


def parts(file: ImportFile, path: Path, *, named_format: bool) -> Iterator[Part]:
    """Yield the parts of a file, in order. Raises OSError, InvalidError and TooLargeError."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if archives.is_archive(head):
        for name, data in archives.files(path, READ_SUFFIXES):
            yield from _member(f"{file.name}/{name}", data, f"{path.resolve()}!{name}", named_format=named_format)
    elif databases.is_database(head):
        for part in databases.parts(path):
            yield Part(part.name, part.data, part.format, place=f"{path.resolve()}!{part.name}")
    else:
        yield from split(Part(file.name, path.read_bytes()))


def _member(name: str, data: bytes | None, place: str, *, named_format: bool) -> Iterator[Part]:
    """Yield a file of an archive, or why it is not read."""
    suffix = Path(name).suffix.lower()
    if data is None:
        yield Part(name, b"", reason=f"not a kind of file to import ({suffix or 'no suffix'})")
        return
    reason = unread(name, data[:HEAD_BYTES], named_format=named_format) if data.strip() else "empty_file"
    yield from split(Part(name, data, reason=reason, place=place))


def split(part: Part) -> Iterator[Part]:
    """Yield a part whole, or a long array in pieces."""
    if part.reason or len(part.data) <= SPLIT_BYTES or not elements.is_array(part.data):
        yield part
        return
    for piece in elements.pieces(part.data, SPLIT_BYTES):
        yield part._replace(data=piece)


def project_of(path: Path | None) -> str | None:
    """Return the folder that a session is of, where it stands in a file beside it and not in the session."""
    if path is None or path.parent.name != "chats":
        return None
    try:
        found = (path.parent.parent / PROJECT_ROOT).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return found.splitlines()[0][:4_096] if found else None
