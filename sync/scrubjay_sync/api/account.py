"""Requests and responses about the account itself: recovery code, password, second factor, deletion."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.wire import Kdf
from scrubjay_sync.api.identity import Who


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCheckRequest:
    """The public half of a code that a person typed."""

    rsk: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResponse:
    """`valid`: that code is the account's. `from_at`: when a new one counts from; None for at once."""

    who: Who
    valid: bool
    from_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReplaceRequest:
    """A new code, which must sign for itself, and, to make it count at once, the old one."""

    new: str = field(repr=False)
    old: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryVoidRequest:
    """The recovery code, and the entry of the account log from which on everything is undone."""

    code: str = field(repr=False)
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordRequest:
    """The keys of the old and the new password."""

    auth_key: bytes = field(repr=False)
    new_kdf: Kdf
    new_auth_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRenameRequest:
    """The password's key, and the user name that the account is to have."""

    auth_key: bytes = field(repr=False)
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TotpRequest:
    """The second factor's secret and a code of it; both empty to take it away."""

    auth_key: bytes = field(repr=False)
    secret: bytes = field(default=b"", repr=False)
    code: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """The password's key and, where the account has one, the second factor's code: somebody who knows them is there."""

    auth_key: bytes = field(repr=False)
    code: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """The password's key: whoever deletes an account must know it."""

    auth_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedResponse:
    """What the server deleted; `left` rows of the account are still there, and that is 0."""

    who: Who
    objects: int
    left: int
