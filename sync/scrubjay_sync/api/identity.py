"""Whom a command acts as: the account, the server and the device, in every response."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A request that needs no more than its name, or an answer that says that it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Which account, where, as which device: what every command prints.

    `name` is what this home calls the account, "main" where it has no other; `keys` says where the secrets are kept.
    """

    account: str
    username: str
    origin: str
    device: str
    device_name: str
    keys: str
    name: str = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoResponse:
    """It was done, by whom."""

    who: Who
