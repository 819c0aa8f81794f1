"""Objects that stand in no lane: read, checked, and kept under their hash."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from scrubjay_cloud.bodies.loose import take
from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import HEADER_BYTES, LANE_KINDS, Suite, parse
from scrubjay_shared.errors import (
    DeniedError,
    MalformedError,
)

_SENDER = "the program that made it has a fault: update scrubjay there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An object that stands in no lane, read."""

    hash: bytes
    scope: bytes
    kind: int
    suite: int
    account: bytes
    data: bytes
    body_key: str = ""
    """Names its body in the store of bodies, where it was sent there; "" where the row is to hold it."""


def read_blob(data: bytes) -> Blob:
    """Return an object that stands in no lane. Raises MalformedError."""
    envelope = parse(data)
    if envelope.header.kind in LANE_KINDS:
        raise MalformedError("the object belongs into a lane", hint="POST /v1/push takes it")
    header = envelope.header
    return Blob(
        hash=sha256(data).digest(),
        scope=header.scope,
        kind=header.kind,
        suite=header.suite,
        account=header.account,
        data=data,
    )


def check_blob(blob: Blob, state: AccountState) -> None:
    """Raise DeniedError or MalformedError when a blob is not the account's, or open where it must be sealed."""
    if blob.account != state.account:
        raise DeniedError("the object names another account than the one of the request", hint=_SENDER)
    scope = state.scopes.get(blob.scope)
    if blob.suite != (scope.suite if scope is not None else Suite.SEALED):
        raise MalformedError("the object has another encryption than its scope has", hint=_SENDER)


def store_blob(tx: Transaction, blob: Blob, account: bytes, now: Millis) -> int:
    """Keep a blob under its hash; return how many bytes that added."""
    added = tx.execute(
        "insert into blob (account, hash, scope, kind, size, received, body, body_key) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (account, hash) do nothing",
        (
            *(account, blob.hash, blob.scope, blob.kind, len(blob.data), now),
            *((blob.data[:HEADER_BYTES], blob.body_key) if blob.body_key else (blob.data, None)),
        ),
    )
    if not added:
        return 0
    take(tx, account, [blob.body_key] if blob.body_key else [])
    tx.execute("update account set bytes = bytes + ?, objects = objects + 1 where id = ?", (len(blob.data), account))
    return len(blob.data)
