"""What happened to an account, for its operator."""

from __future__ import annotations

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.clock import Millis


def audit(tx: Transaction, account: bytes, what: str, now: Millis) -> None:
    """Note what happened to an account: kept for 90 days."""
    tx.execute("insert into audit (account, at, what) values (?, ?, ?)", (account, now, what))
