"""What an account's log adds up to, stored by its head: nobody replays a log to answer a request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.wire import LogCheckpoint


def log_entries(tx: Transaction, account: bytes, start: int = 0, count: int = -1) -> list[bytes]:
    """Return an account's log entries from a number on; `count` -1 means all."""
    limit = "" if count < 0 else f" limit {int(count)}"
    rows = tx.rows(
        f"select entry from account_log where account = ? and seq >= ? order by seq{limit}", (account, start)
    )
    return [row[0] for row in rows]


def since_stored(tx: Transaction, account: bytes) -> tuple[AccountState | None, list[bytes]]:
    """Return the newest stored state and the entries after it; None and the whole log where that does not do."""
    state, entries = _from_stored(tx, account, None)
    if state is not None and any(seq < state.seq for seq in accountlog.undone_from(entries)):
        return None, log_entries(tx, account)
    return state, entries


def replayed_since(state: AccountState | None, entries: Sequence[bytes]) -> AccountState:
    """Return what some entries after a state add up to, or a whole log with None. Raises what replaying raises."""
    return accountlog.replay(entries) if state is None else accountlog.extended([state], entries)[-1]


def states_after(tx: Transaction, account: bytes, wanted: Collection[int]) -> dict[int, AccountState]:
    """Return the states after some entries: what void entries go back to."""
    found = {}
    for seq in sorted(wanted):
        state, entries = _from_stored(tx, account, seq)
        if state is not None and all(one >= state.seq for one in accountlog.undone_from(entries)):
            found[seq] = replayed_since(state, entries)
        else:
            found |= accountlog.replayed(log_entries(tx, account, 0, seq + 1), {seq})[1]
    return found


def _from_stored(tx: Transaction, account: bytes, upto: int | None) -> tuple[AccountState | None, list[bytes]]:
    """Return the newest stored state up to an entry, if there is one, and the entries that follow it up to there."""
    limit, arguments = ("", (account,)) if upto is None else (" and seq <= ?", (account, upto))
    row = tx.row(f"select state from account_state where account = ?{limit} order by seq desc limit 1", arguments)
    state = None if row is None else accountlog.state_of(row[0])
    start = 0 if state is None else state.seq + 1
    return state, log_entries(tx, account, start, -1 if upto is None else upto + 1 - start)


def keep_state(tx: Transaction, state: AccountState) -> None:
    """Store a state beside what is stored."""
    tx.execute(
        "insert into account_state (account, seq, head, state) values (?, ?, ?, ?)"
        " on conflict (account, seq) do nothing",
        (state.account, state.seq, state.head, accountlog.state_bytes(state)),
    )


def keep_states(tx: Transaction, states: Sequence[AccountState], checkpoints: int) -> None:
    """Store the last of some states in a row, in the place of the newest before, and those that checkpoints state.

    The entries are stored already. Of the states that checkpoints state, the newest `checkpoints` stay.
    """
    last = states[-1]
    stated = {before.seq for before, after in pairwise(states) if after.checkpoint == after.seq}
    kept = sorted(_stated(tx, last.account) | stated)[-checkpoints:]
    tx.many(
        "delete from account_state where account = ? and seq = ?",
        [
            (last.account, row[0])
            for row in tx.rows("select seq from account_state where account = ?", (last.account,))
            if row[0] not in kept
        ],
    )
    for state in states:
        if state is last or state.seq in kept:
            keep_state(tx, state)


def _stated(tx: Transaction, account: bytes) -> set[int]:
    """Return the numbers of the stored states that a checkpoint entry follows."""
    rows = tx.rows(
        "select s.seq, l.entry from account_state s join account_log l on l.account = s.account and l.seq = s.seq + 1"
        " where s.account = ?",
        (account,),
    )
    return {row[0] for row in rows if accountlog.read(row[1]).type == EntryType.CHECKPOINT}


def newest_checkpoint(tx: Transaction, account: bytes, before: int) -> LogCheckpoint | None:
    """Return the newest checkpoint up to entry `before` whose state is stored; None where there is none.

    One whose state is too long for one answer is as good as none.
    """
    rows = tx.rows(
        "select l.entry, s.state from account_state s join account_log l on l.account = s.account and l.seq = s.seq + 1"
        " where s.account = ? and l.seq <= ? order by l.seq desc",
        (account, before),
    )
    for entry, state in rows:
        if accountlog.read(entry).type == EntryType.CHECKPOINT and len(state) <= accountlog.MAX_STATE_BYTES:
            return LogCheckpoint(entry=entry, state=state)
    return None
