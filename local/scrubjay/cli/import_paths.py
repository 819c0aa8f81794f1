"""Which files an import reads: those that are named, those that a pattern or a folder holds, and why others are not."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from scrubjay.containers import files as containers
from scrubjay.containers.files import NoUnpackerError, Stream, unpacked_name
from scrubjay.importers import JSON_SUFFIXES, agent_folder, detect, tells_more
from scrubjay.importers.export_format import is_export
from scrubjay.importers.parsing import SourceFormat
from scrubjay.policy import DEFAULT
from scrubjay_shared.errors import InvalidError, NotFoundError, TooLargeError

READ_SUFFIXES = (".jsonl", ".ndjson", ".json", ".md", ".markdown", ".txt", ".text")
"""What is picked up out of a folder. A file that is named is tried whatever its suffix."""

HEAD_BYTES = 1 << 16
"""How much of a file usually tells its format; where its first lines do not, more of them are read."""

NO_FILE = "stdin"


class ImportFile(NamedTuple):
    """A file to import: its name relative to what was given, its path (None is stdin).

    `reason` says why a file that lies in a folder is not read; it is empty for one that is. `format` is set where only
    the place and the name tell it.
    """

    name: str
    path: Path | None
    reason: str = ""
    format: str | None = None

    @property
    def shown(self) -> str:
        """What to call it."""
        return self.name if self.path is None else str(self.path)

    def place(self, data: bytes) -> str:
        """Return which file it is, whatever way it was named. A text from stdin is in no file but itself."""
        return f"stdin:{hashlib.sha256(data).hexdigest()}" if self.path is None else str(self.path.resolve())


def strange_folders(given: Iterable[str]) -> list[Path]:
    """Return which of what is given are folders that no agent made: what they hold may be anybody's."""
    found = [Path(word).expanduser() for word in given if word != "-"]
    patterns = [Path(one) for path in found if not path.exists() for one in glob.glob(str(path), recursive=True)]  # noqa: PTH207
    return [path for path in (*found, *patterns) if path.is_dir() and not _is_an_agents(path)]


def _is_an_agents(folder: Path) -> bool:
    """Say whether an agent keeps its sessions in a folder: its home, a project in it, or something in such a home."""
    if any(agent_folder.kind_of(part) for part in folder.resolve().parts):
        return True
    _, folders, names = next(os.walk(folder), ("", [], []))
    homes = [folder / agent_folder.PROJECTS] if agent_folder.PROJECTS in folders else []
    homes += [folder] if folder.resolve().name == agent_folder.PROJECTS else []
    return _is_project(folder, folders, names) or any(map(_is_home, homes))


def files(given: Iterable[str], *, named_format: bool) -> Iterator[ImportFile]:
    """Yield the files that are meant. Raises NotFoundError for a pattern that matches nothing.

    With `named_format` the person said how to read them, and JSON of an unknown kind is left for that to refuse.
    """
    for word in given:
        path = Path(word).expanduser()
        if word == "-":
            yield ImportFile(NO_FILE, None)
        elif path.exists() or not glob.has_magic(word):
            yield from _at(path, named_format=named_format)
        else:
            matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # a pattern may be absolute
            if not matches:
                raise NotFoundError(
                    f"no file matches {word}",
                    hint="check the pattern, and put it in quotes so that the shell leaves it as it is",
                )
            for match in matches:
                yield from _at(Path(match), named_format=named_format)


def _at(path: Path, *, named_format: bool) -> Iterator[ImportFile]:
    """Yield a file, or what a folder holds, in a fixed order. Hidden files and folders inside it are left alone."""
    if not path.is_dir():
        yield ImportFile(path.name, path)
        return
    kind = agent_folder.kind_of(path.resolve().name)
    homes: set[Path] = set()
    projects: set[Path] = set()
    closed: list[Path] = []
    for parent, folders, names in os.walk(path, onerror=lambda error: closed.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(parent)
        if _is_project(here, folders, names):
            projects.add(here)
        elif agent_folder.PROJECTS in folders and _is_home(here / agent_folder.PROJECTS):
            homes.add(here)
        for name in sorted(names):
            file = here / name
            if name.startswith(".") or not file.is_file():
                continue
            reason = (
                agent_folder.left_out_of_kind(kind, file.relative_to(path).parts)
                or _of_an_agent(file, homes, projects)
                or _unread(file, named_format=named_format)
            )
            placed = agent_folder.format_at(file.resolve().parts) if reason == "unknown_json" else None
            yield ImportFile(file.relative_to(path).as_posix(), file, "" if placed else reason, placed)
    for folder in closed:
        yield ImportFile(folder.name, folder, "unreadable_folder")


def _of_an_agent(file: Path, homes: set[Path], projects: set[Path]) -> str:
    """Return why a file in a folder that an agent made is not read; "" where it is."""
    for above in file.parents:
        below = file.relative_to(above).parts
        if above in projects:
            return agent_folder.left_out(below)
        if above in homes and below[0] != agent_folder.PROJECTS:
            return agent_folder.left_out_of_home(below)
    return ""


def _unread(file: Path, *, named_format: bool) -> str:
    """Return why a file in a folder is not read, by its name and its first bytes; "" where it is."""
    name = unpacked_name(file.name)
    suffix, is_packed = Path(name).suffix.lower(), name != file.name
    if suffix not in (JSON_SUFFIXES if is_packed else READ_SUFFIXES):
        return f"not a kind of file to import ({file.suffix or 'no suffix'})"
    if is_packed and file.with_name(name).exists():
        return "packed_twin"
    try:
        if file.stat().st_size == 0:
            return "empty_file"
        return unread(name, head_of(file), named_format=named_format) if suffix in JSON_SUFFIXES else ""
    except NoUnpackerError:
        return "no_zstd"
    except (OSError, InvalidError, TooLargeError):
        return ""  # reading it will say what is wrong


def unread(name: str, head: bytes, *, named_format: bool) -> str:
    """Return why a file is not read that nobody named: JSON of another program; "" for one that is."""
    if named_format or Path(name).suffix.lower() not in JSON_SUFFIXES:
        return ""
    return "" if is_export(head) or _format(Path(name).name, head) is not None else "unknown_json"


def _is_project(folder: Path, folders: Iterable[str], names: Iterable[str]) -> bool:
    sessions = (folder / name for name in names if agent_folder.is_session(name, SourceFormat.CLAUDE_CODE))
    return agent_folder.is_project(
        folder.resolve().name,
        folders,
        has_session=any(_format(file.name, _head(file)) is SourceFormat.CLAUDE_CODE for file in sessions),
        has_notes=(folder / agent_folder.NOTES / "MEMORY.md").is_file(),
    )


def _is_home(projects: Path) -> bool:
    """Say whether one of these folders is an agent's, of one project."""
    for parent, folders, names in os.walk(projects):  # which passes over what cannot be read; the import says so
        if Path(parent) != projects:
            if _is_project(Path(parent), folders, names):
                return True
            folders.clear()
    return False


def _format(name: str, head: bytes) -> SourceFormat | None:
    try:
        return detect(name, head)
    except InvalidError:
        return None


def _head(file: Path) -> bytes:
    """Return the first bytes of a file; nothing when it cannot be read, as importing it will say."""
    try:
        return head_of(file)
    except (OSError, InvalidError, TooLargeError):
        return b""


def head_of(file: Path) -> bytes:
    """Return the first bytes of a file, as many of its lines as it takes to tell what it is.

    Raises OSError, InvalidError and TooLargeError.
    """
    with containers.opened(file) as stream:
        return _telling(stream)


def _telling(stream: Stream) -> bytes:
    head = stream.read(HEAD_BYTES)
    while len(head) < DEFAULT.limits.max_head_bytes and tells_more(head) and (more := stream.read(len(head))):
        head += more
    return head
