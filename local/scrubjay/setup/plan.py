"""What setting up or removing would do to each file: decided before anything is written. Pure."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from scrubjay.setup.target import Target
from scrubjay_shared.errors import ConflictError, ScrubjayError

UNKNOWN = b""
"""What a file held before us when nobody wrote that down: then it stays, whatever is left in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is kept of a file that was changed: what it held before us (None: it was not there), and what we made of it.

    `written` is the SHA-256 of that.
    """

    prior: bytes | None
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One file: what it holds, what it is to hold (None: it is not there), and what to keep a record of."""

    path: Path
    what: str
    before: bytes | None
    after: bytes | None
    record: Record | None = None

    @property
    def action(self) -> str:
        """What happens to the file: create, change, delete or keep."""
        if self.before == self.after:
            return "keep"
        return "create" if self.before is None else "delete" if self.after is None else "change"

    def diff(self) -> str:
        """Return the change as a unified diff; "" without one."""
        old, new = (_lines(data) for data in (self.before, self.after))
        old_name, new_name = (str(self.path) if data is not None else "/dev/null" for data in (self.before, self.after))
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(old, new, old_name, new_name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of every file of a host, and what a person should know of it."""

    edits: tuple[Edit, ...]
    notes: tuple[str, ...] = ()


def digest(data: bytes) -> str:
    """Return the SHA-256 of what a file holds."""
    return hashlib.sha256(data).hexdigest()


def installation(
    targets: Sequence[Target], contents: Mapping[Path, bytes | None], records: Mapping[Path, Record]
) -> Plan:
    """Return what installing does. Raises the first target's error about a file that must not be touched."""
    edits: list[Edit] = []
    notes: list[str] = []
    for target in targets:
        before = contents[target.path]
        try:
            after = target.install(before)
        except ConflictError as error:
            if not target.extra:
                raise _about(target, error) from error
            notes.append(f"{target.what} is left out: {error.message}; {error.hint}")
            continue
        except ScrubjayError as error:
            raise _about(target, error) from error
        prior = _prior(target, before, records.get(target.path))
        record = Record(prior=prior, written=digest(after))
        edits.append(Edit(path=target.path, what=target.what, before=before, after=after, record=record))
    return Plan(edits=tuple(edits), notes=tuple(notes))


def removal(targets: Sequence[Target], contents: Mapping[Path, bytes | None], records: Mapping[Path, Record]) -> Plan:
    """Return what removing does: a file that nobody changed since gets the bytes that it had before us.

    From one that was changed only what is ours is taken out. Raises as `installation` does.
    """
    edits: list[Edit] = []
    for target in targets:
        before, record = contents[target.path], records.get(target.path)
        try:
            after = _prior(target, before, record)
        except ScrubjayError as error:
            raise _about(target, error) from error
        edits.append(Edit(path=target.path, what=target.what, before=before, after=after))
    return Plan(edits=tuple(edits))


class Standing(StrEnum):
    """How far a host is set up. What is there in part may be of another version."""

    ABSENT = "absent"
    PARTLY = "partly"
    COMPLETE = "complete"


def standing(targets: Sequence[Target], made: Plan) -> Standing:
    """Return how far a host was set up before a plan that installs or removes."""
    held = {edit.path: edit.before for edit in made.edits}
    ours = [target for target in targets if _holds_us(target, held.get(target.path))]
    if not ours:
        return Standing.ABSENT
    current = all(
        target in ours and target.install(held[target.path]) == held[target.path]
        for target in targets
        if target.path in held
    )
    return Standing.COMPLETE if current else Standing.PARTLY


def _holds_us(target: Target, data: bytes | None) -> bool:
    return data is not None and target.remove(data, UNKNOWN) != data


def _prior(target: Target, data: bytes | None, record: Record | None) -> bytes | None:
    """Return what a file would hold without us."""
    if data is None:
        return None
    if record is not None and digest(data) == record.written:
        return record.prior
    return target.remove(data, UNKNOWN if record is None else record.prior)


def _about(target: Target, error: ScrubjayError) -> ScrubjayError:
    """Return the error with the file that it is about; nothing has been changed."""
    told = error.message if str(target.path) in error.message else f"{target.path}: {error.message}"
    return type(error)(f"{told}; nothing was changed", hint=error.hint)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode(errors="replace").splitlines(keepends=True)
