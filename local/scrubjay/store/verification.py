"""Whether a store says what its log says, and its memories what their events say: everything that can be compared.

What nobody can tell is said too: whoever can write the file can write a log with check sums that fit. `sync verify`
compares this device's part of the log with the account, where it is chained and signed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from scrubjay.store import file
from scrubjay.store.damage import Damage, Remedy, Watch, find, reader, remedy_of
from scrubjay.store.queries import Queries
from scrubjay_shared.errors import InvalidError

PAGE = 500
"""Memories whose passages are compared at a time."""


def verify(path: Path, watch: Watch) -> Iterator[Damage]:
    """Yield what does not fit in a store, which is only read. Raises InvalidError where it is of another schema."""
    if wrong := file.check(path):
        remedy = remedy_of(path, wrong)
        yield from (Damage(what=path.name, wrong=one, remedy=remedy) for one in wrong)
        return
    with contextlib.closing(reader(path)) as connection:
        version = int(connection.execute("pragma user_version").fetchone()[0])
    if version != file.migrations()[-1].version:
        raise InvalidError(
            f"{path.name} was written by another version of scrubjay",
            hint="open it once with this one: scrubjay stats --data-dir its folder",
        )
    yield from find(path, watch, derive_anyway=True)
    yield from _unsupported(path, watch)


def _unsupported(path: Path, watch: Watch) -> Iterator[Damage]:
    """Look for passages that the events do not hold, and for memories that claim to be read and name no passage."""
    with contextlib.closing(reader(path)) as connection:
        connection.execute("begin")
        queries = Queries(connection)
        ids = [str(row[0]) for row in connection.execute("select id from memory order by id")]
        for start in range(0, len(ids), PAGE):
            watch("passages", start, len(ids))
            for memory_id in ids[start : start + PAGE]:
                for grip in queries.grips.of_memory(memory_id):
                    here = connection.execute(
                        "select count(*) from event where id in (?, ?) and not forgotten",
                        (grip.event_id_start, grip.event_id_end),
                    ).fetchone()[0]
                    if here == len({grip.event_id_start, grip.event_id_end}) and not queries.grips.holds(grip):
                        yield Damage(
                            what=f"grip {grip.id}",
                            wrong="its events do not say what it quotes",
                            remedy=Remedy.RESTORE,
                        )
        for (memory_id,) in connection.execute(
            "select id from memory m where kind = 'observation' and archived_at is null"
            " and not exists (select 1 from grip g where g.memory_id = m.id) order by id"
        ):
            yield Damage(
                what=f"memory {memory_id}", wrong="it was read from events, and names no passage", remedy=Remedy.NOTHING
            )
