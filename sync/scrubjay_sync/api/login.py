"""Requests and responses of signing up, logging in and out, and joining an account."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.wire import Kdf
from scrubjay_sync.api.identity import Who


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A name at a server."""

    origin: str
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KdfResponse:
    """How to derive the key that proves the password; `origin` in the one way it is written.

    `account_before` is the account that this store was in last, in hex.
    """

    origin: str
    kdf: Kdf
    registration: str
    account_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpCheckRequest:
    """The name and the invitation of a new account, before there is more of it."""

    origin: str
    username: str
    invite: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpRequest:
    """A new account. `auth_key` and `kdf` come from the password; the recovery code signs the account's first entry."""

    origin: str
    username: str
    auth_key: bytes = field(repr=False)
    kdf: Kdf
    recovery: str = field(repr=False)
    device_name: str
    invite: str = field(default="", repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInRequest:
    """Another machine of an account. `code` is the TOTP code.

    `bring_all`, here and below: everything that the store had in another account may go to this one.
    """

    origin: str
    username: str
    auth_key: bytes = field(repr=False)
    kdf: Kdf
    device_name: str
    code: str = field(default="", repr=False)
    recovery: str = field(default="", repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningResponse:
    """How letting in stands: `words` are to be typed on the other machine, none before that one has answered.

    `added`: that machine has let this one in, and shows the words for `join`.
    """

    words: tuple[str, ...]
    device: str
    expires: int
    added: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """The words that the device which let this machine in shows for it."""

    proof: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRequest:
    """The recovery code; with `void_from`, everything that the account log says from that entry on is cancelled."""

    code: str = field(repr=False)
    void_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRequest:
    """What `devices create` printed."""

    bundle: str = field(repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutRequest:
    """`force` leaves even with changes that the server has not confirmed, and without telling the account."""

    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutResponse:
    """`unsent` changes were not confirmed: they go with the next login. `notified`: the account log says so now.

    `revoked`: another device had taken this one out of the account before.
    """

    who: Who
    unsent: int
    notified: bool
    revoked: bool
