"""The one error hierarchy: what went wrong, a stable code, and what to do about it. Only transports map it."""

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
    """The request cannot be carried out as it is: wrong type, out of range, unreadable."""

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
    """Not now: no daemon, disk full, model missing, shutting down. The same call may succeed later.

    `retry_after` is in seconds; 0 when nobody said.
    """

    code = "unavailable"
    status = 503
    exit_code = 6

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class BudgetError(UnavailableError):
    """The call of a model could cost more tokens than the person allows for this day or month. Nothing was sent."""

    code = "budget"


class CorruptError(ScrubjayError):
    """A file is damaged, or is not ours. It is never overwritten."""

    code = "corrupt"
    status = 500
    exit_code = 7


class TooLargeError(InvalidError):
    """The body or text is over a stated limit. An `InvalidError`; HTTP tells 413 from 400."""

    code = "too_large"
    status = 413


class MalformedError(InvalidError):
    """Bytes that do not have the form that the protocol demands."""

    code = "malformed"


class BadSignatureError(CorruptError):
    """The signature is not of anybody who may sign this."""

    code = "bad_signature"


class BrokenChainError(CorruptError):
    """An object or log entry that does not continue what came before it."""

    code = "broken_chain"


class WrongKeyError(CorruptError):
    """Encrypted with a key that this device does not have."""

    code = "wrong_key"


class UpdateNeededError(UnavailableError):
    """Written by a newer version than this one reads."""

    code = "update_needed"


class CredentialsError(UnauthenticatedError):
    """User name, password or code is wrong. The message is the same for every cause."""

    code = "credentials"


class ExpiredError(UnauthenticatedError):
    """A token or request whose time is over."""

    code = "expired"


class RevokedError(DeniedError):
    """The device was revoked."""

    code = "revoked"


class PendingError(DeniedError):
    """The device has not been approved by another one yet."""

    code = "pending"


class ForkError(ConflictError):
    """Another object stands at that place already: this device's lane was written twice."""

    code = "fork"


class GapError(ConflictError):
    """Objects before this one are missing."""

    code = "gap"


class StaleEpochError(ConflictError):
    """Sealed under an epoch that a later one has replaced."""

    code = "stale_epoch"


class AnotherAccountError(ConflictError):
    """What the store holds was in another account before, and nobody has said that it may all go to this one."""

    code = "another_account"


class LogConflictError(ConflictError):
    """The account log has moved on since it was read."""

    code = "log_conflict"


class WithheldError(CorruptError):
    """The server does not hand out what it has said is there."""

    code = "withheld"


class RolledBackError(CorruptError):
    """The server shows an older state than it has shown before."""

    code = "rolled_back"


class SplitError(CorruptError):
    """The server shows different histories to different devices."""

    code = "split"


class NotSearchableError(InvalidError):
    """The server cannot search that scope: it is sealed, or the server lacks what searching needs."""

    code = "not_searchable"


class WrongSpaceError(InvalidError):
    """A vector of another embedding space, or of another width, than the scope's."""

    code = "wrong_space"


class QuotaError(UnavailableError):
    """The account's storage is used up; reading, packing and forgetting still work."""

    code = "quota"
    status = 507


class TooManyError(UnavailableError):
    """Too many requests in a short time."""

    code = "too_many"
    status = 429


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
SYNC_KINDS: tuple[type[ScrubjayError], ...] = (
    MalformedError,
    BadSignatureError,
    BrokenChainError,
    WrongKeyError,
    UpdateNeededError,
    CredentialsError,
    ExpiredError,
    RevokedError,
    PendingError,
    ForkError,
    GapError,
    StaleEpochError,
    AnotherAccountError,
    LogConflictError,
    WithheldError,
    RolledBackError,
    SplitError,
    NotSearchableError,
    WrongSpaceError,
    QuotaError,
    TooManyError,
)
"""What only sync and its service raise."""
WRITER_KINDS: tuple[type[ScrubjayError], ...] = (BudgetError,)
"""What only the Writer raises."""
BY_CODE: dict[str, type[ScrubjayError]] = {kind.code: kind for kind in (*KINDS, *SYNC_KINDS, *WRITER_KINDS)}


def from_code(code: str, message: str, hint: str = "") -> ScrubjayError:
    """Rebuild an error that crossed the wire as itself; an unknown code is the base kind."""
    return BY_CODE.get(code, ScrubjayError)(message, hint=hint)
