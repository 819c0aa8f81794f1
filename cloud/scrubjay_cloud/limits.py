"""How often one may ask: token buckets in the database, spent from memory, so that all instances share a limit.

A process draws some tokens at a time (`Bucket.draw`) and spends those without asking again. What it has drawn and not
spent when it ends is lost, which only ever makes the limit a little tighter.

Who has proved nothing yet costs no write: those buckets are in memory, one set a process (`spend_here`), so that
several processes let through as many times more. Addresses and names are kept as keyed hashes.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable

from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.policy import Bucket
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import TooManyError

NETWORK_BYTES = {4: 3, 8: 6}
"""How much of an address says which network it is of, by its length: /24 of IPv4, /48 of IPv6's first 64 bits."""


def network_of(address: bytes) -> bytes:
    """Return the network that an address is of, as `guard.address` gives it: what one customer is given, mostly."""
    return address[: NETWORK_BYTES.get(len(address), 0)]


KEYS_IN_MEMORY = 20_000  # drawn and unspent tokens that a process remembers; who falls out draws again


class Limits:
    """The buckets, as one process sees them."""

    def __init__(self, database: Database, *, now: Callable[[], Millis], key: bytes) -> None:
        self._database = database
        self._now = now
        self._key = key
        self._drawn: OrderedDict[tuple[str, bytes], float] = OrderedDict()
        self._here: OrderedDict[bytes, tuple[float, Millis]] = OrderedDict()

    async def spend(self, name: str, whose: bytes, bucket: Bucket, amount: float = 1) -> None:
        """Take tokens, or raise TooManyError with the seconds after which there will be enough."""
        key = (name, whose)
        have = self._drawn.pop(key, 0.0)
        if have < amount:
            now, missing = self._now(), amount - have
            hidden = f"{name}:{hmac.digest(self._key, name.encode() + b'/' + whose, 'sha256')[:16].hex()}"
            got = await self._database.write(lambda tx: _draw(tx, hidden, bucket, missing, now))
            # Another request may have drawn meanwhile: what it left is there as well.
            have += self._drawn.pop(key, 0.0)
            if got < 0:
                self._keep(key, have)
                raise _too_many(-got)
            have += got
        self._keep(key, have - amount)

    def spend_here(self, name: str, whose: bytes, bucket: Bucket) -> None:
        """Take a token of a bucket that this process alone keeps. Raises TooManyError as `spend` does."""
        key, now = hmac.digest(self._key, name.encode() + b"/" + whose, "sha256")[:16], self._now()
        tokens, at = self._here.pop(key, (bucket.burst, now))
        tokens = min(bucket.burst, tokens + max(0, now - at) / 1000 * bucket.rate)
        self._here[key] = (max(tokens - 1, 0.0) if tokens >= 1 else tokens, now)
        while len(self._here) > KEYS_IN_MEMORY:
            self._here.popitem(last=False)
        if tokens < 1:
            raise _too_many((1 - tokens) / bucket.rate)

    def _keep(self, key: tuple[str, bytes], tokens: float) -> None:
        if tokens > 0:
            self._drawn[key] = tokens
            while len(self._drawn) > KEYS_IN_MEMORY:
                self._drawn.popitem(last=False)


def _too_many(seconds: float) -> TooManyError:
    return TooManyError(
        "too many requests of this kind in a short time",
        hint="wait as long as the header Retry-After says",
        retry_after=seconds,
    )


def _draw(tx: Transaction, key: str, bucket: Bucket, missing: float, now: Millis) -> float:
    """Return how many tokens were drawn, at least `missing`; else minus the seconds until there will be as many."""
    held = "update bucket set tokens = tokens where k = ? returning tokens, at"  # locks the row
    row = tx.row(held, (key,))
    if row is None:
        tx.execute(
            "insert into bucket (k, tokens, at) values (?, ?, ?) on conflict (k) do nothing", (key, bucket.burst, now)
        )
        row = tx.row(held, (key,))
    tokens, at = (float(row[0]), int(row[1])) if row is not None else (bucket.burst, now)
    there = min(bucket.burst, tokens + max(0, now - at) / 1000 * bucket.rate)
    if there < missing:
        return -(missing - there) / bucket.rate
    got = min(there, max(missing, bucket.draw))
    tx.execute("update bucket set tokens = ?, at = ? where k = ?", (float(there - got), now, key))
    return got
