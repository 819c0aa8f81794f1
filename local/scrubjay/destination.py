"""Where a copy of the store may be written, and how: never over the store, never over another file unless asked to.

A backup and an export go to a path that a person types, and one slip is enough to name the store itself.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrubjay_io import private_files
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError, UnavailableError

OF_THE_STORE = re.compile(
    r"(?:-wal|-shm|-journal|\.lock|\.pid|\.index(?:\.part)?|(?:\.restored)?(?:\.part)?"
    r"|\.v\d+\.bak(?:\.part)?|\.before-restore-.*|\.nightly|\.blanking)",
    re.DOTALL,
)
"""What stands behind the store's name in the names of the files that belong to it."""

BESIDE = ("token", "daemon.json", "stopped", "scrubjay.sock", "sync.json", "config.toml")
"""What the daemon, sync and a person's settings keep in the store's folder."""


def check(target: Path, store: Path, *, force: bool, ours: Iterable[Path] = ()) -> Path:
    """Return where a copy is to be written: `target`, links followed.

    Raises InvalidError for a file of the store or one of `ours`, under whatever name it is reached, for a folder and
    for a device; NotFoundError where the folder is missing; ConflictError for any other file that is there, without
    `force`.
    """
    path = Path(os.path.realpath(target))
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", hint=f"make it first: mkdir -p '{path.parent}'")
    if _belongs(path, Path(os.path.realpath(store)), ours):
        raise InvalidError(
            f"{target} is a file that scrubjay itself works with: writing there would destroy it",
            hint="name another file, best in another folder",
        )
    if path.is_dir():
        raise InvalidError(f"{target} is a folder", hint="name a file in it")
    if path.exists():
        if not stat.S_ISREG(path.stat().st_mode):
            raise InvalidError(f"{target} is a device or a pipe, not a file", hint="scrubjay export - writes to stdout")
        if not force:
            raise ConflictError(f"{target} exists already", hint="name another file; --force replaces this one")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UnavailableError(f"the folder {path.parent} cannot be written", hint="choose another folder")
    return path


@contextmanager
def written(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty file for its owner alone, which becomes `path` when the block ends well, and is gone when not.

    Raises ConflictError when another program made `path` meanwhile, unless `force`.
    """
    for left in leftovers(path.parent):
        discard(left)
    handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    _writing.add(part.name)
    try:
        yield part
        sync(part)
        if force:
            part.replace(path)
        else:
            _appear(part, path)
        sync(path.parent)
    finally:
        part.unlink(missing_ok=True)
        _writing.discard(part.name)


@contextmanager
def folder_written(path: Path) -> Iterator[Path]:
    """Yield an empty folder for its owner alone, which becomes `path` when the block ends well, and is gone when not.

    Raises NotFoundError where the folder above is missing, ConflictError for anything that is there already but an
    empty folder.
    """
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", hint=f"make it first: mkdir -p '{path.parent}'")
    if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
        raise ConflictError(f"{path} exists already", hint="name a new folder, or an empty one")
    for left in leftovers(path.parent):
        discard(left)
    part = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=".part", dir=path.parent))
    _writing.add(part.name)
    try:
        yield part
        if path.is_dir():
            path.rmdir()
        part.rename(path)
        sync(path.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        _writing.discard(part.name)


_writing: set[str] = set()
"""What this process is writing now."""
_PART = re.compile(r"\..{1,100}\.scrubjay-(\d+)\..{8}\.part(?:\.part)?(?:-wal|-shm|-journal)?", re.DOTALL)
_PART_BEFORE = re.compile(r"\.memory-[\dT:.Z-]+\.db\..{8}\.part(?:\.part)?(?:-wal|-shm|-journal)?")
"""How scrubjay 0.1.0 called the copy of a backup. It does not say who makes it: an old one has no maker."""
_LEFT_S = 3_600.0


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}.scrubjay-{os.getpid()}."


def leftovers(folder: Path) -> list[Path]:
    """Return the half-made copies in a folder whose process was killed."""
    found = []
    for each in folder.glob(".*.part*"):
        if whose := _PART.fullmatch(each.name):
            if not _is_written(each.name, int(whose[1])):
                found.append(each)
        elif _PART_BEFORE.fullmatch(each.name) and time.time() - each.lstat().st_mtime > _LEFT_S:
            found.append(each)
    return found


def _is_written(name: str, pid: int) -> bool:
    if pid == os.getpid():
        return any(name.startswith(each) for each in _writing)
    import psutil  # noqa: PLC0415  # 20 ms, and only who finds a copy needs it

    return bool(psutil.pid_exists(pid))


def discard(path: Path) -> None:
    """Delete a half-made copy, where that can be done."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _appear(part: Path, path: Path) -> None:
    try:
        appear(part, path)
    except FileExistsError as error:
        raise ConflictError(f"{path} exists already", hint="name another file; --force replaces this one") from error


def appear(part: Path, path: Path) -> None:
    """Give a file its name unless something has it. Raises FileExistsError then.

    Linking is the one step that does it. Where a file system has no links (exFAT, many of FUSE), the name is taken by
    an empty file first, which nobody else gets, and then replaced.
    """
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        part.replace(path)
    else:
        part.unlink()


def also_at(path: Path, other: Path) -> None:
    """Give a file a second name, or where its file system has no links a durable copy. Raises OSError."""
    try:
        os.link(path, other)
    except FileExistsError:
        raise
    except OSError:
        private_files.create(other)
        shutil.copyfile(path, other)
        sync(other)


def _belongs(path: Path, store: Path, ours: Iterable[Path]) -> bool:
    """Say whether a path leads to a file of ours, there or not. A file system may fold the case of names: so do we."""
    own = store.name.casefold()
    if _same(path.parent, store.parent) and _is_ours(path.name.casefold(), own):
        return True
    beside = store.parent.iterdir() if store.parent.is_dir() else ()
    own_files = (each for each in beside if _is_ours(each.name.casefold(), own))
    return any(_same(path, each) or path == Path(os.path.realpath(each)) for each in (*own_files, *ours))


def _is_ours(name: str, store: str) -> bool:
    return name in BESIDE or (name.startswith(store) and bool(OF_THE_STORE.fullmatch(name.removeprefix(store))))


def _same(one: Path, other: Path) -> bool:
    """Say whether two paths lead to one file or folder: by device and inode, so that a hard link is recognised."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
