"""Refusing a device for a while, before the entry that revokes it, and telling of those that others have refused."""

from __future__ import annotations

import logging

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.signatures import is_signed
from scrubjay_shared.wire import Refusal, refusal_message
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.policy import ACCOUNT_CHANGED

log = logging.getLogger(__name__)


async def refuse(cloud: Cloud, device: bytes) -> None:
    """Have a device refused. Where this one did so before, nothing is lost: the entry that follows is what counts."""
    try:
        await cloud.account.delete_device(device)
    except ConflictError as error:
        log.warning("device %s is not refused again: %s", device.hex()[:8], error.message)


async def is_refused(member: Member, cloud: Cloud, now: Millis) -> bool:
    """Say whether another device has this one refused, by its own signature."""
    there = now + (cloud.offset_ms or 0)
    own = member.credential.device
    return any(one.device == own and one.until > there and _is_signed(one, member) for one in await _refusals(cloud))


async def tell_refusals(store: Store, member: Member, cloud: Cloud) -> None:
    """Keep an alarm of each refusal that is new here, with its author; none of those that this device asked for."""
    told = await store.read(lambda q: q.replication.refusals_told())
    if cloud.refused <= told:
        return
    found = [one for one in await _refusals(cloud) if one.until > told and _is_signed(one, member)]

    def keep(tx: Transaction) -> None:
        for one in found:
            if one.author == member.credential.device:
                continue
            device, author = (f"{member.device_name(each)} ({each.hex()[:8]})" for each in (one.device, one.author))
            tx.replication.raise_alarm(
                ACCOUNT_CHANGED,
                f"refused/{one.device.hex()}/{one.nonce.hex()}",
                f"device {device} was kept from sending for a quarter of an hour, by device {author}",
                "if this was you: scrubjay sync acknowledge; if not, somebody else has that device: scrubjay devices"
                f" revoke {one.author.hex()[:8]}, which works on the device that is kept out, too",
            )
        tx.replication.tell_refusals(cloud.refused)

    await store.write(keep)


async def _refusals(cloud: Cloud) -> tuple[Refusal, ...]:
    try:
        return (await cloud.account.refusals()).refusals
    except NotFoundError:  # a server from before they were signed tells of none
        return ()


def _is_signed(refusal: Refusal, member: Member) -> bool:
    author = member.state.devices.get(refusal.author)
    message = refusal_message(member.account, refusal.device, refusal.author, refusal.nonce)
    signed = author is not None and author.full and is_signed(author.sign_pub, refusal.signature, message)
    if not signed:
        log.warning("the server tells of a refusal that no device has signed")
    return signed
