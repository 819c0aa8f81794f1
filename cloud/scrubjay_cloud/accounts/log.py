"""The account log: read, appended to, and mirrored by the tables that are asked for rights."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_cloud.account_states import keep_states, log_entries, newest_checkpoint, states_after
from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.blobs import Blob, check_blob, read_blob, store_blob
from scrubjay_cloud.accounts.wraps import check_wrap, store_wrap
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.paging import fitting
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.refusals import account_deleted
from scrubjay_cloud.service import Service
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import ObjectKind, Suite
from scrubjay_shared.errors import (
    DeniedError,
    InvalidError,
    LogConflictError,
    NotFoundError,
    NotSearchableError,
)
from scrubjay_shared.wire import (
    REFUSED,
    LogAppend,
    LogPage,
)

LOG_PAGE_BYTES = 512 * 1024  # of entries; base64 makes 700 KB of it


async def read_log(service: Service, call: Call) -> Answer:
    """Return the entries from a number on, as many as a page holds."""
    account = call.caller.account

    def work(tx: Transaction) -> tuple[LogPage, dict[str, str]]:
        row = tx.row("select log_seq, log_head from account where id = ?", (account,))
        if row is None:
            raise account_deleted()
        entries = log_entries(tx, account, call.query["from"], 4_096)
        count = fitting(map(len, entries), LOG_PAGE_BYTES)
        newest = tx.row("select max(until) from refusal where account = ?", (account,))
        told = {REFUSED: str(newest[0])} if newest is not None and newest[0] is not None else {}
        return LogPage(entries=tuple(entries[:count]), seq=row[0], head=row[1]), told

    page, told = await service.database.read(work)
    return Answer(record=page, headers=told)


async def read_checkpoint(service: Service, call: Call) -> Answer:
    """Return the newest checkpoint, of those up to an entry, with what it states."""
    account = call.caller.account
    found = await service.database.read(lambda tx: newest_checkpoint(tx, account, call.query["before"]))
    if found is None:
        raise NotFoundError(
            "the account log has no checkpoint there", hint="GET /v1/log reads it from its first entry on"
        )
    return Answer(record=found)


async def append_log(service: Service, call: Call) -> Answer:
    """Append entries that follow `head`, with the wraps and blobs they speak of: all or nothing.

    A pending token may, too: an entry is signed with the account's key, which says more than a token does, and a device
    that recovers has nothing else yet.
    """
    given: LogAppend = call.body
    caller = call.caller
    if caller.device is not None and not caller.full:
        raise DeniedError(
            "this is a limited device, which may not change the account", hint="use a device that is not limited"
        )
    before = await service.state(caller.account, given.head)
    if before.head != given.head:
        raise _moved_on()
    await service.limits.spend("log", caller.spends_as, service.policy.limits.log, sum(map(len, given.entries)))
    now = service.now()
    states = await checked_states(service, before, given, now)
    state = states[-1]
    blobs = [read_blob(data) for data in given.blobs]

    def append(tx: Transaction) -> None:
        changed = tx.execute(
            "update account set log_seq = ?, log_head = ?, keyring = ? where id = ? and log_head = ?",
            (state.seq, state.head, keyring_hash(state), caller.account, given.head),
        )
        if not changed:
            raise _moved_on()
        store_log(tx, states, given, blobs, service)

    await service.database.write(append)
    service.keep(state)
    service.notifier.wake(caller.account)  # whoever waits learns of it: a new epoch, a new device
    return Answer(record=LogPage(entries=(), seq=state.seq, head=state.head))


def _moved_on() -> LogConflictError:
    return LogConflictError(
        "another device has changed the account meanwhile", hint="read the new entries of the log and try again"
    )


async def checked_states(
    service: Service, before: AccountState | None, given: LogAppend, now: Millis
) -> list[AccountState]:
    """Return the state `before` the new entries, unless they make the account, and those after each of them.

    They follow, are signed by whoever may, and keep to the limits.
    """
    if not given.entries:
        raise InvalidError(
            "the request appends no entry to the account log", hint="PUT /v1/wraps stores a wrap by itself"
        )
    _check_length(before, given, service.policy)
    earlier: dict[int, AccountState] = {}
    if before is not None:
        account, undone = before.account, {seq for seq in accountlog.undone_from(given.entries) if seq < before.seq}
        earlier = await service.database.read(lambda tx: states_after(tx, account, undone))

    def extended() -> list[AccountState]:
        after = accountlog.extended(
            () if before is None else (before,), given.entries, now, fresh=True, earlier=earlier
        )
        accountlog.check_wrap_keys(given.entries)
        return after

    states: list[AccountState] = await service.offload(extended)
    state, policy = states[-1], service.policy
    if len(state.active()) > policy.max_devices:
        raise InvalidError(
            f"an account may have {policy.max_devices} devices",
            hint="scrubjay devices revoke takes out one that is not used",
        )
    if len(state.scopes) > policy.max_scopes:
        raise InvalidError(f"an account may make {policy.max_scopes} scopes", hint="use one that exists")
    for wrap in given.wraps:
        check_wrap(wrap)
    if not service.database.searches and any(
        entry.type == EntryType.SCOPE_CREATE and entry.body.get(2) == Suite.OPEN
        for entry in map(accountlog.read, given.entries)
    ):
        raise NotSearchableError(
            "this server cannot keep searchable scopes: its PostgreSQL has no pgvector 0.8",
            hint="its operator installs the extension and restarts the service; sealed scopes work",
        )
    return states


def _check_length(before: AccountState | None, given: LogAppend, policy: CloudPolicy) -> None:
    """Bound what is replayed from a checkpoint on, and what checkpoints themselves take here."""
    last, seq = (0, -1) if before is None else (before.checkpoint, before.seq)
    for entry in map(accountlog.read, given.entries):
        seq += 1
        if entry.type == EntryType.CHECKPOINT:
            if seq - last < policy.checkpoint_gap:
                raise InvalidError(
                    f"a checkpoint of the account log may be made {policy.checkpoint_gap} entries after the last",
                    hint="a checkpoint is not needed yet: update scrubjay if it asks for one",
                )
            last = seq
    if seq - last >= policy.max_log_entries:
        raise InvalidError(
            f"the account log may have {policy.max_log_entries} entries after a checkpoint, and these would be more",
            hint="update scrubjay on one device that is not limited and run scrubjay sync there: it makes a checkpoint",
        )


def keyring_hash(state: AccountState) -> bytes | None:
    """Return the hash of the keyring that is in force, None before there is one."""
    return state.keyring[1] if state.keyring else None


def store_log(
    tx: Transaction, states: Sequence[AccountState], given: LogAppend, blobs: Sequence[Blob], service: Service
) -> None:
    """Write new entries, and make everything that mirrors the log say the same; `states` as `checked_states` says."""
    now = service.now()
    state = states[-1]
    account, read = state.account, [accountlog.read(data) for data in given.entries]
    tx.many(
        "insert into account_log (account, seq, hash, entry) values (?, ?, ?, ?)",
        [(account, entry.seq, entry.hash, entry.data) for entry in read],
    )
    keep_states(tx, states, service.policy.checkpoints)
    for blob in blobs:
        check_blob(blob, state)
        store_blob(tx, blob, account, now)
    keyring = keyring_hash(state)
    if keyring is not None:
        if any(entry.type == EntryType.KEYRING_SET for entry in read) and (
            tx.row("select 1 from blob where account = ? and hash = ?", (account, keyring)) is None
        ):
            raise InvalidError("the log names a keyring that was not sent", hint="send it among the blobs")
        tx.execute(
            "update blob set replaced_at = ? where account = ? and kind = ? and replaced_at is null and hash <> ?",
            (now, account, int(ObjectKind.KEYRING), keyring),
        )
        # After a `void` entry the keyring from before the undone entries is in force again.
        tx.execute("update blob set replaced_at = null where account = ? and hash = ?", (account, keyring))
    for wrap in given.wraps:
        store_wrap(tx, account, wrap, replace=True)
    _mirror_devices(tx, state, now, voided=any(entry.type == EntryType.VOID for entry in read))
    for entry in read:
        audit(tx, account, f"log {entry.type}", now)


def _mirror_devices(tx: Transaction, state: AccountState, now: Millis, *, voided: bool) -> None:
    account = state.account
    if voided:
        # What was added or revoked since is as if it had never been, but a certified id must not come back unnoticed.
        tx.execute("delete from device where account = ?", (account,))
    for device in state.devices.values():
        tx.execute(
            "insert into device (account, id, sign_pub, hpke_pub, limited, revoked_at, last_seen)"
            " values (?, ?, ?, ?, ?, ?, ?) on conflict (account, id) do update set sign_pub = excluded.sign_pub,"
            " hpke_pub = excluded.hpke_pub, limited = excluded.limited,"
            " revoked_at = case when excluded.revoked_at is null then null"
            " else coalesce(device.revoked_at, excluded.revoked_at) end",
            (
                *(account, device.id, device.sign_pub, device.wrap_pub, int(not device.full)),
                *(now if device.revoked else None, 0),
            ),
        )
    if voided:
        tx.execute(
            "delete from token where account = ? and device is not null and device not in"
            " (select id from device where account = ?)",
            (account, account),
        )
    # A refusal is settled once its device or its author is out: whoever a thief refused is in again with the entry that
    # revokes the thief.
    in_force = "(select id from device where account = ? and revoked_at is null)"
    tx.execute(
        f"delete from refusal where account = ? and (target not in {in_force} or author not in {in_force})",
        (account, account, account),
    )
    tx.execute(
        "update device set refused_until = coalesce((select max(until) from refusal"
        " where refusal.account = device.account and refusal.target = device.id), 0) where account = ?",
        (account,),
    )
