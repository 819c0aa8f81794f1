"""Objects come in: of the calling device, packs, and what the server has lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from scrubjay_cloud.bodies.loose import take
from scrubjay_cloud.bodies.transfer import sent
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.lanes.append import Append, answer_to, append_together, is_plain
from scrubjay_cloud.lanes.store import LogMovedError, Store, locked, store_packs, store_runs, write_back
from scrubjay_cloud.lanes.validate import (
    OK,
    PACK,
    Item,
    Run,
    items_of,
    pack_refusal,
    push_refusal,
    repair_refusal,
    runs_of,
)
from scrubjay_cloud.refusals import device_revoked
from scrubjay_cloud.service import Service
from scrubjay_shared.account import AccountState, Device
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    InvalidError,
    UnavailableError,
)
from scrubjay_shared.wire import PushAnswer

INLINE_BYTES = 128 * 1024  # checked on the event loop, in 2 ms at most: two threads that want the GIL take twice that
ATTEMPTS = 5  # the log moves on between check and transaction: once is rare, five times is a fault


async def _stored(
    service: Service,
    call: Call,
    refusal: Callable[[Item, AccountState, Device], str],
    store: Store,
    *,
    packs: bool,
) -> Answer:
    """Check a body of objects, store what may be stored in one transaction, and notify who waits."""
    caller, head = call.caller, call.caller.head
    body: bytes = call.body
    assert caller.device is not None  # noqa: S101 - these endpoints admit devices only
    device = caller.device
    small = len(body) <= INLINE_BYTES
    items: list[Item] = []
    for _ in range(ATTEMPTS):
        state = await service.state(caller.account, head)
        me = state.devices.get(device)
        if me is None or me.revoked:
            raise device_revoked()

        def checked(state: AccountState = state, me: Device = me) -> list[Run]:
            if not items:
                items.extend(items_of(body))
            return runs_of(
                items,
                lambda item: refusal(item, state, me),
                lambda envelope: state.keys_of(*envelope.lane, pack=packs and envelope.header.kind == PACK),
            )

        now = service.now()
        runs = checked() if small else await service.offload(checked)
        if not items:
            raise InvalidError("the request holds no object", hint="send at least one")
        await _send_bodies(service, caller.account, items, runs)

        request = Append(
            account=caller.account,
            head=state.head,
            items=items,
            runs=runs,
            now=now,
            quota=service.settings.quota_bytes,
            quota_objects=service.policy.quota_objects,
            share=1.0 if state.devices[device].full else service.policy.quota_limited,
        )
        try:
            answer, gseq, moved = await _written(service, request, store)
        except LogMovedError as error:
            head = error.head
            continue
        if moved:
            service.notifier.notify(caller.account, gseq)
            service.materialising.submit(caller.account, {one.scope for one in answer.results}, state)
        return Answer(record=answer, headers=caller.warnings)
    raise UnavailableError("the account is being changed", hint="try again in a moment")


async def _send_bodies(service: Service, account: bytes, items: list[Item], runs: Sequence[Run]) -> None:
    """Send the bodies of large sealed objects that may be stored to the store of bodies, where there is one.

    What is not sealed the server reads itself, and it stays in the database. Raises UnavailableError.
    """
    store, policy = service.body_store, service.policy.bodies
    if store is None:
        return
    large = [
        index
        for run in runs
        for index in run.accepted
        if items[index].header.suite == Suite.SEALED
        and len(items[index].data) >= policy.least_bytes
        and not items[index].body_key
    ]
    if not large:
        return
    bodies = [items[index].data for index in large]
    keys = await sent(
        service.database, store, account, bodies, now=service.now(), entropy=service.entropy, policy=policy
    )
    for index, key in zip(large, keys, strict=True):
        items[index] = replace(items[index], body_key=key)


async def _written(service: Service, request: Append, store: Store) -> tuple[PushAnswer, int, bool]:
    """Store a request; return its answer, the account's last number then, and whether that moved.

    Raises LogMovedError when the account log is not the one that the request was checked against.
    """
    if store is store_runs and service.database.dialect == "postgres" and is_plain(request):
        last: int = await service.database.together(append_together, request, account=request.account)
        if last:
            return answer_to(request), last, True

    def work(tx: Transaction) -> tuple[PushAnswer, int, bool]:
        mine = [run.copy() for run in request.runs]  # a work may run twice, and it changes the runs
        account = locked(tx, service, request.account, request.head, share=request.share)
        before = replace(account)
        answer = store(tx, account, request.items, mine, request.now)
        stored = zip(request.items, answer.results, strict=True)
        take(tx, account.id, [item.body_key for item, one in stored if item.body_key and one.status == OK])
        if account != before:
            write_back(tx, account)
        return answer, account.gseq, account.gseq != before.gseq

    return await service.database.write(work, account=request.account)


async def push(service: Service, call: Call) -> Answer:
    """Take the objects of the calling device that continue its lanes."""
    return await _stored(service, call, push_refusal, store_runs, packs=False)


async def pack(service: Service, call: Call) -> Answer:
    """Take packs of lanes that the calling device owns or has adopted."""
    return await _stored(service, call, pack_refusal, store_packs, packs=True)


async def repair(service: Service, call: Call) -> Answer:
    """Take objects of any lane of the account that the server has lost: their signatures say whose they are."""
    return await _stored(service, call, repair_refusal, store_runs, packs=True)
