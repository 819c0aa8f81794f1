"""Putting back what a server lost of an account: the end of its log, and the keyring that the log names."""

from __future__ import annotations

from scrubjay_shared.account import read
from scrubjay_shared.errors import NotFoundError, SplitError
from scrubjay_shared.wire import LogAppend
from scrubjay_sync.account.drafts import wraps_after
from scrubjay_sync.account.pinned_log import PinnedLog
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import RootKey
from scrubjay_sync.keys.keyring import Keyring, digest_of


async def repair_log(
    cloud: Cloud, log: PinnedLog, *, sealed: bytes | None, root: RootKey | None, keyring: Keyring | None
) -> int:
    """Give the server the entries behind those that it has; returns how many they are.

    `sealed` is the keyring as this device keeps it: it goes along, or alone, where it is the one that the log names.
    `root` and `keyring` are None on a device without a say in the account, which gives no wraps. Raises SplitError when
    the server's log is not the beginning of ours.
    """
    page = await cloud.log.page(log.state.seq + 1)
    held = await log.entries(max(page.seq, 0)) if page.seq < log.state.seq else []
    lost = held[1:]
    newest = sealed if sealed is not None and _is_named(sealed, log) else None
    if lost:
        if page.seq < 0 or read(held[0]).hash != page.head:
            raise SplitError(
                "the server shows another account log than this device has read before", hint="scrubjay sync verify"
            )
        wraps = () if root is None or keyring is None else wraps_after(None, log.state, root=root, keyring=keyring)
        await cloud.log.append(
            LogAppend(
                head=page.head,
                entries=tuple(lost),
                wraps=wraps,
                blobs=() if newest is None else (newest,),
            )
        )
    elif newest is not None:
        await _put_back(cloud, newest)
    return len(lost)


def _is_named(sealed: bytes, log: PinnedLog) -> bool:
    """Say whether a sealed keyring is the one that the log names."""
    return log.state.keyring is not None and digest_of(sealed) == log.state.keyring[1]


async def _put_back(cloud: Cloud, sealed: bytes) -> None:
    """Store a keyring at the server unless it is there."""
    digest = digest_of(sealed)
    try:
        await cloud.log.blob(digest)
    except NotFoundError:
        await cloud.log.put_blob(digest, sealed)
