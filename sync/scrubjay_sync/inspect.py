"""What a server could learn: everything it holds of an account, fetched, and searched for the person's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from scrubjay.store import Store
from scrubjay_shared import sealing, segment
from scrubjay_shared.envelope import Envelope, Suite
from scrubjay_shared.errors import CorruptError, NotFoundError
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.policy import SYNC

_STRANGER = bytes(range(32))
"""Some key that is not ours: it must open nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was looked at, and what was found that should not be there.

    `readable` objects are of searchable scopes, which the server may read by the account's own decision; nothing is
    searched for in them. `grams` runs of bytes were looked for, from `texts` memories, events, names and projects.
    `sizes` counts the different sizes of sealed bodies. `findings` name places, never words.
    """

    objects: int
    bytes: int
    readable: int
    texts: int
    grams: int
    sizes: int
    findings: tuple[str, ...]

    @property
    def blind(self) -> bool:
        """Whether the server holds nothing that it could read."""
        return not self.findings


async def inspect(store: Store, member: Member, cloud: Cloud) -> Inspection:
    """Fetch what the server holds, and say what in it is not as it must be."""
    texts = await _samples(store)
    grams = _grams(texts)
    findings: list[str] = []
    count = size = readable = 0
    sizes: set[int] = set()
    for head in (await cloud.heads()).heads:
        lane = f"lane {head.device.hex()[:8]} of scope {head.scope.hex()[:8]}"
        if head.scope not in member.scopes.ids:
            continue
        n = 0
        while n < head.n:
            page = await cloud.lane(head.scope, head.device, start=n + 1)
            if not page:
                findings.append(f"{lane}: place {n + 1} is not handed out")
                break
            for envelope in page:
                n = envelope.header.n_to
                count += 1
                size += len(envelope.data)
                if envelope.header.suite == Suite.OPEN:
                    readable += 1
                    if member.scopes.suite(envelope.header.scope) != Suite.OPEN:
                        findings.append(f"{lane}: place {n} is readable")
                    continue
                sizes.add(len(envelope.body))
                findings += [f"{lane}: place {n} {wrong}" for wrong in _wrong(envelope, member, grams)]
    for name, data in await _beside(member, cloud):
        count += 1
        size += len(data)
        if _holds(data, grams):
            findings.append(f"{name} holds words of this store")
    return Inspection(
        objects=count,
        bytes=size,
        readable=readable,
        texts=len(texts),
        grams=len(grams),
        sizes=len(sizes),
        findings=tuple(findings),
    )


def _wrong(envelope: Envelope, member: Member, grams: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Iterable[str]:
    """Yield what is wrong with one sealed object."""
    header = envelope.header
    if _holds(envelope.data, grams):
        yield "holds words of this store"
    padded = header.body_len - sealing.TAG_BYTES
    if padded < segment.FLOOR_BYTES or segment.padme(padded) != padded:
        yield "is not padded"
    if _opens(envelope, lambda: _STRANGER):
        yield "opens with a stranger's key"
    if not _opens(envelope, lambda: member.scopes.key(header.scope, header.epoch)):
        yield "does not open with this account's key"


def _opens(envelope: Envelope, key: Callable[[], bytes]) -> bool:
    try:
        sealing.unseal(envelope, key=key())
    except (CorruptError, NotFoundError):  # another key, or none
        return False
    return True


async def _beside(member: Member, cloud: Cloud) -> list[tuple[str, bytes]]:
    """Return what the server holds besides lanes: the account log, this device's wraps, the keyring."""
    log = b"".join((await cloud.log.page()).entries)
    for origin in member.state.origins:  # the server's own address stands there in clear
        log = log.replace(origin.encode(), b"")
    found = [("the account log", log)]
    found += [("a wrapped key", wrap.sealed) for wrap in (await cloud.log.wraps(member.device)).wraps]
    if member.state.keyring is not None:
        found.append(("the keyring", await cloud.log.blob(member.state.keyring[1])))
    return found


async def _samples(store: Store) -> list[str]:
    """Return texts of every kind that never leave a device readable, newest and oldest."""
    return await store.read(lambda q: q.stats.sample(SYNC.sample_texts))


def _grams(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return runs of 8 bytes of some texts as numbers, sorted: a few from each, none of them mostly one character."""
    found: set[int] = set()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        last = len(data) - SYNC.gram_bytes
        if last < 0:
            continue
        step = max(1, last // SYNC.grams_of_text)
        for at in range(0, last + 1, step):
            gram = data[at : at + SYNC.gram_bytes]
            if len(set(gram)) >= SYNC.gram_bytes // 2:
                found.add(int.from_bytes(gram, "little"))
    return np.array(sorted(found), dtype=np.uint64)


def _holds(data: bytes, grams: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bool:
    """Say whether any of the runs occurs anywhere in some bytes."""
    if not len(grams):
        return False
    for offset in range(SYNC.gram_bytes):
        usable = (len(data) - offset) // SYNC.gram_bytes * SYNC.gram_bytes
        if usable <= 0:
            continue
        windows = np.frombuffer(data, dtype="<u8", count=usable // SYNC.gram_bytes, offset=offset)
        places = np.minimum(np.searchsorted(grams, windows), len(grams) - 1)
        if bool(np.any(grams[places] == windows)):
            return True
    return False
