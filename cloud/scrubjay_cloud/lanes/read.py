"""Objects go out: after a cursor, from one lane, and where every lane ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay_cloud.admission import admitted_token
from scrubjay_cloud.bodies.transfer import BodyRow, with_bodies
from scrubjay_cloud.credentials import cursor, read_cursor
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Admits, Answer, Call
from scrubjay_cloud.paging import fitting
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.refusals import account_deleted, device_revoked, scope_not_given
from scrubjay_cloud.service import Service
from scrubjay_shared.errors import (
    RolledBackError,
)
from scrubjay_shared.wire import CURSOR, HEAD, Heads, LaneHead


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    rows: Sequence[BodyRow]
    after: int
    head: int


async def pull(service: Service, call: Call) -> Answer:
    """Return what stands after a cursor, in order; when there is nothing, wait for it as long as asked."""
    caller, query, policy = call.caller, call.query, service.policy
    after = read_cursor(service.derived("cursor"), caller.account, query["after"])
    scopes = await readable_scopes(service, call)
    limit = min(query["limit"], policy.max_body_bytes)

    def next_page(tx: Transaction) -> _Page:
        return _page(tx, caller.account, after, limit=limit, scopes=scopes, policy=policy)

    async def read() -> tuple[_Page, Sequence[BodyRow]]:
        page = await service.database.read(next_page)
        return page, page.rows

    wait = min(query["wait"], policy.max_wait_s)
    if not wait:
        page, objects = await with_bodies(service.body_store, read)
    else:
        with service.notifier.watch(caller.account, caller.waits_as, caller.head) as watch:
            page, objects = await with_bodies(service.body_store, read)
            if not objects and await watch.wait_beyond(page.head, wait):
                await admitted_token(
                    service, caller.token, Admits.DEVICE, refused=True
                )  # the news may be that it was revoked
                page, objects = await with_bodies(service.body_store, read)
    await service.limits.spend("traffic", caller.account, policy.limits.traffic, sum(map(len, objects)))
    key = service.derived("cursor")
    return Answer(
        objects=objects,
        headers={
            CURSOR: cursor(key, caller.account, page.after),
            HEAD: cursor(key, caller.account, page.head),
            **caller.warnings,
        },
    )


async def readable_scopes(service: Service, call: Call) -> tuple[bytes, ...] | None:
    """Return the scopes to read: those asked for that the device may read; None for all. Raises DeniedError."""
    caller, asked = call.caller, call.query.get("scopes")
    state = await service.state(caller.account, caller.head)
    device = state.devices.get(caller.device or b"")
    if device is None:
        raise device_revoked()
    if device.scopes is None:
        return asked
    if asked is not None and not set(asked) <= set(device.scopes):
        raise scope_not_given()
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
        raise account_deleted()
    head: int = row[0]
    if after > head:
        raise RolledBackError(
            "the device has read further than this server has objects: the server was set back to an older state",
            hint="scrubjay sync verify compares every lane and sends what is missing",
        )
    where, values = _among(scopes)
    live = f"from object where account = ? and gseq > ?{where} and superseded_at is null order by gseq limit ?"
    sizes = tx.rows(f"select gseq, size {live}", (account, after, *values, policy.page_objects))
    count = fitting((size for _, size in sizes), limit)
    rows = tx.rows(f"select body, body_key {live}", (account, after, *values, count)) if count else []
    everything = count == len(sizes) < policy.page_objects
    return _Page(rows=[(body, key) for body, key in rows], after=head if everything else sizes[count - 1][0], head=head)


async def read_lane(service: Service, call: Call) -> Answer:
    """Return one lane from a number on: first the object that covers it."""
    caller, policy = call.caller, service.policy
    scope, device, start = call.path["scope"], call.path["device"], call.query["from"]
    readable = await readable_scopes(service, call)
    if readable is not None and scope not in readable:
        raise scope_not_given()
    limit = min(call.query["limit"], policy.max_body_bytes)

    def work(tx: Transaction) -> list[Row]:
        key = (caller.account, scope, device)
        live = "from object where account = ? and scope = ? and device = ? and superseded_at is null"
        first = tx.row(f"select n_from, n_to {live} and n_from <= ? order by n_from desc limit 1", (*key, start))
        low = first[0] if first is not None and first[1] >= start else start
        rows = f"{live} and n_from >= ? order by n_from limit ?"
        count = fitting((size for (size,) in tx.rows(f"select size {rows}", (*key, low, policy.page_objects))), limit)
        return tx.rows(f"select body, body_key {rows}", (*key, low, count)) if count else []

    async def read() -> tuple[None, Sequence[BodyRow]]:
        return None, [(body, key) for body, key in await service.database.read(work)]

    _, objects = await with_bodies(service.body_store, read)
    await service.limits.spend("traffic", caller.spends_as, policy.limits.traffic, sum(map(len, objects)))
    return Answer(objects=objects)


async def heads(service: Service, call: Call) -> Answer:
    """Return where every lane ends that the device may read."""
    caller = call.caller
    scopes = await readable_scopes(service, call)
    where, values = _among(scopes)

    def work(tx: Transaction) -> tuple[int, list[Row]]:
        row = tx.row("select gseq from account where id = ?", (caller.account,))
        lanes = f"select scope, device, n, tip from lane where account = ?{where} order by scope, device"
        return row[0] if row else 0, tx.rows(lanes, (caller.account, *values))

    gseq, rows = await service.database.read(work)
    return Answer(
        record=Heads(
            heads=tuple(LaneHead(scope=scope, device=device, n=n, tip=tip) for scope, device, n, tip in rows),
            cursor=cursor(service.derived("cursor"), caller.account, gseq),
        )
    )
