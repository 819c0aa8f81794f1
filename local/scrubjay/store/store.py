"""The SQLite file: opened once, read by many, written by one. All SQL of the product is in this package.

Theory of operation. `Store.write` runs a plain function over a `Transaction` inside the writer's next group commit. A
transaction appends an op for every change to what is not derived, and makes the projections of what it touched again
from the ops of that one entity (`ops.fold`), so that the tables never say anything that the log does not. What the
in-memory index must learn is handed to `on_change` after the commit, in the order of the commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from scrubjay import destination
from scrubjay.index.index import EventDoc, MemoryDoc
from scrubjay.store import embed_queue, file, rows, seals, sqlite
from scrubjay.store.embed_queue import Place, Waiting
from scrubjay.store.index_file import drop_index
from scrubjay.store.lock import StoreLock
from scrubjay.store.snapshot import Snapshot
from scrubjay.store.transaction import ENDS, Position, Transaction
from scrubjay_io.group_commit import GroupCommit, Owner
from scrubjay_io.sqlite import ERRORS, Connection
from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, Millis, millis_of, uuid7_millis
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)
from scrubjay_shared.ops import OpType, Stamp
from scrubjay_shared.records import Alias, Event, Grip, Memory, Op, Session

# aiosqlite logs statements with their parameters at DEBUG; memory text never goes to a log.
logging.getLogger("aiosqlite").setLevel(logging.WARNING)

log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_GROUP = 128
"""Writes in one transaction: enough to share an fsync among all waiting clients, few enough to keep p99 low."""
READERS = 3
"""Read connections: two cores' worth of queries and one long export beside them."""
PAGE = 500
"""Rows that a scan reads at a time, so that no read transaction holds the log back for long."""
LOADED = 1_000
"""Documents or vectors that the index takes at a time: to make them of rows takes the event loop 5 ms."""
_ERASES = frozenset({OpType.FORGET, OpType.BLANK})
MIN_PREFIX = 6
"""Characters of an id that may stand for it."""


@dataclass(slots=True)
class Changes:
    """What one commit changed, for whoever keeps a copy in memory."""

    events: list[EventDoc] = field(default_factory=list)
    memories: list[MemoryDoc] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    """Owners whose text changed, so that their vector no longer stands for it."""
    vectors: list[tuple[int, str, bytes]] = field(default_factory=list)
    """(space, owner, vector) of what was embedded."""
    arrived: bool = False
    """Whether ops of other devices were taken in."""
    erased: bool = False
    """Whether these made words go: copies of them outside the tables must go too (`Store.drop_copies`)."""

    def follow(self, later: Changes) -> None:
        """Add what a later write of the same group changed: of an owner that both touched, the later word counts."""
        touched = {doc.id for doc in later.events} | {doc.id for doc in later.memories} | set(later.removed)
        if touched:
            self.events = [doc for doc in self.events if doc.id not in touched]
            self.memories = [doc for doc in self.memories if doc.id not in touched]
            self.removed = [owner for owner in self.removed if owner not in touched]
            self.vectors = [row for row in self.vectors if row[1] not in later.stale and row[1] not in later.removed]
        self.events += later.events
        self.memories += later.memories
        self.removed += later.removed
        self.stale |= later.stale
        self.vectors += later.vectors
        self.arrived |= later.arrived
        self.erased |= later.erased


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a background job has gone. Times in UTC milliseconds; `last_error` is an error's code."""

    runs: int
    failures: int
    last_start: Millis | None
    last_ms: int | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputed:
    """A field of a memory, the value it shows, and those by stamp that lost without having been seen."""

    memory_id: str
    field: int
    shown: Any
    versions: tuple[tuple[Stamp, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """An op of another device that this version could not apply, and why."""

    device: str
    seq: int
    why: str


class Store:
    """An open store. Made by `Store.open`; every method may raise the kinds that `sqlite.translate` names."""

    def __init__(self, path: Path, lock: StoreLock, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> None:
        self.path = path
        self.schema_version = 0
        self.device = ""
        self.store_id = ""
        self.last_hlc = Hlc(0)
        self.last_seq = 0
        self.commits = 0
        """How often something was written: while it stays, nothing that was looked for can have come."""
        self.on_change: Callable[[Changes], None] = lambda _: None
        self._lock = lock
        self._now = now
        self._entropy = entropy
        self._writer: GroupCommit
        self._connection: Connection
        self._readers: asyncio.Queue[Connection] = asyncio.Queue()
        self._open: list[Connection] = []
        self._closed = False
        self._snapshots = 0
        self._cut_back = False
        """Whether something was erased while a snapshot held the log: the log is cut back when that ends."""

    @classmethod
    async def open(cls, path: Path, *, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> Store:
        """Open the store at `path`, making it when there is none. `entropy(n)` gives n random bytes.

        Raises ConflictError when another process has it or wrote a newer schema, CorruptError when the file is damaged
        or not ours, UnavailableError when it cannot be read or written. The file is untouched by a refusal.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UnavailableError(
                f"the folder {path.parent} cannot be created: {error.strerror}",
                hint="choose another folder with --data-dir",
            ) from error
        lock = StoreLock(path)
        try:
            lock.acquire()
        except OSError as error:
            raise UnavailableError(
                f"scrubjay cannot write to the folder {path.parent}: {error.strerror}",
                hint=f"check its permissions: ls -ld '{path.parent}'",
            ) from error
        store = cls(path, lock, now, entropy)
        try:
            seed = file.created(now(), entropy(16).hex(), entropy(16).hex())
            store.schema_version = await asyncio.to_thread(file.prepare, path, file.migrations(), lambda: seed)
            await store._connect()
            lock.opened()
        except BaseException:
            await store._disconnect()
            lock.release()
            raise
        return store

    async def _connect(self) -> None:
        with sqlite.translated(self.path):
            self._connection = await self._attach(read_only=False)
            await self._connection.call(seals.install)
            for _ in range(READERS):
                self._readers.put_nowait(await self._attach(read_only=True))
            meta = {}
            for key, value, crc in await self._connection.execute_fetchall("select key, value, crc from meta"):
                if seals.seal_of(key, value) != crc:  # on a wrong device id a log would fork
                    raise CorruptError(
                        f"{self.path.name} is damaged: one of its own settings fails its check sum",
                        hint=file.RESTORE_HINT,
                    )
                meta[key] = value
            self.device, self.store_id = str(meta["device"]), str(meta["store_id"])
            ends = {
                str(device): (int(seq), bytes(op_id), Hlc(hlc))
                for device, seq, op_id, hlc in await self._connection.execute_fetchall(ENDS)
            }
        self.last_seq = ends[self.device][0] if self.device in ends else 0
        self.last_hlc = self._clock_of(ends)
        self._writer = GroupCommit(self._connection.call, self._owner(), limit=MAX_GROUP, name="store-writer")
        if meta.get("projected") != file.PROJECTED:
            log.info("making the tables of %s again for this version", self.path.name)
            await self.write(Transaction.project_all)
        await self.write(Transaction.retry_parked)

    def _clock_of(self, ends: dict[str, tuple[int, bytes, Hlc]]) -> Hlc:
        """Return where the clock of this device stood: at its last op, or at what it then heard of others.

        The time of its own op is in the op's id: the stamp may stand above that of a device whose clock is ahead.
        """
        own = ends.get(self.device)
        last = clock.latest(uuid7_millis(own[1])) if own is not None else Hlc(0)
        for _, _, hlc in ends.values():
            last = clock.receive(last, hlc, self._now())
        return last

    async def _attach(self, *, read_only: bool) -> Connection:
        connection = sqlite.connect(self.path, read_only=read_only)
        await connection
        self._open.append(connection)
        return connection

    def _owner(self) -> Owner:
        return Owner(
            translate=lambda error: sqlite.translate(error, self.path) if isinstance(error, ERRORS) else error,
            closed=lambda: UnavailableError("the store is closed", hint="open it again"),
            stopped=lambda error: sqlite.stopped(error, self.path),
            save=self._save,
            restore=self._restore,
            committed=self._tell,
        )

    def _tell(self, group: list[tuple[Any, Changes]]) -> None:
        """Hand what a group of writes changed to whoever follows, as one: an index takes many at the price of one."""
        self.commits += 1
        if group:
            (_, first), *rest = group
            for _, later in rest:
                first.follow(later)
            self.on_change(first)

    def _save(self) -> tuple[Hlc, int, str]:
        return self.last_hlc, self.last_seq, self.device

    def _restore(self, held: tuple[Hlc, int, str]) -> None:
        self.last_hlc, self.last_seq, self.device = held

    async def close(self) -> None:
        """Finish the writes under way, put the log into the file, and give the lock back. Closing twice is fine.

        The lock is given back even when the disk fails meanwhile.
        """
        if self._closed:
            return
        self._closed = True
        try:
            await self._writer.close()
        finally:
            await self._disconnect()
            self._lock.release()

    @property
    def failure(self) -> ScrubjayError | None:
        """Why nothing can be written any more until the store is opened again; None while all is well."""
        return self._writer.failure

    async def _disconnect(self) -> None:
        """Close every connection. One that fails to close is logged: what was acknowledged is durable already."""
        for connection in reversed(self._open):
            try:
                await connection.close()
            except Exception:
                log.exception("a connection to the store could not be closed")
        self._open.clear()

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction; when this returns, what it wrote is durable. If it raises, nothing was written.

        Raises UnavailableError when the file was deleted or moved meanwhile: nobody would see what was written there.

        `work` runs in the writer's thread: it may use the transaction and its own arguments, and must not wait.
        """

        def run(connection: Any) -> tuple[T, Changes]:
            changes = Changes()
            return work(Transaction(self, connection, changes, self._now(), self._entropy)), changes

        result, _ = await self._writer.submit(run)
        self._lock.confirm()
        return result

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Connection]:
        if self._closed:
            raise UnavailableError("the store is closed", hint="open it again")
        connection = await self._readers.get()
        try:
            with sqlite.translated(self.path):
                yield connection
        finally:
            self._readers.put_nowait(connection)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Read the store as it is at this moment, for as long as it takes. Readers and writers go on."""
        if self._closed:
            raise UnavailableError("the store is closed", hint="open it again")
        with sqlite.translated(self.path):
            connection = await self._attach(read_only=True)
            self._snapshots += 1
            try:
                await connection.execute("begin")
                await connection.execute_fetchall("select 1 from meta")  # SQLite takes the snapshot at the first read
                yield Snapshot(connection)
            finally:
                self._snapshots -= 1
                if connection in self._open:
                    self._open.remove(connection)
                    await connection.close()
                if self._cut_back and not self._snapshots and not self._closed:
                    self._cut_back = False
                    await self.checkpoint(truncate=True)

    async def fetch(self, sql: str, params: sqlite.Params = ()) -> list[sqlite.Row]:
        """Return the rows of a query, as of the last commit."""
        async with self._reading() as connection:
            return [tuple(row) for row in await connection.execute_fetchall(sql, params)]

    # --- memories -----------------------------------------------------------------------------------------------------

    async def resolve(self, ref: str) -> str:
        """Return the id of the memory that `ref` names: an id, a name, an alias, or the beginning of an id.

        Raises NotFoundError, or ConflictError when a beginning fits several.
        """
        found = await self.fetch("select id from memory where id = ?", (ref,))
        found = found or await self.fetch("select memory_id from name where name = ?", (ref,))
        if not found and len(ref) >= MIN_PREFIX and ref.isalnum():
            low = ref.upper()
            found = await self.fetch("select id from memory where id >= ? and id < ? limit 2", (low, low + "["))
            if len(found) > 1:
                raise ConflictError(
                    f"the ids of several memories begin with {ref}", hint="give more characters of the id"
                )
        if not found:
            raise NotFoundError(
                f"there is no memory {ref[:60]!r}", hint="scrubjay list shows all memories with their ids"
            )
        return str(found[0][0])

    async def named(self, name: str) -> list[str]:
        """Return the id of the memory that a name or alias resolves to, or nothing."""
        return [str(row[0]) for row in await self.fetch("select memory_id from name where name = ?", (name,))]

    async def taken(self, names: Sequence[str]) -> set[str]:
        """Return which of some names resolve to a memory."""
        return {
            str(row[0])
            for row in await self.fetch(
                "select name from name where name in (select value from json_each(?))", (rows.array(names),)
            )
        }

    async def from_sources(self, source_keys: Sequence[str]) -> list[Memory]:
        """Return the memories that came from some places of imported files."""
        keys = rows.array(source_keys)
        select = f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
        found = await self.fetch(
            f"{select} where json_extract(m.metadata, '$.source_key') in (select value from json_each(?))", (keys,)
        )
        # A place that is the first of no memory may be one of several of one: few are, and no index holds these.
        if len(found) < len(source_keys):
            found += await self.fetch(
                f"{select}, json_each(m.metadata, '$.also_from') also where m.metadata like '%\"also_from\"%'"
                " and json_extract(also.value, '$.source_key') in (select value from json_each(?))",
                (keys,),
            )
        return list({row[0]: rows.memory_of(row) for row in found}.values())

    async def memories(self, ids: Sequence[str], *, chars: int | None = None) -> dict[str, Memory]:
        """Return the memories of some ids, by id; unknown ids are absent. `chars` reads no more of a content."""
        if not ids:
            return {}
        columns = rows.beginning(rows.prefixed(rows.MEMORY_COLUMNS, "m"), "m.content", chars)
        found = await self.fetch(
            f"select {columns}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.id in (select value from json_each(?))",
            (rows.array(ids),),
        )
        return {row[0]: rows.memory_of(row) for row in found}

    async def memory(self, memory_id: str) -> Memory:
        """Return one memory by its id. Raises NotFoundError."""
        found = await self.memories([memory_id])
        if memory_id not in found:
            raise NotFoundError(
                f"there is no memory {memory_id}", hint="scrubjay list shows all memories with their ids"
            )
        return found[memory_id]

    async def aliases(self, ids: Sequence[str]) -> dict[str, tuple[Alias, ...]]:
        """Return the names, other than the canonical one, that resolve to each of some memories."""
        found: dict[str, list[Alias]] = {}
        for name, memory_id, created_at in await self.fetch(
            "select name, memory_id, created_at from name"
            " where not canonical and memory_id in (select value from json_each(?)) order by created_at, name",
            (rows.array(ids),),
        ):
            found.setdefault(memory_id, []).append(Alias(name=name, memory_id=memory_id, created_at=Millis(created_at)))
        return {memory_id: tuple(names) for memory_id, names in found.items()}

    async def page_of_memories(
        self, where: str, params: sqlite.Params, *, after: tuple[int, int] | None, limit: int, chars: int
    ) -> tuple[list[Memory], tuple[int, int] | None]:
        """Return a page, newest first, and where the next one starts. `where` is a clause over the columns of `m`.

        It ends after `limit` memories, or before their contents have more than `chars` characters; it has at least one.
        """
        clause, values = where or "1", list(params)
        if after:
            clause += " and (m.created_at, m.n) < (?, ?)"
            values += after
        places = await self.fetch(
            f"select m.created_at, m.n, length(m.content) from memory m where {clause}"
            " order by m.created_at desc, m.n desc limit ?",
            (*values, limit + 1),
        )
        shown = _within(places, limit, chars)
        found = await self.fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.n in (select value from json_each(?))"
            " order by m.created_at desc, m.n desc",
            (rows.array(n for _, n, _ in shown),),
        )
        return [rows.memory_of(row) for row in found], shown[-1][:2] if len(places) > len(shown) else None

    async def layer(self, layer: str) -> list[Memory]:
        """Return the memories of a layer that is always loaded, in the order they were made."""
        found = await self.fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.layer = ? and m.layer <> 'archive'"
            " order by m.created_at, m.n",
            (layer,),
        )
        return [rows.memory_of(row) for row in found]

    async def memories_said(self, content_hashes: Iterable[str]) -> list[Memory]:
        """Return the memories whose content is one of these, by content hash."""
        found = await self.fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
            " where m.content_hash in (select value from json_each(?)) order by m.n",
            (rows.array(content_hashes),),
        )
        return [rows.memory_of(row) for row in found]

    async def memories_like(self, fts_query: str, limit: int, *, chars: int) -> list[Memory]:
        """Return the memories that share most words with a query in FTS5 syntax (`text.fts_query`), best first.

        A memory of more than `chars` characters is left out.
        """
        found = await self.fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null"
            " from memory_fts f join memory m on m.n = f.rowid"
            " where memory_fts match ? and length(m.content) <= ? order by bm25(memory_fts), m.n limit ?",
            (fts_query, chars, limit),
        )
        return [rows.memory_of(row) for row in found]

    async def grips(self, ids: Sequence[str]) -> dict[str, tuple[Grip, ...]]:
        """Return the grips of some memories, in the order of their making."""
        if not ids:
            return {}
        found: dict[str, list[Grip]] = {}
        for row in await self.fetch(
            f"select {rows.GRIP_COLUMNS} from grip where memory_id in (select value from json_each(?))"
            " order by created_at, id",
            (rows.array(ids),),
        ):
            found.setdefault(row[1], []).append(rows.grip_of(row))
        return {memory_id: tuple(grips) for memory_id, grips in found.items()}

    async def history(self, entity: str) -> list[tuple[Op | None, int, str, int]]:
        """Return what the log says of an entity, oldest first: (op, or None when it was erased; type; device; seq)."""
        return [
            (ops.decode(body, device=device, seq=seq) if body is not None else None, op_type, device, seq)
            for device, seq, op_type, body in await self.fetch(
                "select device, seq, type, body from op where entity = ? order by hlc, device, seq", (entity,)
            )
        ]

    # --- events -------------------------------------------------------------------------------------------------------

    async def deduped(self, keys: Sequence[str]) -> set[tuple[str, str | None]]:
        """Return the (dedupe key, project) of the events that have one of these keys."""
        return {
            (str(key), None if project is None else str(project))
            for key, project in await self.fetch(
                "select dedupe_key, project from event where dedupe_key in (select value from json_each(?))",
                (rows.array(keys),),
            )
        }

    async def events(self, ids: Sequence[str], *, chars: int | None = None) -> dict[str, Event]:
        """Return the events of some ids, by id; unknown ids are absent.

        `chars` reads no more of a text than so many characters from its beginning, or below zero from its end.
        """
        if not ids:
            return {}
        columns = rows.beginning(rows.EVENT_COLUMNS, "text", chars)
        found = await self.fetch(
            f"select {columns} from event where id in (select value from json_each(?)) and not forgotten",
            (rows.array(ids),),
        )
        return {row[0]: rows.event_of(row) for row in found}

    async def run_of_events(self, start: str, end: str, *, chars: int) -> list[Event]:
        """Return the events of one session from one to another, inclusive, in order, no more than `chars` of a text."""
        columns = rows.beginning(rows.prefixed(rows.EVENT_COLUMNS, "e"), "e.text", chars)
        found = await self.fetch(
            f"select {columns} from event e where e.id in ({rows.COVERED}) order by e.ts, e.seq, e.id",
            (start, end),
        )
        return [rows.event_of(row) for row in found]

    async def page_of_events(
        self, where: str, params: sqlite.Params, *, after: tuple[int, int] | None, limit: int, chars: int
    ) -> tuple[list[Event], tuple[int, int] | None]:
        """Return a page in time order and where the next one starts. `where` is a clause over columns of `event`.

        It ends after `limit` events, or before their texts have more than `chars` characters; it has at least one.
        """
        clause, values = where or "1", list(params)
        if after:
            clause += (
                " and (ts, seq, id) > (?, (select seq from event where n = ?), (select id from event where n = ?))"
            )
            values += (*after, after[1])
        places = await self.fetch(
            f"select ts, n, length(text) from event where {clause} and not forgotten order by ts, seq, id limit ?",
            (*values, limit + 1),
        )
        shown = _within(places, limit, chars)
        found = await self.fetch(
            f"select {rows.EVENT_COLUMNS} from event where n in (select value from json_each(?)) and not forgotten"
            " order by ts, seq, id",
            (rows.array(n for _, n, _ in shown),),
        )
        return [rows.event_of(row) for row in found], shown[-1][:2] if len(places) > len(shown) else None

    async def sessions(self) -> list[Session]:
        """Return all sessions, newest first."""
        return [
            rows.session_of(row)
            for row in await self.fetch(f"select {rows.SESSION_COLUMNS} from session order by start desc, id")
        ]

    async def projects(self) -> set[str]:
        """Return the projects that events or memories belong to."""
        found = await self.fetch(
            "select project from session where project is not null"
            " union select resource_id from memory where scope = 'project' and resource_id is not null"
        )
        return {str(row[0]) for row in found}

    # --- what is waiting ----------------------------------------------------------------------------------------------

    async def to_learn(self) -> list[tuple[str, int]]:
        """Return the sessions with events that were not distilled yet, and how many, oldest first."""
        return [
            (str(row[0]), int(row[1]))
            for row in await self.fetch(
                "select s.id, (select count(*) from event e where e.session_id = s.id and e.n > coalesce(l.n, 0)"
                " and e.n not in (select n from unlearned) and not e.forgotten)"
                " from session s left join learned l on l.session_id = s.id where s.last_n > coalesce(l.n, 0)"
                " order by s.last_n"
            )
        ]

    async def session_events(
        self, session_id: str, *, context: int, limit: int, chars: int
    ) -> tuple[list[Event], set[str], int]:
        """Return up to `limit` undistilled events of a session, in order, with `context` events before them.

        They have at most `chars` characters together, unless one alone has more.
        Also the ids of those to distil (not the context, nor what others said in between), and the arrival number up to
        which this covers the session.
        """
        columns = f"{rows.EVENT_COLUMNS}, n, seq"
        waiting = await self.fetch(
            "select ts, n, length(text) from event where session_id = ?1 and not forgotten"
            " and n not in (select n from unlearned)"
            " and n > coalesce((select n from learned where session_id = ?1), 0) order by n limit ?2",
            (session_id, limit),
        )
        fresh = await self.fetch(
            f"select {columns} from event where n in (select value from json_each(?)) and not forgotten",
            (rows.array(n for _, n, _ in _within(waiting, limit, chars)),),
        )
        if not fresh:
            return [], set(), 0
        first, last = min(map(_place, fresh)), max(map(_place, fresh))
        before = await self.fetch(
            f"select {columns} from event where session_id = ? and (ts, seq, id) < (?, ?, ?) and not forgotten"
            " order by ts desc, seq desc, id desc limit ?",
            (session_id, *first, context),
        )
        between = await self.fetch(
            f"select {columns} from event where session_id = ? and (ts, seq, id) > (?, ?, ?)"
            " and (ts, seq, id) < (?, ?, ?)"
            " and not forgotten and n in (select n from unlearned) order by ts, seq, id limit ?",
            (session_id, *first, *last, limit),
        )
        ordered = sorted({row[13]: row for row in (*before, *between, *fresh)}.values(), key=_place)
        return [rows.event_of(row) for row in ordered], {row[0] for row in fresh}, max(row[13] for row in fresh)

    async def embed_space(self) -> tuple[int, str] | None:
        """Return the number and the name of the space that the queue is about, None while no model is in use."""
        found = await self.fetch("select s.id, s.name from embed_queue q join space s on s.id = q.space")
        return (int(found[0][0]), str(found[0][1])) if found else None

    async def may_embed(self) -> bool:
        """Say whether something may wait to be embedded: one look, however large the store is."""
        return bool((await self.fetch(embed_queue.LOOK))[0][0])

    async def embeddable(self) -> tuple[int, int]:
        """Return how many texts wait to be embedded, and how many the model refused.

        What was there when the space was entered, and was not looked at yet, counts as waiting.
        """
        waiting, refused = (await self.fetch(embed_queue.COUNT))[0]
        return int(waiting), int(refused)

    async def is_filling(self) -> bool:
        """Say whether texts from before the space was entered have not been looked at yet."""
        return bool(await self.fetch("select 1 from embed_queue where memories > 0 or events > 0"))

    async def texts(self) -> int:
        """Return how many texts may be waiting in a space that was never entered: no fewer than there are."""
        found = await self.fetch(
            "select coalesce((select max(n) from memory), 0) + coalesce((select max(n) from event), 0)"
        )
        return int(found[0][0])

    async def to_embed(self, limit: int, below: Place = embed_queue.FIRST) -> list[Waiting]:
        """Return the first that wait to be embedded, below a place in the queue: memories first, newest first."""
        found: list[Waiting] = []
        if below.memory:
            found += [
                Waiting(Place(1, n), owner, said, text)
                for n, owner, said, text in await self.fetch(
                    embed_queue.MEMORIES, (rows.MAX_EMBEDDED_CHARS, below.n, limit)
                )
            ]
        if len(found) < limit:
            for n, *row, erased in await self.fetch(
                embed_queue.EVENTS, (embed_queue.UNPLACED if below.memory else below.n, limit - len(found))
            ):
                event = rows.event_of(tuple(row))
                found.append(Waiting(Place(0, n), event.id, str(erased), rows.event_words(event)))
        return found

    async def counts(self) -> dict[str, int]:
        """Return how many of each there are."""
        names = {
            "memories": f"select count(*) from memory where {rows.LISTED}",
            "identity_keys": "select count(*) from memory where layer = 'identity'",
            "active_keys": "select count(*) from memory where layer = 'active'",
            "events": "select count(*) from event where not forgotten",
            "sessions": "select count(*) from session",
            "aliases": "select count(*) from name where not canonical",
            "grips": "select count(*) from grip where memory_id in (select id from memory)",
            "ops": "select count(*) from op",
        }
        row = (await self.fetch("select " + ", ".join(f"({sql})" for sql in names.values())))[0]
        return dict(zip(names, row, strict=True))

    async def grouped(self, column: str) -> dict[str, int]:
        """Return how many memories there are of each type or kind."""
        if column not in {"type", "kind"}:
            raise InvalidError(f"memories cannot be counted by {column!r}", hint="count them by type or kind")
        return {
            str(key): int(count)
            for key, count in await self.fetch(
                f"select {column}, count(*) from memory where {rows.LISTED} group by 1 order by 1"
            )
        }

    async def bounds(self) -> tuple[Millis | None, Millis | None]:
        """Return the times of the oldest and the newest event."""
        low, high = (await self.fetch("select min(start), max(last) from session"))[0]
        return (None if low is None else Millis(low)), (None if high is None else Millis(high))

    async def meta(self, key: str) -> str | None:
        """Return a setting of the file itself."""
        found = await self.fetch("select value from meta where key = ?", (key,))
        return str(found[0][0]) if found else None

    async def space_number(self, name: str) -> int | None:
        """Return the number of an embedding space, None when nothing was ever embedded in it."""
        found = await self.fetch("select id from space where name = ?", (name,))
        return int(found[0][0]) if found else None

    # --- jobs ---------------------------------------------------------------------------------------------------------

    async def take_lease(self, job: str, holder: str, lease_ms: int) -> bool:
        """Take the lease of a job. Returns False while somebody else holds it and it has not run out."""
        return await self.write(lambda tx: tx.take_lease(job, holder, lease_ms))

    async def end_lease(self, job: str, took_ms: int, error: str | None) -> None:
        """Give a lease back and note how the job went; `error` is a code, never a text."""
        await self.write(lambda tx: tx.end_lease(job, took_ms, error))

    async def jobs(self) -> dict[str, Ran]:
        """Return how each job that ever ran has gone."""
        return {
            str(row[0]): Ran(runs=row[1], failures=row[2], last_start=row[3], last_ms=row[4], last_error=row[5])
            for row in await self.fetch("select name, runs, failures, last_start, last_ms, last_error from job")
        }

    # --- vectors ------------------------------------------------------------------------------------------------------

    async def vectors(self, space: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Yield all (owner, vector) of a space, a thousand at a time."""
        last = ""
        while found := await self.fetch(
            "select owner, vector from embedding where space = ? and owner > ? order by owner limit ?",
            (space, last, LOADED),
        ):
            yield [(str(owner), bytes(vector)) for owner, vector in found]
            last = str(found[-1][0])

    async def vectors_of(self, space: int, owners: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return (owner, vector) of those owners that have one in a space."""
        return [
            (str(owner), bytes(vector))
            for owner, vector in await self.fetch(
                "select owner, vector from embedding where space = ? and owner in (select value from json_each(?))",
                (space, rows.array(owners)),
            )
        ]

    async def embedded(self, space: int) -> int:
        """Return how many owners have a vector in a space."""
        return int((await self.fetch("select count(*) from embedding where space = ?", (space,)))[0][0])

    # --- whole scans --------------------------------------------------------------------------------------------------

    async def event_docs(self, after: int = 0) -> AsyncIterator[list[EventDoc]]:
        """Yield every searchable event as the index holds it, or those that arrived after a number."""
        last = after
        while found := await self.fetch(
            # event_fts_content is where FTS5 keeps the tokens; reading it through event_fts costs a quarter more.
            "select e.id, e.session_id, e.agent, e.ts, (e.ts << 20) + (e.seq & 0xFFFFF), e.role, e.type, f.c0,"
            " e.project, iif(e.metadata = '{}', null, e.metadata), e.n"
            " from event_fts_content f join event e on e.n = f.id where f.id > ? order by f.id limit ?",
            (last, LOADED),
        ):
            yield [rows.event_doc_of(row) for row in found]
            last = int(found[-1][-1])

    async def memory_docs(self) -> AsyncIterator[list[MemoryDoc]]:
        """Yield every memory as the index holds it."""
        last = 0
        while found := await self.fetch(
            f"select {rows.DOC_COLUMNS}, m.n from memory_fts_content f"
            " join memory m on m.n = f.id where f.id > ? order by f.id limit ?",
            (last, LOADED),
        ):
            yield await self._memory_docs(found)
            last = int(found[-1][-1])

    async def memory_docs_of(self, ids: Sequence[str]) -> list[MemoryDoc]:
        """Return some memories as the index holds them; unknown ids are absent."""
        return await self._memory_docs(
            await self.fetch(
                f"select {rows.DOC_COLUMNS} from memory m join memory_fts_content f on f.id = m.n"
                " where m.id in (select value from json_each(?))",
                (rows.array(ids),),
            )
        )

    async def _memory_docs(self, found: Sequence[sqlite.Row]) -> list[MemoryDoc]:
        sources = await self.sources([row[0] for row in found])
        return [rows.memory_doc_of(row, sources.get(row[0], ())) for row in found]

    async def position(self) -> Position:
        """Return where the log ends. Whoever follows `on_change` has been told of everything before it."""
        return await self.write(Transaction.position)

    async def since(self, position: Position) -> list[str] | None:
        """Return the ids of memories that ops after a position are about, or that show otherwise because of them.

        None when the log up to there is not the one that the position was taken of (a backup was restored, a gap was
        filled), or when something was erased since.
        """
        heard = {str(device): int(count) for device, count in await self.fetch("select device, ops from heard")}
        if position.rewritten != int(await self.meta("rewritten") or 0):
            return None
        for device, (seq, op_id) in position.ends.items():
            if await self.fetch("select op_id from op where device = ? and seq = ?", (device, seq)) != [(op_id,)]:
                return None
        found: dict[str, None] = {}
        names: set[str] = set()
        for device, *_ in await self.fetch(ENDS):
            after = position.ends.get(device, (0, b""))[0]
            new = heard.get(device, 0) - position.heard.get(device, 0)
            later = await self.fetch("select count(*) from op where device = ? and seq > ?", (device, after))
            if new != (0 if device == self.device else later[0][0]):
                return None
            for entity, op_type in await self.fetch(
                "select distinct entity, type from op where device = ? and seq > ? and type <> ?",
                (device, after, OpType.EVENT),
            ):
                if op_type in _ERASES:
                    return None
                found[str(entity)] = None
            for seq, body in await self.fetch(
                "select seq, body from op where device = ? and seq > ? and type in (?, ?) and body is not null",
                (device, after, OpType.CLAIM, OpType.UNCLAIM),
            ):
                names.add(ops.name_of(ops.decode(body, device=device, seq=seq)))
        groups = names | {parent for name in names if (parent := rows.parent_of(name)) is not None}
        for (memory_id,) in await self.fetch(
            "select memory_id from claim where name in (select value from json_each(?)) union"
            " select memory_id from grip where event_id_start <> event_id_end",
            (rows.array(groups),),
        ):
            found[str(memory_id)] = None
        return list(found)

    async def conflicts(self, memory_id: str | None = None) -> list[Disputed]:
        """Return the fields whose open conflicts somebody must decide, of all memories or one, by memory and field."""
        keys = await self.fetch(
            "select distinct memory_id, field from conflict join memory on memory.id = memory_id"
            " where ?1 is null or memory_id = ?1"
            " order by memory_id, field",
            (memory_id,),
        )
        found: list[Disputed] = []
        for owner in dict.fromkeys(str(row[0]) for row in keys):
            state = ops.fold(op for op, *_ in await self.history(owner) if op is not None)
            for _, key in (row for row in keys if row[0] == owner):
                versions = state.registers[owner, key]
                lost = tuple((stamp, versions[stamp][0]) for stamp in ops.to_settle(versions))
                shown = versions[ops.winner(versions)][0]
                found.append(Disputed(memory_id=owner, field=int(key), shown=shown, versions=lost))
        return found

    async def parked(self) -> list[Parked]:
        """Return the ops of other devices that this version could not apply."""
        return [
            Parked(device=str(device), seq=int(seq), why=str(why))
            for device, seq, why in await self.fetch("select device, seq, why from parked order by device, seq")
        ]

    async def state_digest(self) -> str:
        """Return a digest (hex) of what every device shows that holds the same ops."""
        return await self.write(Transaction.state_digest)

    async def sources(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the events that the grips of some memories cover."""
        found: dict[str, dict[str, None]] = {}
        for memory_id, start, end in await self.fetch(
            "select memory_id, event_id_start, event_id_end from grip"
            " where memory_id in (select value from json_each(?))",
            (rows.array(ids),),
        ):
            covered = found.setdefault(memory_id, {})
            if start == end:
                covered[start] = None
            else:
                covered.update((row[0], None) for row in await self.fetch(rows.COVERED, (start, end)))
        return {memory_id: tuple(covered) for memory_id, covered in found.items()}

    # --- the file -----------------------------------------------------------------------------------------------------

    async def backup(self, target: Path, *, force: bool = False) -> tuple[int, str]:
        """Write a checked copy of the store to `target`. Returns its size and SHA-256. Readers and writers go on.

        Raises ConflictError when something is there, unless `force`.
        """

        def copy() -> tuple[int, str]:
            with (
                file.writing(target),
                destination.written(target, force=force) as part,
                file._opened(self.path, read_only=True) as connection,  # noqa: SLF001 - of this package
            ):
                file.copy_to(connection, self.path, part)
            return file.digest(target)

        return await asyncio.to_thread(copy)

    async def drop_copies(self) -> bool:
        """Leave nothing of what was erased beside the tables: in the saved index, copies that migrations made, the log.

        Returns whether the log could be cut back: a long read may hold it, and then `checkpoint` does it later.
        """
        for path in file.snapshots(self.path):
            await asyncio.to_thread(path.unlink, missing_ok=True)
        await asyncio.to_thread(drop_index, self.path)
        for wait_ms in (0, 10, 50, 100, 200, 400, 800):
            await asyncio.sleep(wait_ms / 1000)
            if await self.checkpoint(truncate=True):
                return True
            if self._snapshots:
                break
        return False

    async def checkpoint(self, *, truncate: bool = False) -> bool:
        """Put the log into the file; with `truncate`, leave nothing in the log. Only the writer ever does this.

        Returns whether all of it was done: a reader in the middle of a scan keeps what it still needs.
        """
        if truncate and self._snapshots:  # to wait for a long read would keep every writer waiting
            self._cut_back, truncate = True, False
        rows_ = await self._writer.outside(f"pragma wal_checkpoint({'truncate' if truncate else 'passive'})")
        busy, log, done = rows_[0]
        return not busy and log == done and not self._cut_back

    async def shrink(self, stop: Callable[[], bool]) -> int:
        """Give pages that hold nothing back to the disk, some at a time, so that a write waits for one step at most.

        Returns how many. The file gets smaller with the next checkpoint. A store of a file made without `auto_vacuum`
        keeps them.
        """
        given = 0
        while not stop():
            free = int((await self._writer.outside("pragma freelist_count"))[0][0])
            step = min(free - file.SPARE_PAGES, file.SHRINK_PAGES)
            if step <= 0:
                break
            await self._writer.outside(f"pragma incremental_vacuum({step})")
            left = int((await self._writer.outside("pragma freelist_count"))[0][0])
            if left >= free:
                break
            given += free - left
        return given

    def clock(self) -> Millis:
        """Return the time that the store goes by, in UTC milliseconds."""
        return max(self._now(), millis_of(self.last_hlc))


def _within(places: Sequence[sqlite.Row], limit: int, chars: int) -> list[tuple[int, int, int]]:
    """Return the first rows (…, …, length) of a page: at most `limit`, at most `chars` together, one at least."""
    shown: list[tuple[int, int, int]] = []
    for at, n, length in places[:limit]:
        chars -= length
        if chars < 0 and shown:
            break
        shown.append((at, n, length))
    return shown


def _place(row: sqlite.Row) -> tuple[int, int, str]:
    """Return where an event stands in its session, of a row of EVENT_COLUMNS, n, seq."""
    return row[5], row[14], row[0]
