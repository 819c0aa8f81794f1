"""The transaction that stores objects: under the lock of the account's row, in the order of `gseq`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrubjay_cloud.admission import IN_FORCE
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.lanes.validate import BROKEN, DUP, FORK, OK, PACK, Item, Lane, Run
from scrubjay_cloud.refusals import account_deleted
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import (
    HEADER_BYTES,
    lane_root,
)
from scrubjay_shared.errors import (
    DeniedError,
    GapError,
    QuotaError,
)
from scrubjay_shared.wire import PushAnswer, Pushed

_PREV = "substr(body, 77, 32)"  # a header's `prev`: every row has the header, wherever the rest is


class LogMovedError(Exception):
    """The account log is not the one the request was checked against."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self.head = head


@dataclass(slots=True)
class LockedAccount:
    """An account's counts under the lock of its row, and what a request adds to them.

    `share` is how much of its quota who asks may fill: `quota` and `quota_objects` are that much already.
    `writes` are the statements with which the transaction ends: nothing reads what they write before.
    """

    id: bytes
    gseq: int
    bytes: int
    objects: int
    superseded: int
    quota: int
    quota_objects: int
    quota_superseded: int
    share: float
    writes: list[tuple[str, list[tuple[Any, ...]]]] = field(default_factory=list, compare=False)


def locked(tx: Transaction, service: Service, account: bytes, head: bytes, *, share: float = 1.0) -> LockedAccount:
    """Take the account's row, first of all: whoever else writes to the account waits for this transaction's end.

    `share` is how much of its quota who asks may fill.

    Raises LogMovedError when its log is not at `head`, DeniedError when it is locked, NotFoundError when it is gone.
    """
    row = tx.row(
        f"select gseq, bytes, objects, superseded, quota, log_head, status from account where id = ?{tx.for_update}",
        (account,),
    )
    if row is None:
        raise account_deleted()
    gseq, used, objects, superseded, quota, log_head, status = row
    if status != IN_FORCE:
        raise DeniedError("the server's operator has locked the account", hint="ask the operator")
    if log_head != head:
        raise LogMovedError(log_head)
    quota = service.settings.quota_bytes if quota is None else quota
    return LockedAccount(
        id=account,
        gseq=gseq,
        bytes=used,
        objects=objects,
        superseded=superseded,
        quota=int(quota * share),
        quota_objects=int(service.policy.quota_objects * share),
        quota_superseded=max(quota, service.policy.quota_bytes),
        share=share,
    )


def write_back(tx: Transaction, account: LockedAccount) -> None:
    """Write what is left to write, and the account's counts."""
    counts = (account.gseq, account.bytes, account.objects, account.superseded, account.id)
    tx.pipeline(
        *account.writes,
        ("update account set gseq = ?, bytes = ?, objects = ?, superseded = ? where id = ?", [counts]),
    )


def _head(tx: Transaction, account: bytes, lane: Lane) -> tuple[int, bytes]:
    row = tx.row("select n, tip from lane where account = ? and scope = ? and device = ?", (account, *lane))
    return (row[0], row[1]) if row else (0, lane_root(account, *lane))


_SET_HEAD = (
    "insert into lane (account, scope, device, n, tip) values (?, ?, ?, ?, ?)"
    " on conflict (account, scope, device) do update set n = excluded.n, tip = excluded.tip"
)
_INSERT = (
    "insert into object"
    " (account, gseq, scope, device, kind, n_from, n_to, hash, tip, size, received, body, body_key)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _object_row(account: bytes, gseq: int, item: Item, now: Millis) -> tuple[Any, ...]:
    header, data = item.header, item.data
    return (
        account,
        gseq,
        header.scope,
        header.device,
        header.kind,
        header.n_from,
        header.n_to,
        item.link,
        item.end,
        len(data),
        now,
        data[:HEADER_BYTES] if item.body_key else data,
        item.body_key or None,
    )


def _append(
    tx: Transaction, account: LockedAccount, items: Sequence[Item], run: Run, now: Millis
) -> tuple[dict[int, str], int, bytes]:
    """Return what becomes of a run's objects, and where the lane ends then; note the rows to write."""
    n, tip = _head(tx, account.id, run.lane)
    statuses: dict[int, str] = {}
    rows: list[tuple[Any, ...]] = []
    left = list(run.accepted)
    while left:
        index, item = left[0], items[left[0]]
        header = item.header
        if header.n_to <= n:
            status = DUP if _is_stored(tx, account.id, item) else FORK
        elif header.n_from <= n:
            # A pack that reaches beyond what there is: after a rollback, a device may hold nothing smaller.
            status = _replaced(tx, account, item, now, end=None)
        elif header.n_from > n + 1:
            status = GapError.code
        else:
            # Its chain and signature hold: another object than the one it continues stands before it here.
            status = OK if header.prev == tip else FORK
        if status not in {OK, DUP}:
            run.reason = status
            break
        if status == OK:
            account.gseq += 1
            rows.append(_object_row(account.id, account.gseq, item, now))
            account.bytes += rows[-1][9]
            account.objects += 1
            n, tip = header.n_to, item.end
        statuses[index] = status
        left.pop(0)
    run.rejected[:0] = left
    if rows:
        account.writes += [(_SET_HEAD, [(account.id, *run.lane, n, tip)]), (_INSERT, rows)]
    return statuses, n, tip


def _is_stored(tx: Transaction, account: bytes, item: Item) -> bool:
    """Return whether this very object stands, or stood until a pack replaced it, where the lane has it.

    An object that ends where a stored one does, with the same link, continues the same chain. Of what a pack has
    replaced long ago nothing is left to compare with: then it counts as another, for a device that sends it has been
    set back to an old state and must not take its new writes for stored.
    """
    lane = "from object where account = ? and scope = ? and device = ? and n_from"
    key = (account, *item.lane)
    last = tx.row(
        f"select n_to, tip {lane} <= ? and superseded_at is null order by n_from desc limit 1",
        (*key, item.header.n_to),
    )
    if last is not None and last[0] == item.header.n_to:
        return bool(last[1] == item.end)
    old = tx.rows(f"select hash {lane} = ? and superseded_at is not null", (*key, item.header.n_from))
    return (item.link,) in old


def _replaced(tx: Transaction, account: LockedAccount, item: Item, now: Millis, *, end: bytes | None) -> str:
    """Set aside the objects that a pack stands for, and say whether it may.

    `end` is the link that the last of them must have; None when the pack goes beyond them, so that nobody can tell.
    """
    header = item.header
    key = (account.id, *item.lane)
    rows = tx.rows(
        f"select n_from, n_to, gseq, size, tip, {_PREV} from object where account = ? and scope = ? and device = ?"
        " and n_from >= ? and n_from <= ? and superseded_at is null order by n_from",
        (*key, header.n_from, header.n_to),
    )
    if not rows or rows[0][0] != header.n_from or (end is not None and rows[-1][1] != header.n_to):
        return GapError.code if header.kind == PACK else FORK
    if header.kind != PACK:
        return FORK
    if rows[0][5] != header.prev or (end is not None and rows[-1][4] != header.tip):
        return BROKEN
    tx.execute(
        "update object set superseded_at = ? where account = ? and scope = ? and device = ?"
        " and n_from >= ? and n_from <= ? and superseded_at is null",
        (now, *key, header.n_from, header.n_to),
    )
    size = sum(row[3] for row in rows)
    account.bytes -= size
    account.superseded += size
    account.objects -= len(rows)
    return OK


Store = Callable[[Transaction, LockedAccount, list[Item], list[Run], Millis], PushAnswer]
"""Stores what may be stored of the runs of a request, and says what became of each object."""


def store_runs(tx: Transaction, account: LockedAccount, items: list[Item], runs: list[Run], now: Millis) -> PushAnswer:
    """Append runs to their lanes. Raises QuotaError, and then nothing is stored."""
    statuses: dict[int, str] = {}
    ends: dict[Lane, tuple[int, bytes]] = {}
    for run in runs:
        appended, n, tip = _append(tx, account, items, run, now)
        statuses |= appended
        ends[run.lane] = n, tip
    if account.writes and (account.bytes > account.quota or account.objects > account.quota_objects):
        what = (
            "the account's storage" if account.share == 1 else "what limited devices may fill of the account's storage"
        )
        raise QuotaError(f"{what} is used up", hint="ask the server's operator for more; changes wait on the device")
    return _results(items, runs, statuses, ends)


def store_packs(tx: Transaction, account: LockedAccount, items: list[Item], runs: list[Run], now: Millis) -> PushAnswer:
    """Put packs in the place of what they cover. Raises QuotaError, and then nothing is stored."""
    statuses: dict[int, str] = {}
    for run in runs:
        left = list(run.accepted)
        while left:
            status = _pack(tx, account, items[left[0]], now)
            if status not in {OK, DUP}:
                run.reason = status
                break
            statuses[left.pop(0)] = status
        run.rejected[:0] = left
    if account.superseded > account.quota_superseded:
        raise QuotaError(
            "the account's storage for replaced objects is used up",
            hint="they are deleted after seven days; nothing is lost",
        )
    return _results(items, runs, statuses, {run.lane: _head(tx, account.id, run.lane) for run in runs})


def _results(
    items: Sequence[Item], runs: Sequence[Run], statuses: dict[int, str], ends: dict[Lane, tuple[int, bytes]]
) -> PushAnswer:
    for run in runs:
        statuses |= dict.fromkeys(run.rejected, run.reason)
        statuses |= dict.fromkeys(run.duplicates, run.reason or DUP)
    results = []
    for index, item in enumerate(items):
        header, (n, tip) = item.header, ends[item.lane]
        results.append(
            Pushed(
                scope=header.scope,
                device=header.device,
                n_from=header.n_from,
                n_to=header.n_to,
                status=statuses[index],
                n=n,
                tip=tip,
            )
        )
    return PushAnswer(results=tuple(results))


def _pack(tx: Transaction, account: LockedAccount, item: Item, now: Millis) -> str:
    """Put a pack in the place of the objects it covers; it takes the last one's `gseq`."""
    header = item.header
    last = tx.row(
        "select n_to, gseq, tip, hash from object where account = ? and scope = ? and device = ?"
        " and n_from <= ? and superseded_at is null order by n_from desc limit 1",
        (account.id, *item.lane, header.n_to),
    )
    if last is not None and last[3] == item.link:
        return DUP
    if last is None or last[0] != header.n_to:
        return GapError.code
    status = _replaced(tx, account, item, now, end=last[2])
    if status == OK:
        row = _object_row(account.id, last[1], item, now)
        tx.execute(_INSERT, row)
        account.bytes += row[9]
        account.objects += 1
    return status
