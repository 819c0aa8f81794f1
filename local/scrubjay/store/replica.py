"""What a store keeps of its replication: lanes, sealed objects, the account log. SQL only: it opens nothing.

Ids of accounts, scopes and devices are bytes here, as on the wire; the op log has devices in hex. Functions that take a
`Transaction` run inside a write; those that take a `Store` read what was committed.
"""
# ruff: noqa: SLF001 - a module of the store's own package

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from scrubjay.store.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.errors import SplitError

KEPT_LINKS = 4_096
"""Places a lane whose links are kept: a beacon comes at least every 1,000, and names the end it has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncState:
    """Where replication stands. Times in UTC milliseconds, 0 for never.

    `cursor` "" is the beginning; `sealed_seq` is the last op of this device that stands in a sealed object.
    """

    account: bytes
    cursor: str = ""
    store_id: str = ""
    generation: int = 0
    sealed_seq: int = 0
    beacon_at: int = 0
    beacon_n: int = 0
    verified_at: int = 0
    round_at: int | None = None
    error_at: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A lane as far as it is held: places `low` to `n`, whose last link is `tip`.

    `low_prev` is what the object before `low` must link to; `low` 1 means that nothing is missing. `acked_n` is how far
    the server has confirmed a lane of our own. `hw_n` and `hw_tip` are the furthest end that anybody has shown.
    """

    scope: bytes
    device: bytes
    n: int
    tip: bytes
    acked_n: int
    low: int
    low_prev: bytes
    hw_n: int
    hw_tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An object as it was sent, without its bytes: what it covers, the ops in it, its size, the link after it."""

    scope: bytes
    device: bytes
    n_from: int
    n_to: int
    seq_low: int
    seq_high: int
    size: int
    tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A project whose things, first written after op `seq` of this device, live in a scope of their own."""

    project: str
    scope: bytes
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What a person must be told. `code` is the error's, `subject` what it is about (an id in hex, or "")."""

    id: int
    at: Millis
    code: str
    subject: str
    message: str
    hint: str


# --- the account ------------------------------------------------------------------------------------------------------

_STATE = (
    "account, cursor, store_id, generation, sealed_seq, beacon_at, beacon_n, verified_at, round_at, error_at, error"
)


async def state(store: Store) -> SyncState | None:
    """Return where replication stands; None while sync is off."""
    return _state(await store.fetch(f"select {_STATE} from sync_state"))


def state_in(tx: Transaction) -> SyncState | None:
    """Return where replication stands, with what this transaction has written."""
    return _state(tx.fetch(f"select {_STATE} from sync_state"))


def _state(rows: Sequence[tuple[Any, ...]]) -> SyncState | None:
    if not rows:
        return None
    return SyncState(**dict(zip(_STATE.split(", "), rows[0], strict=True)))


def begin(tx: Transaction, account: bytes) -> None:
    """Turn replication with an account on. Doing it twice changes nothing."""
    tx._run("insert or ignore into sync_state (account) values (?)", (account,))


def set_state(tx: Transaction, **values: Any) -> None:
    """Change some fields of the state."""
    tx._run(f"update sync_state set {', '.join(f'{name} = ?' for name in values)}", tuple(values.values()))


LEFT = "account_left"


def left(tx: Transaction) -> bytes | None:
    """Return the account that this store replicated last, now that it replicates none.

    Empty where the server showed this device another history than others: nobody knows then what the account still has.
    """
    found = tx.fetch("select value from meta where key = ?", (LEFT,))
    return bytes.fromhex(found[0][0]) if found else None


def end(tx: Transaction) -> None:
    """Turn replication off: forget everything that was kept for the account, but which it was. Memories stay."""
    if state := state_in(tx):
        split = state.error == SplitError.code or tx.fetch("select 1 from alarm where code = ?", (SplitError.code,))
        tx.set_meta(LEFT, "" if split else state.account.hex())
    for table in (
        "sync_state",
        "lane",
        "sealed",
        "link",
        "part",
        "placed",
        "bound",
        "account_log",
        "seen",
        "alarm",
        "erased",
    ):
        tx._run(f"delete from {table}")


async def log(store: Store) -> list[bytes]:
    """Return the account log as far as it is pinned, from its genesis on."""
    return [bytes(row[0]) for row in await store.fetch("select entry from account_log order by seq")]


def keep_log(tx: Transaction, seq: int, entries: Sequence[bytes]) -> None:
    """Pin entries of the account log from place `seq` on. What was pinned before is never replaced."""
    tx._run_many("insert into account_log (seq, entry) values (?, ?)", list(enumerate(entries, seq)))


# --- lanes ------------------------------------------------------------------------------------------------------------

_LANE = "scope, device, n, tip, acked_n, low, low_prev, hw_n, hw_tip"


async def lanes(store: Store) -> dict[tuple[bytes, bytes], Lane]:
    """Return every lane that is held or known of, by (scope, device)."""
    return {(row[0], row[1]): _lane(row) for row in await store.fetch(f"select {_LANE} from lane")}


def lane_in(tx: Transaction, scope: bytes, device: bytes) -> Lane | None:
    """Return one lane, with what this transaction has written."""
    rows = tx.fetch(f"select {_LANE} from lane where scope = ? and device = ?", (scope, device))
    return _lane(rows[0]) if rows else None


def _lane(row: tuple[Any, ...]) -> Lane:
    return Lane(**dict(zip(_LANE.split(", "), row, strict=True)))


def put_lane(tx: Transaction, lane: Lane) -> None:
    """Keep where a lane ends. Its high-water mark only rises."""
    marks = ", ".join("?" * 9)
    tx._run(
        f"insert into lane ({_LANE}) values ({marks}) on conflict (scope, device) do update set n = excluded.n,"
        " tip = excluded.tip, acked_n = excluded.acked_n, low = excluded.low, low_prev = excluded.low_prev,"
        " hw_tip = iif(excluded.hw_n > hw_n, excluded.hw_tip, hw_tip), hw_n = max(hw_n, excluded.hw_n)",
        (
            lane.scope,
            lane.device,
            lane.n,
            lane.tip,
            lane.acked_n,
            lane.low,
            lane.low_prev,
            lane.hw_n,
            lane.hw_tip,
        ),
    )


def keep_link(tx: Transaction, scope: bytes, device: bytes, n: int, tip: bytes) -> None:
    """Keep the link of a place, and let go of those far behind it."""
    tx._run("insert or replace into link (scope, device, n, tip) values (?, ?, ?, ?)", (scope, device, n, tip))
    tx._run("delete from link where scope = ? and device = ? and n < ?", (scope, device, n - KEPT_LINKS))


async def link(store: Store, scope: bytes, device: bytes, n: int) -> bytes | None:
    """Return the link of a place; None when it is not kept."""
    rows = await store.fetch("select tip from link where scope = ? and device = ? and n = ?", (scope, device, n))
    return bytes(rows[0][0]) if rows else None


def link_in(tx: Transaction, scope: bytes, device: bytes, n: int) -> bytes | None:
    """Return the link of a place, with what this transaction has written."""
    rows = tx.fetch("select tip from link where scope = ? and device = ? and n = ?", (scope, device, n))
    return bytes(rows[0][0]) if rows else None


def drop_lane(tx: Transaction, scope: bytes, device: bytes) -> None:
    """Forget what is held of a lane, to read it again from the server. Its ops stay."""
    for table in ("lane", "sealed", "link"):
        tx._run(f"delete from {table} where scope = ? and device = ?", (scope, device))


# --- sealed objects ---------------------------------------------------------------------------------------------------

_SEALED = "scope, device, n_from, n_to, seq_low, seq_high, size, tip"


async def sealed(store: Store, scope: bytes, device: bytes, *, after: int = 0) -> list[Sealed]:
    """Return what objects of a lane are kept that reach beyond place `after`, in order, without their bytes."""
    rows = await store.fetch(
        f"select {_SEALED} from sealed where scope = ? and device = ? and n_to > ? order by n_from",
        (scope, device, after),
    )
    return [_sealed(row) for row in rows]


def _sealed(row: tuple[Any, ...]) -> Sealed:
    return Sealed(**dict(zip(_SEALED.split(", "), row, strict=True)))


async def objects(store: Store, found: Iterable[Sealed]) -> list[bytes]:
    """Return the bytes of some kept objects, in their order; those dropped meanwhile are left out."""
    given: list[bytes] = []
    for one in found:
        rows = await store.fetch(
            "select obj from sealed where scope = ? and device = ? and n_from = ?", (one.scope, one.device, one.n_from)
        )
        given += [bytes(row[0]) for row in rows]
    return given


def keep_sealed(tx: Transaction, new: Sealed, obj: bytes) -> None:
    """Keep an object, in the place of those that it covers."""
    tx._run(
        "delete from sealed where scope = ? and device = ? and n_from >= ? and n_to <= ?",
        (new.scope, new.device, new.n_from, new.n_to),
    )
    tx._run(
        f"insert into sealed ({_SEALED}, obj) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (new.scope, new.device, new.n_from, new.n_to, new.seq_low, new.seq_high, new.size, new.tip, obj),
    )


def drop_sealed(tx: Transaction, scope: bytes, device: bytes, *, after: int) -> list[bytes]:
    """Let go of the objects of a lane that reach beyond a place, and of their links. Returns their bytes, in order."""
    rows = tx.fetch(
        "select obj from sealed where scope = ? and device = ? and n_to > ? order by n_from", (scope, device, after)
    )
    tx._run("delete from sealed where scope = ? and device = ? and n_to > ?", (scope, device, after))
    tx._run("delete from link where scope = ? and device = ? and n > ?", (scope, device, after))
    return [bytes(row[0]) for row in rows]


def trim_sealed(tx: Transaction, own: Sequence[bytes], limit: int) -> int:
    """Let go of other devices' oldest objects until they take at most `limit` bytes. Returns how many went."""
    marks = ", ".join("?" * len(own))
    total = tx.fetch(f"select coalesce(sum(size), 0) from sealed where device not in ({marks})", own)[0][0]
    gone = 0
    while total > limit:
        rows = tx.fetch(
            f"select scope, device, n_from, size from sealed where device not in ({marks})"
            " order by n_from, scope, device limit 256",
            own,
        )
        if not rows:
            break
        for scope, device, n_from, size in rows:
            if total <= limit:
                break
            tx._run("delete from sealed where scope = ? and device = ? and n_from = ?", (scope, device, n_from))
            total -= size
            gone += 1
    return gone


# --- ops in parts -----------------------------------------------------------------------------------------------------


def keep_part(tx: Transaction, device: str, seq: int, *, place: int, parts: int, data: bytes) -> bytes | None:
    """Keep a part of an op. Returns the whole op once all its parts are there, and lets go of them; else None."""
    tx._run(
        "insert or replace into part (device, seq, place, parts, data) values (?, ?, ?, ?, ?)",
        (device, seq, place, parts, data),
    )
    found = tx.fetch("select data from part where device = ? and seq = ? order by place", (device, seq))
    if len(found) < parts:
        return None
    tx._run("delete from part where device = ? and seq = ?", (device, seq))
    return b"".join(bytes(row[0]) for row in found)


async def op_ids(store: Store, device: bytes) -> dict[int, bytes]:
    """Return the ids of a device's ops that are held here, by place."""
    rows = await store.fetch("select seq, op_id from op where device = ?", (device.hex(),))
    return {int(seq): bytes(op_id) for seq, op_id in rows}


# --- scopes -----------------------------------------------------------------------------------------------------------


def bind(tx: Transaction, project: str, scope: bytes, seq: int) -> None:
    """Let things first written about a project after op `seq` live in a scope."""
    tx._run("insert or replace into bound (project, scope, seq) values (?, ?, ?)", (project, scope, seq))


def unbind(tx: Transaction, project: str) -> None:
    """Let new things of a project live in the home scope again; those placed elsewhere stay there."""
    tx._run("delete from bound where project = ?", (project,))


async def bindings(store: Store) -> list[Binding]:
    """Return the projects that live in scopes of their own."""
    return [
        Binding(project=row[0], scope=row[1], seq=row[2])
        for row in await store.fetch("select project, scope, seq from bound order by project")
    ]


def bindings_in(tx: Transaction) -> list[Binding]:
    """Return the projects that live in scopes of their own, with what this transaction has written."""
    return [
        Binding(project=row[0], scope=row[1], seq=row[2])
        for row in tx.fetch("select project, scope, seq from bound order by project")
    ]


def placed(tx: Transaction, entities: Iterable[str]) -> dict[str, bytes]:
    """Return the scopes of those of some entities that do not live in the home scope."""
    if not tx.fetch("select 1 from placed limit 1"):  # most accounts have one scope
        return {}
    wanted = msgspec.json.encode(list(entities)).decode()
    return dict(
        tx.fetch("select entity, scope from placed where entity in (select value from json_each(?))", (wanted,))
    )


def place(tx: Transaction, where: Mapping[str, bytes]) -> None:
    """Say where some entities live. Where one lives never changes."""
    tx._run_many("insert or ignore into placed (entity, scope) values (?, ?)", list(where.items()))


def first_op(tx: Transaction, entity: str, device: str) -> int | None:
    """Return the place of an entity's first op in a device's log; None when another device wrote of it too."""
    rows = tx.fetch("select device, min(seq) from op where entity = ? group by device", (entity,))
    return int(rows[0][1]) if len(rows) == 1 and rows[0][0] == device else None


# --- erased ops -------------------------------------------------------------------------------------------------------


def note_erased(tx: Transaction, now: Millis) -> None:
    """Stamp what was erased since the last time with the time it was noticed."""
    tx._run("update erased set at = ? where at = 0", (now,))


async def erased(store: Store, device: bytes) -> dict[int, int]:
    """Return the ops of a device whose content was erased after they may have been sent: when, by place."""
    rows = await store.fetch("select seq, at from erased where device = ?", (device.hex(),))
    return {int(seq): int(at) for seq, at in rows}


def wait_erased(tx: Transaction, device: bytes, seqs: Iterable[int], now: Millis) -> None:
    """Look at some erased ops again only after a while."""
    tx._run_many("update erased set at = ? where device = ? and seq = ?", [(now, device.hex(), seq) for seq in seqs])


def settle_erased(tx: Transaction, device: bytes, seqs: Iterable[int]) -> None:
    """Strike ops off: nothing that is kept or served holds their content any more."""
    if tx.fetch("select 1 from erased where device = ? limit 1", (device.hex(),)):
        tx._run_many("delete from erased where device = ? and seq = ?", [(device.hex(), seq) for seq in seqs])


# --- what others said -------------------------------------------------------------------------------------------------


def saw(tx: Transaction, device: bytes, at: Millis) -> None:
    """Note that a device said, at a time of its own clock, that it is there."""
    tx._run("insert into seen (device, at) values (?1, ?2) on conflict do update set at = max(at, ?2)", (device, at))


async def seen(store: Store) -> dict[bytes, Millis]:
    """Return when each device last said that it is there."""
    return {bytes(row[0]): Millis(row[1]) for row in await store.fetch("select device, at from seen")}


async def active(store: Store, device: bytes) -> Millis | None:
    """Return when a device was last active by its own clock: its newest change that is held, or its last beacon."""
    [(seen, hlc)] = await store.fetch(
        "select (select at from seen where device = ?1),"
        " (select hlc from op where device = ?2 order by seq desc limit 1)",
        (device, device.hex()),
    )
    wrote = None if hlc is None else millis_of(Hlc(hlc))
    return max((at for at in (seen, wrote) if at is not None), default=None)


async def clashes(store: Store) -> list[tuple[str, str, str]]:
    """Return the memories that are shown under another name, because a memory of another device had theirs first.

    Each as the name that it shows, the name that it was given, and its id. One that was renamed since is left out.
    """
    return [
        (row[0], row[1], row[2])
        for row in await store.fetch(
            "select name, claimed, memory_id from name where canonical and name <> claimed order by name"
        )
    ]


def raise_alarm(tx: Transaction, code: str, subject: str, message: str, hint: str) -> bool:
    """Keep an alarm. Returns False when the same one is kept already."""
    known = tx.fetch("select 1 from alarm where code = ? and subject = ?", (code, subject))
    if not known:
        tx._run(
            "insert into alarm (at, code, subject, message, hint) values (?, ?, ?, ?, ?)",
            (tx.now, code, subject, message, hint),
        )
    return not known


async def alarms(store: Store) -> list[Alarm]:
    """Return the alarms that nobody has acknowledged, oldest first."""
    return [
        Alarm(id=row[0], at=Millis(row[1]), code=row[2], subject=row[3], message=row[4], hint=row[5])
        for row in await store.fetch("select id, at, code, subject, message, hint from alarm order by id")
    ]


def acknowledge(tx: Transaction, ids: Iterable[int] | None = None) -> None:
    """Let go of some alarms, or of all."""
    if ids is None:
        tx._run("delete from alarm")
    else:
        tx._run_many("delete from alarm where id = ?", [(one,) for one in ids])


def clear_alarm(tx: Transaction, code: str, subject: str) -> None:
    """Let go of an alarm whose cause is gone."""
    tx._run("delete from alarm where code = ? and subject = ?", (code, subject))
