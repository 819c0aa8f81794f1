"""Who waits for news of which account. A push to this process wakes them at once, one to another when it is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from scrubjay_cloud.announcements import Announcements
from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_shared.errors import TooManyError, UnavailableError

ACCOUNTS_A_QUERY = 500  # values in one statement


@dataclass(slots=True, eq=False)
class Watch:
    """Somebody who waits. `gseq` is the newest position heard of since the watch began, -1 for none.

    `head` is the end of the account's log when it began, or as it was looked up since.
    """

    head: bytes
    gseq: int = -1
    closing: bool = False
    changed: bool = False
    _future: asyncio.Future[None] | None = field(default=None, repr=False)

    async def wait_beyond(self, gseq: int, seconds: float) -> bool:
        """Wait until the account is beyond `gseq` or something else of it has changed; say whether it did in time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self.gseq <= gseq and not self.closing and not self.changed:
            left = end - loop.time()
            if left <= 0:
                return False
            self._future = loop.create_future()
            timer = loop.call_later(left, _done, self._future)
            try:
                await self._future
            finally:
                timer.cancel()
                self._future = None
        news, self.changed = self.gseq > gseq or self.changed, False
        return news

    def advance(self, gseq: int) -> None:
        """Note a position."""
        if gseq > self.gseq:
            self.gseq = gseq
            self.wake()

    def follow(self, head: bytes) -> None:
        """Note where the account's log ends."""
        if head != self.head:
            self.head, self.changed = head, True
            self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
        if self._future is not None:
            _done(self._future)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Notifier:
    """All watches of a process; `sender` tells it from others that share its database."""

    def __init__(self, database: Database, policy: CloudPolicy, *, sender: str) -> None:
        self._database = database
        self._policy = policy
        self._watches: dict[bytes, set[Watch]] = {}
        self._by_device: Counter[bytes] = Counter()
        self._closing = False
        self._others: Announcements | None = None
        if database.channel is not None:
            self._others = Announcements(database.channel, policy, sender=sender, hear=self._hear, look=self._look)

    def __len__(self) -> int:
        return self._by_device.total()

    @contextmanager
    def watch(self, account: bytes, device: bytes, head: bytes) -> Iterator[Watch]:
        """Watch an account for a device: begin before reading it, so that nothing falls in between.

        `head` is the end of the account's log that the caller goes by. Raises as `check_room`.
        """
        self.check_room(device)
        watch = Watch(head=head, closing=self._closing)
        self._watches.setdefault(account, set()).add(watch)
        self._by_device[device] += 1
        if self._others is not None:
            self._others.listen()
        try:
            yield watch
        finally:
            self._by_device[device] -= 1
            if not self._by_device[device]:
                del self._by_device[device]
            watches = self._watches[account]
            watches.discard(watch)
            if not watches:
                del self._watches[account]

    def check_room(self, device: bytes) -> None:
        """Check that one more may wait.

        Raises TooManyError for a device that waits several times already, UnavailableError where nobody fits any more.
        """
        if self._by_device[device] >= self._policy.waits_per_device:
            raise TooManyError(
                f"this device waits for news {self._policy.waits_per_device} times already",
                hint="end the others, or ask without waiting",
                retry_after=self._policy.max_wait_s,
            )
        if len(self) >= self._policy.waits:
            raise UnavailableError(
                "as many wait for news here as this server holds", hint="ask without waiting, or try again in a minute"
            )

    def notify(self, account: bytes, gseq: int) -> None:
        """Wake who waits for an account to be at a position, or beyond, here and at other instances."""
        self._hear(account, gseq)
        if self._others is not None:
            self._others.tell(account, gseq)

    def wake(self, account: bytes) -> None:
        """Have those who watch an account look again: something other than its objects has changed."""
        self._hear(account, None)
        if self._others is not None:
            self._others.tell(account, None)

    def close(self) -> None:
        """Answer everyone who waits, now and from now on."""
        self._closing = True
        if self._others is not None:
            self._others.close()
        for watches in self._watches.values():
            for watch in watches:
                watch.closing = True
                watch.wake()

    def _hear(self, account: bytes, gseq: int | None) -> None:
        for watch in tuple(self._watches.get(account, ())):
            if gseq is not None:
                watch.advance(gseq)
            else:
                watch.changed = True
                watch.wake()

    async def _look(self) -> None:
        """Look up what others may have stored of the accounts that are watched."""
        accounts = tuple(self._watches)
        for start in range(0, len(accounts), ACCOUNTS_A_QUERY):
            some = accounts[start : start + ACCOUNTS_A_QUERY]
            for account, gseq, head in await self._database.read(partial(_ends, accounts=some)):
                self._hear(account, gseq)
                for watch in tuple(self._watches.get(account, ())):
                    watch.follow(head)


def _ends(tx: Transaction, *, accounts: tuple[bytes, ...]) -> list[Row]:
    marks = ",".join("?" * len(accounts))
    return tx.rows(f"select id, gseq, log_head from account where id in ({marks})", accounts)
