"""Wrapped keys: what a valid one is, and where it is kept."""

from __future__ import annotations

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.errors import (
    ConflictError,
    InvalidError,
)
from scrubjay_shared.wire import (
    LIMITED_WRAP,
    ROOT_WRAP,
    Wrap,
)

MAX_WRAP_BYTES = 8 * 1024  # an HPKE wrap of a root key has 1,168 bytes, a limited device's extract one key a scope
MAX_INT = 2**31 - 1


def check_wrap(wrap: Wrap) -> None:
    """Raise InvalidError when a wrapped key is not valid."""
    if (
        len(wrap.target) != 16
        or wrap.kind not in {ROOT_WRAP, LIMITED_WRAP}
        or not 1 <= wrap.version <= MAX_INT
        or not 1 <= len(wrap.sealed) <= MAX_WRAP_BYTES
    ):
        raise InvalidError(
            "the wrapped key is not valid",
            hint=f"it has a target of 16 bytes, kind 1 or 2, a version from 1 and 1 to {MAX_WRAP_BYTES} bytes",
        )


def store_wrap(tx: Transaction, account: bytes, wrap: Wrap, *, replace: bool) -> None:
    """Keep a wrap. Without `replace`, another in its place is a ConflictError: a token alone destroys no key."""
    key = (account, wrap.target, wrap.kind, wrap.version)
    if replace:
        tx.execute(
            "insert into wrap (account, target, kind, version, ct) values (?, ?, ?, ?, ?)"
            " on conflict (account, target, kind, version) do update set ct = excluded.ct",
            (*key, wrap.sealed),
        )
        return
    tx.execute(
        "insert into wrap (account, target, kind, version, ct) values (?, ?, ?, ?, ?) on conflict do nothing",
        (*key, wrap.sealed),
    )
    row = tx.row("select ct from wrap where account = ? and target = ? and kind = ? and version = ?", key)
    if row is not None and row[0] != wrap.sealed:
        raise ConflictError(
            "another wrapped key is stored for that version already", hint="POST /v1/log can replace it"
        )
