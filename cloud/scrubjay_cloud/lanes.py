"""Lanes: where objects come in, in what order they go out, and what packs and heals may do to them.

A lane is one device's chain of objects in one scope; the account's `gseq` orders all of them. It is given out under the
lock of the account's row, which every writing transaction here takes first: an order by a sequence would let a reader
pass a place that is committed after it.

What is checked before the transaction (format, rights, chain within the request, signatures) is checked against the
account log as it was; the transaction compares the log's head, and the request begins again when that has moved on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.responses import StreamingResponse

from scrubjay_cloud import materialise
from scrubjay_cloud.accounts import audit, check_blob, read_blob, store_blob
from scrubjay_cloud.admission import IN_FORCE, admitted_token
from scrubjay_cloud.credentials import cursor, place
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Admits, Answer, Call, Endpoint, Query, Takes
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.reading import hex_id, whole
from scrubjay_cloud.service import Service
from scrubjay_shared.account import AccountState, Device
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import (
    HEADER_BYTES,
    LANE_KINDS,
    MAX_PAGE_BYTES,
    SIGNATURE_BYTES,
    Envelope,
    Header,
    ObjectKind,
    check_signatures,
    lane_root,
    split,
)
from scrubjay_shared.errors import (
    BadSignatureError,
    ConflictError,
    DeniedError,
    GapError,
    InvalidError,
    MalformedError,
    NotFoundError,
    QuotaError,
    RevokedError,
    RolledBackError,
    StaleEpochError,
    UnavailableError,
)
from scrubjay_shared.wire import CURSOR, HEAD, WARNING, Deleted, Heads, LaneHead, PushAnswer, Pushed

OK, DUP, FORK, BROKEN = "ok", "dup", "fork", "broken_chain"
INLINE_BYTES = 128 * 1024  # checked on the event loop, in 2 ms at most: two threads that want the GIL take twice that
ATTEMPTS = 5  # the log moves on between check and transaction: once is rare, five times is a fault
MAX_PLACE = 2**62  # places fit the database's integers with room
_PREV = "substr(body, 77, 32)"  # a header's `prev`, in an object's bytes
_PACK = int(ObjectKind.PACK)

Lane = tuple[bytes, bytes]


# --- coming in: checks before the transaction -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """An object as a request has it, with what is hashed of it, once."""

    envelope: Envelope
    header: Header
    lane: Lane
    data: bytes
    link: bytes
    end: bytes


def _items(body: bytes) -> list[_Item]:
    found = []
    at = 0
    for envelope in split(body):
        header, link = envelope.header, envelope.link
        start, at = at, at + HEADER_BYTES + header.body_len + SIGNATURE_BYTES
        end = header.tip if header.kind == _PACK else link
        found.append(_Item(envelope, header, (header.scope, header.device), body[start:at], link, end))
    return found


@dataclass(slots=True)
class _Run:
    """Objects of one lane as a request has them: `taken` continue each other; `refused` says why the next does not."""

    lane: Lane
    taken: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    rest: list[int] = field(default_factory=list)
    refused: str = ""


def _runs(
    items: Sequence[_Item], refusal: Callable[[_Item], str], keys: Callable[[Envelope], Sequence[bytes]]
) -> list[_Run]:
    """Return a request's objects by lane, each cut where the first of it cannot be taken."""
    runs: dict[Lane, _Run] = {}
    for at, item in enumerate(items):
        run = runs.setdefault(item.lane, _Run(item.lane))
        if not run.refused:
            run.refused = refusal(item) or _continues(items, run, item)
        if run.refused == DUP:  # the very same object twice in a request
            run.refused = ""
            run.again.append(at)
        elif run.refused:
            run.rest.append(at)
        else:
            run.taken.append(at)
    for run in runs.values():
        _verify(items, run, keys)
    return list(runs.values())


def _continues(items: Sequence[_Item], run: _Run, item: _Item) -> str:
    if not run.taken:
        return ""
    last, header = items[run.taken[-1]], item.header
    if header.n_from <= last.header.n_to:
        return DUP if any(items[at].data == item.data for at in run.taken) else MalformedError.code
    if header.n_from > last.header.n_to + 1:
        return GapError.code
    return "" if header.prev == last.end else BROKEN


def _verify(items: Sequence[_Item], run: _Run, keys: Callable[[Envelope], Sequence[bytes]]) -> None:
    """Cut a run before what is not signed by its device.

    One damaged object either breaks the chain after it, so that the run ends with it, or is the last anyway: without
    it, the rest is checked once more. More than that only its device can have done.
    """
    for _ in range(2):
        if not run.taken:
            return
        try:
            check_signatures([items[at].envelope for at in run.taken], keys)
        except BadSignatureError:
            run.refused = BadSignatureError.code
            run.rest.insert(0, run.taken.pop())
        else:
            return
    run.rest[:0] = run.taken
    run.taken.clear()


def _common_refusal(item: _Item, state: AccountState, reader: Device) -> str:
    """Return why an object of a lane may not be stored for this reader of the account, "" when it may."""
    header = item.header
    scope, author = state.scopes.get(header.scope), state.devices.get(header.device)
    if header.account != state.account or author is None:
        return DeniedError.code
    if scope is None or scope.deleted:
        return NotFoundError.code
    if not reader.full and header.scope not in (reader.scopes or ()):
        return DeniedError.code
    if header.kind not in LANE_KINDS or header.suite != scope.suite or header.n_to > MAX_PLACE:
        return MalformedError.code
    return MalformedError.code if header.epoch > scope.epoch else ""


def _push_refusal(item: _Item, state: AccountState, device: Device) -> str:
    header = item.header
    if found := _common_refusal(item, state, device):
        return found
    if header.device != device.id or device.read_only:
        return DeniedError.code
    if device.revoked:
        return RevokedError.code
    if header.kind == _PACK:
        return MalformedError.code
    return StaleEpochError.code if header.epoch < state.scopes[header.scope].epoch else ""


def _pack_refusal(item: _Item, state: AccountState, device: Device) -> str:
    header = item.header
    if found := _common_refusal(item, state, device):
        return found
    if header.kind != _PACK:
        return MalformedError.code
    owners = (header.device, *state.adopters.get(item.lane, ()))
    if device.id not in owners or device.read_only:
        return DeniedError.code
    return StaleEpochError.code if header.epoch < state.scopes[header.scope].epoch else ""


def _heal_refusal(item: _Item, state: AccountState, device: Device) -> str:
    if found := _common_refusal(item, state, device):
        return found
    author = state.devices[item.header.device]
    if author.read_only:
        return DeniedError.code
    if author.ends is not None and item.header.n_to > author.ends.get(item.header.scope, (0, b""))[0]:
        return RevokedError.code
    return ""


# --- coming in: the transaction ---------------------------------------------------------------------------------------


class _MovedOnError(Exception):
    """The account log is not the one the request was checked against."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self.head = head


@dataclass(slots=True)
class _Account:
    """An account's counts under the lock of its row, and what a request adds to them.

    `writes` are the statements with which the transaction ends: nothing reads what they write before.
    """

    id: bytes
    gseq: int
    bytes: int
    objects: int
    superseded: int
    quota: int
    writes: list[tuple[str, list[tuple[Any, ...]]]] = field(default_factory=list, compare=False)


def _locked(tx: Transaction, service: Service, account: bytes, head: bytes) -> _Account:
    """Take the account's row, first of all: whoever else writes to the account waits for this transaction's end.

    Raises _MovedOnError when its log is not at `head`, DeniedError when it is locked, NotFoundError when it is gone.
    """
    row = tx.row(
        f"select gseq, bytes, objects, superseded, quota, log_head, status from account where id = ?{tx.held}",
        (account,),
    )
    if row is None:
        raise NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
    gseq, used, objects, superseded, quota, found, status = row
    if status != IN_FORCE:
        raise DeniedError("the server's operator has locked the account", hint="ask the operator")
    if found != head:
        raise _MovedOnError(found)
    return _Account(
        id=account,
        gseq=gseq,
        bytes=used,
        objects=objects,
        superseded=superseded,
        quota=service.settings.quota_bytes if quota is None else quota,
    )


def _settle(tx: Transaction, account: _Account) -> None:
    """Write what is left to write, and the account's counts."""
    counts = (account.gseq, account.bytes, account.objects, account.superseded, account.id)
    tx.together(
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
    "insert into object (account, gseq, scope, device, kind, n_from, n_to, hash, tip, size, received, body)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _object_row(account: bytes, gseq: int, item: _Item, now: Millis) -> tuple[Any, ...]:
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
        data,
    )


def _append(
    tx: Transaction, account: _Account, items: Sequence[_Item], run: _Run, now: Millis
) -> tuple[dict[int, str], int, bytes]:
    """Return what becomes of a run's objects, and where the lane ends then; note the rows to write."""
    n, tip = _head(tx, account.id, run.lane)
    found: dict[int, str] = {}
    rows: list[tuple[Any, ...]] = []
    left = list(run.taken)
    while left:
        at, item = left[0], items[left[0]]
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
            run.refused = status
            break
        if status == OK:
            account.gseq += 1
            rows.append(_object_row(account.id, account.gseq, item, now))
            account.bytes += rows[-1][9]
            account.objects += 1
            n, tip = header.n_to, item.end
        found[at] = status
        left.pop(0)
    run.rest[:0] = left
    if rows:
        account.writes += [(_SET_HEAD, [(account.id, *run.lane, n, tip)]), (_INSERT, rows)]
    return found, n, tip


def _is_stored(tx: Transaction, account: bytes, item: _Item) -> bool:
    """Say whether this very object stands, or stood until a pack took its place, where the lane has it.

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


def _replaced(tx: Transaction, account: _Account, item: _Item, now: Millis, *, end: bytes | None) -> str:
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
        return GapError.code if header.kind == _PACK else FORK
    if header.kind != _PACK:
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


async def _received(
    service: Service,
    call: Call,
    refusal: Callable[[_Item, AccountState, Device], str],
    store: Callable[[Transaction, _Account, list[_Item], list[_Run], Millis], PushAnswer],
    *,
    packs: bool,
) -> Answer:
    """Check a body of objects, store what may be stored in one transaction, and wake who waits."""
    caller, head = call.caller, call.caller.head
    body: bytes = call.body
    assert caller.device is not None  # noqa: S101 - these endpoints admit devices only
    device = caller.device
    small = len(body) <= INLINE_BYTES
    items: list[_Item] = []
    for _ in range(ATTEMPTS):
        state = await service.state(caller.account, head)
        me = state.devices.get(device)
        if me is None or me.revoked:
            raise RevokedError(
                "this device was revoked: it syncs no more",
                hint="scrubjay logout, then scrubjay login asks to be added again",
            )

        def checked(state: AccountState = state, me: Device = me) -> list[_Run]:
            if not items:
                items.extend(_items(body))
            return _runs(
                items,
                lambda item: refusal(item, state, me),
                lambda envelope: state.keys_of(*envelope.lane, pack=packs and envelope.header.kind == _PACK),
            )

        now = service.now()
        # A work may run twice, and it changes the runs: each time it gets its own.
        runs = checked() if small else await service.offload(checked)
        if not items:
            raise InvalidError("the request holds no object", hint="send at least one")

        def work(
            tx: Transaction, state: AccountState = state, runs: list[_Run] = runs, now: Millis = now
        ) -> tuple[PushAnswer, int, bool]:
            mine = [_Run(run.lane, list(run.taken), list(run.again), list(run.rest), run.refused) for run in runs]
            account = _locked(tx, service, caller.account, state.head)
            before = replace(account)
            answer = store(tx, account, items, mine, now)
            if account != before:
                _settle(tx, account)
            return answer, account.gseq, account.gseq != before.gseq

        try:
            answer, gseq, news = await service.database.write(work, account=caller.account)
        except _MovedOnError as error:
            head = error.head
            continue
        if news:
            service.wakes.told(caller.account, gseq)
            await materialise.all_caught_up(service, caller.account, {one.scope for one in answer.results}, state)
        return Answer(record=answer, headers=_warning(caller.warning))
    raise UnavailableError("the account is being changed", hint="try again in a moment")


def _results(
    items: Sequence[_Item], runs: Sequence[_Run], found: dict[int, str], ends: dict[Lane, tuple[int, bytes]]
) -> PushAnswer:
    for run in runs:
        for at in run.rest:
            found[at] = run.refused
        for at in run.again:
            found[at] = run.refused or DUP
    results = []
    for at, item in enumerate(items):
        header, (n, tip) = item.header, ends[item.lane]
        results.append(
            Pushed(
                scope=header.scope,
                device=header.device,
                n_from=header.n_from,
                n_to=header.n_to,
                status=found[at],
                n=n,
                tip=tip,
            )
        )
    return PushAnswer(results=tuple(results))


def _store_runs(
    policy: CloudPolicy,
) -> Callable[[Transaction, _Account, list[_Item], list[_Run], Millis], PushAnswer]:
    def store(tx: Transaction, account: _Account, items: list[_Item], runs: list[_Run], now: Millis) -> PushAnswer:
        found: dict[int, str] = {}
        ends: dict[Lane, tuple[int, bytes]] = {}
        for run in runs:
            statuses, n, tip = _append(tx, account, items, run, now)
            found |= statuses
            ends[run.lane] = n, tip
        if account.writes and (account.bytes > account.quota or account.objects > policy.quota_objects):
            raise QuotaError(
                "the account's storage is used up",
                hint="ask the server's operator for more; changes wait on the device",
            )
        return _results(items, runs, found, ends)

    return store


def _store_packs(
    policy: CloudPolicy,
) -> Callable[[Transaction, _Account, list[_Item], list[_Run], Millis], PushAnswer]:
    def store(tx: Transaction, account: _Account, items: list[_Item], runs: list[_Run], now: Millis) -> PushAnswer:
        found: dict[int, str] = {}
        for run in runs:
            left = list(run.taken)
            while left:
                item = items[left[0]]
                status = _pack(tx, account, item, now)
                if status not in {OK, DUP}:
                    run.refused = status
                    break
                found[left.pop(0)] = status
            run.rest[:0] = left
        if account.superseded > max(account.quota, policy.quota_bytes):
            raise QuotaError(
                "the account's storage for replaced objects is used up",
                hint="they are deleted after seven days; nothing is lost",
            )
        return _results(items, runs, found, {run.lane: _head(tx, account.id, run.lane) for run in runs})

    return store


def _pack(tx: Transaction, account: _Account, item: _Item, now: Millis) -> str:
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


async def push(service: Service, call: Call) -> Answer:
    """Take the objects of the calling device that continue its lanes."""
    return await _received(service, call, _push_refusal, _store_runs(service.policy), packs=False)


async def pack(service: Service, call: Call) -> Answer:
    """Take packs of lanes that the calling device owns or has adopted."""
    return await _received(service, call, _pack_refusal, _store_packs(service.policy), packs=True)


async def heal(service: Service, call: Call) -> Answer:
    """Take objects of any lane of the account that the server has lost: their signatures say whose they are."""
    return await _received(service, call, _heal_refusal, _store_runs(service.policy), packs=True)


# --- going out --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    objects: tuple[bytes, ...]
    after: int
    head: int


async def pull(service: Service, call: Call) -> Answer:
    """Hand out what stands after a cursor, in order; when there is nothing, wait for it as long as asked."""
    caller, query, policy = call.caller, call.query, service.policy
    after = place(service.derived("cursor"), caller.account, query["after"])
    scopes = await _readable(service, call)
    limit = min(query["limit"], policy.max_body_bytes)

    def look(tx: Transaction) -> _Page:
        return _page(tx, caller.account, after, limit=limit, scopes=scopes, policy=policy)

    with service.wakes.watch(caller.account) as watch:
        page = await service.database.read(look)
        wait = min(query["wait"], policy.max_wait_s)
        if not page.objects and wait and await watch.beyond(page.head, wait):
            await admitted_token(service, caller.token, Admits.DEVICE)  # the news may be that it was revoked
            page = await service.database.read(look)
    await service.limits.spend("traffic", caller.account, policy.limits.traffic, sum(map(len, page.objects)))
    key = service.derived("cursor")
    return Answer(
        objects=page.objects,
        headers={
            CURSOR: cursor(key, caller.account, page.after),
            HEAD: cursor(key, caller.account, page.head),
            **_warning(caller.warning),
        },
    )


async def _readable(service: Service, call: Call) -> tuple[bytes, ...] | None:
    """Return the scopes to read: those asked for that the device may read; None for all. Raises DeniedError."""
    caller, asked = call.caller, call.query.get("scopes")
    state = await service.state(caller.account, caller.head)
    device = state.devices.get(caller.device or b"")
    if device is None:
        raise RevokedError(
            "this device was revoked: it syncs no more",
            hint="scrubjay logout, then scrubjay login asks to be added again",
        )
    if device.scopes is None:
        return asked
    if asked is not None and not set(asked) <= set(device.scopes):
        raise DeniedError(
            "this device was not given that scope", hint="scrubjay sync scopes list shows the scopes of this device"
        )
    return device.scopes if asked is None else asked


def _among(scopes: tuple[bytes, ...] | None) -> tuple[str, tuple[bytes, ...]]:
    if scopes is None:
        return "", ()
    if not scopes:
        return " and 1 = 0", ()
    return f" and scope in ({','.join('?' * len(scopes))})", scopes


def _page(
    tx: Transaction, account: bytes, after: int, *, limit: int, scopes: tuple[bytes, ...] | None, policy: CloudPolicy
) -> _Page:
    """Return the next objects: as many as fit into `limit` bytes, one at least, all of one view of the account."""
    row = tx.row("select gseq from account where id = ?", (account,))
    if row is None:
        raise NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
    head: int = row[0]
    if after > head:
        raise RolledBackError(
            "the device has read further than this server has objects: the server was set back to an older state",
            hint="scrubjay sync verify compares every lane and sends what is missing",
        )
    where, values = _among(scopes)
    live = f"from object where account = ? and gseq > ?{where} and superseded_at is null order by gseq limit ?"
    sizes = tx.rows(f"select gseq, size {live}", (account, after, *values, policy.page_objects))
    count, size = 0, 0
    for _, one in sizes:
        size += one
        if count and size > limit:
            break
        count += 1
    bodies = tx.rows(f"select body {live}", (account, after, *values, count)) if count else []
    everything = count == len(sizes) < policy.page_objects
    return _Page(
        objects=tuple(body for (body,) in bodies), after=head if everything else sizes[count - 1][0], head=head
    )


async def read_lane(service: Service, call: Call) -> Answer:
    """Hand out one lane from a place on: first the object that covers it."""
    caller, policy = call.caller, service.policy
    scope, device, start = call.path["scope"], call.path["device"], call.query["from"]
    readable = await _readable(service, call)
    if readable is not None and scope not in readable:
        raise DeniedError(
            "this device was not given that scope", hint="scrubjay sync scopes list shows the scopes of this device"
        )
    limit = min(call.query["limit"], policy.max_body_bytes)

    def work(tx: Transaction) -> tuple[bytes, ...]:
        key = (caller.account, scope, device)
        live = "from object where account = ? and scope = ? and device = ? and superseded_at is null"
        first = tx.row(f"select n_from, n_to {live} and n_from <= ? order by n_from desc limit 1", (*key, start))
        low = first[0] if first is not None and first[1] >= start else start
        rows = f"{live} and n_from >= ? order by n_from limit ?"
        count, size = 0, 0
        for (one,) in tx.rows(f"select size {rows}", (*key, low, policy.page_objects)):
            size += one
            if count and size > limit:
                break
            count += 1
        return tuple(body for (body,) in tx.rows(f"select body {rows}", (*key, low, count))) if count else ()

    objects = await service.database.read(work)
    await service.limits.spend("traffic", caller.account, policy.limits.traffic, sum(map(len, objects)))
    return Answer(objects=objects)


async def heads(service: Service, call: Call) -> Answer:
    """Say where every lane ends that the device may read."""
    caller = call.caller
    scopes = await _readable(service, call)
    where, values = _among(scopes)

    def work(tx: Transaction) -> tuple[int, list[Row]]:
        row = tx.row("select gseq from account where id = ?", (caller.account,))
        found = f"select scope, device, n, tip from lane where account = ?{where} order by scope, device"
        return row[0] if row else 0, tx.rows(found, (caller.account, *values))

    gseq, rows = await service.database.read(work)
    return Answer(
        record=Heads(
            heads=tuple(LaneHead(scope=scope, device=device, n=n, tip=tip) for scope, device, n, tip in rows),
            cursor=cursor(service.derived("cursor"), caller.account, gseq),
        )
    )


async def events(service: Service, call: Call) -> Answer:
    """Tell the account's place, and again whenever it moves, for as long as the token counts."""
    caller = call.caller

    async def lines() -> AsyncIterator[str]:
        told, gseq = -1, caller.gseq
        with service.wakes.watch(caller.account) as watch:
            while True:
                if gseq != told:
                    told = gseq
                    yield f'data: {{"gseq":{gseq}}}\n\n'
                elif not watch.closing:
                    yield ":\n\n"
                await watch.beyond(gseq, service.policy.keepalive_s)
                if watch.closing:
                    return
                try:
                    gseq = (await admitted_token(service, caller.token, Admits.DEVICE)).gseq
                except DeniedError:  # over or revoked: the stream ends, and the next request is told why
                    return

    return Answer(response=StreamingResponse(lines(), media_type="text/event-stream"))


def _warning(share: int) -> dict[str, str]:
    return {WARNING: str(share)} if share else {}


# --- objects by hash, and scopes that end -----------------------------------------------------------------------------


async def get_object(service: Service, call: Call) -> Answer:
    """Hand out an object that stands in no lane."""
    caller = call.caller
    row = await service.database.read(
        lambda tx: tx.row(
            "select body, scope, kind from blob where account = ? and hash = ?", (caller.account, call.path["hash"])
        )
    )
    if row is None:
        raise NotFoundError("the server has no such object", hint="read the account log again: it names the newest")
    if not caller.full and row[2] != ObjectKind.KEYRING and row[1] not in (await _readable(service, call) or ()):
        raise DeniedError(
            "this device was not given that scope", hint="scrubjay sync scopes list shows the scopes of this device"
        )
    await service.limits.spend("traffic", caller.account, service.policy.limits.traffic, len(row[0]))
    return Answer(objects=(row[0],))


async def put_object(service: Service, call: Call) -> Answer:
    """Keep an object under its hash. A keyring comes with the log entry that names it instead."""
    caller, now = call.caller, service.now()
    blob = read_blob(call.body)
    if blob.hash != call.path["hash"]:
        raise InvalidError(
            "the SHA-256 of the object is not the one in the path", hint="send the object that the path names"
        )
    if blob.kind == ObjectKind.KEYRING:
        raise InvalidError("a keyring is sent with the log entry that names it", hint="send it with POST /v1/log")
    check_blob(blob, await service.state(caller.account, caller.head))

    def store(tx: Transaction) -> None:
        row = tx.row("update account set gseq = gseq where id = ? returning bytes, objects, quota", (caller.account,))
        if row is None:
            raise NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
        quota = service.settings.quota_bytes if row[2] is None else row[2]
        added = store_blob(tx, blob, caller.account, now)
        if added and (row[0] + added > quota or row[1] >= service.policy.quota_objects):
            raise QuotaError("the account's storage is used up", hint="ask the server's operator for more")

    await service.database.write(store)
    return Answer()


async def delete_scope(service: Service, call: Call) -> Answer:
    """Delete everything of a scope whose end the log has declared: a token alone destroys nothing."""
    caller, scope, now = call.caller, call.path["scope"], service.now()
    state = await service.state(caller.account, caller.head)
    found = state.scopes.get(scope)
    if found is None:
        raise NotFoundError("the account has no such scope", hint="scrubjay sync scopes list shows them")
    if not found.deleted:
        raise ConflictError("the account log still has that scope", hint="append a scope_delete entry first")
    return Answer(record=await service.database.write(lambda tx: erase_scope(tx, caller.account, scope, now)))


def erase_scope(tx: Transaction, account: bytes, scope: bytes, now: Millis) -> Deleted:
    """Delete every row of a scope, and take it out of the account's counts."""
    tx.execute("update account set gseq = gseq where id = ?", (account,))
    counts = "select coalesce(sum(size), 0), count(*) from"
    here = "where account = ? and scope = ?"
    live = tx.row(f"{counts} object {here} and superseded_at is null", (account, scope))
    old = tx.row(f"{counts} object {here} and superseded_at is not null", (account, scope))
    blobs = tx.row(f"{counts} blob {here}", (account, scope))
    (size, count), (old_size, old_count), (blob_size, blob_count) = (row or (0, 0) for row in (live, old, blobs))
    tables = ("object", "blob", "lane", *materialise.TABLES)
    for table in tables:
        tx.execute(f"delete from {table} {here}", (account, scope))
    tx.execute(
        "update account set bytes = bytes - ?, objects = objects - ?, superseded = superseded - ? where id = ?",
        (int(size + blob_size), count + blob_count, int(old_size), account),
    )
    audit(tx, account, "scope deleted", now)
    left = [tx.row(f"select count(*) from {table} {here}", (account, scope)) for table in tables]
    return Deleted(objects=count + old_count + blob_count, left=sum(row[0] for row in left if row))


def _scopes(text: str) -> tuple[bytes, ...] | None:
    return tuple(dict.fromkeys(_id(part) for part in text.split(",")[:1_001])) if text else None


def _id(text: str) -> bytes:
    try:
        return hex_id(text)
    except InvalidError as error:
        raise ValueError("ids of 32 lower-case hex digits, separated by commas") from error


_LIMIT = Query(
    name="limit",
    meaning="a number of bytes",
    read=whole(1, MAX_PAGE_BYTES),
    schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE_BYTES},
    default=MAX_PAGE_BYTES,
)
_SCOPES = Query(
    name="scopes",
    meaning="a list of scopes",
    read=_scopes,
    schema={"type": "string", "pattern": "^([0-9a-f]{32}(,[0-9a-f]{32})*)?$"},
)


def _taking(path: str, summary: str, handler: Any) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        summary=summary,
        handler=handler,
        admits=Admits.DEVICE,
        takes=Takes.OBJECTS,
        answer=PushAnswer,
        limit="push",
    )


ENDPOINTS = (
    _taking("/v1/push", "Append objects to the calling device's lanes.", push),
    _taking("/v1/pack", "Put packs in the place of what they cover.", pack),
    _taking("/v1/heal", "Give back objects that the server has lost.", heal),
    Endpoint(
        method="GET",
        path="/v1/pull",
        summary="The objects after a cursor, in order; waits for some when there are none.",
        handler=pull,
        admits=Admits.DEVICE,
        answer=bytes,
        limit="pull",
        query=(
            Query(name="after", meaning="a cursor", read=str, schema={"type": "string"}, default=""),
            _LIMIT,
            Query(
                name="wait",
                meaning="a number of seconds",
                read=whole(0, 3_600),
                schema={"type": "integer", "minimum": 0, "maximum": 3_600},
                default=0,
            ),
            _SCOPES,
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/lanes/{scope}/{device}",
        summary="One lane from a place on.",
        handler=read_lane,
        admits=Admits.DEVICE,
        answer=bytes,
        limit="pull",
        query=(
            Query(
                name="from",
                meaning="a place in the lane",
                read=whole(1, MAX_PLACE),
                schema={"type": "integer", "minimum": 1, "maximum": MAX_PLACE},
                default=1,
            ),
            _LIMIT,
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/heads",
        summary="Where every lane ends.",
        handler=heads,
        admits=Admits.DEVICE,
        answer=Heads,
        limit="pull",
    ),
    Endpoint(
        method="GET",
        path="/v1/events",
        summary="The account's place, as server-sent events, whenever it moves.",
        handler=events,
        admits=Admits.DEVICE,
        answer=str,
        limit="pull",
    ),
    Endpoint(
        method="GET",
        path="/v1/objects/{hash}",
        summary="An object that stands in no lane.",
        handler=get_object,
        admits=Admits.PENDING,
        answer=bytes,
        limit="pull",
    ),
    Endpoint(
        method="PUT",
        path="/v1/objects/{hash}",
        summary="Keep an object under its hash.",
        handler=put_object,
        admits=Admits.FULL,
        takes=Takes.OBJECTS,
        status=204,
        limit="push",
    ),
    Endpoint(
        method="DELETE",
        path="/v1/scopes/{scope}",
        summary="Delete everything of a scope that the log has ended.",
        handler=delete_scope,
        admits=Admits.FULL,
        answer=Deleted,
    ),
)
