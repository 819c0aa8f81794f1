"""The account log as this device has pinned it: its entries in the store, and what they add up to.

Theory of operation. What was verified once is not verified again: beside the entries the store keeps the state after
the last one, and what follows is replayed from there. A device that is new reads the log from its newest checkpoint on,
where the person's words lead back to it by hashes, and from the genesis where only the recovery code speaks for it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    MalformedError,
    NotFoundError,
    RolledBackError,
    SplitError,
)
from scrubjay_shared.wire import LogPage
from scrubjay_sync.account.changes import changes_in
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.log import pages_of
from scrubjay_sync.policy import ACCOUNT_CHANGED

log = logging.getLogger(__name__)

_VERIFY = "scrubjay sync verify"


@contextmanager
def as_not_theirs(origin: str) -> Iterator[None]:
    """Say of what is wrong with a log, on a machine that is in no account yet, whose log it is and what to do."""
    try:
        yield
    except (BadSignatureError, BrokenChainError, MalformedError, SplitError) as error:
        raise type(error)(
            f"the account log that {origin} shows is not that of your account: {error.message}",
            hint="do not trust that server, and do not type the recovery code for it again: check its address, and ask"
            " whoever runs it. It was sent the login, and at most the request of this machine to be let in",
        ) from error


async def fetch_log(cloud: Cloud, *, pending: str | None = None, start: int = 0) -> tuple[list[bytes], LogPage]:
    """Return the account log from an entry on, all its pages, and the last page.

    Raises WithheldError, and where its entries are no chain MalformedError and BrokenChainError, before it asks for the
    next page. Who signed them is not looked at.
    """
    entries: list[bytes] = []
    link: bytes | None = None
    async for page in _pages(cloud, start, pending):
        for new in map(account_log.read, page.entries):
            if link is not None and new.prev != link:
                raise BrokenChainError("the server hands out an account log that is no chain", hint=_VERIFY)
            link = new.hash
        entries += page.entries
    return entries, page


def _pages(cloud: Cloud, start: int, pending: str | None = None) -> AsyncIterator[LogPage]:
    return pages_of(partial(cloud.log.page, pending=pending), start, "the account log", hint=_VERIFY)


async def fetch_since_checkpoint(
    cloud: Cloud, now: Millis, *, pending: str | None = None
) -> tuple[list[bytes], list[AccountState]]:
    """Return the account log from its newest checkpoint on, or whole where it has none, and the state after each entry.

    Nothing says yet that the checkpoint is the account's own: see `account.after_checkpoint`. Raises what replaying
    raises, SplitError when the server contradicts itself.
    """
    try:
        found = await cloud.log.checkpoint(pending=pending)
    except NotFoundError:
        return await _fetch_whole(cloud, now, pending)
    first = account_log.after_checkpoint(found.entry, found.state)
    entries, _ = await fetch_log(cloud, pending=pending, start=first.seq)
    if not entries or entries[0] != found.entry:
        raise SplitError("the server shows a checkpoint that its account log does not have", hint="do not trust it")
    if any(seq < first.seq for seq in account_log.undone_from(entries)):
        return await _fetch_whole(cloud, now, pending)
    return entries, account_log.extended([first], entries[1:], now)


async def _fetch_whole(cloud: Cloud, now: Millis, pending: str | None) -> tuple[list[bytes], list[AccountState]]:
    entries, _ = await fetch_log(cloud, pending=pending)
    return entries, account_log.extended((), entries, now)


async def fetch_states(
    cloud: Cloud, wanted: set[int], last: AccountState, *, pending: str | None = None
) -> dict[int, AccountState]:
    """Return the states after some entries up to `last`, from the whole log: replayed from its genesis.

    Raises SplitError when that log does not lead to `last`, and what replaying raises.
    """
    entries, _ = await fetch_log(cloud, pending=pending)
    whole, found = account_log.replayed(entries[: last.seq + 1], wanted)
    if (whole.seq, whole.head) != (last.seq, last.head):
        raise SplitError(
            f"the account log from its first entry on does not lead to entry {last.seq} as this device holds it",
            hint="do not trust this server; scrubjay sync verify on each device compares them",
        )
    return found


class PinnedLog:
    """What the account adds up to after the last entry held (`state`), and how it follows the server's log."""

    def __init__(self, store: Store, state: AccountState, now: Callable[[], Millis]) -> None:
        """Made by `load`."""
        self._store = store
        self._now = now
        self.state = state

    @classmethod
    async def load(cls, store: Store, now: Callable[[], Millis]) -> PinnedLog | None:
        """Return the log that the store holds; None when it holds none.

        Raises CorruptError when what the store holds does not fit together, and what replaying raises.
        """
        kept = await store.read(lambda q: q.replication.account_state())
        if kept is not None:
            state = account_log.state_of(kept)
            last = await store.read(lambda q: q.replication.account_entry(state.seq))
            if last is not None and account_log.read(last).hash == state.head:
                return cls(store, state, now)
        entries = await store.read(lambda q: q.replication.account_log())
        if not entries:
            return None
        if account_log.read(entries[0]).seq != 0:
            raise CorruptError(
                "the state of the account that this store kept is gone",
                hint="scrubjay logout --force, then scrubjay login; all memories stay",
            )
        state = account_log.replay(entries)
        await store.write(lambda tx: tx.replication.keep_account(state.seq, account_log.state_bytes(state)))
        return cls(store, state, now)

    async def entries(self, start: int = 0) -> list[bytes]:
        """Return the entries held from a number on; the first ones may be missing (see above)."""
        return await self._store.read(lambda q: q.replication.account_log(start))

    async def catch_up(self, cloud: Cloud) -> None:
        """Fetch what follows the last entry held, and pin it page by page as each is verified.

        Raises RolledBackError, SplitError, and what replaying raises.
        """
        held: bytes | None = None
        async for page in _pages(cloud, self.state.seq):
            # The first page begins with the last entry held, and each later one behind the page before.
            entries = page.entries if held is None else (held, *page.entries)
            await self._take_page(cloud, page, entries)
            held = entries[-1]
        if self.state.head != page.head:
            raise SplitError(
                "the server names another end of the account log than it hands out", hint="scrubjay sync verify"
            )

    async def _take_page(self, cloud: Cloud, page: LogPage, entries: Sequence[bytes]) -> None:
        """Verify and pin the entries of a page, of which the first is the last one held."""
        last = self.state
        if page.seq < last.seq:
            raise RolledBackError(
                f"the server's account log ends at entry {page.seq}; it has shown entry {last.seq} before",
                hint="if its operator restored a backup, scrubjay sync puts the rest back; else do not trust it",
            )
        if not entries or account_log.read(entries[0]).hash != last.head:
            raise SplitError(
                f"the server shows another entry {last.seq} of the account log than before",
                hint="do not trust it until you know why; scrubjay sync verify on each device compares them",
            )
        undone = {seq for seq in account_log.undone_from(entries) if seq < last.seq}
        earlier = await fetch_states(cloud, undone, last) if undone else {}
        states = account_log.extended([last], entries[1:], self._now(), earlier=earlier)
        await self.extend(states, entries[1:])

    async def extend(self, states: Sequence[AccountState], entries: Sequence[bytes]) -> None:
        """Pin some more entries; `states` are that before them and those after each. Changes of who is in are told."""
        if entries:
            first, state, told = self.state.seq + 1, states[-1], changes_in(states, entries)

            def keep(tx: Transaction) -> None:
                tx.replication.keep_log(first, list(entries))
                tx.replication.keep_account(state.seq, account_log.state_bytes(state))
                # In the same transaction: no crash may leave a change of who is in that nobody is told of.
                for one in told:
                    tx.replication.raise_alarm(ACCOUNT_CHANGED, one.subject, one.words, one.hint)

            await self._store.write(keep)
            for one in told:
                log.warning("account changed entry=%d: %s", one.seq, one.words)
            self.state = state
