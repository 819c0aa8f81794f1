"""Files of other programs, opened for reading; one that its program packed once it was old as the file that it was.

Codex packs its rollouts with zstd after a week. What unpacks zstd is Python from 3.14 on, the package zstandard, or the
program zstd. A packed file may be made to harm, so what comes out of it is bounded by what went in.
"""

from __future__ import annotations

import gzip
import importlib
import shutil
import stat
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from scrubjay.containers.archives import MAX_FILE_BYTES, SMALL
from scrubjay.spawning import NO_WINDOW
from scrubjay_shared.errors import InvalidError, TooLargeError

ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
SUFFIXES = (".zst", ".gz")
MAX_RATIO = 2_000
"""How many times larger a file may be than it is packed: transcripts that repeat an image come to some hundred."""

WINDOW_LOG = 27
"""Of what zstd keeps in memory, 128 MiB: its own default, which its levels do not exceed."""

PIECE = 1 << 20
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class NoUnpackerError(InvalidError):
    """Nothing on this machine unpacks zstd."""


class Stream(Protocol):
    """What a file holds, from its beginning on."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, all that are left without a size; b"" at the end."""


def unpacked_name(name: str) -> str:
    """Return a file's name without the suffix of what packed it."""
    return name[: -len(suffix)] if (suffix := Path(name).suffix.lower()) in SUFFIXES else name


def require_file(path: Path) -> None:
    """Raise InvalidError for what is there and no file. Raises OSError for what is not there."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise InvalidError(
            f"{path} is {KINDS.get(stat.S_IFMT(mode), 'no file')}, and only files are read",
            hint="scrubjay import - reads what is piped to it; a folder is imported by scrubjay import FOLDER",
        )


@contextmanager
def opened(path: Path) -> Iterator[Stream]:
    """Yield what a file holds, unpacked if it is packed.

    Raises OSError; InvalidError for what is no file, is damaged or cannot be unpacked here; TooLargeError, also while
    it is read, for one that is made to harm.
    """
    require_file(path)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb", buffering=0))  # a program reads on from where it stands
        magic = file.read(len(ZSTD))
        file.seek(0)
        if magic.startswith(GZIP):
            yield _Unpacked(path, stack.enter_context(gzip.GzipFile(fileobj=file)))
        elif magic == ZSTD:
            yield _Unpacked(path, _zstd(path, file, stack))
        else:
            yield file


def _zstd(path: Path, file: Any, stack: ExitStack) -> Stream:
    """Return a stream of what is packed with zstd, by whatever can read it here."""
    for module in ("compression.zstd", "zstandard"):
        try:
            found: Any = importlib.import_module(module)
        except ImportError:
            continue
        if module == "zstandard":
            reader = found.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
            return _Refusing(stack.enter_context(reader.stream_reader(file, read_across_frames=True)), found.ZstdError)
        options = {found.DecompressionParameter.window_log_max: WINDOW_LOG}
        return _Refusing(stack.enter_context(found.ZstdFile(file, options=options)), found.ZstdError)
    program = shutil.which("zstd")
    if program is None:
        raise NoUnpackerError(
            f"{path.name} is packed with zstd, and nothing here unpacks that",
            hint="install zstd (apt install zstd, brew install zstd) or pip install zstandard, then try again",
        )
    running = stack.enter_context(
        subprocess.Popen(  # noqa: S603  # the program that unpacks, and the file that the person named
            [program, "-dcq"],  # which keeps to the same window
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=NO_WINDOW,
        )
    )
    stack.callback(running.kill)
    return _Printed(running)


class _Refusing:
    """A stream of a library whose own error becomes one that says less and is known."""

    def __init__(self, stream: Stream, error: type[Exception]) -> None:
        self._stream = stream
        self._error = error

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes. Raises ValueError for what is damaged."""
        try:
            return self._stream.read(size)
        except self._error as e:
            raise ValueError(str(e)) from e


class _Printed:
    """What a program prints, which fails if the program does."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self._running = running

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes. Raises ValueError for what is damaged."""
        out = self._running.stdout
        data = out.read(size) if out is not None else b""
        if not data and self._running.wait():
            raise ValueError("zstd cannot read it")
        return data


class _Unpacked:
    """What is in a packed file, never more than such a file may hold."""

    def __init__(self, path: Path, stream: Stream) -> None:
        self._path = path
        self._stream = stream
        self._most = min(MAX_FILE_BYTES, max(SMALL, MAX_RATIO * path.stat().st_size))
        self._read = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes. Raises InvalidError for a damaged file, TooLargeError for one that holds too much."""
        pieces: list[bytes] = []
        left = size
        while left and (piece := self._piece(PIECE if left < 0 else min(left, PIECE))):
            pieces.append(piece)
            left -= len(piece) if left > 0 else 0
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        try:
            piece = self._stream.read(size)
        except (ValueError, EOFError, OSError, zlib.error) as e:
            raise InvalidError(
                f"{self._path.name} cannot be unpacked: it is damaged ({e})",
                hint="import it from a backup, if there is one",
            ) from e
        self._read += len(piece)
        if self._read > self._most:
            raise TooLargeError(
                f"{self._path.name} would unpack to more than {self._most:,} bytes, from {self._path.stat().st_size:,}",
                hint="no transcript is packed so; if you trust it, unpack it yourself and import that",
            )
        return piece
