"""What a file is imported as: itself, or the files that an archive, a database or a long list in it holds."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scrubjay.cli.import_paths import HEAD_BYTES, READ_SUFFIXES, ImportFile, unread
from scrubjay.containers import archives, databases, elements, files
from scrubjay.importers.export_format import is_export
from scrubjay.importers.shapes import is_lines
from scrubjay_shared.errors import TooLargeError

SPLIT_BYTES = 32 << 20
"""A JSON array of more is imported in pieces of so much: to read one takes ten times its size in memory."""

SESSION_HEAD = 1 << 20
"""Bytes in which a transcript says in which folder it began."""

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


def parts(file: ImportFile, path: Path, *, named_format: bool, most: int | None) -> Iterator[Part]:
    """Yield the parts of a file, in order, of at most so many bytes each where they can be cut.

    Raises OSError, InvalidError and TooLargeError.
    """
    files.require_file(path)
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if archives.is_archive(head):
        for name, data in archives.files(path, READ_SUFFIXES):
            place = f"{path.resolve()}!{name}"
            yield from _member(f"{file.name}/{name}", data, place, named_format=named_format, most=most)
    elif databases.is_database(head):
        for part in databases.parts(path):
            yield Part(part.name, part.data, part.format, place=f"{path.resolve()}!{part.name}")
    else:
        with files.opened(path) as unpacked:
            yield from of_stream(Part(files.unpacked_name(file.name), b"", file.format), unpacked, most)


def of_stream(part: Part, stream: files.Stream, most: int | None) -> Iterator[Part]:
    """Yield what a stream holds as a part, or as several. Of a file of lines, three at most are in memory."""
    data = stream.read() if most is None else stream.read(most + 1)
    if most is not None and len(data) > most and is_cut_in_lines(data):
        for piece in line_pieces(data, stream, most):
            yield part._replace(data=piece)
    else:
        yield from split(part._replace(data=data + stream.read()))


def _member(name: str, data: bytes | None, place: str, *, named_format: bool, most: int | None) -> Iterator[Part]:
    """Yield a file of an archive, or why it is not read."""
    suffix = Path(name).suffix.lower()
    if data is None:
        yield Part(name, b"", reason=f"not a kind of file to import ({suffix or 'no suffix'})")
        return
    reason = unread(name, data[:HEAD_BYTES], named_format=named_format) if data.strip() else "empty_file"
    yield from split(Part(name, data, reason=reason, place=place), most)


def split(part: Part, most: int | None = None) -> Iterator[Part]:
    """Yield a part whole, a long array in pieces, or a file of lines in pieces of at most so many bytes."""
    if not part.reason and most is not None and len(part.data) > most and is_cut_in_lines(part.data):
        for piece in line_pieces(part.data, io.BytesIO(), most):
            yield part._replace(data=piece)
    elif part.reason or len(part.data) <= SPLIT_BYTES or not elements.is_array(part.data):
        yield part
    else:
        for piece in elements.pieces(part.data, SPLIT_BYTES):
            yield part._replace(data=piece)


def require_small(part: Part, most: int | None) -> None:
    """Raise TooLargeError for a part of more bytes than are taken at once."""
    if most is not None and len(part.data) > most:
        raise TooLargeError(
            f"{part.name} is larger than the {most >> 20} MiB that the daemon takes at once",
            hint="scrubjay daemon stop, then import it again: without the daemon there is no such limit",
        )


def is_cut_in_lines(data: bytes) -> bool:
    """Say whether a file may be read in pieces: each line is a record."""
    return is_export(data) or is_lines(data)


def line_pieces(data: bytes, stream: files.Stream, most: int) -> Iterator[bytes]:
    """Yield pieces of a file of lines, of at most so many bytes. `data` begins it, and `stream` goes on.

    Each begins with the lines that say whose the file is: the first, and of a transcript the first that names a folder.
    """
    begin = data[: data.index(b"\n") + 1]
    if not is_export(data) and b'"cwd"' not in begin and (at := data.find(b'"cwd"', 0, SESSION_HEAD)) >= 0:
        begin += data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at) + 1 or len(data)]
    before = b""
    while data:
        end = len(data)
        if len(before) + len(data) > most:
            end = data.rfind(b"\n", 0, max(most - len(before), 0)) + 1
        if end == 0:
            raise TooLargeError(
                f"a record of the file has more than {most >> 20} MiB, which the daemon does not take",
                hint="scrubjay daemon stop, then import it again: without the daemon there is no such limit",
            )
        yield before + data[:end]
        data = data[end:]
        before = begin
        data += stream.read(max(most - len(before) + 1 - len(data), 0))


def project_of(path: Path | None) -> str | None:
    """Return the folder that a session is of, where it stands in a file beside it and not in the session."""
    if path is None or path.parent.name != "chats":
        return None
    try:
        found = (path.parent.parent / PROJECT_ROOT).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return found.splitlines()[0][:4_096] if found else None
