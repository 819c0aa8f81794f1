"""The one error hierarchy: what went wrong, a stable code, and what to do about it. Doors map it; nothing else does."""

from __future__ import annotations

from typing import ClassVar


class ScrubjayError(Exception):
    """An error a person can act on. The message names the thing; `hint` names the command or the change that helps.

    `code` is stable across releases (JSON `code`), `status` is the HTTP status, `exit_code` the process's.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidError(ScrubjayError):
    """The request is not one we can act on: wrong type, out of range, unreadable."""

    code = "invalid"
    status = 400
    exit_code = 2


class NotFoundError(ScrubjayError):
    """Nothing answers to that id, name or path."""

    code = "not_found"
    status = 404
    exit_code = 3


class DeniedError(ScrubjayError):
    """The caller may not: no token, a foreign origin, a wider scope than its own."""

    code = "denied"
    status = 403
    exit_code = 4


class UnauthenticatedError(DeniedError):
    """No token, or not ours. A `DeniedError` to every caller; HTTP tells 401 from 403."""

    code = "unauthenticated"
    status = 401


class ConflictError(ScrubjayError):
    """The state does not allow it: the name is taken, the file is locked by another process."""

    code = "conflict"
    status = 409
    exit_code = 5


class UnavailableError(ScrubjayError):
    """Not now: no daemon, disk full, model missing, shutting down. The same call may succeed later."""

    code = "unavailable"
    status = 503
    exit_code = 6


class CorruptError(ScrubjayError):
    """A file is damaged, or is not ours. It is never overwritten."""

    code = "corrupt"
    status = 500
    exit_code = 7


class TooLargeError(InvalidError):
    """The body or text is over a stated limit. An `InvalidError`; HTTP tells 413 from 400."""

    code = "too_large"
    status = 413


KINDS: tuple[type[ScrubjayError], ...] = (
    InvalidError,
    NotFoundError,
    DeniedError,
    UnauthenticatedError,
    ConflictError,
    UnavailableError,
    CorruptError,
    TooLargeError,
)
BY_CODE: dict[str, type[ScrubjayError]] = {kind.code: kind for kind in KINDS}


def from_code(code: str, message: str, hint: str = "") -> ScrubjayError:
    """Rebuild an error that crossed the wire as itself; an unknown code is the base kind."""
    return BY_CODE.get(code, ScrubjayError)(message, hint=hint)
