"""What a searchable scope shows: its lanes' ops folded with the devices' own merge code into one row a memory.

Theory of operation. A lane is read from where it was read before (`mem_lane`) to its end, some objects at a time: read,
folded away from the database, and merged into the rows of the memories concerned, some rows a transaction, the last of
which moves `mem_lane`. Merging is commutative and idempotent, so it may stop anywhere, run twice, or meet a pack that
covers what was read already. Between two transactions others write: a few kilobytes can hold ops by the ten thousand.
A row keeps of each field the version that is shown and no other: the greatest stamp wins whatever else was there, and
so words that were replaced are gone. A forgotten memory leaves a row without words, which keeps late edits out.

What cannot be read (an op of a newer version, an object that does not unpack) adds nothing and stops nothing; when the
code changes, `VERSION` does, and every scope is read again from its lanes. A lane that is not the one that was read any
more (the database was restored, or repaired) makes its scope be read again, too.

Events stand in the lanes, and are not read here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_cloud.paging import fitting
from scrubjay_cloud.policy import SearchPolicy
from scrubjay_shared import ops, parts, segment
from scrubjay_shared.envelope import READER, ObjectKind, Suite, parse
from scrubjay_shared.errors import CorruptError, MalformedError
from scrubjay_shared.ops import Field, State
from scrubjay_shared.parts import PART, Part
from scrubjay_shared.records import Op
from scrubjay_shared.text import analyse

Offload = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that costs CPU away from the event loop."""

VERSION = 1
"""Raised when the same lanes would give other rows."""
TABLES = ("mem_embedding", "mem_label", "mem_lane", "mem_word", "mem")
"""Everything that is kept of searchable scopes beside their lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some objects of a lane that are to be read: its bodies, and from where to where they go."""

    device: bytes
    start: int
    bodies: tuple[bytes, ...]
    ends: tuple[tuple[int, bytes], ...]
    last: bool
    """Whether the lane goes no further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a batch adds, and up to where it was read."""

    device: bytes
    start: int
    n: int
    tip: bytes
    state: State


async def caught_up(
    database: Database, account: bytes, scope: bytes, *, policy: SearchPolicy, offload: Offload
) -> None:
    """Read what a scope's lanes hold and its rows do not show yet. Only for scopes that the server may read."""
    waiting = set[bytes]()
    while await step(database, account, scope, waiting, policy=policy, offload=offload):
        pass


async def step(
    database: Database, account: bytes, scope: bytes, waiting: set[bytes], *, policy: SearchPolicy, offload: Offload
) -> bool:
    """Read one batch of a scope's lanes, and say whether there may be more.

    `waiting` are the devices whose next op has not come whole: it is added to. `offload` gets what a process can be
    given: a function of this module and a batch.
    """
    if not database.searches:
        return False
    batch = await database.read(lambda tx: _behind(tx, account, scope, waiting, policy))
    if batch is None:
        return False
    if not batch.bodies:
        await database.write(lambda tx: cleared(tx, account, scope))
        return True
    read: Read = await offload(partial(folded, batch))
    if read.n == batch.start:
        waiting.add(batch.device)  # the rest of an op's parts has not come yet
        return True
    touched = sorted({entity for entity, _ in read.state.registers} | read.state.forgotten)
    slices = [touched[begin : begin + policy.batch_rows] for begin in range(0, len(touched), policy.batch_rows)] or [[]]
    for number, some in enumerate(slices, start=1):
        await database.write(
            partial(_merge, scope=(account, scope), read=read, touched=some, last=number == len(slices), policy=policy)
        )
    return True


async def behind(database: Database) -> list[tuple[bytes, bytes]]:
    """Return the (account, scope) of which lanes are read no further than a crash, or older code, left them."""
    # From the searchable scopes, of which there are few, to their lanes: not through the lanes of all accounts.
    work = (
        "select s.account, s.scope from (select distinct account, scope from mem_lane) as s"
        " where exists (select 1 from lane l where l.account = s.account and l.scope = s.scope"
        " and not exists (select 1 from mem_lane m where m.account = l.account and m.scope = l.scope"
        " and m.device = l.device and m.n = l.n and m.version = ?))"
    )
    rows = await database.read(lambda tx: tx.rows(work, (VERSION,)))
    return [(account, scope) for account, scope in rows]


# --- reading lanes ----------------------------------------------------------------------------------------------------


def _behind(tx: Transaction, account: bytes, scope: bytes, done: set[bytes], policy: SearchPolicy) -> Batch | None:
    """Return the next objects to read: None for nothing, without bodies when all must be read again."""
    lanes = {
        device: (n, tip)
        for device, n, tip in tx.rows(
            "select device, n, tip from lane where account = ? and scope = ?", (account, scope)
        )
    }
    known = {
        device: (n, tip, version)
        for device, n, tip, version in tx.rows(
            "select device, n, tip, version from mem_lane where account = ? and scope = ?", (account, scope)
        )
    }
    for device, (n, tip, version) in known.items():
        end = lanes.get(device, (0, b""))
        if version != VERSION or n > end[0] or (n == end[0] and tip != end[1]):
            return Batch(device=device, start=0, bodies=(), ends=(), last=False)
    for device, (n, _) in sorted(lanes.items()):
        start = known[device][0] if device in known else 0
        if start < n and device not in done:
            batch = _next_batch(tx, (account, scope, device), start, n, policy)
            if batch is not None:
                return batch
    return None


def _next_batch(
    tx: Transaction, lane: tuple[bytes, bytes, bytes], start: int, end: int, policy: SearchPolicy
) -> Batch | None:
    """Return objects of a lane beyond a place: a batch of them, or all parts of the op that they begin with."""
    live = (
        "from object where account = ? and scope = ? and device = ? and superseded_at is null"
        " and n_to > ? and n_to <= ? order by n_from limit ?"
    )
    sizes = tx.rows(f"select size {live}", (*lane, start, end, policy.batch_objects))
    count = fitting((size for (size,) in sizes), policy.batch_bytes)
    rows = tx.rows(f"select body, n_to, tip {live}", (*lane, start, end, count))
    if rows and (parts := _parts_of(rows[0][0])) > count:
        rows = tx.rows(f"select body, n_to, tip {live}", (*lane, start, end, parts))
    if not rows:
        return None
    if _parts_of(rows[0][0]) == 1:
        # What is small may unpack to 32 MiB: as many at once as are no more than one such, unpacked.
        rows = rows[: fitting((_unpacked(row[0]) for row in rows), policy.batch_unpacked)]
    return Batch(
        device=lane[2],
        start=start,
        bodies=tuple(row[0] for row in rows),
        ends=tuple((row[1], row[2]) for row in rows),
        last=rows[-1][1] == end,
    )


def _unpacked(data: bytes) -> int:
    """Return how many bytes an object's payload says that it has: it is refused where that is not so."""
    try:
        envelope = parse(data)
        return segment.unpacked_size(envelope.body, envelope.header.flags)
    except MalformedError:
        return 0  # it is passed over


def _parts_of(body: bytes) -> int:
    """Return how many parts the op has that an object holds a part of; 1 for whole ops."""
    part = _part(body)
    return part.total if part is not None else 1


def _part(data: bytes) -> Part | None:
    """Return the part of an op that an object holds; None when it holds no part that could be joined."""
    try:
        envelope = parse(data)
        if not envelope.header.flags & PART:
            return None
        return parts.part_of(segment.decode(segment.decompress(envelope.body, envelope.header.flags)))
    except MalformedError:
        return None


def folded(batch: Batch) -> Read:
    """Fold what some objects say. Stops before parts of an op whose other parts may still come."""
    device = batch.device.hex()
    read: list[Op] = []
    n, tip = batch.start, b""
    waiting: list[Part] = []
    for body, (end, link) in zip(batch.bodies, batch.ends, strict=True):
        part = _part(body)
        if part is None:
            waiting.clear()
            read += _ops(_entries(body), device)
        else:
            if waiting and (waiting[-1].seq, waiting[-1].number + 1, waiting[-1].total) != part[:3]:
                waiting.clear()
            if waiting or part.number == 0:
                waiting.append(part)
            if waiting and part.number + 1 < part.total:
                continue
            read += _ops(_joined(waiting), device)
            waiting.clear()
        n, tip = end, link
    if waiting and not batch.last and n == batch.start:
        n, tip = batch.ends[-1]  # all that there could be of it was read, and it is not whole
    return Read(device=batch.device, start=batch.start, n=n, tip=tip, state=_shown(ops.fold(read)))


def _entries(data: bytes) -> list[segment.Entry]:
    try:
        envelope = parse(data)
        header = envelope.header
        if header.suite != Suite.OPEN or header.kind == ObjectKind.BEACON or header.min_reader > READER:
            return []
        return segment.decode(segment.decompress(envelope.body, header.flags))
    except MalformedError:
        return []  # its device sent it; devices refuse it too, and say so


def _joined(pieces: Sequence[Part]) -> list[segment.Entry]:
    if not pieces:
        return []
    try:
        return [(pieces[0].seq, parts.joined(part.data for part in pieces))]
    except MalformedError:
        return []


def _ops(entries: Iterable[segment.Entry], device: str) -> list[Op]:
    """Return the ops about memories that this version can apply: fields written, and forgetting."""
    applicable = []
    for seq, data in entries:
        if data is None:
            continue
        try:
            op = ops.decode(data, device=device, seq=seq)
        except CorruptError:
            continue
        if op.type in {ops.OpType.MEMORY, ops.OpType.FORGET} and not ops.problem(op) and ops.owner_of(op) is None:
            applicable.append(op)
    return applicable


def _shown(state: State) -> State:
    """Return a state with the shown version of each register only, and nothing of what was forgotten."""
    kept: dict[tuple[str, int], dict[ops.Stamp, ops.Version]] = {}
    for (entity, key), versions in state.registers.items():
        if entity not in state.forgotten:
            stamp = ops.winner(versions)
            kept[entity, key] = {stamp: versions[stamp]}
    return State(registers=kept, forgotten=set(state.forgotten))


# --- writing rows -----------------------------------------------------------------------------------------------------


def _merge(
    tx: Transaction,
    *,
    scope: tuple[bytes, bytes],
    read: Read,
    touched: Sequence[str],
    last: bool,
    policy: SearchPolicy,
) -> None:
    """Merge what a batch of a lane says of some memories, unless somebody else has merged it, or the lane is gone."""
    account, name = scope
    if not tx.execute("update account set gseq = gseq where id = ?", (account,)):
        return
    lane = (account, name, read.device)
    at = tx.row("select n from mem_lane where account = ? and scope = ? and device = ?", lane)
    there = tx.row("select n, tip from lane where account = ? and scope = ? and device = ?", lane)
    if (at[0] if at else 0) != read.start or there is None or there[0] < read.n:
        return
    if touched:
        _write(tx, scope, touched, read.state, policy)
    if not last:
        return
    tx.execute(
        "delete from mem_label where account = ? and scope = ? and topic not in"
        " (select topic from mem where account = ? and scope = ? and topic is not null)",
        (*scope, *scope),
    )
    tx.execute(
        "insert into mem_lane (account, scope, device, n, tip, version) values (?, ?, ?, ?, ?, ?)"
        " on conflict (account, scope, device) do update set n = excluded.n, tip = excluded.tip,"
        " version = excluded.version",
        (*lane, read.n, there[1] if there[0] == read.n else read.tip, VERSION),
    )


def _write(
    tx: Transaction, scope: tuple[bytes, bytes], touched: Sequence[str], new: State, policy: SearchPolicy
) -> None:
    marks = ", ".join("?" * len(touched))
    here = (*scope, *touched)
    before = {
        row[0]: row
        for row in tx.rows(
            f"select id, fields, hash, embedded from mem where account = ? and scope = ? and id in ({marks})", here
        )
    }
    wanted = set(touched)
    part = State(
        registers={key: versions for key, versions in new.registers.items() if key[0] in wanted},
        forgotten=new.forgotten & wanted,
    )
    state = _shown(ops.merge(_stored(before.values()), part))
    rows = _rows(state, touched, policy)
    tx.execute(f"delete from mem_word where account = ? and scope = ? and id in ({marks})", here)
    stale = [row.id for row in rows if row.id in before and before[row.id][2] != row.hash]
    tx.many("delete from mem_embedding where account = ? and scope = ? and id = ?", [(*scope, one) for one in stale])
    kept = {row.id for row in rows if row.id in before and before[row.id][3] and row.id not in set(stale)}
    tx.many(
        "insert into mem (account, scope, id, fields, text, type, topic, created, updated, superseded, hash, embedded)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (account, scope, id) do update set"
        " fields = excluded.fields, text = excluded.text, type = excluded.type, topic = excluded.topic,"
        " created = excluded.created, updated = excluded.updated, superseded = excluded.superseded,"
        " hash = excluded.hash, embedded = excluded.embedded",
        [(*scope, *row.columns(), int(row.id in kept)) for row in rows],
    )
    tx.many(
        "insert into mem_word (account, scope, word, id) values (?, ?, ?, ?)",
        [(*scope, word, row.id) for row in rows for word in row.words],
    )


def _stored(rows: Iterable[Row]) -> State:
    """Return the state that some rows of `mem` keep."""
    state = State()
    for entity, fields, *_ in rows:
        if not fields:
            state.forgotten.add(entity)
            continue
        for key, (hlc, device, value) in _decoder.decode(fields).items():
            state.registers[entity, key] = {(hlc, device.hex()): (value, ())}
    return state


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[int, tuple[int, bytes, Any]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """A row of `mem`, and the words that it is found by."""

    id: str
    fields: bytes
    text: str | None = None
    type: str = ""
    topic: str | None = None
    created: int = 0
    updated: int = 0
    superseded: bool = False
    hash: str = ""
    words: tuple[str, ...] = ()

    def columns(self) -> tuple[Any, ...]:
        return (
            *(self.id, self.fields, self.text, self.type, self.topic, self.created, self.updated),
            *(int(self.superseded), self.hash),
        )


def _rows(state: State, touched: Sequence[str], policy: SearchPolicy) -> list[_Memory]:
    fields: dict[str, dict[int, tuple[int, bytes, Any]]] = {entity: {} for entity in touched}
    for (entity, key), versions in sorted(state.registers.items()):
        ((stamp, (value, _)),) = versions.items()
        fields[entity][key] = (stamp[0], bytes.fromhex(stamp[1]), value)
    shown = ops.view(state).memories
    rows = []
    for entity in touched:
        memory = shown.get(entity)
        packed = b"" if entity in state.forgotten else _encoder.encode(fields[entity])
        if memory is None or memory.archived_at is not None:  # its registers stay: it comes back by another op
            rows.append(_Memory(id=entity, fields=packed))
            continue
        name = fields[entity].get(Field.NAME, (0, b"", None))[2]
        text = memory.content.replace("\0", "\ufffd")  # PostgreSQL has no NUL in texts
        words = analyse(f"{text[: policy.indexed_chars]}\n{name or ''}")
        rows.append(
            _Memory(
                id=entity,
                fields=packed,
                text=text,
                type=memory.type.value,
                topic=memory.topic and memory.topic[: policy.topic_chars],
                created=memory.created_at,
                updated=memory.updated_at,
                superseded=memory.superseded_by is not None,
                hash=memory.content_hash,
                words=tuple(dict.fromkeys(words)),
            )
        )
    return rows


def cleared(tx: Transaction, account: bytes, scope: bytes) -> None:
    """Delete everything that is kept of a searchable scope beside its lanes."""
    tx.execute("update account set gseq = gseq where id = ?", (account,))
    for table in TABLES:
        tx.execute(f"delete from {table} where account = ? and scope = ?", (account, scope))
