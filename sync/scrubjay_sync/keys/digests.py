"""Digests that two people compare as words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def pairing_commitment(nonce: bytes, device: bytes, sign_pub: bytes, wrap_pub: bytes) -> bytes:
    """Return what a machine that asks is bound by before it is answered: a nonce of 32 bytes, its id and its keys."""
    return hashlib.sha256(b"sjs/1/pair/commit" + nonce + device + sign_pub + wrap_pub).digest()


def pairing_digest(
    *,
    genesis: bytes,
    head: bytes,
    device: bytes,
    sign_pub: bytes,
    wrap_pub: bytes,
    asking: bytes,
    answering: bytes,
) -> bytes:
    """Return what both machines show as words while one lets the other in.

    Account, log, device and keys must be the same, and both nonces: that of the machine that asks, and of the one that
    answers.
    """
    return hashlib.sha256(b"sjs/1/sas" + genesis + head + device + asking + answering + sign_pub + wrap_pub).digest()


def heads_digest(account: bytes, log_head: bytes, heads: Mapping[tuple[bytes, bytes], tuple[int, bytes]]) -> bytes:
    """Return what `sync verify` shows as words: where the account log and every lane (scope, device) end, (n, link)."""
    summed = hashlib.sha256(b"sjs/1/heads" + account + log_head)
    for (scope, device), (n, tip) in sorted(heads.items()):
        summed.update(scope + device + n.to_bytes(8, "big") + tip)
    return summed.digest()
