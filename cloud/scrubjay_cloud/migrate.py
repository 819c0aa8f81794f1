"""Moving a whole service between SQLite and PostgreSQL: copied by account in order, then every lane followed again.

Clients notice nothing: ids, positions, cursors, tokens and the generation are the same afterwards. The accounts
themselves are copied last, in one transaction with the store's identity, so that a target whose copy broke off has no
account, and the next try begins by clearing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from scrubjay_cloud import materialise
from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.bodies.transfer import whole
from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_cloud.verify import Verified, verify
from scrubjay_shared.errors import ConflictError, CorruptError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows that are copied page by page, in the order of columns that tell them apart and that an index holds."""

    table: str
    key: tuple[str, ...]
    where: str = "true"


BY_ACCOUNT: tuple[Part, ...] = (
    Part(table="account_log", key=("seq",)),
    Part(table="account_state", key=("seq",)),
    Part(table="device", key=("id",)),
    Part(table="wrap", key=("target", "kind", "version")),
    Part(table="lane", key=("scope", "device")),
    Part(table="object", key=("gseq",), where="superseded_at is null"),
    Part(table="object", key=("scope", "device", "n_from", "hash"), where="superseded_at is not null"),
    Part(table="blob", key=("hash",)),
    Part(table="token", key=("hash",)),
    Part(table="enroll", key=("id",)),
    Part(table="former_name", key=("name",)),
    Part(table="refusal", key=("target", "author")),
)
"""What belongs to an account."""
WHOLE: tuple[Part, ...] = (
    Part(table="invite", key=("hash",)),
    Part(table="audit", key=("id",)),
    Part(table="team", key=("id",)),
    Part(table="team_log", key=("team", "seq")),
    Part(table="team_member", key=("team", "account")),
    Part(table="team_wrap", key=("team", "account", "epoch")),
    Part(table="team_card", key=("account",)),
    Part(table="team_lane", key=("team", "device")),
    Part(table="team_object", key=("team", "device", "n")),
)
"""What is copied as it is."""
LAST = ("account", "meta")
"""What makes the copy one: written in one transaction, at the end."""
LEFT_OUT = frozenset({"migration", "bucket", "challenge", "known_network", "lease", "loose_body", *materialise.TABLES})
"""What belongs to the database itself and its store, or refills by itself: searchable scopes from lanes and devices."""
TABLES = tuple(dict.fromkeys(part.table for part in (*BY_ACCOUNT, *WHOLE))) + LAST
_PAGE_ROWS = 64
"""Read at once: 32 MiB of the largest objects."""
_BATCH_BYTES = 8 * 1024 * 1024
"""Written in one transaction: 16 of the largest objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What was copied, by table, and what following every lane of the copy found."""

    rows: dict[str, int]
    verified: Verified


async def migrate(source: Database, target: Database, bodies: BodyStore | None = None) -> Migrated:
    """Copy everything from one database to another, which must have no accounts.

    `bodies` is the source's store: what stands there is copied into the target's rows, so that it lacks nothing.

    Raises ConflictError when the target is in use, or when the source was written meanwhile; CorruptError when the
    source does not hold together, or the copy is not the same.
    """
    taken = await target.read(lambda tx: _count(tx, "account"))
    if taken:
        raise ConflictError(
            f"the target must be empty, and has {taken} accounts", hint="migrate into an empty database"
        )
    before = await source.read(partial(verify, bodies=bodies))
    if not before.holds:
        finding = before.findings[0]
        raise CorruptError(
            f"account {finding.account}: {finding.words}", hint="scrubjay-cloud admin restore mends it; then migrate"
        )
    await target.write(_cleared)
    heads = await source.read(_heads)
    copied = dict.fromkeys(TABLES, 0)
    for part in WHOLE:
        copied[part.table] += await _copied(source, target, part)
    for account in sorted(heads):
        for part in BY_ACCOUNT:
            copied[part.table] += await _copied(source, target, part, account, bodies)
    last = await source.read(lambda tx: {table: _rows_of(tx, table) for table in LAST})
    if await source.read(_heads) != heads:
        raise ConflictError(
            "the source was written while it was copied", hint="stop every instance of the service, and migrate again"
        )
    await target.write(lambda tx: _finished(tx, last))
    copied |= {table: len(rows) for table, (_, rows) in last.items()}
    after = await target.read(verify)
    same = await target.read(_heads) == heads and await target.read(_counts) == await source.read(_counts)
    if after != before or not same:
        raise CorruptError("the copy is not the same as the source", hint="keep using the source, and report this")
    return Migrated(rows=copied, verified=after)


def _heads(tx: Transaction) -> dict[bytes, tuple[Row, tuple[Row, ...]]]:
    """Return what every client compares: of each account its log's end and its `gseq`, and the end of each lane."""
    return {
        row[0]: (
            row,
            tuple(
                tx.rows("select scope, device, n, tip from lane where account = ? order by scope, device", (row[0],))
            ),
        )
        for row in tx.rows("select id, log_seq, log_head, gseq, bytes, objects from account order by id")
    }


def _counts(tx: Transaction) -> dict[str, int]:
    return {table: _count(tx, table) for table in TABLES}


def _count(tx: Transaction, table: str) -> int:
    row = tx.row(f"select count(*) from {table}")
    return int(row[0]) if row else 0


def _columns(tx: Transaction, table: str) -> list[str]:
    """Return a table's columns in order, without those that the database fills by itself."""
    if tx.dialect == "sqlite":
        names = [row[1] for row in tx.rows(f"pragma table_info({table})")]
    else:
        names = [
            row[0]
            for row in tx.rows(
                "select column_name::text from information_schema.columns"
                " where table_schema = current_schema() and table_name = ? order by ordinal_position",
                (table,),
            )
        ]
    return [name for name in names if (table, name) != ("audit", "id")]


def _rows_of(tx: Transaction, table: str) -> tuple[list[str], list[Row]]:
    columns = _columns(tx, table)
    return columns, tx.rows(f"select {', '.join(columns)} from {table}")


def _finished(tx: Transaction, last: dict[str, tuple[list[str], list[Row]]]) -> None:
    tx.execute("delete from meta")
    for table, (columns, rows) in last.items():
        _insert(tx, table, columns, rows)


def _cleared(tx: Transaction) -> None:
    for table in TABLES[: -len(LAST)]:
        tx.execute(f"delete from {table}")


async def _copied(
    source: Database, target: Database, part: Part, account: bytes | None = None, bodies: BodyStore | None = None
) -> int:
    """Copy the rows of a part, or those of one account, a batch a transaction; return how many."""
    columns = await source.read(lambda tx: _columns(tx, part.table))
    after: Row | None = None
    total = 0
    while True:
        rows = await source.read(lambda tx, after=after: _page(tx, part, columns, account, after))  # type: ignore[misc]
        for batch in _batches(await _whole_rows([row[: len(columns)] for row in rows], columns, bodies)):
            await target.write(lambda tx, batch=batch: _insert(tx, part.table, columns, batch))  # type: ignore[misc]
        total += len(rows)
        if len(rows) < _PAGE_ROWS:
            return total
        after = rows[-1][len(columns) :]


async def _whole_rows(rows: list[Row], columns: list[str], bodies: BodyStore | None) -> list[Row]:
    """Return rows with their bodies, none of them in a store any more. Raises as `whole`."""
    if "body_key" not in columns:
        return rows
    body, key = columns.index("body"), columns.index("body_key")
    objects = await whole(bodies, [(row[body], row[key]) for row in rows])
    filled = [list(row) for row in rows]
    for row, data in zip(filled, objects, strict=True):
        row[body], row[key] = data, None
    return [tuple(row) for row in filled]


def _page(tx: Transaction, part: Part, columns: list[str], account: bytes | None, after: Row | None) -> list[Row]:
    """Return the rows after a key, each followed by its own key."""
    key = ", ".join(part.key)
    where, params = [part.where], list[object]()
    if account is not None:
        where.append("account = ?")
        params.append(account)
    if after is not None:
        where.append(f"({key}) > ({', '.join('?' * len(after))})")
        params += after
    return tx.rows(
        f"select {', '.join(columns)}, {key} from {part.table} where {' and '.join(where)}"
        f" order by {key} limit {_PAGE_ROWS}",
        params,
    )


def _batches(rows: list[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _insert(tx: Transaction, table: str, columns: list[str], rows: list[Row]) -> None:
    marks = ", ".join("?" * len(columns))
    tx.many(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows)
