"""Challenges are for one answer each: which ones were answered, for as long as they would be valid."""

from __future__ import annotations

from hashlib import sha256

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnauthenticatedError


def answer_once(tx: Transaction, nonce: bytes, expires: Millis) -> None:
    """Note that a challenge was answered, in the transaction that acts on the answer. Raises UnauthenticatedError."""
    noted = tx.execute(
        "insert into challenge (hash, expires) values (?, ?) on conflict do nothing", (sha256(nonce).digest(), expires)
    )
    if not noted:
        raise UnauthenticatedError("the challenge was answered before", hint="ask for a new one")
