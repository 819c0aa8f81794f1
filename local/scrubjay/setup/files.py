"""Reads the hosts' files and writes them: the only effects of setting up.

A file is replaced in one step, keeps its permissions and its owner, and a link stays a link. What it held before is
kept in the store's folder first, for its owner alone, so that it can be put back to the byte.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scrubjay.setup.plan import Edit, Plan, Record, digest
from scrubjay.setup.target import Target
from scrubjay_io import private_files
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError

MAX_BYTES = 50_000_000
"""The largest file that is read: Claude Code's own grows to megabytes, more is a mistake."""


def named(targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the targets, each with the name of the file that is there where it may have several."""
    return tuple(
        replace(target, path=next((path for path in target.instead if path.exists()), target.path))
        for target in targets
    )


def contents(targets: Iterable[Target]) -> dict[Path, bytes | None]:
    """Return what each target's file holds, None where it is not there. Raises InvalidError for what is no file."""
    return {target.path: read(target.path) for target in targets}


def read(path: Path) -> bytes | None:
    """Return what a file holds, None where it is not there. Raises InvalidError for what is no file, and OSError."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        raise InvalidError(f"{path} is not a file of settings", hint="move it away, then try again")
    return path.read_bytes()


class Records:
    """What was written for one host, in the store's folder: `HOST.json`, and beside it what the files held before."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder = folder
        self._path = folder / f"{host}.json"

    def load(self) -> dict[Path, Record]:
        """Return the records by file. Raises CorruptError where ours is damaged."""
        data = read(self._path)
        if data is None:
            return {}
        try:
            kept = json.loads(data)["files"]
            return {
                Path(path): Record(
                    prior=(self._folder / one["backup"]).read_bytes() if one["backup"] else None,
                    written=one["written"],
                )
                for path, one in kept.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
            raise CorruptError(
                f"{self._path} is damaged: what the files held before cannot be told",
                hint=f"delete {self._path}: then what is scrubjay's is taken out, and the rest stays as it is",
            ) from error

    def folders(self) -> list[Path]:
        """Return the folders that were made for the host's files."""
        data = read(self._path)
        return [Path(folder) for folder in json.loads(data).get("folders", ())] if data is not None else []

    def save(self, records: Mapping[Path, Record], folders: Sequence[Path]) -> None:
        """Keep the records, and what the files held, each for its owner alone. Raises UnavailableError."""
        kept = {}
        for path, record in records.items():
            backup = ""
            if record.prior is not None:
                backup = f"{self._path.stem}-{digest(os.fsencode(path))[:8]}-{path.name}"
                private_files.write(self._folder / backup, record.prior)
            kept[str(path)] = {"written": record.written, "backup": backup}
        told = {"files": kept, "folders": [str(folder) for folder in folders]}
        private_files.write(self._path, json.dumps(told, indent=2).encode() + b"\n")

    def forget(self) -> None:
        """Delete the records and what the files held before."""
        for each in self._folder.glob(f"{self._path.stem}-????????-*"):
            each.unlink()
        self._path.unlink(missing_ok=True)


def apply(plan: Plan, records: Records) -> None:
    """Carry a plan out: all files or none. Raises ConflictError where a file changed meanwhile, and OSError."""
    kept = {edit.path: edit.record for edit in plan.edits if edit.record is not None}
    made = records.folders()
    if kept:
        fresh = {folder for edit in plan.edits for folder in _missing(edit.path.parent)}
        made = [*made, *sorted(fresh - set(made))]
        records.save(kept, made)
    done: list[Edit] = []
    try:
        for edit in plan.edits:
            if edit.action != "keep":
                write(edit.path, edit.before, edit.after)
                done.append(edit)
    except BaseException:
        for edit in reversed(done):
            write(edit.path, edit.after, edit.before)
        raise
    if not kept:
        for folder in sorted(made, key=lambda folder: len(folder.parts), reverse=True):
            with contextlib.suppress(OSError):  # something else is in it now, or it is gone
                folder.rmdir()
        records.forget()


def _missing(folder: Path) -> list[Path]:
    return [each for each in (folder, *folder.parents) if not each.exists()]


def write(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Replace what a file holds, in one step; None is a file that is not there.

    Raises ConflictError when it does not hold `before` any more, and OSError.
    """
    real = Path(os.path.realpath(path))
    if read(real) != before:
        raise ConflictError(f"{path} was changed by another program meanwhile", hint="run the command again")
    if after is None:
        path.unlink(missing_ok=True)
        return
    real.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{real.name[:100]}.", dir=real.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            _like(part, real.stat())
        part.replace(real)
    finally:
        part.unlink(missing_ok=True)


def _like(part: Path, found: os.stat_result) -> None:
    """Give a file the permissions and, where that is allowed, the owner of another."""
    if os.name != "nt" and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(
            PermissionError
        ):  # only root may give a file away; its permissions are kept all the same
            os.chown(part, found.st_uid, found.st_gid)
    part.chmod(stat.S_IMODE(found.st_mode))
