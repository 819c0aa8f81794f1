"""Finding what a disk changed behind our back: every flipped bit in what the file says, and what to do about it.

SQLite's own check covers the structure of the file: trees, indexes against tables, full text against its copy. Of what
stands in the rows, all that cannot be derived carries a check sum (`checksums`). The rest is derived once more, by the
code that derived it first: its tables are made anew beside the file, as temporary ones that hide those of the file, and
compared. Nothing of the store is written, and a daemon may go on meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from scrubjay.store import checksums, embed_queue, file, tables
from scrubjay.store.definition import foreign, is_derived
from scrubjay.store.index_file import index_is_whole
from scrubjay.store.projections.projections import Projections
from scrubjay.store.queries import Queries
from scrubjay.store.sqlite import translate
from scrubjay.store.write_context import LogHead, WriteContext
from scrubjay_io.sqlite import driver
from scrubjay_io.sqlite import reader as sqlite_reader
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import OpType

PAGE = 1_000
"""Rows looked at between two words to who watches."""

Watch = Callable[[str, int, int], None]
"""Is told what is being checked, how much of it is done, and how much there is (0: nobody knows)."""


class Remedy(StrEnum):
    """What brings back what was damaged. Each does what those before it do, so that only the last need be named."""

    NOTHING = ""
    REBUILD = "scrubjay rebuild"
    VECTORS = "scrubjay rebuild --vectors"
    SALVAGE = "scrubjay salvage"
    RESTORE = "scrubjay restore FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One thing that is not as it was written: what it is, what is wrong with it, and what brings it back."""

    what: str
    wrong: str
    remedy: Remedy


_REMEDIES = {
    "embedding": Remedy.VECTORS,
    **dict.fromkeys(("refused", "embed_queue", "toc_segment", "toc_period", "toc_stale"), Remedy.REBUILD),
}
"""What brings back the rows of sealed tables that can be had without a backup."""


def find(path: Path, watch: Watch, *, derive_anyway: bool = False) -> Iterator[Damage]:
    """Yield what is damaged in a store of the newest schema, beyond what `file.check` finds. Opens it for reading only.

    What is derived from damaged rows differs too, and is told only with `derive_anyway`.

    Raises nothing about damage: where it keeps a part from being read, that is what is yielded.
    """
    with contextlib.closing(reader(path)) as connection:
        connection.execute("begin")
        steps: list[tuple[Callable[[], Iterator[Damage]], Remedy]] = [
            (partial(_schema, connection), Remedy.REBUILD),
            *(
                (partial(_sealed, connection, table, watch), _REMEDIES.get(table, Remedy.SALVAGE))
                for table in tables.CHECKSUMMED
            ),
            (partial(_linked, connection), Remedy.REBUILD),  # what it reads was read by now: only an index is left
        ]
        sound = True
        for step, remedy in steps:
            for damage in _read(path, step, remedy):
                sound = sound and damage.remedy not in {Remedy.SALVAGE, Remedy.RESTORE}
                yield damage
        if sound or derive_anyway:
            yield from _read(path, partial(_queued, connection, watch), Remedy.REBUILD)
            yield from _read(path, partial(_derived, connection, watch), Remedy.REBUILD)
    if index_is_whole(path) is False:
        yield Damage(
            what="the saved copy of the search index",
            wrong="it fails its check sum; it is not used, and is made anew by itself",
            remedy=Remedy.NOTHING,
        )


def reader(path: Path) -> Any:
    """Return a connection that reads a store's file, whatever stands in it."""
    connection = sqlite_reader(path)
    # A text that is no longer UTF-8 must not end the check: it reads as another text, and fails its check sum.
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def remedy_of(path: Path, wrong: Sequence[str]) -> Remedy:
    """Return what brings back what `file.check` found wrong with a store."""
    if all(map(is_derived, wrong)):
        return Remedy.REBUILD
    try:
        with contextlib.closing(reader(path)) as connection:
            if foreign(connection):
                return Remedy.SALVAGE
            for table in set(tables.CHECKSUMMED) - set(_REMEDIES):
                found = [str(row[0]) for row in connection.execute(f"pragma integrity_check({table})")]
                if found != ["ok"] and not all(map(is_derived, found)):
                    return Remedy.SALVAGE
    except (driver.Error, UnicodeDecodeError):
        return Remedy.SALVAGE
    return Remedy.SALVAGE if file.dropped(path) else Remedy.REBUILD


def _read(path: Path, step: Callable[[], Iterator[Damage]], remedy: Remedy) -> Iterator[Damage]:
    """Yield what a step finds; where the file cannot even be read, that, with its remedy."""
    try:
        yield from step()
    except (driver.Error, UnicodeDecodeError) as error:
        yield Damage(what=path.name, wrong=translate(error, path).message, remedy=remedy)
    except CorruptError as error:
        yield Damage(what=path.name, wrong=error.message, remedy=remedy)


def _schema(connection: Any) -> Iterator[Damage]:
    """Look at the settings of the full text; `file.check` compares the definitions."""
    config = dict(connection.execute("select k, v from memory_fts_config"))
    if any(str(value) not in {"1", "4", "5"} for value in config.values()):
        yield Damage(what="full text", wrong="its settings were changed", remedy=Remedy.REBUILD)


def _empty() -> Any:
    """Return an empty store in memory."""
    connection = driver.connect(":memory:", isolation_level=None)
    for step in file.migrations():
        file.migrate(connection, step)
    return connection


def _sealed(connection: Any, table: str, watch: Watch) -> Iterator[Damage]:
    """Compare every row of a table with its check sum."""
    columns, key = checksums.columns_of(connection, table), checksums.key_of(connection, table)
    total = connection.execute(f"select count(*) from {table}").fetchone()[0]
    named = [columns.index(column) for column in key]
    cursor = connection.execute(f"select {', '.join(columns)}, crc from {table} order by {', '.join(key)}")
    done = 0
    while found := cursor.fetchmany(PAGE):
        for row in found:
            if checksums.checksum(*row[:-1]) != row[-1]:
                yield Damage(
                    what=_name_of(table, columns, row, named),
                    wrong="it fails its check sum",
                    remedy=_REMEDIES.get(table, Remedy.RESTORE),
                )
        done += len(found)
        watch(table, done, total)


def _name_of(table: str, columns: Sequence[str], row: Sequence[Any], key: Sequence[int]) -> str:
    """Return what to call a row: by an event's id, an op's device and number; of others by the table alone."""
    if table == "event":
        return f"event {_shown(row[columns.index('id')])}"
    if table == "op":
        return f"op {_shown(row[columns.index('seq')])} of device {_shown(row[columns.index('device')])[:8]}"
    if table == "embedding":
        return f"the vector of {_shown(row[columns.index('owner')])}"
    return f"a row of table {table}" if table != "meta" else f"setting {_shown(row[key[0]])}"


def _shown(value: Any) -> str:
    return "".join(character for character in str(value)[:40] if character.isalnum())


def _linked(connection: Any) -> Iterator[Damage]:
    """Look for events without the op that brought them, and ops without their event."""
    event = int(OpType.EVENT)
    for (event_id,) in connection.execute(
        "select id from event e where not exists (select 1 from op o where o.entity = e.id and o.type = ?)", (event,)
    ):
        yield Damage(what=f"event {_shown(event_id)}", wrong="its op is missing", remedy=Remedy.RESTORE)
    for device, seq in connection.execute(
        "select device, seq from op o where o.type = ? and not exists (select 1 from event e where e.id = o.entity)",
        (event,),
    ):
        yield Damage(what=f"op {seq} of device {device[:8]}", wrong="its event is missing", remedy=Remedy.RESTORE)


def _queued(connection: Any, watch: Watch) -> Iterator[Damage]:
    """Compare the queue of texts that wait for a vector with those that have none."""
    watch("what waits for a vector", 0, 0)
    queued = {tuple(row) for row in connection.execute("select memory, n from unembedded")}
    different = queued.symmetric_difference(tuple(row) for row in connection.execute(embed_queue.WITHOUT_VECTOR))
    if different:
        yield Damage(
            what="the queue of texts to embed",
            wrong=f"it is wrong about {len(different)} of them",
            remedy=Remedy.REBUILD,
        )


def _derived(connection: Any, watch: Watch) -> Iterator[Damage]:
    """Make the projections again beside those of the file, and compare."""
    watch("what is derived", 0, 0)
    connection.execute("rollback")
    with contextlib.closing(_empty()) as fresh:
        definitions = fresh.execute(
            "select type, name, tbl_name, sql from sqlite_schema where sql is not null and type in ('table', 'index')"
            " order by type desc"
        ).fetchall()
    hidden = {
        name
        for kind, name, _, _ in definitions
        if kind == "table" and name not in tables.SOURCES and not name.startswith(("sqlite_", "memory_fts_"))
    }
    for _, name, table, sql in definitions:
        if table in hidden:
            connection.execute(sql.replace(name, f"temp.{name}", 1))
    connection.execute("begin")
    context = WriteContext(connection, Queries(connection), LogHead(), Millis(0), bytes)
    Projections(context, empty_full_text=_leave_new).project_all(tell=False)
    for table in tables.DERIVED:
        watch(table.name, 0, 0)
        yield from _differing(
            connection, f"{table.name} ", table.key, f"select {table.columns} from {{0}}.{table.name}"
        )
    words = "select m.id, f.c0 from {0}.memory m left join {0}.memory_fts_content f on f.id = m.n"
    yield from _differing(connection, "the full text of memory ", "id", words)
    for (row,) in connection.execute(
        "select id from main.memory_fts_content where id not in (select n from main.memory)"
    ):
        yield Damage(what=f"the full text of row {row}", wrong="it belongs to no memory", remedy=Remedy.REBUILD)


def _differing(connection: Any, what: str, key: str, query: str) -> Iterator[Damage]:
    """Yield what a query ({0} stands for the database) finds in the file or beside it, but not in both."""
    different: dict[str, None] = {}
    for one, other in (("main", "temp"), ("temp", "main")):
        cursor = connection.execute(f"{query.format(one)} except {query.format(other)}")
        place = [column[0] for column in cursor.description].index(key)
        different.update((_shown(row[place]), None) for row in cursor)
    for name in different:
        yield Damage(what=f"{what}{name}", wrong="it is not what its ops say", remedy=Remedy.REBUILD)


def _leave_new(context: WriteContext) -> None:
    """Do nothing: the temporary tables are new."""
