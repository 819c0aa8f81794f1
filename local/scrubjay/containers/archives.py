"""Archives: an export that was downloaded as a ZIP file, as the files in it. Nothing of it is written to the disk.

An archive may be made to harm: a kilobyte that unpacks to a terabyte, names that lead out of a folder, files that are
not what their directory says. So what it claims is checked before anything is read, every file in it is read once to
its end before the first one is given out, and its names are names and nothing else.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from scrubjay_shared.errors import InvalidError, TooLargeError

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
MAX_FILES = 200_000
"""Files in an archive: exports hold an image a file, and some people have ten thousands."""

MAX_FILE_BYTES = 2 << 30
"""Bytes of one file: the conversations of years come to some hundred MB."""

MAX_RATIO = 200
"""How many times larger a file may be than it is in the archive: conversations come to 10, and DEFLATE can do 1,032."""

SMALL = 10 << 20
"""A file of so few bytes harms nobody, however well it is packed."""

PIECE = 1 << 20


def is_archive(head: bytes) -> bool:
    """Say whether a file begins as a ZIP archive does."""
    return head.startswith(MAGIC)


def files(path: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files of an archive by their names, in order; None for the bytes of one of another suffix.

    Raises InvalidError or TooLargeError, before the first file, for an archive that is damaged, encrypted, or made to
    harm.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = [info for info in sorted(archive.infolist(), key=lambda info: info.filename) if not info.is_dir()]
            wanted = [info for info in found if PurePosixPath(info.filename).suffix.lower() in suffixes]
            _check(path, found, wanted)
            for info in wanted:
                for _ in _pieces(path, archive, info):
                    pass
            for info in found:
                yield info.filename, b"".join(_pieces(path, archive, info)) if info in wanted else None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError) as e:
        raise InvalidError(
            f"{path.name} cannot be unpacked: it is damaged, encrypted, or packed in a way that scrubjay does not know",
            hint="download it again, or unpack it and import the folder",
        ) from e


def _check(path: Path, found: list[zipfile.ZipInfo], wanted: list[zipfile.ZipInfo]) -> None:
    """Raise for what an archive says of itself that no export would."""
    if len(found) > MAX_FILES:
        raise TooLargeError(
            f"{path.name} holds {len(found):,} files; {MAX_FILES:,} are the most",
            hint="unpack it and import what you need of it",
        )
    for info in wanted:
        if info.flag_bits & 1:
            raise InvalidError(
                f"{path.name} is encrypted", hint="unpack it with its password, and import the folder it gives"
            )
        if info.file_size > MAX_FILE_BYTES or (
            info.file_size > SMALL and info.file_size > MAX_RATIO * max(info.compress_size, 1)
        ):
            raise TooLargeError(
                f"{path.name}: {info.filename[:200]!r} would unpack to {info.file_size:,} bytes,"
                f" from {info.compress_size:,}",
                hint="no export is packed so; if you trust it, unpack it yourself and import the folder",
            )


def _pieces(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a file's bytes; never more than its archive said there are."""
    left = info.file_size
    with archive.open(info) as stream:
        while piece := stream.read(PIECE):
            left -= len(piece)
            if left < 0:
                raise TooLargeError(
                    f"{path.name}: {info.filename[:200]!r} is larger than the archive says",
                    hint="it is damaged, or made to harm; download it again",
                )
            yield piece
