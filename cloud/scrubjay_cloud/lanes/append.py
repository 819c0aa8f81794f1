"""Appends on PostgreSQL: those of many accounts that wait at the same time go to the server in one call.

Only the plain case goes this way: every object continues its lane, the account log is the one that was checked, the
quota holds. Everything else is refused by the function without an error, and takes the way of `store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.lanes.validate import OK, Item, Run
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import lane_root
from scrubjay_shared.wire import PushAnswer, Pushed


@dataclass(frozen=True, slots=True)
class Append:
    """What one request appends: runs of objects, each the continuation of a lane. `head` is the log's that was checked.

    `quota` is that of an account that has none of its own (bytes), `quota_objects` the most objects of any. `share` is
    how much of both who asks may fill.
    """

    account: bytes
    head: bytes
    items: list[Item]
    runs: list[Run]
    now: Millis
    quota: int
    quota_objects: int
    share: float = 1.0


def is_plain(append: Append) -> bool:
    """Say whether all of a request can be appended as it is, as far as that shows without asking the database."""
    if append.share < 1:
        return False
    for run in append.runs:
        if run.reason or run.rejected or run.duplicates or not run.accepted:
            return False
        if any(append.items[index].body_key for index in run.accepted):
            return False
        first = append.items[run.accepted[0]].header
        if first.n_from == 1 and first.prev != lane_root(append.account, *run.lane):
            return False
    return True


_CALL = (
    "select append_objects(?::bigint, ?::bigint, ?::bigint, ?::bytea[], ?::bytea[], ?::bigint[], ?::bigint[],"
    " ?::bigint[], ?::bytea[], ?::bytea[], ?::bigint[], ?::bytea[], ?::bigint[], ?::bytea[], ?::bigint[], ?::bigint[],"
    " ?::bigint[], ?::bigint[], ?::bytea[], ?::bytea[], ?::bytea[])"
)


def append_together(tx: Transaction, appends: Sequence[Append]) -> list[int]:
    """Return of each append its account's last number after it, 0 where nothing was stored."""
    pushes: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, ...]] = []
    objects: list[tuple[Any, ...]] = []
    for one in appends:
        size = 0
        for run in one.runs:
            first, last = one.items[run.accepted[0]], one.items[run.accepted[-1]]
            runs.append((*run.lane, first.header.n_from - 1, first.header.prev, last.header.n_to, last.end))
            for index in run.accepted:
                item = one.items[index]
                header = item.header
                objects.append((len(runs), header.kind, header.n_from, header.n_to, item.link, item.end, item.data))
                size += len(item.data)
        pushes.append((one.account, one.head, size, len(runs), len(objects)))
    columns = [list(column) for rows in (pushes, runs, objects) for column in zip(*rows, strict=True)]
    any_of_them = appends[0]
    row = tx.row(_CALL, (any_of_them.now, any_of_them.quota, any_of_them.quota_objects, *columns))
    return [] if row is None else list(row[0])


def answer_to(append: Append) -> PushAnswer:
    """Return the answer to a request all of which was stored."""
    ends = {run.lane: append.items[run.accepted[-1]] for run in append.runs}
    return PushAnswer(
        results=tuple(
            Pushed(
                scope=item.header.scope,
                device=item.header.device,
                n_from=item.header.n_from,
                n_to=item.header.n_to,
                status=OK,
                n=ends[item.lane].header.n_to,
                tip=ends[item.lane].end,
            )
            for item in append.items
        )
    )
