"""The account log: who may write what, as a chain of signed entries that everyone replays alike. Pure.

Entry = MessagePack `[seq, prev, type, body, signer, author]` and two Ed25519 signatures of 64 bytes: the signer's and
the author's. Its hash is SHA-256("sjs/1/entry", entry); `prev` is the hash of the one before, 32 zeros for entry 0. The
signer says that it may be: ASK signs for the account, RSK (made from the recovery code) outranks it. The author says
whose doing it is: the device that made the entry, or the recovery code.

The log holds no secret and no name. `AccountState` is what it adds up to. Client and cloud both replay it with
`extended`, so that a server cannot accept what a device would refuse. A checkpoint entry states by its hash what the
log before it adds up to: `after_checkpoint` begins there, for those who know that the entry is the account's.
"""

from __future__ import annotations

from scrubjay_shared.account.checkpoint import (
    MAX_STATE_BYTES,
    checkpoint_body,
    state_bytes,
    state_digest,
    state_of,
)
from scrubjay_shared.account.entries import (
    CODE_AUTHOR,
    MAX_ENTRY_BYTES,
    Entry,
    EntryType,
    Signer,
    device_body,
    entry,
    genesis_body,
    read,
    recovery_body,
    revoke_bodies,
    revoke_body,
    scope_body,
)
from scrubjay_shared.account.replay import (
    RECOVERY_DELAY_MS,
    after_checkpoint,
    each_state,
    extended,
    replay,
    replayed,
    undone_from,
)
from scrubjay_shared.account.state import AccountState, Device, LaneEnd, ScopeState, are_related, instance_of
from scrubjay_shared.account.wrap_keys import check_wrap_keys, is_wrap_pub

__all__ = [
    "CODE_AUTHOR",
    "MAX_ENTRY_BYTES",
    "MAX_STATE_BYTES",
    "RECOVERY_DELAY_MS",
    "AccountState",
    "Device",
    "Entry",
    "EntryType",
    "LaneEnd",
    "ScopeState",
    "Signer",
    "after_checkpoint",
    "are_related",
    "check_wrap_keys",
    "checkpoint_body",
    "device_body",
    "each_state",
    "entry",
    "extended",
    "genesis_body",
    "instance_of",
    "is_wrap_pub",
    "read",
    "recovery_body",
    "replay",
    "replayed",
    "revoke_bodies",
    "revoke_body",
    "scope_body",
    "state_bytes",
    "state_digest",
    "state_of",
    "undone_from",
]
