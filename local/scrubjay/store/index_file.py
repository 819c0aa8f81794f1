"""A copy of the index beside the store, so that a million events are opened in a second or two, not half a minute.

It is derived and may be deleted at any time. It is believed only when it is whole, of this version of the program and
of this store; otherwise it is as if there were none. `Store.position` says up to where in the log it speaks, and who
opens it catches up from there. Whatever erases words from the store deletes it first: it holds them too.

The file is arrays one after another, then their names, types and check sums as JSON, then the length of that and the
eight bytes that show that it was written to its end.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from scrubjay_io import private_files
from scrubjay_shared.errors import UnavailableError

Arrays = dict[str, npt.NDArray[Any]]

_END = b"jayindx4"  # its last character is raised when the layout of the file or of the index changes
_TAIL = struct.Struct("<QI8s")  # length of the JSON, its check sum, `_END`

_STEP = 1 << 20
"""Bytes of an array that are copied, checked and written at a time: one pass, and no second copy of a large index."""


def index_path(store: Path) -> Path:
    """Return where the copy of a store's index lies."""
    return store.with_name(store.name + ".index")


def drop_index(store: Path) -> None:
    """Delete the copy, and a half-written one. Raises UnavailableError."""
    for path in (index_path(store), _part(store)):
        try:
            if path.exists():  # a file system that is only read refuses even what is not there
                path.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"{path.name} cannot be deleted: {error.strerror}", hint=f"delete {path} and try again"
            ) from error


def save_index(
    store: Path, identity: Mapping[str, Any], rest: Any, arrays: Arrays, *, stop: Callable[[], bool]
) -> bool:
    """Write the copy: aside first, then in its place. Returns False, with nothing written, when `stop()` said so.

    Not synced to the disk: a copy that a power cut leaves half-written fails its check sum. Raises OSError.
    """
    part = _part(store)
    part.unlink(missing_ok=True)
    try:
        private_files.create(part)
        if _write(part, identity, rest, arrays, stop):
            part.replace(index_path(store))
            return True
        return False
    finally:
        part.unlink(missing_ok=True)


def _write(part: Path, identity: Mapping[str, Any], rest: Any, arrays: Arrays, stop: Callable[[], bool]) -> bool:
    listed = []
    with part.open("wb") as file:
        for name, array in arrays.items():
            if stop():
                return False
            data = memoryview(np.ascontiguousarray(array).view(np.uint8).reshape(-1))  # type: ignore[arg-type]
            check = 0
            for at in range(0, len(data), _STEP):
                step = bytes(data[at : at + _STEP])  # vectors change meanwhile: what is written is what is checked
                check = zlib.crc32(step, check)
                file.write(step)
            listed.append((name, array.dtype.str, array.shape, check))
        head = msgspec.json.encode({"identity": identity, "rest": rest, "arrays": listed})
        file.write(head)
        file.write(_TAIL.pack(len(head), zlib.crc32(head), _END))
    return not stop()


def saved_index(store: Path, identity: Mapping[str, Any]) -> tuple[Any, Arrays] | None:
    """Return what was saved under this identity; None when there is nothing whole, or of another identity.

    What a crash in the middle of saving left is deleted.
    """
    try:
        _part(store).unlink(missing_ok=True)
    except OSError:
        return None
    return _read(store, identity)


def _read(store: Path, identity: Mapping[str, Any] | None) -> tuple[Any, Arrays] | None:
    """Return what was saved under an identity, or under any; None when there is nothing whole."""
    try:
        with index_path(store).open("rb") as file:
            file.seek(-_TAIL.size, os.SEEK_END)
            length, check, end = _TAIL.unpack(file.read(_TAIL.size))
            if end != _END:
                return None
            file.seek(-_TAIL.size - length, os.SEEK_END)
            head = file.read(length)
            if zlib.crc32(head) != check:
                return None
            found = msgspec.json.decode(head)
            if identity is not None and found["identity"] != identity:
                return None
            file.seek(0)
            arrays: Arrays = {}
            for name, dtype, shape, expected in found["arrays"]:
                array = arrays[name] = np.empty(shape, dtype)
                data = memoryview(array.view(np.uint8).reshape(-1))  # type: ignore[arg-type]
                if file.readinto(data) != len(data) or zlib.crc32(data) != expected:
                    return None
            return found["rest"], arrays
    except (OSError, struct.error, msgspec.DecodeError):
        return None


def index_is_whole(store: Path) -> bool | None:
    """Return whether the copy passes its own check sums, whoever's it is; None when there is none."""
    if not index_path(store).exists():
        return None
    return _read(store, None) is not None


def _part(store: Path) -> Path:
    return store.with_name(store.name + ".index.part")
