"""One check of `scrubjay doctor`, as the program and other packages report it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scrubjay_shared.errors import (
    ScrubjayError,
    UnavailableError,
)


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at: what was found, and what to do when that is not well. `code` is the error it stands for."""

    name: str
    state: State
    found: str
    todo: str = ""
    code: int = 0


def ok(name: str, found: str) -> Check:
    """Return a check that ended well."""
    return Check(name=name, state=State.OK, found=found)


def warn(name: str, found: str, todo: str) -> Check:
    """Return a check that found something to mind."""
    return Check(name=name, state=State.WARN, found=found, todo=todo)


def fail(name: str, found: str, todo: str, error: type[ScrubjayError] = UnavailableError) -> Check:
    """Return a check that failed."""
    return Check(name=name, state=State.FAIL, found=found, todo=todo, code=error.exit_code)
