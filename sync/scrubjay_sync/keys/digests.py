"""Digests that two people compare as words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def pairing_digest(genesis: bytes, sign_pub: bytes, wrap_pub: bytes, head: bytes) -> bytes:
    """Return what both machines show as words while one lets the other in: account, keys and log must be the same."""
    return hashlib.sha256(b"sjs/1/sas" + genesis + sign_pub + wrap_pub + head).digest()


def heads_digest(account: bytes, log_head: bytes, heads: Mapping[tuple[bytes, bytes], tuple[int, bytes]]) -> bytes:
    """Return what `sync verify` shows as words: where the account log and every lane (scope, device) end, (n, link)."""
    summed = hashlib.sha256(b"sjs/1/heads" + account + log_head)
    for (scope, device), (n, tip) in sorted(heads.items()):
        summed.update(scope + device + n.to_bytes(8, "big") + tip)
    return summed.digest()
