"""The account log as this device has pinned it: entry by entry in the store, replayed from its genesis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    RolledBackError,
    SplitError,
    WithheldError,
)
from scrubjay_shared.wire import LogPage
from scrubjay_sync.account.changes import changes_in
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.policy import ACCOUNT_CHANGED

log = logging.getLogger(__name__)


async def fetch_log(cloud: Cloud, *, pending: str | None = None, start: int = 0) -> tuple[list[bytes], LogPage]:
    """Return the account log from an entry on, all its pages, and the last page. Raises WithheldError."""
    entries: list[bytes] = []
    while True:
        page = await cloud.log.page(start + len(entries), pending=pending)
        entries += page.entries
        if start + len(entries) > page.seq:
            return entries, page
        if not page.entries:
            raise WithheldError("the server does not hand out the end of the account log", hint="scrubjay sync verify")


class PinnedLog:
    """The entries held, and the account after each of them (`states`)."""

    def __init__(self, store: Store, entries: Sequence[bytes], now: Callable[[], Millis]) -> None:
        """Replay the entries. Raises what replaying raises."""
        self._store = store
        self._now = now
        self._entries = list(entries)
        self.states = account_log.extended((), entries)

    @property
    def state(self) -> AccountState:
        """What the entries add up to."""
        return self.states[-1]

    @property
    def entries(self) -> tuple[bytes, ...]:
        """The entries, from the genesis on."""
        return tuple(self._entries)

    async def catch_up(self, cloud: Cloud) -> None:
        """Fetch what follows the last entry held. Raises RolledBackError, SplitError, and what replaying raises."""
        last = self.state
        entries, page = await fetch_log(cloud, start=last.seq)
        if page.seq < last.seq:
            raise RolledBackError(
                f"the server's account log ends at entry {page.seq}; it has shown entry {last.seq} before",
                hint="if its operator restored a backup, scrubjay sync puts the rest back; else do not trust it",
            )
        if not entries or entries[0] != self._entries[-1]:
            raise SplitError(
                f"the server shows another entry {last.seq} of the account log than before",
                hint="do not trust it until you know why; scrubjay sync verify on each device compares them",
            )
        states = account_log.extended(self.states, entries[1:], self._now())
        if states[-1].head != page.head:
            raise SplitError(
                "the server names another end of the account log than it hands out", hint="scrubjay sync verify"
            )
        await self.extend(states, entries[1:])

    async def extend(self, states: list[AccountState], entries: Sequence[bytes]) -> None:
        """Pin some more entries; `states` are those after all of them. Changes of who is in become alarms."""
        first = len(self._entries)
        if entries:
            told = changes_in(states, entries)

            def keep(tx: Transaction) -> None:
                tx.replication.keep_log(first, list(entries))
                # In the same transaction: no crash may leave a change of who is in that nobody is told of.
                for one in told:
                    tx.replication.raise_alarm(ACCOUNT_CHANGED, one.subject, one.words, one.hint)

            await self._store.write(keep)
            for one in told:
                log.warning("account changed entry=%d: %s", one.seq, one.words)
            self._entries += entries
            self.states = states
