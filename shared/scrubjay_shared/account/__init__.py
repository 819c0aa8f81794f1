"""The account log: who may write what, as a chain of signed entries that everyone replays alike. Pure.

Entry = MessagePack `[seq, prev, type, body, signer]` and 64 bytes of Ed25519 signature over "sjs/1/log", the account's
id and the MessagePack. Its hash is SHA-256("sjs/1/entry", entry); `prev` is the hash of the one before, 32 zeros for
entry 0. Keys: ASK signs for the account, RSK (made from the recovery code) outranks it.

The log holds no secret and no name. `AccountState` is what it adds up to; `extended` is the only way to get one. Client
and cloud both replay with it, so that a server cannot accept what a device would refuse.
"""

from __future__ import annotations

from scrubjay_shared.account.entries import (
    MAX_ENTRY_BYTES,
    Entry,
    EntryType,
    Signer,
    device_body,
    entry,
    genesis_body,
    read,
    revoke_body,
    scope_body,
)
from scrubjay_shared.account.replay import RECOVERY_DELAY_MS, extended, replay
from scrubjay_shared.account.state import AccountState, Device, ScopeState

__all__ = [
    "MAX_ENTRY_BYTES",
    "RECOVERY_DELAY_MS",
    "AccountState",
    "Device",
    "Entry",
    "EntryType",
    "ScopeState",
    "Signer",
    "device_body",
    "entry",
    "extended",
    "genesis_body",
    "read",
    "replay",
    "revoke_body",
    "scope_body",
]
