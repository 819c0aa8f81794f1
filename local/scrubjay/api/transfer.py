"""Files in and out: import, backup, and what is derived again."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay.api.events import Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """A file's bytes, its name, and optionally its format and the one conversation wanted.

    `place` says which file it is, whatever way it was named: its absolute path. An edited file updates the notes of its
    own place; without one, files of the same name for the same project are taken for one file.

    With `restore`, the file is the person's own export and is put back: layers and trust as they stand in it.

    Several files that are one import have one cause: `cause` is that of the response to the first of them. `label` is
    what the history calls the import, the file's name when it is absent.
    """

    name: str
    data: bytes
    format: str | None = None
    only: str | None = None
    project: str | None = None
    dry_run: bool = False
    place: str | None = None
    restore: bool = False
    cause: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResponse:
    """What an import took and what it skipped, by reason. Importing the same again adds nothing.

    `memories` counts new notes and updated ones. `renamed` counts notes whose name another memory has: theirs is longer
    by the file's path; `aliases_taken` counts aliases that belong to another memory and were left out.

    `changed` counts what records said of themselves and were not believed: `trust`, `layer`, `kind`, `name` for those
    of always loaded lines, and `superseded_by` where it leads back to the memory itself.

    `cause` is what the history lists it under, and what undo takes back, if it wrote anything; None for a dry run.

    `taken_back` are the beginnings of what the person said on branches of a conversation that they left: so they can
    tell whether something is missing. Of many, the first.
    """

    format: str
    events: int
    memories: int
    duplicates: int
    redactions: dict[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    renamed: int = 0
    aliases_taken: int = 0
    changed: tuple[Skipped, ...] = ()
    cause: str | None = None
    taken_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRequest:
    """A file to write on this machine, by its absolute path. `force` replaces a file that is there, but for our own."""

    path: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResponse:
    """A file that was written and checked: its path, size and SHA-256."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildRequest:
    """Derive everything again from events and ops; with `vectors`, embed everything again too."""

    vectors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResponse:
    """What was derived again, and the digest of the view before and after (equal, unless it was damaged)."""

    memories: int
    events: int
    before: str
    after: str
